"""A node on three brokers under faults: what its clients were told is true, whatever happens to it and to them.

    test_campaign.py SECONDS    a round of every fault, and then more rounds by chance, until so many seconds are over

Clerks (clerks.py) send commands to `pawl serve`. In every round something happens to a broker, to the node, or to
both; when it is over, each clerk must get an answer again before the next round begins. PAWL_SEED=n repeats the choices
of a campaign. In the end the node, and another one that came from nothing, are compared with what the clerks were told.
"""
import json
import os
import random
import sys
import tempfile
import threading
import time

import clerks
from brokers import Brokers, main, run
from served import FAILED, OWNED, PATIENCE, PAWL, Node

CLIENT = os.environ['KAFKA_CLIENT']
SECONDS = float(sys.argv[1])
CLUSTER, PARTITIONS, WORKSPACES = 'campaign', 4, 6
TIMEOUTS_MS = (8000, 30000)  # after which an outcome is unknown: before a command has waited long enough, or behind that
SLEEP_SECONDS = (9, 14)  # longer than any time-out of a client, a broker or a producer


class Campaign:
    """A node, its clerks, and what is done to it and to the brokers."""

    def __init__(self, brokers, folder, chance):
        self.brokers, self.folder, self.chance = brokers, folder, chance
        self.url = f'kafka://{brokers.address}/{CLUSTER}?timeout-ms={chance.choice(TIMEOUTS_MS)}'
        self.over, self.node, self.nodes = False, None, []
        self.clerks = [(clerks.BatchClerk if wsid % 3 == 0 else clerks.Clerk)(
            f'clerk{wsid}', wsid, self, random.Random(chance.random())) for wsid in range(1, WORKSPACES + 1)]
        self.ended = threading.Event()

    def pause(self, seconds):
        """Of a clerk whose node does not answer."""
        self.ended.wait(seconds)

    def place(self):
        return os.path.join(self.folder, f'node{len(self.nodes)}')

    def start(self, folder, *options):
        """Until it serves. Brokers that do not answer may end it, and whoever looks after it starts it again."""
        until = time.monotonic() + PATIENCE
        while True:
            node = Node(folder, '--log', self.url, *options)
            self.nodes.append(node)
            if node.is_ready():
                self.node = node
                return node
            assert node.process.returncode == FAILED, f'{folder}: {node.process.returncode}, {node.words()}'
            print(f'# it could not start: {node.words().strip()}', flush=True)
            assert time.monotonic() < until, 'it never starts'

    def begin(self):
        run(PAWL, 'cluster', 'init', '--log', self.url, '--partitions', str(PARTITIONS))
        node = self.start(self.place())
        status, text = clerks.ask(node.port, 'PUT', '/v1/schema', json.dumps(clerks.SCHEMA))
        assert status == 200, text
        for clerk in self.clerks:
            run(PAWL, 'ws', 'create', str(clerk.wsid), 'c.tenant', '--dir', node.folder)
            clerk.thread.start()
        self.go_on()

    def look(self):
        for clerk in self.clerks:
            if clerk.failure:
                raise clerk.failure
        alive = self.node.process.poll() is None
        assert alive, f'{self.node.folder} ended with {self.node.process.returncode}: {self.node.words()}'

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.look()
            time.sleep(0.05)

    def go_on(self):
        """Until each clerk has got an answer."""
        before = [len(clerk.acknowledged) for clerk in self.clerks]
        until = time.monotonic() + PATIENCE
        while not all(len(clerk.acknowledged) > b for clerk, b in zip(self.clerks, before)):
            self.look()
            stuck = [clerk.name for clerk, b in zip(self.clerks, before) if len(clerk.acknowledged) <= b]
            assert time.monotonic() < until, f'no answer for {stuck}'
            time.sleep(0.05)

    def in_sync(self):
        """All replicas have all of it: only then may the next disk be lost."""
        until = time.monotonic() + PATIENCE
        while run(CLIENT, self.brokers.address, 'insync', CLUSTER) != '3':
            self.look()
            assert time.monotonic() < until, 'replicas do not catch up'

    # --- what happens to the node; True: its directory is not the present one any more ---

    def nothing(self):
        self.wait(1)

    def kill_the_node(self):
        self.node.kill()
        self.start(self.node.folder)

    def pause_the_node(self):
        self.node.sleep()
        time.sleep(self.chance.uniform(*SLEEP_SECONDS))
        self.node.wake()

    def replace_the_node(self):
        """By another one, from nothing, while it works."""
        old = self.node
        new = self.start(self.place(), '--take-over')
        old.ends(OWNED, new.folder, 'has taken over')

    def replace_a_node_that_was_killed(self):
        self.node.kill()
        self.start(self.place(), '--take-over')

    def replace_a_node_that_sleeps(self):
        """It does not know, when it goes on."""
        old = self.node
        old.sleep()
        new = self.start(self.place(), '--take-over')
        self.wait(self.chance.uniform(0, 5))
        old.wake()
        old.ends(OWNED, new.folder, 'has taken over')

    # --- what happens to brokers, before it is healed ---

    def broker(self):
        return str(self.chance.randint(1, 3))

    def no_broker(self):
        pass

    def kill_a_broker(self):
        self.brokers.tell('kill', self.broker())

    def pause_a_broker(self):
        self.brokers.tell('pause', self.broker())
        self.wait(self.chance.choice([0, 4, 9]))

    def wipe_a_broker(self):
        self.brokers.tell('wipe', self.broker())

    def kill_all_brokers(self):
        self.brokers.tell('kill', 'all')
        self.wait(self.chance.choice([0, 2, 12]))
        self.brokers.tell('restart', 'all')

    def pause_all_brokers(self):
        self.brokers.tell('pause', 'all')
        self.wait(self.chance.choice([2, 12]))
        self.brokers.tell('resume', 'all')

    NODE_FAULTS = (kill_the_node, pause_the_node, replace_the_node, replace_a_node_that_was_killed,
                   replace_a_node_that_sleeps)
    BROKER_FAULTS = (kill_a_broker, pause_a_broker, wipe_a_broker, kill_all_brokers, pause_all_brokers)

    def rounds(self):
        """Every fault at least once, then whatever chance brings."""
        both = [list(self.NODE_FAULTS), list(self.BROKER_FAULTS)]
        for faults in both:
            self.chance.shuffle(faults)
        yield from zip(*both)
        while True:
            yield (self.chance.choice(self.NODE_FAULTS + (Campaign.nothing,)),
                   self.chance.choice(self.BROKER_FAULTS + (Campaign.no_broker,)))

    def round(self, node_fault, broker_fault):
        began, before = time.monotonic(), sum(len(clerk.acknowledged) for clerk in self.clerks)
        self.wait(self.chance.uniform(0, 1))
        broker_fault(self)
        self.wait(self.chance.uniform(0, 1))
        node_fault(self)
        self.wait(self.chance.uniform(0, 1))
        self.brokers.heal()
        self.in_sync()
        self.go_on()
        acknowledged = sum(len(clerk.acknowledged) for clerk in self.clerks) - before
        print(f'# {broker_fault.__name__}, {node_fault.__name__}: {time.monotonic() - began:.1f} s, '
              f'{acknowledged} acknowledged', flush=True)

    def end(self):
        self.over = True
        for clerk in self.clerks:
            clerk.thread.join(2 * PATIENCE)
            if clerk.failure:
                raise clerk.failure
            print(f'# {clerk.name}: {len(clerk.acknowledged)} acknowledged, {len(clerk.refused)} refused, '
                  f'errors {clerk.codes}, longest wait {clerk.longest:.1f} s', flush=True)

    def compare(self):
        """The node, and one that has derived all of it from the log."""
        first = self.node
        total = clerks.judge(first.port, PARTITIONS, self.clerks)
        for clerk in self.clerks:
            clerks.judge_keys(first.port, clerk)
        first.stop()
        sound(first.folder)
        second = self.start(self.place(), '--take-over')
        assert clerks.judge(second.port, PARTITIONS, self.clerks) == total
        second.stop()
        sound(second.folder)
        run(PAWL, 'verify', '--log', self.url)
        print(f'# {total} events, all true', flush=True)

    def close(self):
        self.over = True
        self.ended.set()
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.kill()
                node.process.wait()


def sound(folder):
    """Both stores are what the log says, and so are the lanes' operations, worked out again."""
    assert 'is sound' in run(PAWL, 'verify', '--dir', folder, '--audit', '--replay')


def whatever_happens_what_clients_are_told_is_true(folder):
    seed = int(os.environ.get('PAWL_SEED', random.randrange(1 << 32)))
    print(f'# seed {seed}', flush=True)
    with tempfile.TemporaryDirectory() as home, Brokers(3, home) as brokers:
        campaign = Campaign(brokers, folder, random.Random(seed))
        began = time.monotonic()
        try:
            campaign.begin()
            for number, (node_fault, broker_fault) in enumerate(campaign.rounds()):
                if number >= len(Campaign.NODE_FAULTS) and time.monotonic() - began > SECONDS:
                    break
                campaign.round(node_fault, broker_fault)
            campaign.end()
            campaign.compare()
        finally:
            campaign.close()


if __name__ == '__main__':
    main([whatever_happens_what_clients_are_told_is_true])
