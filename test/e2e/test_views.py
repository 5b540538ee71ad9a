"""Views, as they are typed: made, watched, read, rebuilt and dropped; and the tablets by which they are built."""
import json
import os
import pty
import re
import signal
import subprocess
import time

from shell import PATIENCE, PAWL, WHERE, customer, end, fill, main, order, pawl, shop, small_disk, start

FIRST = 1125899907042625  # the first record of a workspace's C register
JSON = '--json'
VIEW = ('view', 'create', 'shop.by_name', '--base', 'shop.Customer', '--key', 'name')


def customers(verb, wsid, *names):
    verb('command', str(wsid), stdin=''.join(customer(name) for name in names).encode()).expect(0)


def three(folder):
    """Two workspaces with customers."""
    verb = shop(folder, 7, 8)
    customers(verb, 7, 'Cleo', 'Ada', 'Bob')
    customers(verb, 8, 'Ada')
    return verb


def many(folder, count):
    """One workspace with so many, and building that takes long."""
    verb = shop(folder, 7)
    customers(verb, 7, *(f'n{i % 97:02}' for i in range(count)))
    verb('view', 'throttle', '100').expect(0, 'up to 100 rows a second')
    return verb


def names(answer):
    return [row['name'] for row in answer.expect(0).lines()]


def a_view_is_made_and_read(folder):
    verb = three(folder)
    said = verb(*VIEW).expect(0).out
    assert said.startswith('shop.by_name is built: 4 rows, after '), said
    assert verb('view', 'query', 'shop.by_name', '--ws', '7').expect(0).lines() == [
        {'id': FIRST + 1, 'name': 'Ada'}, {'id': FIRST + 2, 'name': 'Bob'}, {'id': FIRST, 'name': 'Cleo'}]
    everyone = verb('view', 'query', 'shop.by_name').expect(0).lines()
    assert sorted((row['wsid'], row['name']) for row in everyone) == [(7, 'Ada'), (7, 'Bob'), (7, 'Cleo'), (8, 'Ada')]
    backwards = verb('view', 'query', 'shop.by_name', '--descending').expect(0).lines()
    assert backwards == everyone[::-1]
    assert verb('view', 'get', 'shop.by_name', '7', '"Bob"').expect(0).json() == {'id': FIRST + 2, 'name': 'Bob'}
    for key in ('["Bob"]', '{"name":"Bob"}'):
        assert verb('view', 'get', 'shop.by_name', '7', key).expect(0).json()['id'] == FIRST + 2
    verb('view', 'get', 'shop.by_name', '7', '"Zoe"').expect(1, 'workspace 7 has no such row in shop.by_name')
    verb('view', 'get', 'shop.by_name', '9', '"Ada"').expect(1, 'there is no workspace 9')
    verb('view', 'get', 'shop.by_name', '7', '5').expect(1, '$[0]: expected a string')
    customers(verb, 7, 'Dan')
    assert names(verb('view', 'query', 'shop.by_name', '--ws', '7')) == ['Ada', 'Bob', 'Cleo', 'Dan']


def ranges_are_whole_fields(folder):
    verb = three(folder)
    verb(*VIEW).expect(0)
    cases = [
        (['--prefix', '"Ada"'], ['Ada']),
        (['--from', '"Bob"'], ['Bob', 'Cleo']),
        (['--after', '"Bob"'], ['Cleo']),
        (['--to', '"Bob"'], ['Ada', 'Bob']),
        (['--before', '"Bob"'], ['Ada']),
        (['--from', '["Ada"]', '--to', '{"name":"Bz"}', '--descending'], ['Bob', 'Ada']),
        (['--from', '"X"'], []),
    ]
    for words, expected in cases:
        assert names(verb('view', 'query', 'shop.by_name', '--ws', '7', *words)) == expected, words
    verb('view', 'query', 'shop.by_name', '--prefix', '').expect(2, 'a key that is empty')
    verb('view', 'query', 'shop.by_name', '--from', '"a"', '--after', '"a"').expect(2, 'one bound')
    verb('view', 'query', 'shop.by_name', '--min-offset', '1').expect(2, 'say --ws')
    verb('view', 'query', 'shop.by_name', '--ws', '7', '--min-offset', '1').expect(0)
    verb('view', 'query', 'shop.by_name', '--prefix', '["a","b"]').expect(1, 'has 1 fields, not 2')


