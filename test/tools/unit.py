"""packaging/systemd/pawl.service, as a test runs what it says: the same words, with another program, directory and settings."""
import os
import re
import shlex

import tap

UNIT = os.path.join(tap.ROOT, 'packaging/systemd/pawl.service')


def text():
    with open(UNIT, encoding='ascii') as file:
        return file.read()


def values(name):
    """All lines NAME=VALUE."""
    return re.findall(rf'^{name}=(.*)$', text(), re.MULTILINE)


def moved(line, pawl, folder, config):
    """The words of a command line."""
    return shlex.split(line.replace('/usr/bin/pawl', pawl).replace('/var/lib/pawl', folder)
                       .replace('/etc/pawl/pawl.conf', config))


def commands(pawl, folder, config):
    """Those that a start runs, in their order; the last one stays."""
    return [moved(line, pawl, folder, config) for line in values('ExecStartPre') + values('ExecStart')]
