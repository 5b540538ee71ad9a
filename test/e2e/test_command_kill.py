"""kill -9 of a real `pawl command` at full speed: every answer that it gave is true, and a retry finds it."""
import json
import os
import random
import threading

from shell import customer, main, pawl, shop, start

ROUNDS = 10
COMMANDS = 20000  # of a round, more than it gets to
ANSWERS = 3000    # read before the kill, at most
AHEAD = 600       # sent before their answers are seen, at most, and sent again afterwards
BACK = 50         # sent again of those whose answer was seen: few, because keys are kept for the last 1,024 events


def line(number):
    return customer(f'customer {number}', idempotency_key=f'key-{number}')


def feed(process, first, ahead, killed):
    """Commands from this number on, for as long as there is room ahead of what is answered."""
    try:
        for number in range(first, first + COMMANDS):
            if not ahead.acquire(blocking=False):
                process.stdin.flush()
                ahead.acquire()
            if killed.is_set():
                break
            process.stdin.write(line(number).encode())
        process.stdin.close()
    except (BrokenPipeError, ValueError):
        pass


def kill_while_commanding(folder, first, wanted):
    """Feed it commands from this number on, kill it, and return the answers it gave."""
    writer = start('command', '7', '--dir', folder)
    ahead, killed = threading.Semaphore(AHEAD), threading.Event()
    feeder = threading.Thread(target=feed, args=(writer, first, ahead, killed), daemon=True)
    feeder.start()
    said, lines = b'', 0
    while lines < wanted:
        more = os.read(writer.stdout.fileno(), 65536)
        assert more, f'it ended by itself: {writer.stderr.read().decode()}'
        said += more
        if more.count(b'\n'):
            ahead.release(more.count(b'\n'))
        lines += more.count(b'\n')
    writer.kill()
    killed.set()
    ahead.release()
    said += writer.stdout.read()
    feeder.join()
    writer.stdout.close()
    writer.stderr.close()
    writer.wait()
    return [json.loads(text) for text in said[:said.rfind(b'\n') + 1].splitlines()]


def what_was_answered_is_there_once_and_is_answered_again(folder):
    seed = int(os.environ.get('PAWL_SEED', '1'))
    print(f'# PAWL_SEED={seed}')
    chance = random.Random(seed)
    verb = shop(folder, 7)
    known = {}  # number -> the answer to its command
    for _ in range(ROUNDS):
        first = len(known)
        for number, answer in enumerate(kill_while_commanding(folder, first, chance.randrange(1, ANSWERS)), first):
            known[number] = answer
        numbers = range(max(0, len(known) - BACK), len(known) + AHEAD)
        retried = verb('command', '7', stdin=''.join(map(line, numbers)).encode()).expect(0).lines()
        for number, answer in zip(numbers, retried):
            if number in known:
                assert answer == {**known[number], 'repeated': True}, (known[number], answer)
            answer.pop('repeated', None)
            known[number] = answer
        offsets = [known[number]['workspace_offset'] for number in range(len(known))]
        assert offsets == list(range(2, len(known) + 2)), 'they are not dense, or not in order'
        verb('verify').expect(0, 'is sound')
    names = [r['fields']['name'] for r in verb('record', 'list', '7', '--type', 'shop.Customer').expect(0).lines()]
    assert names == [f'customer {number}' for number in range(len(known))]
    print(f'# {len(known)} commands over {ROUNDS} kills')


def readers_open_what_a_kill_left(folder):
    verb = shop(folder, 7)
    answers = kill_while_commanding(folder, 0, 500)
    last = answers[-1]
    shown = verb('events', 'read', '--ws', '7', '--from', str(last['workspace_offset']), '--limit', '1')
    shown.expect(0)
    found = pawl('record', 'get', '--dir', folder, '7', str(answers[0]['ids']['1'])).expect(0).json()
    assert found['fields'] == {'name': 'customer 0'}
    verb('verify').expect(0, 'is sound')
    verb('command', '7', stdin=line(0).encode()).expect(0)
    assert verb('ws', 'show', '7', '--json').expect(0).json()['workspace_offset'] >= last['workspace_offset']


if __name__ == '__main__':
    main([what_was_answered_is_there_once_and_is_answered_again, readers_open_what_a_kill_left])
