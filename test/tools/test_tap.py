#!/usr/bin/env python3
"""tap.py reports each case, and a case leaves nothing behind, however it ends."""
import os
import subprocess
import sys

import tap

# Each case starts a process that would last, and says which, and where it works.
SCRIPT = '''
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import tap
def start(folder):
    tap.children.append(subprocess.Popen(['sleep', '1000']))
    print(f'# {tap.children[-1].pid} {folder}', flush=True)
def passes(folder):
    start(folder)
def fails(folder):
    start(folder)
    assert False
def skips(folder):
    start(folder)
    raise tap.Skip('not here')
tap.main([passes, fails, skips])
'''


def each_case_is_reported_and_leaves_no_process_and_no_folder(_):
    done = subprocess.run([sys.executable, '-B', '-c', SCRIPT, os.path.join(tap.ROOT, 'test/tools')],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and lines[0] == '1..3', lines
    assert [line for line in lines[1:] if not line.startswith('#')] == \
        ['ok 1 - passes', 'not ok 2 - fails', 'ok 3 - skips # SKIP not here'], lines
    started = [line.split()[1:] for line in lines if line.startswith('#')]
    assert len(started) == 3
    for pid, folder in started:
        assert not os.path.exists(f'/proc/{pid}') and not os.path.exists(folder), (pid, folder)


tap.main([each_case_is_reported_and_leaves_no_process_and_no_folder])
