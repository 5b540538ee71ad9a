#!/usr/bin/env python3
"""What operators do over HTTP: lanes, leases, operations, views, tablets, sequences, jobs."""
import json
import os

import server
from server import customer, order, pawl, serve_shop, wait_until

PROJECTOR = 'shop.statements'


def filled(folder, *options, **how):
    """Some customers, orders and questions."""
    s = serve_shop(folder, *options, wsids=(7, 8), **how)
    who = s.post('/v1/ws/7/commands', customer('Ada')).expect(200).json()['ids']['1']
    for cents in (100, 200, 300):
        s.post('/v1/ws/7/commands', order(who, cents)).expect(200)
    s.post('/v1/ws/7/commands', {'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': who}}).expect(200)
    return s


def shared(lines):
    """Without what only a process knows that works on lanes: how it works ahead."""
    return [{name: value for name, value in line.items() if name != 'run_ahead'} for line in lines]


def ends_as_the_program_prints(folder, s, *cases):
    """What the server answers is what the program prints, once the server has gone."""
    answers = [s.get(path).expect(200) for path, _ in cases]
    for answer, (path, _) in zip(answers, cases):
        assert answer.headers['Content-Type'].startswith('application/'), path
    s.stop()
    for answer, (path, words) in zip(answers, cases):
        said = pawl(*words, '--json', '--dir', f'{folder}/data').expect(0).lines()
        assert shared(answer.lines()) == shared(said), (path, answer.lines(), said)


def lists_are_those_of_the_program(folder):
    s = filled(folder)
    wait_until(lambda: all(view['state'] == 'built' for view in s.get('/v1/views').lines()))
    wait_until(lambda: all(lane['lag'] == 0 for lane in s.get('/v1/lanes').lines() if lane['lane'] != PROJECTOR))
    ends_as_the_program_prints(
        folder, s, ('/v1/projectors', ('project', 'list')), ('/v1/tablets', ('tablet', 'list')),
        ('/v1/sequences', ('seq', 'list')), ('/v1/sequences?ws=7', ('seq', 'list', '--ws', '7')),
        ('/v1/lanes/shop.accounts', ('project', 'status', 'shop.accounts')),
        ('/v1/views', ('view', 'status')),
        ('/v1/views/shop.invoices_by_number', ('view', 'status', 'shop.invoices_by_number')))


def sequences_come_in_pages(folder):
    s = filled(folder)
    whole = s.get('/v1/sequences').expect(200).lines()
    assert len(whole) > 5, whole
    for size in (1, 3, len(whole), len(whole) + 1):
        pages, cursor = [], ''
        while cursor is not None:
            answer = s.get(f'/v1/sequences?limit={size}{cursor}').expect(200)
            assert len(answer.lines()) <= size
            pages += answer.lines()
            cursor = answer.next() and '&cursor=' + answer.next()
        assert pages == whole, (size, pages)
    for cursor in ('x', '1', '1-', '-1', '1-2x', '99999999-1', '1-2-3'):
        s.get(f'/v1/sequences?cursor={cursor}').expect(400).error()
    assert s.get('/v1/sequences?cursor=9999-0').expect(200).lines() == []
    s.stop()


def lanes_are_paused_resumed_and_rebuilt(folder):
    s = filled(folder)
    lane = s.get('/v1/lanes').lines()[0]['lane']
    assert s.post(f'/v1/lanes/{lane}/pause').expect(200).json() == {'lane': lane, 'paused': True}
    assert s.get(f'/v1/lanes/{lane}').lines()[0]['state'] == 'paused'
    assert s.post(f'/v1/lanes/{lane}/resume', '{}').expect(200).json() == {'lane': lane, 'paused': False}
    assert s.get(f'/v1/lanes/{lane}').lines()[0]['state'] != 'paused'
    generation = s.get(f'/v1/lanes/{lane}').lines()[0]['generation']
    assert s.post(f'/v1/lanes/{lane}/rebuild').expect(202).json() == {'lane': lane, 'building': True}
    wait_until(lambda: [line['generation'] for line in s.get(f'/v1/lanes/{lane}').lines()] == [generation + 1]
               or lane == PROJECTOR)
    stats = s.get(f'/v1/leases/stats?lane={lane}').expect(200).lines()
    assert stats[-1]['partition'] is None and 'alerts' in stats[-1] and len(stats) >= 5, stats
    for verb in ('pause', 'resume', 'rebuild'):
        s.post(f'/v1/lanes/shop.nothing/{verb}').expect(404).error()
        assert s.post(f'/v1/lanes/{lane}/{verb}', {'x': 1}).expect(400).error()
    s.get('/v1/lanes/shop.nothing').expect(404).error()
    s.get('/v1/leases/stats?lane=shop.nothing').expect(404).error()
    s.stop()


