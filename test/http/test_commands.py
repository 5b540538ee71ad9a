#!/usr/bin/env python3
"""Many commands in one request, as NDJSON: answers in order, bounds, and clients that go away."""
import json
import os
import socket
import threading

import server
from server import NDJSON, Server, customer, everything, order, parse, pawl, serve_shop, wait_until


def lines_of(count, **more):
    return ''.join(customer(f'c{i}', **{name: value.format(i) for name, value in more.items()}) for i in range(count))


def answers_each_line_in_its_order(folder):
    s = serve_shop(folder)
    answer = s.post('/v1/ws/7/commands', lines_of(1000), headers=NDJSON).expect(200)
    assert answer.headers['Content-Type'] == 'application/x-ndjson'
    assert [line['workspace_offset'] for line in answer.lines()] == list(range(2, 1002))
    # The last line needs no newline, blank lines are nothing, and there may be no line at all.
    answer = s.post('/v1/ws/7/commands', '\n \r\n' + lines_of(3).rstrip('\n'), headers=NDJSON).expect(200)
    assert [line['workspace_offset'] for line in answer.lines()] == [1002, 1003, 1004]
    assert s.post('/v1/ws/7/commands', '', headers=NDJSON).expect(200).body == b''
    s.post('/v1/ws/7/commands?ack=durable', lines_of(3), headers=NDJSON).expect(200)
    s.stop()


def a_refused_line_is_answered_in_its_place(folder):
    s = serve_shop(folder)
    body = customer('a') + '{"command":\n' + '{"command":"shop.No"}\n\n' + customer('b') + customer('c', expected_offset=99)
    answer = s.post('/v1/ws/7/commands', body, headers=NDJSON).expect(200).lines()
    assert [line.get('workspace_offset') for line in answer] == [2, None, None, 3, None], answer
    assert [(line['line'], line['error']['code']) for line in answer if 'error' in line] == [
        (2, 'PAWL_EINVAL'), (3, 'PAWL_ENOTFOUND'), (6, 'PAWL_ECONFLICT')]
    s.stop()


def stops_at_the_first_refusal_if_it_is_told_to(folder):
    s = serve_shop(folder)
    body = customer('a') + '{"command":"shop.No"}\n' + customer('b')
    answer = s.post('/v1/ws/7/commands?stop_on_error=true', body, headers=NDJSON).expect(200).lines()
    assert len(answer) == 2 and answer[1]['line'] == 2, answer
    body = customer('a') + customer('b', expected_offset=1) + customer('c')
    answer = s.post('/v1/ws/7/commands?stop_on_error=true', body, headers=NDJSON).expect(200).lines()
    assert len(answer) == 2 and answer[1]['error']['code'] == 'PAWL_ECONFLICT', answer
    assert s.get('/v1/ws/7').json()['workspace_offset'] == 3
    s.post('/v1/ws/7/commands?stop_on_error=true', customer('a')).expect(400)
    s.stop()


def a_batch_has_bounds(folder):
    s = serve_shop(folder, env={'PAWL_BATCH_LINES': '5', 'PAWL_BODY_BYTES': '1024'})
    answer = s.post('/v1/ws/7/commands', lines_of(9), headers=NDJSON).expect(200).lines()
    assert len(answer) == 6 and answer[5]['line'] == 6 and answer[5]['error']['code'] == 'PAWL_ETOOBIG', answer
    body = customer('a') + customer('x' * 2000) + customer('b')
    answer = s.post('/v1/ws/7/commands', body, headers=NDJSON).expect(200).lines()
    assert len(answer) == 2 and answer[1]['line'] == 2 and answer[1]['error']['code'] == 'PAWL_ETOOBIG', answer
    answer = s.post('/v1/ws/7/commands', customer('a') + 'x' * 3000, headers=NDJSON).expect(200).lines()
    assert len(answer) == 2 and answer[1]['error']['code'] == 'PAWL_ETOOBIG', answer
    assert s.post('/v1/ws/7/commands', customer('a'), headers={**NDJSON, 'Idempotency-Key': 'k'}).expect(400).error()
    assert s.get('/v1/ws/7').json()['workspace_offset'] == 8
    s.stop()


def a_body_may_come_in_any_pieces(folder):
    s = serve_shop(folder)
    body = lines_of(40).encode()
    for size in (1, 7, 100):
        with s.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(b'POST /v1/ws/7/commands HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
                               b'Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n')
            for at in range(0, len(body), size):
                piece = body[at:at + size]
                connection.sendall(b'%x\r\n%s\r\n' % (len(piece), piece))
            connection.sendall(b'0\r\n\r\n')
            data = everything(connection)
        assert data.startswith(b'HTTP/1.1 200') and data.count(b'"workspace_offset"') == 40, data
    s.stop()


