#!/usr/bin/env python3
"""tools/performance makes the page of figures from what the benches have answered, or says what is missing."""
import copy
import glob
import json
import os
import xml.etree.ElementTree as ET

import tap

QUESTIONS = '''
[[question]]
name = "append"
bench = "log"
title = "How fast is an append?"
about = "The peer writes and syncs bare."
rows = [{asks = "append <1> & wait", label = "one at a time"}, {asks = "append 64", quick = "here 6"}]
reasons = ["A sync takes most of it."]

[[question]]
name = "memory"
bench = "lease"
title = "How much memory?"
about = "No peer."
rows = [{asks = "memory"}]
'''


def side(median, least=None, most=None):
    return {'median': median, 'least': least or median, 'most': most or median, 'processor_us': 1, 'per': 'round'}


def answer(question, ours, peer, goal, better='more', unit='op/s', met=True):
    return {'question': question, 'unit': unit, 'ours': side(ours, ours * 0.9, ours * 1.1),
            'peer': side(peer) if peer else None, 'ratio': ours / peer if peer else None, 'of': 'ratio' if peer else 'ours',
            'better': better, 'goal': goal, 'met': met}


def run(bench, *answers, **changed):
    return {'bench': bench, 'commit': 'abc123', 'processor': 'Abacus 9', 'kernel': 'Linux 1.2', 'filesystem': 'ext4',
            'compiler': '12.2', 'cores': 2, 'rounds': 3, 'quick': False, 'load_before': 0.5, 'load_after': 1.5,
            'answers': list(answers), **changed}


RUNS = (run('log', answer('append <1> & wait', 5467, 5000, 0.9), answer('append 64', 1500, 3000, 0.8, met=False)),
        run('lease', answer('memory', 12.34, None, 16, better='less', unit='MiB')))


def make(folder, runs=RUNS, questions=QUESTIONS, note='Others were at work.'):
    tap.tree(folder, {'questions.toml': questions, 'docs/performance/old.svg': '<svg/>',
                      **{f"results/{each['bench']}.json": json.dumps(each) for each in runs}})
    os.makedirs(f'{folder}/results', exist_ok=True)
    return tap.tool('performance', '--questions', f'{folder}/questions.toml', '--note', note, f'{folder}/results',
                    f'{folder}/docs/PAGE.md')


def page(folder):
    with open(f'{folder}/docs/PAGE.md', encoding='utf-8') as text:
        return text.read()


def refused(folder, words, **how):
    status, output = make(folder, **how)
    assert status == 1 and words in output, output
    assert not os.path.exists(f'{folder}/docs/PAGE.md') and os.listdir(f'{folder}/docs/performance') == ['old.svg']


def the_table_has_figures_ratios_and_goals(folder):
    status, output = make(folder)
    assert status == 0, output
    text = page(folder)
    assert '| one at a time | 5,467 op/s | 5,000 op/s | 1.09 | ≥ 0.9 | yes |' in text, text
    assert '| memory | 12.3 MiB |  |  | ≤ 16 MiB | yes |' in text, text
    assert '- A sync takes most of it.' in text


def a_goal_that_is_missed_is_shown_as_missed(folder):
    make(folder)
    text = page(folder)
    assert '| append 64 | 1,500 op/s | 3,000 op/s | 0.50 | ≥ 0.8 | **missed** |' in text, text
    assert '**2 of 3 goals are met.** Missed are:\n\n- [How fast is an append?](#how-fast-is-an-append) append 64\n' in text


def the_page_says_under_what_conditions_it_was_made(folder):
    make(folder)
    text = page(folder)
    for words in ('`abc123`', 'Abacus 9, 2 cores', 'ext4', 'median of 3 rounds', '- Others were at work.'):
        assert words in text, words
    assert 'quick' not in text and 'here 6' not in text


def the_quick_form_says_so_and_where_it_has_less_data(folder):
    make(folder, [{**each, 'quick': True} for each in RUNS])
    text = page(folder)
    assert 'in the quick form' in text and "| append 64 (here 6) |" in text and "`make performance OPTIONS='--quick'`" in text


def benches_of_two_forms_say_which_is_which(folder):
    status, output = make(folder, (RUNS[0], {**RUNS[1], 'quick': True}))
    assert status == 0, output
    text = page(folder)
    assert '. The benches lease were run in the quick form' in text and 'here 6' not in text, text
    assert 'make performance' not in text and 'run one by one, by the commands below' in text, text
    assert "`make bench-log OPTIONS='--rounds 3'`" in text and "`make bench-lease OPTIONS='--quick'`" in text, text
    assert '| append 64 | 1,500 op/s | 3,000 op/s | 0.50 | ≥ 0.8 | **missed** |' in text, text


def less_data_neither_meets_a_goal_nor_misses_it(folder):
    make(folder, [{**each, 'quick': True} for each in RUNS])
    text = page(folder)
    assert '| append 64 (here 6) | 1,500 op/s | 3,000 op/s | 0.50 | ≥ 0.8 | not judged |' in text, text
    assert '**2 of 2 goals are met.**\n' in text, text
    with open(f'{folder}/docs/performance/append.svg', encoding='utf-8') as plot:
        plot = plot.read()
    assert 'ours, not judged' in plot and 'missed' not in plot, plot


