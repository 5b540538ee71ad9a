"""bash and zsh complete what is typed behind pawl. Both shells are real, and have a terminal."""
import os
import re
import subprocess

from shell import PAWL, main, pawl
from terminal import Shell
from test_manual import nouns, overview, usage

BASH_SETUP = '''PS1='ready> '
PATH={bin}:$PATH
source <(pawl completion bash)
cd {place}
_line() {{ printf '%s' "$READLINE_LINE" >{line}.new; mv {line}.new {line}; READLINE_LINE=; READLINE_POINT=0; }}
bind -x '"\\C-g": _line'
'''

ZSH_SETUP = '''PS1='ready> '
PATH={bin}:$PATH
fpath=({functions} $fpath)
autoload -Uz compinit && compinit -u -d {folder}/compdump
zstyle ':completion:*' insert-tab false
unsetopt beep
cd {place}
typeset -ga offered
compadd() {{
    local -a here
    if [[ ${{@[1,(i)(-|--)]}} != *-(O|A|D)\\ * ]]; then
        builtin compadd -A here "$@"
        offered+=($here)
    fi
    builtin compadd "$@"
}}
_line() {{
    print -rl -- $offered >{offered}
    print -rn -- "$BUFFER" >{line}.new; command mv {line}.new {line}; BUFFER=; offered=()
}}
zle -N _line
bindkey '^G' _line
'''

# What is typed, and what the tab key makes of it. Directories: store, "two words"; files: shop.json, note.
CASES = {
    'pawl vers': 'pawl version ',
    'pawl comp': 'pawl completion ',
    'pawl view cr': 'pawl view create ',
    'pawl log app': 'pawl log append ',
    'pawl view create v --bas': 'pawl view create v --base',
    'pawl completion z': 'pawl completion zsh ',
    'pawl command 7 --ack dur': 'pawl command 7 --ack durable ',
    'pawl command 7 --ack=app': 'pawl command 7 --ack=applied ',
    'pawl system built': 'pawl system built_views ',
    'pawl help vie': 'pawl help view ',
    'pawl help view thr': 'pawl help view throttle ',
    'pawl man log re': 'pawl man log read ',
    'pawl verify --dir st': 'pawl verify --dir store/',
    'pawl verify --dir=st': 'pawl verify --dir=store/',
    'pawl verify --dir tw': 'pawl verify --dir two\\ words/',
    'pawl verify --dir sh': 'pawl verify --dir sh',
    'pawl backup --to st': 'pawl backup --to store/',
    'pawl schema apply sh': 'pawl schema apply shop.json ',
    'pawl command 7 no': 'pawl command 7 note ',
    'pawl verify --dir store --aud': 'pawl verify --dir store --audit ',
    'pawl verify --log kafka://a:9092/c --aud': 'pawl verify --log kafka://a:9092/c --audit ',
    'pawl frobnicate --di': 'pawl frobnicate --di',
}


def furnish(folder):
    """A directory with names to complete, and one with the program in it."""
    place, programs = os.path.join(folder, 'place'), os.path.join(folder, 'bin')
    for name in (programs, f'{place}/store', f'{place}/two words'):
        os.makedirs(name)
    for name in ('shop.json', 'note'):
        with open(os.path.join(place, name), 'w', encoding='ascii'):
            pass
    os.symlink(PAWL, os.path.join(programs, 'pawl'))
    return {'place': place, 'bin': programs, 'folder': folder, 'line': os.path.join(folder, 'line'),
            'offered': os.path.join(folder, 'offered'), 'functions': os.path.join(folder, 'functions')}


def bash_on_a_terminal(folder):
    where = furnish(folder)
    setup = os.path.join(folder, 'bashrc')
    with open(setup, 'w', encoding='ascii') as file:
        file.write(BASH_SETUP.format(**where))
    return Shell(['bash', '--noprofile', '--rcfile', setup, '-i'], where['line'], {'HISTFILE': ''})


def zsh_on_a_terminal(folder):
    where = furnish(folder)
    os.makedirs(where['functions'])
    with open(os.path.join(where['functions'], '_pawl'), 'w', encoding='ascii') as file:
        file.write(pawl('completion', 'zsh').expect(0).out)
    with open(os.path.join(folder, '.zshrc'), 'w', encoding='ascii') as file:
        file.write(ZSH_SETUP.format(**where))
    return Shell(['zsh', '-o', 'NO_GLOBAL_RCS', '-i'], where['line'], {'ZDOTDIR': folder}), where['offered']


