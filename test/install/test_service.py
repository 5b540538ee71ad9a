#!/usr/bin/env python3
"""test_service.py PAWL: systemd understands pawl.service, and finds little that it leaves open."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../tools'))
import tap  # noqa: E402

PAWL = sys.argv[1]
UNIT = os.path.join(tap.ROOT, 'packaging/systemd/pawl.service')
EXPOSURE_MAX = 1.5  # of 10; systemd calls up to 2 "OK", and a unit without any hardening has 9.6


def unit():
    with open(UNIT, encoding='ascii') as file:
        return file.read()


def analyze(*words):
    done = subprocess.run(['systemd-analyze', *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, env={**os.environ, 'SYSTEMD_COLORS': '0', 'LC_ALL': 'C'})
    return done.returncode, done.stdout


def place(folder, text):
    """The unit with the program of this build, as /usr/bin/pawl need not be there."""
    path = os.path.join(folder, 'pawl.service')
    with open(path, 'w', encoding='ascii') as file:
        file.write(text.replace('/usr/bin/pawl', PAWL))
    return path


def systemd_finds_no_fault(folder):
    status, said = analyze('verify', '--man=no', place(folder, unit()))
    assert status == 0 and 'pawl.service' not in said, said
    status, said = analyze('verify', '--man=no', place(folder, unit().replace('Type=notify', 'Type=notifi')))
    assert 'pawl.service' in said, f'a fault was not found: {said}'


def it_is_exposed_to_little(folder):
    status, said = analyze('security', '--offline=true', f'--threshold={int(EXPOSURE_MAX * 10)}', place(folder, unit()))
    level = re.search(r'Overall exposure level for pawl.service: ([0-9.]+)', said)
    assert level, said
    assert status == 0 and float(level[1]) <= EXPOSURE_MAX, said
    weaker = re.sub(r'^(NoNewPrivileges|SystemCallFilter|ProtectSystem|CapabilityBoundingSet)=.*\n', '', unit(),
                    flags=re.MULTILINE)
    status, said = analyze('security', '--offline=true', f'--threshold={int(EXPOSURE_MAX * 10)}', place(folder, weaker))
    assert status != 0, f'a unit with less hardening passes: {said}'


def it_starts_the_server_on_its_own_directory_as_its_own_user(folder):
    del folder
    settings = dict(re.findall(r'^(\w+)=(.*)$', unit(), re.MULTILINE))
    assert settings['ExecStart'] == '/usr/bin/pawl serve --dir /var/lib/pawl --config /etc/pawl/pawl.conf'
    assert settings.get('ProcSubset', 'all') == 'all', 'the stores cannot read the boot id'
    assert settings['User'] == settings['Group'] == settings['StateDirectory'] == 'pawl'


tap.main([systemd_finds_no_fault, it_is_exposed_to_little, it_starts_the_server_on_its_own_directory_as_its_own_user])
