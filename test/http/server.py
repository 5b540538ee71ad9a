"""What a test of the server needs: a real `pawl serve` process, requests by curl's rules, and raw sockets."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
from shell import ROOT, PATIENCE, PAWL, SHOP, customer, main, order, pawl, shop, start_program  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

JSON = {'Content-Type': 'application/json'}
NDJSON = {'Content-Type': 'application/x-ndjson'}


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def expect(self, status, *words):
        text = self.body.decode(errors='replace')
        assert self.status == status, f'{self.status}, expected {status}: {text[:1000]}'
        for word in words:
            assert word in text, f'{word!r} is not in {text[:1000]!r}'
        return self

    def json(self):
        return json.loads(self.body)

    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]

    def error(self):
        """The error of a failure, which has the one shape that all have."""
        tree = self.json()
        assert list(tree) == ['error'], tree
        assert set(tree['error']) <= {'code', 'message', 'where'} and tree['error']['code'].startswith('PAWL_E'), tree
        return tree['error']

    def next(self):
        return self.headers.get('Pawl-Next')


class Server:
    """A `pawl serve` process on a directory."""

    def __init__(self, folder, *options, env=None, socket_path=None):
        self.folder = folder
        self.log = os.path.join(os.path.dirname(folder.rstrip('/')), f'log-{time.monotonic_ns()}')
        with open(self.log, 'wb') as log:
            where = [] if '--listen' in options else ['--listen', '127.0.0.1:0']
            self.process = start_program(PAWL, 'serve', '--dir', folder, *where, *options,
                                         stdout=subprocess.PIPE, stderr=log, env={**os.environ, **(env or {})})
        self.ready = self.process.stdout.readline().decode()
        assert ' is served at ' in self.ready, f'{self.ready!r} {self.said()}'
        port = re.search(r'https?://127\.0\.0\.1:(\d+)', self.ready)
        self.port = int(port[1]) if port else None
        self.socket_path = socket_path or f'{folder}/pawl.sock'

    def said(self):
        with open(self.log, encoding='utf-8') as log:
            return log.read()

    def connect(self):
        """A raw connection."""
        return socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE)

    def client(self):
        """A connection for several requests."""
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)

    def ask(self, method, path, body=None, headers=None, client=None):
        connection = client or self.client()
        sent = dict(headers or {})
        if method in ('POST', 'PUT') and 'Content-Type' not in sent:
            sent.update(JSON)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, path, body=body.encode() if isinstance(body, str) else body, headers=sent)
        answer = connection.getresponse()
        result = Answer(answer.status, answer.headers, answer.read())
        if not client:
            connection.close()
        return result

    def get(self, path, **how):
        return self.ask('GET', path, **how)

    def post(self, path, body='', **how):
        return self.ask('POST', path, body, **how)

    def put(self, path, body='', **how):
        return self.ask('PUT', path, body, **how)

    def raw(self, data, shut=False):
        """Send bytes on a connection of their own, and return all that comes back until it is closed."""
        with self.connect() as connection:
            try:
                connection.sendall(data)
                if shut:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it was refused before it was read
            return everything(connection)

    def over_unix(self, method, path, body=None):
        """The same by the Unix socket, with curl, from the socket's own folder."""
        words = ['curl', '-s', '-i', '-X', method, '--unix-socket', os.path.basename(self.socket_path)]
        if body is not None:
            words += ['-H', 'Content-Type: application/json', '--data-binary', body]
        done = subprocess.run(words + [f'http://localhost{path}'], capture_output=True, check=True, timeout=PATIENCE,
                              cwd=os.path.dirname(self.socket_path))
        return parse(done.stdout)

    def stop(self, number=signal.SIGTERM, code=0):
        self.process.send_signal(number)
        self.process.stdout.read()
        assert self.process.wait(PATIENCE) == code, f'{self.process.returncode}: {self.said()}'

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)


def certificate(folder):
    """A certificate for localhost, and its key."""
    key, cert = f'{folder}/key.pem', f'{folder}/cert.pem'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2',
                    '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'], check=True, capture_output=True)
    return cert, key


def everything(connection):
    data = b''
    while True:
        try:
            more = connection.recv(65536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def parse(data):
    """The first answer of what a raw connection has received; its body must have a length, or be all that follows."""
    head, _, body = data.partition(b'\r\n\r\n')
    lines = head.decode().split('\r\n')
    status = int(re.match(r'HTTP/1\.[01] (\d{3}) ', lines[0] + ' ')[1])
    headers = http.client.HTTPMessage()
    for line in lines[1:]:
        name, _, value = line.partition(': ')
        headers[name] = value
    length = headers.get('Content-Length')
    return Answer(status, headers, body[:int(length)] if length else body)


def wait_until(condition):
    """Until it holds; a test that waits longer than PATIENCE fails."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, 'it does not happen'
        time.sleep(0.01)


def serve_shop(folder, *options, wsids=(7,), **how):
    """A directory with the shop, and a server on it."""
    data = os.path.join(folder, 'data')
    shop(data, *wsids)
    return Server(data, *options, **how)
