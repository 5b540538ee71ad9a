"""A node on Kafka, as its users have it: the engine's API, and `pawl serve`, refused, taken over and killed."""
import json
import os
import re
import subprocess
import sys
import time

from brokers import HERE, Brokers, children, main, run
import unit as service  # the folder of tap is on the path

PAWL, TEST_NODE, ADDRESS = os.environ['PAWL'], os.environ['TEST_NODE'], os.environ['PAWL_KAFKA']
FAILED, CORRUPT, OWNED = 1, 3, 4
PATIENCE = 300  # seconds; a machine that others keep busy is slow, not broken
URL = f'kafka://{ADDRESS}/served'
SCHEMA = {'schema': 1, 'package': 't', 'workspaces': {'tenant': {}},
          'types': {'Item': {'kind': 'CDoc', 'fields': {'who': {'type': 'string'}}}},
          'commands': {'Add': {'records': ['Item']}}}


class Served:
    """A directory that is served; it has said that it is ready."""

    def __init__(self, folder, *options):
        self.dir = folder
        self.process = subprocess.Popen([PAWL, 'serve', '--dir', folder, '--listen', '', *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if 'is served at' not in line:
            raise AssertionError(f'{options}: {line!r}, {self.end()}')

    def end(self):
        """(exit code, stderr) of a process that ends by itself."""
        error = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, error

    def pawl(self, *words, **how):
        return run(PAWL, *words, '--dir', self.dir, **how)

    def add(self, who):
        command = {'command': 't.Add', 'records': [{'id': 1, 'type': 't.Item', 'fields': {'who': who}}]}
        return json.loads(self.pawl('command', '7', input=json.dumps(command)))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=PATIENCE)


def made(folder, *options):
    """The same on topics that were just made: a broker may not have heard of them yet."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return Served(folder, *options)
        except AssertionError as why:
            if 'there is no topic' not in str(why) or time.monotonic() > until:
                raise


def refused(code, words, *command):
    done = subprocess.run((PAWL,) + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=PATIENCE)
    assert done.returncode == code, f'{command}: {done.returncode}, {done.stderr}'
    for word in words:
        assert word in done.stderr, f'{command}: no {word!r} in {done.stderr!r}'


def the_engine_works_on_a_log_that_nodes_share(_):
    done = subprocess.run([TEST_NODE], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=900)
    sys.stdout.write(''.join('# ' + line + '\n' for line in done.stdout.splitlines()))
    assert done.returncode == 0, done.stdout


def a_server_is_refused_taken_over_killed_and_comes_back(folder):
    first, second = os.path.join(folder, 'first'), os.path.join(folder, 'second')
    schema = os.path.join(folder, 'schema.json')
    with open(schema, 'w', encoding='ascii') as file:
        json.dump(SCHEMA, file)
    refused(FAILED, ['served', 'cluster init'], 'serve', '--dir', first, '--log', URL, '--listen', '')
    assert not os.path.exists(first)
    run(PAWL, 'cluster', 'init', '--log', URL, '--partitions', '2')
    with made(first, '--log', URL) as a:
        a.pawl('schema', 'apply', schema)
        a.pawl('ws', 'create', '7', 't.tenant')
        assert a.add('ada')['offset'] > 0
        assert first in a.pawl('system', 'nodes')
        refused(OWNED, [first, '--take-over'], 'serve', '--dir', second, '--log', URL, '--listen', '')
        a.add('bob')
        with Served(second, '--log', URL, '--take-over') as b:
            code, error = a.end()
            assert code == OWNED and second in error and 'has taken over' in error, (code, error)
            refused(OWNED, [second], 'serve', '--dir', first, '--listen', '')
            assert b.pawl('record', 'list', '7', '--type', 't.Item').count('"who"') == 2
            b.add('cyd')
            b.process.kill()
            b.end()
    with Served(second) as b:
        assert b.pawl('record', 'list', '7', '--type', 't.Item').count('"who"') == 3
        assert 'is sound' in b.pawl('verify', '--audit')
        b.pawl('backup', '--to', os.path.join(folder, 'saved'))
        assert b.pawl('log', 'read', '--stream', 'group0', errors='replace')
    refused(FAILED, ['kafka://', 'verify --log'], 'doctor', '--dir', second)
    run(PAWL, 'restore', '--from', os.path.join(folder, 'saved'), '--dir', os.path.join(folder, 'third'))
    with Served(os.path.join(folder, 'third'), '--take-over') as c:
        assert c.pawl('record', 'list', '7', '--type', 't.Item').count('"who"') == 3


def kept(folder, word):
    """What DIR/node says behind this word."""
    with open(os.path.join(folder, 'node'), encoding='ascii') as file:
        return dict(line.split(' ', 1) for line in file.read().splitlines())[word]


def forget_kafka(folder):
    """DIR/node as it was before the ID of Kafka's cluster was kept."""
    path = os.path.join(folder, 'node')
    with open(path, encoding='ascii') as file:
        lines = [line for line in file if not line.startswith('kafka ')]
    with open(path, 'w', encoding='ascii') as file:
        file.write(''.join(lines).replace('pawl 3', 'pawl 2'))


def a_directory_is_not_opened_on_another_kafka_cluster_that_has_a_log_of_the_same_name(folder):
    home, real = os.path.join(folder, 'home'), f'kafka://{ADDRESS}/twice-{os.getpid()}'
    schema = os.path.join(folder, 'schema.json')
    with open(schema, 'w', encoding='ascii') as file:
        json.dump(SCHEMA, file)
    run(PAWL, 'cluster', 'init', '--log', real, '--partitions', '1')
    with made(home, '--log', real) as node:  # it notes nowhere how far it has read: no other check keeps it away
        node.pawl('schema', 'apply', schema)
        node.pawl('ws', 'create', '7', 't.tenant')
        node.process.kill()
        node.end()
    with Brokers(1, folder) as trial:
        other = f'kafka://{trial.address}/twice-{os.getpid()}?replication=1'
        run(PAWL, 'cluster', 'init', '--log', other, '--partitions', '1')
        with open(os.path.join(trial.folder, '1', 'data', 'meta.properties'), encoding='ascii') as file:
            trial_id = dict(line.strip().split('=', 1) for line in file if '=' in line)['cluster.id']
        refused(FAILED, [kept(home, 'kafka'), trial_id], 'serve', '--dir', home, '--log', other, '--listen', '')
        assert run(PAWL, 'log', 'read', '--log', other, '--stream', 'group0', errors='replace') == '', 'it wrote there'
        forget_kafka(home)  # it is told by its events then, and goes on knowing nothing of this cluster
        refused(CORRUPT, ['the log ends at 0'], 'serve', '--dir', home, '--log', other, '--listen', '')
    assert kept(home, 'log') == real
    with Served(home) as node:
        until = time.monotonic() + PATIENCE  # a stall of brokers that are busy is an alert, and goes by itself
        while 'alerts       none' not in node.pawl('status'):
            assert time.monotonic() < until, node.pawl('status')


def documented_take_over(folder, config):
    """The line of docs/KAFKA.md, without the user that it is run as."""
    with open(os.path.join(HERE, '..', '..', 'docs', 'KAFKA.md'), encoding='utf-8') as file:
        line = re.search(r'^runuser -u pawl -- (pawl serve .*--take-over[^#]*)', file.read(), re.MULTILINE)[1]
    return service.moved('/usr/bin/' + line, PAWL, folder, config)


def until_ready(words):
    """A server of these words that has said that it is ready, or has ended."""
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children.append(server)
    if 'is served at' not in server.stdout.readline():
        server.wait(PATIENCE)
    return server


def ended(server):
    """(exit code, stderr); it is told to end if it still runs."""
    server.terminate()
    said = server.communicate(timeout=PATIENCE)[1]
    return server.returncode, said


def the_service_is_made_of_its_settings_alone_and_taken_over_as_the_manual_says(folder):
    url, config = f'kafka://{ADDRESS}/unit-{os.getpid()}', os.path.join(folder, 'pawl.conf')
    first, second = os.path.join(folder, 'first'), os.path.join(folder, 'second')
    run(PAWL, 'cluster', 'init', '--log', url, '--partitions', '2')
    with open(config, 'w', encoding='ascii') as file:
        file.write(f'log = {url}\nlisten =\n')

    def start(data):
        *before, line = service.commands(PAWL, data, config)
        for words in before:
            run(*words)
        return until_ready(line)

    for data in (first, second):
        os.mkdir(data)  # systemd does
    for _ in range(2):  # a start, and a restart
        server = start(first)
        assert server.poll() is None, ended(server)
        assert run(PAWL, 'status', '--dir', first)
        assert ended(server)[0] == 0
    assert kept(first, 'log') == url and not os.path.exists(os.path.join(first, 'log'))
    for _ in range(2):
        code, said = ended(start(second))
        assert str(code) in service.values('RestartPreventExitStatus')[0].split() and first in said, (code, said)
    third = os.path.join(folder, 'third')
    os.mkdir(third)
    for data in (second, third):  # one that was refused, and one that has never been started
        server = until_ready(documented_take_over(data, config))
        assert server.poll() is None, ended(server)
        assert ended(server)[0] == 0
        server = start(data)
        assert server.poll() is None, ended(server)
        assert ended(server)[0] == 0


if __name__ == '__main__':
    main([the_engine_works_on_a_log_that_nodes_share, a_server_is_refused_taken_over_killed_and_comes_back,
          a_directory_is_not_opened_on_another_kafka_cluster_that_has_a_log_of_the_same_name,
          the_service_is_made_of_its_settings_alone_and_taken_over_as_the_manual_says])