def a_cursor_goes_on(folder):
    verb = shop(folder, 7)
    customers(verb, 7, *(f'n{i:04}' for i in range(2300)))
    verb(*VIEW).expect(0)
    whole = names(verb('view', 'query', 'shop.by_name', '--limit', '9999'))
    assert whole == [f'n{i:04}' for i in range(2300)]
    for order in ([], ['--descending']):
        paged, more = [], []
        while True:
            answer = verb('view', 'query', 'shop.by_name', '--limit', '700', JSON, *order, *more).expect(0).lines()
            paged += [row['name'] for row in answer[:-1]]
            assert answer[-1]['built'] is True and answer[-1]['covered'] == 1
            if answer[-1]['cursor'] is None:
                break
            more = ['--cursor', answer[-1]['cursor']]
        assert paged == (whole[::-1] if order else whole)
    said = verb('view', 'query', 'shop.by_name', '--limit', '1').expect(0)
    assert said.out.count('\n') == 1 and 'there may be more: --cursor ' in said.err
    cursor = said.err.split()[-1]
    assert names(verb('view', 'query', 'shop.by_name', '--limit', '1', '--cursor', cursor)) == ['n0001']
    verb('view', 'query', 'shop.by_name', '--ws', '7', '--cursor', cursor).expect(1, 'of another workspace')
    verb('view', 'query', 'shop.by_name', '--cursor', 'x').expect(1, 'not a cursor')


def a_view_that_is_wrong_is_refused(folder):
    verb = three(folder)
    verb('view', 'create', 'shop.v').expect(2, 'Say --base TYPE and --key')
    verb('view', 'create', 'shop.v', '--base', 'shop.Customer', '--key', 'a,,b').expect(2, 'names of fields')
    verb('view', 'create', 'v', '--base', 'shop.Customer', '--key', 'name').expect(1, 'is not a qualified name')
    failure = verb('view', 'create', 'shop.v', '--base', 'shop.Customer', '--key', 'nome', JSON).expect(1).error()
    assert failure['code'] == 'PAWL_EINVAL' and failure['where'].endswith('key[0]'), failure
    verb('view', 'create', 'shop.v', '--base', 'shop.Customer', '--key', 'name', '--filter', '1 +').expect(1, 'filter')
    verb(*VIEW).expect(0)
    verb(*VIEW).expect(1, 'is there already')
    for words in (('drop',), ('rebuild',), ('wait',), ('pause',), ('status',)):
        verb('view', *words, 'shop.none').expect(1)
    verb('view', 'pause', '').expect(1, 'empty name')
    verb('view', 'query', 'shop.none').expect(1, 'there is no view shop.none')
    verb('view', 'throttle', 'x').expect(2, 'ROWS_PER_SECOND')
    verb('system', 'none').expect(1, 'there are: nodes, tablets')


def views_are_listed_shown_rebuilt_and_dropped(folder):
    verb = three(folder)
    made = verb(*VIEW, '--filter', 'active', '--include', 'id', JSON).expect(0).json()
    assert made['view'] == 'shop.by_name' and made['built'] is True and made['rows'] == 4
    mine = next(v for v in verb('view', 'list', JSON).expect(0).lines() if v['view'] == 'shop.by_name')
    assert mine == {'view': 'shop.by_name', 'base': 'shop.Customer', 'state': 'built', 'declared': False, 'unique': False,
                    'rows': 4}
    verb('view', 'list').expect(0, 'shop.by_name', 'run time', 'package')
    status = verb('view', 'status', 'shop.by_name', JSON).expect(0).json()
    assert status['percent'] == 100 and status['tasks_left'] == 0 and status['rows_failed'] == 0, status
    verb('view', 'status').expect(0, '[====================] 100.0 %', 'all')
    shown = verb('schema', 'show', JSON).expect(0).lines()[-1]
    assert shown == {'view': 'shop.by_name', 'base': 'shop.Customer', 'key': ['name'], 'include': ['id'], 'filter': 'active'}
    again = verb('view', 'rebuild', 'shop.by_name', '--wait', JSON).expect(0).json()
    assert again['built'] is True and again['rows'] == 4
    assert verb('view', 'status', 'shop.by_name', JSON).expect(0).json()['table'] != status['table']
    assert verb('view', 'drop', 'shop.by_name').expect(0).out == 'shop.by_name is dropped\n'
    verb('view', 'query', 'shop.by_name').expect(1, 'there is no view')
    assert not [v for v in verb('view', 'list', JSON).expect(0).lines() if v['view'] == 'shop.by_name']


