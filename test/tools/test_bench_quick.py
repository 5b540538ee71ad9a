#!/usr/bin/env python3
"""tools/bench-quick fails if a ratio is below half of the recorded one twice in a row, and says what it could not judge."""
import json
import os
import shutil
import subprocess
import tomllib

import tap

# A bench that gives the first answer that is left, and notes what it was asked.
BENCH = '''#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/asked"
answer=$(head -n 1 "$here/answers")
sed -i 1d "$here/answers"
[ "$answer" != failure ] || exit 1
while [ "$1" != --json ]; do shift; done
echo "$answer" >"$2"
'''
TOOL = '#!/bin/sh\necho "built $*"\n'


def recorded(*questions):
    return 'processor = "Abacus 9"\ncores = 2\n' + ''.join(
        f'[[question]]\nbench = "{bench}"\nasks = "{asks}"\nbetter = "{better}"\n' + (f'ratio = {ratio}\n' if ratio else '')
        for bench, asks, better, ratio in questions)


APPEND = ('log', 'append', 'more', 0.8)
LATENCY = ('log', 'latency', 'less', 2)


def answer(question, ratio, **changed):
    return json.dumps({'commit': 'abc123', 'processor': 'Abacus 9', 'cores': 2, 'kernel': 'Linux 1.2', 'filesystem': 'ext4',
                       'answers': [{'question': question, 'ratio': ratio, 'better': 'more'}], **changed})


