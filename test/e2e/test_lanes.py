"""Projectors in lanes, from the shell: what they have made, what they are working on, and what an operator does."""
import json
from datetime import datetime, timedelta, timezone

from shell import SHOP, WHERE, customer, end, main, order, patiently, pawl, shop, start

ADA = 1125899907042625  # the first record of a workspace's C register
JSON = '--json'

# Fails as often as it is told to divide by zero; the second one gives up at once, and goes on.
CALC = {
    'schema': 1, 'package': 'calc', 'workspaces': {'sheet': {}},
    'types': {'Sum': {'kind': 'ODoc', 'fields': {'row': {'type': 'int64', 'required': True}, 'by': {'type': 'int64'}}}},
    'commands': {'Divide': {'argument': 'Sum'}},
    'entities': {'Stern': {'key': ['row'], 'fields': {'row': {'type': 'int64'}, 'value': {'type': 'int64'}}},
                 'Easy': {'key': ['row'], 'fields': {'row': {'type': 'int64'}, 'value': {'type': 'int64'}}}},
    'projectors': {
        'stern': {'on': ['Divide'], 'max_attempts': 2, 'do': [
            {'upsert': 'Stern', 'key': {'row': '$event.argument.row'}, 'set': {'value': '100 / $event.argument.by'}}]},
        'easy': {'on': ['Divide'], 'on_failure': 'void', 'max_attempts': 1, 'do': [
            {'upsert': 'Easy', 'key': {'row': '$event.argument.row'}, 'set': {'value': '100 / $event.argument.by'}}]}}}


def calc(folder):
    """A directory with one sheet, as a function that runs a verb on it."""
    def verb(*words, **how):
        return pawl(*words, '--dir', folder, **how)
    verb('init', '--partitions', '2').expect(0)
    verb('schema', 'apply', '-', stdin=json.dumps(CALC).encode()).expect(0)
    verb('ws', 'create', '1', 'calc.sheet').expect(0)
    return verb


def divide(*pairs):
    return ''.join(json.dumps({'command': 'calc.Divide', 'argument': {'id': 1, 'row': row, 'by': by}}) + '\n'
                   for row, by in pairs).encode()


def statement(who):
    return json.dumps({'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': who}}) + '\n'


def reward(cents):
    return json.dumps({'command': 'shop.RewardLoyal', 'argument': {'id': 1, 'cents': cents}}) + '\n'


def partition_of(verb, wsid):
    return verb('ws', 'show', str(wsid), JSON).expect(0).json()['partition']


def projectors_are_listed(folder):
    verb = shop(folder)
    rows = {row.pop('projector'): row for row in verb('project', 'list', JSON).expect(0).lines()}
    assert list(rows) == ['shop.totals', 'shop.turnover', 'shop.accounts', 'shop.loyalty', 'shop.statements']
    assert rows['shop.totals'] == {'kind': 'declarative', 'on': ['shop.PlaceOrder'], 'writes': ['shop.CustomerTotal'],
                                   'sync': True}
    lane = {'lane': 'shop.accounts', 'generation': 1, 'workers': 4, 'attempts': 5, 'on_failure': 'stall'}
    assert rows['shop.loyalty'] == {'kind': 'declarative', 'on': ['shop.RewardLoyal'], 'writes': ['shop.Account'], **lane}
    assert rows['shop.statements'] == {'kind': 'handler', 'on': ['shop.AskStatement'], 'writes': ['shop.Statement'],
                                       **lane, 'lane': 'shop.statements', 'workers': 64}
    said = verb('project', 'list').expect(0, 'synchronous', 'shop.PlaceOrder -> shop.Account').out
    assert len(said.splitlines()) == 6


