"""Exporting a workspace: everything of it, of one moment, over a directory and over a URL."""
import json
import os
import subprocess
import threading

from shell import customer, main, order, pawl, serve, shop

ADA = 1125899907042625
JSON = '--json'


def filled(folder, customers=3, orders=5):
    verb = shop(folder, 7, 8)
    verb('command', '8', stdin=customer('other').encode()).expect(0)
    lines = ''.join(customer(f'c{i}') for i in range(customers)) + ''.join(order(ADA + i % customers, i) for i in range(orders))
    verb('command', '7', stdin=lines.encode()).expect(0)
    verb('project', 'run').expect(0)
    return verb


def parts(text):
    found = {'workspace': [], 'event': [], 'record': [], 'entity': [], 'end': []}
    order_of = []
    for line in text.splitlines():
        tree = json.loads(line)
        kind = next(iter(tree))
        found[kind].append(tree if kind == 'entity' else tree[kind])
        if not order_of or order_of[-1] != kind:
            order_of.append(kind)
    return found, order_of


def everything_is_there_once_and_in_order(folder):
    verb = filled(folder, customers=250, orders=450)  # more than a page of each
    text = verb('ws', 'export', '7').expect(0).out
    found, kinds = parts(text)
    assert kinds == ['workspace', 'event', 'record', 'entity', 'end'], kinds
    assert found['workspace'] == [verb('ws', 'show', '7', JSON).expect(0).json()]
    assert found['event'] == verb('events', 'read', '--ws', '7').expect(0).lines() and len(found['event']) == 701
    records = [r for t in ('shop.Customer', 'shop.Invoice') for r in verb('record', 'list', '7', '--type', t).expect(0).lines()]
    assert found['record'] == records and len(records) == 700
    rows = [{'entity': e, 'row': r} for e in ('shop.CustomerTotal', 'shop.Account')
            for r in verb('entity', 'list', '7', e).expect(0).lines()]
    assert found['entity'] == rows and len(rows) == 500
    assert found['end'] == [{'events': 701, 'records': 700, 'rows': 500}]
    server, url = serve(folder)
    assert pawl('ws', 'export', '7', '--url', url).expect(0).out == text
    assert verb('ws', 'export', '7').expect(0).out == text  # by the socket
    server.terminate()
    server.wait()


def a_file_is_there_whole_or_not_at_all(folder):
    verb = filled(folder)
    out = folder + '.out'
    done = verb('ws', 'export', '7', '--out', out, JSON).expect(0).json()
    assert done == {'wsid': 7, 'out': out, 'events': 9, 'records': 8, 'rows': 6}, done
    with open(out, encoding='utf-8') as file:
        assert file.read() == verb('ws', 'export', '7').expect(0).out
    verb('ws', 'export', '8', '--out', out).expect(0, 'has workspace 8: 2 events, 1 records, 0 rows')
    with open(out, encoding='utf-8') as file:
        before = file.read()
    verb('ws', 'export', '99', '--out', out).expect(1, 'there is no workspace 99')
    verb('ws', 'export', '7', '--out', folder + '/no/such').expect(1, 'cannot write')
    assert not os.path.exists(out + '.new')
    with open(out, encoding='utf-8') as file:
        assert file.read() == before
    if os.path.exists('/dev/full'):
        with open('/dev/full', 'wb') as full:
            assert subprocess.run([os.environ['PAWL'], 'ws', 'export', '7', '--dir', folder], stdout=full, stderr=subprocess.DEVNULL,
                                  check=False).returncode == 1
    verb('ws', 'export', 'x').expect(2)
    verb('ws', 'export').expect(2)


def a_workspace_that_is_written_to_meanwhile_is_not_exported(folder):
    verb = filled(folder)
    server, url = serve(folder)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            pawl('command', '7', '--url', url, stdin=(customer('x') * 300).encode())
    writer = threading.Thread(target=write)
    writer.start()
    try:
        codes = set()
        while 1 not in codes:
            done = pawl('ws', 'export', '7', '--url', url)
            codes.add(done.code)
            assert ('"end"' in done.out[-200:]) == (done.code == 0), done.out[-200:]
        assert 'was written to meanwhile' in done.err and 'pawl ws freeze 7' in done.err, done.err
        pawl('ws', 'freeze', '7', '--url', url).expect(0)
        found, _ = parts(pawl('ws', 'export', '7', '--url', url).expect(0).out)
    finally:
        stop.set()
        writer.join()
    assert found['workspace'][0]['frozen'] is True and found['event'][-1]['command'] == 'sys.FreezeWorkspace'
    assert len(found['event']) == found['end'][0]['events'] == found['workspace'][0]['workspace_offset']
    assert len([r for r in found['record'] if r['type'] == 'shop.Customer']) == len(found['event']) - 2 - 5
    server.terminate()
    server.wait()


def lanes_that_lag_are_told(folder):
    verb = filled(folder)
    verb('project', 'pause', 'shop.accounts').expect(0)
    verb('command', '7', stdin=order(ADA, 1).encode()).expect(0)
    failure = verb('ws', 'export', '7', JSON).expect(1).error()
    assert failure['code'] == 'PAWL_ETIMEOUT' and 'shop.Account' in failure['message'], failure
    found, _ = parts(verb('ws', 'export', '7', '--lagging').expect(0).out)
    assert found['end'] == [{'events': 10, 'records': 9, 'rows': 6}], found['end']


if __name__ == '__main__':
    main([everything_is_there_once_and_in_order, a_file_is_there_whole_or_not_at_all,
          a_workspace_that_is_written_to_meanwhile_is_not_exported, lanes_that_lag_are_told])
