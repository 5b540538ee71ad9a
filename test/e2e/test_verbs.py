"""Every verb on an engine's directory, as it is typed: what it says to people and to machines, and how it ends."""
import datetime
import hashlib
import json
import os
import re

from shell import SHOP, WHERE, contents, customer, end, flip, main, order, pawl, shop, start

ADA = 1125899907042625  # the first record of a workspace's C register
JSON = '--json'


def a_directory_is_made_once(folder):
    new = folder + '/new'
    assert pawl('init', '--dir', new).expect(0).out == f'made {new}: 16 partitions on 2 shards\n'
    pawl('init', '--dir', new).expect(1, 'is there already')
    assert pawl('init', '--dir', new, JSON).expect(1).error()['code'] == 'PAWL_EEXISTS'
    said = pawl('init', JSON, '--dir', folder + '/two', '--partitions', '1', '--shards', '8').expect(0).json()
    assert said == {'dir': folder + '/two', 'partitions': 1, 'shards': 1}
    os.mkdir(folder + '/empty')
    pawl('init', '--dir', 'file://' + folder + '/empty').expect(0)
    with open(folder + '/file', 'w', encoding='utf-8') as file:
        file.write('x')
    pawl('init', '--dir', folder + '/file').expect(1, 'not a directory')
    pawl('init', '--dir', folder).expect(1, 'not empty')
    pawl('init', '--dir', folder + '/no/parent').expect(1, 'No such file')
    for words in (['--partitions', '3'], ['--partitions', '131072'], ['--shards', '65'], ['--shards', 'x'], ['--log', 'here'],
                  ['--log', 'kafka://localhost:1'], ['--log', 'kafka://localhost:1/shop?timeout-ms=1']):
        pawl('init', '--dir', folder + '/never', *words).expect(2)
    pawl('init', '--dir', folder + '/never', '--take-over').expect(1, 'nothing is taken over')  # that depends on the directory
    assert not os.path.exists(folder + '/never')


def a_directory_that_was_never_finished_is_made_after_all(folder):
    new = folder + '/new'
    for part in ('state', 'log'):
        os.makedirs(f'{new}/{part}')
    for part in ('lock', 'node.new'):
        with open(f'{new}/{part}', 'w', encoding='utf-8') as file:
            file.write('pawl')
    pawl('ws', 'list', '--dir', new).expect(1, f"'pawl init --dir {new}' makes one")
    os.mkdir(new + '/log/x')
    pawl('init', '--dir', new).expect(1, 'not empty')
    os.rmdir(new + '/log/x')
    assert pawl('init', '--dir', new, '--partitions', '4', JSON).expect(0).json()['partitions'] == 4
    pawl('ws', 'list', '--dir', new).expect(0)


def other_verbs_make_no_directory(folder):
    where = folder + '/none'
    for words in (['schema', 'apply', SHOP], ['schema', 'show'], ['ws', 'list'], ['ws', 'create', '1', 'shop.tenant'],
                  ['command', '1'], ['events', 'read', '--ws', '1'], ['record', 'get', '1', '1'], ['seq', 'list'],
                  ['token', 'create', 'a', '--scope', 'read'], ['token', 'list'], ['token', 'revoke', 'a']):
        pawl(*words, '--dir', where).expect(1, f"'pawl init --dir {where}' makes one")
    pawl('replay', '--dir', where, '--to', folder + '/to').expect(1)
    assert os.listdir(folder) == []


