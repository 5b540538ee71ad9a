"""Single faults of a node on Kafka: clear words, the right exit code, nothing acknowledged lost, nobody waits for long.

    test_node_faults.py SECONDS [WORD]    all brokers are away for so long; 0: only what is quickly seen. Only cases with
                                          WORD in their name

What happens to a node by chance is in test_campaign.py.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import clerks
from brokers import Brokers, main, run
from served import CORRUPT, FAILED, PATIENCE, PAWL, Node

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
from shell import fill, small_disk  # noqa: E402  pylint: disable=wrong-import-position

CLIENT, CLOCK_AHEAD = os.environ['KAFKA_CLIENT'], os.environ['CLOCK_AHEAD']
AWAY_SECONDS = float(sys.argv[1])
GOOD = {'flush.messages': 1, 'retention.ms': -1, 'retention.bytes': -1, 'max.message.bytes': 2097152,
        'min.insync.replicas': 2}
WSID = 7


class Scene:
    """A cluster of topics of its own, and a node on it with a workspace."""

    def __init__(self, brokers, folder, name):
        self.brokers, self.folder, self.name, self.nodes, self.sent = brokers, folder, name, [], 0
        self.url = f'kafka://{brokers.address}/{name}?timeout-ms=15000'
        self.dir = os.path.join(folder, 'node')
        self.init()
        self.node = None

    def init(self):
        run(PAWL, 'cluster', 'init', '--log', self.url, '--partitions', '1')

    def client(self, verb, *words, topic='plog'):
        return run(CLIENT, self.brokers.address, verb, f'{self.name}.{topic}', *words)

    def topics(self):
        """Those of the cluster, without its name."""
        names = run(CLIENT, self.brokers.address, 'topics', self.name).split()
        return [name.removeprefix(self.name + '.') for name in names]

    def lacks(self, topic):
        """It was deleted, and nobody has made it again."""
        until = time.monotonic() + PATIENCE
        while topic in self.topics():
            assert time.monotonic() < until, 'it was made again'

    def start(self, *options, folder=None, env=None, before=()):
        """Until it serves. Brokers that do not answer, or do not know yet what others do, may end it, and whoever looks
        after it starts it again. before: words of what was mended, of which a broker may not have heard."""
        until = time.monotonic() + PATIENCE
        while True:
            self.node = Node(folder or self.dir, '--log', self.url, *options, env=env)
            self.nodes.append(self.node)
            if self.node.is_ready():
                return self.node
            code, words = self.node.process.returncode, self.node.words()
            assert code == FAILED or (before and all(word in words for word in before)), f'{code}: {words}'
            print(f'# it could not start: {words.strip()}', flush=True)
            assert time.monotonic() < until, 'it never starts'

    def begin(self, **how):
        self.start(**how)
        status, text = clerks.ask(self.node.port, 'PUT', '/v1/schema', json.dumps(clerks.SCHEMA))
        assert status == 200, text
        run(PAWL, 'ws', 'create', str(WSID), 'c.tenant', '--dir', self.node.folder)
        for _ in range(3):
            self.add()

    def send(self, key):
        """(status, answer), which must come in time."""
        began = time.monotonic()
        status, text = clerks.ask(self.node.port, 'POST', f'/v1/ws/{WSID}/commands', json.dumps(clerks.bill(key)),
                                  {'Idempotency-Key': key})
        took = clerks.waited(self.node, began)
        assert took < clerks.WAIT_SECONDS + clerks.SLACK_SECONDS, f'{key}: {took:.1f} s'
        return status, json.loads(text)

    def add(self):
        self.sent += 1
        status, answer = self.send(f'bill {self.sent}')
        assert status == 200, answer
        assert answer['workspace_offset'] == self.sent + 1, answer

    def adds_until_refused(self):
        """The error of the first command that is not acknowledged: what the brokers have acknowledged, they may act on a
        little later."""
        until = time.monotonic() + PATIENCE
        while True:
            self.sent += 1
            status, answer = self.send(f'bill {self.sent}')
            if status != 200:
                return answer['error']['code'], answer['error']['message']
            assert time.monotonic() < until, answer

    def code(self, key):
        """Of a command that cannot be acknowledged."""
        status, answer = self.send(key)
        assert status != 200, answer
        return answer['error']['code'], answer['error']['message']

    def until_acknowledged(self, key):
        until = time.monotonic() + PATIENCE
        while True:
            status, answer = self.send(key)
            if status == 200:
                return answer
            assert answer['error']['code'] in clerks.REFUSALS, answer
            assert time.monotonic() < until, answer

    def sees(self, count):
        """As many bills as were acknowledged."""
        events = clerks.every(self.node.port, f'/v1/ws/{WSID}/events')
        assert len(events) == 1 + count, f'{len(events) - 1} bills of {count}'

    def refused(self, code, *words, options=(), soon=()):
        """It does not start, with this exit code and these words. Brokers that are busy, or do not know yet of topics that
        were made, may end it with FAILED before. soon: what may happen, too, until all brokers have acted on what they
        have acknowledged: other exit codes, and 0 for a node that starts."""
        until = time.monotonic() + PATIENCE
        while True:
            node = Node(self.dir, *options)
            self.nodes.append(node)
            found = 0
            if node.is_ready():
                node.kill()
            else:
                found = node.process.returncode
            said = node.words()
            if found == code and all(word in said for word in words):
                return
            assert found in (FAILED, *soon) and time.monotonic() < until, f'{found}, not {code} with {words}: {said}'
            print(f'# not yet refused as it must be: {found}, {said.strip()}', flush=True)

    def says(self, verb, *words):
        """Wait until the node says all of this."""
        until, said = time.monotonic() + PATIENCE, ''
        while not all(word in said for word in words):
            assert time.monotonic() < until, said
            said = run(PAWL, *verb.split(), '--dir', self.node.folder)

    def is_kept(self):
        """Wait until the checkpoint has every event."""
        until, lag = time.monotonic() + PATIENCE, None
        while lag != 0:
            assert time.monotonic() < until, f'the checkpoint lacks {lag} events'
            lag = json.loads(clerks.ask(self.node.port, 'GET', '/v1/figures')[1])['checkpoint']['lag']

    @staticmethod
    def finds(words, *command):
        """What the brokers have acknowledged, they may act on a little later."""
        until, done = time.monotonic() + PATIENCE, None
        while done is None or words not in done.stdout + done.stderr:
            assert time.monotonic() < until, done
            done = subprocess.run((PAWL, *command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  check=False)
        assert done.returncode == CORRUPT, done

    def close(self):
        for node in self.nodes:
            if node.process.poll() is None:
                node.kill()


def all_brokers_are_away_and_come_back_and_keys_tell_what_became_of_commands(scene):
    scene.begin()
    scene.brokers.tell('pause', 'all')
    until, codes = time.monotonic() + AWAY_SECONDS, []
    while time.monotonic() < until:
        codes.append(scene.code('bill 4')[0])
        assert clerks.ask(scene.node.port, 'GET', f'/v1/ws/{WSID}/records?type=c.Bill')[0] == 200, 'it reads'
    assert codes[0] == 'PAWL_EUNKNOWN' and set(codes) <= clerks.REFUSALS, codes
    scene.brokers.tell('resume', 'all')
    answer = scene.until_acknowledged('bill 4')
    assert answer['workspace_offset'] == 5, answer
    scene.sent = 4
    scene.add()
    scene.sees(5)
    scene.node.stop()
    assert 'is sound' in run(PAWL, 'verify', '--dir', scene.dir, '--audit', '--replay')


def a_broker_that_is_slow_delays_commands_and_fails_none(scene):
    scene.begin()
    leader = scene.client('leader')
    for _ in range(20):
        scene.brokers.tell('pause', leader)
        time.sleep(0.3)
        scene.brokers.tell('resume', leader)
        scene.add()
    scene.sees(23)


def a_clock_two_hours_ahead_and_back_does_no_harm(scene):
    scene.begin(env={'LD_PRELOAD': CLOCK_AHEAD})
    scene.node.stop()
    scene.start()
    scene.add()
    scene.sees(4)
    scene.node.stop()
    scene.start('--take-over', folder=os.path.join(scene.folder, 'other'), env={'LD_PRELOAD': CLOCK_AHEAD})
    scene.add()
    scene.sees(5)
    scene.node.stop()
    assert 'is sound' in run(PAWL, 'verify', '--dir', scene.node.folder, '--audit', '--replay')


def a_full_disk_of_the_node_loses_nothing_and_goes_on_when_there_is_room(scene):
    disk = os.path.join(scene.folder, 'disk')
    os.mkdir(disk)
    small_disk(disk)
    scene.dir, hog = os.path.join(disk, 'node'), os.path.join(disk, 'hog')
    scene.begin()
    fill(hog)
    number, answer = scene.sent, None
    for number in range(scene.sent + 1, scene.sent + 3000):
        status, answer = scene.send(f'bill {number}')
        if status != 200:
            break
    assert answer['error']['code'] in ('PAWL_EFULL', 'PAWL_EUNKNOWN', 'PAWL_EBUSY'), answer
    os.remove(hog)
    assert scene.until_acknowledged(f'bill {number}')['workspace_offset'] == number + 1
    scene.sees(number)
    scene.node.kill()
    subprocess.run(['umount', disk], check=True)


def a_foreign_record_stops_the_stream_and_is_named(scene):
    scene.begin()
    place = scene.client('produce', 'hello')
    scene.sent += 1
    code, words = scene.code('bill 4')
    until = time.monotonic() + PATIENCE
    while code != 'PAWL_ECORRUPT':  # that it was not sent, or that its outcome is unknown, is true of the first ones
        assert code in clerks.REFUSALS - {'PAWL_EFENCED'}, (code, words)
        assert time.monotonic() < until, (code, words)
        code, words = scene.code('bill 4')
    assert f'{scene.name}.plog, partition 0, offset {place}' in words, words
    scene.node.kill()
    scene.refused(CORRUPT, f'{scene.name}.plog, partition 0, offset {place}', 'not written by Pawl')


def a_topic_that_became_weak_lets_the_owner_go_on_and_nobody_open_it(scene):
    scene.begin()
    scene.client('alter', *(f'{name}={value}' for name, value in {**GOOD, 'retention.ms': 60000}.items()))
    scene.add()
    scene.node.stop()
    scene.refused(FAILED, f'{scene.name}.plog', 'retention.ms=60000', soon=(0,))
    scene.client('alter', *(f'{name}={value}' for name, value in GOOD.items()))
    scene.start(before=(f'{scene.name}.plog', 'retention.ms=60000'))
    scene.add()
    scene.sees(5)


def a_topic_that_was_deleted_is_missed_and_an_empty_one_is_not_taken_for_it(scene):
    scene.begin()
    scene.client('delete')
    code, words = scene.adds_until_refused()
    assert code in clerks.REFUSALS | {'PAWL_ECORRUPT', 'PAWL_ENOTFOUND'}, (code, words)
    scene.node.kill()
    scene.refused(FAILED, f'{scene.name}.plog', 'pawl cluster init', soon=(0, CORRUPT))
    scene.init()
    scene.refused(CORRUPT, 'plog/0', 'the log ends at 0')


def a_lane_whose_operation_log_was_deleted_is_refused_until_it_is_rebuilt(scene):
    scene.begin()
    scene.says('project status', '1 serves', 'current')
    (topic,) = [name for name in scene.topics() if name.startswith('oplog.')]
    scene.node.stop()
    scene.client('delete', topic=topic)
    lost = f'topic {scene.name}.{topic} was deleted'
    stream = 'oplog/0/' + topic.removeprefix('oplog.')
    for how in (('verify', '--dir', scene.dir), ('verify', '--log', scene.url), ('cluster', 'check', '--log', scene.url),
                ('log', 'read', '--log', scene.url, '--stream', stream)):
        scene.finds(lost, *how)
    for how in ((), ('--take-over',)):
        scene.start(*how, folder=scene.dir + ''.join(how))
        scene.says('status', 'generation 1: refused', lost)
        scene.lacks(topic)
        scene.add()
        scene.is_kept()
        if not how:
            scene.node.stop()
    run(PAWL, 'project', 'rebuild', 'c.totals', '--dir', scene.node.folder)
    scene.says('project status', '2 serves', 'current')
    rows = clerks.every(scene.node.port, f'/v1/ws/{WSID}/entities/c.Total')
    assert sum(row['bills'] for row in rows) == scene.sent, rows


def all_topics_that_were_deleted_and_made_again_are_not_taken_for_the_log(scene):
    scene.begin()
    scene.node.stop()
    for topic in scene.topics():
        scene.client('delete', topic=topic)
    scene.refused(FAILED, f'there is no topic {scene.name}.', 'pawl cluster init', soon=(0, CORRUPT))
    scene.init()
    sooner = scene.url.replace('timeout-ms=15000', 'timeout-ms=6000')  # it is waited for: a leader may not know all yet
    scene.refused(CORRUPT, f'{scene.name}.group0', 'records were deleted, or the topic was', options=('--log', sooner))


def cases(brokers, word=''):
    def bind(case):
        def body(folder):
            scene = Scene(brokers, folder, case.__name__[:40].replace('_', '-'))
            try:
                case(scene)
            finally:
                scene.close()
                brokers.heal()
        body.__name__ = case.__name__
        return body
    slow = (all_brokers_are_away_and_come_back_and_keys_tell_what_became_of_commands,
            a_broker_that_is_slow_delays_commands_and_fails_none)
    every = (a_clock_two_hours_ahead_and_back_does_no_harm, a_foreign_record_stops_the_stream_and_is_named,
             a_topic_that_became_weak_lets_the_owner_go_on_and_nobody_open_it,
             a_topic_that_was_deleted_is_missed_and_an_empty_one_is_not_taken_for_it,
             a_lane_whose_operation_log_was_deleted_is_refused_until_it_is_rebuilt,
             all_topics_that_were_deleted_and_made_again_are_not_taken_for_the_log,
             a_full_disk_of_the_node_loses_nothing_and_goes_on_when_there_is_room)  # it mounts: the last
    return [bind(case) for case in (slow if AWAY_SECONDS > 0 else ()) + every if word in case.__name__]


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as home, Brokers(3, home) as three:
        main(cases(three, *sys.argv[2:]))