def lanes_are_waited_for(folder):
    s = filled(folder)
    lane = next(p['lane'] for p in s.get('/v1/projectors').lines() if p['kind'] == 'declarative' and 'lane' in p)
    done = s.get(f'/v1/lanes/wait?lane={lane}&timeout=60s').expect(200).json()
    assert done['caught_up'] is True and done['lanes'] == 1 and done['operations'] >= 3 and done['lag'] == 0, done
    s.post(f'/v1/lanes/{lane}/pause').expect(200)
    s.post('/v1/ws/7/commands', customer('Bo')).expect(200)
    for cents in (1, 2):
        s.post('/v1/ws/7/commands', order(1125899907042625, cents)).expect(200)
    assert 'paused' in s.get(f'/v1/lanes/wait?lane={lane}&timeout=60s').expect(503).error()['message']
    s.post(f'/v1/lanes/{lane}/resume').expect(200)
    assert s.get(f'/v1/lanes/wait?lane={lane}&timeout=60s').expect(200).json()['caught_up'] is True
    error = s.get('/v1/lanes/wait?timeout=60s').expect(503).error()  # a lane of workers, and there are none
    assert error['code'] == 'PAWL_EBUSY' and PROJECTOR in error['message'], error
    s.get('/v1/lanes/wait?lane=shop.nothing').expect(404).error()
    for timeout in ('x', '61s', '-1'):
        s.get(f'/v1/lanes/wait?timeout={timeout}').expect(400).error()
    s.stop()


def all_views_are_paused_at_once(folder):
    s = filled(folder)
    assert s.post('/v1/views/pause').expect(200).json() == {'paused': True}
    view = {'view': 'shop.late', 'base': 'shop.Invoice', 'key': ['number']}
    s.post('/v1/views', view).expect(201)
    assert s.get('/v1/views/shop.late').expect(200).json()['state'] == 'paused'
    assert s.post('/v1/views/resume', '{}').expect(200).json() == {'paused': False}
    wait_until(lambda: s.get('/v1/views/shop.late').expect(200).json()['built'])
    for verb in ('pause', 'resume'):
        s.post(f'/v1/views/{verb}', {'x': 1}).expect(400).error()
        s.get(f'/v1/views/{verb}').expect(404).error()  # no view is called so
    s.stop()


def an_operator_decides_about_a_number(folder):
    s = filled(folder)
    lease = s.post('/v1/leases', {'projector': PROJECTOR, 'duration': '10m', 'wait': '60s'}).expect(200).json()
    at = f'/v1/leases/{lease["partition"]}/{PROJECTOR}/{lease["number"]}'
    shown = s.get(f'/v1/lanes/{PROJECTOR}/leases?partition={lease["partition"]}').expect(200).lines()
    assert [(line['number'], line['state'], line['operation']) for line in shown] == [(1, 'leased', lease['operation'])]
    assert s.get(f'/v1/lanes/{PROJECTOR}/leases?from=1').expect(200).lines() == shown
    assert s.get(f'/v1/lanes/{PROJECTOR}/leases?from=2').expect(200).lines() == []
    assert s.post(f'{at}/reclaim').expect(200).json()['decided'] == 'reclaimed'
    s.post(f'{at}/commit', {'operation': lease['operation'], 'writes': []}).expect(409)
    again = s.post('/v1/leases', {'projector': PROJECTOR, 'duration': '10m', 'wait': '60s'}).expect(200).json()
    assert again['number'] == 1 and again['operation'] != lease['operation'], again
    s.post(f'{at}/retry').expect(404).error()
    for body in ({}, {'reason': ''}, {'reason': 'x' * 201}, {'reason': 7}, {'reason': 'x', 'generation': 0}):
        s.post(f'{at}/void', body).expect(400).error()
    answer = s.post(f'{at}/void', {'reason': 'nobody wants it', 'generation': 1}).expect(200).json()
    assert answer == {'lane': PROJECTOR, 'partition': lease['partition'], 'number': 1, 'decided': 'void'}, answer
    wait_until(lambda: len(s.get(f'/v1/operations?lane={PROJECTOR}&partition={lease["partition"]}').lines()) == 1)
    done = s.get(f'/v1/operations?lane={PROJECTOR}&partition={lease["partition"]}').lines()[0]
    assert 'nobody wants it' in json.dumps(done), done
    for verb, body in (('retry', {}), ('reclaim', {}), ('void', {'reason': 'x'})):
        s.post(f'{at}/{verb}', body).expect(404).error()
        s.post(f'/v1/leases/99/{PROJECTOR}/1/{verb}', body).expect(400).error()
        s.post(f'/v1/leases/0/shop.nothing/1/{verb}', body).expect(404).error()
    s.get(f'/v1/lanes/{PROJECTOR}/leases?partition=99').expect(404).error()
    s.stop()


