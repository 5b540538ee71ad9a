"""A node on Kafka, as its users have it: the engine's API, and `pawl serve`, refused, taken over and killed."""
import json
import os
import subprocess
import sys

from brokers import main, run

PAWL, TEST_NODE, ADDRESS = os.environ['PAWL'], os.environ['TEST_NODE'], os.environ['PAWL_KAFKA']
FAILED, LOCKED = 1, 4
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
    with Served(first, '--log', URL) as a:
        a.pawl('schema', 'apply', schema)
        a.pawl('ws', 'create', '7', 't.tenant')
        assert a.add('ada')['offset'] > 0
        assert first in a.pawl('system', 'nodes')
        refused(LOCKED, [first, '--take-over'], 'serve', '--dir', second, '--log', URL, '--listen', '')
        a.add('bob')
        with Served(second, '--log', URL, '--take-over') as b:
            code, error = a.end()
            assert code == LOCKED and second in error and 'has taken over' in error, (code, error)
            refused(LOCKED, [second], 'serve', '--dir', first, '--listen', '')
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


if __name__ == '__main__':
    main([the_engine_works_on_a_log_that_nodes_share, a_server_is_refused_taken_over_killed_and_comes_back])
