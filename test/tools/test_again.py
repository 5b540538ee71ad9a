#!/usr/bin/env python3
"""tools/again runs steps again and again, counts what failed, and leaves no load behind."""
import os
import shutil
import signal
import subprocess
import time

import tap

BUILD = '#!/bin/sh\necho "$1" >>built\n'

# A tools/check whose gcc-test fails in the rounds that are named in the file "bad".
CHECK = '''#!/bin/sh
echo >>rounds
round=$(wc -l <rounds)
mkdir -p build/check
echo "2 passed, 0 failed" >build/check/asan-test.log
echo "2 passed, 0 failed" >build/check/gcc-test.log
status=0
if grep -qx "$round" bad; then
    printf '%s\\n' '--- one: FAIL, exit status 1' 'ok 1 - good' 'not ok 2 - it_breaks' 'not ok 3 - old # TODO later' \\
        '--- two: TIMEOUT, exit status -15' 'ok 1 - good' '3 passed, 2 failed' >build/check/gcc-test.log
    status=1
fi
tail -n 1 build/check/gcc-test.log
exit $status
'''

# One that notes what else its parent has started, and waits until it is let go.
WAITING_CHECK = '''#!/bin/sh
for child in $(cat "/proc/$PPID/task/$PPID/children"); do
    [ "$child" = $$ ] || echo "$child"
done >load.new
mv load.new load
read -r _ <gate
echo "1 passed, 0 failed"
'''


def prepare(folder, check, bad=()):
    tap.tree(folder, {'tools/build': BUILD, 'tools/check': check, 'bad': ''.join(f'{n}\n' for n in bad)})
    shutil.copy(os.path.join(tap.ROOT, 'tools/again'), f'{folder}/tools/again')
    for name in ('build', 'check', 'again'):
        os.chmod(f'{folder}/tools/{name}', 0o755)


def again(folder, *arguments):
    done = subprocess.run([f'{folder}/tools/again', *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.returncode, done.stdout


def text(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def until(holds):
    deadline = time.monotonic() + 100
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def what_is_tested_is_built_once_and_run_so_many_times(folder):
    prepare(folder, CHECK)
    status, output = again(folder, '3', 'gcc-test', 'kafka-test', 'asan-test')
    assert status == 0 and output.endswith('\n6 passed, 0 failed\n'), output
    assert text(f'{folder}/built') == 'asan\ngcc\n' and text(f'{folder}/rounds') == '\n' * 3
    assert os.listdir(f'{folder}/build/again') == []


def the_table_says_which_test_failed_how_often(folder):
    prepare(folder, CHECK, bad=(2, 3))
    status, output = again(folder, '4', 'gcc-test', 'asan-test')
    assert status == 1, output
    assert output.endswith('\nfailed 2 of 4: gcc-test one it_breaks\n'
                           'failed 2 of 4: gcc-test two TIMEOUT, exit status -15\n'
                           '10 passed, 4 failed\n'), output
    assert sorted(os.listdir(f'{folder}/build/again')) == ['2', '3']
    assert 'it_breaks' in text(f'{folder}/build/again/3/gcc-test.log')


def a_check_that_dies_without_a_word_has_failed(folder):
    prepare(folder, '#!/bin/sh\nkill -KILL $$\n')
    status, output = again(folder, '2', 'gcc-test')
    assert status == 1 and output.endswith('\n0 passed, 2 failed\n'), output


def what_is_not_a_step_or_a_number_is_refused(folder):
    prepare(folder, CHECK)
    for arguments in (('2', 'lint'), ('0',), ('many',), ()):
        status, output = again(folder, *arguments)
        assert status == 2 and 'usage: tools/again' in output, output
    assert not os.path.exists(f'{folder}/rounds')


def runs(pid):
    """Whether it still runs. It may have ended without being waited for."""
    try:
        return text(f'/proc/{pid}/stat').rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def ended_by(how):
    def case(folder):
        prepare(folder, WAITING_CHECK)
        os.mkfifo(f'{folder}/gate')
        gate = os.open(f'{folder}/gate', os.O_RDWR)  # so that nobody waits for somebody to open it
        with subprocess.Popen([f'{folder}/tools/again', '--load', '1', 'gcc-test'], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            until(lambda: os.path.exists(f'{folder}/load'))
            load = text(f'{folder}/load').split()
            assert len(load) == 2 * os.cpu_count(), load
            if how:
                process.send_signal(how)
                process.wait()
            os.write(gate, b'\n')
            process.communicate()
        os.close(gate)
        until(lambda: not any(runs(pid) for pid in load))
        assert (process.returncode == 0) == (how is None), process.returncode
        assert os.listdir(f'{folder}/build/again') == []
    return case


def the_load_ends_with_the_last_round(folder):
    ended_by(None)(folder)


def the_load_ends_when_it_is_told_to_end(folder):
    ended_by(signal.SIGTERM)(folder)


def the_load_ends_when_it_is_killed(folder):
    ended_by(signal.SIGKILL)(folder)


tap.main([
    what_is_tested_is_built_once_and_run_so_many_times,
    the_table_says_which_test_failed_how_often,
    a_check_that_dies_without_a_word_has_failed,
    what_is_not_a_step_or_a_number_is_refused,
    the_load_ends_with_the_last_round,
    the_load_ends_when_it_is_told_to_end,
    the_load_ends_when_it_is_killed,
])
