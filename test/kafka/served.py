"""`pawl serve` on a directory whose log is on brokers, as a process that is paused, killed and replaced."""
import os
import signal
import subprocess
import time

PAWL = os.environ['PAWL']
PATIENCE = 300  # seconds; a machine that others keep busy is slow, not broken
FAILED, USAGE, CORRUPT, OWNED = 1, 2, 3, 4  # exit codes


class Node:
    """Once started. It does not outlive whoever started it."""

    def __init__(self, folder, *options, env=None):
        self.folder, self.port, self.naps, self.log = folder, None, [], f'{folder}.log'
        with open(self.log, 'a', encoding='utf-8') as log:
            self.process = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', '--', PAWL, 'serve', '--dir', folder,
                                             '--listen', '127.0.0.1:0', *options], stdout=subprocess.PIPE, stderr=log,
                                            text=True, env={**os.environ, **(env or {})})

    def is_ready(self):
        """Once it serves, or has ended."""
        line = self.process.stdout.readline()
        if ' is served at ' not in line:
            self.process.wait(PATIENCE)
            return False
        self.port = int(line.split('http://127.0.0.1:')[1].split()[0])
        return True

    def words(self):
        with open(self.log, encoding='utf-8') as log:
            return ''.join(log.readlines()[-3:])

    def sleep(self):
        self.naps.append([time.monotonic(), float('inf')])
        self.process.send_signal(signal.SIGSTOP)

    def wake(self):
        self.process.send_signal(signal.SIGCONT)
        self.naps[-1][1] = time.monotonic()

    def slept(self, since):
        """How long, since then."""
        now = time.monotonic()
        return sum(max(0, min(end, now) - max(begin, since)) for begin, end in self.naps)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ends(self, code, *words):
        """By itself."""
        self.process.wait(PATIENCE)
        assert self.process.returncode == code, f'{self.folder}: {self.process.returncode}, {self.words()}'
        for word in words:
            assert word in self.words(), f'no {word!r} in {self.words()!r}'

    def stop(self, code=0):
        self.process.terminate()
        self.ends(code)
