"""What the program says about itself: help, manual pages and docs/CLI.md tell the same, and man shows the pages."""
import os
import re
import subprocess

from shell import ROOT, main, pawl

# What --dir, --url and --token-file are, and that --json is for machines, docs/CLI.md says once, at its top.
SAID_ONCE = {'--dir', '--json', '--token-file', '--url'}


def overview():
    """{command: its summary}, from the help."""
    listed = pawl('help').expect(0).out.split('\n\n')[2]
    return dict(re.fullmatch(r'  (\w+(?: \w+)?)  *(.+)', line).groups() for line in listed.splitlines())


def nouns(commands):
    return {command.split()[0] for command in commands if ' ' in command}


def sections():
    with open(os.path.join(ROOT, 'docs', 'CLI.md'), encoding='utf-8') as file:
        top, *parts = file.read().split('\n## pawl ')
    return top, dict(part.split('\n', 1) for part in parts)


def synopsis(line, command):
    """(arguments, {option: (its value, whether it is needed)}) of a line that says how a command is called."""
    rest = line[len(f'pawl {command}'):]
    options = {}
    for found in re.finditer(r'(--[a-z-]+)(?: ([^\s\[\]|]+))?', rest):
        before, behind = rest[:found.start()], rest[found.end():]
        bracketed = before.count('[') > before.count(']')
        one_of_two = before.rstrip().endswith('|') or behind.lstrip().startswith('|')
        options[found[1]] = (found[2] or '', not bracketed and not one_of_two)
    return re.split(r'\[?--', rest)[0].split(), options


def usage(command):
    return synopsis(pawl(*command.split(), '--help').expect(0).out.splitlines()[0][len('usage: '):], command)


def the_page_of_commands_has_each_command_with_its_arguments_and_options(folder):
    del folder
    top, written = sections()
    commands = overview()
    assert set(commands) == set(written), set(commands) ^ set(written)
    for command, text in written.items():
        arguments, options = usage(command)
        line = re.match(r'\n`(pawl .*)`\n', text)
        assert line, f'{command}: its section does not begin with how it is called'
        said_arguments, said_options = synopsis(line[1], command)
        assert said_arguments == arguments, f'{command}: {said_arguments} on the page, {arguments} in the help'
        for option in set(options) ^ set(said_options):
            assert option in SAID_ONCE and option in options, f'{command} {option}: in one and not in the other'
        for option, said in said_options.items():
            assert said == options[option], f'{command} {option}: {said} on the page, {options[option]} in the help'
        for row in re.findall(r'^\| (`--.*?) \|', text, re.MULTILINE):
            for option in re.findall(r'--[a-z-]+', row):
                assert option in options, f'{command}: its table has {option}, its help does not'
        anchor = '#pawl-' + command.replace(' ', '-')
        assert f'({anchor})' in top, f'the list at the top of the page has no link to {anchor}'


def help_shows_a_noun_a_command_and_all(folder):
    del folder
    for words in (('help',), ('--help',)):
        pawl(*words).expect(0, 'usage: pawl COMMAND', '  view create ', 'Exit codes', '128+N')
    for words in (('help', 'view'), ('view', '--help')):
        said = pawl(*words).expect(0, 'usage: pawl view VERB', '  create  ', '  throttle ')
        assert 'tablet' not in said.out and 'pawl help view VERB' in said.out
    for words in (('help', 'view', 'create'), ('view', 'create', '--help')):
        pawl(*words).expect(0, 'usage: pawl view create NAME [--dir DIR] [--url URL] [--token-file FILE] --base TYPE --key A,B [--include C,D]')
    assert pawl('version').expect(0).out == pawl('--version').expect(0).out
    pawl('help', 'vieuw').expect(2, 'there is no command')
    pawl('help', 'view', 'crate').expect(2, "did you mean 'pawl view create'")
    pawl('help', 'a', 'b', 'c').expect(2)
    pawl('view').expect(2, "'pawl view create'")


def pages(folder):
    """{page: its roff}, as 'pawl man --to' writes them."""
    place = os.path.join(folder, 'man1')
    pawl('man', '--to', place).expect(0)
    found = {}
    for name in os.listdir(place):
        with open(os.path.join(place, name), encoding='ascii') as file:
            found[name] = file.read()
    return found


