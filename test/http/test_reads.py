#!/usr/bin/env python3
"""What can be read: workspaces, records, entities, views, the schema, system tables; as the program prints it."""
import json
import os
import threading
from urllib.parse import quote

import server
from server import NDJSON, SHOP, Server, customer, order, pawl, serve_shop, wait_until


def bed(folder, *options, wsids=(7, 8), **how):
    """A shop with customers and orders, and `pawl` beside it, to compare with."""
    s = serve_shop(folder, *options, wsids=wsids, **how)
    ids = {}
    for wsid in wsids:
        lines = s.post(f'/v1/ws/{wsid}/commands', ''.join(customer(f'c{i}') for i in range(5)), headers=NDJSON).lines()
        ids[wsid] = [line['ids']['1'] for line in lines]
        body = ''.join(order(who, 100 + i) for i, who in enumerate(ids[wsid]))
        last = s.post(f'/v1/ws/{wsid}/commands', body, headers=NDJSON).expect(200).lines()[-1]
        s.last = last['offset']
    return s, ids


def beside(s, *words):
    """What the program prints with --json, on the same directory."""
    return pawl(*words, '--json', '--dir', s.folder).expect(0).out.encode()


def pages(s, path, limit):
    """All pages of a list, one behind the other."""
    body, cursor, count = b'', None, 0
    while True:
        answer = s.get(f'{path}{"&" if "?" in path else "?"}limit={limit}' + (f'&cursor={cursor}' if cursor else '')).expect(200)
        assert answer.headers['Content-Type'] == 'application/x-ndjson' and len(answer.lines()) <= limit
        body, cursor, count = body + answer.body, answer.next(), count + 1
        assert count < 1000
        if not cursor:
            return body


def workspaces_are_made_listed_and_shown(folder):
    s = serve_shop(folder, wsids=())
    answer = s.put('/v1/ws/7', {'kind': 'shop.tenant'}).expect(201)
    assert answer.json()['workspace_offset'] == 1 and answer.headers['Pawl-Offset'] == '1'
    assert s.put('/v1/ws/7', {'kind': 'shop.tenant'}).expect(409).error()['code'] == 'PAWL_EEXISTS'
    s.put('/v1/ws/8', {'kind': 'shop.none'}).expect(404)
    for body in ('', '{', '[]', '{}', '{"kind":7}', '{"kind":"shop.tenant","x":1}', '{"kind":"a","kind":"b"}'):
        assert s.put('/v1/ws/8', body).expect(400).error()['code'] == 'PAWL_EINVAL'
    s.put('/v1/ws/0', {'kind': 'shop.tenant'}).expect(400)
    s.put('/v1/ws/18446744073709551615', {'kind': 'shop.tenant'}).expect(201)
    for wsid in range(100, 130):
        s.put(f'/v1/ws/{wsid}', {'kind': 'shop.tenant'}).expect(201)
    listed = beside(s, 'ws', 'list')
    assert len(listed.splitlines()) == 32
    for limit in (1, 7, 32, 1000):
        assert pages(s, '/v1/ws', limit) == listed
    s.get('/v1/ws?limit=0').expect(400)
    s.get('/v1/ws?limit=10001').expect(400)
    s.get('/v1/ws?cursor=x').expect(400)
    s.post('/v1/ws/7/commands', customer('Ada')).expect(200)
    shown = s.get('/v1/ws/7').expect(200)
    assert shown.body == beside(s, 'ws', 'show', '7') and shown.json()['workspace_offset'] == 2
    assert s.get('/v1/ws/18446744073709551615').json()['wsid'] == '18446744073709551615'
    s.get('/v1/ws/9').expect(404)
    s.stop()


def records_are_as_the_program_prints_them(folder):
    s, ids = bed(folder)
    for who in ids[7]:
        answer = s.get(f'/v1/ws/7/records/{who}').expect(200)
        assert answer.body == beside(s, 'record', 'get', '7', str(who))
        assert int(answer.headers['Pawl-Offset']) >= 11
        s.get(f'/v1/ws/7/records/{who}?type=shop.Customer').expect(200)
        s.get(f'/v1/ws/7/records/{who}?type=shop.Invoice').expect(404)
    assert s.get('/v1/ws/7/records/999').expect(404).error()['code'] == 'PAWL_ENOTFOUND'
    s.get('/v1/ws/9/records/1').expect(404)
    s.get('/v1/ws/7/records/x').expect(400)
    s.get('/v1/ws/7/records/-1').expect(400)
    for kind in ('shop.Customer', 'shop.Invoice', 'shop.Payment'):
        for limit in (1, 2, 5, 100):
            assert pages(s, f'/v1/ws/7/records?type={kind}', limit) == beside(s, 'record', 'list', '7', '--type', kind)
    assert s.get('/v1/ws/7/records').expect(400).error()['where'] == '$query.type'
    s.get('/v1/ws/7/records?type=shop.None').expect(404)
    s.get('/v1/ws/7/records?type=shop.Order').expect(400)
    s.get('/v1/ws/9/records?type=shop.Customer').expect(404)
    s.stop()


