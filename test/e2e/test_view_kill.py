"""kill -9 of a real `pawl command` while it writes and builds views: building goes on, and the views come out right."""
import os
import random
import threading

from shell import customer, main, pawl, shop, start

KILLS = 20
REBUILD_KILLS = 6
BEFORE = 4000    # customers that are there before the views
COMMANDS = 4000  # of a round, more than it gets to
ANSWERS = 120    # read before the kill, at most
RATE = '800'     # base rows a second: so slow that many kills come while views are built


def feed(process, first):
    """Commands until it is killed."""
    try:
        for number in range(first, first + COMMANDS):
            process.stdin.write(customer(f'customer {number}').encode())
            process.stdin.flush()
    except (BrokenPipeError, ValueError):
        pass


def kill_while_building(folder, first, wanted):
    """Start it, feed it, and kill it after so many answers. Returns how many it gave."""
    writer = start('command', '7', '--dir', folder)
    feeder = threading.Thread(target=feed, args=(writer, first), daemon=True)
    feeder.start()
    lines = 0
    while lines < wanted:
        more = os.read(writer.stdout.fileno(), 4096)
        assert more, f'it ended by itself: {writer.stderr.read().decode()}'
        lines += more.count(b'\n')
    writer.kill()
    feeder.join()
    lines += writer.stdout.read().count(b'\n')
    writer.stdout.close()
    writer.stderr.close()
    writer.wait()
    return lines


def rows_done(verb, view):
    return verb('view', 'status', view, '--json').expect(0).json()['rows_done']


def views_are_built_over_many_kills(folder):
    seed = int(os.environ.get('PAWL_SEED', '1'))
    print(f'# PAWL_SEED={seed}')
    chance = random.Random(seed)
    verb = shop(folder, 7)
    verb('command', '7', stdin=''.join(customer(f'old {n}') for n in range(BEFORE)).encode()).expect(0)
    verb('view', 'throttle', RATE).expect(0)
    verb('view', 'create', 'shop.by_name', '--base', 'shop.Customer', '--key', 'name', '--no-wait').expect(0)
    verb('view', 'create', 'shop.by_id', '--base', 'shop.Customer', '--key', 'id', '--include', 'name', '--unique',
         '--no-wait').expect(0)
    answered, before, unfinished = 0, 0, 0
    for kill in range(KILLS):
        answered += kill_while_building(folder, 10000 * (kill + 1), chance.randrange(1, ANSWERS))
        done = rows_done(verb, 'shop.by_name')
        assert done >= before, f'{before} rows were scanned, and {done} are left of it'
        unfinished += done < BEFORE
        before = done
        if kill % 5 == 0:
            verb('verify', '--audit').expect(0, 'the live stores agree with the log')
    verb('view', 'throttle', '0').expect(0)
    for view in ('shop.by_name', 'shop.by_id'):
        verb('view', 'wait', view).expect(0)
    verb('verify', '--audit').expect(0, 'the live stores agree with the log', 'tables of views',
                                     'the checkpoint stores agree with the log')
    rows = verb('view', 'status', 'shop.by_name', '--json').expect(0).json()['rows']
    assert rows >= BEFORE + answered, (rows, answered)
    assert rows == len(pawl('record', 'list', '7', '--type', 'shop.Customer', '--dir', folder).expect(0).lines())
    assert unfinished > 3, 'the views were built before most of the kills'
    print(f'# {KILLS} kills, {unfinished} of them in the middle of a build; {answered} commands were answered')


def a_view_serves_over_kills_while_it_is_rebuilt(folder):
    seed = int(os.environ.get('PAWL_SEED', '1'))
    print(f'# PAWL_SEED={seed}')
    chance = random.Random(seed)
    verb = shop(folder, 7)
    verb('command', '7', stdin=''.join(customer(f'old {n}') for n in range(BEFORE)).encode()).expect(0)
    verb('view', 'create', 'shop.by_name', '--base', 'shop.Customer', '--key', 'name').expect(0)
    table = verb('view', 'status', 'shop.by_name', '--json').expect(0).json()['table']
    verb('view', 'throttle', '200').expect(0)
    verb('view', 'rebuild', 'shop.by_name').expect(0)
    rebuilding = 0
    for kill in range(REBUILD_KILLS):
        kill_while_building(folder, 10000 * (kill + 1), chance.randrange(1, ANSWERS))
        status = verb('view', 'status', 'shop.by_name', '--json').expect(0).json()
        records = verb('record', 'list', '7', '--type', 'shop.Customer').expect(0).lines()
        rows = verb('view', 'query', 'shop.by_name', '--ws', '7', '--complete', '--limit', '999999').expect(0).lines()
        assert status['built'] and status['rows'] == len(records), status
        assert sorted(row['id'] for row in rows) == sorted(record['id'] for record in records)
        rebuilding += status['rebuilding']
    verb('view', 'throttle', '0').expect(0)
    verb('view', 'wait', 'shop.by_name').expect(0)
    status = verb('view', 'status', 'shop.by_name', '--json').expect(0).json()
    assert status['table'] != table and not status['rebuilding'], status
    verb('verify', '--audit').expect(0, 'the live stores agree with the log', 'the checkpoint stores agree with the log')
    assert rebuilding > 2, 'it was rebuilt before most of the kills'


if __name__ == '__main__':
    main([views_are_built_over_many_kills, a_view_serves_over_kills_while_it_is_rebuilt])
