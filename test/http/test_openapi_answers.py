#!/usr/bin/env python3
"""docs/openapi.json is what a real server answers: good and bad answers of every route are held against its schemas."""
import json
import os
import re

import server
from json_schema import check, fits
from server import customer, order, serve_shop, wait_until

FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), 'docs', 'openapi.json')
PROJECTOR = 'shop.statements'


class Judge:
    """Asks a server, and holds each answer against the document. Remembers what was asked."""

    def __init__(self, s):
        self.server, self.seen, self.failed, self.headers = s, set(), set(), {}
        with open(FILE, encoding='utf-8') as text:
            self.root = json.load(text)
        self.patterns = [(path, re.compile(re.sub(r'\{\w+\}', '[^/]+', path).replace('.', r'\.') + '$'))
                         for path in self.root['paths']]

    def operation(self, method, path):
        bare = path.partition('?')[0]
        for pattern, like in sorted(self.patterns, key=lambda one: one[0].count('{')):
            if like.match(bare) and method.lower() in self.root['paths'][pattern]:
                return pattern, self.root['paths'][pattern][method.lower()]
        raise AssertionError(f'{method} {path} is not in the document')

    def ask(self, method, path, status, body=None):
        pattern, operation = self.operation(method, path)
        answer = self.server.ask(method, path, body, headers=self.headers).expect(status)
        said = operation['responses'].get(str(status), {'$ref': '#/components/responses/Failure'})
        if '$ref' in said:
            assert status >= 400, f'{method} {path}: {status} is not in the document'
            said = self.root['components']['responses'][said['$ref'].rpartition('/')[2]]
        (self.seen if status < 400 else self.failed).add((method.lower(), pattern))
        if 'content' not in said:
            assert answer.body == b'', answer.body
            return answer
        kind = answer.headers['Content-Type']
        assert kind in said['content'], f'{method} {path}: {kind} is not in the document'
        if 'json' not in kind:
            return answer
        for value in answer.lines() if kind.endswith('ndjson') else [answer.json()]:
            check(self.root, said['content'][kind]['schema'], value, f'{method} {path} $')
        if body is not None and status < 300:
            request = operation['requestBody']['content']['application/json']['schema']
            check(self.root, request, json.loads(body) if isinstance(body, str) else body, f'{method} {path} body $')
        return answer


def fill(j):
    j.ask('PUT', '/v1/ws/9', 201, {'kind': 'shop.tenant'})
    who = j.ask('POST', '/v1/ws/7/commands', 200, customer('Ada')).json()['ids']['1']
    for cents in (100, 200):
        j.ask('POST', '/v1/ws/7/commands', 200, order(who, cents))
    for _ in range(4):
        j.ask('POST', '/v1/ws/7/commands', 200, {'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': who}})
    return who


def read_all(j, who):
    for path in ('/health/live', '/health/ready', '/openapi.json', '/v1/ws', '/v1/ws/7', f'/v1/ws/7/records/{who}',
                 '/v1/ws/7/records?type=shop.Customer', '/v1/ws/7/entities/shop.CustomerTotal',
                 f'/v1/ws/7/entities/shop.CustomerTotal/{who}', '/v1/ws/7/views/shop.invoices_by_number',
                 '/v1/views/shop.invoices_by_number/rows', '/v1/schema', '/v1/system/nodes', '/v1/system/views',
                 '/v1/projectors', '/v1/lanes', f'/v1/lanes/{PROJECTOR}', f'/v1/lanes/{PROJECTOR}/leases', '/v1/leases',
                 '/v1/leases/stats', '/v1/operations?lane=shop.accounts&partition=0', '/v1/views',
                 '/v1/views/shop.invoices_by_number', '/v1/tablets', '/v1/sequences', '/v1/jobs', '/', '/assets/app.js',
                 '/v1/ws/7/events', '/v1/partitions/0/events', '/v1/events', '/v1/figures', '/v1/alerts', '/metrics'):
        j.ask('GET', path, 200)


def lease(j):
    return j.ask('POST', '/v1/leases', 200, {'projector': PROJECTOR, 'duration': '5m', 'wait': 60}).json()


def work(j, who):
    first, second = lease(j), lease(j)
    at = f'/v1/leases/{first["partition"]}/{PROJECTOR}/'
    mine, other = {'operation': first['operation']}, {'operation': second['operation']}
    j.ask('GET', f'{at}1/entities/shop.Statement?operation={first["operation"]}', 200)
    j.ask('GET', f'{at}1/entities/shop.Statement/{who}?operation={first["operation"]}', 404)
    j.ask('POST', f'{at}2/commit?wait=1ms', 202, {**other, 'writes': []})
    j.ask('POST', f'{at}1/extend', 200, {**mine, 'duration': '5m'})
    row = {'upsert': 'shop.Statement', 'key': {'customer': who}, 'set': {'statements': 1}}
    j.ask('POST', f'{at}1/commit', 200, {**mine, 'writes': [row]})
    third = lease(j)
    j.ask('GET', f'{at}3/entities/shop.Statement/{who}?operation={third["operation"]}', 200)
    j.ask('POST', f'{at}3/release', 200, {'operation': third['operation'], 'failed': False})
    lease(j)
    j.ask('POST', f'{at}3/reclaim', 200, {})
    j.ask('POST', f'{at}3/void', 200, {'reason': 'nobody wants it'})
    j.ask('POST', f'{at}3/commit', 409, {**mine, 'writes': []})


