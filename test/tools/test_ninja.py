#!/usr/bin/env python3
"""tools/ninja runs one ninja at a time in a folder, and so do the tools that build."""
import os
import shutil
import subprocess

import tap

# Each target fails if another is being made.
BUILD = '''
rule alone
  command = mkdir busy && sleep 0.3 && rmdir busy && touch $out
build one: alone
build two: alone
'''
MESON = '''
project('small')
make = find_program('make.sh')
test('one', find_program('true'), depends: custom_target(output: 'one', command: [make, '@OUTPUT@']))
test('two', find_program('true'), depends: custom_target(output: 'two', command: [make, '@OUTPUT@']))
'''
MAKE = '#!/bin/sh\nmkdir busy && sleep 0.3 && rmdir busy && touch "$1"\n'


def run_both(folder, first, second):
    """The output of two commands that run at the same time; both must pass."""
    how = {'cwd': folder, 'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT, 'text': True}
    tap.children.extend(subprocess.Popen(command, **how) for command in (first, second))
    said = [process.communicate()[0] for process in tap.children]
    assert all(process.returncode == 0 for process in tap.children), '\n'.join(said)
    return said


def plant(folder, *tools):
    tap.tree(folder, {'meson.build': MESON, 'make.sh': MAKE})
    os.chmod(f'{folder}/make.sh', 0o755)
    os.mkdir(f'{folder}/tools')
    for name in tools:
        shutil.copy(f'{tap.ROOT}/tools/{name}', f'{folder}/tools')


def one_waits_for_the_other(folder):
    tap.tree(folder, {'small/build.ninja': BUILD})
    ninja = f'{tap.ROOT}/tools/ninja'
    run_both(folder, [ninja, '-C', 'small', 'one'], [ninja, '-C', f'{folder}/small', 'two'])


def it_says_its_version_as_ninja_does(_):
    said = subprocess.run(['ninja', '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert tap.tool('ninja', '--version') == (0, said)


def tests_that_begin_together_and_a_build_wait_for_each_other(folder):
    plant(folder, 'ninja', 'run-tests', 'build', 'configure')
    subprocess.run(['tools/configure', 'gcc'], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    first, second = run_both(folder, ['tools/run-tests', 'gcc', 'one', '--logbase', 'one'],
                             ['tools/run-tests', 'gcc', 'two', '--logbase', 'two'])
    assert first.endswith('1 passed, 0 failed\n') and second.endswith('1 passed, 0 failed\n'), first + second
    os.remove(f'{folder}/build/gcc/one')
    os.remove(f'{folder}/build/gcc/two')
    tap.children.clear()
    run_both(folder, ['tools/build', 'gcc', 'one'], ['tools/run-tests', 'gcc', 'two'])


tap.main([one_waits_for_the_other, it_says_its_version_as_ninja_does, tests_that_begin_together_and_a_build_wait_for_each_other])
