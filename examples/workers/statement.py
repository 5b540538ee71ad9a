#!/usr/bin/env python3
"""A projector outside Pawl: statement.py URL. Leases events of shop.statements, writes each customer's statement.
Any number may run, and be killed at any time: the rows are those of a serial run. What it reads names its lease, so
the event is given out again if an earlier one changes that; a commit may be sent twice, and counts once. After a commit
it soon goes on, even if that waits for an earlier event: perhaps nobody else is there to lease that one."""
import http.client
import itertools
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

URL = sys.argv[1]
TOKEN = {'Authorization': 'Bearer ' + os.environ['PAWL_TOKEN']} if 'PAWL_TOKEN' in os.environ else {}


def ask(method, path, body=None):
    """Status and answer. While the server is away or busy, it is asked again, after longer and longer pauses."""
    for pause in itertools.chain((0.05, 0.1, 0.2, 0.5, 1, 2), itertools.repeat(5)):
        request = urllib.request.Request(URL + path, body and json.dumps(body).encode(),
                                         {'Content-Type': 'application/json', **TOKEN}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, json.loads(answer.read() or 'null')
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return error.code, None
        except (OSError, http.client.HTTPException):
            pass  # it is away
        time.sleep(pause)


def work(lease):
    place = f'/v1/leases/{lease["partition"]}/{lease["lane"]}/{lease["number"]}'
    operation, customer = lease['operation'], lease['event']['argument']['customer']
    done = threading.Event()

    def extend():
        while not done.wait(lease['expires_in'] / 3):
            ask('POST', place + '/extend', {'operation': operation, 'duration': '5s'})
    threading.Thread(target=extend, daemon=True).start()
    status, old = ask('GET', f'{place}/entities/shop.Statement/{customer}?operation={operation}')
    count, chain = (old['statements'] + 1, old['chain']) if old else (1, 0)
    row = {'statements': count, 'text': f'statement {count}', 'chain': (chain * 31 + lease['event']['workspace_offset']) % 2**50}
    writes = [{'upsert': 'shop.Statement', 'key': {'customer': customer}, 'set': row}]
    if status in (200, 404):  # 202: handed in, and committed at its turn; 409: it is another's, or is given out again
        ask('POST', place + '/commit?wait=1s', {'operation': operation, 'writes': writes})
    done.set()


found, leased = 204, None
while found in (200, 204):
    if leased:
        work(leased)
    found, leased = ask('POST', '/v1/leases', {'projector': 'shop.statements', 'duration': '5s', 'wait': '20s'})
sys.exit(f'{URL}: {found}')
