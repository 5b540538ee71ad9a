"""Every verb that writes, cut at every call: by a loss of power, and by kill -9.

Each verb is run once with every effect that it has on its files recorded. From the record, images are made of what a loss
of power may leave at each moment: with nothing that was not synced, with all of it, and with some of it. And the verb is
killed before each of its calls. Whatever is left must need no hand: what was said is true, the verb can be run again and
then is done once, and `pawl verify` finds it sound.

A slice of it is run by default; all of it with PAWL_SOAK. PAWL names the program, RECORDER what is loaded into it."""
import collections
import concurrent.futures
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
from cuts import EFFECTS, Disk, read_record  # noqa: E402  pylint: disable=wrong-import-position
from shell import PAWL, SHOP, Answer, customer, main, order  # noqa: E402  pylint: disable=wrong-import-position

RECORDER = os.environ['RECORDER']
SOAK = 'PAWL_SOAK' in os.environ
SEED = int(os.environ.get('PAWL_SEED', '1'))
IMAGES, KILLS = (None, None) if SOAK else (20, 8)  # of each verb; None: all there are
MIXED = 4 if SOAK else 2                           # images with some of what was not synced, at each call
WAITING = 32                                       # that were made and are not judged yet
ADA = 1125899907042625                             # the first record of a workspace's C register
VIEW = ('view', 'create', 'shop.v', '--base', 'shop.Invoice', '--key', 'cents')
MEMORY = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None


class Place:
    """A directory in which verbs are run, as on a machine of its own; {W} in a word is that directory."""

    def __init__(self, path, **env):
        self.path = os.path.realpath(path)
        self.env = {**os.environ, 'LD_PRELOAD': RECORDER, 'PAWL_CUT_FAST': '1', **env}
        self.env.pop('PAWL_DIR', None)
        self.trace = []

    def __call__(self, *words, stdin='', **env):
        words = [word.replace('{W}', self.path) for word in words]
        answer = Answer(subprocess.run([PAWL, *words], input=stdin.encode(), capture_output=True, check=False, timeout=300,
                                       env={**self.env, **env}))
        self.trace.append(f'{answer.code}: {" ".join(words)}: {answer.out[-300:]}{answer.err[-300:]}')
        return answer

    def on(self, *words, **how):
        """A verb on the one directory that most of them have."""
        return self(*words, '--dir', '{W}/d', **how)

    def has(self, name):
        return os.path.exists(os.path.join(self.path, name))

    def mend(self):
        """Open it for writing, which repairs it."""
        self.on('command', '1').expect(0)

    def events(self, name='d'):
        return [event['workspace_offset'] for event in self('events', 'read', '--dir', '{W}/' + name, '--ws', '7').expect(0).lines()]

    def sound(self, name='d'):
        self('verify', '--dir', '{W}/' + name).expect(0, 'is sound')


# --- what there is before the verb ---

def nothing(_place):
    pass


def made(place):
    place.on('init', '--partitions', '2', '--shards', '1').expect(0)


def shop(place):
    made(place)
    place.on('schema', 'apply', SHOP).expect(0)


def tenant(place):
    shop(place)
    place.on('ws', 'create', '7', 'shop.tenant').expect(0)


def orders(place):
    tenant(place)
    place.on('project', 'pause', 'shop.accounts').expect(0)
    place.on('command', '7', stdin=customer('Ada') + order(ADA, 500) + order(ADA, 700)).expect(0)


def caught_up(place):
    orders(place)
    place.on('project', 'resume', 'shop.accounts').expect(0)
    place.on('project', 'run').expect(0)


def viewed(place):
    """A view over two invoices."""
    orders(place)
    place.on(*VIEW).expect(0)


def split(place):
    viewed(place)
    place.on('tablet', 'split').expect(0)


def being_built(place):
    orders(place)
    place.on(*VIEW, '--no-wait').expect(0)


def paused_view(place):
    orders(place)
    place.on('view', 'pause').expect(0)
    place.on(*VIEW, '--no-wait').expect(0)


def asked(place):
    """Number 1 of shop.statements waits for a worker."""
    tenant(place)
    ask = json.dumps({'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': ADA}}) + '\n'
    place.on('command', '7', stdin=customer('Ada') + ask).expect(0)


def let_in(place):
    """Two tokens, of which one will be revoked."""
    tenant(place)
    for name in ('kept', 'lost'):
        place.on('token', 'create', name, '--scope', 'read').expect(0)