def many_clients_with_large_batches_lose_nothing(folder):
    s = serve_shop(folder, wsids=(7, 8, 9, 10), env={'PAWL_COMMANDS': '300'})
    answers = {}

    def run(wsid):
        answers[wsid] = s.post(f'/v1/ws/{wsid}/commands', lines_of(3000), headers=NDJSON).expect(200).lines()
    threads = [threading.Thread(target=run, args=(wsid,)) for wsid in (7, 8, 9, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for wsid in (7, 8, 9, 10):
        good = [line['workspace_offset'] for line in answers[wsid] if 'error' not in line]
        assert len(answers[wsid]) == 3000 and good == list(range(2, len(good) + 2))
        assert {line['error']['code'] for line in answers[wsid] if 'error' in line} <= {'PAWL_EBUSY'}
        assert s.get(f'/v1/ws/{wsid}').json()['workspace_offset'] == len(good) + 1
    s.stop()


def a_client_that_vanishes_changes_nothing(folder):
    """Its commands go on, each with its key tells what became of it, and nothing stays behind."""
    s = serve_shop(folder)
    body = lines_of(500, idempotency_key='k{}').encode()
    for cut in (10, len(body) // 2, len(body)):
        with s.connect() as connection:
            connection.sendall(b'POST /v1/ws/7/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n'
                               b'Content-Length: %d\r\n\r\n' % len(body) + body[:cut])
    answer = s.post('/v1/ws/7/commands', body, headers=NDJSON).expect(200).lines()
    assert [line['workspace_offset'] for line in answer] == list(range(2, 502)), answer
    single = customer('once', idempotency_key='single').encode()
    for _ in range(50):
        with s.connect() as connection:
            connection.sendall(b'POST /v1/ws/7/commands HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
                               b'Content-Length: %d\r\n\r\n' % len(single) + single)
    s.post('/v1/ws/7/commands', single).expect(200)
    assert s.get('/v1/ws/7').json()['workspace_offset'] == 502
    s.stop()


def a_stop_finishes_what_was_accepted(folder):
    """Clients send until they are cut off; what was answered is there, and what was not answered is there or not."""
    for number in range(3):
        place = os.path.join(folder, str(number))
        os.mkdir(place)
        s = serve_shop(place, wsids=(7, 8, 9, 10))
        answered = {wsid: 0 for wsid in (7, 8, 9, 10)}

        def run(wsid, s=s, answered=answered):
            client = s.client()
            try:
                while True:
                    answer = s.post(f'/v1/ws/{wsid}/commands', customer('x'), client=client).expect(200)
                    answered[wsid] = answer.json()['workspace_offset']
            except (OSError, server.http.client.HTTPException):
                client.close()
        threads = [threading.Thread(target=run, args=(wsid,)) for wsid in answered]
        for thread in threads:
            thread.start()
        wait_until(lambda: all(count > 20 for count in answered.values()))  # pylint: disable=cell-var-from-loop
        s.stop()
        for thread in threads:
            thread.join()
        for wsid, offset in answered.items():
            said = pawl('ws', 'show', str(wsid), '--json', '--dir', s.folder).expect(0).json()
            assert said['workspace_offset'] == offset, (said, offset)  # an answer that was made was sent


def a_batch_under_way_is_finished_before_the_stop(folder):
    s = serve_shop(folder)
    body = lines_of(5000)
    result = []
    thread = threading.Thread(target=lambda: result.append(s.post('/v1/ws/7/commands', body, headers=NDJSON)))
    thread.start()
    wait_until(lambda: s.get('/v1/ws/7').json()['workspace_offset'] > 100)
    s.stop()
    thread.join()
    assert len(result[0].lines()) == 5000


def commands_beyond_the_bound_are_told_to_come_again(folder):
    s = serve_shop(folder, env={'PAWL_COMMANDS': '1'})
    busy = []

    def run():
        while not busy:
            answer = s.post('/v1/ws/7/commands', customer('x'))
            if answer.status == 503:
                assert answer.headers['Retry-After'] == '1' and answer.error()['code'] == 'PAWL_EBUSY'
                busy.append(answer)
    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(server.PATIENCE)
    s.post('/v1/ws/7/commands', customer('x')).expect(200)
    s.stop()


if __name__ == '__main__':
    server.main([answers_each_line_in_its_order,
                 a_refused_line_is_answered_in_its_place,
                 stops_at_the_first_refusal_if_it_is_told_to,
                 a_batch_has_bounds,
                 a_body_may_come_in_any_pieces,
                 many_clients_with_large_batches_lose_nothing,
                 a_client_that_vanishes_changes_nothing,
                 a_stop_finishes_what_was_accepted,
                 a_batch_under_way_is_finished_before_the_stop,
                 commands_beyond_the_bound_are_told_to_come_again])