def wrong_use_is_told(folder):
    cases = [
        (('schema',), "'pawl schema apply' and 'pawl schema show'"),
        (('ws', 'crate'), "did you mean 'pawl ws create'"),
        (('ws', 'create', '7'), 'its KIND is missing'),
        (('ws', 'create', '0', 'k'), "WSID '0': expected a number of at least 1"),
        (('ws', 'show', 'seven'), "WSID 'seven'"),
        (('ws', 'list', '--limit', '0'), 'a number of at least 1'),
        (('schema', 'apply'), 'its FILE is missing'),
        (('command', '7', '--ack', 'soon'), 'durable or applied'),
        (('command', '7', 'file', '--command', 'c'), 'not from both'),
        (('command', '7', '--record', '{}'), 'the command that --command names'),
        (('command', '7', '--command', 'c', '--record', '{'), '--record: line 1, column 1'),
        (('command', '7', '--command', 'c', '--argument', '{"a":1,"a":2}'), '--argument: line 1'),
        (('command', '7', '--key', 'a', '--key', 'b'), '--key is given twice'),
        (('events', 'read'), '--ws WSID or --partition P'),
        (('events', 'follow', '--ws', '1', '--partition', '1'), 'one of them'),
        (('events', 'read', '--partition', '65536'), 'there is no partition 65536'),
        (('record', 'list', '7'), 'of which type?'),
        (('record', 'get', '7'), 'its ID is missing'),
        (('entity', 'get', '7', 'shop.X'), 'its KEY is missing'),
        (('replay',), 'into which directory?'),
        (('token',), "'pawl token create' and 'pawl token list' and 'pawl token revoke'"),
        (('token', 'create', '--scope', 'read'), 'its NAME is missing'),
        (('token', 'create', 'a'), 'what is it good for? Say --scope'),
        (('token', 'create', 'a', '--scope', ''), "--scope: there is no scope ''"),
        (('token', 'create', 'a', '--scope', 'read,'), "--scope: there is no scope ''"),
        (('token', 'create', 'a', '--scope', 'read,root'), "there is no scope 'root': it is read, write, project or admin"),
        (('token', 'create', 'a', '--scope', 'read', '--scope', 'write'), '--scope is given twice'),
        (('token', 'create', 'a', '--scope', 'read', '--ws', '0'), '--ws 0: expected a number of at least 1'),
        (('token', 'create', 'a', '--scope', 'read', '--ws', '7', '--ws', '7,8'), '--ws 7,8: expected a number'),
        (('token', 'create', 'a', '--scope', 'read', '--ws', '18446744073709551616'), 'expected a number'),
        (('token', 'create', 'a', '--scope', 'read', *(f'--ws={w}' for w in range(1, 66))), 'at most 64 workspaces'),
        (('token', 'create', 'a', '--scope', 'read', '--expires', '30'), 'a duration such as 500ms, 30s, 5m or 30d'),
        (('token', 'create', 'a', '--scope', 'read', '--expires', '0d'), 'a duration such as'),
        (('token', 'create', 'a', '--scope', 'read', '--expires', '-1d'), 'a duration such as'),
        (('token', 'create', 'a', '--scope', 'read', '--expires', '1y'), 'a duration such as'),
        (('token', 'create', 'a', '--scope', 'read', '--expires', '100000d'), 'after the year 2262'),
        (('token', 'create', 'a', '--scope', 'read', '--expires', '999999999d'), 'a duration such as'),
        (('token', 'revoke'), 'its NAME is missing'),
    ]
    for words, text in cases:
        pawl(*words, '--dir', folder).expect(2, text)
    pawl('ws', 'list').expect(2, 'which directory?')
    for noun in ('init', 'ws create', 'ws list', 'ws show', 'command', 'events follow', 'record list', 'entity get',
                 'seq list', 'replay', 'schema apply', 'token create', 'token list', 'token revoke'):
        pawl(*noun.split(), '--help').expect(0, f'usage: pawl {noun}')
    assert os.listdir(folder) == []


