"""Clients of a node that write down what they were told, and a judge who compares that with what is there.

A clerk has a workspace of its own. It sends a bill, waits for the answer, and sends the next one. What it does not
know it asks for again, with the same key. Of what was refused for certain, at the first time, it drops a part, which
must not be there afterwards.

What must hold once all clerks have ended:
  C1  every acknowledged bill is there once, with the numbers and at the offsets that its clerk was told
  C2  nothing that was refused is there, and nothing else is
  C3  the offsets of a workspace and of a partition, and the numbers of a sequence, are 1, 2, 3, ...
  C4  the rows of lanes and of views are those that come of the events, taken one after the other
  C5  a key that is sent again gets the same answer
  C6  nobody waited longer than twice as long as a command may wait, while the node and the machine were awake
"""
import http.client
import json
import random
import threading
import time

WAIT_SECONDS = 10  # pawl_options.wait
SLACK_SECONDS = 10  # a machine that brokers keep busy is slow
TICK_SECONDS = 0.1
PATIENCE = 300
BATCH = 8
AGAIN = 100  # keys of a clerk that are sent again in the end: a part of its workspace's last 1,024
CUT = (OSError, http.client.HTTPException)  # the node was killed, or has ended
UNKNOWN = 'PAWL_EUNKNOWN'
REFUSALS = {'PAWL_EUNKNOWN', 'PAWL_EBUSY', 'PAWL_EIO', 'PAWL_EFENCED', 'PAWL_ECLOSED', 'PAWL_EFULL'}

SCHEMA = {
    'schema': 1, 'package': 'c', 'workspaces': {'tenant': {'sequences': {'bill': {'first': 1}}}},
    'types': {'Bill': {'kind': 'WDoc', 'fields': {
                  'key': {'type': 'string'}, 'who': {'type': 'string'}, 'cents': {'type': 'int64'},
                  'number': {'type': 'int64', 'sequence': 'bill'}}},
              'Limit': {'kind': 'ODoc', 'fields': {'above': {'type': 'int64'}, 'by': {'type': 'int64'}}}},
    'commands': {'Add': {'records': ['Bill']}, 'Raise': {'argument': 'Limit', 'records': ['Bill']}},
    'entities': {name: {'key': ['who'], 'fields': {'who': {'type': 'string'}, 'bills': {'type': 'int64'},
                                                   'cents': {'type': 'int64'}}} for name in ('Total', 'Sum')},
    'projectors': {
        **{name: {'on': ['Add'], **how, 'do': [{
            'upsert': entity, 'key': {'who': '$event.records.Bill.who'},
            'set': {'bills': 'coalesce(bills, 0) + 1', 'cents': 'coalesce(cents, 0) + $event.records.Bill.cents'}}]}
           for name, entity, how in (('totals', 'Total', {}), ('sums', 'Sum', {'sync': True}))},
        'raises': {'on': ['Raise'], 'do': [{'update': 'Total', 'where': 'cents > $event.argument.above',
                                            'set': {'cents': 'cents + $event.argument.by'}}]}},
    'views': {'by_number': {'base': 'Bill', 'key': ['number'], 'include': ['key']},
              'by_cents': {'base': 'Total', 'key': ['cents'], 'include': ['bills']}}}


class Machine:
    """Knows when this process was not run though it wanted to be: then neither was anybody else, for all that it knows."""

    def __init__(self):
        self.naps, self.last = [], time.monotonic()
        threading.Thread(target=self.watch, daemon=True).start()

    def nap(self):
        """The one that is over just now, in a list, or no one."""
        last, now = self.last, time.monotonic()
        return [(last + TICK_SECONDS, now)] if now - last > 2 * TICK_SECONDS else []

    def watch(self):
        while True:
            time.sleep(TICK_SECONDS)
            self.naps += self.nap()
            self.last = time.monotonic()

    def slept(self, since):
        """How long, since then."""
        naps = self.nap() + self.naps  # the first may be noted meanwhile: it is counted once
        return sum(max(0, end - max(begin, since)) for begin, end in dict(naps).items())


machine = Machine()


def waited(node, began):
    """How long somebody has waited since then, but for what the node, or else the machine, has slept."""
    took = time.monotonic() - began
    return took - max(node.slept(began), machine.slept(began))


