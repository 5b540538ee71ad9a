"""A client of server-sent events, on a raw socket, for tests of streams."""
import json
import socket
import time

from server import PATIENCE


class Stream:
    """GET of a stream. Reads blocks as they come: each has the fields id, event and data, if it has them."""

    def __init__(self, s, path, last=None, buffer=None, headers=''):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(('127.0.0.1', s.port))
        more = f'Last-Event-ID: {last}\r\n' if last is not None else ''
        self.socket.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{more}{headers}\r\n'
                            .encode())
        self.raw = b''
        self.text = b''
        self.ended = False
        self.beats = 0
        self.head = None

    def open(self):
        """Wait for the headers; returns self."""
        while b'\r\n\r\n' not in self.raw:
            more = self.socket.recv(65536)
            assert more, self.raw
            self.raw += more
        head, _, self.raw = self.raw.partition(b'\r\n\r\n')
        self.head = head.decode()
        assert self.head.startswith('HTTP/1.1 200 '), self.head + self.raw.decode(errors='replace')
        assert 'Content-Type: text/event-stream' in self.head, self.head
        return self

    def _unchunk(self):
        while True:
            size, found, rest = self.raw.partition(b'\r\n')
            if not found:
                return
            count = int(size, 16)
            if len(rest) < count + 2:
                return
            self.text += rest[:count]
            self.raw = rest[count + 2:]
            if count == 0:
                self.ended = True
                return

    def block(self):
        """The next block with data; None: the stream has ended."""
        if self.head is None:
            self.open()
        while True:
            self._unchunk()
            while b'\n\n' in self.text:
                text, _, self.text = self.text.partition(b'\n\n')
                fields = dict(line.split(': ', 1) for line in text.decode().split('\n') if not line.startswith(':'))
                if text == b':':
                    self.beats += 1
                if 'data' in fields:
                    return fields
            if self.ended:
                return None
            more = self.socket.recv(1 << 20)
            if not more:
                raise ConnectionResetError('it was cut')
            self.raw += more

    def event(self):
        fields = self.block()
        assert fields is not None and 'event' not in fields, fields
        return json.loads(fields['data'])

    def events(self, count):
        return [self.event() for _ in range(count)]

    def wait_beat(self):
        """Until a comment line has come."""
        until = time.monotonic() + PATIENCE
        if self.head is None:
            self.open()
        while b':\n\n' not in self.text:
            assert time.monotonic() < until
            self.raw += self.socket.recv(65536)
            self._unchunk()

    def close(self):
        self.socket.close()