def lanes_catch_up_and_are_read(folder):
    verb = shop(folder, 7, 8)
    answers = verb('command', '7', stdin=(customer('Ada') + order(ADA, 500) + order(ADA, 700) + reward(1000)
                                          + order(ADA, 1)).encode()).expect(0).lines()
    verb('command', '8', stdin=(customer('Bob') + order(ADA, 5)).encode()).expect(0)
    said = verb('project', 'run', JSON).expect(0).json()
    assert said['caught_up'] and said['lanes'] == 2 and said['operations'] == 5
    verb('project', 'run', '--timeout', '300s').expect(0, '2 lanes have caught up', '5 operations')
    account = {'customer': ADA, 'orders': 3, 'cents': 1201, 'loyal': True}
    last = str(answers[-1]['offset'])
    assert verb('entity', 'get', '7', 'shop.Account', str(ADA), '--min-offset', last).expect(0).json() == account
    assert verb('entity', 'list', '7', 'shop.Account').expect(0).lines() == [account]
    rows = verb('project', 'status', JSON).expect(0).lines()
    assert [(r['lane'], r['generation'], r['serving'], r['lag'], r['operations']) for r in rows] == \
        [('shop.accounts', 1, True, 0, 5), ('shop.statements', 1, True, 0, 0)]
    assert len(verb('project', 'status', 'shop.accounts').expect(0, 'serves', 'current').out.splitlines()) == 2
    verb('verify').expect(0, 'is sound')


def operations_are_read_and_chosen(folder):
    verb = shop(folder, 7, 8)
    answers = verb('command', '7', stdin=(customer('Ada') + order(ADA, 500) + order(ADA, 700) + reward(1000)).encode()
                   ).expect(0).lines()
    verb('command', '8', stdin=(customer('Bob') + order(ADA, 5)).encode()).expect(0)
    verb('project', 'run').expect(0)
    found = verb('op', 'read', 'shop.accounts', '--ws', '7').expect(0).lines()
    assert [o['number'] for o in found if o['wsid'] == 7] == [o['number'] for o in found] and len(found) == 3
    assert [o['event'] for o in found] == [a['offset'] for a in answers[1:]]
    assert found[0]['writes'] == [{'upsert': 'shop.Account', 'rows': [
        {'key': {'customer': ADA}, 'set': {'orders': 1, 'cents': 500}}]}]
    assert found[2]['writes'] == [{'update': 'shop.Account', 'rows': [{'key': {'customer': ADA}, 'set': {'loyal': True}}]}]
    assert found[2]['projector'] == 'shop.loyalty' and len(found[2]['operation']) == 32 and found[2]['attempt'] >= 1
    assert len(verb('op', 'read', 'shop.accounts').expect(0).lines()) == 4
    here = ['--partition', str(answers[0]['partition'])]
    one = verb('op', 'read', 'shop.accounts', *here, '--source', str(answers[2]['offset'])).expect(0).lines()
    assert one == [found[1]]
    assert verb('op', 'read', 'shop.accounts', '--ws', '7', '--from', str(found[1]['number']), '--limit', '1'
                ).expect(0).lines() == [found[1]]
    assert verb('op', 'read', 'shop.accounts', '--ws', '7', '--entity', 'shop.Account').expect(0).lines() == found
    assert verb('op', 'read', 'shop.accounts', '--ws', '7', '--entity', 'shop.Statement').expect(0).out == ''
    assert verb('op', 'read', 'shop.accounts', '--ws', '7', '--generation', '1').expect(0).lines() == found
    nowhere = verb('op', 'read', 'shop.accounts', '--ws', '7', '--generation', '9').expect(1)
    assert nowhere.out == '' and 'lane shop.accounts has no generation 9' in nowhere.err
    for number, answer in enumerate(answers):
        said = verb('op', 'read', 'shop.accounts', *here, '--source', str(answer['offset'])).expect(0).lines()
        assert said == found[number - 1:number] if number else said == []
    assert verb('op', 'read', 'shop.accounts', *here, '--source', '99').expect(0).out == ''
    last = ['--source', str(answers[2]['offset']), '--from', str(found[2]['number'])]
    assert verb('op', 'read', 'shop.accounts', *here, *last).expect(0).out == ''
    verb('op', 'read', 'shop.nothing').expect(1, 'there is no lane shop.nothing')
    verb('op', 'read', 'shop.accounts', '--partition', '9').expect(1, 'there is no partition 9')
    verb('op', 'read', 'shop.accounts', '--source', '1').expect(2, '--partition P')
    verb('op', 'read', 'shop.accounts', '--partition', '1', '--ws', '7').expect(2, 'one partition')


