#!/usr/bin/env python3
"""tools/web: the built page is that of its sources, and the tool notices when it is not."""
import os
import shutil
import subprocess

from tap import ROOT, main, tool


def copy(folder):
    """A tree with the page alone, in which the tool can be run."""
    os.makedirs(os.path.join(folder, 'tools'))
    shutil.copy(os.path.join(ROOT, 'tools', 'web'), os.path.join(folder, 'tools', 'web'))
    shutil.copytree(os.path.join(ROOT, 'web'), os.path.join(folder, 'web'),
                    ignore=shutil.ignore_patterns('node_modules'))
    shutil.copytree(os.path.join(ROOT, 'src', 'http', 'assets'), os.path.join(folder, 'src', 'http', 'assets'))


def check(folder):
    done = subprocess.run([os.path.join(folder, 'tools', 'web'), '--check'], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def change(folder, path, words):
    with open(os.path.join(folder, path), 'a', encoding='utf-8') as file:
        file.write(words)


def the_built_page_is_not_stale(_folder):
    code, said = tool('web', '--check')
    assert code == 0, said


def a_copy_without_npm_s_files_is_good(folder):
    copy(folder)
    assert check(folder) == (0, '')


def notices_a_changed_file(folder):
    copy(folder)
    change(folder, 'web/app.js', '// more\n')
    code, said = check(folder)
    assert code == 1 and 'app.js differs from its source' in said, said


def notices_a_missing_and_a_left_over_file(folder):
    copy(folder)
    os.remove(os.path.join(folder, 'src/http/assets/strip.js'))
    change(folder, 'src/http/assets/old.js', '')
    code, said = check(folder)
    assert code == 1 and 'strip.js is missing' in said and 'old.js has no source' in said, said


def notices_another_version_of_uplot(folder):
    copy(folder)
    path = os.path.join(folder, 'web/package.json')
    with open(path, encoding='utf-8') as file:
        text = file.read()
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text.replace('"uplot": "', '"uplot": "9'))
    code, said = check(folder)
    assert code == 1 and 'uplot.js is not version 9' in said, said


main([the_built_page_is_not_stale, a_copy_without_npm_s_files_is_good, notices_a_changed_file,
      notices_a_missing_and_a_left_over_file, notices_another_version_of_uplot])
