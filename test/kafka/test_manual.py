"""docs/KAFKA.md is true: its commands are run, in order, from three brokers that are formatted to a node that was lost and is
back. Kafka's own scripts are stood in for by two that run the same classes, from the jars that test/kafka/cluster brings."""
import os
import random
import re
import signal
import socket
import sys

from brokers import CLUSTER, HERE, main, run

sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'e2e'))
import test_tutorial  # noqa: E402  pylint: disable=wrong-import-position
from shell import ROOT  # noqa: E402  pylint: disable=wrong-import-position

MANUAL = os.path.join(ROOT, 'docs', 'KAFKA.md')
JARS = os.path.join(ROOT, 'build', 'kafka')
JAVA = 'java -Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.awt.headless=true'
SCRIPTS = {'kafka-storage.sh': 'exec {java} kafka.tools.StorageTool "$@"\n',
           'kafka-server-start.sh': 'shift\nsetsid {java} kafka.Kafka "$@" >>"$1.log" 2>&1 </dev/null &\necho $! >>brokers/pids\n'}


def free_prefix():
    """Two digits that, put before what is behind the 9 of the manual's ports, make ports that nobody has."""
    for prefix in random.sample(range(10, 30), 20):
        sockets = [socket.socket() for _ in range(6)]
        try:
            for at, port in zip(sockets, (192, 193, 292, 293, 392, 393)):
                at.bind(('127.0.0.1', prefix * 1000 + port))
            return str(prefix)
        except OSError:
            continue
        finally:
            for at in sockets:
                at.close()
    raise AssertionError('there are no free ports')


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def the_commands_of_the_page_answer_what_it_says(folder):
    run(CLUSTER, 'fetch')
    jars = ':'.join(os.path.join(JARS, name) for name in sorted(os.listdir(JARS)) if name.endswith('.jar'))
    java = f'{JAVA} -Xshare:auto -XX:SharedArchiveFile={JARS}/classes.jsa -Xlog:disable -cp {jars}'
    os.makedirs(f'{folder}/kafka/bin')
    for name, text in SCRIPTS.items():
        with open(f'{folder}/kafka/bin/{name}', 'w', encoding='ascii') as file:
            file.write('#!/bin/sh\n' + text.format(java=java))
        os.chmod(f'{folder}/kafka/bin/{name}', 0o755)
    os.environ['KAFKA'] = f'{folder}/kafka'
    prefix, path = free_prefix(), f'{folder}/manual.md'
    with open(MANUAL, encoding='utf-8') as file:
        text = re.sub(r'\b9(\$\{n\}|[123])(9[23])\b', prefix + r'\g<1>\g<2>', file.read())
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    try:
        test_tutorial.check(path, folder)
    finally:
        if os.path.exists(f'{folder}/brokers/pids'):
            with open(f'{folder}/brokers/pids', encoding='ascii') as file:
                for pid in file.read().split():
                    end(int(pid))


if __name__ == '__main__':
    main([the_commands_of_the_page_answer_what_it_says])