def a_schema_is_applied_shown_and_applied_again(folder):
    verb = shop(folder)
    shown = verb('schema', 'show').expect(0).out
    assert verb('schema', 'apply', '-', stdin=shown.encode()).expect(0).out == 'schema 1 is in force\n'
    lanes = 'shop.accounts: generation 1, serving 1\nshop.statements: generation 1, serving 1\n'
    assert verb('schema', 'show', '--lanes').expect(0).out == lanes
    line = verb('schema', 'show', JSON).expect(0)
    assert line.out.count('\n') == 1 and line.json() == json.loads(shown)
    changed = json.loads(shown)
    changed['entities']['Letter'] = {'key': ['to'], 'fields': {'to': {'type': 'ref'}}}
    changed['projectors']['mail'] = {'on': ['AddCustomer'], 'writes': ['Letter']}
    changed['types']['Note'] = {'kind': 'WDoc', 'fields': {'text': {'type': 'string'}}}
    # Building its view may have taken a position of group0 meanwhile.
    assert verb('schema', 'apply', '-', JSON, stdin=json.dumps(changed).encode()).json()['schema'] > 1
    assert verb('schema', 'show', '--lanes').expect(0).out == lanes + 'shop.mail: generation 1, serving 1\n'
    assert verb('schema', 'show', '--lanes', JSON).expect(0).lines()[2] == {
        'lane': 'shop.mail', 'id': 3, 'generation': 1, 'serving': 1, 'projectors': ['shop.mail'], 'entities': ['shop.Letter']}
    del changed['types']['Customer']['fields']['name']
    failure = verb('schema', 'apply', '-', JSON, stdin=json.dumps(changed).encode()).expect(1).error()
    assert failure['code'] == 'PAWL_EINVAL' and failure['where'].startswith('$.types.Customer'), failure
    failure = verb('schema', 'apply', '-', JSON, stdin=b'{"schema":1,\n "package":}').expect(1).error()
    assert failure['where'] == 'line 2, column 12', failure
    verb('schema', 'apply', '-', stdin=b'{}\0').expect(1, 'byte 2 of the schema is zero')
    verb('schema', 'apply', '-', stdin=b' ' * (5 << 20)).expect(1, 'more than')
    verb('schema', 'apply', folder + '/nothing').expect(1, 'No such file')


def workspaces_are_created_listed_and_shown(folder):
    verb = shop(folder)
    verb('ws', 'list').expect(0, 'workspace', 'events')
    said = verb('ws', 'create', '7', 'shop.tenant').expect(0).out
    assert said.startswith('workspace 7 is of kind shop.tenant, in partition '), said
    answer = verb('ws', 'create', '18446744073709551615', 'shop.tenant', JSON).expect(0).json()
    assert answer['workspace_offset'] == 1
    verb('ws', 'create', '7', 'shop.tenant').expect(1, 'workspace 7 exists already')
    verb('ws', 'create', '8', 'shop.landlord').expect(1, 'there is no workspace kind shop.landlord')
    found = verb('ws', 'list', JSON).expect(0).lines()
    assert sorted(str(w['wsid']) for w in found) == ['18446744073709551615', '7']
    assert all(w['kind'] == 'shop.tenant' and w['workspace_offset'] == 1 for w in found)
    verb('command', '7', stdin=(customer('Ada') + order(ADA, 500)).encode()).expect(0)
    verb('ws', 'show', '7').expect(0, 'shop.tenant', 'events     3', 'sequence   shop.invoice at 1')
    shown = verb('ws', 'show', '7', JSON).expect(0).json()
    assert shown['workspace_offset'] == 3 and shown['sequences'] == {
        'sys.WLogOffsetSeq': 3, 'sys.RecIDSeq': 200003, 'sys.CRecIDSeq': 200001, 'shop.invoice': 1,
        'shop.order': 1000}, shown
    verb('ws', 'show', '9').expect(1, 'there is no workspace 9')


def a_list_of_workspaces_has_pages(folder):
    wsids = range(1, 31)
    verb = shop(folder, *wsids)
    whole = [w['wsid'] for w in verb('ws', 'list', JSON).expect(0).lines()]
    assert sorted(whole) == list(wsids)
    paged = []
    while page := verb('ws', 'list', JSON, '--limit', '7', *(['--after', str(paged[-1])] if paged else [])).lines():
        paged += [w['wsid'] for w in page]
    assert paged == whole
    numbers = verb('seq', 'list', JSON).expect(0).lines()
    own = [n for n in numbers if n['wsid'] == 0]
    assert sum(n['last'] for n in own) == 30 and all(n['sequence'] == 'sys.PLogOffsetSeq' for n in own)
    assert [n['wsid'] for n in numbers if n['wsid']] and len(numbers) == len(own) + 30