def saved(place):
    """A backup, and after it another event."""
    orders(place)
    place.on('backup', '--to', '{W}/b').expect(0)
    place.on('command', '7', stdin=customer('Bob')).expect(0)


# --- what must be so after a cut; said is what the verb had said by then ---

def after_init(place, said):
    again = place.on('init', '--partitions', '2', '--shards', '1')
    assert again.code == (1 if said else again.code) and again.code in (0, 1), again.err
    place.on('schema', 'apply', SHOP).expect(0)
    place.sound()


def after_schema(place, said):
    if said:
        place.mend()
        place.on('schema', 'show').expect(0, '"AddCustomer"')
    place.on('schema', 'apply', SHOP).expect(0)
    place.on('ws', 'create', '7', 'shop.tenant').expect(0)
    place.sound()


def after_workspace(place, said):
    again = place.on('ws', 'create', '7', 'shop.tenant')
    assert again.code in ((1,) if said else (0, 1)), again.err
    place.on('ws', 'show', '7').expect(0, 'shop.tenant')
    assert place.events() == [1]
    place.sound()


def after_freeze(place, said):
    place.mend()
    frozen = place.on('ws', 'show', '7', '--json').expect(0).json()['frozen']
    assert frozen or not said
    place.on('ws', 'freeze', '7').expect(0)
    place.on('command', '7', stdin=customer('x')).expect(1, 'PAWL_EREADONLY')
    assert place.events() == [1, 2]
    place.sound()


COMMANDS = ''.join([customer('Ada', idempotency_key='0')]
                   + [order(ADA, 100 * i, idempotency_key=str(i)) for i in range(1, 6)])


def after_commands(place, said):
    """Sent again with their keys, they are answered as before, and there once."""
    answers = place.on('command', '7', stdin=COMMANDS).expect(0).lines()
    before = [json.loads(line) for line in said.splitlines()]
    for old, new in zip(before, answers):
        assert new.pop('repeated') is True
        old.pop('repeated', None)
        assert old == new, (old, new)
    assert place.events() == list(range(1, 8))
    place.sound()


def status_of(place, lane):
    return next(line for line in place.on('project', 'status').expect(0).out.splitlines() if line.startswith(lane))


def after_pause(place, said):
    place.mend()
    if said:
        assert 'paused' in status_of(place, 'shop.accounts')
    place.on('project', 'pause', 'shop.accounts').expect(0)
    assert 'paused' in status_of(place, 'shop.accounts')
    place.sound()


def after_resume(place, said):
    place.mend()
    if said:
        assert 'paused' not in status_of(place, 'shop.accounts')
    place.on('project', 'resume', 'shop.accounts').expect(0)
    after_run(place, said)


def after_run(place, _said):
    place.on('project', 'run').expect(0)
    account = place.on('entity', 'get', '7', 'shop.Account', str(ADA)).expect(0).json()
    assert (account['orders'], account['cents']) == (2, 1200), account
    numbers = [op['number'] for op in place.on('op', 'read', 'shop.accounts').expect(0).lines()]
    assert numbers == [1, 2], numbers
    place.on('verify', '--replay').expect(0, 'is sound')


def after_rebuild(place, said):
    place.mend()
    again = place.on('project', 'rebuild', 'shop.accounts')
    assert again.code in (0, 1), again.err  # the rebuild is under way already
    after_run(place, said)


def view_is_right(place):
    place.on('view', 'wait', 'shop.v').expect(0, 'is built: 2 rows')
    rows = place.on('view', 'query', 'shop.v', '--complete').expect(0).lines()
    assert [row['cents'] for row in rows] == [500, 700], rows
    place.sound()


def after_view_create(place, said):
    place.mend()
    again = place.on(*VIEW)
    assert again.code in ((1,) if said else (0, 1)), again.err  # it is there already
    view_is_right(place)


def after_view_drop(place, said):
    place.mend()
    again = place.on('view', 'drop', 'shop.v')
    assert again.code in ((1,) if said else (0, 1)), again.err
    place.on('view', 'query', 'shop.v').expect(1, 'there is no view shop.v')
    place.sound()
    place.on(*VIEW).expect(0)
    view_is_right(place)


def after_view_rebuild(place, _said):
    place.mend()
    again = place.on('view', 'rebuild', 'shop.v')
    assert again.code in (0, 1), again.err  # the rebuild is under way already
    view_is_right(place)


