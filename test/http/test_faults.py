#!/usr/bin/env python3
"""Clients that are broken, slow, greedy or gone: bounded, answered as well as HTTP lets one, and of no harm to others."""
import json
import os
import socket
import ssl
import subprocess
import threading
import time

import server
from server import JSON, NDJSON, Server, customer, everything, parse, pawl, serve_shop, wait_until

HEAD = b'Host: localhost\r\nConnection: close\r\n'


def post(body, *headers, path=b'/v1/ws/7/commands', length=None):
    said = b''.join(header + b'\r\n' for header in headers) or b'Content-Type: application/json\r\n'
    return b'POST %s HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s' % (
        path, HEAD, said, len(body) if length is None else length, body)


def descriptors(s):
    return len(os.listdir(f'/proc/{s.process.pid}/fd'))


def unharmed(s):
    s.get('/health/live').expect(200)
    s.get('/health/ready').expect(200)


def what_is_not_http_is_refused_and_harms_nobody(folder):
    s = serve_shop(folder)
    wrong = (b'\0' * 100, b'\r\n' * 1000, b'GET\r\n\r\n', b'GET /\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'\x16\x03\x01\x02\x00\x01',
                 b'GET / HTTP/1.1\r\n\0: x\r\n\r\n', b'GET / HTTP/1.1\r\nno colon\r\n\r\n',
                 b'GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n',
                 b'POST /v1/ws/7/commands HTTP/1.1\r\n' + HEAD + b'Content-Length: -1\r\n\r\n',
                 b'POST /v1/ws/7/commands HTTP/1.1\r\n' + HEAD + b'Content-Length: 99999999999999999999999\r\n\r\n',
                 b'POST /v1/ws/7/commands HTTP/1.1\r\n' + HEAD + b'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
                 b'GET /%s HTTP/1.1\r\n' % (b'a' * 20000) + HEAD + b'\r\n',
                 b'GET / HTTP/1.1\r\nX: %s\r\n' % (b'a' * 100000) + HEAD + b'\r\n',
                 b''.join(b'X%d: y\r\n' % i for i in range(20000)).join((b'GET / HTTP/1.1\r\n', HEAD + b'\r\n')))

    def send_all():
        for data in wrong:
            answer = s.raw(data, shut=True)
            assert not answer or parse(answer).status >= 400, (data[:100], answer[:200])
            unharmed(s)
    send_all()
    before = descriptors(s)  # the stores' are among them, which are opened at leisure
    send_all()
    assert s.get('/v1/ws/7').json()['workspace_offset'] == 1
    wait_until(lambda: descriptors(s) <= before + 2)
    s.stop()


def a_target_that_is_too_long_is_refused_with_json(folder):
    s = serve_shop(folder)
    answer = parse(s.raw(b'GET /v1/ws?cursor=%s HTTP/1.1\r\n' % (b'1' * 13000) + HEAD + b'\r\n'))
    answer.expect(413)
    assert answer.error()['code'] == 'PAWL_ETOOBIG'
    s.stop()


