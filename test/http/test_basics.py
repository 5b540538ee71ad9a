#!/usr/bin/env python3
"""`pawl serve`: it begins, answers, refuses and ends as docs/HTTP.md says."""
import json
import os
import re
import signal
import socket
import stat
import subprocess

import server
from server import JSON, PAWL, Server, customer, everything, parse, pawl, serve_shop, shop, wait_until


def says_where_it_is_and_that_it_lives(folder):
    s = serve_shop(folder)
    assert s.ready == f'{folder}/data is served at http://127.0.0.1:{s.port} and {folder}/data/pawl.sock\n', s.ready
    assert s.get('/health/live').expect(200).json() == {'live': True}
    ready = s.get('/health/ready').expect(200).json()
    assert ready['ready'] and ready['partitions'] == ready['partitions_ready'] == 4, ready
    s.stop()
    lines = [json.loads(line) for line in s.said().splitlines()]
    assert [line['message'] for line in lines] == ['listening', 'stopped'], lines
    assert lines[0]['level'] == 'info' and lines[0]['url'] == f'http://127.0.0.1:{s.port}'


def sends_a_command_and_answers_as_the_program_does(folder):
    s = serve_shop(folder)
    answer = s.post('/v1/ws/7/commands', customer('Ada')).expect(200)
    assert answer.headers['Content-Type'] == 'application/json'
    tree = answer.json()
    assert tree['workspace_offset'] == 2 and tree['ids'], tree
    assert answer.headers['Pawl-Offset'] == str(tree['offset'])
    s.stop()
    said = pawl('record', 'get', '7', str(tree['ids']['1']), '--dir', f'{folder}/data').expect(0).json()
    assert said['fields']['name'] == 'Ada', said


def an_idempotency_key_gives_the_first_answer_again(folder):
    s = serve_shop(folder)
    key = {**JSON, 'Idempotency-Key': 'till-3/42'}
    first = s.post('/v1/ws/7/commands', customer('Ada'), headers=key).expect(200).json()
    again = s.post('/v1/ws/7/commands', customer('Ada'), headers=key).expect(200).json()
    assert again.pop('repeated') is True and again == first, (first, again)
    assert s.post('/v1/ws/7/commands', customer('Eve'), headers=key).expect(409).error()['code'] == 'PAWL_ECONFLICT'
    s.post('/v1/ws/7/commands', customer('Ada', idempotency_key='till-3/42'), headers=key).expect(200, '"repeated":true')
    other = s.post('/v1/ws/7/commands', customer('Ada', idempotency_key='x'), headers=key).expect(400).error()
    assert other['where'] == '$header.Idempotency-Key', other
    s.post('/v1/ws/7/commands', customer('Ada'), headers={**JSON, 'Idempotency-Key': 'k' * 256}).expect(413)
    s.post('/v1/ws/7/commands?ack=durable', customer('Bea')).expect(200)
    s.stop()


def refused_commands_say_what_and_where(folder):
    s = serve_shop(folder)
    for path, body, status, code, where in (
            ('/v1/ws/7/commands', '{', 400, 'PAWL_EINVAL', 'line 1, column 1'),
            ('/v1/ws/7/commands', '', 400, 'PAWL_EINVAL', None),
            ('/v1/ws/7/commands', '[]', 400, 'PAWL_EINVAL', '$'),
            ('/v1/ws/7/commands', '[' * 100000, 400, 'PAWL_EINVAL', None),
            ('/v1/ws/7/commands', b'{"command":"\xff"}', 400, 'PAWL_EINVAL', None),
            ('/v1/ws/7/commands', {'command': 'shop.No'}, 404, 'PAWL_ENOTFOUND', '$.command'),
            ('/v1/ws/7/commands', json.loads(customer(7)), 400, 'PAWL_EINVAL', '$.records[0].fields.name'),
            ('/v1/ws/7/commands', customer('Ada', expected_offset=99), 409, 'PAWL_ECONFLICT', None),
            ('/v1/ws/8/commands', customer('Ada'), 404, 'PAWL_ENOTFOUND', None),
            ('/v1/ws/0/commands', customer('Ada'), 400, 'PAWL_EINVAL', '$path.wsid'),
            ('/v1/ws/x/commands', customer('Ada'), 400, 'PAWL_EINVAL', '$path.wsid'),
            ('/v1/ws/18446744073709551616/commands', customer('Ada'), 400, 'PAWL_EINVAL', '$path.wsid'),
            ('/v1/ws/7/commands?ack=no', customer('Ada'), 400, 'PAWL_EINVAL', '$query.ack'),
            ('/v1/ws/7/commands?ack=applied&ack=durable', customer('Ada'), 400, 'PAWL_EINVAL', '$query.ack'),
            ('/v1/ws/7/commands?axk=durable', customer('Ada'), 400, 'PAWL_EINVAL', '$query.axk')):
        error = s.post(path, body).expect(status).error()
        assert error['code'] == code, (path, body, error)
        if where:
            assert error.get('where') == where, (path, body, error)
    s.stop()
    assert pawl('ws', 'show', '7', '--json', '--dir', f'{folder}/data').json()['workspace_offset'] == 1


