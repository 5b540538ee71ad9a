#!/usr/bin/env python3
"""test_deb.py BUILD COMPILER...: the Debian packages, made by tools/deb and used in a clean root of Debian 12.

The root is made once by debootstrap, from the mirror that this machine's apt uses, and kept in build/debian; each
case works in a copy. Only making it needs a network.
"""
import contextlib
import glob
import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../tools'))
import tap  # noqa: E402

COMPILER = sys.argv[1:]
KEPT = os.path.join(tap.ROOT, 'build/debian')
VERSIONS = ('1.0-1', '1.0-2')
PACKAGES = ('libpawl0', 'libpawl-serve0', 'libpawl-dev', 'pawl')
SHOP = os.path.join(tap.ROOT, 'examples/shop/shop.json')
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
PATIENCE = 300  # seconds; a machine that others keep busy is slow, not broken
built = {}


def run(command, **how):
    """What it prints; a command that fails fails the case."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
    assert done.returncode == 0, f'{command} ended with {done.returncode}:\n{done.stdout}'
    return done.stdout


def packages(version):
    """{package: its file}, made by the first case that asks."""
    if version not in built:
        place = os.path.join(KEPT, version)
        shutil.rmtree(place, ignore_errors=True)
        run([os.path.join(tap.ROOT, 'tools/deb'), '--version', version, '--to', place])
        built[version] = {name: glob.glob(f'{place}/{name}_{version}_*.deb')[0] for name in PACKAGES}
    return built[version]


def field(package, name):
    return run(['dpkg-deb', '--field', package, name]).strip()


def contents(package):
    """{path: (mode, owner)}, without folders."""
    lines = run(['dpkg-deb', '--contents', package]).splitlines()
    parts = [line.split(None, 5) for line in lines]
    return {part[5].split(' -> ')[0][1:]: (part[0], part[1]) for part in parts if part[0][0] != 'd'}


def needed(package):
    """The packages that it depends on, without those that are made here."""
    names = {re.match(r'[a-z0-9.+-]+', part)[0] for part in field(package, 'Depends').split(', ')}
    return names - set(PACKAGES)


# The clean root

def mirror():
    """(address, suite) that apt gets Debian's own packages from."""
    for line in run(['apt-get', 'indextargets', '--format', '$(SITE) $(CODENAME) $(COMPONENT) $(ORIGIN)',
                     'Created-By: Packages']).splitlines():
        words = line.split()
        if words[1:] == ['bookworm', 'main', 'Debian']:
            return words[0]
    raise tap.Skip("this machine's apt does not get packages of Debian 12")


def clean_root():
    """The path of a minimal Debian with what the packages need and with man, but without them."""
    if os.geteuid() != 0:
        raise tap.Skip('only root may make a root and change into it')
    wanted = sorted({'man-db'}.union(*(needed(packages(VERSIONS[0])[name]) for name in ('libpawl0', 'libpawl-serve0', 'pawl'))))
    name = 'root-' + hashlib.sha256(' '.join(wanted).encode()).hexdigest()[:12]
    root = os.path.join(KEPT, name)
    if not os.path.isdir(root):
        for old in glob.glob(f'{KEPT}/root-*'):
            shutil.rmtree(old)
        run(['debootstrap', '--variant=minbase', f'--include={",".join(wanted)}', 'bookworm', f'{root}.new', mirror()])
        shutil.rmtree(f'{root}.new/var/cache/apt/archives')
        os.rename(f'{root}.new', root)
    return root


