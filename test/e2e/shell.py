"""What an end-to-end test needs: the real program, run as a user runs it. PAWL names it."""
import ctypes
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'tools'))
from tap import ROOT, Skip, children, main  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

PAWL = os.environ['PAWL']
STREAM = ['--stream', 'raw/0']
PATIENCE = 300  # seconds; a machine that others keep busy is slow, not broken


class Answer:
    """How a run ended, and what it said."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()

    def expect(self, code, *words):
        """Fail unless it ended with this code, and said these words."""
        said = self.out[-1000:] + self.err
        assert self.code == code, f'exit code {self.code}, expected {code}: {said}'
        for word in words:
            assert word in self.out + self.err, f'{word!r} is not in {said!r}'
        return self

    def json(self):
        return json.loads(self.out)

    def lines(self):
        """Each line of its output, as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    def error(self):
        """What it said on stderr, as JSON."""
        return json.loads(self.err)['error']


def pawl(*words, stdin=b'', env=None, **how):
    """Run it to its end."""
    where = {**os.environ, **(env or {})}
    if env is None:
        for name in ('PAWL_DIR', 'PAWL_URL', 'PAWL_TOKEN'):
            where.pop(name, None)
    return Answer(subprocess.run([PAWL, *words], input=stdin, capture_output=True, check=False, timeout=PATIENCE,
                                 env=where, **how))


def patiently(ask, *words):
    """Run it again as long as it times out: the program itself gives up after ten seconds."""
    until = time.monotonic() + PATIENCE
    while True:
        answer = ask(*words, '--json')
        if answer.code == 0 or answer.error()['code'] != 'PAWL_ETIMEOUT' or time.monotonic() > until:
            return answer


def start_program(*words, **how):
    """Start it, and leave it running; it does not outlive the case."""
    children.append(subprocess.Popen(words, **how))
    return children[-1]


def start(*words, **how):
    """The same with the program that is tested, and pipes."""
    return start_program(PAWL, *words, **{'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE,
                                          'stderr': subprocess.PIPE, **how})


def end(process, code):
    """No more input: it ends, with this code. Returns what it said that was not yet read."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, f'exit code {process.returncode}, expected {code}: {err.decode()}'
    return out.decode()


def append(folder, text, **how):
    return pawl('log', 'append', '--dir', folder, *STREAM, stdin=text.encode(), **how)


def read(folder, *more):
    return pawl('log', 'read', '--dir', folder, *STREAM, *more)


SHOP = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                    'examples', 'shop', 'shop.json')


# What verbs of the shop talk to: a directory (dir), a server at its URL (url), or a directory that is served (socket).
WHERE = os.environ.get('WHERE', 'dir')


def serve(folder, *options, **how):
    """Serve the directory. Returns the process, and its URL."""
    listen = [] if '--listen' in options else ['--listen', '127.0.0.1:0']
    server = start_program(PAWL, 'serve', '--dir', folder, *listen, *options,
                           **{'stdout': subprocess.PIPE, 'stderr': subprocess.DEVNULL, **how})
    ready = server.stdout.readline().decode()
    assert ' is served at ' in ready, ready
    return server, re.search(r'https?://[0-9.]+:[0-9]+', ready)[0]


def shop(folder, *wsids):
    """A directory with the shop's schema and these workspaces, as a function that runs a verb on it. Its `place` has the
    options that name where it is."""
    def verb(*words, **how):
        return pawl(*words, *verb.place, **how)
    verb.place = ['--dir', folder]
    verb('init', '--partitions', '4').expect(0)
    if WHERE != 'dir':
        _, url = serve(folder)
        verb.place = ['--url', url] if WHERE == 'url' else verb.place
    verb('schema', 'apply', SHOP).expect(0)
    for wsid in wsids:
        verb('ws', 'create', str(wsid), 'shop.tenant').expect(0)
    return verb


def customer(name, **more):
    """AddCustomer, as the line of a command."""
    record = {'id': 1, 'type': 'shop.Customer', 'fields': {'name': name}}
    return json.dumps({'command': 'shop.AddCustomer', 'records': [record], **more}) + '\n'


def order(who, cents, **more):
    """PlaceOrder of one line, with its invoice."""
    argument = {'id': 1, 'customer': who, 'cents': cents, 'lines': [{'id': 2, 'qty': 1, 'cents': cents}]}
    invoice = {'id': 3, 'type': 'shop.Invoice', 'fields': {'order': 1, 'customer': who, 'cents': cents}}
    return json.dumps({'command': 'shop.PlaceOrder', 'argument': argument, 'records': [invoice], **more}) + '\n'


def contents(folder):
    """{path: bytes} of everything below the folder, but for the lock."""
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            if name != 'lock':
                with open(path, 'rb') as file:
                    found[os.path.relpath(path, folder)] = file.read()
    return found


def segments(folder):
    return sorted(name for name in os.listdir(f'{folder}/journal') if name.endswith('.seg'))


def flip(path, at):
    with open(path, 'r+b') as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))


def fill(path):
    """Take all the room that is left."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(file, b'\0' * 4096):
            pass
    except OSError:
        pass
    os.close(file)


def small_disk(folder):
    """A file system of 64 MiB there, which only this process and its children see, and which goes with them."""
    new_mounts = 0x20000  # CLONE_NEWNS
    if ctypes.CDLL(None).unshare(new_mounts) != 0:
        raise Skip('not allowed to mount')
    for words in (['--make-rprivate', '/'], ['-t', 'tmpfs', '-o', 'size=64m', 'none', folder]):
        if subprocess.run(['mount', *words], check=False, stderr=subprocess.DEVNULL).returncode:
            raise Skip('not allowed to mount')
