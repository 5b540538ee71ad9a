"""A log on Kafka that is not as it should be: told in words that name the place, with nothing lost or made up."""
import concurrent.futures
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time

from brokers import Brokers, main, run

PAWL, CLIENT, CLOCK_AHEAD = os.environ['PAWL'], os.environ['KAFKA_CLIENT'], os.environ['CLOCK_AHEAD']
FAILED, USAGE, CORRUPT, LOCKED = 1, 2, 3, 5
PATIENCE = 300  # seconds; a machine that others keep busy is slow, not broken
GOOD = {'flush.messages': 1, 'retention.ms': -1, 'retention.bytes': -1, 'max.message.bytes': 2097152}


class Scene:
    """A cluster of topics of its own, on brokers that all cases share."""

    def __init__(self, brokers, name):
        self.brokers, self.name = brokers, name
        self.topic = name + '.raw'

    def url(self, *options, address=None):
        return f'kafka://{address or self.brokers.address}/{self.name}?' + '&'.join(('replication=1',) + options)

    def client(self, verb, *words, topic=None):
        return run(CLIENT, self.brokers.address, verb, topic or self.topic, *words)

    def alter(self, name, value):
        self.client('alter', *(f'{each}={is_now}' for each, is_now in {**GOOD, name: value}.items()))

    def init(self):
        """Once the broker, which there is one of, knows the topics."""
        run(PAWL, 'cluster', 'init', '--log', self.url(), '--partitions', '1')
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return run(PAWL, 'cluster', 'check', '--log', self.url())
            except AssertionError as why:
                if 'there is no topic' not in str(why) or time.monotonic() > until:
                    raise

    def append(self, *lines):
        """The offsets that are printed."""
        text = ''.join(line + '\n' for line in lines)
        return run(PAWL, 'log', 'append', '--log', self.url(), '--stream', 'raw/0', input=text).split()

    def read(self):
        return run(PAWL, 'log', 'read', '--log', self.url(), '--stream', 'raw/0').splitlines()


def refused(code, words, *command, **how):
    """The command must end with this code, and say all these words on stderr, or stdout if it is a report."""
    done = subprocess.run((PAWL,) + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=PATIENCE, **how)
    assert done.returncode == code, f'{command}: {done.returncode}, {done.stderr}'
    for word in words:
        assert word in done.stderr + done.stdout, f'{command}: no {word!r} in {done.stderr + done.stdout!r}'
    return done


def refused_in_time(code, words, *command, **how):
    """The same of something that the brokers have acknowledged, and may act on a little later."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return refused(code, words, *command, **how)
        except AssertionError:
            if time.monotonic() > until:
                raise


def together(*cases, by=refused):
    """Several of these at once, because each of them looks for a while."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [done.result() for done in [pool.submit(by, *case) for case in cases]]


