#!/usr/bin/env python3
"""tools/compare-benches builds two commits, lets their benches take turns, and leaves nothing behind."""
import glob
import os
import shutil
import subprocess
import tempfile

import tap

# A bench that notes who was run, in which order and how, and answers by what its commit says.
BENCH = '''#!/bin/sh
here=$(dirname "$0")
echo "$(cat "$here/name") $*" >>"$PAWL_TEST_ORDER"
while [ "$1" != --json ]; do shift; done
printf '{"answers": [%s]}' "$(cat "$here/answers")" >"$2"
'''
BUILD = '''#!/bin/sh
cd "$(dirname "$0")/.." && mkdir -p build/gcc/bench && cp bench/name bench/answers build/gcc/bench
grep -q THEIR_COMMIT bench/lib/report.c && ! grep -q PAWL_COMMIT bench/lib/report.c || exit 1
cp bench/program build/gcc/bench/bench_log && chmod +x build/gcc/bench/bench_log
'''


def answer(question, processor, value):
    return (f'{{"question": "{question}", "unit": "op/s", "ours": {{"median": {value}, "processor_us": {processor}, '
            '"per": "operation"}}')


def git(folder, *words):
    subprocess.run(['git', '-C', folder, '-c', 'user.name=n', '-c', 'user.email=e', *words], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def repository(folder, program=BENCH):
    """Two commits: the second takes 1.1 of the processor time, at the same speed, and asks one question more."""
    root = f'{folder}/tree'
    tap.tree(root, {'bench/log.c': '', 'bench/kafka.c': '', 'bench/name': 'old', 'bench/answers': answer('append', 10, 500),
                    'bench/program': program, 'tools/build': BUILD,
                    **{f'bench/lib/{name}': 'puts(THEIR_COMMIT);' for name in ('bench.c', 'bench.h', 'report.h', 'report.c')}})
    shutil.copy(f'{tap.ROOT}/tools/compare-benches', f'{root}/tools/compare-benches')
    os.chmod(f'{root}/tools/build', 0o755)
    git(folder, 'init', '-q', root)
    git(root, 'add', '-A')
    git(root, 'commit', '-qm', 'old')
    tap.tree(root, {'bench/name': 'new', 'bench/answers': answer('append', 11, 500) + ', ' + answer('read', 1, 2)})
    git(root, 'commit', '-qam', 'new')
    tap.tree(root, {'bench/lib/report.c': 'puts(PAWL_COMMIT); /* of this tree */'})
    return root


def compare(folder, root, *words):
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run([f'{root}/tools/compare-benches', *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False,
                              env={**os.environ, 'TMPDIR': temporary, 'PAWL_TEST_ORDER': f'{folder}/order'})
        assert os.listdir(temporary) == [], os.listdir(temporary)
    assert not glob.glob(f'{root}/.git/worktrees/*')
    return done.returncode, done.stdout


def both_take_turns_and_the_table_has_ratios(folder):
    root = repository(folder)
    status, output = compare(folder, root, 'HEAD~1', '3')
    assert status == 0, output
    with open(f'{folder}/order', encoding='utf-8') as text:
        order = text.read().splitlines()
    assert [line.split()[0] for line in order] == ['old', 'new', 'new', 'old', 'old', 'new'], order
    row = [word.strip() for word in next(line for line in output.splitlines() if line.startswith('log')).split('|')]
    assert row == ['log', 'append', '10 µs/op', '11', '1.100', '1.10 – 1.10', '500 op/s', '500', '1.000', '1.00 – 1.00'], row
    assert "only one of the two commits has 'read' of bench log" in output
    assert output.endswith('\nprocessor time, new / base: 1.100 on average\nmore than 1.05: log: append: 1.100\n'), output


def options_and_a_choice_of_questions_go_to_the_bench(folder):
    root = repository(folder)
    status, output = compare(folder, root, 'HEAD~1', '1', 'log=append', '--', '--quick')
    assert status == 0, output
    with open(f'{folder}/order', encoding='utf-8') as text:
        assert text.read().startswith('old --rounds 1 --ours --only append --quick --json ')


def a_bench_that_fails_is_shown_and_leaves_nothing(folder):
    root = repository(folder, '#!/bin/sh\necho the disk is full\nexit 1\n')
    status, output = compare(folder, root, 'HEAD~1', '1')
    assert status == 1 and 'the disk is full' in output, output


def what_does_not_exist_is_refused(folder):
    root = repository(folder)
    assert compare(folder, root, 'nowhere')[0] == 1
    status, output = compare(folder, root, 'HEAD~1', 'lag')
    assert status == 2 and 'there is no bench lag' in output, output
    assert not os.path.exists(f'{folder}/order')


if __name__ == '__main__':
    tap.main([both_take_turns_and_the_table_has_ratios, options_and_a_choice_of_questions_go_to_the_bench,
              a_bench_that_fails_is_shown_and_leaves_nothing, what_does_not_exist_is_refused])