def what_waits_for_a_worker_is_said_and_can_be_made_void(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=(customer('Ada') + statement(ADA) + order(ADA, 5)).encode()).expect(0)
    where = str(partition_of(verb, 7))
    said = verb('project', 'run').expect(1, 'shop.statements', 'worker')
    assert said.out == ''
    assert verb('project', 'run', JSON).expect(1).error()['code'] == 'PAWL_EBUSY'
    assert verb('entity', 'get', '7', 'shop.Account', str(ADA)).expect(0).json()['orders'] == 1
    row = verb('lease', 'list', JSON).expect(0).json()
    assert row['state'] == 'bound' and row['number'] == 1 and row['lane'] == 'shop.statements' and row['attempt'] == 0
    assert str(row['partition']) == where and row['projector'] == 'shop.statements'
    verb('lease', 'list', 'shop.statements', '--partition', where).expect(0, 'bound')
    assert verb('lease', 'list', 'shop.accounts', JSON).expect(0).out == ''
    verb('lease', 'reclaim', where, 'shop.statements', '1').expect(1)
    verb('lease', 'void', where, 'shop.statements', '1').expect(2, '--reason')
    verb('lease', 'void', where, 'shop.statements', '2', '--reason', 'x').expect(1, '2')
    assert verb('lease', 'void', where, 'shop.statements', '1', '--reason', 'Ada has moved', JSON).expect(0).json() == \
        {'lane': 'shop.statements', 'partition': int(where), 'number': 1, 'decided': 'void'}
    verb('project', 'run').expect(0)
    made = verb('op', 'read', 'shop.statements').expect(0).json()
    assert made['void'] == 'Ada has moved' and 'writes' not in made
    verb('entity', 'get', '7', 'shop.Statement', str(ADA)).expect(1, 'no such shop.Statement')
    verb('verify').expect(0, 'is sound')


def leases_are_listed_with_their_times(folder):
    verb = calc(folder)
    for lane in ('calc.stern', 'calc.easy'):
        verb('project', 'pause', lane).expect(0)
    verb('command', '1', stdin=divide((1, 0), (2, 4))).expect(0)
    # In a copy nothing is paused, and nothing has been worked on: whoever opens it does all of it.
    pawl('backup', '--dir', folder, '--to', folder + '.backup').expect(0)
    for name in ('json', 'text'):
        pawl('restore', '--from', folder + '.backup', '--dir', f'{folder}.{name}').expect(0)
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    rows = pawl('lease', 'list', JSON, '--dir', folder + '.json').expect(0).lines()
    after = datetime.now(timezone.utc) + timedelta(seconds=1)
    found = [(r['lane'], r['number'], r['state']) for r in rows]
    assert found[0] == ('calc.stern', 1, 'stalled'), found
    assert found[-2:] == [('calc.easy', 1, 'committed'), ('calc.easy', 2, 'committed')], found
    assert rows[-2]['void'] and 'void' not in rows[-1]
    for row in (rows[0], rows[-2], rows[-1]):
        assert row['projector'] == row['lane'] and len(row['operation']) == 32 and row['duration'] > 0
        names = ['leased_at'] + (['committed_at'] if row['state'] == 'committed' else [])
        assert [n for n in ('leased_at', 'ends_at', 'committed_at') if n in row] == names
        times = [datetime.fromisoformat(row[name].replace('Z', '+00:00')) for name in names]
        assert before < times[0] <= times[-1] < after, (before, row, after)
    table = pawl('lease', 'list', '--dir', folder + '.text').expect(0).out.splitlines()
    granted, ends, committed = (table[0].index(word) for word in ('granted', 'ends', 'committed'))
    for line, state in ((table[1], 'stalled'), (table[-2], 'committed'), (table[-1], 'committed')):
        assert line.split()[4] == state, table
        assert line[granted:granted + 2] == '20' and line[ends:ends + 2] == '- '
        assert line[committed:committed + 2] == ('20' if state == 'committed' else '- ')


