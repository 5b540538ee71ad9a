"""pawl bench: that it runs, that its figures make sense, and that it leaves nothing behind."""
import os
import signal

from shell import PATIENCE, main, pawl, serve, shop, start

JSON = '--json'


def check_steps(steps):
    assert [s['outstanding'] for s in steps] == [1, 8, 64], steps
    for s in steps:
        assert s['count'] > 0 and s['seconds'] >= 1 and abs(s['rate'] - s['count'] / s['seconds']) < 1e-6 * s['rate'], s
        assert 0 < s['p50'] <= s['p99'] <= s['max'] <= s['seconds'], s
        # As many are outstanding as are said to be: none waits longer than all of them together take.
        assert s['p50'] * s['rate'] <= 2.2 * s['outstanding'], s


def a_directory_is_made_measured_and_removed(folder):
    steps = pawl('bench', '--in', folder, '--seconds', '1', JSON).expect(0).lines()
    check_steps(steps)
    for s in steps:
        raw = s['raw_sync']
        assert raw['count'] > 0 and 0 < raw['p50'] <= raw['p99'] <= raw['max'], raw
        assert abs(s['ratio'] - s['rate'] / raw['rate']) < 1e-6 * s['ratio'], s
    assert os.listdir(folder) == []
    text = pawl('bench', '--seconds', '1', cwd=folder).expect(0).out.splitlines()
    assert text[0].split() == 'outstanding commands/s p50 ms p99 ms syncs/s p50 ms ratio'.split(), text
    assert [line.split()[0] for line in text[1:]] == ['1', '8', '64'] and all(len(line.split()) == 7 for line in text[1:]), text
    assert os.listdir(folder) == []


def a_reader_that_goes_away_ends_it(folder):
    bench = start('bench', '--in', folder, '--seconds', '1')
    assert b'outstanding' in bench.stdout.readline()
    bench.stdout.close()
    bench.stdout = None
    _, err = bench.communicate(timeout=PATIENCE)
    assert bench.returncode == 0 and err == b'' and os.listdir(folder) == [], (bench.returncode, err)


def a_signal_leaves_nothing_behind(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        bench = start('bench', '--in', folder, '--seconds', '600')
        while not os.path.exists(os.path.join(folder, (os.listdir(folder) or ['none'])[0], 'data')):
            assert bench.poll() is None
        bench.send_signal(number)
        bench.communicate(timeout=PATIENCE)
        assert bench.returncode == 128 + number and os.listdir(folder) == [], (bench.returncode, os.listdir(folder))


def a_server_is_measured_in_a_workspace_of_its_own(folder):
    verb = shop(folder, 7)
    server, url = serve(folder)
    for count in (1, 2):
        check_steps(pawl('bench', '--url', url, '--ws', '99', '--seconds', '1', JSON).expect(0).lines())
        shown = verb('ws', 'show', '99', JSON).expect(0).json()
        assert shown['kind'] == 'pawl_bench.bench' and shown['workspace_offset'] > 3 * count, shown
    assert pawl('bench', '--url', url, '--ws', '98', '--seconds', '1').expect(0).out.splitlines()[0].split()[-2:] == ['p99', 'ms']
    refused = pawl('bench', '--url', url, '--ws', '7', '--seconds', '1', JSON).expect(1).error()
    assert refused['code'] == 'PAWL_EEXISTS' and 'not made by' in refused['message'], refused
    assert verb('ws', 'show', '7', JSON).expect(0).json()['workspace_offset'] == 1
    verb('verify').expect(0)
    server.terminate()
    server.wait(PATIENCE)
    pawl('bench', '--url', url, '--ws', '99').expect(1, f'cannot reach {url}')


def wrong_use_is_told_and_the_environment_is_not_used(folder):
    pawl('bench', '--url', 'http://127.0.0.1:1').expect(2, 'Say --ws WSID')
    pawl('bench', '--url', 'nowhere', '--ws', '9').expect(2, 'is no URL of a server')
    pawl('bench', '--url', 'http://127.0.0.1:1', '--in', folder, '--ws', '9').expect(2, 'two places')
    pawl('bench', '--ws', '9').expect(2, 'are for a server')
    for seconds in ('0', 'x', '3601'):
        pawl('bench', '--seconds', seconds).expect(2)
    pawl('bench', '--in', folder + '/none', '--seconds', '1').expect(1, 'cannot make a directory')
    pawl('bench', '--dir', folder).expect(2)
    env = {**os.environ, 'PAWL_URL': 'http://127.0.0.1:1', 'PAWL_DIR': folder + '/none'}
    pawl('bench', '--in', folder, '--seconds', '1', env=env).expect(0)


if __name__ == '__main__':
    main([a_directory_is_made_measured_and_removed, a_reader_that_goes_away_ends_it, a_signal_leaves_nothing_behind, a_server_is_measured_in_a_workspace_of_its_own,
          wrong_use_is_told_and_the_environment_is_not_used])