def rows_on_which_a_filter_fails_are_told(folder):
    verb = three(folder)
    verb('command', '7', stdin=(order(FIRST, 500) + order(FIRST, 700)).encode()).expect(0)
    verb('view', 'create', 'shop.v', '--base', 'shop.Invoice', '--key', 'cents', '--filter', '100 / (cents - 500) >= 0').expect(0)
    assert [row['cents'] for row in verb('view', 'query', 'shop.v').expect(0).lines()] == [700]
    status = verb('view', 'status', 'shop.v', JSON).expect(0).json()
    assert status['rows_failed'] == 1 and status['rows'] == 1 and 'record' in status['first_failed'], status
    verb('view', 'status', 'shop.v').expect(0, 'left out: workspace 7, record ')


def a_unique_view_binds_and_says_why_it_cannot(folder):
    verb = three(folder)
    made = verb(*VIEW, '--unique').expect(0).out
    assert 'is built' in made
    verb('command', '7', stdin=customer('Ada').encode()).expect(1, 'PAWL_EEXISTS')
    verb('view', 'drop', 'shop.by_name').expect(0)
    customers(verb, 7, 'Ada')
    verb(*VIEW, '--unique').expect(1, 'shop.by_name')
    status = verb('view', 'status', 'shop.by_name', JSON).expect(0).json()
    assert status['state'] == 'failed' and status['words'], status


def a_build_is_watched_paused_and_resumed(folder):
    verb = many(folder, 1500)
    said = verb(*VIEW, '--no-wait').expect(0).out
    assert said.startswith('shop.by_name is being built; it goes on whenever'), said
    verb('view', 'wait', 'shop.by_name', '--timeout', '300ms').expect(1, 'is not built yet')
    status = verb('view', 'status', 'shop.by_name', JSON).expect(0).json()
    assert status['state'] == 'building' and 0 <= status['percent'] < 100 and status['rows_total'] == 1500, status
    verb('view', 'query', 'shop.by_name', '--ws', '7', '--complete').expect(1, 'does not cover workspace 7 yet')
    answer = verb('view', 'query', 'shop.by_name', '--ws', '7', '--limit', '9999', JSON).expect(0).lines()
    later = verb('view', 'status', 'shop.by_name', JSON).expect(0).json()  # it may have gone on
    assert answer[-1]['built'] is False and status['rows_done'] <= len(answer) - 1 <= later['rows_done'], (len(answer), status, later)
    verb('view', 'get', 'shop.by_name', '7', '"zz"').expect(1, 'does not cover')
    verb('view', 'pause', 'shop.by_name').expect(0, 'building shop.by_name is paused')
    verb('view', 'wait', 'shop.by_name').expect(1, "'pawl view resume'")
    assert verb('view', 'status', 'shop.by_name', JSON).json()['state'] == 'paused'
    verb('view', 'resume', 'shop.by_name').expect(0, 'goes on')
    verb('view', 'pause').expect(0, 'building views is paused')
    verb('view', 'wait', 'shop.by_name').expect(1, 'is paused')
    verb('view', 'resume').expect(0)
    verb('view', 'throttle', '0').expect(0, 'as fast as possible')
    verb('view', 'wait', 'shop.by_name').expect(0, 'is built: 1500 rows')
    answer = verb('view', 'query', 'shop.by_name', '--ws', '7', '--limit', '9999', '--complete').expect(0)
    assert names(answer) == sorted(f'n{i % 97:02}' for i in range(1500))


def an_interrupted_build_is_resumed_by_the_next_process(folder):
    verb = many(folder, 1500)
    process = start(*VIEW, '--dir', folder)
    while not verb('view', 'list', JSON).lines() or verb('view', 'status', 'shop.by_name', JSON).code:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert b"whoever opens the directory for writing goes on: 'pawl view wait shop.by_name'" in err, err
    verb('view', 'throttle', '0').expect(0)
    verb('view', 'wait', 'shop.by_name').expect(0, 'is built: 1500 rows')


def a_reader_waits_for_the_process_that_builds(folder):
    verb = many(folder, 800)
    builder = start('command', '7', '--dir', folder)
    builder.stdin.write(customer('Zoe').encode())
    builder.stdin.flush()
    builder.stdout.readline()
    verb('view', 'wait', 'shop.invoices_by_number', JSON).expect(0)
    verb('view', 'drop', 'shop.invoices_by_number').expect(5, 'writing')
    builder.stdin.close()
    builder.stdin = None
    end(builder, 0)


def who_waits_takes_the_place_of_a_builder_that_has_ended(folder):
    verb = many(folder, 600)
    verb(*VIEW, '--no-wait').expect(0)
    builder = start('command', '7', '--dir', folder)
    builder.stdin.write(customer('Zoe').encode())
    builder.stdin.flush()
    builder.stdout.readline()
    waiter = start('view', 'wait', 'shop.by_name', '--dir', folder)
    verb('view', 'wait', 'shop.by_name', '--timeout', '1s').expect(1, 'is not built yet')  # and so it has looked, too
    assert waiter.poll() is None
    builder.stdin.close()
    builder.stdin = None
    end(builder, 0)
    assert 'is built: 601 rows' in end(waiter, 0)