def operations_come_in_pages(folder):
    s = filled(folder)
    lane = next(p['lane'] for p in s.get('/v1/projectors').lines() if p['kind'] == 'declarative' and 'lane' in p)
    partition = s.get('/v1/ws/7').json()['partition']
    at = f'/v1/operations?lane={lane}&partition={partition}'
    wait_until(lambda: all(line['lag'] == 0 for line in s.get(f'/v1/lanes/{lane}').lines()))
    whole = s.get(at).expect(200).lines()
    assert len(whole) >= 3 and [line['number'] for line in whole] == list(range(1, len(whole) + 1)), whole
    first = s.get(f'{at}&limit=2').expect(200)
    assert first.lines() == whole[:2] and first.next() == '3', first.next()
    assert s.get(f'{at}&from=3').expect(200).lines() == whole[2:]
    mine = s.get(f'/v1/operations?lane={lane}&ws=7').expect(200).lines()
    assert mine == whole and all(line['wsid'] == 7 for line in mine), mine
    assert s.get(f'/v1/operations?lane={lane}&ws=7&source={mine[1]["event"]}').expect(200).lines() == [
        line for line in mine if line['event'] == mine[1]['event']]
    assert s.get(f'/v1/operations?lane={lane}&ws=7&entity=shop.Nothing').expect(200).lines() == []
    for query, status in (('', 400), (f'?lane={lane}', 400), (f'?lane={lane}&ws=7&partition={partition}', 400), (f'?lane={lane}&ws=0', 400),
                          (f'?lane={lane}&ws=7&source=x', 400), (f'?lane={lane}&partition=99', 404),
                          (f'?lane=shop.nothing&partition={partition}', 404), (f'?lane={lane}&partition=0&from=0', 400),
                          (f'?lane={lane}&partition=0&generation=77', 404)):
        s.get('/v1/operations' + query).expect(status).error()
    s.stop()
    said = pawl('op', 'read', lane, '--partition', str(partition), '--json', '--dir', f'{folder}/data').expect(0).lines()
    assert said == whole, (said, whole)


def views_are_made_watched_and_dropped(folder):
    s = filled(folder)
    view = {'view': 'shop.by_customer', 'base': 'shop.Invoice', 'key': ['customer', 'number'], 'include': ['cents']}
    assert s.put('/v1/views/throttle', {'rows_per_second': 1000}).expect(200).json() == {'rows_per_second': 1000}
    s.put('/v1/views/throttle', {'rows_per_second': 0}).expect(200)
    assert s.post('/v1/views', view).expect(201).json() == {'view': 'shop.by_customer', 'built': False}
    wait_until(lambda: s.get('/v1/views/shop.by_customer').expect(200).json()['built'])
    assert s.get('/v1/views/shop.by_customer').json()['rows'] == 3
    assert len(s.get('/v1/ws/7/views/shop.by_customer').expect(200).lines()) == 3
    s.post('/v1/views', view).expect(409).error()
    assert s.post('/v1/views/shop.by_customer/pause').expect(200).json() == {'view': 'shop.by_customer', 'paused': True}
    s.post('/v1/views/shop.by_customer/resume').expect(200)
    assert s.post('/v1/views/shop.by_customer/rebuild').expect(202).json()['built'] is False
    wait_until(lambda: s.get('/v1/views/shop.by_customer').json()['state'] == 'built')
    assert s.ask('DELETE', '/v1/views/shop.by_customer').expect(200).json()['dropped'] is True
    s.get('/v1/views/shop.by_customer').expect(404).error()
    for body, where in (({}, '$.view'), ({**view, 'key': 'number'}, '$.key'), ({**view, 'key': [1]}, '$.key'),
                        ({**view, 'unique': 1}, '$.unique'), ({**view, 'more': 1}, None), ({**view, 'filter': 'x >'}, None)):
        error = s.post('/v1/views', body).expect(400).error()
        assert where is None or error['where'] == where, (body, error)
    s.ask('DELETE', '/v1/views/shop.invoices_by_number').expect(400).error()  # a package has it
    for verb in ('pause', 'resume', 'rebuild'):
        s.post(f'/v1/views/shop.nothing/{verb}').expect(404).error()
    for body in ({}, {'rows_per_second': -1}, {'rows_per_second': 'x'}, {'rows_per_second': 1.5}):
        assert s.put('/v1/views/throttle', body).expect(400).error()['where'] == '$.rows_per_second'
    s.stop()