def refuses_what_is_not_there_and_wrong_methods_and_types(folder):
    s = serve_shop(folder)
    client = s.client()  # one connection: a refusal does not end it
    s.get('/nowhere', client=client).expect(404).error()
    s.get('/v1', client=client).expect(404).error()
    answer = s.get('/v1/ws/7/commands', client=client).expect(405)
    assert answer.headers['Allow'] == 'POST' and answer.error()['code'] == 'PAWL_EINVAL'
    answer = s.post('/health/live', client=client).expect(405)
    assert answer.headers['Allow'] == 'GET, HEAD'
    s.ask('OPTIONS', '/health/live', client=client).expect(405)
    s.ask('BREW', '/health/live', client=client).expect(405)
    for kind in ('text/plain', 'application/x-www-form-urlencoded', ''):
        error = s.post('/v1/ws/7/commands', customer('A'), headers={'Content-Type': kind}, client=client).expect(415).error()
        assert error['where'] == '$header.Content-Type'
    answer = s.ask('HEAD', '/health/live', client=client).expect(200)
    assert answer.body == b'' and answer.headers['Content-Length'] == '14'
    s.get('/health/live', client=client).expect(200)
    s.stop()


def no_path_leads_anywhere_else(folder):
    s = serve_shop(folder)
    for target in ('/..', '/../etc/passwd', '/health/../health/live', '/health/%2e%2e/live', '/health%2Flive',
                   '/health/live%00', '/health//live', '/health/live/', '//health/live', '/health/li%76e%', '/%5c..%5c',
                   '/health/live?a=%zz', 'http://127.0.0.1/health/live', '*'):
        answer = parse(s.raw(f'GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'.encode()))
        assert answer.status == 400, (target, answer.status)
    answer = parse(s.raw(b'GET /health/li%76e HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'))
    answer.expect(200)
    s.stop()


def every_answer_tells_browsers_to_keep_their_hands_off(folder):
    s = serve_shop(folder)
    for answer in (s.get('/health/live'), s.get('/nowhere'), s.post('/v1/ws/7/commands', '{')):
        assert answer.headers['X-Content-Type-Options'] == 'nosniff'
        assert "default-src 'none'" in answer.headers['Content-Security-Policy']
        assert 'Access-Control-Allow-Origin' not in answer.headers
    s.stop()


def refuses_foreign_hosts_and_origins(folder):
    s = serve_shop(folder, '--host', 'shop.example', '--host', 'pawl.local')
    here = f'127.0.0.1:{s.port}'
    for host, origin, status in ((here, None, 200), ('localhost', None, 200), ('shop.example:99', None, 200),
                                 ('PAWL.local', None, 200), ('[::1]:7', None, 200), ('evil.example', None, 421),
                                 ('shop.example.evil.com', None, 421), (here, f'http://{here}', 200),
                                 (here, 'http://evil.example', 403), (here, 'null', 403), (here, f'https://{here}', 403),
                                 ('shop.example', 'http://shop.example', 200)):
        answer = s.get('/health/live', headers={'Host': host, **({'Origin': origin} if origin else {})})
        assert answer.status == status, (host, origin, answer.status)
        if status != 200:
            assert answer.error()['code'] == 'PAWL_EACCES'
    parse(s.raw(b'GET /health/live HTTP/1.0\r\n\r\n')).expect(400)
    s.stop()


