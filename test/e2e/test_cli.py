"""Every command of pawl, as it is typed: what it says, and how it ends."""
import glob
import os
import shutil
import signal
import subprocess

from shell import (PATIENCE, PAWL, STREAM, append, contents, end, flip, main, pawl, read, segments, start,
                   start_program)


def lines_become_entries_and_come_back_with_their_offsets(folder):
    assert append(folder, 'one\n\nthree 3\nno end').expect(0).out == '1\n2\n3\n4\n'
    assert read(folder).expect(0).out == '1\tone\n2\t\n3\tthree 3\n4\tno end\n'
    assert append(folder, 'five\n').out == '5\n'
    assert read(folder, '--from', '3', '--limit', '2').out == '3\tthree 3\n4\tno end\n'
    assert read(folder, '--from', '99').expect(0).out == ''
    assert pawl('log', 'read', '--dir', folder, '--stream', 'raw/7').expect(0).out == ''


def no_input_is_no_entry(folder):
    assert append(folder, '').expect(0).out == ''
    assert read(folder).expect(0).out == ''


def streams_do_not_mix(folder):
    pawl('log', 'append', '--dir', folder, '--stream', 'raw/1', stdin=b'a\nb\n').expect(0)
    pawl('log', 'append', '--dir', folder, '--stream', 'raw/65535', stdin=b'c\n').expect(0)
    assert pawl('log', 'read', '--dir', folder, '--stream', 'raw/65535').out == '1\tc\n'
    assert pawl('log', 'read', '--dir', folder, '--stream', 'raw/1').out == '1\ta\n2\tb\n'


def machines_get_json(folder):
    assert append(folder, 'x\n').out == '1\n'
    said = pawl('log', 'append', '--json', '--dir', folder, *STREAM, stdin=b'\xff\x00\ny"\n').expect(0)
    assert said.out == '{"offset":2}\n{"offset":3}\n'
    assert read(folder, '--json').out.splitlines() == [
        '{"offset":1,"kind":0,"text":"x"}', '{"offset":2,"kind":0,"hex":"ff00"}',
        '{"offset":3,"kind":0,"text":"y\\""}']
    found = pawl('verify', '--json', '--dir', folder).expect(0).json()
    assert found['sound'] and found['clean'] and found['entries'] == 3 and found['faults'] == 0
    assert found['streams'] == [{'stream': 'raw/0', 'entries': 3, 'first': 1, 'last': 3, 'epoch': 2}]
    found = pawl('doctor', '--json', '--dir', folder).expect(0).json()
    assert not found['damaged'] and found['streams'][0]['intact'] == [[1, 3]]
    failure = pawl('verify', '--json', '--dir', folder + '/none').expect(1)
    assert '{"error":{"code":"PAWL_ENOTFOUND","message":' in failure.err


def the_directory_may_come_from_the_environment(folder):
    env = {'PAWL_DIR': folder}
    assert pawl('log', 'append', *STREAM, stdin=b'a\n', env=env).expect(0).out == '1\n'
    assert pawl('log', 'read', *STREAM, env=env).out == '1\ta\n'
    pawl('verify', env=env).expect(0, 'is sound')