def after_view_pause(place, said):
    place.mend()
    if said:
        assert place.on('view', 'status', 'shop.v', '--json').expect(0).json()['paused'] is True
    place.on('view', 'resume', 'shop.v').expect(0)
    view_is_right(place)


def after_view_resume(place, said):
    place.mend()
    if said:
        assert place.on('view', 'status', 'shop.v', '--json').expect(0).json()['paused'] is False
    place.on('view', 'resume').expect(0)
    view_is_right(place)


def after_view_throttle(place, _said):
    place.mend()
    place.on('view', 'throttle', '0').expect(0)
    view_is_right(place)


def after_view_wait(place, _said):
    place.mend()
    view_is_right(place)


def after_tablets(place, said):
    """All have two, or all have one."""
    place.mend()
    tablets = place.on('tablet', 'list', '--json').expect(0).lines()
    assert len(tablets) in ((said,) if said else (2, 4)) and all(one['stage'] == '' for one in tablets), tablets
    view_is_right(place)


def after_split(place, said):
    after_tablets(place, 4 if said else 0)


def after_merge(place, said):
    after_tablets(place, 2 if said else 0)


def after_lease(place, _said):
    """Number 1 waits on, whatever the operator has tried."""
    place.mend()
    row = place.on('lease', 'list', '--json').expect(0).json()
    assert (row['state'], row['number']) == ('bound', 1), row
    place.sound()


def after_void(place, said):
    place.mend()
    again = place.on('lease', 'void', '1', 'shop.statements', '1', '--reason', 'gone')
    assert again.code in ((1,) if said else (0, 1)), again.err
    ops = place.on('op', 'read', 'shop.statements').expect(0).lines()
    assert [(op['number'], op['void']) for op in ops] == [(1, 'gone')], ops
    place.sound()


def tokens(place):
    """{name: ID}"""
    return {token['name']: token['id'] for token in place.on('token', 'list', '--json').expect(0).lines()}


def after_token_create(place, said):
    """If its secret was told, it is there; otherwise it may be, with a secret that nobody knows."""
    place.mend()
    if said:
        assert tokens(place) == {'a': hashlib.sha256(said.strip().encode()).hexdigest()[:16]}
    again = place.on('token', 'create', 'a', '--scope', 'admin', '--ws', '8')
    assert again.code in ((1,) if said else (0, 1)), again.err
    if again.code == 1:
        place.on('token', 'revoke', 'a').expect(0)
        again = place.on('token', 'create', 'a', '--scope', 'admin').expect(0)
    assert tokens(place) == {'a': hashlib.sha256(again.out.strip().encode()).hexdigest()[:16]}
    place.sound()


def after_token_revoke(place, said):
    place.mend()
    names = set(tokens(place))
    assert names == {'kept'} if said else 'kept' in names, names
    again = place.on('token', 'revoke', 'lost')
    assert again.code == (0 if 'lost' in names else 1), again.err
    assert set(tokens(place)) == {'kept'}
    place.sound()


def after_backup(place, said):
    """It is there whole, or not at all."""
    again = place.on('backup', '--to', '{W}/b')
    assert again.code == (1 if said else again.code) and again.code in (0, 1), again.err
    place.sound('b')
    assert not place.has('b.new')
    place.mend()
    assert place.events() == [1, 2, 3, 4]
    place.sound()


def after_restore(place, said):
    again = place('restore', '--dir', '{W}/r', '--from', '{W}/b')
    assert again.code == (1 if said else again.code) and again.code in (0, 1), again.err
    assert not place.has('r.new')
    place.sound('r')
    assert place.events('r') == [1, 2, 3, 4]


def after_replace(place, said):
    """There is always a directory, the old one or the new one; and the old one is never lost."""
    assert place.has('d/node')
    new = len(place.events()) == 4
    assert new or not said
    again = place.on('restore', '--from', '{W}/b', '--replace')
    again.expect(1 if new else 0)
    assert not place.has('d.new')
    assert place.events() == [1, 2, 3, 4] and place.events('d.before') == [1, 2, 3, 4, 5]
    place.sound()
    place.sound('d.before')


def after_replay(place, said):
    again = place.on('replay', '--to', '{W}/s')
    assert again.code == (1 if said else again.code) and again.code in (0, 1), again.err
    if again.code == 1:
        shutil.rmtree(place.path + '/s')  # it names the log where it was recorded
        place.on('replay', '--to', '{W}/s').expect(0)
    assert place.events('s') == [1, 2, 3, 4]
    place.sound()


