"""What readers do not show after kill -9: they count it, --recover brings it, and without that nothing is written."""
import json
import os
import random
import re
import shutil
import signal
import subprocess

from shell import STREAM, customer, main, order, pawl, read, shop, start

ADA = 1125899907042625  # the first record of a workspace's C register
JSON = '--json'
KILLS = 6
OUTPUT_MAX = 100_000  # how many bytes of offsets are read before the kill, at most
WATERMARK = 3         # of a record's types
TABLES = ('lock.mdb', 'pawl.lock')  # LMDB's table of readers, and who has the store open


def newest_segment(journal):
    return os.path.join(journal, max(name for name in os.listdir(journal) if name.endswith('.seg')))


def records(data):
    """(byte, size, type) of each record of a segment."""
    at = int.from_bytes(data[12:16], 'little')
    while at + 64 <= len(data):
        size = int.from_bytes(data[at + 32:at + 36], 'little')
        if size == 0:
            return
        yield at, (size + 7) // 8 * 8, data[at + 36]
        at += (size + 7) // 8 * 8


def forget_watermark(journal, entries=0):
    """As if the writer had been killed between a sync and the watermark behind it, which is not synced. Damage, and
    not what a kill can do: as if so many entries before it had not been written either."""
    with open(newest_segment(journal), 'r+b') as file:
        found = list(records(file.read()))
        while found and (found[-1][2] == WATERMARK or entries > 0):
            at, size, kind = found.pop()
            entries -= kind != WATERMARK
            file.seek(at)
            file.write(bytes(size))


def write_and_wait(folder, lines):
    """A writer that has acknowledged so many lines, and goes on."""
    writer = start('log', 'append', '--dir', folder, *STREAM)
    writer.stdin.write(b''.join(b'line %d\n' % n for n in range(1, lines + 1)))
    writer.stdin.flush()
    for n in range(1, lines + 1):
        assert writer.stdout.readline() == b'%d\n' % n
    return writer


def kill(writer):
    writer.kill()
    writer.communicate()


def lines_up_to(last):
    return [f'{n}\tline {n}' for n in range(1, last + 1)]


def counted(answer):
    """How many entries it says that it does not show, and behind which offset."""
    said = re.fullmatch(r"(?:pawl: (\d+) entr(?:y|ies) of raw/0, from offset (\d+) on, (?:is|are) whole but not known to "
                        r"be durable, and not shown; 'pawl log read --recover' recovers (?:it|them)\n)+", answer.err)
    assert said or answer.err == '', answer.err
    return (int(said[1]), int(said[2]) - 1) if said else (0, None)


def what_was_acknowledged_and_is_not_shown_is_counted_and_recovered(folder):
    kill(write_and_wait(folder, 100))
    forget_watermark(folder + '/journal')
    answer = read(folder).expect(0)
    hidden, behind = counted(answer)
    assert hidden > 0 and hidden + behind == 100
    assert answer.out.splitlines() == lines_up_to(behind)
    said = read(folder, JSON).expect(0)
    assert [line['offset'] for line in said.lines()] == list(range(1, behind + 1)) and counted(said) == (hidden, behind)
    assert counted(pawl('log', 'read', '--dir', folder, '--stream', 'raw/1').expect(0))[0] == 0
    found = json.loads(pawl('verify', '--dir', folder, JSON).expect(0).out)
    assert found['unwitnessed'] >= hidden and found['entries'] == 100
    answer = read(folder, '--recover').expect(0)
    assert answer.out.splitlines() == lines_up_to(100) and answer.err == ''
    again = sorted(os.listdir(folder + '/journal'))
    assert read(folder, '--recover').expect(0).err == '' and sorted(os.listdir(folder + '/journal')) == again
    assert pawl('verify', '--dir', folder, JSON).expect(0).json()['unwitnessed'] == 0