def wrong_use_is_told_and_put_right(folder):
    cases = [
        ((), 'usage: pawl COMMAND'),
        (('verfy',), "did you mean 'pawl verify'"),
        (('log',), "'pawl log append' and 'pawl log read'"),
        (('log', 'apend'), "did you mean 'pawl log append'"),
        (('view', 'nothing'), "view what? There is 'pawl view create'"),
        (('append',), "did you mean 'pawl log append'"),
        (('frobnicate',), "'pawl help' lists them"),
        (('help', 'verifi'), "did you mean 'pawl verify'"),
        (('verify', folder), 'a directory is given as --dir DIR'),
        (('verify',), 'which directory? Say --dir DIR, or set PAWL_DIR'),
        (('verify', '--dri', folder), 'there is no option --dri; did you mean --dir?'),
        (('verify', '--frobnicate'), 'there is no option --frobnicate'),
        (('verify', '--dir'), '--dir needs its DIR'),
        (('verify', '--dir', folder, '--dir', folder), '--dir is given twice'),
        (('verify', '--json=1', '--dir', folder), '--json takes no value'),
        (('log', 'read', '--dir', folder), 'which stream?'),
        (('log', 'read', '--dir', folder, '--stream', 'raw'), "'raw' is not a stream"),
        (('log', 'read', '--dir', folder, *STREAM, '--from', '0'), 'a number of at least 1'),
        (('log', 'read', '--dir', folder, *STREAM, '--limit', '1x'), 'a number of at least 1'),
        (('log', 'append', '--dir', folder, '--stream', 'plog/1'), 'appended to raw/N only'),
    ]
    for words, text in cases:
        pawl(*words).expect(2, text)
    assert os.listdir(folder) == []


def help_and_version_say_what_there_is(folder):
    del folder
    pawl('help').expect(0, 'log append', 'log read', 'verify', 'doctor', 'Exit codes')
    pawl('help', 'log', 'read').expect(0, '--follow', '--from N')
    pawl('verify', '--help').expect(0, 'usage: pawl verify')
    pawl('version').expect(0, 'pawl 0.')


def what_is_not_there_or_not_ours_is_left_alone(folder):
    read(folder + '/none').expect(1, 'none')
    pawl('verify', '--dir', folder).expect(1, 'holds no journal')
    pawl('doctor', '--dir', folder).expect(1)
    with open(folder + '/letter', 'w', encoding='utf-8') as file:
        file.write('dear')
    for answer in (append(folder, 'x\n'), read(folder), pawl('verify', '--dir', folder)):
        answer.expect(1, 'is not a Pawl directory', 'letter')
    assert contents(folder) == {'letter': b'dear'}
    for name in ('kafka://broker/topic', 'ftp://x'):
        append(name, 'x\n').expect(1, 'is not HOST:PORT' if name[0] == 'k' else 'is not the name of a log')
    assert append('file://' + folder + '/new', 'x\n').expect(0).out == '1\n'


def typed_line_by_line_each_is_answered_at_once(folder):
    writer = start('log', 'append', '--dir', folder, *STREAM)
    for offset in range(1, 21):
        writer.stdin.write(b'line %d\n' % offset)
        writer.stdin.flush()
        assert writer.stdout.readline() == b'%d\n' % offset
    assert end(writer, 0) == ''


def a_second_writer_is_refused_and_told_who_has_it(folder):
    writer = start('log', 'append', '--dir', folder, *STREAM)
    writer.stdin.write(b'mine\n')
    writer.stdin.flush()
    assert writer.stdout.readline() == b'1\n'
    append(folder, 'theirs\n').expect(5, 'open for writing in another place', f'process {writer.pid}')
    pawl('verify', '--dir', folder).expect(0, 'is sound')
    end(writer, 0)
    assert append(folder, 'theirs\n').expect(0).out == '2\n'


def a_follower_beside_a_writer_sees_each_entry_come(folder):
    append(folder, 'old\n').expect(0)
    follower = start('log', 'read', '--dir', folder, *STREAM, '--follow')
    assert follower.stdout.readline() == b'1\told\n'
    writer = start('log', 'append', '--dir', folder, *STREAM)
    for offset in range(2, 12):
        writer.stdin.write(b'new %d\n' % offset)
        writer.stdin.flush()
        assert writer.stdout.readline() == b'%d\n' % offset
        assert follower.stdout.readline() == b'%d\tnew %d\n' % (offset, offset)
    end(writer, 0)
    follower.send_signal(signal.SIGINT)
    end(follower, -signal.SIGINT)
    assert pawl('log', 'read', '--dir', folder, *STREAM, '--follow', '--limit', '1').expect(0).out == '1\told\n'


