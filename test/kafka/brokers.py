"""Brokers for a test in Python: test/kafka/cluster, called."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = os.path.join(HERE, 'cluster')

sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'tools'))
from tap import children, main  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import


def run(*words, **how):
    """What it says on stdout; an exception with what it says on stderr if it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          **{'timeout': 900, **how})
    assert done.returncode == 0, f'{" ".join(words)}: exit code {done.returncode}: {done.stderr}'
    return done.stdout.strip()


class Brokers:
    """A context with brokers in it, which are gone after it."""

    def __init__(self, count, folder):
        self.folder = os.path.join(folder, 'kafka')
        self.address = run(CLUSTER, 'start', str(count), self.folder)
        with open(os.path.join(self.folder, 'secure'), encoding='ascii') as file:
            self.secure = file.read()  # where one must say who one is

    def tell(self, command, *nodes):
        return run(CLUSTER, command, self.folder, *map(str, nodes))

    def heal(self):
        """All run again."""
        for number, _, _, state in [line.split() for line in self.tell('status').splitlines()]:
            if state != 'running':
                self.tell('resume' if state == 'paused' else 'restart', number)

    def pids(self):
        """By node, of those that live."""
        lines = [line.split() for line in self.tell('status').splitlines()]
        return {int(number): int(pid) for number, pid, _, _ in lines if pid != '-'}

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.tell('stop')