def a_refused_line_does_not_stop_the_others(folder):
    verb = shop(folder, 7)
    lines = customer('a') + '{"command":"shop.Nope"}\n' + '\n' + customer(5) + 'not JSON\n' + customer('b')
    said = verb('command', '7', stdin=lines.encode()).expect(1, '3 of 5 commands were refused, the first in line 2')
    found = said.lines()
    assert [a.get('workspace_offset') for a in found] == [2, None, None, None, 3]
    assert [a.get('line') for a in found] == [None, 2, 4, 5, None]
    assert found[1]['error'] == {'code': 'PAWL_ENOTFOUND', 'message': "there is no command 'shop.Nope'",
                                 'where': '$.command'}
    assert found[2]['error']['where'] == '$.records[0].fields.name'
    assert found[3]['error']['where'].startswith('line 1, column')
    said = verb('command', '7', '--stop-on-error', JSON, stdin=lines.encode()).expect(1)
    assert len(said.lines()) == 2 and said.error()['code'] == 'PAWL_ENOTFOUND'
    processed = customer('a') + customer('b', expected_offset=99) + customer('c')
    assert len(verb('command', '7', '--stop-on-error', stdin=processed.encode()).expect(1).lines()) == 2
    assert verb('ws', 'show', '7', JSON).json()['workspace_offset'] == 5
    failure = verb('command', '7', JSON, '--command', 'shop.Nope').expect(1)
    assert failure.out == '' and failure.error()['where'] == '$.command'


def a_key_and_an_expected_offset_are_of_one_command(folder):
    verb = shop(folder, 7)
    line = customer('a').encode()
    first = verb('command', '7', '--key', 'k', stdin=line).expect(0).json()
    again = verb('command', '7', '--key', 'k', stdin=line).expect(0).json()
    assert again == {**first, 'repeated': True}
    other = verb('command', '7', '--key', 'k', stdin=customer('b').encode()).expect(1).json()
    assert other['error']['code'] == 'PAWL_ECONFLICT'
    other = verb('command', '7', '--expected-offset', '1', stdin=line).expect(1).json()
    assert other['error']['code'] == 'PAWL_ECONFLICT'
    verb('command', '7', '--expected-offset', '2', stdin=line).expect(0)
    two = verb('command', '7', '--key', 'l', stdin=line * 2).expect(1).json()
    assert two['error']['where'].startswith('line 2'), two


def a_key_beside_another_one_is_refused(folder):
    verb = shop(folder, 7)
    both = customer('a', idempotency_key='k').encode()
    refused = verb('command', '7', '--key', 'other', stdin=both).expect(1).json()['error']
    assert refused['code'] == 'PAWL_EINVAL' and refused['where'] == '$.idempotency_key', refused
    assert 'another key' in refused['message']
    assert verb('ws', 'show', '7', JSON).json()['workspace_offset'] == 1
    first = verb('command', '7', '--key', 'k', stdin=both).expect(0).json()
    assert verb('command', '7', stdin=both).expect(0).json() == {**first, 'repeated': True}


def events_are_read_by_workspace_and_by_partition(folder):
    verb = shop(folder, 7, 8)
    verb('command', '7', stdin=(customer('a') * 5).encode()).expect(0)
    verb('command', '8', stdin=(customer('b') * 5).encode()).expect(0)
    events = verb('events', 'read', '--ws', '7').expect(0).lines()
    assert [e['workspace_offset'] for e in events] == list(range(1, 7)) and {e['wsid'] for e in events} == {7}
    assert events[0]['kind'] == 'shop.tenant' and events[1]['records'][0]['fields'] == {'name': 'a'}
    some = verb('events', 'read', '--ws', '7', '--from', '3', '--limit', '2', JSON).lines()
    assert [e['workspace_offset'] for e in some] == [3, 4]
    every = [e for p in range(4) for e in verb('events', 'read', '--partition', str(p)).expect(0).lines()]
    assert len(every) == 12 and [e for e in every if e['wsid'] == 7] == events
    partition = str(events[0]['partition'])
    one = verb('events', 'read', '--partition', partition, '--from', str(events[2]['offset']), '--limit', '1').json()
    assert one == events[2]
    assert verb('events', 'read', '--ws', '7', '--from', '99').expect(0).out == ''
    verb('events', 'read', '--ws', '9').expect(1, 'there is no workspace 9')
    verb('events', 'read', '--partition', '4').expect(1, 'there is no partition 4')


