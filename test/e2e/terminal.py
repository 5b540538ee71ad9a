"""A shell on a terminal of its own, for tests that type."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from shell import PATIENCE, children


class Terminal:
    """A shell whose key Ctrl-G writes the line that is being typed into a file, and empties the line."""

    def __init__(self, command, line_file, env):
        self.line_file, self.said = line_file, b''
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 200, 200, 0, 0))
        self.shell = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                                      env={**os.environ, 'TERM': 'dumb', 'INPUTRC': '/dev/null', **env})
        children.append(self.shell)
        os.close(theirs)

    def wait_until(self, condition):
        """Take what the shell prints, until something holds."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until and self.shell.poll() is None, self.said.decode(errors='replace')
            if select.select([self.fd], [], [], 0.05)[0]:
                self.said += os.read(self.fd, 65536)

    def complete(self, text):
        """What the line is after this text and the tab key."""
        if os.path.exists(self.line_file):
            os.remove(self.line_file)
        os.write(self.fd, text.encode() + b'\t\x07')
        self.wait_until(lambda: os.path.exists(self.line_file))
        with open(self.line_file, encoding='utf-8') as file:
            return file.read()
