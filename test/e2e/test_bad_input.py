"""Wrong input of users: each is refused with its place, writes nothing and uses no number."""
import json
import os
import subprocess
import sys
import time

from shell import PATIENCE, Skip, customer, fill, main, order, pawl, shop, small_disk, start

ADA = 1125899907042625
BIG = 2 ** 53


def record(fields, **more):
    return {'id': 1, 'type': 'shop.Customer', 'fields': fields, **more}


def add(*records, **more):
    return {'command': 'shop.AddCustomer', 'records': list(records), **more}


def place(argument, *records):
    return {'command': 'shop.PlaceOrder', 'argument': argument, 'records': list(records)}


def pay(fields, **more):
    return {'command': 'shop.Pay', 'records': [{'id': 1, 'type': 'shop.Payment', 'fields': fields, **more}]}


NAME = {'name': 'x'}
ORDER = {'id': 1, 'customer': ADA}

# (the command, the code, where)
CASES = [
    ({'command': 'shop.Nope'}, 'PAWL_ENOTFOUND', '$.command'),
    ({'command': 'sys.CreateWorkspace'}, 'PAWL_ENOTFOUND', '$.command'),
    ({'command': 7}, 'PAWL_EINVAL', '$.command'),
    ({}, 'PAWL_EINVAL', '$.command'),
    ([], 'PAWL_EINVAL', '$'),
    (add(record(NAME), nope=1), 'PAWL_EINVAL', '$.nope'),
    (add(record(NAME, type='shop.Nope')), 'PAWL_ENOTFOUND', '$.records[0].type'),
    (add(record(NAME, type='shop.CustomerTotal')), 'PAWL_EINVAL', '$.records[0].type'),
    (add(record(NAME, type='shop.Product')), 'PAWL_EINVAL', '$.records[0]'),
    (add(record({'name': 'x', 'nope': 1})), 'PAWL_EINVAL', '$.records[0].fields.nope'),
    (add(record({})), 'PAWL_EINVAL', '$.records[0].fields.name'),
    (add(record({'name': None})), 'PAWL_EINVAL', '$.records[0].fields.name'),
    (add(record({'name': 5})), 'PAWL_EINVAL', '$.records[0].fields.name'),
    (add(record({'name': ['x']})), 'PAWL_EINVAL', '$.records[0].fields.name'),
    (add(record({'name': 'x', 'since': 'today'})), 'PAWL_EINVAL', '$.records[0].fields.since'),
    (add(record({'name': 'x', 'since': 5})), 'PAWL_EINVAL', '$.records[0].fields.since'),
    (add(record(NAME, nope=1)), 'PAWL_EINVAL', '$.records[0].nope'),
    (add(record(NAME, id='1')), 'PAWL_EINVAL', '$.records[0].id'),
    (add(record(NAME, id=0)), 'PAWL_EINVAL', '$.records[0].id'),
    (add(record(NAME, id=-1)), 'PAWL_EINVAL', '$.records[0].id'),
    (add(record(NAME, id=BIG)), 'PAWL_EINVAL', '$.records[0].id'),
    (add(record(NAME), record(NAME)), 'PAWL_EINVAL', '$.records[1]'),
    (add(record(NAME, id=ADA + 77)), 'PAWL_ENOTFOUND', '$.records[0]'),
    (add(record(NAME, id=200001)), 'PAWL_ENOTFOUND', '$.records[0]'),
    (add(record(NAME, parent=ADA, container='lines')), 'PAWL_EINVAL', '$.records[0]'),
    (add(5), 'PAWL_EINVAL', '$.records[0]'),
    (add(record(NAME), argument={'id': 1}), 'PAWL_EINVAL', '$.argument'),
    (add(record(NAME), actor=5), 'PAWL_EINVAL', '$.actor'),
    (add(record(NAME), idempotency_key=''), 'PAWL_EINVAL', '$.idempotency_key'),
    (add(record(NAME), expected_offset=-1), 'PAWL_EINVAL', '$.expected_offset'),
    (add(record(NAME), expected_offset=BIG), 'PAWL_EINVAL', '$.expected_offset'),
    (place({'customer': ADA}), 'PAWL_EINVAL', '$.argument.id'),
    (place({'id': 1}), 'PAWL_EINVAL', '$.argument.customer'),
    (place({**ORDER, 'customer': 17}), 'PAWL_EINVAL', '$.argument.customer'),
    (place({**ORDER, 'customer': ADA + 77}), 'PAWL_ENOTFOUND', '$.argument.customer'),
    (place({**ORDER, 'number': 5}), 'PAWL_EINVAL', '$.argument.number'),
    (place({**ORDER, 'lines': {}}), 'PAWL_EINVAL', '$.argument.lines'),
    (place({**ORDER, 'lines': [{'id': 1}]}), 'PAWL_EINVAL', '$.argument.lines[0]'),
    (place({**ORDER, 'lines': [{'id': 2, 'qty': 1.5}]}), 'PAWL_EINVAL', '$.argument.lines[0].qty'),
    (place({**ORDER, 'lines': [{'id': 2, 'qty': BIG}]}), 'PAWL_EINVAL', '$.argument.lines[0].qty'),
    (place({**ORDER, 'lines': [{'id': 2, 'qty': str(2 ** 63)}]}), 'PAWL_EINVAL', '$.argument.lines[0].qty'),
    (place({**ORDER, 'lines': [{'id': 2, 'lines': []}]}), 'PAWL_EINVAL', '$.argument.lines[0].lines'),
    (pay({'invoice': 9, 'cents': 1}), 'PAWL_EINVAL', '$.records[0].fields.invoice'),
    (pay({'invoice': ADA, 'cents': 1}), 'PAWL_ENOTFOUND', '$.records[0].fields.invoice'),
    (pay({'invoice': 300000, 'cents': 1}), 'PAWL_ENOTFOUND', '$.records[0].fields.invoice'),
]