def entities_are_as_the_program_prints_them(folder):
    s, ids = bed(folder)
    for entity in ('shop.CustomerTotal', 'shop.Account'):
        path = f'/v1/ws/7/entities/{entity}'
        wait_until(lambda: len(s.get(path).lines()) == 5)  # pylint: disable=cell-var-from-loop
        listed = beside(s, 'entity', 'list', '7', entity)
        for limit in (1, 2, 5, 100):
            assert pages(s, path, limit) == listed
        for who in ids[7]:
            expected = beside(s, 'entity', 'get', '7', entity, str(who))
            for key in (str(who), f'[{who}]', json.dumps({'customer': who})):
                assert s.get(f'{path}/{quote(key)}').expect(200).body == expected
                assert s.get(f'{path}?key={quote(key)}').expect(200).body == expected
        first = s.get(f'{path}?after={quote(json.dumps({"customer": ids[7][0]}))}').expect(200)
        assert first.body == b''.join(listed.splitlines(True)[1:])
        s.get(f'{path}/999').expect(404)
        s.get(f'{path}/x').expect(400)
        s.get(f'{path}/[1,2]').expect(400)
        s.get(f'{path}?cursor=x').expect(400)
        s.get(f'{path}?cursor={"A" * 6000}').expect(400)
    s.get('/v1/ws/7/entities/shop.None').expect(404)
    s.get('/v1/ws/7/entities/shop.None/1').expect(404)
    s.get('/v1/ws/9/entities/shop.Account').expect(404)
    view = s.get('/v1/ws/7/views/shop.invoices_by_number?limit=1').next()
    error = s.get(f'/v1/ws/7/entities/shop.Account?cursor={view}').expect(400).error()
    assert 'cursor' in error['message'], error
    s.stop()


def views_are_read_by_prefix_bounds_and_pages(folder):
    s, _ = bed(folder)
    view, path = 'shop.invoices_by_number', '/v1/ws/7/views/shop.invoices_by_number'
    assert pawl('view', 'wait', view, '--dir', s.folder, '--timeout', '60s').code == 0
    for limit in (1, 2, 5, 100):
        assert pages(s, path, limit) == pages(s, path, 1000)
    assert [row['number'] for row in s.get(path).lines()] == [1, 2, 3, 4, 5]
    answer = s.get(path).expect(200)
    assert answer.headers['Pawl-Built'] == 'true' and answer.headers['Pawl-Covered'] == '1'
    assert int(answer.headers['Pawl-Offset']) >= 11

    def numbers(query):
        return [row['number'] for row in s.get(f'{path}?{query}').expect(200).lines()]
    assert numbers('from=2&to=4') == [2, 3, 4]
    assert numbers('from=2&to=4&exclusive=from') == [3, 4]
    assert numbers('from=2&to=4&exclusive=to') == [2, 3]
    assert numbers('from=2&to=4&exclusive=both') == [3]
    assert numbers('desc=true&limit=2') == [5, 4]
    assert numbers('prefix=3') == numbers('prefix=%5B3%5D') == numbers('prefix=' + quote('{"number":3}')) == [3]
    assert numbers('complete=true&desc=false') == [1, 2, 3, 4, 5]
    assert s.get(f'{path}?key=3').expect(200).body == beside(s, 'view', 'get', view, '7', '3')
    s.get(f'{path}?key=33').expect(404)
    rows = s.get(f'/v1/views/{view}/rows').expect(200)
    assert sorted((row['wsid'], row['number']) for row in rows.lines()) == [(w, n) for w in (7, 8) for n in range(1, 6)]
    assert 'Pawl-Offset' not in rows.headers
    assert pages(s, f'/v1/views/{view}/rows', 3) == rows.body
    for query, where in (('from=x', None), ('exclusive=no', '$query.exclusive'), ('desc=1', '$query.desc'), ('cursor=!', None),
                         ('limit=x', '$query.limit'), ('min_offset=0', '$query.min_offset'), ('descending=true', '$query.descending')):
        error = s.get(f'{path}?{query}').expect(400).error()
        assert not where or error['where'] == where, error
    s.get('/v1/ws/7/views/shop.None').expect(404)
    s.get('/v1/ws/9/views/shop.invoices_by_number').expect(404)
    s.get(f'/v1/views/{view}/rows?min_offset=1').expect(400)
    s.stop()


