#!/usr/bin/env python3
"""test_service.py PAWL: systemd understands pawl.service, and finds little that it leaves open."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../tools'))
import tap  # noqa: E402
import unit as service  # noqa: E402

PAWL = sys.argv[1]
EXPOSURE_MAX = 1.5  # of 10; systemd calls up to 2 "OK", and a unit without any hardening has 9.6


START_LIMIT_BURST, START_LIMIT_SECONDS = 5, 10  # systemd's defaults: so many starts in so long, and it is left down
PATIENCE = 300  # seconds; a machine that others keep busy is slow, not broken
unit = service.text


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
    assert settings['ExecStart'] == '/usr/bin/pawl serve --init --dir /var/lib/pawl --config /etc/pawl/pawl.conf'
    assert settings.get('ProcSubset', 'all') == 'all', 'the stores cannot read the boot id'
    assert settings['User'] == settings['Group'] == settings['StateDirectory'] == 'pawl'


def settings_without_tcp(folder):
    """(a directory that systemd has made, a file of settings)"""
    data, config = os.path.join(folder, 'data'), os.path.join(folder, 'pawl.conf')
    os.mkdir(data)
    with open(config, 'w', encoding='ascii') as file:
        file.write('listen =\n')
    return data, config


def start(data, config):
    """What a start of the service runs, until it serves or has ended: its process, and what it said."""
    *before, line = service.commands(PAWL, data, config)
    for words in before:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tap.children.append(server)
    if ' is served at ' in server.stdout.readline():
        return server, ''
    return server, server.communicate(timeout=PATIENCE)[1]


def stop(server):
    server.terminate()
    said = server.communicate(timeout=PATIENCE)[1]
    assert server.returncode == 0, f'it ended with {server.returncode}: {said}'


def without_other_settings_it_makes_a_directory_and_opens_it_again(folder):
    data, config = settings_without_tcp(folder)
    for _ in range(2):
        server, said = start(data, config)
        assert server.poll() is None, said
        assert os.path.isdir(os.path.join(data, 'log'))
        stop(server)


def it_makes_none_among_the_files_of_others(folder):
    data, config = settings_without_tcp(folder)
    with open(os.path.join(data, 'letter'), 'w', encoding='ascii'):
        pass
    server, said = start(data, config)
    assert server.returncode == 1 and 'not empty' in said, (server.returncode, said)
    assert os.listdir(data) == ['letter']


def a_command_that_holds_the_directory_for_a_moment_does_not_end_it_for_good(folder):
    data, config = settings_without_tcp(folder)
    subprocess.run([PAWL, 'init', '--dir', data], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    holder = subprocess.Popen([PAWL, 'log', 'append', '--dir', data, '--stream', 'raw/0'], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    tap.children.append(holder)
    holder.stdin.write('one\n')
    holder.stdin.flush()
    assert holder.stdout.readline() == '1\n'
    server, said = start(data, config)
    assert server.returncode not in (None, 0) and str(holder.pid) in said, (server.returncode, said)
    assert str(server.returncode) not in service.values('RestartPreventExitStatus')[0].split(), 'it stays down'
    assert service.values('Restart') == ['on-failure']
    seconds = int(re.fullmatch(r'([0-9]+)s', service.values('RestartSec')[0])[1])
    assert seconds * (START_LIMIT_BURST - 1) > START_LIMIT_SECONDS, 'systemd gives up soon'
    holder.stdin.close()
    assert holder.wait(PATIENCE) == 0
    server, said = start(data, config)
    assert server.poll() is None, said
    stop(server)


tap.main([systemd_finds_no_fault, it_is_exposed_to_little, it_starts_the_server_on_its_own_directory_as_its_own_user,
          without_other_settings_it_makes_a_directory_and_opens_it_again, it_makes_none_among_the_files_of_others,
          a_command_that_holds_the_directory_for_a_moment_does_not_end_it_for_good])