def records_are_found_wherever_they_are(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=(customer('Ada') + order(ADA, 500) + customer('Bo')).encode()).expect(0)
    assert verb('record', 'get', '7', str(ADA)).expect(0).json() == {
        'id': ADA, 'type': 'shop.Customer', 'active': True, 'fields': {'name': 'Ada'}}
    line = verb('record', 'get', '7', '200003', JSON).expect(0).json()
    assert line['type'] == 'shop.OrderLine' and line['parent'] == 200002 and line['container'] == 'lines'
    assert verb('record', 'get', '7', '200001', '--type', 'shop.Invoice').json()['fields']['number'] == 1
    verb('record', 'get', '7', '200001', '--type', 'shop.Customer').expect(1, 'has no record 200001')
    verb('record', 'get', '7', '200001', '--type', 'shop.Nope').expect(1, 'there is no type')
    assert verb('record', 'get', '7', '5', JSON).expect(1).error()['code'] == 'PAWL_ENOTFOUND'
    verb('record', 'get', '9', '5').expect(1, 'there is no workspace 9')
    names = [r['fields']['name'] for r in verb('record', 'list', '7', '--type', 'shop.Customer').lines()]
    assert names == ['Ada', 'Bo']
    after = verb('record', 'list', '7', '--type', 'shop.Customer', '--after', str(ADA), '--limit', '5').expect(0)
    assert after.json()['fields'] == {'name': 'Bo'}
    assert verb('record', 'list', '7', '--type', 'shop.Payment').expect(0).out == ''
    verb('record', 'list', '7', '--type', 'shop.Order').expect(1, 'in their events')
    verb('record', 'list', '9', '--type', 'shop.Customer').expect(1, 'there is no workspace 9')


def long_lists_come_in_pages(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=b''.join(customer(f'c{n}').encode() for n in range(2500))).expect(0)
    found = verb('record', 'list', '7', '--type', 'shop.Customer').expect(0).lines()
    assert [r['fields']['name'] for r in found] == [f'c{n}' for n in range(2500)]
    verb('command', '7', stdin=b''.join(order(ADA + n, n).encode() for n in range(1200))).expect(0)
    totals = verb('entity', 'list', '7', 'shop.CustomerTotal', '--limit', '1100').expect(0).lines()
    assert [t['customer'] for t in totals] == [ADA + n for n in range(1100)]
    rest = verb('entity', 'list', '7', 'shop.CustomerTotal', '--after', str(ADA + 1099)).expect(0).lines()
    assert [t['cents'] for t in rest] == list(range(1100, 1200))


def entities_are_found_by_their_keys(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=(customer('Ada') + order(ADA, 500) + order(ADA, 250)).encode()).expect(0)
    total = {'customer': ADA, 'orders': 2, 'cents': 750}
    for key in (str(ADA), f'[{ADA}]', f'{{"customer":{ADA}}}'):
        assert verb('entity', 'get', '7', 'shop.CustomerTotal', key).expect(0).json() == total
    verb('entity', 'get', '7', 'shop.CustomerTotal', '5').expect(1, 'has no such shop.CustomerTotal')
    for key, text in (('{"x":1}', 'no such field'), ('[1,2]', 'has 1 fields, not 2'), ('"a"', 'not an integer'),
                      ('null', 'no nulls'), ('{}', 'missing'), ('[', 'line 1'), ('1.5', 'expected')):
        verb('entity', 'get', '7', 'shop.CustomerTotal', key).expect(1, text)
    verb('entity', 'get', '7', 'shop.Customer', '1').expect(1, 'there is no entity shop.Customer')
    verb('entity', 'list', '9', 'shop.CustomerTotal').expect(1, 'there is no workspace 9')


def a_state_that_differs_from_its_log_is_found(folder):
    data = folder + '/data'
    verb = shop(data, 7)
    verb('command', '7', stdin=(customer('Ada Lovelace') + order(ADA, 500)).encode()).expect(0)
    verb('verify').expect(0, '3 events derived again', 'is sound')
    found = verb('verify', JSON).expect(0).json()
    assert found['sound'] and found['state']['events'] == 3 and found['state']['differences'] == 0
    pawl('verify', '--log', data + '/log').expect(0, 'is sound')
    pawl('log', 'read', '--dir', data, '--stream', 'group0', '--limit', '1', JSON).expect(0, '"offset":1')
    for shard in ('0', '1'):
        file = f'{data}/state/{shard}/data.mdb'
        with open(file, 'rb') as store:
            bytes_ = store.read()
        at = -1
        while (at := bytes_.find(b'Ada Lovelace', at + 1)) >= 0:
            flip(file, at)
    verb('verify').expect(3, 'DIFFERENT', 'workspace 7')
    found = verb('verify', JSON).expect(3).json()
    assert not found['sound'] and found['faults'] == 0 and found['state']['differences'] >= 1
    assert 'workspace 7' in found['state']['first_difference']
    said = verb('replay', '--to', folder + '/derived').expect(3, 'DIFFERENT')
    assert 'has the derived state' in said.out
    derived = pawl('record', 'get', '--dir', folder + '/derived', '7', str(ADA)).expect(0).json()
    assert derived['fields'] == {'name': 'Ada Lovelace'}