# (the bytes of a line, what the place begins with)
TEXTS = [
    (b'{', 'line 1'),
    (b'nothing', 'line 1'),
    (b'"text"', 'line 1'),
    (b'{"command":"shop.AddCustomer","command":"shop.AddCustomer"}', 'line 1'),
    (b'{"command":"shop.AddCustomer"} {}', 'line 1'),
    (b'{"command":"shop.\xff"}', 'line 1'),
    (b'{"command":"shop.\xed\xa0\x80"}', 'line 1'),
    (b'{"command":"shop.AddCustomer","records":[{"id":1,"type":"shop.Customer","fields":{"name":NaN}}]}', 'line 1'),
    (b'{"command":"shop.AddCustomer","records":[{"id":1e400}]}', 'line 1'),
    (b'{"command":"shop.AddCustomer","records":[{"id":99999999999999999999}]}', 'line 1'),
    (b'[' * 100 + b']' * 100, 'line 1, column'),
    (b'{"a":' * 60 + b'1' + b'}' * 60, 'line 1, column'),
]


def used(verb):
    """Everything that a refused command must leave as it is."""
    return verb('seq', 'list').expect(0).out + verb('events', 'read', '--ws', '7').expect(0).out


def prepared(folder):
    verb = shop(folder, 7)
    verb('command', '7', stdin=(customer('Ada') + order(ADA, 500)).encode()).expect(0)
    return verb


def what_makes_no_sense_is_refused_by_its_path(folder):
    verb = prepared(folder)
    before = used(verb)
    lines = '\n'.join(json.dumps(command) for command, _, _ in CASES)
    answers = verb('command', '7', stdin=lines.encode()).expect(1).lines()
    wrong = []
    for (command, code, where), answer in zip(CASES, answers):
        error = answer.get('error', {})
        if error.get('code') != code or not error.get('where', '').startswith(where) or not error.get('message'):
            wrong.append(f'{json.dumps(command)}: {code} {where}: {json.dumps(answer)}')
    assert not wrong, '\n'.join(wrong)
    assert [a['line'] for a in answers] == list(range(1, len(CASES) + 1))
    assert used(verb) == before
    verb('verify').expect(0, 'is sound')


def what_is_not_json_is_refused_by_line_and_column(folder):
    verb = prepared(folder)
    before = used(verb)
    lines = customer('x').encode().replace(b'"x"', b'5') + b'\n'.join(text for text, _ in TEXTS)
    answers = verb('command', '7', stdin=lines).expect(1).lines()
    wrong = [f'{text!r}: {json.dumps(answer)}' for (text, where), answer in zip(TEXTS, answers[1:])
             if answer.get('error', {}).get('code') != 'PAWL_EINVAL'
             or not answer['error'].get('where', '').startswith(where)]
    assert not wrong and len(answers) == len(TEXTS) + 1, '\n'.join(wrong)
    assert used(verb) == before


