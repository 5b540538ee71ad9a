#!/usr/bin/env python3
"""tools/check runs the steps it is told to, and says so if there is no such step."""
import os
import shutil
import subprocess

import tap

# The tools that the steps run: each notes how it was called, and passes.
STAND_IN = '#!/bin/sh\necho "${0##*/} $*" >>calls\necho "1 passed, 0 failed"\n'
TOOLS = ('format', 'check-layers', 'check-calls', 'build', 'run-tests', 'lint', 'sabotage')


def check(folder, *steps, **instead):
    """(exit status, output, how the tools were called)"""
    tap.tree(folder, {f'tools/{name}': instead.get(name, STAND_IN) for name in TOOLS})
    for name in TOOLS:
        os.chmod(f'{folder}/tools/{name}', 0o755)
    shutil.copy(os.path.join(tap.ROOT, 'tools/check'), f'{folder}/tools/check')
    done = subprocess.run([f'{folder}/tools/check', *steps], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    calls = []
    if os.path.exists(f'{folder}/calls'):
        with open(f'{folder}/calls', encoding='utf-8') as file:
            calls = file.read().splitlines()
    return done.returncode, done.stdout, calls


def without_a_name_every_step_runs(folder):
    status, output, calls = check(folder)
    assert status == 0 and output.endswith('\n11 passed, 0 failed\n'), output
    for call in ('format --check', 'build gcc', 'build asan', 'lint ', 'sabotage --one-each',
                 'run-tests gcc --suite kafka --suite web --no-suite soak --logbase kafka',
                 'run-tests gcc --no-suite soak --no-suite kafka --no-suite web', 'run-tests asan --no-suite plain --no-suite soak',
                 'run-tests tsan --suite threads --no-suite soak'):
        assert call in calls, f'{call} not in {calls}'


def quick_needs_no_brokers_no_sanitizers_and_nothing_that_takes_long(folder):
    status, output, calls = check(folder, 'quick')
    assert status == 0 and output.endswith('\n5 passed, 0 failed\n'), output
    assert sorted(calls[:3]) == ['check-calls ', 'check-layers ', 'format --check'], calls
    assert calls[3:] == ['build gcc', 'run-tests gcc --no-suite soak --no-suite kafka --no-suite slow'], calls


def only_what_is_named_runs(folder):
    status, output, calls = check(folder, 'layers', 'asan-test')
    assert status == 0 and output.endswith('\n2 passed, 0 failed\n'), output
    assert sorted(calls) == ['check-layers ', 'run-tests asan --no-suite plain --no-suite soak'], calls


def a_name_that_is_no_step_runs_nothing_and_the_steps_are_listed(folder):
    for steps in (['gcc'], ['layers', 'quik'], ['']):
        status, output, calls = check(folder, *steps)
        assert status == 2 and not calls, (status, calls)
        assert f"there is no step '{steps[-1]}'; there are: quick format layers" in output, output


def a_step_that_fails_is_counted_and_what_it_said_is_shown(folder):
    failing = '#!/bin/sh\necho "--- one: FAIL"\necho "the reason"\necho "3 passed, 2 failed"\nexit 1\n'
    status, output, _ = check(folder, 'layers', 'gcc-test', **{'run-tests': failing})
    assert status == 1 and output.endswith('\n4 passed, 2 failed\n') and '| the reason\n' in output, output


# Each says that it is there, and waits until both are; on a machine that is slow, for a while.
MEETING = ('#!/bin/sh\ntouch "there-$1"\ni=0\nuntil [ -f there-gcc ] && [ -f there---one-each ]; do\n'
           '    i=$((i + 1))\n    [ $i -lt 6000 ] || exit 1\n    sleep 0.01\ndone\necho "1 passed, 0 failed"\n')


def two_steps_run_at_a_time_if_neither_needs_the_other(folder):
    status, output, _ = check(folder, 'gcc-test', 'sabotage', **{'run-tests': MEETING, 'sabotage': MEETING})
    assert status == 0 and output.endswith('\n2 passed, 0 failed\n'), output


def a_step_begins_when_those_that_it_needs_have_ended(folder):
    noting = '#!/bin/sh\necho "begin $1" >>calls\nsleep 0.2\necho "end $1" >>calls\n'
    _, _, calls = check(folder, 'asan-test', 'gcc-build', 'asan-build', **{'build': noting, 'run-tests': noting})
    assert calls == ['begin gcc', 'end gcc', 'begin asan', 'end asan', 'begin asan', 'end asan'], calls


def whoever_ends_it_ends_its_steps_too(folder):
    lasting = '#!/bin/sh\necho $$ >pid\nexec sleep 600\n'
    tap.tree(folder, {'tools/check-layers': lasting})
    os.chmod(f'{folder}/tools/check-layers', 0o755)
    shutil.copy(os.path.join(tap.ROOT, 'tools/check'), f'{folder}/tools/check')
    with subprocess.Popen([f'{folder}/tools/check', 'layers'], stdout=subprocess.PIPE) as process:
        while not os.path.exists(f'{folder}/pid') or not os.path.getsize(f'{folder}/pid'):
            assert process.poll() is None
        process.terminate()
        assert process.wait() == 130
    with open(f'{folder}/pid', encoding='ascii') as file:
        assert not os.path.exists(f'/proc/{int(file.read())}')


def only_gcc_tests_wait_for_the_disk(folder):
    noting = ('#!/bin/sh\necho "$1 ${TMPDIR-disk} $(stat -c %a "${TMPDIR-.}")" >>places\nmkdir -p "${TMPDIR-.}/left"\n'
              'echo "1 passed, 0 failed"\n')
    usual = os.environ.pop('TMPDIR', None)
    try:
        assert check(folder, 'gcc-test', 'asan-test', 'sabotage', **{'run-tests': noting, 'sabotage': noting})[0] == 0
    finally:
        if usual is not None:
            os.environ['TMPDIR'] = usual
    with open(f'{folder}/places', encoding='utf-8') as file:
        lines = [line.split() for line in file]
    places = {step: place for step, place, _ in lines}
    assert places['gcc'] == 'disk', places
    assert [mode for step, _, mode in lines if step == 'asan'] == ['1777'], 'other users must see into it'
    assert places['asan'].startswith('/dev/shm/pawl-check-') and places['--one-each'] == places['asan'], places
    assert not os.path.exists(places['asan']), 'what it kept in memory is still there'


tap.main([
    without_a_name_every_step_runs,
    quick_needs_no_brokers_no_sanitizers_and_nothing_that_takes_long,
    only_what_is_named_runs,
    a_name_that_is_no_step_runs_nothing_and_the_steps_are_listed,
    a_step_that_fails_is_counted_and_what_it_said_is_shown,
    two_steps_run_at_a_time_if_neither_needs_the_other,
    a_step_begins_when_those_that_it_needs_have_ended,
    whoever_ends_it_ends_its_steps_too,
    only_gcc_tests_wait_for_the_disk,
])