LINES = [f'entry {i}' for i in range(8)]


def after_append(place, said):
    least = len(said.splitlines())
    stream = ('--dir', '{W}/l', '--stream', 'raw/0')
    place('log', 'append', *stream, stdin='last\n').expect(0)
    found = [entry['text'] for entry in place('log', 'read', *stream, '--json').expect(0).lines()]
    assert found.pop() == 'last' and len(found) >= least and found == LINES[:len(found)], found
    place('verify', '--log', '{W}/l').expect(0)


def after_doctor(place, said):
    again = place('doctor', '--dir', '{W}/d/log', '--to', '{W}/n')
    assert again.code == (1 if said else again.code) and again.code in (0, 1), again.err
    place.mend()
    assert place.events() == [1, 2, 3, 4]
    place.sound()


ON = ('--dir', '{W}/d')
Verb = collections.namedtuple('Verb', 'before words judge stdin', defaults=('',))
VERBS = {
    'init': Verb(nothing, ('init', '--partitions', '2', '--shards', '1', *ON), after_init),
    'schema_apply': Verb(made, ('schema', 'apply', SHOP, *ON), after_schema),
    'ws_create': Verb(shop, ('ws', 'create', '7', 'shop.tenant', *ON), after_workspace),
    'ws_freeze': Verb(tenant, ('ws', 'freeze', '7', *ON), after_freeze),
    'command': Verb(tenant, ('command', '7', *ON), after_commands, COMMANDS),
    'project_pause': Verb(tenant, ('project', 'pause', 'shop.accounts', *ON), after_pause),
    'project_resume': Verb(orders, ('project', 'resume', 'shop.accounts', *ON), after_resume),
    'project_run': Verb(caught_up, ('project', 'run', *ON), after_run),
    'project_rebuild': Verb(caught_up, ('project', 'rebuild', 'shop.accounts', *ON), after_rebuild),
    'view_create': Verb(orders, (*VIEW, *ON), after_view_create),
    'view_drop': Verb(viewed, ('view', 'drop', 'shop.v', *ON), after_view_drop),
    'view_rebuild': Verb(viewed, ('view', 'rebuild', 'shop.v', '--wait', *ON), after_view_rebuild),
    'view_pause': Verb(viewed, ('view', 'pause', 'shop.v', *ON), after_view_pause),
    'view_resume': Verb(paused_view, ('view', 'resume', *ON), after_view_resume),
    'view_throttle': Verb(viewed, ('view', 'throttle', '1000', *ON), after_view_throttle),
    'view_wait': Verb(being_built, ('view', 'wait', 'shop.v', *ON), after_view_wait),
    'tablet_split': Verb(viewed, ('tablet', 'split', *ON), after_split),
    'tablet_merge': Verb(split, ('tablet', 'merge', *ON), after_merge),
    'lease_retry': Verb(asked, ('lease', 'retry', '1', 'shop.statements', '1', *ON), after_lease),
    'lease_reclaim': Verb(asked, ('lease', 'reclaim', '1', 'shop.statements', '1', *ON), after_lease),
    'lease_void': Verb(asked, ('lease', 'void', '1', 'shop.statements', '1', '--reason', 'gone', *ON), after_void),
    'token_create': Verb(tenant, ('token', 'create', 'a', '--scope', 'read,write', '--ws', '7', *ON), after_token_create),
    'token_revoke': Verb(let_in, ('token', 'revoke', 'lost', *ON), after_token_revoke),
    'backup': Verb(orders, ('backup', '--to', '{W}/b', *ON), after_backup),
    'restore': Verb(saved, ('restore', '--dir', '{W}/r', '--from', '{W}/b'), after_restore),
    'restore_replace': Verb(saved, ('restore', '--from', '{W}/b', '--replace', *ON), after_replace),
    'replay': Verb(orders, ('replay', '--to', '{W}/s', *ON), after_replay),
    'log_append': Verb(nothing, ('log', 'append', '--dir', '{W}/l', '--stream', 'raw/0'), after_append,
                       ''.join(line + '\n' for line in LINES)),
    'doctor': Verb(orders, ('doctor', '--dir', '{W}/d/log', '--to', '{W}/n'), after_doctor),
}


# --- cutting ---