def a_log_that_is_damaged_is_found_before_the_state(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=customer('Ada Lovelace').encode()).expect(0)
    where = folder + '/log/journal'
    for name in os.listdir(where):
        with open(f'{where}/{name}', 'rb') as file:
            at = file.read().find(b'Ada Lovelace')
        if at >= 0:
            flip(f'{where}/{name}', at)
    verb('verify').expect(3, 'CORRUPT')
    assert 'state' not in verb('verify', JSON).expect(3).json()
    verb('doctor').expect(3)


def a_replay_keeps_the_state_of_then(folder):
    data = folder + '/data'
    verb = shop(data, 7)
    verb('command', '7', stdin=(customer('a') + customer('b') + customer('c')).encode()).expect(0)
    before = contents(data)
    said = verb('replay', '--to', folder + '/all', JSON).expect(0).json()
    assert said['events'] == 4 and said['compared'] == 4 and said['differences'] == 0, said
    verb('replay', '--to', folder + '/then', '--until', '3').expect(0, '3 events derived again')
    names = [r['fields']['name'] for r in pawl('record', 'list', '--dir', folder + '/then', '7', '--type',
                                               'shop.Customer').expect(0).lines()]
    assert names == ['a', 'b']
    assert {k: v for k, v in contents(data).items() if 'lock' not in k} == \
        {k: v for k, v in before.items() if 'lock' not in k}
    verb('replay', '--to', folder + '/then').expect(1, 'exists already')
    pawl('command', '7', '--dir', folder + '/then', stdin=customer('d').encode()).expect(1, 'open it read-only')
    assert verb('replay', JSON, '--to', folder + '/then').expect(1).error()['code'] == 'PAWL_EEXISTS'


def a_state_that_cannot_be_used_is_derived_again_by_a_writer(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=customer('Ada').encode()).expect(0)
    for shard in ('0', '1'):
        os.truncate(f'{folder}/state/{shard}/data.mdb', 5000)
    assert verb('record', 'get', '7', str(ADA), JSON).expect(3, 'derived again').error()['code'] == 'PAWL_ECORRUPT'
    assert verb('command', '1', stdin=b'').expect(0).out == ''
    assert verb('record', 'get', '7', str(ADA)).expect(0).json()['fields'] == {'name': 'Ada'}
    verb('verify').expect(0, 'is sound')


