#!/usr/bin/env python3
"""examples/workers: projectors in other languages, with a server that is killed and started again meanwhile."""
import os
import shutil
import socket
import sys

import server
from server import PATIENCE, Server, customer, serve_shop, start_program, wait_until

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), 'examples', 'workers')
PYTHON = [sys.executable, '-B', os.path.join(EXAMPLES, 'statement.py')]
NODE = [shutil.which('node') or 'node', os.path.join(EXAMPLES, 'statement.mjs')]
CUSTOMERS = 3
ROUNDS = 4
QUESTIONS = 12  # a round


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def serial(questions):
    """What one worker after the other would have written: for each customer, over the offsets of its questions."""
    rows = {}
    for who, offset in questions:
        old = rows.get(who, {'statements': 0, 'chain': 0})
        count = old['statements'] + 1
        rows[who] = {'customer': who, 'statements': count, 'chain': (old['chain'] * 31 + offset) % 2**50,
                     'text': f'statement {count}'}
    return rows


def committed(s):
    return sum(line['operations'] for line in s.get('/v1/lanes/shop.statements').expect(200).lines())


def run(folder, *commands):
    """Ask questions, kill the server while they are worked on, start it again, and compare in the end."""
    listen = f'127.0.0.1:{free_port()}'
    s = serve_shop(folder, '--listen', listen)
    people = [s.post('/v1/ws/7/commands', customer(f'c{i}')).expect(200).json()['ids']['1'] for i in range(CUSTOMERS)]
    workers = [start_program(*command, f'http://{listen}') for command in commands]
    questions = []
    try:
        for turn in range(ROUNDS):
            for i in range(QUESTIONS):
                who = people[i % CUSTOMERS]
                body = {'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': who}}
                questions.append((who, s.post('/v1/ws/7/commands', body).expect(200).json()['workspace_offset']))
            some = len(questions) - QUESTIONS // 2
            wait_until(lambda least=some: committed(s) >= least)
            if turn < ROUNDS - 1:
                s.kill()
                s = Server(f'{folder}/data', '--listen', listen)
        wait_until(lambda: committed(s) == len(questions))
        for worker in workers:
            assert worker.poll() is None, f'{worker.args[0]} has given up: {worker.returncode}'
        rows = {row['customer']: row for row in s.get('/v1/ws/7/entities/shop.Statement').expect(200).lines()}
        assert rows == serial(questions), (rows, serial(questions))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(PATIENCE)
    s.stop()


def workers_in_python_come_to_what_a_serial_run_gives(folder):
    run(folder, PYTHON, PYTHON)


def workers_in_javascript_come_to_what_a_serial_run_gives(folder):
    run(folder, NODE, NODE)


def both_work_together(folder):
    run(folder, PYTHON, NODE, PYTHON)


def a_worker_does_not_wait_for_a_number_that_nobody_works_on(folder):
    """Number 1 is leased by one who is gone. A worker alone has done number 2, and must then do number 1 itself."""
    for command in (PYTHON, NODE):
        place = f'{folder}/{os.path.basename(command[0])}'
        os.mkdir(place)
        s = serve_shop(place)
        who = s.post('/v1/ws/7/commands', customer('Ada')).expect(200).json()['ids']['1']
        for _ in range(2):
            s.post('/v1/ws/7/commands', {'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': who}}).expect(200)
        gone = s.post('/v1/leases', {'projector': 'shop.statements', 'duration': '5s', 'wait': '20s'}).expect(200).json()
        assert gone['number'] == 1, gone
        worker = start_program(*command, f'http://127.0.0.1:{s.port}')
        try:
            wait_until(lambda server=s: committed(server) == 2)
        finally:
            worker.kill()
            worker.wait(PATIENCE)
        s.stop()


def they_are_short_and_need_nothing_else(_):
    for command in (PYTHON, NODE):
        with open(command[-1], encoding='utf-8') as source:
            text = source.read()
        assert text.count('\n') < 60, f'{command[-1]}: {text.count(chr(10))} lines'
        assert 'require(' not in text and ' from ' not in '\n'.join(
            line for line in text.splitlines() if line.startswith('import')), command[-1]


if __name__ == '__main__':
    server.main([workers_in_python_come_to_what_a_serial_run_gives,
                 workers_in_javascript_come_to_what_a_serial_run_gives,
                 both_work_together,
                 a_worker_does_not_wait_for_a_number_that_nobody_works_on,
                 they_are_short_and_need_nothing_else])