class Root:
    """A copy of the clean root."""

    def __init__(self, path):
        self.path = path

    def run(self, *command, code=0, **how):
        """What it prints, in the root; it must end with this code."""
        plain = {'PATH': PATH, 'LC_ALL': 'C.UTF-8', 'DEBIAN_FRONTEND': 'noninteractive', 'HOME': '/root',
                 'MANPAGER': 'cat'}
        done = subprocess.run(['chroot', self.path, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env=plain, **how)
        assert done.returncode == code, f'{command} ended with {done.returncode}:\n{done.stdout}'
        return done.stdout

    def has(self, path):
        return os.path.lexists(self.path + path)

    def read(self, path):
        with open(self.path + path, encoding='utf-8') as file:
            return file.read()

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path + path), exist_ok=True)
        with open(self.path + path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(self.path + path, mode)

    def install(self, version, *names):
        files = [packages(version)[name] for name in names]
        for file in files:
            shutil.copy(file, self.path + '/tmp')
        return self.run('dpkg', '--force-confold', '--install', *(f'/tmp/{os.path.basename(file)}' for file in files))


@contextlib.contextmanager
def root_copy():
    # Not below /tmp, which may be mounted without devices.
    path = os.path.join(KEPT, f'copy-{os.getpid()}')
    base = clean_root()
    try:
        run(['cp', '--archive', '--reflink=auto', base, path])
        yield Root(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def record_systemctl(root):
    """No systemd runs in the root. Its scripts are to believe that one does, and what they ask of it is written down."""
    root.write('/usr/local/bin/systemctl', '#!/bin/sh\necho "$*" >>/tmp/asked\n', 0o755)
    os.makedirs(root.path + '/run/systemd/system')


def asked(root):
    """What the scripts have asked of systemd since the last time."""
    said = root.read('/tmp/asked').splitlines() if root.has('/tmp/asked') else []
    root.write('/tmp/asked', '')
    return said


# The server in the clean root. It runs as soon as the program has the verb.

def the_server_runs_as_the_service_does(root):
    """Start what pawl.service starts, as its user, until it says that it is ready; then end it as systemd would."""
    line = re.search(r'^ExecStart=(.*)$', root.read('/usr/lib/systemd/system/pawl.service'), re.MULTILINE)[1].split()
    uid, gid = (int(part) for part in root.run('getent', 'passwd', 'pawl').split(':')[2:4])
    os.makedirs(root.path + '/var/lib/pawl', mode=0o700)
    os.chown(root.path + '/var/lib/pawl', uid, gid)
    for before in re.findall(r'^ExecStartPre=(.*)$', root.read('/usr/lib/systemd/system/pawl.service'), re.MULTILINE):
        run(['chroot', f'--userspec={uid}:{gid}', root.path, *shlex.split(before)], env={'PATH': PATH})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(root.path + '/run/notices')
        os.chmod(root.path + '/run/notices', 0o666)
        notices.settimeout(1)
        server = subprocess.Popen(['chroot', f'--userspec={uid}:{gid}', root.path, *line], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env={'PATH': PATH, 'NOTIFY_SOCKET': '/run/notices'})
        tap.children.append(server)
        said, until = b'', time.monotonic() + PATIENCE
        while b'READY=1' not in said:
            assert server.poll() is None and time.monotonic() < until, f'not ready: {said} {server.communicate()}'
            with contextlib.suppress(TimeoutError):
                said += notices.recv(4096) + b'\n'
        server.terminate()
        out, _ = server.communicate(timeout=PATIENCE)
        assert server.returncode == 0, f'it ended with {server.returncode}: {out.decode()}'
    root.run('pawl', 'verify', '--dir', '/var/lib/pawl')
    shutil.rmtree(root.path + '/var/lib/pawl')


# Cases

def each_file_is_in_the_package_that_it_belongs_to(folder):
    del folder
    found = {name: contents(file) for name, file in packages(VERSIONS[0]).items()}
    triplet = run(['dpkg-architecture', '--query', 'DEB_HOST_MULTIARCH']).strip()
    library = f'/usr/lib/{triplet}/libpawl'
    for name, paths in {
            'pawl': ['/usr/bin/pawl', '/usr/share/man/man1/pawl.1.gz', '/usr/share/man/man1/pawl-view-create.1.gz',
                     '/usr/share/bash-completion/completions/pawl', '/usr/share/zsh/vendor-completions/_pawl',
                     '/usr/lib/systemd/system/pawl.service', '/etc/pawl/pawl.conf'],
            'libpawl0': [f'{library}.so.0'],
            'libpawl-serve0': [f'{library}-serve.so.0'],
            'libpawl-dev': [f'{library}.so', f'{library}.a', f'/usr/lib/{triplet}/pkgconfig/pawl.pc',
                            '/usr/include/pawl/pawl.h', '/usr/include/pawl/view.h']}.items():
        for path in [*paths, f'/usr/share/doc/{name}/copyright', f'/usr/share/doc/{name}/changelog.gz']:
            assert path in found[name], f'{name} does not have {path}'
    for name, files in found.items():
        for path, (mode, owner) in files.items():
            assert owner == 'root/root' and mode[5] != 'w' and mode[8] != 'w' or mode[0] == 'l', (name, path, mode, owner)
            assert not any(path in files for other, files in found.items() if other != name), path
    headers = {path for path in found['libpawl-dev'] if path.startswith('/usr/include/')}
    assert len(headers) == len(glob.glob(os.path.join(tap.ROOT, 'include/pawl/*.h')))


def packages_depend_on_the_libraries_that_they_are_linked_with(folder):
    del folder
    made = packages(VERSIONS[0])
    assert f'libpawl0 (= {VERSIONS[0]})' in field(made['pawl'], 'Depends')
    assert f'libpawl0 (= {VERSIONS[0]})' in field(made['libpawl-dev'], 'Depends')
    assert {'libc6', 'libjansson4', 'adduser'} <= needed(made['pawl']), needed(made['pawl'])
    assert {'libc6', 'libjansson4', 'liblmdb0', 'librdkafka1', 'libuv1'} <= needed(made['libpawl0'])


def the_same_commit_gives_the_same_bytes(folder):
    run([os.path.join(tap.ROOT, 'tools/deb'), '--version', VERSIONS[0], '--to', folder])
    for name, file in packages(VERSIONS[0]).items():
        with open(file, 'rb') as first, open(os.path.join(folder, os.path.basename(file)), 'rb') as second:
            assert first.read() == second.read(), f'{name} differs'


def a_program_is_built_with_the_development_package(folder):
    for name in ('libpawl0', 'libpawl-dev'):
        run(['dpkg-deb', '--extract', packages(VERSIONS[0])[name], folder])
    pc = glob.glob(f'{folder}/usr/lib/*/pkgconfig')[0]
    environment = {**os.environ, 'PKG_CONFIG_PATH': pc, 'LD_LIBRARY_PATH': os.path.dirname(pc)}
    flags = run(['pkg-config', f'--define-variable=prefix={folder}/usr', '--cflags', '--libs', 'pawl'],
                env=environment).split()
    run([*COMPILER, os.path.join(tap.ROOT, 'examples/first.c'), *flags, '-o', f'{folder}/first'])
    assert run([f'{folder}/first', f'{folder}/store'], env=environment) == 'invoice 1\n'


def in_a_clean_root_the_program_works(folder):
    del folder
    with root_copy() as root:
        assert 'warning' not in root.install(VERSIONS[0], 'libpawl0', 'libpawl-serve0', 'pawl').lower()
        assert root.run('dpkg', '--audit') == root.run('dpkg', '--verify', 'pawl', 'libpawl-serve0', 'libpawl0') == ''
        assert root.run('pawl', '--version').startswith('pawl ')
        assert root.run('man', '-w', 'pawl').strip() == '/usr/share/man/man1/pawl.1.gz'
        assert 'wait until it is built' in root.run('man', 'pawl-view-create')
        assert 'pawl-log-append (1)' in root.run('apropos', '--exact', 'pawl-log-append')
        shutil.copy(SHOP, root.path + '/tmp/shop.json')
        here = ('--dir', '/tmp/store')
        root.run('pawl', 'init', *here)
        root.run('pawl', 'schema', 'apply', '/tmp/shop.json', *here)
        root.run('pawl', 'ws', 'create', '7', 'shop.tenant', *here)
        record = '{"id":1,"type":"shop.Customer","fields":{"name":"Ada"}}'
        root.run('pawl', 'command', '7', '--command', 'shop.AddCustomer', '--record', record, *here)
        assert '"Ada"' in root.run('pawl', 'record', 'list', '7', '--type', 'shop.Customer', *here)
        assert 'is sound' in root.run('pawl', 'verify', *here)
        offered = root.run('bash', '-c', 'source /usr/share/bash-completion/completions/pawl; '
                           'COMP_WORDS=(pawl view cr) COMP_CWORD=2; _pawl; echo "$COMPREPLY"')
        assert offered == 'create\n', offered
        if subprocess.run(['chroot', root.path, 'pawl', 'help', 'serve'], capture_output=True, check=False).returncode == 0:
            the_server_runs_as_the_service_does(root)


def an_upgrade_keeps_settings_and_data_and_only_a_purge_removes_them(folder):
    del folder
    with root_copy() as root:
        record_systemctl(root)
        root.install(VERSIONS[0], 'libpawl0', 'libpawl-serve0', 'pawl')
        name, _, uid, _, _, home, shell = root.run('getent', 'passwd', 'pawl').strip().split(':')
        assert (name, home, os.path.basename(shell)) == ('pawl', '/var/lib/pawl', 'nologin') and int(uid) < 1000
        assert asked(root) == ['daemon-reload'], 'an installation starts nothing'
        root.run('install', '-d', '-o', 'pawl', '-m', '700', '/var/lib/pawl')
        root.run('setpriv', '--reuid=pawl', '--regid=pawl', '--clear-groups', 'pawl', 'init', '--dir', '/var/lib/pawl/shop')
        root.write('/etc/pawl/pawl.conf', '# changed by its operator\n')

        root.install(VERSIONS[1], 'libpawl0', 'libpawl-serve0', 'pawl')
        assert root.run('dpkg-query', '--show', '--showformat=${Version}', 'pawl') == VERSIONS[1]
        assert asked(root) == ['daemon-reload', 'try-restart pawl.service']
        assert root.read('/etc/pawl/pawl.conf') == '# changed by its operator\n'
        assert root.run('getent', 'passwd', 'pawl').split(':')[2] == uid
        assert 'is sound' in root.run('pawl', 'verify', '--dir', '/var/lib/pawl/shop')

        root.run('dpkg', '--remove', 'pawl')
        assert asked(root) == ['stop pawl.service', 'daemon-reload']
        assert not root.has('/usr/bin/pawl') and not root.has('/usr/share/man/man1/pawl.1.gz')
        assert root.has('/etc/pawl/pawl.conf') and root.has('/var/lib/pawl/shop')
        root.run('getent', 'passwd', 'pawl')
        root.install(VERSIONS[1], 'pawl')
        assert 'is sound' in root.run('pawl', 'verify', '--dir', '/var/lib/pawl/shop')

        os.makedirs(root.path + '/etc/systemd/system/multi-user.target.wants', exist_ok=True)
        os.symlink('/usr/lib/systemd/system/pawl.service',
                   root.path + '/etc/systemd/system/multi-user.target.wants/pawl.service')
        root.run('dpkg', '--purge', 'pawl', 'libpawl-serve0', 'libpawl0')
        for path in ('/etc/pawl', '/var/lib/pawl', '/etc/systemd/system/multi-user.target.wants/pawl.service',
                     '/usr/lib/systemd/system/pawl.service'):
            assert not root.has(path), f'{path} is left'
        root.run('getent', 'passwd', 'pawl', code=2)
        assert 'pawl' not in root.run('dpkg-query', '--show', '--showformat=${Package}\n')


if __name__ == '__main__':
    os.makedirs(KEPT, exist_ok=True)
    tap.main([each_file_is_in_the_package_that_it_belongs_to,
              packages_depend_on_the_libraries_that_they_are_linked_with,
              the_same_commit_gives_the_same_bytes,
              a_program_is_built_with_the_development_package,
              in_a_clean_root_the_program_works,
              an_upgrade_keeps_settings_and_data_and_only_a_purge_removes_them])
