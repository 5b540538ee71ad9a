"""Saving a directory while it is written to, bringing it back, and auditing its two states."""
import json
import os
import shutil
import threading

from shell import PATIENCE, customer, end, flip, main, order, pawl, shop, start

ADA = 1125899907042625  # the first record of a workspace's C register
JSON = '--json'
NAME = b'Ada Lovelace'


def rot(folder, what=NAME):
    """Flip a bit wherever the files of a folder have these bytes."""
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            with open(path, 'rb') as file:
                contents = file.read()
            at = -1
            while (at := contents.find(what, at + 1)) >= 0:
                flip(path, at)


def offsets(verb_dir):
    return [event['workspace_offset'] for event in pawl('events', 'read', '--dir', verb_dir, '--ws', '7').expect(0).lines()]


class Writer:
    """A process that is sent orders all the time; answered is how many of them are true."""

    def __init__(self, data):
        self.answered = 0
        self.more = threading.Condition()
        self.stop = False
        self.process = start('command', '7', '--dir', data)
        self.threads = [threading.Thread(target=self.send), threading.Thread(target=self.count)]
        for thread in self.threads:
            thread.start()

    def send(self):
        while not self.stop:
            self.process.stdin.write(order(ADA, 500).encode() * 20)
            self.process.stdin.flush()
        self.process.stdin.close()

    def count(self):
        for line in self.process.stdout:
            assert 'offset' in json.loads(line), line
            with self.more:
                self.answered += 1
                self.more.notify()

    def wait(self, more):
        with self.more:
            least = self.answered + more
            assert self.more.wait_for(lambda: self.answered >= least, PATIENCE), self.process.poll()

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join()
        assert self.process.wait(PATIENCE) == 0, self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()


def a_backup_beside_a_writer_has_what_was_answered_before(folder):
    data, backup, back = folder + '/data', folder + '/backup', folder + '/back'
    verb = shop(data, 7)
    verb('command', '7', stdin=customer(NAME.decode()).encode()).expect(0)
    writer = Writer(data)
    try:
        writer.wait(100)
        before = writer.answered
        os.makedirs(backup + '.new/log')
        verb('backup', '--to', backup).expect(1, backup + '.new exists already')  # somebody's
        with open(backup + '.new/unfinished', 'wb'):
            pass  # one that was interrupted
        said = verb('backup', '--to', backup + '/', JSON).expect(0).json()
        assert said['to'] == backup + '/' and said['events'] > 0 and said['log_bytes'] > 0, said
        writer.wait(1)
        verb('backup', '--to', backup).expect(1, 'exists already')
        pawl('verify', '--dir', backup).expect(0, 'no live state', 'the checkpoint stores agree with the log', 'is sound')
        pawl('restore', '--dir', back, '--from', backup).expect(0, 'restored in', 'of log')
        verb('verify', '--audit').expect(0, 'the live stores agree with the log, in 4 partitions', 'is sound')
    finally:
        writer.end()
    assert sorted(os.listdir(folder)) == ['back', 'backup', 'data']
    pawl('command', '7', '--dir', back, stdin=order(ADA, 1).encode()).expect(0)
    found = offsets(back)
    assert found == list(range(1, len(found) + 1)) and len(found) >= 3 + before, (len(found), before)
    pawl('verify', '--audit', '--dir', back).expect(0, 'live stores agree', 'checkpoint stores agree', 'is sound')
    assert len(offsets(data)) == 2 + writer.answered


def a_restore_keeps_what_was_there_and_ends_where_it_is_told(folder):
    data, backup = folder + '/data', folder + '/backup'
    verb = shop(data, 7)
    verb('command', '7', stdin=(customer('a') + customer('b')).encode()).expect(0)
    verb('backup', '--to', backup).expect(0, 'saved in', 'the state of 3 events')
    verb('command', '7', stdin=customer('c').encode()).expect(0)
    assert verb('restore', '--from', backup, JSON).expect(1, 'exists already').error()['code'] == 'PAWL_EEXISTS'
    writer = start('command', '7', '--dir', data)
    writer.stdin.write(customer('d').encode())
    writer.stdin.flush()
    writer.stdout.readline()
    verb('restore', '--from', backup, '--replace').expect(5, 'cannot replace', f'process {writer.pid}')
    end(writer, 0)
    verb('restore', '--from', 'file://' + backup, '--replace').expect(0)
    assert offsets(data) == [1, 2, 3] and offsets(data + '.before') == [1, 2, 3, 4, 5]
    verb('restore', '--from', backup, '--replace').expect(1, '.before exists already')
    assert offsets(data) == [1, 2, 3] and not os.path.exists(data + '.new')
    then = folder + '/then'
    said = pawl('restore', '--dir', then, '--from', data + '.before', '--until', '4', JSON).expect(0).json()
    assert said['to'] == then
    pawl('record', 'get', '--dir', then, '7', str(ADA)).expect(1, 'opening it for writing')
    pawl('command', '1', '--dir', then).expect(0)
    assert offsets(then) == [1, 2, 3, 4]
    pawl('verify', '--audit', '--dir', then).expect(0, 'is sound')


