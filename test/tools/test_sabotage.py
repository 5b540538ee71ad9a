#!/usr/bin/env python3
"""tools/sabotage finds out which patches are noticed by their test, and which are not."""
import tap

TREE = {
    'meson.build': "project('p', 'c')\nsubdir('src')\nsubdir('test')\n",
    'src/meson.build': "lib = static_library('lib', 'one.c')\n",
    'src/one.c': 'int one(void);\n\nint one(void)\n{\n    return 1;\n}\n',
    'test/meson.build': "test('one', executable('one', 'one.c', link_with: lib))\n"
                        "test('blind', executable('blind', 'blind.c', link_with: lib))\n"
                        "test('broken', executable('broken', 'broken.c', link_with: lib))\n",
    'test/one.c': 'int one(void);\nint main(void) { return one() != 1; }\n',
    'test/blind.c': 'int main(void) { return 0; }\n',
    'test/broken.c': 'int main(void) { return 1; }\n',
}


def patch(caught_by, old='    return 1;', new='    return 2;', words='# One is two.\n'):
    return (f'# caught-by: {caught_by}\n{words}--- a/src/one.c\n+++ b/src/one.c\n@@ -3,4 +3,4 @@\n int one(void)\n'
            f' {{\n-{old}\n+{new}\n }}\n')


def each_patch_is_judged_by_its_test(folder):
    tap.tree(folder, {**TREE, **{f'test/sabotage/{name}.patch': text for name, text in {
        'a-noticed': patch('one'),
        'b-unnoticed': patch('blind'),
        'c-sick-before': patch('broken'),
        'd-nameless': patch('none'),
        'e-stale': patch('one', old='    return 3;'),
        'f-unbuildable': patch('one', new='    return;;)'),
        'g-headless': patch('one', words=''),
        'h-noticed': patch('one', new='    return 0;'),
    }.items()}})
    status, output = tap.tool('sabotage', '--root', folder)
    for line in ('ok     a-noticed: one notices: One is two.', 'not ok b-unnoticed: blind does not notice',
                 'not ok c-sick-before: broken fails without', 'not ok d-nameless: there is no test none',
                 'not ok e-stale: does not apply', 'not ok f-unbuildable: does not build',
                 'not ok g-headless: its head must', 'ok     h-noticed: one notices'):
        assert f'\n{line}' in '\n' + output, f'{line}\n--- not in\n{output}'
    assert status == 1 and output.endswith('\n2 passed, 6 failed\n'), output


def a_chosen_patch_runs_alone_and_leaves_the_tree_alone(folder):
    tap.tree(folder, {**TREE, 'test/sabotage/a.patch': patch('one'), 'test/sabotage/b.patch': patch('blind')})
    status, output = tap.tool('sabotage', '--root', folder, 'a')
    assert status == 0 and output.endswith('\n1 passed, 0 failed\n'), output
    with open(f'{folder}/src/one.c', encoding='utf-8') as file:
        assert file.read() == TREE['src/one.c']


def one_for_each_test_is_tried_and_the_others_must_apply(folder):
    tap.tree(folder, {**TREE, **{f'test/sabotage/{name}.patch': text for name, text in {
        'a': patch('one'), 'b': patch('one', new='    return 0;'), 'c-stale': patch('one', old='    return 3;')}.items()}})
    status, output = tap.tool('sabotage', '--root', folder, '--one-each')
    assert 'not ok c-stale: does not apply' in output, output
    assert status == 1 and output.endswith('\n1 passed, 1 failed\n'), output


def a_test_that_misses_a_race_is_run_again(folder):
    """It notices from the second time on, and must not be asked for ever."""
    racing = ('#include <stdio.h>\nint one(void);\nint main(void)\n{\n    if (one() == 1)\n        return 0;\n'
              f'    FILE *seen = fopen("{folder}/seen", "r");\n    return seen ? 1 : !fopen("{folder}/seen", "w");\n}}\n')
    tap.tree(folder, {**TREE, 'test/one.c': racing, 'test/sabotage/a.patch': patch('one')})
    status, output = tap.tool('sabotage', '--root', folder)
    assert status == 0 and output.endswith('\n1 passed, 0 failed\n'), output


tap.main([each_patch_is_judged_by_its_test, a_chosen_patch_runs_alone_and_leaves_the_tree_alone,
          one_for_each_test_is_tried_and_the_others_must_apply, a_test_that_misses_a_race_is_run_again])
