"""The program with a server: the same words and codes as on a directory, and what happens if the server is not as it should be."""
import json
import os
import re
import signal
import socket

from shell import PATIENCE, PAWL, SHOP, Skip, customer, end, main, order, pawl, serve, shop, start

ADA = 1125899907042625  # the first record of a workspace's C register
JSON = '--json'
NOBODY = 65534


def filled(folder):
    """A shop with something of everything."""
    verb = shop(folder, 7, 8)
    lines = customer('Ada') + customer('Bö') + order(ADA, 500) + order(ADA + 1, 250) + order(ADA, 1)
    verb('command', '7', stdin=lines.encode()).expect(0)
    verb('command', '8', stdin=customer('x').encode()).expect(0)
    verb('view', 'create', 'shop.by_name', '--base', 'shop.Customer', '--key', 'name').expect(0)
    verb('project', 'run').expect(0)
    return verb


READS = [
    ['schema', 'show'], ['schema', 'show', JSON], ['schema', 'show', '--lanes'], ['schema', 'show', '--lanes', JSON],
    ['ws', 'list'], ['ws', 'list', JSON], ['ws', 'list', '--limit', '1'], ['ws', 'show', '7'], ['ws', 'show', '7', JSON],
    ['ws', 'show', '9'], ['ws', 'show', '9', JSON], ['seq', 'list', '--ws', '7'], ['seq', 'list', '--ws', '7', JSON],
    ['seq', 'list', '--ws', '9'], ['seq', 'list'], ['seq', 'list', JSON],
    ['project', 'list'], ['project', 'list', JSON], ['project', 'status'], ['project', 'status', JSON], ['project', 'status', 'shop.accounts'],
    ['project', 'status', 'shop.nope'], ['view', 'list'], ['view', 'list', JSON], ['view', 'status', 'shop.nope'], ['tablet', 'list'],
    ['tablet', 'list', JSON], ['lease', 'list', 'shop.nope'], ['lease', 'stats', 'shop.nope', JSON],
    ['record', 'get', '7', str(ADA)], ['record', 'get', '7', '200001', '--type', 'shop.Invoice', JSON],
    ['record', 'get', '7', '5'], ['record', 'get', '7', '5', JSON], ['record', 'get', '7', str(ADA), '--type', 'shop.Nope'],
    ['record', 'get', '9', '5', '--min-offset', '1'],
    ['record', 'list', '7', '--type', 'shop.Customer'], ['record', 'list', '7', '--type', 'shop.Order'],
    ['record', 'list', '7', '--type', 'shop.Customer', '--after', str(ADA), '--limit', '1'],
    ['entity', 'get', '7', 'shop.CustomerTotal', str(ADA)], ['entity', 'get', '7', 'shop.CustomerTotal', '['],
    ['entity', 'get', '7', 'shop.CustomerTotal', '[1,2]', JSON], ['entity', 'get', '7', 'shop.Nope', '1'],
    ['entity', 'list', '7', 'shop.CustomerTotal'], ['entity', 'list', '7', 'shop.CustomerTotal', '--limit', '1'],
    ['entity', 'list', '7', 'shop.CustomerTotal', '--after', str(ADA)], ['entity', 'list', '9', 'shop.CustomerTotal'],
    ['events', 'read', '--ws', '7'], ['events', 'read', '--ws', '7', '--from', '3', '--limit', '2'],
    ['events', 'read', '--partition', '2'], ['events', 'read', '--partition', '99'], ['events', 'read', '--ws', '9', JSON],
    ['view', 'query', 'shop.by_name'], ['view', 'query', 'shop.by_name', '--ws', '7', JSON],
    ['view', 'query', 'shop.by_name', '--ws', '7', '--prefix', '"Ada"'], ['view', 'query', 'shop.by_name', '--limit', '1'],
    ['view', 'query', 'shop.by_name', '--ws', '7', '--from', '"Ada"', '--before', '"Bö"', '--descending'],
    ['view', 'query', 'shop.by_name', '--after', '"Ada"'], ['view', 'query', 'shop.nope'],
    ['view', 'query', 'shop.by_name', '--cursor', 'x'], ['view', 'query', 'shop.by_name', '--prefix', '{"no":1}', JSON],
    ['view', 'get', 'shop.by_name', '7', '"Ada"'], ['view', 'get', 'shop.by_name', '7', '"Nemo"'],
    ['system', 'tablets'], ['system', 'nope'], ['system', 'nope', JSON],
    ['op', 'read', 'shop.accounts'], ['op', 'read', 'shop.accounts', '--ws', '7'], ['op', 'read', 'shop.accounts', '--limit', '2'],
    ['op', 'read', 'shop.accounts', '--ws', '7', '--from', '2'], ['op', 'read', 'shop.accounts', '--entity', 'shop.Account', '--limit', '1'],
    ['op', 'read', 'shop.accounts', '--entity', 'shop.CustomerTotal'], ['op', 'read', 'shop.accounts', '--ws', '7', '--source', '4'],
    ['op', 'read', 'shop.accounts', '--ws', '9'], ['op', 'read', 'shop.accounts', '--partition', '99'], ['op', 'read', 'shop.nope'],
    ['op', 'read', 'shop.accounts', '--generation', '77'], ['op', 'read', 'shop.accounts', '--source', '4'],
    ['op', 'read', 'shop.accounts', '--ws', '7', '--partition', '1'], ['op', 'read', 'shop.accounts', '--from', '0'],
    ['record', 'list', '7'], ['ws', 'show', 'x'], ['view', 'query', 'shop.by_name', '--min-offset', '1'],
]


