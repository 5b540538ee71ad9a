"""The judge of the rivals' campaign: it lets a true log pass, and nothing else."""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'tools'))
from judge import Record, body, judge  # noqa: E402  pylint: disable=wrong-import-position
from tap import children, main  # noqa: E402  pylint: disable=wrong-import-position

ALICE = ['C 1 1', 'A 1 2', 'A 2 3', 'L 3 4', 'C 3 4', 'R 4 5']
BOB = ['N 1 2', 'C 2 3', 'A 3 3']
LOG = [('alice', 2), ('alice', 3), ('bob', 3), ('alice', 5)]


def verdict(log=None, alice=None, bob=None, lines=None):
    """None, or what the judge complains of."""
    if lines is None:
        lines = [f'{offset}\t{body(*entry)}\n' for offset, entry in enumerate(log or LOG, 1)]
    try:
        judge(lines, [Record('alice', alice or ALICE), Record('bob', bob or BOB)])
        return None
    except AssertionError as error:
        return str(error)


def a_true_log_passes(_):
    assert verdict() is None


def every_lie_is_found(_):
    whole = [f'{offset}\t{body(*entry)}\n' for offset, entry in enumerate(LOG, 1)]
    lies = [
        ('an acknowledged entry lost at the end', {'log': LOG[:3]}, 'is not there'),
        ('one lost in the middle', {'log': LOG[:1] + LOG[2:]}, 'J2'),
        ('two swapped', {'log': [LOG[1], LOG[0]] + LOG[2:]}, 'J2'),
        ('one doubled', {'log': LOG + [LOG[0]]}, 'a second time'),
        ('a refused one there', {'log': LOG + [('alice', 4)]}, 'J3'),
        ('one without an outcome there', {'log': LOG + [('bob', 9)]}, 'J4'),
        ('one of a stranger', {'log': LOG + [('eve', 1)]}, 'J4'),
        ('a gap', {'lines': whole[:2] + ['4' + whole[2][1:]]}, 'J1'),
        ('a body cut', {'lines': whole[:3] + [whole[3][:-2] + '\n']}, 'not whole'),
        ('two owners of an epoch', {'bob': ['C 1 1'] + BOB}, 'J5'),
        ('an epoch that goes back', {'alice': ALICE + ['C 2 5']}, 'J5'),
        ('two outcomes', {'alice': ALICE + ['N 9 2']}, 'two outcomes'),
    ]
    for what, changes, words in lies:
        said = verdict(**changes)
        assert said is not None and words in said, f'{what}: the judge says {said!r}'


def a_writer_alone_on_a_journal_is_found_true(folder):
    log, record = os.path.join(folder, 'log'), os.path.join(folder, 'record')
    writer = subprocess.Popen([os.environ['LOG_WRITER'], log, 'raw/0', 'alice', '16', record],
                              stdout=subprocess.DEVNULL)
    children.append(writer)
    deadline = time.monotonic() + 300
    while not (os.path.exists(record) and os.path.getsize(record) > 10000):
        assert writer.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    writer.send_signal(signal.SIGTERM)
    assert writer.wait() == 0
    with open(record, encoding='ascii') as lines:
        told = Record('alice', lines)
    with subprocess.Popen([os.environ['PAWL'], 'log', 'read', '--dir', log, '--stream', 'raw/0'],
                          stdout=subprocess.PIPE, text=True) as reader:
        assert judge(reader.stdout, [told]) == told.counts['A'] > 0
    assert reader.returncode == 0


if __name__ == '__main__':
    main([a_true_log_passes, every_lie_is_found, a_writer_alone_on_a_journal_is_found_true])