class Writer:
    """`pawl log append`, fed line by line."""

    def __init__(self, log):
        self.process = subprocess.Popen([PAWL, 'log', 'append', '--log', log, '--stream', 'raw/0'], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.kill()
        self.process.communicate()

    def says(self, line):
        """Its answer to a line; empty if it refuses."""
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def takes(self, line):
        """How many such lines it takes before it refuses one: what the brokers have acknowledged, they may act on a
        little later."""
        taken = 0
        while self.says(line):
            taken += 1
        return taken

    def ends(self, code, *words):
        complaint = self.process.stderr.read()
        assert self.process.wait(PATIENCE) == code, complaint
        for word in words:
            assert word in complaint, f'no {word!r} in {complaint!r}'


def brokers_that_are_not_there_are_named(_, scene):
    together(*((FAILED, [address], *command, '--log', scene.url('timeout-ms=1000', address=address))
               for address in ('127.0.0.1:1', 'nowhere.invalid:9092')
               for command in (('log', 'read', '--stream', 'raw/0'), ('verify',), ('cluster', 'init'), ('cluster', 'check'))))
    refused(FAILED, ['there is no topic', 'pawl cluster init'], 'cluster', 'check', '--log', scene.url())
    refused(FAILED, ['there is no topic', scene.topic], 'log', 'append', '--log', scene.url(), '--stream', 'raw/0',
            input='line\n')


def a_topic_that_is_missing_is_named_and_not_taken_for_an_empty_stream(_, scene):
    read, verify = ('log', 'read', '--stream', 'raw/0', '--log', scene.url()), ('verify', '--log', scene.url())
    together((FAILED, ['there is no topic', scene.topic, 'pawl cluster init'], *read),
             (FAILED, ['there is no topic', scene.topic], *read, '--follow'),
             (FAILED, ['there is no topic', scene.name], *verify))
    scene.init()
    assert scene.append('one') == ['1']
    assert run(PAWL, 'log', 'read', '--stream', 'oplog/0/7.2', '--log', scene.url()) == ''  # no lane has claimed it
    refused(FAILED, [f'{scene.topic} has no partition 5'], 'log', 'read', '--stream', 'raw/5', '--log', scene.url())
    for gone in ('group0', 'plog', 'raw'):
        scene.client('delete', topic=f'{scene.name}.{gone}')
        refused_in_time(FAILED, [f'there is no topic {scene.name}.{gone}'], *verify)
        scene.init()
    scene.client('delete')
    refused_in_time(FAILED, [f'there is no topic {scene.topic}'], *read)  # before somebody follows what is still there
    together((FAILED, [f'there is no topic {scene.topic}'], *read), (FAILED, ['there is no topic'], *read, '--follow'),
             by=refused_in_time)


def a_clock_two_hours_ahead_does_no_harm_to_a_topic_of_today_and_is_named_by_an_old_one(_, scene):
    scene.init()
    ahead = {**os.environ, 'LD_PRELOAD': CLOCK_AHEAD}
    append = ('log', 'append', '--stream', 'raw/0', '--log', scene.url())
    assert run(PAWL, *append, input='one\n', env=ahead) == '1'
    scene.alter('message.timestamp.type', 'CreateTime')
    words = [f'topic {scene.topic}, partition 0', 'the brokers refused the claim', 'Invalid timestamp', 'clock']
    until = time.monotonic() + PATIENCE
    while subprocess.run((PAWL,) + append, env=ahead, input='', text=True, check=False).returncode == 0:
        assert time.monotonic() < until
    refused(FAILED, words, *append, input='two\n', env=ahead)
    assert scene.append('two') == ['2']


def a_password_that_is_wrong_is_refused_and_a_right_one_is_not(folder, scene):
    for password in ('right', 'wrong'):
        path = os.path.join(folder, password)
        with open(path, 'w', encoding='ascii') as file:
            file.write('# who we are\nsecurity.protocol = SASL_PLAINTEXT\nsasl.mechanisms=PLAIN\n'
                       f'sasl.username=pawl\nsasl.password={password}\nacks=0\n')
    right = scene.url('config=' + os.path.join(folder, 'right'), address=scene.brokers.secure)
    wrong = scene.url('config=' + os.path.join(folder, 'wrong'), 'timeout-ms=60000', address=scene.brokers.secure)
    run(PAWL, 'cluster', 'init', '--log', right)
    assert run(PAWL, 'log', 'append', '--log', right, '--stream', 'raw/0', input='a\nb\n') == '1\n2'
    assert run(PAWL, 'log', 'read', '--log', right, '--stream', 'raw/0') == '1\ta\n2\tb'
    for done in together(*((FAILED, ['uthentication'], *command, '--json', '--log', wrong)
                           for command in (('log', 'read', '--stream', 'raw/0'), ('cluster', 'check'), ('verify',)))):
        assert 'PAWL_EACCES' in done.stderr, done.stderr


def a_topic_with_too_few_replicas_or_weak_settings_is_refused_by_name(_, scene):
    scene.init()
    assert scene.append('first') == ['1']
    three = scene.url().replace('replication=1', 'replication=3')
    for command in (('cluster', 'check'), ('log', 'append', '--stream', 'raw/0')):
        refused(FAILED, [scene.name, 'replicas', 'at least 3'], *command, '--log', three, input='line\n')
    for name, value in (('retention.ms', '60000'), ('cleanup.policy', 'compact'), ('flush.messages', '1000')):
        scene.alter(name, value)
        words = [scene.topic, f'{name}={value}']
        refused_in_time(FAILED, words, 'cluster', 'check', '--log', scene.url())
        refused(FAILED, words, 'log', 'append', '--stream', 'raw/0', '--log', scene.url(), input='line\n')
    assert scene.read() == ['1\tfirst']


def what_is_not_pawls_stops_the_stream_and_is_named(_, scene):
    scene.init()
    assert scene.append('one', 'two') == ['1', '2']
    assert scene.client('produce', 'hello') == '3'  # behind a claim and two entries
    place = [f'topic {scene.topic}, partition 0, offset 3', 'not written by Pawl']
    refused(CORRUPT, place, 'log', 'append', '--log', scene.url(), '--stream', 'raw/0', input='three\n')
    done = refused(CORRUPT, place, 'log', 'read', '--log', scene.url(), '--stream', 'raw/0')
    assert done.stdout == '1\tone\n2\ttwo\n', 'what comes before it is read'
    refused(CORRUPT, place, 'verify', '--log', scene.url())


def a_record_that_is_not_pawls_is_skipped_by_decision_and_everybody_agrees(_, scene):
    scene.init()
    assert scene.append('one', 'two') == ['1', '2']
    skip = ('cluster', 'skip', '--log', scene.url(), '--stream', 'raw/0')
    why = ('--who', 'ada', '--reason', 'a test of another program')
    with Writer(scene.url('timeout-ms=5000')) as zombie:
        assert zombie.says('three') == '3'
        assert scene.client('produce', 'hello') == '5'  # two claims and three entries lie before it
        assert zombie.says('four') == ''
        zombie.ends(CORRUPT, f'topic {scene.topic}, partition 0, offset 5', 'not written by Pawl')
    refused(FAILED, ['offset 2', 'sound record of Pawl'], *skip, '--at', '2', *why)
    refused(FAILED, ['offset 99', 'no such record'], *skip, '--at', '99', *why)
    for wrong in (('--at', '5'), ('--at', 'x') + why, ('--at', '5', '--reason', 'x' * 256)):
        refused(USAGE, [], *skip, *wrong)
    refused(USAGE, [], *skip[:-1], 'nowhere/0', '--at', '5', *why)
    refused(CORRUPT, ['offset 5'], 'verify', '--log', scene.url())
    assert 'is skipped' in run(PAWL, *skip, '--at', '5', *why)
    refused(FAILED, ['ada has skipped it already', 'another program'], *skip, '--at', '5', *why)
    # What the writer sent behind it without knowing of it counts by the same rules as before: it is there, for all.
    lines = scene.read()
    assert lines == ['1\tone', '2\ttwo', '3\tthree', '4\tfour'], lines
    assert scene.append('five') == ['5']
    told = run(PAWL, 'verify', '--log', scene.url())
    assert 'is sound' in told and 'skipped: raw/0, Kafka offset 5, by ada at 20' in told, told
    assert 'another program' in told
    assert '1 record is skipped' in run(PAWL, 'cluster', 'check', '--log', scene.url())
    # A damaged one, and a second one behind it: each is decided for itself.
    assert scene.client('spoil', '1') == '9'
    assert scene.client('produce', 'again') == '10'
    refused(CORRUPT, ['offset 9'], *skip, '--at', '10', *why)
    assert '"damaged":true' in run(PAWL, *skip, '--at', '9', *why, '--json')
    refused(CORRUPT, ['offset 10'], 'verify', '--log', scene.url())
    run(PAWL, *skip, '--at', '10', *why)
    assert scene.append('six') == ['6']
    assert len(scene.read()) == 6
    # Without the decisions the stream stops again.
    scene.client('delete', topic=f'{scene.name}.skips')
    refused_in_time(CORRUPT, ['offset 5'], 'verify', '--log', scene.url())


def every_verb_of_a_cluster_ends_with_the_code_that_the_manual_names(folder, scene):
    folder, other = os.path.join(folder, 'dir'), os.path.join(folder, 'other')
    run(PAWL, 'init', '--dir', folder, '--partitions', '1')
    skip = ('skip', '--stream', 'raw/0', '--at', '1', '--reason', 'x')
    verbs = (('init',), ('check',), ('import', folder), ('export', other), skip)
    nowhere = scene.url('timeout-ms=1000', address='127.0.0.1:1')
    for verb in verbs:
        refused(USAGE, ['--log'], 'cluster', *verb)
        refused(USAGE, ['kafka://'], 'cluster', *verb, '--log', '/tmp/dir')
        refused(USAGE, [], 'cluster', *verb, '--log', nowhere, '--url', 'http://127.0.0.1:1')
        refused(USAGE, [], 'cluster', *verb, '--log', nowhere, '--nonsense')
    missing = [(FAILED, ['127.0.0.1:1'], 'cluster', *verb, '--log', nowhere) for verb in verbs]
    together(*missing)
    for done in together(*((*words, '--json') for words in missing)):
        assert json.loads(done.stderr)['error']['code'] == 'PAWL_EIO', done.stderr
    for verb in (('import',), ('export',), ('export', other, '--shards', '65')):
        refused(USAGE, [], 'cluster', *verb, '--log', nowhere)
    scene.init()
    where = ('--log', scene.url())
    assert json.loads(run(PAWL, 'cluster', 'check', *where, '--json'))['skipped'] == 0
    with open(os.path.join(folder, 'lock'), 'w', encoding='ascii') as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        refused(LOCKED, [folder], 'cluster', 'import', folder, *where)
    refused(FAILED, ['nowhere'], 'cluster', 'import', '/nowhere', *where)
    assert json.loads(run(PAWL, 'cluster', 'import', folder, *where, '--json'))['ended_before'] is False
    refused(FAILED, ['not empty'], 'cluster', 'export', folder, *where)
    assert json.loads(run(PAWL, 'cluster', 'export', other, *where, '--json'))['entries'] == 1
    scene.client('produce', 'hello')
    refused(CORRUPT, ['not written by Pawl'], 'cluster', 'export', other + '2', *where)
    refused(FAILED, ['not empty'], 'cluster', 'import', other, *where)


def a_record_with_a_flipped_bit_stops_the_stream_and_is_named(_, scene):
    scene.init()
    assert scene.append('one') == ['1']
    assert scene.client('spoil', '1') == '2'
    place = [f'topic {scene.topic}, partition 0, offset 2', 'checksum']
    refused(CORRUPT, place, 'log', 'append', '--log', scene.url(), '--stream', 'raw/0', input='two\n')
    refused(CORRUPT, place, 'log', 'read', '--log', scene.url(), '--stream', 'raw/0')
    refused(CORRUPT, place, 'verify', '--json', '--log', scene.url())


def a_topic_that_is_deleted_under_a_writer_is_missed(_, scene):
    scene.init()
    with Writer(scene.url('timeout-ms=5000')) as writer:
        assert writer.says('one') == '1'
        scene.client('delete')
        taken = writer.takes('more')
        writer.ends(FAILED, f'line {2 + taken}', f'topic {scene.topic}, partition 0', 'it may be there or not')
    refused_in_time(FAILED, ['there is no topic', scene.topic], 'log', 'append', '--log', scene.url(), '--stream', 'raw/0',
                    input='line\n')


def a_topic_that_is_deleted_and_made_again_is_not_taken_for_the_old_one(_, scene):
    scene.init()
    with Writer(scene.url('timeout-ms=120000')) as writer:
        assert writer.says('one') == '1'
        short = scene.url('timeout-ms=5000')  # so long a position behind the end is asked for
        with subprocess.Popen([PAWL, 'log', 'read', '--log', short, '--stream', 'raw/0', '--follow'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
            assert reader.stdout.readline() == '1\tone\n'
            scene.client('delete')
            scene.init()
            taken = writer.takes('more')  # a new topic knows nothing of the claim
            writer.ends(FAILED, f'line {2 + taken}', f'topic {scene.topic}, partition 0, offset 0', 'deleted')
            complaint = reader.stderr.read()
        assert reader.returncode == CORRUPT and f'topic {scene.topic}, partition 0' in complaint, complaint
    # The new topic may hold what the old writer sent to it; none of it counts.
    assert scene.append('anew') == ['1']
    assert scene.read() == ['1\tanew']


def an_event_that_the_topic_has_no_room_for_is_not_said_to_be_written(_, scene):
    scene.init()
    with Writer(scene.url('timeout-ms=120000')) as writer:
        assert writer.says('x' * 100000) == '1'
        scene.alter('max.message.bytes', '1000')
        taken = writer.takes('x' * 100000)
        writer.ends(FAILED, f'line {2 + taken}', f'topic {scene.topic}, partition 0', 'refused it', 'too large')
    refused(FAILED, ['max.message.bytes=1000', 'at least'], 'log', 'append', '--log', scene.url(), '--stream', 'raw/0',
            input='line\n')
    assert len(scene.read()) == 1 + taken


def cases(brokers, word=''):
    def bind(case):
        def body(folder):
            case(folder, Scene(brokers, case.__name__.split('_is_')[0][:60].replace('_', '-')))
        body.__name__ = case.__name__
        return body

    every = [brokers_that_are_not_there_are_named,
             a_topic_that_is_missing_is_named_and_not_taken_for_an_empty_stream,
             a_clock_two_hours_ahead_does_no_harm_to_a_topic_of_today_and_is_named_by_an_old_one,
             a_password_that_is_wrong_is_refused_and_a_right_one_is_not,
             a_topic_with_too_few_replicas_or_weak_settings_is_refused_by_name,
             what_is_not_pawls_stops_the_stream_and_is_named,
             a_record_that_is_not_pawls_is_skipped_by_decision_and_everybody_agrees,
             every_verb_of_a_cluster_ends_with_the_code_that_the_manual_names, a_record_with_a_flipped_bit_stops_the_stream_and_is_named,
             a_topic_that_is_deleted_under_a_writer_is_missed,
             a_topic_that_is_deleted_and_made_again_is_not_taken_for_the_old_one,
             an_event_that_the_topic_has_no_room_for_is_not_said_to_be_written]
    return [bind(case) for case in every if word in case.__name__]


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as home, Brokers(1, home) as one:
        main(cases(one, *sys.argv[1:]))