def known_to_all(words, text):
    """Without what only a process that works on lanes knows: how far ahead it begins, and what it has repeated."""
    if words[:2] != ['project', 'status']:
        return text
    text = re.sub(r'"run_ahead":(null|\d+)', '"run_ahead":_', text)
    return re.sub(r'^(.{83}).{18}(  [a-z]+)$', r'\1\2', text, flags=re.MULTILINE)


def every_answer_is_the_same_byte_for_byte(folder):
    verb = filled(folder)
    server, url = serve(folder)
    by_url = [pawl(*words, '--url', url) for words in READS]
    by_socket = [verb(*words) for words in READS]
    end_of(server)
    alone = [verb(*words) for words in READS]
    for words, *said in zip(READS, by_url, by_socket, alone):
        for one in said[:2]:
            assert (one.code, known_to_all(words, one.out), one.err) == \
                (said[2].code, known_to_all(words, said[2].out), said[2].err), \
                f'{words}: {one.code} {one.out[-300:]!r} {one.err!r}, alone {said[2].code} {said[2].out[-300:]!r} {said[2].err!r}'
    assert {0, 1, 2} == {one.code for one in alone}


def end_of(server, code=0):
    server.terminate()
    server.stdout.read()
    assert server.wait(PATIENCE) == code


FEEDS = [
    ([], customer('a') + '{"command":"shop.Nope"}\n\n' + customer(5) + 'not JSON\n' + customer('b')),
    ([], customer('a') * 700),
    (['--stop-on-error'], customer('a') + customer(5) + customer('b')),
    (['--actor', 'till "3"', '--correlation', 'ö', '--causation', 'e'], customer('a') + customer('b', actor='own') + '{}\n' + '[1]\n' + '{"a":\n'),
    (['--key', 'k'], json.dumps(json.loads(customer('a')), indent=2)),
    (['--key', 'k'], json.dumps(json.loads(customer('a')), indent=2)),
    (['--key', 'k'], customer('c')),
    (['--key', 'l'], customer('c', idempotency_key='m')),
    (['--expected-offset', '1'], customer('a')),
    (['--expected-offset', '1'], '{\n "command": "shop.AddCustomer",\n "records": 5\n}'),
    (['--ack', 'durable'], customer('a', expected_offset=99)),
    (['--command', 'shop.AddCustomer', '--record', '{"id":1,"type":"shop.Customer","fields":{"name":"z"}}'], ''),
    (['--command', 'shop.Nope'], ''), (['--command', 'shop.Nope', JSON], ''),
    ([], '{\n' + customer('x')), ([], customer('é' * 1500000) + customer('y')), ([], ''),
]