def id_of(secret):
    """The ID of the token that this is the secret of."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


def a_token_is_made_listed_and_revoked(folder):
    verb = shop(folder)
    assert verb('token', 'list', JSON).expect(0).out == ''
    made = verb('token', 'create', 'deploy', '--scope', 'read,write').expect(0)
    secret = made.out.strip()
    assert re.fullmatch(r'pawl_[A-Za-z0-9_-]{43}\n', made.out), made.out
    assert made.err == (f'token deploy ({id_of(secret)}) is good for read,write in all workspaces. '
                        'Its secret is shown only now.\n'), made.err
    before = datetime.datetime.now(datetime.timezone.utc)
    bound = verb('token', 'create', 'ci.bot', '--scope', 'project', '--ws', '9', '--ws=7', '--ws', '9', '--expires', '30d',
                 JSON).expect(0).json()
    expires = datetime.datetime.strptime(bound.pop('expires')[:19], '%Y-%m-%dT%H:%M:%S').replace(tzinfo=datetime.timezone.utc)
    assert 0 <= (expires - before).total_seconds() + 1 - 30 * 86400 < 300
    assert bound.pop('created') and bound['id'] == id_of(bound.pop('secret'))
    assert bound == {'name': 'ci.bot', 'id': bound['id'], 'scopes': ['project'], 'wsids': [7, 9]}, bound
    verb('token', 'create', 'deploy', '--scope', 'admin').expect(1, 'there is a token deploy already')
    assert verb('token', 'create', 'deploy', '--scope', 'admin', JSON).expect(1).error()['code'] == 'PAWL_EEXISTS'
    for name in ('', '-a', 'a b', 'a/b', 'ä', 'n' * 65):
        verb('token', 'create', name, '--scope', 'read').expect(2, 'the name of a token has 1 to 64 letters')
    listed = verb('token', 'list', JSON).expect(0)
    assert [(t['name'], t['id'], t['scopes'], t['wsids'], t['expired']) for t in listed.lines()] == [
        ('ci.bot', bound['id'], ['project'], [7, 9], False), ('deploy', id_of(secret), ['read', 'write'], [], False)]
    assert listed.lines()[1]['expires'] is None
    table = verb('token', 'list').expect(0, 'workspaces', 'never', '7,9').out
    for said in (listed.out, table):
        assert secret not in said and secret[5:25] not in said
    assert verb('token', 'revoke', 'deploy').expect(0).out == 'token deploy is revoked\n'
    verb('token', 'revoke', 'deploy').expect(1, 'there is no token deploy')
    assert verb('token', 'revoke', 'deploy', JSON).expect(1).error()['code'] == 'PAWL_ENOTFOUND'
    assert verb('token', 'revoke', 'ci.bot', JSON).expect(0).json() == {'name': 'ci.bot', 'revoked': True}
    assert verb('token', 'list', JSON).expect(0).out == ''
    again = verb('token', 'create', 'deploy', '--scope', 'read').expect(0).out.strip()
    assert again != secret
    assert [t['id'] for t in verb('token', 'list', JSON).lines()] == [id_of(again)]


def a_token_that_has_expired_says_so(folder):
    verb = shop(folder)
    verb('token', 'create', 'brief', '--scope', 'read', '--expires', '1s').expect(0, ', until 20')
    while not verb('token', 'list', JSON).expect(0).json()['expired']:
        pass
    verb('token', 'list').expect(0, ' expired ')
    verb('token', 'create', 'brief', '--scope', 'read').expect(1, 'there is a token brief already')
    verb('token', 'revoke', 'brief').expect(0)


def tokens_are_listed_beside_a_writer_and_made_by_nobody_else(folder):
    verb = shop(folder, 7)
    verb('token', 'create', 'a', '--scope', 'read').expect(0)
    writer = start('command', '7', '--dir', folder)
    writer.stdin.write(customer('Ada').encode())
    writer.stdin.flush()
    writer.stdout.readline()  # it has answered, so it has the directory
    assert verb('token', 'list', JSON).expect(0).json()['name'] == 'a'
    verb('token', 'create', 'b', '--scope', 'read').expect(5, f'process {writer.pid}')
    verb('token', 'revoke', 'a').expect(5, f'process {writer.pid}')
    end(writer, 0)
    assert [t['name'] for t in verb('token', 'list', JSON).expect(0).lines()] == ['a']
    verb('verify', '--audit').expect(0, 'is sound')


# These look at no file of the directory, so they are run with a server, too.
EVERYWHERE = [a_schema_is_applied_shown_and_applied_again, workspaces_are_created_listed_and_shown,
              a_list_of_workspaces_has_pages, a_refused_line_does_not_stop_the_others,
              a_key_and_an_expected_offset_are_of_one_command, a_key_beside_another_one_is_refused,
              events_are_read_by_workspace_and_by_partition,
              records_are_found_wherever_they_are, long_lists_come_in_pages, entities_are_found_by_their_keys]

ON_A_DIRECTORY = [a_directory_is_made_once, a_directory_that_was_never_finished_is_made_after_all,
                  other_verbs_make_no_directory, wrong_use_is_told,
                  a_state_that_differs_from_its_log_is_found, a_log_that_is_damaged_is_found_before_the_state,
                  a_replay_keeps_the_state_of_then, a_state_that_cannot_be_used_is_derived_again_by_a_writer,
                  a_token_is_made_listed_and_revoked, a_token_that_has_expired_says_so,
                  tokens_are_listed_beside_a_writer_and_made_by_nobody_else]

if __name__ == '__main__':
    main(EVERYWHERE + (ON_A_DIRECTORY if WHERE == 'dir' else []))