def a_read_waits_for_its_offset_and_no_longer_than_it_says(folder):
    s, ids = bed(folder)
    who = ids[8][0]
    for path in (f'records/{who}', 'records?type=shop.Customer', 'entities/shop.CustomerTotal', f'entities/shop.Account/{who}',
                 'views/shop.invoices_by_number'):
        mark = '&' if '?' in path else '?'
        answer = s.get(f'/v1/ws/8/{path}{mark}min_offset={s.last}').expect(200)
        assert int(answer.headers['Pawl-Offset']) >= s.last, (path, dict(answer.headers))
        error = s.get(f'/v1/ws/8/{path}{mark}min_offset=999999&timeout=50ms').expect(504).error()
        assert error['code'] == 'PAWL_ETIMEOUT', (path, error)
    s.get('/v1/ws/8?min_offset=999999&timeout=50ms').expect(504)
    s.get(f'/v1/ws/8/records/{who}?min_offset=1&timeout=2h').expect(400)
    s.stop()


def those_that_wait_block_nobody_and_are_bounded(folder):
    s, ids = bed(folder, env={'PAWL_WAITING_THREADS': '2', 'PAWL_WAITING': '2', 'PAWL_THREADS': '1'})
    path = f'/v1/ws/8/records/{ids[8][0]}?min_offset={s.last + 1}&timeout=60s'
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(s.get(path))) for _ in range(5)]
    for thread in threads:
        thread.start()
    # Two wait for the state and two for a thread. The fifth is told to come again, and all else goes on.
    wait_until(lambda: answers)
    assert answers[0].expect(503).headers['Retry-After'] == '1' and answers[0].error()['code'] == 'PAWL_EBUSY'
    s.get(f'/v1/ws/8/records/{ids[8][0]}').expect(200)
    assert len(answers) == 1
    s.post('/v1/ws/8/commands', customer('the one')).expect(200)
    for thread in threads:
        thread.join(server.PATIENCE)
    assert [answer.status for answer in answers] == [503, 200, 200, 200, 200]
    s.stop()


def the_schema_is_shown_and_applied(folder):
    s = serve_shop(folder)
    shown = s.get('/v1/schema').expect(200)
    assert shown.body == beside(s, 'schema', 'show') and shown.lines()[0]['package'] == 'shop'
    assert s.get('/v1/schema?lanes=true').expect(200).body == beside(s, 'schema', 'show', '--lanes')
    with open(SHOP, encoding='utf-8') as file:
        same = s.put('/v1/schema', file.read()).expect(200).json()
    assert same == {'schema': 1}, same
    other = '{"schema": 1, "package": "more", "types": {"Note": {"kind": "CDoc", "fields": {"text": {"type": "string"}}}}}'
    assert s.put('/v1/schema', other).expect(200).json()['schema'] > 1
    assert [package['package'] for package in s.get('/v1/schema').lines()] == ['shop', 'more']
    for body, where in (('{', 'line 1, column 1'), ('{"schema": 1, "package": "x", "types": 7}', '$.types'), ('\0', None),
                        (other.replace('string', 'int64'), None)):
        error = s.put('/v1/schema', body).expect(400).error()
        assert error['code'] == 'PAWL_EINVAL' and (not where or error['where'] == where), (body, error)
    s.put('/v1/schema', ' ' * (4 << 20) + '{}').expect(413)
    s.stop()


def system_tables_are_shown(folder):
    s = serve_shop(folder)
    for table in ('nodes', 'tablets', 'views', 'view_building_tasks', 'view_build_status', 'built_views',
                  'view_building_processing_base'):
        assert s.get(f'/v1/system/{table}').expect(200).headers['Content-Type'] == 'application/x-ndjson'
    assert s.get('/v1/system/views').body == beside(s, 'system', 'views')
    assert 'tablets' in s.get('/v1/system/none').expect(404).error()['message']
    s.stop()


if __name__ == '__main__':
    server.main([workspaces_are_made_listed_and_shown,
                 records_are_as_the_program_prints_them,
                 entities_are_as_the_program_prints_them,
                 views_are_read_by_prefix_bounds_and_pages,
                 a_read_waits_for_its_offset_and_no_longer_than_it_says,
                 those_that_wait_block_nobody_and_are_bounded,
                 the_schema_is_shown_and_applied,
                 system_tables_are_shown])
