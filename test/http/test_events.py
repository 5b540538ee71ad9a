#!/usr/bin/env python3
"""Events: pages, and streams that follow, resume, and get every event once."""
import json
import re
import signal

import server
from server import Server, customer, order, pawl, serve_shop, wait_until
from streams import Stream


def add(s, wsid, *names):
    for name in names:
        s.post(f'/v1/ws/{wsid}/commands', customer(name)).expect(200)


def add_many(s, wsid, count, name='x', client=None):
    """Commands without waiting for each: many connections' worth by one keep-alive client."""
    client = client or s.client()
    for _ in range(count):
        s.post(f'/v1/ws/{wsid}/commands', customer(name), client=client).expect(200)


def metric(s, name):
    text = s.get('/metrics').expect(200).body.decode()
    return float(re.search(rf'^{re.escape(name)} (.*)$', text, re.M)[1])


def offsets(events):
    return [event['workspace_offset'] for event in events]


def pages_are_what_the_program_prints(folder):
    s = serve_shop(folder, wsids=(7, 8))
    add(s, 7, 'Ada', 'Bea', 'Cleo')
    add(s, 8, 'Dora')
    partition = s.get('/v1/ws/7/events').expect(200).lines()[0]['partition']
    of_workspace = s.get('/v1/ws/7/events').expect(200)
    of_partition = s.get(f'/v1/partitions/{partition}/events').expect(200)
    assert of_workspace.headers['Content-Type'] == 'application/x-ndjson'
    assert of_workspace.headers['Pawl-Cursor'] == '5' and of_workspace.next() is None
    s.stop()
    data = f'{folder}/data'
    assert pawl('events', 'read', '--ws', '7', '--json', '--dir', data).expect(0).out.encode() == of_workspace.body
    assert pawl('events', 'read', '--partition', str(partition), '--json', '--dir', data).expect(0).out.encode() == of_partition.body


def pages_go_on_where_the_last_one_ended(folder):
    s = serve_shop(folder, wsids=(7, 8, 9))
    for wsid in (7, 8, 9):
        add(s, wsid, 'Ada', 'Bea', 'Cleo', 'Dora')
    got, start = [], 1
    while start:
        page = s.get(f'/v1/ws/7/events?from={start}&limit=2').expect(200)
        got += page.lines()
        start = page.next()
    assert offsets(got) == [1, 2, 3, 4, 5], got
    assert s.get('/v1/ws/7/events?from=6').expect(200).body == b''
    assert s.get('/v1/ws/7/events?from=end').expect(200).headers['Pawl-Cursor'] == '6'

    everything, after = [], ''
    for _ in range(100):
        page = s.get(f'/v1/events?limit=2{after}').expect(200)
        assert len(page.lines()) <= 2
        everything += page.lines()
        after = f'&after={page.headers["Pawl-Cursor"]}'
        if not page.next():
            break
    assert sorted((e['wsid'], e['workspace_offset']) for e in everything) == [(w, n) for w in (7, 8, 9) for n in range(1, 6)]
    for p in range(4):
        own = [e['offset'] for e in everything if e['partition'] == p]
        assert own == sorted(own), own
    assert s.get(f'/v1/events?limit=100{after}').expect(200).body == b''
    add(s, 8, 'Eve')
    assert [e['wsid'] for e in s.get(f'/v1/events?limit=100{after}').lines()] == [8]
    names = [e['command'] for e in s.get('/v1/events?limit=100&commands=sys.CreateWorkspace').lines()]
    assert names == ['sys.CreateWorkspace'] * 3, names
    assert len(s.get('/v1/events?commands=sys.CreateWorkspace,shop.AddCustomer').lines()) == 16
    assert s.get('/v1/events?commands=shop.Nothing').expect(200).body == b''
    s.stop()


def refuses_what_makes_no_sense(folder):
    s = serve_shop(folder)
    for path, status, where in (
            ('/v1/ws/99/events', 404, None), ('/v1/ws/0/events', 400, '$path.wsid'),
            ('/v1/ws/7/events?from=0', 400, '$query.from'), ('/v1/ws/7/events?from=-1', 400, '$query.from'),
            ('/v1/ws/7/events?limit=0', 400, '$query.limit'), ('/v1/ws/7/events?limit=10001', 400, '$query.limit'),
            ('/v1/ws/7/events?after=x', 400, '$query.after'),
            ('/v1/partitions/4/events', 404, '$path.partition'), ('/v1/partitions/x/events', 400, '$path.partition'),
            ('/v1/partitions/65536/events', 400, '$path.partition'),
            ('/v1/events?after=x', 400, '$query.after'), ('/v1/events?after=', 400, '$query.after'),
            ('/v1/events?after=AQgAAAAAAAAAAA', 400, '$query.after'), ('/v1/events?after=%21', 400, '$query.after'),
            ('/v1/events?commands=', 400, '$query.commands'), ('/v1/events?commands=a,,b', 400, '$query.commands'),
            ('/v1/events?from=1', 400, '$query.from')):
        error = s.get(path).expect(status).error()
        assert where is None or error['where'] == where, (path, error)
        if 'limit=10001' not in path:  # of a stream that is a limit like any other
            s.get(path, headers={'Accept': 'text/event-stream'}).expect(status)
    for path, last in (('/v1/ws/7/events', 'x'), ('/v1/events', 'x'), ('/v1/partitions/0/events', '-1')):
        error = s.get(path, headers={'Accept': 'text/event-stream', 'Last-Event-ID': last}).expect(400).error()
        assert error['where'] == '$header.Last-Event-ID', error
    s.stop()