def a_signal_ends_it_cleanly_and_what_was_acknowledged_is_there(folder):
    for number in (signal.SIGTERM, signal.SIGINT):
        writer = start('log', 'append', '--dir', folder, *STREAM)
        writer.stdin.write(b'x\n')
        writer.stdin.flush()
        writer.stdout.readline()
        writer.send_signal(number)
        assert writer.wait(PATIENCE) == 128 + number
        writer.communicate()
        assert pawl('verify', '--json', '--dir', folder).expect(0).json()['clean']
    assert read(folder).out == '1\tx\n2\tx\n'


def a_signal_ends_it_even_if_nobody_takes_its_offsets(folder):
    source = start_program('seq', '1', '1000000', stdout=subprocess.PIPE)
    writer = start('log', 'append', '--dir', folder, *STREAM, stdin=source.stdout)
    source.stdout.close()
    writer.stdout.read(1)
    writer.send_signal(signal.SIGTERM)
    while writer.poll() is None:  # the first only stops the reading, if it came before the pipe was full
        writer.send_signal(signal.SIGTERM)
        try:
            writer.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    assert writer.returncode == 128 + signal.SIGTERM
    writer.communicate()
    source.wait()
    pawl('verify', '--dir', folder).expect(0, 'is sound')


def a_reader_of_the_output_that_goes_away_ends_it_quietly(folder):
    source = start_program('seq', '1', '100000000', stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    writer = start('log', 'append', '--dir', folder, *STREAM, stdin=source.stdout)
    source.stdout.close()
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.wait(PATIENCE) == 0
    assert writer.stderr.read() == b''
    writer.stderr.close()
    source.wait()
    reader = start('log', 'read', '--dir', folder, *STREAM)
    reader.stdout.readline()
    reader.stdout.close()
    assert reader.wait(PATIENCE) == 0
    assert reader.stderr.read() == b''
    reader.stderr.close()
    reader.stdin.close()


def a_line_may_have_64_mebibytes_and_not_one_more(folder):
    largest = 'x' * (64 << 20)
    append(folder, 'a\n' + largest + '\nb\n' + largest + 'x\nc\n').expect(1, 'line 4 has more than 67108864 bytes')
    found = read(folder).expect(0).out.split('\n')
    assert found == ['1\ta', '2\t' + largest, '3\tb', '']


def as_nobody(folder, *words):
    """Run it without root's rights."""
    how = {'user': 65534, 'group': 65534, 'extra_groups': []} if os.geteuid() == 0 else {}
    # These name files of root's, or may do.
    how['env'] = {name: value for name, value in os.environ.items() if name not in ('TSAN_OPTIONS', 'LD_LIBRARY_PATH')}
    program = os.path.join(folder, 'pawl')
    if not os.path.exists(program):
        for path in (PAWL, *glob.glob(os.path.join(os.path.dirname(PAWL), 'libpawl*.so.0'))):  # beside which it finds them
            name = os.path.basename(path)
            shutil.copy(path, os.path.join(folder, name))
            os.chmod(os.path.join(folder, name), 0o755)
    done = subprocess.run([program, *words], input=b'x\n', capture_output=True, check=False, timeout=PATIENCE, **how)
    return done.returncode, (done.stdout + done.stderr).decode()


def a_directory_that_may_only_be_read_is_read_and_verified(folder):
    data = folder + '/data'
    append(data, 'a\nb\n').expect(0)
    os.chmod(folder, 0o755)
    for top, _, names in os.walk(data):
        for name in names:
            os.chmod(os.path.join(top, name), 0o444)
        os.chmod(top, 0o555)
    before = contents(data)
    assert as_nobody(folder, 'log', 'read', '--dir', data, *STREAM) == (0, '1\ta\n2\tb\n')
    code, said = as_nobody(folder, 'verify', '--dir', data)
    assert code == 0 and 'is sound' in said, said
    code, said = as_nobody(folder, 'log', 'append', '--dir', data, *STREAM)
    assert code == 1 and 'lock' in said and 'ermission denied' in said, said
    os.chmod(data + '/journal', 0o000)
    code, said = as_nobody(folder, 'log', 'read', '--dir', data, *STREAM)
    assert code == 1 and 'ermission denied' in said, said
    os.chmod(data + '/journal', 0o755)
    os.chmod(data, 0o755)
    assert contents(data) == before


def corruption_is_found_named_and_saved_from(folder):
    data, saved = folder + '/data', folder + '/saved'
    append(data, ''.join(f'event {n}\n' for n in range(1, 101))).expect(0)
    append(data, 'l' * (1 << 20) + '\n').expect(0)  # into the next segment
    first = segments(data)[0]
    assert len(segments(data)) == 2
    with open(f'{data}/journal/{first}', 'rb') as file:
        at = file.read().index(b'event 42')
    flip(f'{data}/journal/{first}', at)
    before = contents(data)
    pawl('verify', '--dir', data).expect(3, 'CORRUPT', first, 'byte', 'pawl doctor')
    fault = pawl('verify', '--json', '--dir', data).expect(3).json()['first_fault']
    assert fault['file'] == first and at - 64 <= fault['byte'] <= at and fault['lsn'] > 0
    assert read(data).expect(3, first, 'byte').out.endswith('41\tevent 41\n')
    pawl('doctor', '--dir', data).expect(3, '100 entries, 1 lost', 'lost:   42', 'intact: 1-41 43-101')
    assert contents(data) == before

    pawl('doctor', '--dir', data, '--to', saved).expect(0, 'saved into', '59 entries from behind holes')
    assert read(saved).out == ''.join(f'{n}\tevent {n}\n' for n in range(1, 42))
    with open(f'{saved}/behind-holes/raw-0.ndjson', encoding='utf-8') as file:
        lines = file.read().splitlines()
    assert len(lines) == 59
    assert lines[0] == '{"offset":43,"kind":0,"hex":"' + b'event 43'.hex() + '"}'
    pawl('verify', '--dir', saved).expect(0, 'is sound')
    assert append(saved, 'goes on\n').expect(0).out == '42\n'
    pawl('doctor', '--dir', data, '--to', saved).expect(1, 'is not empty')
    assert contents(data) == before


def corruption_in_the_newest_segment_stops_a_writer(folder):
    append(folder, 'a\nb\nc\n').expect(0)
    newest = segments(folder)[-1]
    with open(f'{folder}/journal/{newest}', 'rb') as file:
        flip(f'{folder}/journal/{newest}', file.read().index(b'b\0\0'))
    before = contents(folder)
    append(folder, 'd\n').expect(3, newest, 'byte')
    assert contents(folder) == before


if __name__ == '__main__':
    main([
        lines_become_entries_and_come_back_with_their_offsets,
        no_input_is_no_entry,
        streams_do_not_mix,
        machines_get_json,
        the_directory_may_come_from_the_environment,
        wrong_use_is_told_and_put_right,
        help_and_version_say_what_there_is,
        what_is_not_there_or_not_ours_is_left_alone,
        typed_line_by_line_each_is_answered_at_once,
        a_second_writer_is_refused_and_told_who_has_it,
        a_follower_beside_a_writer_sees_each_entry_come,
        a_signal_ends_it_cleanly_and_what_was_acknowledged_is_there,
        a_signal_ends_it_even_if_nobody_takes_its_offsets,
        a_reader_of_the_output_that_goes_away_ends_it_quietly,
        a_line_may_have_64_mebibytes_and_not_one_more,
        a_directory_that_may_only_be_read_is_read_and_verified,
        corruption_is_found_named_and_saved_from,
        corruption_in_the_newest_segment_stops_a_writer,
    ])
