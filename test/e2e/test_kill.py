"""kill -9 of a real `pawl log append` at full speed, a hundred times: nothing that it acknowledged is lost."""
import os
import random
import subprocess

from shell import STREAM, append, main, pawl, read, start, start_program

KILLS = 20
OUTPUT_MAX = 100_000  # how many bytes of offsets are read before the kill, at most


def kill_while_writing(folder, next_offset, chance):
    """Feed it 'event N' for every offset N, kill it, and return the last offset that it acknowledged."""
    source = start_program('seq', '-f', 'event %.0f', str(next_offset), '1000000000',
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    writer = start('log', 'append', '--dir', folder, *STREAM, stdin=source.stdout)
    source.stdout.close()
    wanted, said = chance.randrange(1, OUTPUT_MAX), b''
    output = writer.stdout.fileno()
    while len(said) < wanted:
        more = os.read(output, 65536)
        assert more, f'it ended by itself: {writer.stderr.read().decode()}'
        said += more
    writer.kill()
    said += writer.stdout.read()
    writer.communicate()
    source.wait()
    offsets = said[:said.rfind(b'\n') + 1].split()  # a last line that was cut was not said
    assert offsets == [b'%d' % n for n in range(next_offset, next_offset + len(offsets))]
    return next_offset + len(offsets) - 1


def check(folder, next_offset, acknowledged):
    """Everything from next_offset on is as it was written, at least up to what was acknowledged."""
    pawl('verify', '--dir', folder).expect(0, 'is sound')
    append(folder, '').expect(0)  # a writer recovers what was written last
    found = read(folder, '--from', str(next_offset)).expect(0).out.splitlines()
    last = next_offset + len(found) - 1
    assert found == [f'{n}\tevent {n}' for n in range(next_offset, last + 1)]
    assert last >= acknowledged, f'acknowledged up to {acknowledged}, but only {last} are there'
    return last


def killed(folder, seed):
    chance = random.Random(int(os.environ.get('PAWL_SEED', seed)))
    last = 0
    for _ in range(KILLS):
        last = check(folder, last + 1, kill_while_writing(folder, last + 1, chance))
    found = read(folder).expect(0).out.splitlines()
    assert found == [f'{n}\tevent {n}' for n in range(1, last + 1)]
    pawl('verify', '--dir', folder).expect(0, 'is sound')


def nothing_acknowledged_is_lost_by_twenty_kills(folder):
    killed(folder, 1)


def nor_by_twenty_others(folder):
    killed(folder, 2)


def nor_by_a_third_twenty(folder):
    killed(folder, 3)


def nor_by_a_fourth_twenty(folder):
    killed(folder, 4)


def nor_by_a_fifth_twenty(folder):
    killed(folder, 5)


if __name__ == '__main__':
    main([nothing_acknowledged_is_lost_by_twenty_kills, nor_by_twenty_others, nor_by_a_third_twenty,
          nor_by_a_fourth_twenty, nor_by_a_fifth_twenty])
