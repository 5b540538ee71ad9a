"""A program on a terminal of its own, for tests that type."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from shell import PATIENCE, children

CTRL_C = b'\x03'


class Terminal:
    """A program whose input and output are a terminal, which it is told of as its own: Ctrl-C reaches it."""

    def __init__(self, command, env):
        self.said = b''
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 200, 200, 0, 0))
        self.process = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, 'TERM': 'dumb', **env})
        children.append(self.process)
        os.close(theirs)

    def text(self):
        return self.said.decode(errors='replace')

    def take(self):
        """What it prints within a moment; False: nothing, or it has closed the terminal."""
        if not select.select([self.fd], [], [], 0.05)[0]:
            return False
        try:
            more = os.read(self.fd, 65536)
        except OSError:  # nobody has it open any more
            return False
        self.said += more
        return more != b''

    def wait_until(self, condition):
        """Take what it prints, until something holds."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until and self.process.poll() is None, self.text()
            self.take()

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self):
        """Take what it prints until it ends. Returns its exit code."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < until, self.text()
            self.take()
        while self.take():
            pass
        return self.process.returncode


class Shell(Terminal):
    """A shell whose key Ctrl-G writes the line that is being typed into a file, and empties the line."""

    def __init__(self, command, line_file, env):
        self.line_file = line_file
        super().__init__(command, {'INPUTRC': '/dev/null', **env})

    def complete(self, text):
        """What the line is after this text and the tab key."""
        if os.path.exists(self.line_file):
            os.remove(self.line_file)
        self.type(text.encode() + b'\t\x07')
        self.wait_until(lambda: os.path.exists(self.line_file))
        with open(self.line_file, encoding='utf-8') as file:
            return file.read()
