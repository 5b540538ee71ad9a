"""What ./run --kafka shows, run as a test: a broker is killed, then the node, and an empty directory comes back. Nothing is left behind."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
from shell import PATIENCE, ROOT, main  # noqa: E402  pylint: disable=wrong-import-position
from terminal import CTRL_C, Terminal  # noqa: E402  pylint: disable=wrong-import-position

DEMO = os.path.join(ROOT, 'tools', 'demo-kafka')


def settings(folder):
    return {'TMPDIR': folder, 'PAWL_DEMO_SECONDS': '1', 'PAWL_LISTEN': '127.0.0.1:0'}


def still_there(folder):
    """Files below this folder, and processes that were started with something below it."""
    found = os.listdir(folder)
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().decode(errors='replace')
        except OSError:
            continue
        if folder in words:
            found.append(words)
    return found


def judge(said):
    """Commands flowed before the broker died and after it; everything came back."""
    assert said.index('cluster kill ') < said.index('rm -r ') < said.index(' --take-over')
    restored = re.findall(r'\] 100 %  (\d+) of (\d+) events', said)
    assert restored and int(restored[-1][0]) == int(restored[-1][1]) > 0, said
    assert 'no gap, none twice' in said and 'none was taken twice' in said and 'is sound' in said, said


def without_a_terminal_it_shows_everything_and_ends(folder):
    done = subprocess.run([DEMO], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=2 * PATIENCE, env={**os.environ, **settings(folder)})
    said = done.stdout
    assert done.returncode == 0, said
    judge(said)
    before, after = said.split('cluster kill ')
    counts = [int(n) for n in re.findall(r'(\d+) commands answered', before)], [int(n) for n in re.findall(r'(\d+) commands answered', after)]
    assert counts[0][-1] > 0 and counts[1][-1] > counts[0][-1], counts
    assert said.count('$ curl ') == 4 and '"ids":{"1":' in said and said.count('\n  data: {') == 2, said
    assert 'on Kafka: cluster shop at ' in said and re.search(r'\n  alerts +none\n', said), said
    assert not still_there(folder), still_there(folder)


def on_a_terminal_it_serves_until_ctrl_c(folder):
    terminal = Terminal([DEMO], settings(folder))
    terminal.wait_until(lambda: 'is served until you press Ctrl-C' in terminal.text())
    said = terminal.text().replace('\r', '\n')
    judge(said)
    lines = re.findall(r'^  (curl .*)$', said, re.MULTILINE)
    assert len(lines) == 4, said
    for line in lines:
        done = subprocess.run(['sh', '-c', line], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0 and '{"error"' not in done.stdout, (line, done)  # there may be no invoice yet
    terminal.type(CTRL_C)
    assert terminal.end() == 0, terminal.text()
    assert 'commands were answered meanwhile' in terminal.text() and not still_there(folder), terminal.text()


if __name__ == '__main__':
    main([without_a_terminal_it_shows_everything_and_ends]
         + ([on_a_terminal_it_serves_until_ctrl_c] if sys.argv[1:] == ['long'] else []))
