#!/usr/bin/env python3
"""External workers over HTTP: leases that are waited for, reads that are validated, commits that wait for their turn."""
import json
import socket
import threading

import server
from server import PATIENCE, Answer, customer, everything, parse, serve_shop, wait_until

PROJECTOR = 'shop.statements'
LONG = {'projector': PROJECTOR, 'duration': '60m'}  # no test waits for a lease to expire


def with_customer(folder, *options, **how):
    s = serve_shop(folder, *options, **how)
    who = s.post('/v1/ws/7/commands', customer('Ada')).expect(200).json()['ids']['1']
    return s, who


def question(s, who):
    body = {'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': who}}
    return s.post('/v1/ws/7/commands', body).expect(200).json()['offset']


def place(lease):
    return f'/v1/leases/{lease["partition"]}/{lease["lane"]}/{lease["number"]}'


def lease_one(s, **more):
    return s.post('/v1/leases', {**LONG, 'wait': '60s', **more}).expect(200).json()


def write(who, number):
    return {'upsert': 'shop.Statement', 'key': {'customer': who}, 'set': {'statements': number}}


def commit(s, lease, *writes, wait='60s'):
    return s.post(f'{place(lease)}/commit?wait={wait}', {'operation': lease['operation'], 'writes': list(writes)})


def read(s, lease, who):
    return s.get(f'{place(lease)}/entities/shop.Statement/{who}?operation={lease["operation"]}')


