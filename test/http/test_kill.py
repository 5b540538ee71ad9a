#!/usr/bin/env python3
"""kill -9 of the server under load, again and again. What was acknowledged is there, and everything is there once."""
import http.client
import os
import threading

import server
from server import NDJSON, Server, customer, pawl, wait_until

KILLS = 25
BATCH = 20
CUT = (OSError, http.client.HTTPException)  # the server was killed


class Clerk:
    """Sends commands to one workspace, each with a key, one after the other. Until one is answered it is sent again."""

    def __init__(self, wsid, state):
        self.wsid, self.state, self.next, self.acknowledged = wsid, state, 0, {}
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.failure = None

    def path(self):
        return f'/v1/ws/{self.wsid}/commands'

    def note(self, answer):
        self.acknowledged[f'k{self.next}'] = answer['workspace_offset']
        self.next += 1

    def send(self):
        """One command, with its key in the header. None: nobody knows what became of it."""
        answer = self.state['server'].post(self.path(), customer(f'k{self.next}'), headers={'Idempotency-Key': f'k{self.next}'})
        if answer.status not in (500, 503):
            self.note(answer.expect(200).json())

    def work(self):
        try:
            while not self.state['over']:
                try:
                    self.send()
                except CUT:
                    pass
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure


class BatchClerk(Clerk):
    """Sends several in a request, with their keys as members."""

    def send(self):
        keys = [f'k{self.next + i}' for i in range(BATCH)]
        answer = self.state['server'].post(self.path(), ''.join(customer(key, idempotency_key=key) for key in keys), headers=NDJSON)
        for line in answer.expect(200).lines():
            if 'error' in line:
                return  # it and those behind it are sent again
            self.note(line)


def names(wsid, data):
    """The customers of the workspace, in the order of its events: {name: offset}, and how many events there are."""
    events = pawl('events', 'read', '--ws', str(wsid), '--dir', data).expect(0).lines()
    added = [(e['records'][0]['fields']['name'], e['workspace_offset']) for e in events if e['command'] == 'shop.AddCustomer']
    return dict(added), len(added)


def every_acknowledged_command_is_there_exactly_once_after_25_kills(folder):
    data = os.path.join(folder, 'data')
    server.shop(data, 7, 8, 9)
    state = {'server': Server(data), 'over': False}
    clerks = [Clerk(7, state), Clerk(8, state), BatchClerk(9, state)]
    for clerk in clerks:
        clerk.thread.start()
    for kill in range(KILLS):
        before = [len(clerk.acknowledged) for clerk in clerks]
        wait_until(lambda: any(c.failure for c in clerks)  # pylint: disable=cell-var-from-loop
                   or all(len(c.acknowledged) > b + kill % 7 for c, b in zip(clerks, before)))
        state['server'].kill()
        state['server'] = Server(data)
    state['over'] = True
    for clerk in clerks:
        clerk.thread.join(server.PATIENCE)
        assert clerk.failure is None, clerk.failure
    state['server'].stop()
    for clerk in clerks:
        there, count = names(clerk.wsid, data)
        assert len(there) == count, f'{count - len(there)} are there twice'
        assert set(there.values()) == set(range(2, count + 2)), there
        for key, offset in clerk.acknowledged.items():
            assert there.get(key) == offset, (key, offset, there.get(key))
        assert len(clerk.acknowledged) > KILLS and count - len(clerk.acknowledged) <= BATCH, (count, len(clerk.acknowledged))
    pawl('verify', '--dir', data).expect(0)


server.main([every_acknowledged_command_is_there_exactly_once_after_25_kills])
