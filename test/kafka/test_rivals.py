"""Rival writers of one stream on three brokers, under faults: whatever a writer was told is true.

    test_rivals.py SECONDS [WORD]    each fault lasts so long; only those with WORD in their name

Each fault has a cluster of topics of its own, and three writer processes (writer.c) that take the stream from each
other all the time. When the fault is over they go on until each of them has written something, however slow the
machine is; then they settle what they do not know and end, and the stream is read and compared with their records
(judge.py). Faults that leave the brokers alone happen at the same time. Before that, on the same brokers, comes the
case of leaders.py.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import leaders
from brokers import Brokers, main, run
from judge import Record, judge

PAWL, WRITER = os.environ['PAWL'], os.environ['LOG_WRITER']
STREAM = 'raw/0'
# How many entries each has in flight, and after how many ms it gives up waiting: a patient one, and two that are
# often told that an outcome is unknown.
NAMES = {'alice': (1, 30000), 'bob': (64, 2000), 'carol': (1024, 2000)}
SECONDS = float(sys.argv[1])
LONG_SECONDS = 60  # from then on it is the long form, which has the machine for itself
RECOVER_SECONDS_MAX = 400
SETTLE_SECONDS_MAX = 400


class Campaign:
    """Writers at work, and the faults that disturb them."""

    def __init__(self, brokers, folder, name, chance):
        self.brokers, self.folder, self.chance, self.failure = brokers, folder, chance, None
        self.log = f'kafka://{brokers.address}/{name}'
        os.mkdir(folder)
        run(PAWL, 'cluster', 'init', '--log', self.log)
        self.writers = {name: self.start(name, *how) for name, how in NAMES.items()}
        self.until = time.monotonic() + SECONDS

    def suffer(self, fault):
        """It may fail in a thread."""
        try:
            fault(self)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error

    def start(self, name, many, timeout):
        return subprocess.Popen([WRITER, f'{self.log}?timeout-ms={timeout}', STREAM, name, str(many), self.record(name)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def record(self, writer):
        return os.path.join(self.folder, writer)

    def over(self):
        return time.monotonic() >= self.until

    def wait(self, seconds):
        """While the writers work; none may give up."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name, writer in self.writers.items():
                assert writer.poll() is None, f'{name} gave up: {writer.stderr.read()}'
            time.sleep(0.05)

    def records(self):
        """What the writers were told so far."""
        records = []
        for name in NAMES:
            with open(self.record(name), encoding='ascii') as file:
                records.append(Record(name, [line for line in file if line.endswith('\n')]))
        return records

    def wait_until_shown(self, least):
        """Until all have taken the stream from each other and written, and together at least so many entries."""
        until = time.monotonic() + RECOVER_SECONDS_MAX
        while True:
            records = self.records()
            written = [record.counts['A'] + record.counts['R'] for record in records]
            claims = [record.counts['C'] for record in records]
            if sum(written) >= least and min(written) > 0 and min(claims) > 1:
                return
            assert time.monotonic() < until, f'they only wrote {written}, in {claims} claims'
            self.wait(1)

    def settle(self):
        """Have all end, and return what they were told."""
        for writer in self.writers.values():
            writer.terminate()
        for name, writer in self.writers.items():
            said, complaint = writer.communicate(timeout=SETTLE_SECONDS_MAX)
            assert writer.returncode == 0, f'{name} failed: {complaint}'
            print(f'# {name}: {said.strip()}')
        return self.records()

    def compare(self, records):
        run(PAWL, 'verify', '--log', self.log)
        with subprocess.Popen([PAWL, 'log', 'read', '--log', self.log, '--stream', STREAM],
                              stdout=subprocess.PIPE, text=True) as reader:
            count = judge(reader.stdout, records)
        assert reader.returncode == 0
        print(f'# {count} entries, all true', flush=True)

    def close(self):
        for writer in self.writers.values():
            writer.kill()
            writer.wait()


def nothing(campaign):
    campaign.wait(SECONDS)


def kill_a_broker(campaign):
    while not campaign.over():
        node = campaign.chance.randint(1, 3)
        campaign.brokers.tell('kill', node)
        campaign.wait(campaign.chance.uniform(0, 5))
        campaign.brokers.tell('restart', node)
        campaign.wait(2)


def pause_a_broker(campaign):
    while not campaign.over():
        node = campaign.chance.randint(1, 3)
        campaign.brokers.tell('pause', node)
        campaign.wait(campaign.chance.uniform(0.5, 6))  # its session lasts three
        campaign.brokers.tell('resume', node)
        campaign.wait(2)


def kill_all_brokers(campaign):
    while not campaign.over():
        campaign.wait(campaign.chance.uniform(1, 4))
        campaign.brokers.tell('kill', 'all')
        campaign.brokers.tell('restart', 'all')
    campaign.wait(2)


def pause_a_writer(campaign):
    """For longer than anything waits."""
    asleep = SECONDS - 4
    campaign.wait(2)
    name = campaign.chance.choice([name for name, (_, timeout) in NAMES.items() if timeout < asleep * 1000])
    writer = campaign.writers[name]
    writer.send_signal(signal.SIGSTOP)
    campaign.wait(asleep)
    writer.send_signal(signal.SIGCONT)
    campaign.wait(2)


def case(brokers, name, faults, least):
    """A test of this name; faults: at the same time, each to writers of its own; least: how many entries there must be of
    each for it to have shown anything."""
    def body(folder):
        seed = int(os.environ.get('PAWL_SEED', random.randrange(1 << 32)))
        print(f'# seed {seed}', flush=True)
        campaigns = []
        try:
            for fault in faults:
                word = fault.__name__.replace('_', '-')
                campaigns.append(Campaign(brokers, os.path.join(folder, word), word, random.Random(seed)))
            together = [threading.Thread(target=campaign.suffer, args=[fault])
                        for campaign, fault in zip(campaigns, faults)]
            for thread in together:
                thread.start()
            for thread in together:
                thread.join()
            for campaign in campaigns:
                if campaign.failure:
                    raise campaign.failure
                campaign.wait_until_shown(least)
                campaign.compare(campaign.settle())
        finally:
            for campaign in campaigns:
                campaign.close()
    body.__name__ = name
    return body


def cases(brokers, word=''):
    every = [
        ('what_rivals_are_told_is_true_also_when_one_sleeps_longer_than_any_timeout', [nothing, pause_a_writer], 1000),
        ('and_while_brokers_are_killed_and_come_back', [kill_a_broker], 100),
        ('and_while_brokers_are_paused', [pause_a_broker], 100),
        ('and_while_all_brokers_are_killed_at_once', [kill_all_brokers], 100),
    ]
    return [case(brokers, *one) for one in every if word in one[0]]


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as home, Brokers(3, home) as three:
        main(leaders.cases(three, SECONDS >= LONG_SECONDS, *sys.argv[2:]) + cases(three, *sys.argv[2:]))