def each_question_has_a_plot_that_is_well_formed(folder):
    make(folder)
    plots = sorted(os.path.basename(path) for path in glob.glob(f'{folder}/docs/performance/*.svg'))
    assert plots == ['append.svg', 'memory.svg'], plots
    assert '![How fast is an append?](performance/append.svg)' in page(folder)
    root = ET.parse(f'{folder}/docs/performance/append.svg').getroot()
    bars = [shape for shape in root.iter('{http://www.w3.org/2000/svg}rect') if shape.get('height') == '14']
    assert len(bars) == 4 and root[1].get('fill') == '#ffffff'
    widths = [float(shape.get('width')) for shape in bars]
    assert abs(widths[2] / widths[3] - 0.5) < 0.01, widths
    assert bars[0].get('fill') != bars[2].get('fill')
    legend = sorted((float(shape.get('x')), shape.text) for shape in root.iter('{http://www.w3.org/2000/svg}text')
                    if shape.get('y') == '20')
    assert legend[-1][1] == 'longer is better', legend
    assert all(x + 6.5 * len(text) < after for (x, text), (after, _) in zip(legend, legend[1:])), legend
    right = float(root.get('width'))
    assert all(float(shape.get('x')) + float(shape.get('width')) < right for shape in bars)


def a_bench_that_is_missing_is_named(folder):
    refused(folder, 'the answers of bench lease are missing; run tools/bench lease', runs=RUNS[:1])


def an_empty_folder_is_refused(folder):
    refused(folder, 'has no answers; run tools/bench first', runs=())


def an_answer_that_is_missing_is_named(folder):
    runs = copy.deepcopy(RUNS)
    del runs[0]['answers'][1]
    refused(folder, "bench log has no answer to 'append 64'", runs=runs)


def an_answer_that_nobody_asks_for_is_named(folder):
    runs = (*RUNS[:1], run('lease', *RUNS[1]['answers'], answer('speed', 1, 1, 1)))
    refused(folder, "no question of the page asks bench lease for 'speed'", runs=runs)


def benches_of_two_commits_make_no_page(folder):
    refused(folder, 'differ in their commit (lease: def456, log: abc123)', runs=(RUNS[0], {**RUNS[1], 'commit': 'def456'}))


def the_page_names_the_versions_of_the_peers(folder):
    make(folder, ({**RUNS[0], 'peers': {'Redis': '7.0', 'LMDB': '0.9'}}, {**RUNS[1], 'peers': {'Redis': '7.0'}}))
    assert 'LMDB 0.9, Redis 7.0.' in page(folder), page(folder)


def benches_of_two_versions_of_a_peer_make_no_page(folder):
    refused(folder, 'differ in the version of Redis',
            runs=({**RUNS[0], 'peers': {'Redis': '7.0'}}, {**RUNS[1], 'peers': {'Redis': '7.2'}}))


def a_run_without_peers_makes_no_page(folder):
    runs = copy.deepcopy(RUNS)
    runs[0]['answers'][0]['met'] = None
    refused(folder, 'it was run with --ours', runs=runs)


def an_answer_without_a_goal_is_told_and_not_judged(folder):
    runs = copy.deepcopy(RUNS)
    runs[0]['answers'][1].update(goal=None, met=None)
    status, output = make(folder, runs=runs)
    assert status == 0, output
    assert '| append 64 | 1,500 op/s | 3,000 op/s | 0.50 |  |  |' in page(folder), page(folder)
    assert '**2 of 2 goals are met.**' in page(folder)


def what_is_not_a_benchs_file_is_named(folder):
    tap.tree(folder, {'results/other.json': '[]'})
    refused(folder, 'other.json is not what a bench writes')


def the_questions_of_this_tree_are_those_of_its_benches(folder):
    """Every text that the page asks for stands in the source of its bench."""
    del folder
    import tomllib
    with open(f'{tap.ROOT}/bench/questions.toml', 'rb') as text:
        questions = tomllib.load(text)['question']
    assert {question['bench'] for question in questions} == {
        os.path.basename(path)[:-2] for path in glob.glob(f'{tap.ROOT}/bench/*.c')}
    for question in questions:
        with open(f"{tap.ROOT}/bench/{question['bench']}.c", encoding='utf-8') as source:
            code = source.read()
        for row in question['rows']:
            pieces = [row['asks']] if row['asks'] in code else row['asks'].split('; ', 1)  # a macro joins two texts
            assert all(piece in code for piece in pieces), row['asks']


if __name__ == '__main__':
    tap.main([the_table_has_figures_ratios_and_goals, a_goal_that_is_missed_is_shown_as_missed,
              the_page_says_under_what_conditions_it_was_made, the_quick_form_says_so_and_where_it_has_less_data,
              benches_of_two_forms_say_which_is_which, less_data_neither_meets_a_goal_nor_misses_it,
              each_question_has_a_plot_that_is_well_formed, a_bench_that_is_missing_is_named, an_empty_folder_is_refused,
              an_answer_that_is_missing_is_named, an_answer_that_nobody_asks_for_is_named,
              benches_of_two_commits_make_no_page, the_page_names_the_versions_of_the_peers,
              benches_of_two_versions_of_a_peer_make_no_page, a_run_without_peers_makes_no_page,
              an_answer_without_a_goal_is_told_and_not_judged, what_is_not_a_benchs_file_is_named,
              the_questions_of_this_tree_are_those_of_its_benches])