def bash_completes_what_is_typed(folder):
    terminal = bash_on_a_terminal(folder)
    for typed, expected in CASES.items():
        line = terminal.complete(typed)
        if typed.endswith('--bas'):
            expected += ' '  # bash cannot know that a value comes next; zsh adds its own =
        assert line == expected, f'{typed!r} became {line!r}, not {expected!r}'


def zsh_completes_what_is_typed(folder):
    terminal, _ = zsh_on_a_terminal(folder)
    for typed, expected in CASES.items():
        line = terminal.complete(typed)
        if typed.endswith('--bas'):
            expected += '='
        assert line.rstrip() == expected.rstrip(), f'{typed!r} became {line!r}, not {expected!r}'


def offered_by_bash(folder, cases):
    """{typed: what bash offers for its last word}, by its own function and COMP_WORDS."""
    script = os.path.join(folder, 'script')
    with open(script, 'w', encoding='ascii') as file:
        file.write(pawl('completion', 'bash').expect(0).out)
    ask = f'source {script}\n'
    for typed in cases:
        words = typed.split(' ')
        ask += f'COMP_WORDS=(pawl {typed}{"" if words[-1] else chr(34) * 2}) COMP_CWORD={len(words)}\n'
        ask += '_pawl; echo "${COMPREPLY[*]}"\n'
    done = subprocess.run(['bash', '--noprofile', '--norc', '-u'], input=ask, text=True, capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return dict(zip(cases, (set(line.split()) for line in done.stdout.splitlines())))


def offered_by_zsh(folder, cases):
    """The same by zsh."""
    terminal, offered = zsh_on_a_terminal(folder)
    found = {}
    for typed in cases:
        terminal.complete(f'pawl {typed}')
        with open(offered, encoding='utf-8') as file:
            found[typed] = set(file.read().split())
    return found


def check_offers(offer, folder):
    """Nouns, then the verbs of each, then the options of each command are offered, and no others."""
    commands = overview()
    groups = nouns(commands)
    found = offer(folder, ['', *(f'{noun} ' for noun in groups), *(f'{command} --' for command in commands)])
    expected = {command.split()[0] for command in commands}
    assert expected == {word for word in found[''] if word[0] != '-'}, expected ^ found['']
    for noun in groups:
        verbs = {command.split()[1] for command in commands if command.split()[0] == noun and ' ' in command}
        assert verbs == {word for word in found[f'{noun} '] if word[0] != '-'}, f'{noun}: {found[f"{noun} "]}'
    for command in commands:
        offers = {re.sub('=$', '', word) for word in found[f'{command} --']}
        assert offers == set(usage(command)[1]) | {'--help'}, f'{command}: {offers}'


def bash_offers_every_noun_verb_and_option(folder):
    check_offers(offered_by_bash, folder)


def zsh_offers_every_noun_verb_and_option(folder):
    check_offers(offered_by_zsh, folder)


def an_option_that_is_given_is_not_offered_again_unless_it_may_be(folder):
    cases = ['command 7 f --key k --record x ', 'verify --log kafka://a:9092/c --audit ', 'command 7 f --ack ',
             'verify --dir ']
    found = offered_by_bash(folder, cases)
    left = found[cases[0]]
    assert '--key' not in left and '--record' in left and '--actor' in left, left
    left = found[cases[1]]
    assert '--audit' not in left and '--log' not in left and '--replay' in left, left
    assert found[cases[2]] == {'applied', 'durable'}
    assert found[cases[3]] == set()


def other_shells_are_refused(folder):
    del folder
    pawl('completion', 'fish').expect(2, 'bash and for zsh')
    pawl('completion').expect(2, 'its SHELL is missing')


if __name__ == '__main__':
    main([bash_completes_what_is_typed,
          zsh_completes_what_is_typed,
          bash_offers_every_noun_verb_and_option,
          zsh_offers_every_noun_verb_and_option,
          an_option_that_is_given_is_not_offered_again_unless_it_may_be,
          other_shells_are_refused])
