"""What ./run shows, run as a test: the shop is killed, audited and verified, and goes on when it is run again."""
import os
import subprocess

from shell import ROOT, main, pawl


def demo(folder):
    """The output of tools/demo over a data directory in the folder; it must end well."""
    done = subprocess.run([os.path.join(ROOT, 'tools', 'demo')], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False,
                          env={**os.environ, 'PAWL_DIR': os.path.join(folder, 'data'), 'PAWL_DEMO_SECONDS': '1'})
    assert done.returncode == 0, done.stdout
    return done.stdout


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


def the_demo_finds_no_gap_and_goes_on_when_run_again(folder):
    first = demo(folder)
    assert 'is sound' in first and '"ids":{"1":' in first, first
    assert 'shop.statements  applied' in first and 'one after the other' in first, first
    assert invoices(first) > 0
    assert 'shop.invoices_by_customer' in first and 'built: ' in first and 'the last invoices of customer' in first, first
    assert 'each as its invoice says' in first and 'none was taken twice' in first, first
    what_could_not_be_checked_is_named(folder)
    assert invoices(demo(folder)) > invoices(first)


main([the_demo_finds_no_gap_and_goes_on_when_run_again])