def stall(j):
    """Until the last question's number is stalled; then it is tried again."""
    stalled = False
    while not stalled:
        held = lease(j)
        at = f'/v1/leases/{held["partition"]}/{PROJECTOR}/{held["number"]}'
        j.ask('POST', f'{at}/release', 200, {'operation': held['operation'], 'failed': True, 'words': 'no paper'})
        lines = j.ask('GET', f'/v1/leases?lane={PROJECTOR}', 200).lines()
        stalled = any(line['number'] == held['number'] and line['state'] == 'stalled' for line in lines)
    j.ask('POST', f'{at}/retry', 200, {})
    j.ask('POST', '/v1/leases', 200, {'projector': PROJECTOR, 'wait': 60})
    j.ask('POST', '/v1/leases', 204, {'projector': PROJECTOR})


def administer(j):
    view = {'view': 'shop.by_cents', 'base': 'shop.Invoice', 'key': ['cents'], 'include': ['number'], 'unique': False}
    j.ask('POST', '/v1/views', 201, view)
    wait_until(lambda: j.ask('GET', '/v1/views/shop.by_cents', 200).json()['built'])
    j.ask('PUT', '/v1/views/throttle', 200, {'rows_per_second': 0})
    for verb, status in (('pause', 200), ('resume', 200), ('rebuild', 202)):
        j.ask('POST', f'/v1/views/shop.by_cents/{verb}', status, {})
        j.ask('POST', f'/v1/lanes/shop.accounts/{verb}', status, {})
    j.ask('DELETE', '/v1/views/shop.by_cents', 200)
    j.ask('POST', '/v1/tablets/split', 200, {})
    j.ask('POST', '/v1/tablets/merge', 200, {})
    with open(server.SHOP, encoding='utf-8') as text:
        j.ask('PUT', '/v1/schema', 200, text.read())
    for verb in ('pause', 'resume'):
        j.ask('POST', f'/v1/views/{verb}', 200, {})
    for verb in ('freeze', 'thaw'):
        j.ask('POST', f'/v1/ws/9/{verb}', 200, {})
    j.ask('GET', '/v1/lanes/wait?lane=shop.accounts&timeout=60s', 200)
    made = json.loads(j.server.over_unix('POST', '/v1/tokens', '{"name":"root","scopes":["admin"]}').body)
    j.ask('GET', '/v1/tokens', 403)
    j.headers = {'Authorization': f'Bearer {made["secret"]}'}
    j.ask('POST', '/v1/tokens', 201, {'name': 'till', 'scopes': ['read', 'write'], 'wsids': [7, str(2**60)], 'expires_in': '30d'})
    j.ask('GET', '/v1/tokens', 200)
    j.ask('DELETE', '/v1/tokens/till', 200)
    j.headers = {}
    for kind, body in (('verify', {'replay': True, 'audit': False}), ('audit', {'replay': False}), ('backup', {'name': 'monday'})):
        job = j.ask('POST', f'/v1/{kind}', 202, body).json()['job']
        wait_until(lambda job=job: j.ask('GET', f'/v1/jobs/{job}', 200).json()['state'] == 'done')
    job = j.ask('POST', '/v1/verify', 202, {}).json()['job']
    j.ask('POST', '/v1/verify', 202, {})
    j.ask('DELETE', f'/v1/jobs/{job + 1}', 202)


def fail_all(j):
    """Every route that can be asked wrongly."""
    for path, methods in j.root['paths'].items():
        for method, operation in methods.items():
            wrong = re.sub(r'\{\w+\}', 'no-such', path)
            upper = method.upper()
            body = 'x' if 'requestBody' in operation else None
            if '{' not in path and body is None:
                wrong += '?no=such'
            answer = j.server.ask(upper, wrong, body)
            assert 400 <= answer.status < 500, f'{upper} {wrong}: {answer.status}'
            j.ask(upper, wrong, answer.status, body)


def every_answer_is_as_the_document_says(folder):
    saved = os.path.join(folder, 'saved')
    os.mkdir(saved)
    s = serve_shop(folder, '--backups', saved)
    j = Judge(s)
    who = fill(j)
    work(j, who)
    stall(j)
    administer(j)
    read_all(j, who)
    fail_all(j)
    every = {(method, path) for path, methods in j.root['paths'].items() for method in methods}
    assert not every - j.seen, f'never answered well: {sorted(every - j.seen)}'
    assert not every - j.failed, f'never refused: {sorted(every - j.failed)}'
    s.stop()


def the_server_gives_the_file_itself(folder):
    s = serve_shop(folder)
    with open(FILE, 'rb') as text:
        assert s.get('/openapi.json').expect(200).body == text.read()
    s.stop()


def the_checker_finds_what_is_wrong(_):
    root = {'components': {'schemas': {'N': {'type': 'integer', 'minimum': 1}}}}
    thing = {'type': 'object', 'required': ['a'], 'additionalProperties': False,
             'properties': {'a': {'$ref': '#/components/schemas/N'}, 'b': {'enum': ['x']}, 'c': {'type': 'array', 'items': {
                 'oneOf': [{'type': 'string', 'pattern': '^[a-z]+$', 'maxLength': 2}, {'type': ['null', 'boolean']}]}}}}
    for good in ({'a': 1}, {'a': 7, 'b': 'x', 'c': ['ab', None, True]}):
        check(root, thing, good)
    for bad in ({}, [], {'a': 0}, {'a': True}, {'a': '1'}, {'a': 1, 'b': 'y'}, {'a': 1, 'd': 1}, {'a': 1, 'c': ['A']},
                {'a': 1, 'c': ['abc']}, {'a': 1, 'c': [1]}, {'a': 1, 'c': {}}):
        assert not fits(root, thing, bad), bad


if __name__ == '__main__':
    server.main([every_answer_is_as_the_document_says,
                 the_server_gives_the_file_itself,
                 the_checker_finds_what_is_wrong])