def commands_are_answered_the_same(folder):
    verb = shop(folder + '/a', 7)
    shop(folder + '/b', 7)
    server, url = serve(folder + '/b')
    for number, (options, lines) in enumerate(FEEDS):
        here = verb('command', '7', *options, stdin=lines.encode())
        there = pawl('command', '7', *options, '--url', url, stdin=lines.encode())
        assert (here.code, here.out, here.err) == (there.code, there.out, there.err), \
            f'{number} {options}: {there.code} {there.out[-600:]!r} {there.err!r}, here {here.code} {here.out[-600:]!r} {here.err!r}'
    for words in (['ws', 'create', '7', 'shop.tenant'], ['ws', 'create', '9', 'shop.tenant', JSON], ['ws', 'create', '10', 'shop.tenant'],
                  ['ws', 'create', '8', 'shop.nope', JSON], ['schema', 'apply', SHOP], ['schema', 'apply', SHOP, JSON],
                  ['command', '11', '--command', 'shop.AddCustomer']):
        here, there = verb(*words), pawl(*words, '--url', url)
        if words[0] != 'schema' or here.code:  # building a view takes positions of group0 at its own time
            assert (here.code, here.out, here.err) == (there.code, there.out, there.err), (words, here.err, there.err)
    end_of(server)
    both = [[{**e, 'time': None} for e in pawl('events', 'read', '--ws', '7', '--dir', f'{folder}/{d}').expect(0).lines()] for d in 'ab']
    assert [{**e, 'schema': None} for e in both[0]] == [{**e, 'schema': None} for e in both[1]]


def a_place_is_named_once(folder):
    shop(folder, 7)
    server, url = serve(folder)
    pawl('ws', 'list', '--url', url, '--dir', folder).expect(2, '--url and --dir are two places')
    pawl('ws', 'list', '--url', '').expect(2, '--url needs the URL')
    for wrong in ('localhost', 'ftp://localhost', 'http://', 'http://localhost/v1', 'http://a:b@localhost', 'http://h:99999', 'http://h?x'):
        pawl('ws', 'list', '--url', wrong).expect(2, 'is no URL of a server')
    pawl('ws', 'list').expect(2, 'which directory?', '--url URL')
    pawl('ws', 'list', '--dir', folder, '--token-file', 'x').expect(2, '--token-file is for a server')
    for words in (['init'], ['replay', '--to', 'x'], ['restore', '--from', 'x'], ['doctor'], ['log', 'read', '--stream', 'raw/0']):
        pawl(*words, '--url', url).expect(2, 'works on a directory only')
    known = pawl('ws', 'list', '--url', url + '/', JSON).expect(0).out
    assert pawl('ws', 'list', JSON, env={'PAWL_URL': url}).expect(0).out == known
    gone = {'PAWL_URL': 'http://127.0.0.1:1'}
    pawl('ws', 'list', JSON, env=gone).expect(1, 'cannot reach http://127.0.0.1:1: Connection refused')
    assert pawl('ws', 'list', JSON, '--dir', folder, env=gone).expect(0).out == known
    assert pawl('ws', 'list', JSON, '--url', url, env={'PAWL_DIR': folder + '/nowhere'}).expect(0).out == known
    end_of(server)


def a_server_that_is_not_there_or_not_pawl_is_told(folder):
    del folder
    with socket.create_server(('127.0.0.1', 0)) as other:
        url = f'http://127.0.0.1:{other.getsockname()[1]}'
        child = start('ws', 'list', '--url', url)
        connection, _ = other.accept()
        connection.recv(4096)
        connection.sendall(b'HTTP/1.1 500 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno')
        connection.close()
        _, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 1 and f'{url} answered with HTTP status 500, not as Pawl does' in err.decode(), err
        child = start('ws', 'list', '--url', url, JSON)
        connection, _ = other.accept()
        connection.recv(4096)
        connection.close()
        _, err = child.communicate(timeout=PATIENCE)
        failure = json.loads(err)['error']
        assert child.returncode == 1 and failure['code'] == 'PAWL_EIO' and f'lost the connection to {url}' in failure['message']
    refused = pawl('command', '7', '--url', url, stdin=(customer('a') * 3).encode()).expect(1, '3 of 3 commands were refused')
    assert [line['error']['code'] for line in refused.lines()] == ['PAWL_EIO'] * 3
    pawl('events', 'follow', '--ws', '7', '--url', url).expect(1, f'cannot reach {url}: Connection refused')