class Later(threading.Thread):
    """A request on a thread of its own."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.answer = ask, None
        self.start()

    def run(self):
        self.answer = self.ask()

    def end(self) -> Answer:
        self.join(PATIENCE)
        assert self.answer, 'it was not answered'
        return self.answer


def leases(s):
    return s.get('/v1/leases?lane=' + PROJECTOR).expect(200).lines()


def a_worker_leases_reads_and_commits(folder):
    s, who = with_customer(folder)
    assert s.post('/v1/leases', {'projector': PROJECTOR}).expect(204).body == b''
    offset = question(s, who)
    lease = lease_one(s)
    assert lease['lane'] == lease['projector'] == PROJECTOR and lease['number'] == lease['attempt'] == 1, lease
    assert lease['event']['offset'] == offset and lease['event']['argument']['customer'] == who, lease
    assert lease['expires_in'] == 600 and len(lease['operation']) == 32, lease
    assert leases(s)[0]['state'] == 'leased' and leases(s)[0]['operation'] == lease['operation']
    read(s, lease, who).expect(404)
    assert s.get(f'{place(lease)}/entities/shop.Statement?operation={lease["operation"]}').expect(200).lines() == []
    extended = s.post(f'{place(lease)}/extend', {'operation': lease['operation'], 'duration': 7200}).expect(200).json()
    assert extended == {'partition': lease['partition'], 'lane': PROJECTOR, 'number': 1, 'extended': True}, extended
    for _ in range(2):  # it counts once
        assert commit(s, lease, write(who, 1)).expect(200).json()['committed'] is True
    row = s.get(f'/v1/ws/7/entities/shop.Statement/{who}?min_offset={offset}').expect(200).json()
    assert row['statements'] == 1, row
    assert commit(s, {**lease, 'operation': '0' * 32}, write(who, 5)).expect(409).error()['code'] == 'PAWL_EFENCED'
    read(s, lease, who).expect(409)
    s.stop()


def clients_wait_without_a_thread_each(folder):
    s, who = with_customer(folder, env={'PAWL_WAITING_THREADS': '1', 'PAWL_THREADS': '1'})
    clients = [Later(lambda: s.post('/v1/leases', {**LONG, 'wait': '60s'})) for _ in range(20)]
    s.get('/health/ready').expect(200)  # it needs the one thread for requests that wait
    for _ in clients:
        question(s, who)
    got = [client.end().expect(200).json() for client in clients]
    assert sorted(lease['number'] for lease in got) == list(range(1, 21)), got
    s.get('/health/ready').expect(200)
    s.stop()


def a_client_that_has_gone_gets_no_lease(folder):
    s, who = with_customer(folder)
    body = json.dumps({**LONG, 'wait': '60s'}).encode()
    head = b'POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    for _ in range(5):
        with s.connect() as connection:
            connection.sendall(head + b'Content-Length: %d\r\n\r\n' % len(body) + body)
            connection.settimeout(0.05)
            try:
                assert not connection.recv(1), 'nothing was there to lease'
            except socket.timeout:
                pass  # it waits
    question(s, who)
    lease = lease_one(s)
    assert (lease['number'], lease['attempt']) == (1, 1), lease  # nobody had it before
    s.stop()


def a_wait_ends(folder):
    s, _ = with_customer(folder)
    s.post('/v1/leases', {'projector': PROJECTOR, 'wait': '50ms'}).expect(204)
    waits = Later(lambda: s.post('/v1/leases', {'projector': PROJECTOR, 'wait': 60}))
    s.post('/v1/leases', {'projector': PROJECTOR, 'wait': 0.01}).expect(204)
    assert not waits.answer
    s.stop()
    assert waits.end().expect(503).error()['code'] == 'PAWL_ECLOSED'


def a_commit_before_its_turn_is_accepted_and_asked_for_again(folder):
    s, who = with_customer(folder)
    for _ in range(2):
        question(s, who)
    first, second = lease_one(s), lease_one(s)
    answer = commit(s, second, write(who, 2), wait='20ms').expect(202).json()
    assert answer == {'partition': second['partition'], 'lane': PROJECTOR, 'number': 2, 'committed': False}, answer
    waits = Later(lambda: commit(s, second, write(who, 2)))
    commit(s, first, write(who, 1)).expect(200)
    waits.end().expect(200)
    rows = s.get('/v1/ws/7/entities/shop.Statement').expect(200).lines()
    assert [row['statements'] for row in rows] == [2], rows
    s.stop()


def commits_that_wait_hold_up_nobody(folder):
    """More of them than the pool has threads; the one that all of them wait for comes last."""
    s, who = with_customer(folder, env={'PAWL_WAITING_THREADS': '1'})
    for _ in range(9):
        question(s, who)
    held = [lease_one(s) for _ in range(9)]
    waiting = [Later(lambda lease=lease: commit(s, lease, write(who, lease['number']))) for lease in held[1:]]
    wait_until(lambda: sum(lease['state'] == 'ready' for lease in leases(s)) == 8)
    commit(s, held[0], write(who, 1)).expect(200)
    for one in waiting:
        one.end().expect(200)
    s.stop()


def a_result_whose_reads_are_stale_is_done_again(folder):
    s, who = with_customer(folder)
    for _ in range(2):
        question(s, who)
    first, second = lease_one(s), lease_one(s)
    for lease in (first, second):
        read(s, lease, who).expect(404)
    commit(s, first, write(who, 1)).expect(200)
    assert commit(s, second, write(who, 1)).expect(409).error()['code'] == 'PAWL_ECONFLICT'
    again = lease_one(s)
    assert again['number'] == 2 and again['operation'] != second['operation'], again
    assert read(s, again, who).expect(200).json()['statements'] == 1
    commit(s, again, write(who, 2)).expect(200)
    s.stop()


def a_lease_is_given_back_and_failures_are_told(folder):
    s, who = with_customer(folder)
    question(s, who)
    lease = lease_one(s)
    s.post(f'{place(lease)}/release', {'operation': lease['operation']}).expect(200, '"released":true')
    s.post(f'{place(lease)}/release', {'operation': lease['operation']}).expect(409)
    lease = lease_one(s)
    assert lease['number'] == 1, lease
    s.post(f'{place(lease)}/release', {'operation': lease['operation'], 'failed': True, 'permanent': True,
                                       'words': 'no printer'}).expect(200)
    wait_until(lambda: [lease['state'] for lease in leases(s)] == ['committed'])
    assert leases(s)[0]['void'] is True, leases(s)
    done = s.get(f'/v1/operations?lane={PROJECTOR}&partition={lease["partition"]}').expect(200).lines()
    assert done[0]['void'] == 'no printer', done
    s.stop()


def bad_requests_say_what_and_where(folder):
    s, who = with_customer(folder)
    question(s, who)
    lease = lease_one(s)
    at, operation = place(lease), lease['operation']
    nowhere = f'/v1/leases/{lease["partition"]}/shop.nothing/1'
    for path, body, status, where in (
            ('/v1/leases', '{', 400, None),
            ('/v1/leases', '[]', 400, '$'),
            ('/v1/leases', {}, 400, '$.projector'),
            ('/v1/leases', {'projector': 7}, 400, '$.projector'),
            ('/v1/leases', {'projector': 'shop.nobody'}, 404, '$.projector'),
            ('/v1/leases', {'projector': 'shop.totals'}, 400, None),
            ('/v1/leases', {**LONG, 'wait': '61s'}, 400, '$.wait'),
            ('/v1/leases', {**LONG, 'wait': -1}, 400, '$.wait'),
            ('/v1/leases', {**LONG, 'wait': []}, 400, '$.wait'),
            ('/v1/leases', {**LONG, 'duration': 1e300}, 400, '$.duration'),
            ('/v1/leases', {**LONG, 'more': 1}, 400, None),
            (f'{at}/commit', {'writes': []}, 400, '$.operation'),
            (f'{at}/commit', {'operation': 'x', 'writes': []}, 400, '$.operation'),
            (f'{at}/commit', {'operation': operation}, 400, '$.writes'),
            (f'{at}/commit', {'operation': operation, 'writes': [{'upsert': 'shop.No'}]}, 400, None),
            (f'{at}/commit', {'operation': operation, 'writes': [], 'more': 1}, 400, None),
            (f'{at}/commit?wait=61s', {'operation': operation, 'writes': []}, 400, '$query.wait'),
            (f'{at}/extend', {'operation': operation, 'duration': 'soon'}, 400, '$.duration'),
            (f'{at}/extend', {'operation': operation[::-1]}, 409, None),
            (f'{at}/release', {'operation': operation, 'failed': 'yes'}, 400, '$.failed'),
            (f'{nowhere}/commit', {'operation': operation, 'writes': []}, 404, None),
            (f'/v1/leases/77/{PROJECTOR}/1/commit', {'operation': operation, 'writes': []}, 400, None),
            (f'/v1/leases/x/{PROJECTOR}/1/commit', {'operation': operation, 'writes': []}, 400, '$path.partition'),
            (f'/v1/leases/0/{PROJECTOR}/0/commit', {'operation': operation, 'writes': []}, 400, '$path.n')):
        error = s.post(path, body).expect(status).error()
        assert where is None or error.get('where') == where, (path, body, error)
    for path, status in ((f'{at}/entities/shop.Statement', 400), (f'{at}/entities/shop.Statement?operation=x', 400),
                         (f'{at}/entities/shop.Nothing?operation={operation}', 400),
                         (f'{at}/entities/shop.CustomerTotal?operation={operation}', 400),
                         (f'{at}/entities/shop.Statement/x?operation={operation}', 400),
                         (f'{at}/entities/shop.Statement?operation={operation}&limit=0', 400),
                         (f'{at}/entities/shop.Statement?operation={operation[::-1]}', 409)):
        s.get(path).expect(status).error()
    commit(s, lease, write(who, 1)).expect(200)  # it is still this worker's
    s.stop()


def lines_of_the_log(s, route):
    wait_until(lambda: any(f'"route":"{route}"' in line for line in s.said().splitlines()))
    lines = [json.loads(line) for line in s.said().splitlines()]
    return [line for line in lines if line.get('route') == route]


def time_spent_waiting_on_purpose_does_not_make_a_request_slow(folder):
    s, who = with_customer(folder, '--log-level', 'debug', '--slow', '1s')
    question(s, who)
    question(s, who)
    first, second = lease_one(s), lease_one(s)
    waits = {'/v1/leases': Later(lambda: s.post('/v1/leases', {**LONG, 'wait': '1500ms'})),
             '/v1/leases/{partition}/{lane}/{n}/commit': Later(lambda: commit(s, second, write(who, 2), wait='1500ms')),
             '/v1/ws/{wsid}': Later(lambda: s.get('/v1/ws/7?min_offset=9999&timeout=1500ms')),
             '/v1/ws/{wsid}/records': Later(lambda: s.get('/v1/ws/7/records?type=shop.Customer&min_offset=9999&timeout=1500ms'))}
    assert [later.end().status for later in waits.values()] == [204, 202, 504, 504]
    for route in waits:
        line = lines_of_the_log(s, route)[-1]
        assert line['ms'] >= 1500 and line['waited_ms'] >= 1400, line
        # A machine that others keep busy may be slow besides.
        assert line['message'] == ('slow request' if line['ms'] - line['waited_ms'] >= 1000 else 'request'), line
    with s.connect() as connection:
        connection.sendall(b'GET /v1/ws/7/events?from=end&limit=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
                           b'Accept: text/event-stream\r\n\r\n')
        assert connection.recv(4096).startswith(b'HTTP/1.1 200')
        commit(s, first, write(who, 1)).expect(200)
        question(s, who)
        everything(connection)
    assert lines_of_the_log(s, '/v1/ws/{wsid}/events')[-1]['message'] == 'request'
    s.stop()


def a_request_that_takes_long_is_logged_as_slow(folder):
    s = serve_shop(folder, '--slow', '1ms')
    wsid = 100
    while '"slow request"' not in s.said():
        s.put(f'/v1/ws/{wsid}', {'kind': 'shop.tenant'}).expect(201)
        wsid += 1
        assert wsid < 5000
    s.stop()


def half_a_request_and_then_nothing_holds_no_lease(folder):
    s, who = with_customer(folder)
    question(s, who)
    body = json.dumps({**LONG, 'wait': '60s'}).encode()
    answer = s.raw(b'POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
                   b'Connection: close\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
    assert parse(answer).expect(200).json()['number'] == 1
    with s.connect() as connection:
        connection.sendall(b'POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
                           b'Content-Length: 100\r\n\r\n{"projector"')
        connection.shutdown(socket.SHUT_WR)
        everything(connection)
    question(s, who)
    assert lease_one(s)['number'] == 2
    s.stop()


if __name__ == '__main__':
    server.main([a_worker_leases_reads_and_commits,
                 clients_wait_without_a_thread_each,
                 a_client_that_has_gone_gets_no_lease,
                 a_wait_ends,
                 a_commit_before_its_turn_is_accepted_and_asked_for_again,
                 commits_that_wait_hold_up_nobody,
                 a_result_whose_reads_are_stale_is_done_again,
                 a_lease_is_given_back_and_failures_are_told,
                 bad_requests_say_what_and_where,
                 time_spent_waiting_on_purpose_does_not_make_a_request_slow,
                 a_request_that_takes_long_is_logged_as_slow,
                 half_a_request_and_then_nothing_holds_no_lease])