def ask(port, method, path, body=None, headers=None, timeout=PATIENCE):
    """(status, body) of a request of its own connection."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers={'Content-Type': 'application/json', **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def every(port, path):
    """All lines of a list, page by page."""
    lines, cursor, name = [], '', 'from' if path.endswith('/events') else 'cursor'
    while True:
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
        connection.request('GET', f'{path}?limit=10000{cursor}')
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, f'{path}: {answer.status} {text[:500]}'
        lines += [json.loads(line) for line in text.splitlines()]
        following = answer.headers.get('Pawl-Next')
        connection.close()
        if not following:
            return lines
        cursor = f'&{name}={following}'


def bill(key):
    """What a key stands for: the same each time."""
    chance = random.Random(key)
    serial = int(key.rsplit(' ', 1)[1])
    record = {'id': 1, 'type': 'c.Bill', 'fields': {'key': key, 'who': chance.choice('abcde'),
                                                    'cents': chance.randrange(100)}}
    if serial % 7 == 6:
        return {'command': 'c.Raise', 'records': [record],
                'argument': {'id': 2, 'above': chance.randrange(2000), 'by': chance.randrange(10)}}
    return {'command': 'c.Add', 'records': [record]}


class Clerk:
    """Sends one bill at a time. scene has `node`, the one to turn to, and `over`."""

    def __init__(self, name, wsid, scene, chance):
        self.name, self.wsid, self.scene, self.chance = name, wsid, scene, chance
        self.next, self.acknowledged, self.refused, self.codes = 0, {}, set(), {}
        self.longest, self.failure, self.node = 0, None, None
        self.doubt = False  # the present bill may be there, whatever becomes of it when it is sent again
        self.thread = threading.Thread(target=self.work, daemon=True)

    def key(self, ahead=0):
        return f'{self.name} {self.next + ahead}'

    def path(self):
        return f'/v1/ws/{self.wsid}/commands'

    def note(self, key, answer):
        assert key not in self.acknowledged
        self.acknowledged[key] = answer
        self.next += 1
        self.doubt = False

    def note_error(self, key, error):
        code = error['code']
        self.codes[code] = self.codes.get(code, 0) + 1
        assert code in REFUSALS, f'{key}: {error}'
        if code == 'PAWL_EFENCED':
            self.node = None
        self.doubt = self.doubt or code == UNKNOWN
        if not self.doubt and self.drops():
            self.refused.add(key)
            self.next += 1

    def drops(self):
        """Whether it drops a bill that was refused for certain, and goes on with the next one."""
        return self.chance.random() < 0.5

    def request(self, node, body, headers):
        """(status, text)"""
        began = time.monotonic()
        try:
            return ask(node.port, 'POST', self.path(), body, headers)
        finally:
            took = waited(node, began)
            self.longest = max(self.longest, took)
            assert took < WAIT_SECONDS + SLACK_SECONDS, f'C6: {self.name} waited {took:.1f} s for {self.key()}'

    def send(self, node):
        status, text = self.request(node, json.dumps(bill(self.key())), {'Idempotency-Key': self.key()})
        if status == 200:
            self.note(self.key(), json.loads(text))
        else:
            self.note_error(self.key(), json.loads(text)['error'])
        return status == 200

    def go_on(self):
        """Stay with a node as long as it answers, even if another has taken over."""
        self.node = self.node or self.scene.node
        try:
            if self.node and self.send(self.node):
                return
        except CUT as why:
            self.doubt = self.doubt or not isinstance(why, ConnectionRefusedError)
            self.node = None
        self.scene.pause(0.05)

    def work(self):
        try:
            while not self.scene.over:
                self.go_on()
            until = time.monotonic() + PATIENCE
            asked = self.next
            while self.next == asked:  # what became of the last one
                self.go_on()
                assert time.monotonic() < until, 'nobody answers'
        except BaseException as failure:  # pylint: disable=broad-except
            self.failure = failure


class BatchClerk(Clerk):
    """Sends several in a request. Of what was refused it drops nothing: those behind it may be there."""

    def send(self, node):
        keys = [self.key(i) for i in range(BATCH)]
        body = ''.join(json.dumps({**bill(key), 'idempotency_key': key}) + '\n' for key in keys)
        status, text = self.request(node, body, {'Content-Type': 'application/x-ndjson'})
        if status != 200:
            self.note_error(keys[0], json.loads(text)['error'])
            return False
        for key, line in zip(keys, text.splitlines()):
            answer = json.loads(line)
            if 'error' in answer:
                self.note_error(key, answer['error'])
                return False
            self.note(key, answer)
        return True

    def drops(self):
        return False


def serial(events):
    """{entity: {who: (bills, cents)}} as these events make it, one after the other."""
    totals, sums = {}, {}
    for event in events:
        fields = event['records'][0]['fields'] if event['records'] else {}
        if event['command'] == 'c.Add':
            for rows in (totals, sums):
                bills, cents = rows.get(fields['who'], (0, 0))
                rows[fields['who']] = (bills + 1, cents + fields['cents'])
        elif event['command'] == 'c.Raise':
            above, by = event['argument']['above'], event['argument']['by']
            for who, (bills, cents) in totals.items():
                totals[who] = (bills, cents + by if cents > above else cents)
    return {'Total': totals, 'Sum': sums}


def judge_rows(port, wsid, events):
    """C4"""
    expected = serial(events)
    for entity, rows in expected.items():
        found = {row['who']: (row['bills'], row['cents']) for row in every(port, f'/v1/ws/{wsid}/entities/c.{entity}')}
        assert found == rows, f'C4: workspace {wsid}, {entity}: {found}, serially {rows}'
    numbers = {row['number']: row['key'] for row in every(port, f'/v1/ws/{wsid}/views/c.by_number')}
    bills = {fields['number']: fields['key'] for fields in bills_of(events)}
    assert numbers == bills, f'C4: workspace {wsid}: by_number has {len(numbers)} of {len(bills)} bills'
    cents = sorted((row['cents'], row['bills']) for row in every(port, f'/v1/ws/{wsid}/views/c.by_cents'))
    totals = sorted((cents, bills) for bills, cents in expected['Total'].values())
    assert cents == totals, f'C4: workspace {wsid}: by_cents has {cents}, the entity {totals}'


def bills_of(events):
    return [event['records'][0]['fields'] for event in events if event['records']]


def judge_clerk(port, clerk):
    """C1, C2, C3 and C4 of its workspace. Returns how many events there are."""
    events = every(port, f'/v1/ws/{clerk.wsid}/events')
    assert [event['workspace_offset'] for event in events] == list(range(1, len(events) + 1)), f'C3: {clerk.name}'
    numbers = [fields['number'] for fields in bills_of(events)]
    assert numbers == list(range(1, len(numbers) + 1)), f'C3: {clerk.name} has numbers {numbers}'
    there = {}
    for event in events[1:]:
        key = event['records'][0]['fields']['key']
        assert key not in there, f'C1: {key!r} is there at {there[key]["offset"]} and at {event["offset"]}'
        assert key not in clerk.refused, f'C2: {key!r} was refused, and is there'
        assert key in clerk.acknowledged, f'C2: {key!r} was never acknowledged'
        there[key] = event
    for key, answer in clerk.acknowledged.items():
        assert key in there, f'C1: {key!r} was acknowledged at {answer["offset"]}, and is not there'
        event = there[key]
        told = (answer['partition'], answer['offset'], answer['workspace_offset'], answer['ids']['1'])
        found = tuple(event[name] for name in ('partition', 'offset', 'workspace_offset')) + (event['records'][0]['id'],)
        assert told == found, f'C1: {key!r} is {found}, its clerk was told {told}'
    judge_rows(port, clerk.wsid, events)
    return len(events)


def judge_keys(port, clerk):
    """C5"""
    for key in list(clerk.acknowledged)[-AGAIN:]:
        status, text = ask(port, 'POST', clerk.path(), json.dumps(bill(key)), {'Idempotency-Key': key})
        answer, told = json.loads(text), clerk.acknowledged[key]
        assert status == 200 and answer.pop('repeated') is True, f'C5: {key!r}: {status} {text}'
        told.pop('repeated', None)
        assert answer == told, f'C5: {key!r} gets {answer}, and was told {told}'


def judge_partitions(port, count, total):
    """C3"""
    found = 0
    for partition in range(count):
        offsets = [event['offset'] for event in every(port, f'/v1/partitions/{partition}/events')]
        assert offsets == list(range(1, len(offsets) + 1)), f'C3: partition {partition}'
        found += len(offsets)
    assert found == total, f'C2: {found} events, and the workspaces have {total}'


def lanes_have_caught_up(port):
    until = time.monotonic() + PATIENCE
    while True:
        status, text = ask(port, 'GET', '/v1/lanes/wait?timeout=30s')
        if status == 200:
            return
        assert time.monotonic() < until, text
        time.sleep(0.2)


def judge(port, partitions, clerks):
    """All of it, on a node that is at rest. Returns how many events there are."""
    lanes_have_caught_up(port)
    total = sum(judge_clerk(port, clerk) for clerk in clerks)
    judge_partitions(port, partitions, total)
    return total