def what_fails_stalls_its_lane_alone_until_somebody_decides(folder):
    verb = calc(folder)
    verb('command', '1', stdin=divide((1, 4), (2, 0), (3, 5))).expect(0)
    verb('project', 'run').expect(1, 'calc.stern', 'stalled')
    assert [r['row'] for r in verb('entity', 'list', '1', 'calc.Stern').expect(0).lines()] == [1]
    assert [r['row'] for r in verb('entity', 'list', '1', 'calc.Easy').expect(0).lines()] == [1, 3]
    where = str(partition_of(verb, 1))
    rows = verb('lease', 'list', 'calc.stern', JSON).expect(0).lines()
    assert (rows[0]['number'], rows[0]['state']) == (2, 'stalled') and 'zero' in rows[0]['words']
    verb('lease', 'list').expect(0, 'stalled', 'zero')
    stats = verb('lease', 'stats', 'calc.stern', JSON).expect(0).lines()
    assert stats[-1]['partition'] is None and stats[-1]['stalled'] == 1 and len(stats) == 3
    assert [a['alert'] for a in stats[-1]['alerts']] == ['stalled'] and stats[-1]['alerts'][0]['advice']
    verb('lease', 'stats').expect(0, 'alert: lane calc.stern')
    verb('lease', 'retry', where, 'calc.stern', '2').expect(0, 'tried again')
    verb('lease', 'retry', where, 'calc.stern', '2', '--generation', '1').expect(0, 'tried again')
    verb('lease', 'retry', where, 'calc.stern', '2', '--generation', '2').expect(1)
    assert rows[0]['generation'] == 1
    verb('project', 'run').expect(1, 'stalled')
    verb('lease', 'retry', where, 'calc.stern', '7').expect(1)
    verb('lease', 'void', where, 'calc.stern', '2', '--reason', 'nobody divides by zero').expect(0)
    verb('project', 'run').expect(0)
    assert [r['row'] for r in verb('entity', 'list', '1', 'calc.Stern').expect(0).lines()] == [1, 3]
    assert [o.get('void') for o in verb('op', 'read', 'calc.stern').expect(0).lines()] == \
        [None, 'nobody divides by zero', None]
    assert 'zero' in verb('op', 'read', 'calc.easy').expect(0).lines()[1]['void']
    verb('verify').expect(0, 'is sound')


def a_paused_lane_rests_until_it_is_resumed(folder):
    verb = shop(folder, 7)
    assert verb('project', 'pause', 'shop.accounts', JSON).expect(0).json() == {'lane': 'shop.accounts', 'paused': True}
    verb('command', '7', stdin=(customer('Ada') + order(ADA, 5)).encode()).expect(0)
    verb('project', 'run').expect(1, 'shop.accounts', 'paused')
    verb('entity', 'get', '7', 'shop.Account', str(ADA)).expect(1)
    assert verb('project', 'status', 'shop.accounts', JSON).expect(0).json()['state'] == 'paused'
    verb('project', 'resume', 'shop.accounts').expect(0, 'lane shop.accounts goes on')
    verb('project', 'run').expect(0)
    assert verb('entity', 'get', '7', 'shop.Account', str(ADA)).expect(0).json()['orders'] == 1
    verb('project', 'pause', 'shop.nothing').expect(1, 'there is no lane shop.nothing')


def a_lane_is_built_anew_and_takes_the_old_ones_place(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=(customer('Ada') + order(ADA, 5) + order(ADA, 6)).encode()).expect(0)
    verb('project', 'run').expect(0)
    before = verb('entity', 'list', '7', 'shop.Account').expect(0).lines()
    verb('project', 'rebuild', 'shop.accounts', '--wait').expect(0, 'caught up')
    row = verb('project', 'status', 'shop.accounts', JSON).expect(0).json()
    assert (row['generation'], row['serving'], row['building'], row['operations']) == (2, True, False, 2)
    assert verb('entity', 'list', '7', 'shop.Account').expect(0).lines() == before
    assert verb('project', 'rebuild', 'shop.accounts', JSON).expect(0).json() == {'lane': 'shop.accounts', 'building': True}
    verb('project', 'run').expect(0)
    assert verb('project', 'list', JSON).expect(0).lines()[2]['generation'] == 3
    with open(SHOP, encoding='utf-8') as file:
        changed = file.read().replace('"orders": "coalesce(orders, 0) + 1",\n                                     "cents"',
                                      '"orders": "coalesce(orders, 0) + 10",\n                                     "cents"')
    verb('schema', 'apply', '-', stdin=changed.encode()).expect(0, 'schema')
    verb('project', 'run').expect(0)
    assert verb('entity', 'list', '7', 'shop.Account').expect(0).lines() == [{**before[0], 'orders': 20}]
    verb('project', 'rebuild', 'shop.nothing').expect(1, 'there is no lane shop.nothing')
    verb('project', 'pause', 'shop.accounts').expect(0)
    verb('project', 'rebuild', 'shop.accounts').expect(0)
    verb('project', 'rebuild', 'shop.accounts').expect(1, 'is being rebuilt already')  # nobody else has the directory
    verb('verify').expect(0, 'is sound')