def what_is_damaged_is_not_restored(folder):
    data, backup, to = folder + '/data', folder + '/backup', folder + '/to'
    verb = shop(data, 7)
    verb('command', '7', stdin=customer(NAME.decode()).encode()).expect(0)
    verb('backup', '--to', backup).expect(0)
    for part, words in (('log', ('.seg', 'byte')), ('checkpoint', ('workspace 7', 'shop.Customer', 'checkpoint store'))):
        bad = f'{folder}/bad-{part}'
        shutil.copytree(backup, bad)
        rot(f'{bad}/{part}')
        pawl('restore', '--dir', to, '--from', bad).expect(3, f'{bad} is not restored', *words)
        assert pawl('restore', '--dir', to, '--from', bad, JSON).expect(3).error()['code'] == 'PAWL_ECORRUPT'
        verb('restore', '--from', bad, '--replace').expect(3, 'is not restored')
        if part == 'log':
            verb('restore', '--from', bad, '--until', '2', '--replace').expect(3, '.seg')
            pawl('backup', '--dir', bad, '--to', to).expect(3, '.seg')
    shutil.rmtree(backup + '/checkpoint')
    pawl('restore', '--dir', to, '--from', backup).expect(1, 'is not restored')
    os.remove(backup + '/node')
    pawl('restore', '--dir', to, '--from', backup).expect(1, backup)
    assert not [name for name in os.listdir(folder) if name.startswith('to') or '.new' in name or '.before' in name]
    verb('verify', '--audit').expect(0, 'is sound')


def an_audit_says_which_of_the_two_states_is_right(folder):
    for wrong, right, words in (('state', 'checkpoint', 'from the checkpoint stores'),
                                ('checkpoint', 'live', 'made anew if DIR/checkpoint is removed')):
        data = f'{folder}/{wrong}'
        verb = shop(data, 7)
        verb('command', '7', stdin=(customer(NAME.decode()) + order(ADA, 500)).encode()).expect(0)
        found = verb('verify', '--audit', JSON).expect(0).json()
        assert found['sound']
        for side in ('live', 'checkpoint'):
            views = found['audit'][side].pop('views')
            assert views > 0 and found['audit'][side] == {'agrees': True, 'compared': 4, 'behind': 0, 'differences': 0}, found
        rot(f'{data}/{wrong}')
        said = verb('verify', '--audit').expect(3, 'do not agree with the log: 1 differences', '(shop.Customer), '
                                                f'workspace 7, row {ADA}', words)
        assert f'the {right} stores agree with the log' in said.out, said.out
        audit = verb('verify', '--audit', JSON).expect(3).json()['audit']
        assert audit[right]['agrees'] and not audit['live' if wrong == 'state' else wrong]['agrees'], audit
        verb('verify').expect(3 if wrong == 'state' else 0)  # readers do not look at the checkpoint
        for shard in os.listdir(f'{data}/{wrong}'):
            shutil.rmtree(f'{data}/{wrong}/{shard}')
        verb('command', '1').expect(0)
        verb('verify', '--audit').expect(0, 'is sound')
        assert verb('record', 'get', '7', str(ADA)).expect(0).json()['fields'] == {'name': NAME.decode()}


def wrong_use_is_told(folder):
    data = folder + '/data'
    verb = shop(data, 7)
    verb('replay', '--to', folder + '/state-only').expect(0)
    cases = [
        (2, ('backup', '--dir', data), 'Say --to NEWDIR'),
        (2, ('restore', '--dir', data), 'Say --from BACKUP'),
        (2, ('restore', '--dir', data, '--from', 'x', '--until', '0'), 'a number of at least 1'),
        (2, ('backup', '--to', folder + '/to'), 'which directory?'),
        (2, ('verify', '--audit', '--log', data + '/log'), 'a log alone has no state'),
        (1, ('backup', '--dir', 'kafka://h:1/c', '--to', folder + '/to'), 'is not a directory'),
        (1, ('backup', '--dir', folder + '/none', '--to', folder + '/to'), folder + '/none'),
        (1, ('backup', '--dir', folder + '/state-only', '--to', folder + '/to'), 'holds only state'),
        (1, ('backup', '--dir', data, '--to', folder + '/no/parent'), 'No such file'),
        (1, ('restore', '--dir', folder + '/to', '--from', folder + '/none'), folder + '/none'),
    ]
    for code, words, said in cases:
        pawl(*words).expect(code, said)
    assert sorted(os.listdir(folder)) == ['data', 'state-only']


if __name__ == '__main__':
    main([a_backup_beside_a_writer_has_what_was_answered_before,
          a_restore_keeps_what_was_there_and_ends_where_it_is_told, what_is_damaged_is_not_restored,
          an_audit_says_which_of_the_two_states_is_right, wrong_use_is_told])