def ask(folder, file, answers, *options):
    """(exit status, output) of a copy whose bench gives these answers, one a call."""
    bench = 'build/gcc/bench'
    tap.tree(folder, {'bench/recorded.toml': file, 'tools/bench': TOOL, f'{bench}/bench_log': BENCH,
                      f'{bench}/answers': ''.join(line + '\n' for line in answers)})
    shutil.copy(f'{tap.ROOT}/tools/bench-quick', f'{folder}/tools/bench-quick')
    for program in ('tools/bench', f'{bench}/bench_log'):
        os.chmod(f'{folder}/{program}', 0o755)
    done = subprocess.run([f'{folder}/tools/bench-quick', *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def asked(folder):
    """How often a bench was asked."""
    with open(f'{folder}/build/gcc/bench/asked', encoding='utf-8') as text:
        return len(text.readlines())


def a_ratio_as_recorded_passes(folder):
    status, output = ask(folder, recorded(APPEND), [answer('append', 0.78)], '--dir', '/somewhere')
    assert status == 0 and 'log: append: recorded 0.80, now 0.78\n' in output and '0 fell' in output, output
    assert output.startswith('built log --build\n') and asked(folder) == 1
    with open(f'{folder}/build/gcc/bench/asked', encoding='utf-8') as text:
        assert text.read().startswith('--quick --rounds 3 --only append --dir /somewhere --json '), output


def below_half_once_and_then_fine_passes(folder):
    status, output = ask(folder, recorded(APPEND), [answer('append', 0.3), answer('append', 0.5)])
    assert status == 0 and 'so once more' in output and '0 fell' in output, output
    assert asked(folder) == 2


def below_half_twice_in_a_row_fails_and_is_named(folder):
    status, output = ask(folder, recorded(APPEND, ('log', 'read', 'more', 1)),
                         [answer('append', 0.3), answer('append', 0.39), answer('read', 1)])
    assert status == 1, output
    assert 'FELL  log: append: recorded 0.80, measured 0.30 and 0.39: worse than half of it, twice in a row' in output, output
    assert 'log: read: recorded 1.00, now 1.00' in output, 'the questions behind it are asked, too'


def exactly_half_has_not_fallen(folder):
    status, output = ask(folder, recorded(APPEND), [answer('append', 0.4)])
    assert status == 0, output


def where_less_is_better_twice_as_much_is_worse(folder):
    status, output = ask(folder, recorded(LATENCY), [answer('latency', 4.1), answer('latency', 4.2)])
    assert status == 1 and 'FELL  log: latency: recorded 2.00, measured 4.10 and 4.20' in output, output
    status, output = ask(folder, recorded(LATENCY), [answer('latency', 0.1)])
    assert status == 0, output


def a_question_without_record_is_named_before_anything_is_measured(folder):
    status, output = ask(folder, recorded(APPEND, ('log', 'read', 'more', None)), [answer('append', 0.8)])
    assert status == 2 and "'read' of bench log has no record; run tools/bench-quick --record" in output, output
    assert not os.path.exists(f'{folder}/build/gcc/bench/asked')


def a_broken_file_is_named(folder):
    for file, words in (('ratio = = 1', 'recorded.toml: '), ('', 'has no questions'),
                        ('[[question]]\nasks = "append"\n', 'does not say which bench'),
                        ('question = ["append"]', 'does not say which bench'),
                        (recorded(('log', 'append', 'more', '"much"')), "has the ratio 'much'"),
                        (recorded(('log', 'append', 'more', -1)), 'has the ratio -1'),
                        (recorded(('log', 'append', 'higher', 1)), "whether 'more' or 'less' is better")):
        status, output = ask(folder, file, [])
        assert status == 2 and words in output and 'Traceback' not in output, (file, output)
    status, output = ask(folder, recorded(APPEND), [answer('append', 1)], '--recorded', f'{folder}/nowhere')
    assert status == 2 and 'nowhere' in output and 'Traceback' not in output, output


def a_bench_that_fails_is_named_and_the_others_are_measured(folder):
    three = [APPEND, ('log', 'read', 'more', 1), ('log', 'gone', 'more', 1), ('log', 'alone', 'more', 1)]
    status, output = ask(folder, recorded(*three), ['failure', answer('read', 0.9), answer('other', 1), answer('alone', None)])
    assert status == 2, output
    assert "NOT MEASURED  'append': bench log failed" in output and 'log: read: recorded 1.00, now 0.90' in output, output
    assert "NOT MEASURED  bench log has no question 'gone'" in output and "'alone': bench log had no peer" in output, output
    status, output = ask(folder, recorded(APPEND), ['{'])
    assert status == 2 and 'wrote no answers' in output and 'Traceback' not in output, output


def another_machine_is_told(folder):
    status, output = ask(folder, recorded(APPEND), [answer('append', 0.8, processor='Rule 3')])
    assert status == 0 and 'recorded on another machine: processor Abacus 9, here Rule 3' in output, output


def recording_writes_what_is_compared_with(folder):
    status, output = ask(folder, recorded(('log', "append '1'", 'more', None)), [answer("append '1'", 0.81234)], '--record')
    assert status == 0, output
    with open(f'{folder}/bench/recorded.toml', 'rb') as text:
        file = tomllib.load(text)
    assert file['question'] == [{'bench': 'log', 'asks': "append '1'", 'better': 'more', 'ratio': 0.8123}], file
    assert file['commit'] == 'abc123' and file['processor'] == 'Abacus 9' and file['cores'] == 2, file


def a_recording_that_fails_leaves_the_file_as_it_was(folder):
    before = recorded(APPEND, LATENCY)
    status, output = ask(folder, before, [answer('append', 1), 'failure'], '--record')
    assert status == 2, output
    with open(f'{folder}/bench/recorded.toml', encoding='utf-8') as text:
        assert text.read() == before


def the_record_of_this_tree_asks_what_its_benches_ask(folder):
    del folder
    with open(f'{tap.ROOT}/bench/recorded.toml', 'rb') as text:
        chosen = tomllib.load(text)['question']
    with open(f'{tap.ROOT}/bench/questions.toml', 'rb') as text:
        known = {(question['bench'], row['asks']) for question in tomllib.load(text)['question'] for row in question['rows']}
    for question in chosen:
        assert (question['bench'], question['asks']) in known and question['ratio'] > 0, question


if __name__ == '__main__':
    tap.main([a_ratio_as_recorded_passes, below_half_once_and_then_fine_passes, below_half_twice_in_a_row_fails_and_is_named,
              exactly_half_has_not_fallen, where_less_is_better_twice_as_much_is_worse,
              a_question_without_record_is_named_before_anything_is_measured, a_broken_file_is_named,
              a_bench_that_fails_is_named_and_the_others_are_measured, another_machine_is_told,
              recording_writes_what_is_compared_with, a_recording_that_fails_leaves_the_file_as_it_was,
              the_record_of_this_tree_asks_what_its_benches_ask])
