"""What ./run shows, run as a test: the shop is killed, audited, verified and served, and goes on when it is run again."""
import os
import re
import socket
import subprocess

from shell import PATIENCE, ROOT, main, pawl, start_program
from terminal import CTRL_C, Terminal

SHOP = os.environ['SHOP']
DEMO = os.path.join(ROOT, 'tools', 'demo')


def settings(folder):
    return {'PAWL_DIR': os.path.join(folder, 'data'), 'PAWL_DEMO_SECONDS': '1', 'PAWL_LISTEN': '127.0.0.1:0'}


def still_there(folder):
    """Processes that were started with something below this folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().decode(errors='replace').split('\0')
        except OSError:
            continue
        if any(folder in word for word in words):
            found.append(words)
    return found


def invoices(output):
    """How many the auditor counted."""
    line = next(line for line in output.splitlines() if 'no gap, none twice' in line)
    return int(line.split(' tenants, ')[1].split()[0])


def what_could_not_be_checked_is_named(folder):
    """The handler of the statements is the demo's own, and not there when the program replays."""
    data, told = os.path.join(folder, 'data'), 'because their handlers are not here: shop.statements ('
    pawl('replay', '--reproject', '--dir', data, '--to', os.path.join(folder, 'text')).expect(0, told)
    lanes = pawl('replay', '--reproject', '--dir', data, '--to', os.path.join(folder, 'json'), '--json'
                 ).expect(0).json()['lanes']
    assert [u['projector'] for u in lanes['unchecked_by']] == ['shop.statements'], lanes
    assert lanes['unchecked'] == lanes['unchecked_by'][0]['operations'] > 0
    assert lanes['operations'] == lanes['worked_out_again'] + lanes['unchecked']


def without_a_terminal_it_shows_everything_and_ends(folder):
    done = subprocess.run([DEMO], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=PATIENCE, env={**os.environ, **settings(folder)})
    said = done.stdout
    assert done.returncode == 0, said
    assert 'is sound' in said and 'shop.statements  applied' in said and 'one after the other' in said, said
    assert 'shop.invoices_by_customer' in said and 'built: ' in said and 'the last invoices of customer' in said, said
    assert 'each as its invoice says' in said and 'none was taken twice' in said and invoices(said) > 0, said
    # It has run the lines of curl itself.
    assert said.count('$ curl ') >= 5 and '"ids":{"1":' in said and '"number":' in said and '"method":"cash"' in said, said
    assert said.count('\n  data: {') == 2 and 'shop.invoices_by_customer is built' in said, said
    assert re.search(r'\n  commands  +\d+/s, p50 .* ms\n', said) and re.search(r'\n  alerts +none\n', said), said
    assert not still_there(folder)
    what_could_not_be_checked_is_named(folder)


def the_lines_of_the_readme_work(address):
    with open(os.path.join(ROOT, 'README.md'), encoding='utf-8') as file:
        lines = [line.strip() for line in file if line.startswith('curl ')]
    assert len(lines) == 3
    for line in lines:
        assert 'curl localhost:7295/' in line, line
        # One of them follows events until it is ended.
        done = subprocess.run(['sh', '-c', line.replace('localhost:7295', address) + ' --max-time 2'], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        assert done.returncode == (28 if 'event-stream' in line else 0), (line, done)
        assert done.stdout and '{"error"' not in done.stdout, (line, done)


def on_a_terminal_it_goes_on_with_the_data_and_serves_until_ctrl_c(folder):
    data = settings(folder)['PAWL_DIR']
    subprocess.run([SHOP, 'load', '--dir', data, '--schema', os.path.join(ROOT, 'examples/shop/shop.json'), '--seconds', '1'],
                   stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE)
    before = subprocess.run([SHOP, 'check', '--dir', data], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    terminal = Terminal([DEMO], settings(folder))
    terminal.wait_until(lambda: 'is served until you press Ctrl-C' in terminal.text())
    said = terminal.text().replace('\r', '')
    assert invoices(said) > invoices(before), said
    lines = re.findall(r'^  (curl .*)$', said, re.MULTILINE)
    assert 3 <= len(lines) <= 6, said
    for line in lines:
        done = subprocess.run(['sh', '-c', line], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0 and done.stdout and '{"error"' not in done.stdout, (line, done)
    the_lines_of_the_readme_work(re.search(r'http://(127\.0\.0\.1:\d+) is served until', said)[1])
    url = re.search(r'(http://127\.0\.0\.1:\d+) is served until', said)[1]
    page = subprocess.run(['curl', '--silent', '--fail', url], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert page.returncode == 0 and '<title>Pawl' in page.stdout, page
    pawl('ws', 'show', '7', '--dir', data).expect(0, 'shop.invoice')  # over the socket of the directory
    terminal.type(CTRL_C)
    assert terminal.end() == 0, terminal.text()
    assert 'commands were answered meanwhile' in terminal.text() and not still_there(folder), terminal.text()
    pawl('verify', '--dir', data).expect(0)


def a_port_that_is_taken_is_no_obstacle(folder):
    data = os.path.join(folder, 'data')
    subprocess.run([SHOP, 'load', '--dir', data, '--schema', os.path.join(ROOT, 'examples/shop/shop.json'), '--tenants', '2',
                    '--threads', '2', '--seconds', '1'], stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE)
    with socket.socket() as taken:
        try:
            taken.bind(('127.0.0.1', 7295))
            taken.listen()
        except OSError:
            pass  # somebody has it already
        shop = start_program(SHOP, 'serve', '--dir', data, '--tenants', '2', '--threads', '2', '--rate', '10', stdout=subprocess.PIPE)
        url = shop.stdout.readline().decode()
        assert re.search(r' at http://127\.0\.0\.1:\d+\n', url) and ':7295' not in url, url
        shop.terminate()
        assert shop.wait(PATIENCE) == 0


main([without_a_terminal_it_shows_everything_and_ends,
      on_a_terminal_it_goes_on_with_the_data_and_serves_until_ctrl_c,
      a_port_that_is_taken_is_no_obstacle])