def a_token_is_needed_and_found(folder):
    verb = shop(folder, 7)
    verb('token', 'create', 'reader', '--scope', 'read').expect(0)
    server, url = serve(folder, '--tokens')
    failure = pawl('ws', 'list', '--url', url, JSON).expect(1).error()
    assert failure['code'] == 'PAWL_EACCES', failure
    pawl('ws', 'list', '--url', url, env={'PAWL_TOKEN': 'pawl_' + 'x' * 43}).expect(1)
    pawl('ws', 'list', '--url', url, '--token-file', folder + '.none').expect(1, 'No such file')
    refused = pawl('command', '7', '--url', url, stdin=(customer('a') * 2).encode()).expect(1)
    assert [line['error']['code'] for line in refused.lines()] == ['PAWL_EACCES'] * 2
    verb('command', '7', stdin=customer('a').encode()).expect(0)  # the socket needs none
    end_of(server)


def a_process_that_does_not_serve_is_named(folder):
    verb = shop(folder, 7)
    writer = start('command', '7', '--dir', folder)
    writer.stdin.write(customer('Ada').encode())
    writer.stdin.flush()
    writer.stdout.readline()
    for words in (['schema', 'apply', SHOP], ['ws', 'create', '8', 'shop.tenant'], ['command', '7']):
        verb(*words).expect(5, 'open for writing', f'process {writer.pid}', 'cannot be asked', "use 'pawl serve'")
    end(writer, 0)


def a_socket_that_a_killed_server_has_left_is_no_server(folder):
    verb = shop(folder, 7)
    server, _ = serve(folder)
    verb('command', '7', stdin=customer('a').encode()).expect(0)
    server.kill()
    server.wait(PATIENCE)
    assert os.path.exists(folder + '/pawl.sock')
    assert verb('command', '7', stdin=customer('b').encode()).expect(0).json()['workspace_offset'] == 3
    assert [r['fields']['name'] for r in verb('record', 'list', '7', '--type', 'shop.Customer').expect(0).lines()] == ['a', 'b']


def a_server_that_is_stopped_does_not_stop_readers(folder):
    """It has the socket, but does not answer."""
    verb = shop(folder, 7)
    server, _ = serve(folder)
    server.send_signal(signal.SIGSTOP)
    assert verb('ws', 'show', '7', JSON).expect(0).json()['wsid'] == 7
    server.send_signal(signal.SIGCONT)
    end_of(server)


def a_path_longer_than_an_address_works(folder):
    deep = folder + '/' + 'd' * 120
    os.mkdir(deep)
    verb = shop(deep + '/data', 7)
    server, _ = serve(deep + '/data')
    assert verb('command', '7', stdin=customer('a').encode()).expect(0).json()['workspace_offset'] == 2
    assert verb('ws', 'show', '7', JSON).expect(0).json()['workspace_offset'] == 2
    short = pawl('ws', 'create', '8', 'shop.tenant', '--dir', 'data', cwd=deep).expect(0)
    assert 'workspace 8' in short.out
    end_of(server)


def another_user_is_not_let_in(folder):
    if os.geteuid() != 0:
        raise Skip('needs root, to be two users')
    if not os.access(PAWL, os.X_OK):
        raise Skip('the program is not for others')
    verb = shop(folder, 7)
    server, _ = serve(folder)
    refused = pawl('ws', 'create', '8', 'shop.tenant', '--dir', folder, user=NOBODY, group=NOBODY)
    refused.expect(1, 'ermission denied')
    assert verb('ws', 'show', '8', JSON).expect(1).error()['code'] == 'PAWL_ENOTFOUND'
    end_of(server)