def follows_a_workspace_and_resumes(folder):
    s = serve_shop(folder, wsids=(7, 8))
    add(s, 7, 'Ada')
    stream = Stream(s, '/v1/ws/7/events')
    assert offsets(stream.events(2)) == [1, 2]
    add(s, 8, 'Bea')
    add(s, 7, 'Cleo')
    fields = stream.block()
    event = json.loads(fields['data'])
    assert fields['id'] == '3' and event['wsid'] == 7 and event['workspace_offset'] == 3, fields
    assert fields['data'].encode() + b'\n' == s.get('/v1/ws/7/events?from=3').body
    stream.close()
    add(s, 7, 'Dora', 'Eve')
    again = Stream(s, '/v1/ws/7/events?from=1', last='3')
    assert offsets(again.events(2)) == [4, 5]
    late = Stream(s, '/v1/ws/7/events?from=end').open()
    limited = Stream(s, '/v1/ws/7/events?from=2&limit=5')
    add(s, 7, 'Fay')
    assert offsets(again.events(1)) == [6] == offsets(late.events(1))
    assert offsets(limited.events(5)) == [2, 3, 4, 5, 6] and limited.block() is None
    future = Stream(s, '/v1/ws/7/events?from=8').open()
    add(s, 7, 'Gia', 'Hal')
    assert offsets(future.events(1)) == [8]
    s.stop()
    assert again.block()['id'] == '7' and again.block()['id'] == '8' and again.block() is None


def follows_a_partition_and_all_of_them(folder):
    s = serve_shop(folder, wsids=(7, 8, 9))
    partition = s.get('/v1/ws/7/events').lines()[0]['partition']
    one = Stream(s, f'/v1/partitions/{partition}/events')
    every = Stream(s, '/v1/events')
    customers = Stream(s, '/v1/events?commands=shop.AddCustomer&after=end').open()
    first = [every.block() for _ in range(3)]
    assert sorted(json.loads(f['data'])['wsid'] for f in first) == [7, 8, 9]
    for wsid in (7, 8, 9):
        add(s, wsid, 'Ada')
        s.post(f'/v1/ws/{wsid}/commands', order(json.loads(customers.block()['data'])['records'][0]['id'], 5)).expect(200)
    more = [every.block() for _ in range(6)]
    here = [json.loads(f['data'])['offset'] for f in first + more if json.loads(f['data'])['partition'] == partition]
    assert [e['offset'] for e in one.events(len(here))] == here == list(range(1, len(here) + 1))

    # Each id stands for exactly what came up to it.
    for i, fields in enumerate(first + more):
        rest = Stream(s, f'/v1/events?limit={8 - i}', last=fields['id']) if i < 8 else None
        got = [rest.event() for _ in range(8 - i)] if rest else []
        want = [json.loads(f['data']) for f in (first + more)[i + 1:]]
        key = lambda e: (e['partition'], e['offset'])  # noqa: E731
        assert sorted(map(key, got)) == sorted(map(key, want)), (i, got)
        assert rest is None or rest.block() is None
    add(s, 7, 'Bea')
    assert json.loads(customers.block()['data'])['wsid'] == 7
    s.stop()


def a_client_that_is_behind_the_ring_misses_nothing(folder):
    s = serve_shop(folder, wsids=(7, 8))
    slow = Stream(s, '/v1/ws/7/events', buffer=4096).open()
    slow_every = Stream(s, '/v1/events', buffer=4096).open()
    quick = Stream(s, '/v1/ws/7/events')
    client = s.client()
    name = 'x' * 2000  # 3 MB of events: more than sockets and the ring hold
    for _ in range(1500):
        s.post('/v1/ws/7/commands?ack=durable', customer(name), client=client).expect(200)
    assert offsets(quick.events(1501)) == list(range(1, 1502))
    assert offsets(slow.events(1501)) == list(range(1, 1502))
    wsids = [(e['wsid'], e['workspace_offset']) for e in slow_every.events(1502)]
    assert sorted(wsids) == sorted([(8, 1)] + [(7, n) for n in range(1, 1502)])
    assert metric(s, 'pawl_http_pages_total') > 10
    add(s, 7, 'end')
    assert offsets(slow.events(1)) == [1502] == offsets(quick.events(1))
    s.stop()


