"""kill -9 of examples/invoices_sqlite: no number is missing or there twice, and none that it printed is lost."""
import os
import random
import sqlite3
import subprocess

from shell import main

INVOICES = os.environ['INVOICES']
KILLS = 20
SAID_MAX = 3000  # bytes that it says before a kill, at most


def kill_while_numbering(file, chance):
    """Start it, kill it in the middle of its work, and return the (tenant, number)s that it printed."""
    clerk = subprocess.Popen([INVOICES, file, '1000000000'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wanted, said = chance.randrange(1, SAID_MAX), b''
    while len(said) < wanted:
        more = os.read(clerk.stdout.fileno(), 65536)
        assert more, f'it ended by itself: {clerk.stderr.read().decode()}'
        said += more
    clerk.kill()
    said += clerk.stdout.read()
    clerk.communicate()
    whole = said[:said.rfind(b'\n') + 1].decode()  # a last line that was cut was not said
    return [tuple(map(int, line.split())) for line in whole.splitlines()]


def number(file, count):
    """Let it number so many invoices, and end."""
    subprocess.run([INVOICES, file, str(count)], check=True, stdout=subprocess.DEVNULL, timeout=300)


def execute(file, sql):
    """What SQLite answers."""
    database = sqlite3.connect(file)
    with database:
        found = database.execute(sql).fetchall()
    database.close()
    return found


def check(file, said):
    """Offsets and each tenant's numbers are 1, 2, 3, ..., and everything that was said is there."""
    found, tenants = execute(file, 'SELECT offset, tenant, number FROM invoice ORDER BY offset'), {}
    assert [offset for offset, _, _ in found] == list(range(1, len(found) + 1))
    for _, tenant, given in found:
        tenants[tenant] = tenants.get(tenant, 0) + 1
        assert given == tenants[tenant], f'tenant {tenant}: {given} after {tenants[tenant] - 1}'
    lost = set(said) - {(tenant, given) for _, tenant, given in found}
    assert not lost, f'printed, but not there: {sorted(lost)[:5]}'
    return len(found)


def no_number_is_lost_or_doubled_by_twenty_kills(folder):
    file, said = os.path.join(folder, 'invoices.db'), []
    chance = random.Random(int(os.environ.get('PAWL_SEED', '1')))
    for _ in range(KILLS):
        said += kill_while_numbering(file, chance)
        check(file, said)
    assert len(said) == len(set(said))


def a_storage_that_is_lost_is_made_again_from_the_invoices(folder):
    file = os.path.join(folder, 'invoices.db')
    number(file, 200)
    execute(file, 'DELETE FROM sequence')
    number(file, 200)
    assert check(file, []) == 400


def numbers_of_invoices_that_are_lost_are_not_given_again(folder):
    file = os.path.join(folder, 'invoices.db')
    number(file, 200)
    execute(file, 'DELETE FROM invoice WHERE offset > 150')
    for _ in range(2):
        refused = subprocess.run([INVOICES, file, '10'], check=False, capture_output=True, timeout=300)
        assert refused.returncode == 1 and b'ahead of the log' in refused.stderr, refused.stderr
    assert check(file, []) == 150


if __name__ == '__main__':
    main([no_number_is_lost_or_doubled_by_twenty_kills, a_storage_that_is_lost_is_made_again_from_the_invoices,
          numbers_of_invoices_that_are_lost_are_not_given_again])