def record(folder, verb):
    """Run it once; what there was before it, and its record."""
    place = Place(folder + '/w')
    shutil.copytree(folder + '/before', place.path)
    disk = Disk(place.path)
    done = place(*verb.words, stdin=verb.stdin, PAWL_CUT_BELOW=place.path, PAWL_CUT_RECORD=folder + '/record')
    assert done.code in (0, 1), done.err
    return disk, read_record(folder + '/record')


def moments(ops):
    """(index, what is kept) of each image that differs from the others: what is lost without a sync is the same until the
    next one, but for what was said meanwhile."""
    found = []
    for at in range(len(ops) + 1):
        after = ops[at][0] if at < len(ops) else 'sync'
        if after == 'sync':
            found.append((at, 'nothing'))
        if after in EFFECTS:
            found += [(at, 'all')] + [(at, f'some {i}') for i in range(MIXED)]
    return found


def slice_of(moments_, count):
    """So many of them, far apart."""
    if count is None or len(moments_) <= count:
        return moments_
    return [moments_[(2 * i + 1) * len(moments_) // (2 * count)] for i in range(count)]


def keeper(how, at):
    if how.startswith('some'):
        chance = random.Random(f'{SEED} {how} {at}')
        share = chance.choice((0.2, 0.5, 0.8))
        return lambda: chance.random() < share
    return lambda: how == 'all'


def judge(verb, place, said, what):
    """None, or what is wrong."""
    try:
        verb.judge(place, said)
    except Exception as error:  # pylint: disable=broad-exception-caught
        return f'{what}: {type(error).__name__}: {error}\n    ' + '\n    '.join(place.trace)
    shutil.rmtree(place.path)
    return None


def lose_power(folder, verb, submit):
    """Images, each handed on to be judged."""
    disk, ops = record(folder, verb)
    wanted = collections.defaultdict(list)
    for at, how in slice_of(moments(ops), IMAGES):
        wanted[at].append(how)
    said, count = '', 0
    for at in range(len(ops) + 1):
        for how in wanted[at]:
            count += 1
            path = f'{folder}/image-{count}'
            lines = disk.image(path, keeper(how, at))
            with open(path + '.files', 'w', encoding='utf-8') as file:
                file.writelines(lines)
            place = Place(path, PAWL_CUT_BOOT=folder + '/boot', PAWL_CUT_FILES=path + '.files')
            submit(judge, verb, place, said, f'power lost before effect {at} {ops[at][:1] if at < len(ops) else ""}, '
                                             f'{how} kept of what was not synced')
        if at < len(ops):
            if ops[at][0] == 'said':
                said += ops[at][1]
            else:
                disk.step(ops[at])
    return count, sum(op[0] in EFFECTS for op in ops)


def kill_and_judge(folder, verb, number):
    place = Place(f'{folder}/kill-{number}')
    shutil.copytree(folder + '/before', place.path)
    done = place(*verb.words, stdin=verb.stdin, PAWL_CUT_BELOW=place.path, PAWL_CUT_KILL=str(number))
    return judge(verb, place, done.out, f'killed before effect {number}')


def cut(name, folder):
    """All of it for one verb."""
    verb = VERBS[name]
    with open(folder + '/boot', 'w', encoding='utf-8') as file:
        file.write('the next boot\n')
    os.mkdir(folder + '/before')
    verb.before(Place(folder + '/before'))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiting = []

        def submit(*what):
            if len(waiting) >= WAITING:
                waiting[-WAITING].result()
            waiting.append(pool.submit(*what))
        images, effects = lose_power(folder, verb, submit)
        kills = slice_of(range(1, effects + 1), KILLS)
        waiting += [pool.submit(kill_and_judge, folder, verb, number) for number in kills]
        wrong = [found for found in (one.result() for one in waiting) if found]
    print(f'# {name}: {effects} effects; {images} losses of power, {len(kills)} kills; {len(wrong)} wrong')
    assert not wrong, f'{len(wrong)} wrong; PAWL_SEED={SEED}\n' + '\n'.join(wrong[:5])


def case(name):
    def run(folder):
        with tempfile.TemporaryDirectory(dir=MEMORY) as memory:
            cut(name, os.path.realpath(memory))
    run.__name__ = f'{name}_cut_at_any_call_needs_no_hand_and_loses_nothing'
    return run


if __name__ == '__main__':
    main([case(name) for name in os.environ.get('PAWL_CUT_VERBS', ' '.join(VERBS)).split()])
