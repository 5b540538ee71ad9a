"""The shop with its slow handler, killed with -9 and stopped past every lease: the tables come out as the events say.

SHOP names the program."""
import os
import random
import signal
import subprocess
import time

from shell import PATIENCE, SHOP as SCHEMA, main, pawl, start_program

PROGRAM = os.environ['SHOP']
FEW = ['--tenants', '8']
KILLS = 5
STOPS_MAX = 10
STOPPED = 2.0  # seconds of real time, past a lease and all its extensions: no condition tells that they are over


def shop(*words):
    """Run it to its end; what it said."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def load(folder, *more):
    return start_program(PROGRAM, 'load', '--dir', folder, '--schema', SCHEMA, *FEW, '--threads', '1', '--seconds', '1000',
                         *more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_statements(process, least):
    """Until it says that so many statements were applied; the number."""
    for line in process.stdout:
        words = line.replace(',', '').split()
        if words[:2] == ['shop.statements', 'applied'] and int(words[2]) >= least:
            return int(words[2])
    raise AssertionError('it ended by itself: ' + process.stderr.read())


def audited(folder):
    said = shop('check', '--dir', folder, *FEW)
    assert 'no gap, none twice' in said and 'one after the other' in said, said
    return said


def finish(folder):
    """Let the lanes catch up, and look whether everything is as the events say."""
    shop('project', '--dir', folder)
    said = audited(folder)
    assert 'still to be projected' not in said, said
    pawl('project', 'run', '--dir', folder).expect(0, 'caught up')
    rows = pawl('project', 'status', '--dir', folder, '--json').expect(0).lines()
    assert all(row['lag'] == 0 for row in rows), rows
    pawl('verify', '--replay', '--dir', folder).expect(0, 'is sound', 'worked out again')
    return said


def killed_while_it_projects_it_comes_out_as_the_events_say(folder):
    seed = int(os.environ.get('PAWL_SEED', '1'))
    print(f'# PAWL_SEED={seed}')
    chance = random.Random(seed)
    applied = 0
    for _ in range(KILLS):
        process = load(folder + '/data')
        applied = wait_for_statements(process, applied + chance.randrange(1, 60))
        process.kill()
        process.communicate()
        audited(folder + '/data')
    print('# ' + finish(folder + '/data').replace('\n', '\n# '))


def stop_and_go_on(folder, applied):
    """Stop it past every lease; how many statements were applied then, and how many leases expired."""
    process = load(folder, '--slow', '200', '--lease', '200')
    applied = wait_for_statements(process, applied + 100)
    process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED)
    process.send_signal(signal.SIGCONT)
    applied = wait_for_statements(process, applied + 100)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0, said
    line = next(line for line in said.splitlines() if 'shop.statements' in line and 'committed' in line)
    committed, expired, fenced, _ = (int(part.split()[0]) for part in line.split(None, 1)[1].split(', '))
    assert committed > 0, line
    print(f'# {expired} leases expired, {fenced} late results were refused')
    return applied, expired


def stopped_past_every_lease_it_comes_out_as_the_events_say(folder):
    """Whether leases expire or are extended first when it goes on is left to the order of its timers: so, until some
    have expired."""
    applied = expired = 0
    for _ in range(STOPS_MAX):
        applied, expired = stop_and_go_on(folder + '/data', applied)
        if expired > 0:
            break
    assert expired > 0
    finish(folder + '/data')


if __name__ == '__main__':
    main([killed_while_it_projects_it_comes_out_as_the_events_say,
          stopped_past_every_lease_it_comes_out_as_the_events_say])