def beside_a_writer_that_lives_nothing_is_said_and_nothing_recovered(folder):
    writer = write_and_wait(folder, 100)
    os.kill(writer.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
    forget_watermark(folder + '/journal')
    answer = read(folder).expect(0)
    shown = answer.out.splitlines()
    assert len(shown) < 100 and answer.err == ''
    before = state_of(folder)
    answer = read(folder, '--recover').expect(0, 'not recovered', f'process {writer.pid}')
    assert answer.out.splitlines() == shown and state_of(folder) == before
    kill(writer)
    assert counted(read(folder).expect(0)) == (100 - len(shown), len(shown))
    assert read(folder, '--recover').expect(0).out.splitlines() == lines_up_to(100)


def killed_at_full_speed_what_is_shown_and_what_is_counted_is_all_that_is_there(folder):
    seed = int(os.environ.get('PAWL_SEED', '1'))
    print(f'# PAWL_SEED={seed}')
    chance = random.Random(seed)
    last, hidden_ever = 0, 0
    for _ in range(KILLS):
        source = subprocess.Popen(['seq', '-f', 'line %.0f', str(last + 1), '1000000000'], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        writer = start('log', 'append', '--dir', folder, *STREAM, stdin=source.stdout)
        source.stdout.close()
        wanted, said = chance.randrange(1, OUTPUT_MAX), b''
        while len(said) < wanted:
            more = os.read(writer.stdout.fileno(), 65536)
            assert more, writer.stderr.read().decode()
            said += more
        writer.kill()
        said += writer.stdout.read()
        writer.communicate()
        source.wait()
        acknowledged = last + said.count(b'\n')
        answer = read(folder).expect(0)
        hidden, behind = counted(answer)
        shown = len(answer.out.splitlines())
        assert behind in (None, shown)
        assert shown + hidden >= acknowledged, f'{acknowledged} acknowledged, {shown} shown, {hidden} counted'
        hidden_ever += hidden
        answer = read(folder, '--recover').expect(0)
        assert answer.err == '' and answer.out.splitlines() == lines_up_to(shown + hidden)
        last = shown + hidden
    print(f'# {hidden_ever} of {last} entries were not shown at first')
    pawl('verify', '--dir', folder).expect(0, 'is sound')


def killed_shop(folder, lost=0):
    """A directory of commands, applied, and of what lanes made of them; its writer killed before the watermark."""
    verb = shop(folder, 7)
    writer = start('command', '7', '--dir', folder)
    while verb('system', 'view_building_tasks').expect(0).out:
        pass  # nothing is written to group0 behind the last operation
    writer.stdin.write((customer('Ada') + order(ADA, 500) + order(ADA, 700)).encode())
    writer.stdin.flush()
    answers = [json.loads(writer.stdout.readline()) for _ in range(3)]
    while verb('project', 'status', 'shop.accounts', JSON).expect(0).json()['operations'] < 2:
        pass  # applied, and so durable
    kill(writer)
    forget_watermark(folder + '/log/journal', lost)
    return verb, answers[-1]['partition'], answers[-1]['offset']


def what_a_state_or_a_lane_has_applied_is_shown(folder):
    verb, partition, last = killed_shop(folder + '/data')
    plog = ['--stream', f'plog/{partition}', JSON]
    for words in (['events', 'read', '--partition', str(partition)], ['log', 'read', *plog],
                  ['log', 'read', '--recover', *plog]):
        answer = verb(*words).expect(0)
        assert [line['offset'] for line in answer.lines()] == list(range(1, last + 1)) and answer.err == ''
    for words in (['op', 'read', 'shop.accounts'], ['log', 'read', '--stream', f'oplog/{partition}/1.1', JSON]):
        answer = verb(*words).expect(0)
        assert len(answer.lines()) == 2 and answer.err == '', answer.out + answer.err
    assert verb('verify', JSON).expect(0).json()['unwitnessed'] == 0


def a_log_without_an_operation_that_a_lane_has_applied_has_lost_something(folder):
    verb, _, _ = killed_shop(folder + '/data', lost=1)
    before = state_of(folder + '/data/log')
    verb('ws', 'create', '8', 'shop.tenant').expect(3, 'is known elsewhere')
    assert {path: now for path, now in state_of(folder + '/data/log').items() if path.endswith('.seg')} == \
        {path: then for path, then in before.items() if path.endswith('.seg')}


def a_store_that_is_to_be_discarded_witnesses_nothing(folder):
    _, partition, last = killed_shop(folder + '/data')
    copy = folder + '/copy'  # other files than those that were written to, as after a loss of power
    shutil.copytree(folder + '/data', copy)
    shutil.rmtree(copy + '/checkpoint')
    stream = ['--stream', f'oplog/{partition}/1.1', JSON]
    answer = pawl('log', 'read', '--dir', copy, *stream).expect(0, f'of oplog/{partition}/1.1, from offset')
    assert len(answer.lines()) < 2
    plog = ['--stream', f'plog/{partition}', JSON]
    answer = pawl('log', 'read', '--recover', '--dir', copy, *plog).expect(0)
    assert len(answer.lines()) == last and answer.err == ''
    assert len(pawl('log', 'read', '--dir', copy, *stream).expect(0).lines()) == 2


def state_of(folder):
    """{path: when it was changed, and its bytes}, but for LMDB's tables."""
    found = {}
    for top, _, names in os.walk(folder):
        found[top] = os.stat(top).st_mtime_ns
        for name in names:
            path = os.path.join(top, name)
            if name not in TABLES:
                with open(path, 'rb') as file:
                    found[path] = (os.stat(path).st_mtime_ns, file.read())
    return found


def verbs_that_read_say_what_they_leave_out_and_write_nothing(folder):
    data = folder + '/data'
    verb, partition, _ = killed_shop(data)
    kill(write_and_wait(data, 5))  # into the same log, where no store can witness it
    forget_watermark(data + '/log/journal')
    reading = [['events', 'read', '--ws', '7'], ['events', 'read', '--partition', str(partition)],
               ['op', 'read', 'shop.accounts'], ['record', 'get', '7', str(ADA)],
               ['record', 'list', '7', '--type', 'shop.Customer'], ['entity', 'list', '7', 'shop.CustomerTotal'],
               ['ws', 'list'], ['ws', 'show', '7'], ['seq', 'list', '--ws', '7'], ['schema', 'show'],
               ['project', 'list'], ['project', 'status'], ['log', 'read', *STREAM],
               ['events', 'follow', '--ws', '7', '--limit', '1'], ['replay', '--to', folder + '/derived']]
    before = state_of(data)
    for words in reading:
        answer = verb(*words).expect(0)
        assert counted(answer)[0] > 0, f'{words} says nothing'
        assert state_of(data) == before, f'{words} has written'
    follower = start('log', 'read', *STREAM, '--follow', '--dir', data)
    assert b'not known to be durable' in follower.stderr.readline()  # which says it before it waits
    kill(follower)
    for words in (['verify'], ['verify', '--audit'], ['doctor'], ['backup', '--to', folder + '/backup']):
        verb(*words).expect(0)
        assert state_of(data) == before, f'{words} has written'
    verb('verify').expect(0, 'not known to be durable')
    assert len(pawl('log', 'read', '--recover', '--dir', folder + '/backup', *STREAM).expect(0).out.splitlines()) == 5
    assert verb('log', 'read', *STREAM, '--recover').expect(0).out.splitlines() == lines_up_to(5)
    assert all(verb(*words).expect(0).err == '' for words in reading[:-1])


if __name__ == '__main__':
    main([what_was_acknowledged_and_is_not_shown_is_counted_and_recovered,
          beside_a_writer_that_lives_nothing_is_said_and_nothing_recovered,
          killed_at_full_speed_what_is_shown_and_what_is_counted_is_all_that_is_there,
          what_a_state_or_a_lane_has_applied_is_shown,
          a_log_without_an_operation_that_a_lane_has_applied_has_lost_something,
          a_store_that_is_to_be_discarded_witnesses_nothing,
          verbs_that_read_say_what_they_leave_out_and_write_nothing])
