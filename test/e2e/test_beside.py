"""Verbs while others are at work: many commands under way, readers beside a writer, followers, signals."""
import json
import signal

from shell import PATIENCE, SHOP, WHERE, customer, end, main, order, pawl, shop, start

ADA = 1125899907042625  # the first record of a workspace's C register
JSON = '--json'


def commands_come_from_options_files_and_lines(folder):
    data = folder + '/data'
    verb = shop(data, 7)
    record = '{"id":1,"type":"shop.Customer","fields":{"name":"Ada"}}'
    answer = verb('command', '7', '--command', 'shop.AddCustomer', '--record', record).expect(0).json()
    assert answer['ids'] == {'1': ADA} and answer['workspace_offset'] == 2
    two = verb('command', '7', '--command', 'shop.AddCustomer', '--record', record,
               '--record=' + record.replace(':1', ':2'), '--actor', 'till-3', '--correlation', 'c', '--causation', 'e')
    assert len(two.expect(0).json()['ids']) == 2
    event = verb('events', 'read', '--ws', '7', '--from', '3').expect(0).json()
    assert (event['actor'], event['correlation'], event['causation']) == ('till-3', 'c', 'e')
    with open(folder + '/order.json', 'w', encoding='utf-8') as file:
        json.dump(json.loads(order(ADA, 500)), file, indent=2)
    assert verb('command', '7', folder + '/order.json').expect(0).json()['workspace_offset'] == 4
    with open(folder + '/many', 'w', encoding='utf-8') as file:
        file.write('\n' + order(ADA, 1) * 600 + '  \n' + order(ADA, 1).rstrip())
    answers = verb('command', '7', folder + '/many', '--ack', 'durable').expect(0).lines()
    assert [a['workspace_offset'] for a in answers] == list(range(5, 606))
    numbers = [number for a in answers for fields in a['numbers'].values() for number in fields.values()]
    assert sorted(numbers) == list(range(2, 603)) + list(range(1001, 1602))
    assert verb('command', '7', '-').expect(0).out == ''
    verb('command', '7', folder + '/none').expect(1, 'No such file')
    verb('command', '9', stdin=customer('x').encode()).expect(1, 'there is no workspace 9')


def typed_line_by_line_each_is_answered_at_once(folder):
    verb = shop(folder, 7)
    writer = start('command', '7', *verb.place)
    for offset in range(2, 12):
        writer.stdin.write(customer('x').encode())
        writer.stdin.flush()
        assert json.loads(writer.stdout.readline())['workspace_offset'] == offset
    assert end(writer, 0) == ''


def what_is_under_way_is_finished_on_a_signal(folder):
    verb = shop(folder, 7)
    for number in (signal.SIGTERM, signal.SIGINT):
        writer = start('command', '7', *verb.place)
        writer.stdin.write(customer('x').encode())
        writer.stdin.flush()
        assert writer.stdout.readline()
        writer.send_signal(number)
        assert writer.wait(PATIENCE) == 128 + number
        writer.communicate()
    assert verb('ws', 'show', '7', JSON).json()['workspace_offset'] == 3
    pawl('verify', '--dir', folder).expect(0, 'is sound')


def readers_work_beside_a_writer_and_a_second_writer_does_not(folder):
    data = folder + '/data'
    verb = shop(data, 7)
    writer = start('command', '7', '--dir', data)
    writer.stdin.write((customer('Ada') + order(ADA, 500)).encode())
    writer.stdin.flush()
    offset = [json.loads(writer.stdout.readline())['offset'] for _ in range(2)][1]
    at = ['--min-offset', str(offset)]
    while len(verb('events', 'read', '--ws', '7').expect(0).lines()) < 3:
        pass  # until the files witness that they are durable
    assert verb('record', 'get', '7', str(ADA), *at).expect(0).json()['fields'] == {'name': 'Ada'}
    assert verb('ws', 'show', '7', JSON, *at).expect(0).json()['sequences']['shop.invoice'] == 1
    assert verb('seq', 'list', '--ws', '7', JSON).expect(0).lines()[-1]['last'] == 1000
    verb('entity', 'list', '7', 'shop.CustomerTotal').expect(0)
    verb('verify').expect(0, 'is sound')
    verb('replay', '--to', folder + '/derived').expect(0)
    for words in (['schema', 'apply', SHOP], ['ws', 'create', '8', 'shop.tenant'], ['command', '7']):
        verb(*words).expect(5, 'open for writing', f'process {writer.pid}')
    assert verb('command', '7', JSON).expect(5).error()['code'] == 'PAWL_ELOCKED'
    end(writer, 0)
    verb('ws', 'create', '8', 'shop.tenant').expect(0)


def a_follower_sees_each_event_come_and_the_schema_change(folder):
    verb = shop(folder, 7, 8)
    partition = str(verb('ws', 'show', '7', JSON).json()['partition'])
    by_ws = start('events', 'follow', *verb.place, '--ws', '7')
    ahead = start('events', 'follow', *verb.place, '--ws', '7', '--from', '4', '--limit', '2')
    by_partition = start('events', 'follow', *verb.place, '--partition', partition, '--limit', '3')
    assert json.loads(by_ws.stdout.readline())['command'] == 'sys.CreateWorkspace'
    writer = start('command', '7', *verb.place)
    for offset in range(2, 6):
        verb('ws', 'list').expect(0)
        writer.stdin.write(customer('x').encode())
        writer.stdin.flush()
        assert json.loads(writer.stdout.readline())['workspace_offset'] == offset
        assert json.loads(by_ws.stdout.readline())['workspace_offset'] == offset
    end(writer, 0)
    verb('command', '8', stdin=customer('not shown').encode()).expect(0)
    schema = verb('schema', 'show').out.replace('"AddCustomer": {', '"Greet": {"records": ["Customer"]}, "AddCustomer": {')
    position = verb('schema', 'apply', '-', '--json', stdin=schema.encode()).expect(0).json()['schema']
    verb('command', '7', stdin=customer('y').replace('AddCustomer', 'Greet').encode()).expect(0)
    event = json.loads(by_ws.stdout.readline())
    assert event['command'] == 'shop.Greet' and event['schema'] == position and event['workspace_offset'] == 6
    assert [json.loads(line)['workspace_offset'] for line in end(ahead, 0).splitlines()] == [4, 5]
    assert len(end(by_partition, 0).splitlines()) == 3
    by_ws.send_signal(signal.SIGINT)
    assert end(by_ws, 128 + signal.SIGINT) == ''


def a_follower_whose_reader_goes_away_ends_quietly(folder):
    verb = shop(folder, 7)
    follower = start('events', 'follow', *verb.place, '--ws', '7')
    follower.stdout.readline()
    follower.stdout.close()
    assert follower.wait(PATIENCE) == 0 and follower.stderr.read() == b''
    follower.stdin.close()
    follower.stderr.close()
    start('events', 'follow', *verb.place, '--ws', '9').communicate()
    shown = pawl('events', 'follow', *verb.place, '--ws', '9').expect(1, 'there is no workspace 9')
    assert shown.out == ''


EVERYWHERE = [commands_come_from_options_files_and_lines, typed_line_by_line_each_is_answered_at_once,
              what_is_under_way_is_finished_on_a_signal, a_follower_sees_each_event_come_and_the_schema_change,
              a_follower_whose_reader_goes_away_ends_quietly]

if __name__ == '__main__':
    main(EVERYWHERE + ([readers_work_beside_a_writer_and_a_second_writer_does_not] if WHERE == 'dir' else []))