def a_server_that_dies_under_commands_leaves_no_doubt(folder):
    """Each line is answered; whose answer was lost is told that its outcome is not known."""
    verb = shop(folder, 7)
    server, url = serve(folder)
    writer = start('command', '7', '--url', url)
    writer.stdin.write(customer('a').encode())
    writer.stdin.flush()
    assert json.loads(writer.stdout.readline())['workspace_offset'] == 2
    server.send_signal(signal.SIGSTOP)
    writer.stdin.write((customer('b') * 3).encode())
    writer.stdin.flush()
    server.kill()
    server.wait(PATIENCE)
    answers = [json.loads(line) for line in end(writer, 1).splitlines()]
    assert len(answers) == 3 and [a['line'] for a in answers] == [2, 3, 4], answers
    assert {a['error']['code'] for a in answers} <= {'PAWL_EUNKNOWN', 'PAWL_EIO'}, answers
    assert verb('ws', 'show', '7', JSON).expect(0).json()['workspace_offset'] >= 2


def a_follower_goes_on_when_the_server_comes_back(folder):
    verb = shop(folder, 7)
    server, url = serve(folder)
    follower = start('events', 'follow', '--ws', '7', '--url', url)
    assert json.loads(follower.stdout.readline())['workspace_offset'] == 1
    offset = 1
    for kill in (False, True):
        verb('command', '7', stdin=customer('a').encode()).expect(0)
        assert json.loads(follower.stdout.readline())['workspace_offset'] == offset + 1
        if kill:
            server.kill()
            server.wait(PATIENCE)
        else:
            end_of(server)
        assert b'lost the connection to ' in follower.stderr.readline()
        verb('command', '7', stdin=customer('b').encode()).expect(0)  # on the directory itself
        server, _ = serve(folder, '--listen', url.removeprefix('http://'))
        assert json.loads(follower.stdout.readline())['workspace_offset'] == offset + 2
        offset += 2
    verb('command', '7', stdin=(customer('c') * 300).encode()).expect(0)
    assert [json.loads(follower.stdout.readline())['workspace_offset'] for _ in range(300)] == list(range(offset + 1, offset + 301))
    follower.send_signal(signal.SIGTERM)
    assert end(follower, 128 + signal.SIGTERM) == ''
    end_of(server)


def top_shows_a_line_or_an_object_each_time(folder):
    verb = filled(folder)
    alone = verb('top', '--count', '1', JSON).expect(0).json()
    server, url = serve(folder)
    verb('command', '7', stdin=(customer('a') * 50).encode()).expect(0)
    for place in (['--url', url], ['--dir', folder]):
        objects = pawl('top', '--count', '2', JSON, *place).expect(0).lines()
        assert len(objects) == 2 and all(o['commands']['ok'] == 50 and o['node']['writes'] for o in objects), objects
        lines = pawl('top', '--count', '2', *place).expect(0).out.splitlines()
        assert len(lines) == 2 and all(' commands/s, p50 ' in line and ' 58 events, ' in line for line in lines), lines
    assert set(alone) == set(objects[0]) and not alone['node']['writes']
    watcher = start('top', '--url', url)
    assert watcher.stdout.readline()
    watcher.send_signal(signal.SIGINT)
    end(watcher, 128 + signal.SIGINT)
    watcher = start('top', '--url', url)
    assert watcher.stdout.readline()
    end_of(server)
    _, err = watcher.communicate(timeout=PATIENCE)
    assert watcher.returncode == 1 and (b'cannot reach' in err or b'lost the connection' in err), err
    pawl('top', '--count', '0', '--url', url).expect(2, 'at least 1')


if __name__ == '__main__':
    main([top_shows_a_line_or_an_object_each_time,
          every_answer_is_the_same_byte_for_byte, commands_are_answered_the_same, a_place_is_named_once,
          a_server_that_is_not_there_or_not_pawl_is_told, a_token_is_needed_and_found, a_process_that_does_not_serve_is_named,
          a_socket_that_a_killed_server_has_left_is_no_server, a_server_that_is_stopped_does_not_stop_readers,
          a_path_longer_than_an_address_works, another_user_is_not_let_in, a_server_that_dies_under_commands_leaves_no_doubt,
          a_follower_goes_on_when_the_server_comes_back])
