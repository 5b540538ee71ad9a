#!/usr/bin/env python3
"""tools/install: it asks for what is missing, and for nothing that is there from elsewhere. Nothing is installed here."""
import os
import shutil
import subprocess

from tap import ROOT, main, tree

LIST = """# PACKAGE PURPOSE [COMMAND]
here         build         # dpkg knows it
gone         build         # nobody has it
npm          test npm      # has a command
other        lint          # of another purpose
"""


def program(folder, name, text):
    path = os.path.join(folder, 'bin', name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\n' + text)
    os.chmod(path, 0o755)


def install(folder, *purposes):
    """(exit status, output) of a copy that has this list, and that is not run by root."""
    tree(folder, {'tools/packages': LIST})
    shutil.copy(os.path.join(ROOT, 'tools', 'install'), os.path.join(folder, 'tools', 'install'))
    program(folder, 'dpkg-query', 'for last; do :; done; [ "$last" = here ] && echo installed\n')
    program(folder, 'id', 'echo 1000\n')
    program(folder, 'sudo', 'exit 1\n')
    for name in ('sh', 'awk', 'dirname'):
        if not os.path.exists(os.path.join(folder, 'bin', name)):
            os.symlink(shutil.which(name), os.path.join(folder, 'bin', name))
    done = subprocess.run([os.path.join(folder, 'tools', 'install'), *purposes], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, env={'PATH': os.path.join(folder, 'bin')})
    return done.returncode, done.stdout


def asks_for_what_is_missing(folder):
    code, said = install(folder, 'build', 'test')
    assert code == 1 and said.rstrip().endswith('--no-install-recommends gone npm'), said


def does_not_ask_for_a_command_that_is_there_from_elsewhere(folder):
    program(folder, 'npm', '')
    code, said = install(folder, 'build', 'test')
    assert code == 1 and said.rstrip().endswith('--no-install-recommends gone'), said
    assert install(folder, 'test') == (0, '')


def every_line_of_the_real_list_has_a_purpose_and_a_reason(_folder):
    with open(os.path.join(ROOT, 'tools', 'packages'), encoding='utf-8') as file:
        lines = [line for line in file if line.strip() and not line.startswith('#')]
    for line in lines:
        words, _, reason = line.partition('#')
        assert len(words.split()) in (2, 3) and words.split()[1] in ('build', 'deb', 'test', 'kafka', 'lint', 'bench') and reason.strip(), line


main([asks_for_what_is_missing, does_not_ask_for_a_command_that_is_there_from_elsewhere,
      every_line_of_the_real_list_has_a_purpose_and_a_reason])