def the_unix_socket_is_the_owners_and_needs_no_host(folder):
    s = serve_shop(folder)
    mode = os.stat(s.socket_path).st_mode
    assert stat.S_ISSOCK(mode) and mode & 0o777 == 0o600, oct(mode)
    s.over_unix('GET', '/health/live').expect(200)
    s.over_unix('POST', '/v1/ws/7/commands', customer('Ada')).expect(200)
    s.stop()
    assert not os.path.exists(s.socket_path)


def a_socket_that_a_killed_process_left_is_replaced(folder):
    s = serve_shop(folder)
    s.kill()
    assert os.path.exists(s.socket_path)
    s = Server(s.folder)
    s.over_unix('GET', '/health/live').expect(200)
    # Whoever does not get the directory does not touch the socket.
    pawl('serve', '--dir', s.folder, '--listen', '127.0.0.1:0').expect(5)
    s.over_unix('GET', '/health/live').expect(200)
    s.stop()


def a_path_may_be_longer_than_a_sockets_address(folder):
    deep = os.path.join(folder, *['d' * 50] * 6)
    os.makedirs(deep)
    s = Server(shop_in(deep))
    assert len(s.socket_path) > 300
    s.over_unix('GET', '/health/live').expect(200)
    s.stop()
    assert not os.path.exists(s.socket_path)


def shop_in(folder):
    data = os.path.join(folder, 'data')
    shop(data, 7)
    return data


def something_else_under_the_sockets_name_is_not_touched(folder):
    data = shop_in(folder)
    with open(f'{data}/pawl.sock', 'w', encoding='utf-8') as file:
        file.write('mine')
    pawl('serve', '--dir', data, '--listen', '127.0.0.1:0').expect(1, 'is not a socket')
    with open(f'{data}/pawl.sock', encoding='utf-8') as file:
        assert file.read() == 'mine'


def refuses_to_be_open_to_the_world(folder):
    data = shop_in(folder)
    for address in ('0.0.0.0:0', '[::]:0'):
        error = pawl('serve', '--dir', data, '--listen', address, '--json').expect(1).error()
        assert error['code'] == 'PAWL_EACCES' and 'TLS' in error['message'], error
    s = Server(data, '--listen', '0.0.0.0:0', '--insecure')
    assert 'http://0.0.0.0:' in s.ready
    s.stop()


def wrong_settings_are_named(folder):
    data = shop_in(folder)
    for words, code, said in ((('--listen', '127.0.0.1'), 1, 'HOST:PORT'), (('--listen', '::1:80'), 1, 'HOST:PORT'),
                              (('--listen', '127.0.0.1:65536'), 1, 'HOST:PORT'), (('--tls-cert', 'x'), 1, 'together'),
                              (('--tls-cert', '/no', '--tls-key', '/no'), 1, '/no'),
                              (('--log-level', 'loud'), 2, '--log-level'), (('--slow', '5'), 2, '--slow'),
                              (('--config', '/no/file'), 2, '/no/file')):
        pawl('serve', '--dir', data, *words).expect(code, said)
    pawl('serve').expect(2, '--dir')
    pawl('serve', '--dir', f'{folder}/nothing').expect(1, 'pawl init')
    with Server(data).connect() as taken:
        port = taken.getpeername()[1]
        other = os.path.join(folder, 'other')
        pawl('init', '--dir', other).expect(0)
        pawl('serve', '--dir', other, '--listen', f'127.0.0.1:{port}').expect(1, 'something else does')


