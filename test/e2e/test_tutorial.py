"""The manuals are true: the commands of TUTORIAL, OPERATIONS and VIEWS are run, in order, and must answer what is said there.

In a block marked console a line with '$ ' is a command and lines with '> ' go on with it; what follows is the
answer. In an answer … stands for anything within a line, and alone on a line for any lines. Blocks marked sh are how
the program is built; they are run where it was built so.
"""
import os
import re
import subprocess
import sys
import tempfile

from shell import PATIENCE, PAWL, ROOT, Skip, main

TUTORIAL = os.path.join(ROOT, 'docs', 'TUTORIAL.md')
OPERATIONS = os.path.join(ROOT, 'docs', 'OPERATIONS.md')
VIEWS = os.path.join(ROOT, 'docs', 'VIEWS.md')
MARK = '\x01'


def blocks(manual, kind):
    with open(manual, encoding='utf-8') as file:
        return re.findall(r'^```' + kind + r'\n(.*?)^```$', file.read(), re.DOTALL | re.MULTILINE)


def steps(text):
    """(command, answer) of each command of a block."""
    found = []
    for line in text.splitlines():
        if line.startswith('$ '):
            found.append([line[2:], ''])
        elif line.startswith('> ') or line == '>':
            found[-1][0] += '\n' + line[2:]
        else:
            found[-1][1] += line + '\n'
    return found


def run(commands, folder):
    """What each of the commands says, in one shell."""
    script = ''.join(f'said=$?; printf "{MARK}"; (exit $said)\n{command}\n' for command in commands)
    env = {**os.environ, 'PATH': os.path.dirname(PAWL) + ':' + os.environ['PATH']}
    env.pop('PAWL_DIR', None)
    done = subprocess.run(['sh'], input=script.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
                          env=env, timeout=2 * PATIENCE, check=False)
    return done.stdout.decode().split(MARK)[1:]


def answers(said, expected):
    pattern = re.sub(r'^…\\\n', lambda _: '(?:.*\n)*?', re.escape(expected), flags=re.MULTILINE).replace('…', '.*')
    return re.fullmatch(pattern, said) is not None


def check(manual, folder):
    os.symlink(os.path.join(ROOT, 'examples'), os.path.join(folder, 'examples'))
    expected = [step for block in blocks(manual, 'console') for step in steps(block)]
    assert len(expected) > 20
    said = run([command for command, _ in expected], folder)
    assert len(said) == len(expected)
    wrong = [f'$ {command}\nsays\n{now}instead of\n{then}' for (command, then), now in zip(expected, said)
             if not answers(now, then)]
    assert not wrong, '\n'.join(wrong)


def the_tutorials_commands_answer_what_it_says(folder):
    check(TUTORIAL, folder)


def the_operators_commands_answer_what_their_page_says(folder):
    check(OPERATIONS, folder)


def the_commands_about_views_answer_what_their_page_says(folder):
    check(VIEWS, folder)


def it_is_built_as_it_says(folder):
    if PAWL != os.path.join(ROOT, 'build', 'gcc', 'src', 'pawl'):
        raise Skip('it was built elsewhere')
    (block,) = blocks(TUTORIAL, 'sh')
    done = subprocess.run(['sh', '-e'], input=block + f'cd {folder}\ncommand -v pawl\n', text=True, cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * PATIENCE, check=False)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == PAWL, done.stdout


def update(manual):
    """Write what the commands say now into the manual: python3 test_tutorial.py --update. Review the difference."""
    with tempfile.TemporaryDirectory() as folder, open(manual, encoding='utf-8') as file:
        os.symlink(os.path.join(ROOT, 'examples'), os.path.join(folder, 'examples'))
        text = file.read()
        every = [(block, steps(block)) for block in blocks(manual, 'console')]
        said = iter(run([command for _, block in every for command, _ in block], folder))
        for block, commands in every:
            fresh = ''
            for command, then in commands:
                now = next(said)
                fresh += '$ ' + command.replace('\n', '\n> ') + '\n' + (then if answers(now, then) else now)
            text = text.replace(block, fresh)
    with open(manual, 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    if sys.argv[1:] == ['--update']:
        update(TUTORIAL)
        update(OPERATIONS)
        update(VIEWS)
    else:
        main([the_tutorials_commands_answer_what_it_says, the_operators_commands_answer_what_their_page_says,
              the_commands_about_views_answer_what_their_page_says,
              it_is_built_as_it_says])