def integers_beyond_two_to_the_53_are_strings_both_ways(folder):
    verb = prepared(folder)
    largest = str(2 ** 63 - 1)
    line = {**ORDER, 'cents': 1, 'lines': [{'id': 2, 'cents': largest}, {'id': 3, 'cents': BIG - 1}]}
    answer = verb('command', '7', stdin=json.dumps(place(line)).encode()).expect(0).json()
    lines = verb('events', 'read', '--ws', '7', '--from', str(answer['workspace_offset'])).json()['argument']['lines']
    assert [found['cents'] for found in lines] == [largest, BIG - 1]


def too_many_and_too_big_are_refused(folder):
    verb = prepared(folder)
    before = used(verb)
    many = place({**ORDER, 'lines': [{'id': 2 + n} for n in range(65535)]})
    error = verb('command', '7', stdin=json.dumps(many).encode()).expect(1).json()['error']
    assert error['code'] == 'PAWL_ETOOBIG' and error['where'].startswith('$.argument.lines[65534]'), error
    error = verb('command', '7', stdin=customer('x' * (2 << 20)).encode()).expect(1).json()['error']
    assert error['code'] == 'PAWL_ETOOBIG', error
    error = verb('command', '7', '--key', 'k' * 256, stdin=customer('x').encode()).expect(1).json()['error']
    assert error['code'] in ('PAWL_ETOOBIG', 'PAWL_EINVAL'), error
    huge = customer('x' * (65 << 20)) + customer('after it')
    refused, taken = verb('command', '7', stdin=huge.encode()).expect(1).lines()
    assert refused['line'] == 1 and refused['error']['code'] == 'PAWL_ETOOBIG' and taken['workspace_offset'] == 4
    assert used(verb) != before
    verb('verify').expect(0, 'is sound')


def numbers_are_not_used_by_what_is_refused(folder):
    verb = prepared(folder)
    bad = order(ADA, 'many')
    answers = verb('command', '7', stdin=(order(ADA, 1) + bad + order(ADA, 2) + bad + order(ADA, 3)).encode()).lines()
    invoices = [list(a['numbers'].values()) for a in answers if 'numbers' in a]
    assert sorted(n['number'] for pair in invoices for n in pair) == [2, 3, 4, 1001, 1002, 1003]


def a_full_disk_refuses_and_goes_on_when_there_is_room(folder):
    small_disk(folder)
    data, ballast = folder + '/data', folder + '/ballast'
    verb = shop(data, 7)
    writer = start('command', '7', '--dir', data)
    try:
        writer.stdin.write(customer('first').encode())
        writer.stdin.flush()
        assert 'offset' in json.loads(writer.stdout.readline())
        fill(ballast)
        said, refused = [], 0
        while not refused and len(said) < 20000:
            writer.stdin.write(customer('x' * 1000).encode())
            writer.stdin.flush()
            said.append(json.loads(writer.stdout.readline()))
            refused = 'error' in said[-1]
        assert said[-1]['error']['code'] == 'PAWL_EFULL', said[-1]
        assert verb('record', 'list', '7', '--type', 'shop.Customer', '--limit', '1').expect(0).out
        os.remove(ballast)
        until = time.monotonic() + PATIENCE  # it looks for room again and again, but not at every command
        while True:
            writer.stdin.write(customer('again').encode())
            writer.stdin.flush()
            if 'offset' in json.loads(writer.stdout.readline()):
                break
            assert time.monotonic() < until, 'it does not go on'
        writer.communicate(timeout=PATIENCE)
        assert writer.returncode == 1
        names = [r['fields']['name'] for r in verb('record', 'list', '7', '--type', 'shop.Customer').lines()]
        assert names == ['first'] + ['x' * 1000] * (len(said) - 1) + ['again']
        verb('verify').expect(0, 'is sound')
    finally:
        writer.kill()
        writer.communicate()
        subprocess.run(['umount', folder], check=True)


def a_directory_that_may_not_be_written_is_named(folder):
    if os.geteuid() == 0:
        raise Skip('root may write anywhere')
    os.chmod(folder, 0o555)
    pawl('init', '--dir', folder + '/new').expect(1, 'ermission denied')
    os.chmod(folder, 0o755)


if __name__ == '__main__':
    sys.setrecursionlimit(10000)
    main([what_makes_no_sense_is_refused_by_its_path, what_is_not_json_is_refused_by_line_and_column,
          integers_beyond_two_to_the_53_are_strings_both_ways, too_many_and_too_big_are_refused,
          numbers_are_not_used_by_what_is_refused, a_full_disk_refuses_and_goes_on_when_there_is_room,
          a_directory_that_may_not_be_written_is_named])