def settings_come_from_file_environment_and_options_in_this_order(folder):
    data = shop_in(folder)
    config = os.path.join(folder, 'pawl.conf')
    with open(config, 'w', encoding='utf-8') as file:
        file.write(f'# settings\ndir = {data}\nlisten=127.0.0.1:0\n\nhost = from.file # a name\nhost = second.file\n'
                   'log-level = debug\nbody-bytes = 2048\n')

    def run(*options, env=None):
        process = server.start_program(PAWL, 'serve', '--config', config, *options, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        s = Server.__new__(Server)
        s.process, s.folder = process, data
        line = process.stdout.readline().decode()
        s.port = int(line.split('127.0.0.1:')[1].split()[0])
        s.said = lambda: ''
        return s

    def hosts(s):
        return [name for name in ('from.file', 'second.file', 'from.env', 'from.option')
                if s.get('/health/live', headers={'Host': name}).status == 200]
    s = run()
    assert hosts(s) == ['from.file', 'second.file']
    s.post('/v1/ws/7/commands', ' ' * 2049).expect(413)
    s.stop()
    s = run(env={'PAWL_HOST': 'from.env', 'PAWL_BODY_BYTES': '4096'})
    assert hosts(s) == ['from.env']
    s.post('/v1/ws/7/commands', ' ' * 2049).expect(400)
    s.stop()
    s = run('--host', 'from.option', env={'PAWL_HOST': 'from.env'})
    assert hosts(s) == ['from.option']
    s.stop()
    for line, said in (('lisen = x', "no setting 'lisen'"), ('listen', 'NAME = VALUE'), ('threads = 0', 'at least 1'),
                       ('insecure = maybe', 'true or false'), ('idle = 3', 'duration')):
        with open(config, 'w', encoding='utf-8') as file:
            file.write(f'\n{line}\n')
        pawl('serve', '--config', config, '--dir', data).expect(2, f'{config}, line 2', said)


def tells_systemd_when_it_is_ready(folder):
    data = shop_in(folder)
    path = os.path.join(folder, 'notify')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        box.bind(path)
        box.settimeout(server.PATIENCE)
        s = Server(data, env={'NOTIFY_SOCKET': path})
        assert box.recv(100) == b'READY=1'
        s.stop()
        assert box.recv(100) == b'STOPPING=1'


def ends_by_either_signal_and_leaves_a_clean_directory(folder):
    data = shop_in(folder)
    for number in (signal.SIGINT, signal.SIGTERM):
        s = Server(data)
        s.post('/v1/ws/7/commands', customer('Ada')).expect(200)
        s.stop(number)
    pawl('verify', '--dir', data).expect(0)


def many_requests_in_one_connection_are_answered_in_order(folder):
    s = serve_shop(folder)
    body = customer('Ada').encode()
    one = (b'POST /v1/ws/7/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
           b'Content-Length: %d\r\n\r\n' % len(body)) + body
    last = b'GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    data = s.raw(one * 50 + last)
    offsets = [json.loads(line)['workspace_offset'] for line in data.decode().split('\r\n\r\n')
               for line in line.splitlines() if line.startswith('{"partition"')]
    assert offsets == list(range(2, 52)), offsets
    assert data.endswith(b'{"live":true}\n')
    s.stop()


def the_manual_has_every_route_and_no_other(folder):
    with open(os.path.join(server.ROOT, 'src/http/routes/routes.c'), encoding='utf-8') as file:
        routes = {f'{method} {pattern}' for method, pattern in re.findall(r'{METHOD_(\w+), "([^"]+)"', file.read())}
    with open(os.path.join(server.ROOT, 'docs/HTTP.md'), encoding='utf-8') as file:
        told = {route.split('?')[0] for route in re.findall(r'^\| `((?:GET|POST|PUT|DELETE) [^`]+)` \|', file.read(), re.MULTILINE)}
    assert len(routes) > 10 and told == routes, sorted(told ^ routes)


if __name__ == '__main__':
    server.main([says_where_it_is_and_that_it_lives,
                 sends_a_command_and_answers_as_the_program_does,
                 an_idempotency_key_gives_the_first_answer_again,
                 refused_commands_say_what_and_where,
                 refuses_what_is_not_there_and_wrong_methods_and_types,
                 no_path_leads_anywhere_else,
                 every_answer_tells_browsers_to_keep_their_hands_off,
                 refuses_foreign_hosts_and_origins,
                 the_unix_socket_is_the_owners_and_needs_no_host,
                 a_socket_that_a_killed_process_left_is_replaced,
                 a_path_may_be_longer_than_a_sockets_address,
                 something_else_under_the_sockets_name_is_not_touched,
                 refuses_to_be_open_to_the_world,
                 wrong_settings_are_named,
                 settings_come_from_file_environment_and_options_in_this_order,
                 tells_systemd_when_it_is_ready,
                 ends_by_either_signal_and_leaves_a_clean_directory,
                 many_requests_in_one_connection_are_answered_in_order,
                 the_manual_has_every_route_and_no_other])
