"""Compare a stream with what its writers were told (writer.c says what their records hold).

What must hold, once every writer has ended and so has settled all it wrote:
  J1  offsets are 1, 2, 3, ...
  J2  what was acknowledged, or found written, is at its offset, whole, and nowhere else
  J3  what was refused, or found not to be written, is not there
  J4  nothing else is there
  J5  an epoch was given to one writer only, and a writer's epochs grow
"""

BIG_EVERY, BIG_BYTES = 20011, 2500000


def body(name, serial):
    """As writer.c makes it."""
    size = BIG_BYTES if serial % BIG_EVERY == 1 else serial * 7919 % 400
    return f'{name} {serial} ' + 'x' * size


class Record:
    """What one writer was told."""

    def __init__(self, name, lines):
        self.name = name
        self.written, self.refused, self.epochs = {}, set(), []
        self.counts = {'A': 0, 'R': 0, 'L': 0, 'N': 0, 'C': 0}
        for line in lines:
            kind, first, second = line.split()
            self.counts[kind] += 1
            if kind == 'C':
                assert not self.epochs or self.epochs[-1] < int(first), f'J5: {name} was given epoch {first} late'
                self.epochs.append(int(first))
                continue
            serial = int(second)
            assert serial not in self.written and serial not in self.refused, f'{name} {serial} has two outcomes'
            if kind in 'LN':
                self.refused.add(serial)
            else:
                self.written[serial] = int(first)

    def take(self, serial, offset):
        """This entry of the writer's was read at this offset."""
        entry = f'{self.name} {serial}'
        assert serial not in self.refused, f'J3: {entry} is at {offset}, but its writer was told it is not'
        assert serial in self.written, f'J2 or J4: {entry} is at {offset}, a second time or without an outcome'
        expected = self.written.pop(serial)
        assert expected == offset, f'J2: {entry} is at {offset}, but its writer was told {expected}'


def judge(lines, records):
    """lines: "OFFSET<tab>BODY", as `pawl log read` prints them. Returns how many there are."""
    writers = {record.name: record for record in records}
    owners = {}
    for record in records:
        for epoch in record.epochs:
            assert epoch not in owners, f'J5: {record.name} and {owners[epoch]} were both given epoch {epoch}'
            owners[epoch] = record.name
    count = 0
    for count, line in enumerate(lines, 1):
        offset, _, found = line.rstrip('\n').partition('\t')
        assert offset == str(count), f'J1: offset {offset} comes where {count} should'
        name, _, rest = found.partition(' ')
        serial = rest.partition(' ')[0]
        assert name in writers and serial.isdigit(), f'J4: nobody wrote {found[:60]!r}, which is at {count}'
        assert found == body(name, int(serial)), f'J2: {name} {serial} at {count} is not whole'
        writers[name].take(int(serial), count)
    for record in records:
        for serial, offset in record.written.items():
            raise AssertionError(f'J2: {record.name} {serial} was acknowledged at {offset} and is not there, '
                                 f'nor are {len(record.written) - 1} others; the stream ends at {count}')
    return count