def a_body_that_is_too_large_is_refused(folder):
    s = serve_shop(folder, env={'PAWL_BODY_BYTES': '100000'})
    answer = parse(s.raw(post(b' ' * 100001)))
    assert answer.expect(413).error()['where'] == '$header.Content-Length'
    # Declared, and never sent: it is not waited for.
    parse(s.raw(post(b'', length=10**15))).expect(413)
    # The client asks first.
    data = s.raw(post(b'', b'Content-Type: application/json', b'Expect: 100-continue', length=10**9))
    assert parse(data).status == 413 and b'100 Continue' not in data
    # In chunks, without a length: it is refused when it is too large, and cut off when it goes on and on.
    with s.connect() as connection:
        connection.sendall(b'POST /v1/ws/7/commands HTTP/1.1\r\n' + HEAD + b'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
        chunk = b'%x\r\n%s\r\n' % (10000, b' ' * 10000)
        for _ in range(12):
            connection.sendall(chunk)
        connection.sendall(b'0\r\n\r\n')
        parse(everything(connection)).expect(413)
    with s.connect() as connection:
        connection.sendall(b'POST /v1/ws/7/commands HTTP/1.1\r\n' + HEAD + b'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
        try:
            for _ in range(100000):
                connection.sendall(chunk)
            assert False, 'a gigabyte was taken'
        except OSError:
            pass
    unharmed(s)
    s.stop()


def deep_and_wide_bodies_are_refused_or_taken(folder):
    s = serve_shop(folder)
    deep = '{"command":"shop.AddCustomer","argument":' + '{"a":' * 50000 + '1' + '}' * 50000 + '}'
    s.post('/v1/ws/7/commands', deep).expect(400)
    s.put('/v1/schema', '[' * 3000000).expect(400)
    s.put('/v1/ws/9', '{"kind":' + '[' * 100000).expect(400)
    many = json.dumps({'command': 'shop.AddCustomer', 'records': [{'id': i + 1, 'type': 'shop.Customer', 'fields': {'name': 'x'}}
                                                                   for i in range(70000)]})
    assert s.post('/v1/ws/7/commands', many).status in (400, 413)
    unharmed(s)
    assert s.get('/v1/ws/7').json()['workspace_offset'] == 1
    s.stop()


def slow_clients_are_cut_off_and_others_do_not_notice(folder):
    """Headers and bodies that trickle in; each byte would keep an idle limit from ending them."""
    s = serve_shop(folder, env={'PAWL_RECEIVE': '1s', 'PAWL_IDLE': '1s'})
    begun = [b'G', b'GET /health/live HTTP/1.1\r\nX: ', post(b'', length=1000)]
    over = []

    def trickle(first):
        with s.connect() as connection:
            connection.settimeout(0.2)
            connection.sendall(first)
            while True:
                try:
                    connection.sendall(b' ')
                    if connection.recv(1) == b'':
                        break
                except socket.timeout:
                    continue
                except OSError:
                    break
        over.append(first)
    threads = [threading.Thread(target=trickle, args=(first,)) for first in begun for _ in range(5)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        began = time.monotonic()
        s.get('/health/live').expect(200)
        assert time.monotonic() - began < server.PATIENCE
    assert len(over) == 15
    unharmed(s)
    s.stop()


def a_slow_body_that_keeps_its_pace_is_taken(folder):
    s = serve_shop(folder, env={'PAWL_RECEIVE': '2s'})
    body = customer('x' * 60000).encode()
    with s.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = post(body)
        began = time.monotonic()
        for at in range(0, len(data), 6000):
            connection.sendall(data[at:at + 6000])
            wait_until(lambda at=at: time.monotonic() - began > at / 20000)  # 20 KB/s: three seconds
        parse(everything(connection)).expect(200)
    s.stop()


def a_client_that_has_said_everything_still_gets_its_answer(folder):
    """Half-closed: it sends no more, but reads."""
    s = serve_shop(folder)
    parse(s.raw(post(customer('Ada').encode()), shut=True)).expect(200)
    parse(s.raw(b'GET /v1/ws/7 HTTP/1.1\r\n' + HEAD + b'\r\n', shut=True)).expect(200)
    # One that ends in the middle of its body has sent nothing.
    s.raw(post(customer('Eve').encode(), length=1000), shut=True)
    unharmed(s)
    assert s.get('/v1/ws/7').json()['workspace_offset'] == 2
    s.stop()


def connections_beyond_the_bound_wait_for_others_to_go(folder):
    s = serve_shop(folder, env={'PAWL_CONNECTIONS': '8', 'PAWL_THREADS': '1'})
    held = []
    for _ in range(8):
        held.append(s.connect())
        held[-1].sendall(b'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert held[-1].recv(12) == b'HTTP/1.1 200'
    with s.connect() as ninth:
        ninth.sendall(b'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n')
        held.pop().close()
        assert ninth.recv(12) == b'HTTP/1.1 200'
    for connection in held:
        connection.close()
    wait_until(lambda: s.get('/health/live').status == 200)
    s.stop()


def a_stop_does_not_wait_for_those_who_do_not_take_their_answers(folder):
    s = serve_shop(folder, env={'PAWL_DRAIN': '1s'})
    s.post('/v1/ws/7/commands', ''.join(customer('x' * 1000) for _ in range(3000)), headers=NDJSON).expect(200)
    with s.connect() as lazy, s.connect() as half, s.connect() as idle:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.sendall(b'GET /v1/ws/7/records?type=shop.Customer&limit=3000 HTTP/1.1\r\n' + HEAD + b'\r\n')
        assert lazy.recv(12) == b'HTTP/1.1 200'
        half.sendall(post(b'', length=1000))
        idle.sendall(b'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert idle.recv(12) == b'HTTP/1.1 200'
        s.stop()


def memory_and_descriptors_stay_bounded(folder):
    s = serve_shop(folder)

    def rss():
        with open(f'/proc/{s.process.pid}/statm', encoding='ascii') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    def round_of_requests():
        for _ in range(100):
            s.raw(post(customer('Ada').encode()), shut=True)
            s.raw(b'GET /nowhere HTTP/1.1\r\n' + HEAD + b'\r\n')
        for _ in range(20):
            s.raw(post(b'{', length=100), shut=True)
    round_of_requests()
    before, fds = rss(), descriptors(s)
    round_of_requests()
    round_of_requests()
    wait_until(lambda: descriptors(s) <= fds + 2)
    assert rss() < before + (32 << 20), (before, rss())
    s.stop()


def speaks_tls_with_the_certificate_it_is_given(folder):
    cert, key = server.certificate(folder)
    s = serve_shop(folder, '--tls-cert', cert, '--tls-key', key)
    assert f'https://127.0.0.1:{s.port}' in s.ready
    context = ssl.create_default_context(cafile=cert)
    client = server.http.client.HTTPSConnection('localhost', s.port, timeout=server.PATIENCE, context=context)
    s.get('/health/live', client=client).expect(200)
    s.post('/v1/ws/7/commands', customer('Ada'), client=client).expect(200)
    s.get('/health/live', client=client, headers={'Origin': f'https://localhost:{s.port}'}).expect(200)
    s.get('/health/live', client=client, headers={'Origin': f'http://localhost:{s.port}'}).expect(403)
    client.close()
    assert not s.raw(b'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n').startswith(b'HTTP/1.1 200')
    s.over_unix('GET', '/health/live').expect(200)  # which needs none
    s.stop()
    with open(key, 'w', encoding='utf-8') as file:
        file.write('not a key')
    pawl('serve', '--dir', s.folder, '--listen', '127.0.0.1:0', '--tls-cert', cert, '--tls-key', key).expect(1, 'cannot start')


def without_a_token_nothing_is_answered_where_one_is_needed(folder):
    s = serve_shop(folder, '--tokens')
    for headers in ({}, {'Authorization': 'Bearer wrong'}, {'Authorization': 'Basic eDp5'}, {'Authorization': 'Bearer '}):
        for answer in (s.get('/v1/ws/7', headers=headers), s.post('/v1/ws/7/commands', customer('A'), headers={**JSON, **headers})):
            assert answer.expect(401).error()['code'] == 'PAWL_EACCES' and answer.headers['WWW-Authenticate'] == 'Bearer'
    s.get('/health/live').expect(200)
    s.get('/health/ready').expect(200)
    assert s.over_unix('GET', '/v1/ws/7').expect(200).json()['workspace_offset'] == 1
    s.stop()


if __name__ == '__main__':
    server.main([what_is_not_http_is_refused_and_harms_nobody,
                 a_target_that_is_too_long_is_refused_with_json,
                 a_body_that_is_too_large_is_refused,
                 deep_and_wide_bodies_are_refused_or_taken,
                 slow_clients_are_cut_off_and_others_do_not_notice,
                 a_slow_body_that_keeps_its_pace_is_taken,
                 a_client_that_has_said_everything_still_gets_its_answer,
                 connections_beyond_the_bound_wait_for_others_to_go,
                 a_stop_does_not_wait_for_those_who_do_not_take_their_answers,
                 memory_and_descriptors_stay_bounded,
                 speaks_tls_with_the_certificate_it_is_given,
                 without_a_token_nothing_is_answered_where_one_is_needed])