def each_command_and_each_noun_has_a_page(folder):
    commands = overview()
    expected = {'pawl.1'} | {f'pawl-{name.replace(" ", "-")}.1' for name in [*commands, *nouns(commands)]}
    written = pages(folder)
    assert set(written) == expected, set(written) ^ expected
    assert pawl('man').expect(0).out == written['pawl.1']
    assert pawl('man', 'log').expect(0).out == written['pawl-log.1']
    assert pawl('man', 'log', 'read').expect(0).out == written['pawl-log-read.1']
    pawl('man', '--to', os.path.join(folder, 'man1')).expect(0)
    pawl('man', '--to', os.path.join(folder, 'no', 'such')).expect(1, 'cannot make')
    pawl('man', 'log', '--to', folder).expect(2, 'name none of them')
    pawl('man', 'log', 'raed').expect(2, "did you mean 'pawl log read'")


def man_shows_each_page_with_all_that_the_help_says(folder):
    written = pages(folder)
    for command, summary in overview().items():
        page = f'pawl-{command.replace(" ", "-")}.1'
        done = subprocess.run(['man', '--warnings', '--nh', '-E', 'UTF-8', '-l', os.path.join(folder, 'man1', page)],
                              capture_output=True, check=False,
                              env={**os.environ, 'MANWIDTH': '200', 'MANPAGER': 'cat', 'LC_ALL': 'C.UTF-8'})
        assert done.returncode == 0 and not done.stderr, f'{page}: {done.stderr.decode()}'
        text = ' '.join(re.sub('.\b', '', done.stdout.decode()).replace('\xa0', ' ').split())
        assert f'pawl-{command.replace(" ", "-")} - {summary}' in text, text
        said = pawl(*command.split(), '--help').expect(0).out
        about = said.split('\n\n', 1)[1]
        for line in about.splitlines():
            assert ' '.join(line.split()) in text, f'{page} does not have {line!r}: {text}'
        assert len(written[page]) > len(said)
    shown = subprocess.run(['man', '--warnings', '--nh', '-E', 'UTF-8', '-l', os.path.join(folder, 'man1', 'pawl.1')],
                           capture_output=True, check=True, env={**os.environ, 'MANPAGER': 'cat', 'LC_ALL': 'C.UTF-8'})
    assert not shown.stderr and b'PAWL_DIR' in shown.stdout and b'corruption found' in shown.stdout


def mandoc_finds_nothing_wrong_with_the_pages(folder):
    names = sorted(os.path.join(folder, 'man1', name) for name in pages(folder))
    done = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', *names], capture_output=True, text=True, check=False)
    # A page has no date, on purpose: its version says which program it belongs to.
    said = [line for line in (done.stdout + done.stderr).splitlines() if 'missing date' not in line]
    assert not said, '\n'.join(said)


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as file:
        return file.read()


def the_page_of_the_api_lists_each_public_function_once_with_its_header(_folder):
    public = set(re.findall(r'\b(pawl_\w+);', text_of('src', 'libpawl.map') + text_of('src', 'libpawl-serve.map')))
    listed, wrong, headers = [], [], []
    for line in text_of('docs', 'API.md').split('\n## All functions\n', 1)[1].splitlines():
        cells = re.fullmatch(r'\| (.*?) ?\| .* \| (`pawl_.*`) \|', line)
        if cells:
            headers = re.findall(r'`(\w+\.h)`', cells[1]) or headers
            names = re.findall(r'`(\w+)`', cells[2])
            declared = ''.join(text_of('include', 'pawl', header) for header in headers)
            wrong += [f'{name} is not in {headers}' for name in names if not re.search(rf'PAWL_API[^;]*\b{name}\(', declared)]
            listed += names
    assert sorted(listed) == sorted(public), f'not listed: {public - set(listed)}; too much: {sorted(listed)}'
    assert not wrong, wrong


if __name__ == '__main__':
    main([the_page_of_commands_has_each_command_with_its_arguments_and_options,
          help_shows_a_noun_a_command_and_all,
          each_command_and_each_noun_has_a_page,
          man_shows_each_page_with_all_that_the_help_says,
          mandoc_finds_nothing_wrong_with_the_pages,
          the_page_of_the_api_lists_each_public_function_once_with_its_header])