def readers_work_beside_a_writer_and_others_do_not(folder):
    verb = shop(folder, 7)
    writer = start('command', '7', '--dir', folder)
    writer.stdin.write((customer('Ada') + order(ADA, 500)).encode())
    writer.stdin.flush()
    offset = [json.loads(writer.stdout.readline())['offset'] for _ in range(2)][1]
    row = patiently(verb, 'entity', 'get', '7', 'shop.Account', str(ADA), '--min-offset', str(offset)).expect(0).json()
    assert row['cents'] == 500
    writer.stdin.write(customer('Bob').encode())  # which is nothing to the accounts
    writer.stdin.flush()
    offset = json.loads(writer.stdout.readline())['offset']
    patiently(verb, 'entity', 'get', '7', 'shop.Account', str(ADA), '--min-offset', str(offset)).expect(0)
    while not verb('op', 'read', 'shop.accounts').expect(0).out:
        pass  # until the files witness that it is durable
    assert verb('project', 'status', 'shop.accounts', JSON).expect(0).json()['operations'] == 1
    verb('project', 'list').expect(0)
    for words in (['project', 'run'], ['project', 'rebuild', 'shop.accounts'], ['project', 'pause', 'shop.accounts'],
                  ['lease', 'list'], ['lease', 'stats'], ['lease', 'retry', '0', 'shop.accounts', '1']):
        verb(*words).expect(5, 'open for writing', f'process {writer.pid}')
    end(writer, 0)
    verb('project', 'run').expect(0)


def wrong_use_is_told(folder):
    verb = shop(folder)
    cases = [
        (('project',), "'pawl project list'"),
        (('lease',), "'pawl lease list'"),
        (('project', 'rebild', 'x'), "did you mean 'pawl project rebuild'"),
        (('project', 'rebuild'), 'its LANE is missing'),
        (('project', 'run', '--timeout', '5'), 'a duration such as'),
        (('project', 'run', '--timeout', '0s'), 'a duration such as'),
        (('project', 'run', '--timeout', '99999999999s'), 'a duration such as'),
        (('lease', 'retry', 'x', 'shop.accounts', '1'), "PARTITION 'x'"),
        (('lease', 'retry', '0', 'shop.accounts', '0'), "N '0'"),
        (('lease', 'retry', '0', 'shop.accounts'), 'its N is missing'),
        (('lease', 'void', '0', 'shop.accounts', '1', '--reason', 'x' * 201), 'at most 200 bytes'),
        (('lease', 'void', '0', 'shop.accounts', '1', '--reason', 'x', '--generation', '4294967296'),
         'there is no generation'),
        (('lease', 'list', '--limit', '0'), 'a number of at least 1'),
        (('op', 'read'), 'its LANE is missing'),
        (('op', 'read', 'shop.accounts', '--generation', '99999999999'), 'there is no generation'),
    ]
    for words, said in cases:
        verb(*words).expect(2, said)
    verb('lease', 'list', '--partition', '9').expect(1, 'there is no partition 9')
    verb('lease', 'retry', '9', 'shop.accounts', '1').expect(1, 'there is no partition 9')
    assert verb('project', 'status', 'shop.nothing', JSON).expect(1).error()['code'] == 'PAWL_ENOTFOUND'
    verb('lease', 'stats', 'shop.nothing').expect(1, 'there is no lane shop.nothing')


# These look at no file of the directory, so they are run with a server, too.
EVERYWHERE = [projectors_are_listed, leases_are_listed_with_their_times,
              what_fails_stalls_its_lane_alone_until_somebody_decides, lanes_catch_up_and_are_read,
              operations_are_read_and_chosen, a_paused_lane_rests_until_it_is_resumed,
              a_lane_is_built_anew_and_takes_the_old_ones_place]

ON_A_DIRECTORY = [what_waits_for_a_worker_is_said_and_can_be_made_void, readers_work_beside_a_writer_and_others_do_not,
                  wrong_use_is_told]

if __name__ == '__main__':
    main(EVERYWHERE + (ON_A_DIRECTORY if WHERE == 'dir' else []))