def an_event_larger_than_the_ring_reaches_everybody(folder):
    s = serve_shop(folder)
    streams = [Stream(s, path).open() for path in ('/v1/ws/7/events', '/v1/events', '/v1/ws/7/events?from=end')]
    s.post('/v1/ws/7/commands', customer('y' * 1000)).expect(200)
    s.post('/v1/ws/7/commands', json.dumps({'command': 'shop.AddCustomer', 'records': [
        {'id': n, 'type': 'shop.Customer', 'fields': {'name': '\u0001' * 60000}} for n in range(1, 5)]})).expect(200)
    add(s, 7, 'after')
    for stream in streams[:2]:
        assert offsets(stream.events(4)) == [1, 2, 3, 4]
    assert offsets(streams[2].events(3)) == [2, 3, 4]
    s.stop()


def many_clients_get_every_event_once(folder):
    s = serve_shop(folder, wsids=(7, 8))
    streams = [Stream(s, '/v1/ws/7/events') for _ in range(150)]
    for stream in streams:
        stream.open()
    add_many(s, 8, 5)
    add_many(s, 7, 40)
    for stream in streams:
        assert offsets(stream.events(41)) == list(range(1, 42))
    assert metric(s, 'pawl_http_followers') == 150
    assert metric(s, 'pawl_http_events_sent_total') == 150 * 41
    for stream in streams:
        stream.close()
    add(s, 7, 'x')  # writing to them finds that they have gone
    wait_until(lambda: metric(s, 'pawl_http_followers') == 0)
    s.stop()


def a_client_that_takes_nothing_is_cut_off_and_hurts_nobody(folder):
    s = serve_shop(folder, env={'PAWL_STALLED': '1s'})
    stuck = Stream(s, '/v1/ws/7/events', buffer=4096).open()
    other = Stream(s, '/v1/ws/7/events')
    assert offsets(other.events(1)) == [1]
    client = s.client()
    name = 'x' * 50000
    for n in range(2, 102):
        s.post('/v1/ws/7/commands', customer(name), client=client).expect(200)
        assert offsets(other.events(1)) == [n]
    wait_until(lambda: metric(s, 'pawl_http_followers_cut_total') == 1 and metric(s, 'pawl_http_followers') == 1)
    got = 0
    try:
        while stuck.block() is not None:
            got += 1
    except OSError:
        pass
    assert got < 101, got
    add(s, 7, 'z')
    assert offsets(other.events(1)) == [102]
    s.stop()


def a_quiet_stream_is_sent_a_comment_now_and_then(folder):
    s = serve_shop(folder, env={'PAWL_STALLED': '1s'})
    stream = Stream(s, '/v1/ws/7/events?from=end')
    figures = Stream(s, '/v1/ws/7/events?from=end').open()
    stream.wait_beat()
    figures.close()
    wait_until(lambda: metric(s, 'pawl_http_followers') == 1)  # nobody wrote anything: the comment found it
    add(s, 7, 'Ada')
    assert offsets(stream.events(1)) == [2]
    s.stop()


def the_head_of_a_stream_is_no_stream(folder):
    s = serve_shop(folder)
    for path in ('/v1/ws/7/events', '/v1/events', '/v1/figures'):
        answer = s.ask('HEAD', path, headers={'Accept': 'text/event-stream'}).expect(200)
        assert answer.body == b'' and answer.headers['Content-Type'] == 'text/event-stream'
    wait_until(lambda: metric(s, 'pawl_http_followers') == 0)
    s.stop()


def more_streams_than_allowed_are_refused(folder):
    s = serve_shop(folder, env={'PAWL_STREAMS': '2'})
    two = [Stream(s, '/v1/ws/7/events').open() for _ in range(2)]
    answer = s.get('/v1/ws/7/events', headers={'Accept': 'text/event-stream'}).expect(503)
    assert answer.headers['Retry-After'] and answer.error()['code'] == 'PAWL_EBUSY'
    s.get('/v1/ws/7/events').expect(200)  # a page is no stream
    two[0].close()
    add(s, 7, 'Ada')
    wait_until(lambda: metric(s, 'pawl_http_followers') == 1)
    Stream(s, '/v1/ws/7/events').open()
    s.stop()


def a_client_goes_on_after_the_server_was_killed(folder):
    s = serve_shop(folder)
    stream = Stream(s, '/v1/events')
    add(s, 7, 'Ada', 'Bea')
    last = [stream.block() for _ in range(3)][-1]['id']
    s.kill()
    s = Server(f'{folder}/data')
    add(s, 7, 'Cleo')
    again = Stream(s, '/v1/events', last=last)
    assert offsets(again.events(1)) == [4]
    s.stop(signal.SIGTERM)
    assert again.block() is None


if __name__ == '__main__':
    server.main([pages_are_what_the_program_prints,
                 pages_go_on_where_the_last_one_ended,
                 refuses_what_makes_no_sense,
                 follows_a_workspace_and_resumes,
                 follows_a_partition_and_all_of_them,
                 a_client_that_is_behind_the_ring_misses_nothing,
                 an_event_larger_than_the_ring_reaches_everybody,
                 many_clients_get_every_event_once,
                 a_client_that_takes_nothing_is_cut_off_and_hurts_nobody,
                 a_quiet_stream_is_sent_a_comment_now_and_then,
                 the_head_of_a_stream_is_no_stream,
                 more_streams_than_allowed_are_refused,
                 a_client_goes_on_after_the_server_was_killed])
