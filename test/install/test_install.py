#!/usr/bin/env python3
"""test_install.py BUILD COMPILER...: an installed libpawl has what its headers declare, and nothing else.

Installs the build into an empty folder and goes on as one who has only that: the compiler, pkg-config and the
installed files.
"""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../tools'))
import tap  # noqa: E402

BUILD, COMPILER = sys.argv[1], sys.argv[2:]
EXAMPLES = {
    'first': ['first.c'],
    'invoice_numbers': ['invoice_numbers.c'],
    'lease': ['lease.c'],
    'shop': sorted(os.path.basename(f) for f in glob.glob(os.path.join(tap.ROOT, 'examples/shop/*.c'))),
}
DECLARED = re.compile(r'\bPAWL_API\b[^;{]*?\b(pawl_\w+)\s*\(')


def run(command, **how):
    """What it prints; a command that fails fails the case."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
    assert done.returncode == 0, f'{command} ended with {done.returncode}:\n{done.stdout}'
    return done.stdout


class Installed:
    """The build, installed below a folder."""

    def __init__(self, folder):
        self.root = os.path.join(folder, 'root')
        run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', self.root])
        self.pc = self.only('**/pawl.pc')
        self.prefix = os.path.join(self.root, 'usr/local')
        self.libraries = os.path.dirname(self.only('**/libpawl.a'))
        self.environment = {**os.environ, 'PKG_CONFIG_PATH': os.path.dirname(self.pc),
                            'LD_LIBRARY_PATH': self.libraries}

    def only(self, pattern):
        found = glob.glob(os.path.join(self.root, pattern), recursive=True)
        assert len(found) == 1, f'{pattern}: {found}'
        return found[0]

    def flags(self, *options, package='pawl'):
        return run(['pkg-config', f'--define-variable=prefix={self.prefix}', *options, package],
                   env=self.environment).split()

    def headers(self):
        return sorted(glob.glob(os.path.join(self.prefix, 'include/pawl/*.h')))

    def compile(self, compiler, sources, output, static=False, package='pawl'):
        libraries = self.flags('--libs', package=package)
        if static:  # Pawl alone: what it needs is shared
            needed = {name for each in {'pawl', package} for name in self.flags('--print-requires-private', package=each)}
            libraries = [f'-l:lib{flag[2:]}.a' if flag.startswith('-lpawl') else flag for flag in libraries]
            libraries += run(['pkg-config', '--libs', *sorted(needed - {'pawl'})]).split()
        run([*compiler, '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter',
             '-Wno-missing-field-initializers', *self.flags('--cflags'), *sources, '-o', output, '-pthread', *libraries])


def symbols(library, *options):
    lines = run(['nm', '--defined-only', '--extern-only', *options, library]).splitlines()
    names = {line.split()[-1].split('@')[0] for line in lines if len(line.split()) == 3}
    return names - {'PAWL_0', 'PAWL_SERVE_0'}


def declared(headers):
    names = set()
    for header in headers:
        with open(header, encoding='utf-8') as text:
            names.update(DECLARED.findall(text.read()))
    return names


def headers_list_and_libraries_name_the_same_functions(folder):
    installed = Installed(folder)
    server = [header for header in installed.headers() if header.endswith('/serve.h')]
    others = [header for header in installed.headers() if header not in server]
    for name, headers, least in (('libpawl', others, 100), ('libpawl-serve', server, 5)):
        expected = declared(headers)
        with open(os.path.join(tap.ROOT, f'src/{name}.map'), encoding='utf-8') as text:
            listed = set(re.findall(r'^\s+(pawl_\w+);$', text.read(), re.MULTILINE))
        assert len(expected) >= least
        assert listed == expected, f'{name}.map differs from the headers in {sorted(listed ^ expected)}'
        for library, options in ((f'{name}.so', ['-D']), (f'{name}.a', [])):
            seen = symbols(os.path.join(installed.libraries, library), *options)
            assert seen == expected, f'{library} differs from the headers in {sorted(seen ^ expected)}'


def all_public_headers_are_installed_and_each_compiles_alone(folder):
    installed = Installed(folder)
    names = [os.path.basename(header) for header in installed.headers()]
    source = sorted(os.path.basename(f) for f in glob.glob(os.path.join(tap.ROOT, 'include/pawl/*.h')))
    assert names == source, f'{names} are installed, {source} are there'
    for name in names:
        run([*COMPILER, '-std=c11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-fsyntax-only', '-x', 'c',
             *installed.flags('--cflags'), '-'], input=f'#include <pawl/{name}>\n')


def the_examples_build_against_the_shared_and_the_static_library(folder):
    installed = Installed(folder)
    for static in (False, True):
        for name, sources in EXAMPLES.items():
            place = os.path.join(tap.ROOT, 'examples', 'shop' if name == 'shop' else '')
            installed.compile([*COMPILER, '-DSHOP_SERVES'] if name == 'shop' else COMPILER,
                              [os.path.join(place, source) for source in sources], os.path.join(folder, name), static,
                              'pawl-serve' if name == 'shop' else 'pawl')
        for number in (1, 2):
            said = run([os.path.join(folder, 'first'), os.path.join(folder, f'store-{static}')],
                       env=installed.environment)
            assert said == f'invoice {number}\n', said


def a_program_in_cplusplus_sees_every_header_and_links(folder):
    installed = Installed(folder)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'headers.cc')
    with open(source, encoding='utf-8') as text:
        included = re.findall(r'#include <pawl/(\w+\.h)>', text.read())
    assert included == [os.path.basename(header) for header in installed.headers()]
    program = os.path.join(folder, 'headers')
    installed.compile(['g++', '-std=c++17'], [source], program)
    assert run([program], env=installed.environment).startswith('pawl ')


def the_program_and_the_package_say_the_version(folder):
    installed = Installed(folder)
    version = run(['pkg-config', '--modversion', 'pawl'], env=installed.environment).strip()
    said = run([os.path.join(installed.prefix, 'bin/pawl'), '--version'], env=installed.environment)
    assert re.fullmatch(rf'pawl {re.escape(version)} \(commit [^)]+\)\nformats: directory \d+, journal \d+, .*\n', said), said
    with open(os.path.join(installed.prefix, 'include/pawl/version.h'), encoding='utf-8') as text:
        number = int(re.search(r'PAWL_VERSION_NUMBER (\d+)', text.read()).group(1))
    major, minor, patch = (int(part) for part in version.split('.'))
    assert number == 10000 * major + 100 * minor + patch


def the_program_runs_where_it_is_installed_and_finds_its_own_library(folder):
    """Without help from the environment, below a DESTDIR that no path of the build names, and moved since."""
    plain = {name: value for name, value in os.environ.items() if name != 'LD_LIBRARY_PATH'}
    installed = Installed(folder)
    moved = os.path.join(folder, 'moved')
    os.rename(installed.prefix, moved)
    program = os.path.join(moved, 'bin/pawl')
    assert run([program, '--version'], env=plain).startswith('pawl ')
    library = re.search(r'libpawl\.so\.0 => (\S+)', run(['ldd', program], env=plain))
    assert library and os.path.realpath(library[1]).startswith(os.path.realpath(moved) + '/'), library
    data = os.path.join(folder, 'data')
    run([program, 'init', '--dir', data], env=plain)
    run([program, 'verify', '--dir', data], env=plain)


def man_and_the_shells_find_what_is_theirs(folder):
    installed = Installed(folder)
    share = os.path.join(installed.prefix, 'share')
    pages = {os.path.basename(page) for page in glob.glob(f'{share}/man/man1/*')}
    assert {'pawl.1', 'pawl-log.1', 'pawl-log-append.1'} <= pages and len(pages) > 50, pages
    found = run(['man', '-M', f'{share}/man', '-w', 'pawl-view-create']).strip()
    assert found == f'{share}/man/man1/pawl-view-create.1', found
    program = os.path.join(installed.prefix, 'bin/pawl')
    for shell, path in (('bash', 'bash-completion/completions/pawl'), ('zsh', 'zsh/site-functions/_pawl')):
        with open(os.path.join(share, path), encoding='utf-8') as script:
            assert script.read() == run([program, 'completion', shell], env=installed.environment), path
        run([shell, '-n', os.path.join(share, path)])


if __name__ == '__main__':
    tap.main([headers_list_and_libraries_name_the_same_functions,
              all_public_headers_are_installed_and_each_compiles_alone,
              the_examples_build_against_the_shared_and_the_static_library,
              a_program_in_cplusplus_sees_every_header_and_links,
              the_program_and_the_package_say_the_version,
              the_program_runs_where_it_is_installed_and_finds_its_own_library,
              man_and_the_shells_find_what_is_theirs])