def a_full_disk_holds_a_build_and_another_process_can_see_why(folder):
    small_disk(folder)
    data, ballast = folder + '/data', folder + '/ballast'
    verb = shop(data, 7)
    customers(verb, 7, *(f'n{i:05}' + 'x' * 800 for i in range(2500)))
    fill(ballast)
    os.truncate(ballast, os.path.getsize(ballast) - (4 << 20))  # the log has room, the view has not
    builder = start(*VIEW, '--dir', data)
    try:
        status, until = {}, time.monotonic() + PATIENCE
        while not status.get('rows_done') or 'words' not in status:
            assert builder.poll() is None and time.monotonic() < until, status
            answer = verb('view', 'status', 'shop.by_name', JSON)
            status = answer.json() if answer.code == 0 else {}
        assert status['state'] == 'building' and ' kB left' in status['words'], status
        verb('view', 'status').expect(0, 'its disk has only ')
        os.remove(ballast)
        assert 'is built: 2500 rows' in end(builder, 0)
        assert 'words' not in verb('view', 'status', 'shop.by_name', JSON).expect(0).json()
    finally:
        builder.kill()
        builder.communicate()
        subprocess.run(['umount', folder], check=True)


def a_terminal_has_a_bar(folder):
    many(folder, 1500)
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PAWL, *VIEW, '--dir', folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=theirs)
    os.close(theirs)
    said, until = b'', time.monotonic() + PATIENCE
    while b' left' not in said and time.monotonic() < until:
        said += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while True:
            said += os.read(ours, 4096)
    except OSError:
        pass  # it has ended
    os.close(ours)
    assert process.wait(PATIENCE) == 130
    assert b'\rshop.by_name [' in said and b' of 1500 rows' in said and b'/s, ' in said, said
    assert all(len(line.replace(b'\x1b[K', b'')) < 80 for line in said.split(b'\r') if b' [' in line), said
    assert all(int(rate) <= 100 for rate in re.findall(rb', (\d+)/s, ', said)), said


def tablets_are_split_and_merged(folder):
    verb = three(folder)
    assert verb('tablet', 'split').expect(0).out == 'there are 8 tablets, 2 a partition\n'
    tablets = verb('tablet', 'list', JSON).expect(0).lines()
    assert [t['tablet'] for t in tablets] == list(range(8)) and {t['partition'] for t in tablets} == set(range(4))
    assert all(t['stage'] == '' for t in tablets)
    verb('tablet', 'list').expect(0, 'first token')
    assert verb('tablet', 'merge', JSON).expect(0).json() == {'tablets': 4}
    verb('tablet', 'merge').expect(1)
    verb(*VIEW).expect(0)
    assert 'shop.by_name' in [row['view_name'] for row in verb('system', 'built_views').expect(0).lines()]
    for table in ('nodes', 'tablets', 'views', 'view_building_tasks', 'view_build_status', 'view_building_processing_base'):
        for line in verb('system', table).expect(0).out.splitlines():
            json.loads(line)


def other_verbs_need_a_directory(folder):
    for words in (['view', 'list'], ['view', 'query', 'a.b'], ['view', 'drop', 'a.b'], ['view', 'wait', 'a.b'], ['tablet', 'list'],
                  ['system', 'nodes']):
        pawl(*words, '--dir', folder + '/none').expect(1, "'pawl init --dir")
        pawl(*words).expect(2, 'which directory?')


# These look at no file of the directory, so they are run with a server, too.
EVERYWHERE = [a_view_is_made_and_read, ranges_are_whole_fields, a_cursor_goes_on,
              views_are_listed_shown_rebuilt_and_dropped, rows_on_which_a_filter_fails_are_told,
              a_unique_view_binds_and_says_why_it_cannot, a_build_is_watched_paused_and_resumed,
              tablets_are_split_and_merged]

ON_A_DIRECTORY = [a_view_that_is_wrong_is_refused, an_interrupted_build_is_resumed_by_the_next_process, a_reader_waits_for_the_process_that_builds,
                  who_waits_takes_the_place_of_a_builder_that_has_ended,
                  a_full_disk_holds_a_build_and_another_process_can_see_why, a_terminal_has_a_bar,
                  other_verbs_need_a_directory]

if __name__ == '__main__':
    main(EVERYWHERE + (ON_A_DIRECTORY if WHERE == 'dir' else []))