def tablets_are_cut_and_joined(folder):
    s = filled(folder)
    count = len(s.get('/v1/tablets').expect(200).lines())
    assert s.post('/v1/tablets/split').expect(200).json() == {'tablets': 2 * count}
    assert s.post('/v1/tablets/merge').expect(200).json() == {'tablets': count}
    while count > 4:
        count = s.post('/v1/tablets/merge').expect(200).json()['tablets']
    s.post('/v1/tablets/merge').expect(400).error()
    s.stop()


def ended(s, job):
    wait_until(lambda: s.get(f'/v1/jobs/{job}').expect(200).json()['state'] not in ('waiting', 'running'))
    return s.get(f'/v1/jobs/{job}').json()


def jobs_verify_audit_and_save(folder):
    saved = os.path.join(folder, 'saved')
    os.mkdir(saved)
    s = filled(folder, '--backups', saved)
    answer = s.post('/v1/verify').expect(202)
    job = answer.json()
    assert job['kind'] == 'verify' and job['job'] == 1 and answer.headers['Location'] == '/v1/jobs/1', job
    done = ended(s, 1)
    assert done['state'] == 'done' and done['result']['sound'] is True and 'state' in done['result'], done
    for verb, body in (('verify', {'x': 1}), ('verify', {'replay': 1}), ('audit', {'audit': True})):
        s.post(f'/v1/{verb}', body).expect(400).error()
    s.post('/v1/audit', {'replay': True}).expect(202)
    assert ended(s, 2)['result']['state']['lanes']['worked_out_again'] >= 3
    assert ended(s, 2)['result']['audit']['live']['agrees'] is True
    s.post('/v1/backup', {'name': 'monday'}).expect(202)
    done = ended(s, 3)
    assert done['state'] == 'done' and done['result']['to'] == done['to'] == f'{saved}/monday', done
    assert pawl('verify', '--dir', f'{saved}/monday', '--json').expect(0).json()['sound'] is True
    assert s.post('/v1/backup', {'name': 'monday'}).expect(409).error()['code'] == 'PAWL_EEXISTS'
    assert [line['job'] for line in s.get('/v1/jobs').expect(200).lines()] == [3, 2, 1]
    for name in ('', '.', '..', '../x', '/etc/x', 'a/b', '.hidden', 'a\\b', 'x' * 101, 'a b', 'ä', 7, None):
        assert s.post('/v1/backup', {'name': name}).expect(400).error()['where'] == '$.name', name
    s.post('/v1/backup').expect(400).error()
    assert os.listdir(saved) == ['monday'], os.listdir(saved)
    s.get('/v1/jobs/99').expect(404).error()
    s.get('/v1/jobs/x').expect(400).error()
    s.ask('DELETE', '/v1/jobs/99').expect(404).error()
    s.ask('DELETE', '/v1/jobs/1').expect(409).error()
    s.stop()


def jobs_are_bounded_wait_and_are_cancelled(folder):
    s = filled(folder)
    assert s.post('/v1/backup', {'name': 'monday'}).expect(403).error()['code'] == 'PAWL_EACCES'
    asked = [s.post('/v1/verify') for _ in range(40)]
    taken = [answer.json()['job'] for answer in asked if answer.status == 202]
    assert {answer.status for answer in asked} == {202, 503} and len(taken) >= 16, [a.status for a in asked]
    s.ask('DELETE', f'/v1/jobs/{taken[-1]}').expect(202)
    assert ended(s, taken[-1])['state'] == 'cancelled'
    s.stop()  # what waits is cancelled, what runs is ended


def a_job_that_fails_says_why(folder):
    saved = os.path.join(folder, 'saved')
    s = filled(folder, '--backups', saved)  # which is not there
    s.post('/v1/backup', {'name': 'monday'}).expect(202)
    done = ended(s, 1)
    assert done['state'] == 'failed' and done['error']['code'].startswith('PAWL_E') and done['error']['message'], done
    s.stop()


if __name__ == '__main__':
    server.main([lists_are_those_of_the_program,
                 sequences_come_in_pages,
                 lanes_are_paused_resumed_and_rebuilt,
                 lanes_are_waited_for,
                 all_views_are_paused_at_once,
                 an_operator_decides_about_a_number,
                 operations_come_in_pages,
                 views_are_made_watched_and_dropped,
                 tablets_are_cut_and_joined,
                 jobs_verify_audit_and_save,
                 jobs_are_bounded_wait_and_are_cancelled,
                 a_job_that_fails_says_why])
