"""The brokers that other tests stand on: they work, come back with what they had, and never stay behind."""
import os
import signal
import subprocess
import time

from brokers import CLUSTER, Brokers, main, run

CLIENT = os.environ['KAFKA_CLIENT']


def exists(pid):
    return os.path.exists(f'/proc/{pid}')


def wait_for(condition, what):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def a_record_is_read_as_it_was_written_and_outlives_a_kill(folder):
    with Brokers(1, folder) as brokers:
        def client(*words):
            return run(CLIENT, brokers.address, *words)

        client('create', 'topic', '1')
        assert client('produce', 'topic', 'hello') == '0'
        assert client('consume', 'topic', '0') == 'hello'

        before = brokers.pids()
        brokers.tell('kill', 1)
        assert not exists(before[1]) and not brokers.pids()
        brokers.tell('restart', 'all')
        assert brokers.pids()[1] != before[1]
        assert client('produce', 'topic', 'again') == '1'
        assert client('consume', 'topic', '0') == 'hello'

        brokers.tell('pause', 1)
        pid = brokers.pids()[1]
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            assert file.read().split()[2] == 'T'
        brokers.tell('resume', 1)
        assert client('consume', 'topic', '1') == 'again'

        brokers.tell('pause', 1)
    assert not exists(pid) and not os.path.exists(brokers.folder)


def brokers_end_with_a_program_that_was_killed(folder):
    program = subprocess.Popen([CLUSTER, 'run', '1', 'sh', '-c', 'echo $PAWL_KAFKA_DIR; echo $PAWL_KAFKA; cat'],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, 'TMPDIR': folder})
    data = program.stdout.readline().strip()
    assert data.startswith(folder) and program.stdout.readline().startswith('127.0.0.1:')
    pid = int(run(CLUSTER, 'status', data).split()[1])
    assert exists(pid)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    wait_for(lambda: not exists(pid) and not os.path.exists(data), 'they are still there')


def a_folder_that_holds_something_is_left_alone(folder):
    with open(os.path.join(folder, 'precious'), 'w', encoding='ascii'):
        pass
    done = subprocess.run([CLUSTER, 'start', '1', folder], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and 'not empty' in done.stderr
    assert os.listdir(folder) == ['precious']


def a_cluster_that_does_not_run_says_so(folder):
    for command in ('stop', 'status'):
        done = subprocess.run([CLUSTER, command, folder], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 1 and done.stderr.startswith('cluster ' + command), done.stderr


if __name__ == '__main__':
    main([a_record_is_read_as_it_was_written_and_outlives_a_kill, brokers_end_with_a_program_that_was_killed,
          a_folder_that_holds_something_is_left_alone, a_cluster_that_does_not_run_says_so])
