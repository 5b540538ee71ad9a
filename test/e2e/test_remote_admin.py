"""Administration of a server from the program: jobs, tokens, lanes and views, with the same words and codes as on a directory."""
import glob
import http.server
import json
import os
import re
import signal
import threading

from shell import PATIENCE, customer, flip, main, order, pawl, serve, shop, start

ADA = 1125899907042625
JSON = '--json'


def filled(folder):
    verb = shop(folder, 7, 8)
    verb('command', '7', stdin=(customer('Ada') + order(ADA, 500) + order(ADA, 250)).encode()).expect(0)
    verb('project', 'run').expect(0)
    return verb


def stop(server):
    server.terminate()
    server.stdout.read()
    assert server.wait(PATIENCE) == 0


def settle(verb):
    """Until the server has nothing more to write by itself, and its log is as large as it gets."""
    for view in verb('view', 'list', JSON).expect(0).lines():
        verb('view', 'wait', view['view']).expect(0)
    verb('command', '7', stdin=customer('Bo').encode()).expect(0)
    verb('project', 'run').expect(0)


def timeless(text):
    """Without what differs from one run to the next: times and rates, and marks that an open log has."""
    return re.sub(r'[0-9.]+ (?:s\b|[kMG]?B/s|records/s)', 'T', text)


def lanes_of_a_server_are_waited_for(folder):
    verb = filled(folder)
    here = verb('project', 'run').expect(0)
    server, url = serve(folder)
    by_url, by_socket = pawl('project', 'run', '--url', url).expect(0), verb('project', 'run').expect(0)
    assert timeless(by_url.out) == timeless(by_socket.out) == timeless(here.out), (by_url.out, by_socket.out, here.out)
    verb('command', '7', stdin=order(ADA, 1).encode()).expect(0)
    done = pawl('project', 'run', JSON, '--url', url).expect(0).json()
    assert set(done) == {'caught_up', 'lanes', 'operations', 'repeated', 'seconds'} and done['caught_up'] is True, done
    pawl('project', 'pause', 'shop.accounts', '--url', url).expect(0)
    verb('command', '7', stdin=order(ADA, 1).encode()).expect(0)
    refused = pawl('project', 'run', '--url', url, JSON).expect(1).error()
    assert refused['code'] == 'PAWL_EBUSY' and 'shop.accounts' in refused['message'], refused
    pawl('project', 'resume', 'shop.accounts', '--url', url).expect(0)
    pawl('project', 'run', '--url', url).expect(0)
    before = pawl('project', 'status', 'shop.accounts', JSON, '--url', url).expect(0).json()['generation']
    pawl('project', 'rebuild', 'shop.accounts', '--wait', '--url', url).expect(0, 'caught up')
    assert pawl('project', 'status', 'shop.accounts', JSON, '--url', url).expect(0).json()['generation'] == before + 1
    pawl('project', 'run', '--timeout', 'x', '--url', url).expect(2)
    stop(server)


def a_lane_that_does_not_catch_up_is_given_up_after_the_timeout(folder):
    verb = shop(folder, 7)
    server, url = serve(folder)
    verb('command', '7', stdin=customer('Ada').encode()).expect(0)
    asked = {'command': 'shop.AskStatement', 'argument': {'id': 1, 'customer': ADA}}
    verb('command', '7', stdin=json.dumps(asked).encode()).expect(0)
    alone = pawl('project', 'run', '--url', url).expect(1)
    assert 'shop.statements' in alone.err, alone.err
    stop(server)
    assert verb('project', 'run').expect(1).err == alone.err


def views_are_paused_all_at_once(folder):
    verb = filled(folder)
    server, url = serve(folder)
    assert pawl('view', 'pause', '--url', url).expect(0).out == 'building views is paused\n'
    pawl('view', 'create', 'shop.late', '--base', 'shop.Invoice', '--key', 'number', '--no-wait', '--url', url).expect(0)
    assert pawl('view', 'status', 'shop.late', JSON, '--url', url).expect(0).json()['state'] == 'paused'
    assert pawl('view', 'resume', '--url', url, JSON).expect(0).json() == {'paused': False}
    verb('view', 'wait', 'shop.late').expect(0)
    stop(server)


def a_server_is_verified_as_a_directory_is(folder):
    verb = filled(folder)
    server, url = serve(folder)
    settle(verb)
    for words in (['verify'], ['verify', '--replay'], ['verify', '--audit'], ['audit'], ['audit', '--replay']):
        here, there = verb(*words).expect(0), pawl(*words, '--url', url).expect(0)
        assert timeless(here.out) == timeless(there.out) and here.err == there.err == '', (words, here.out, there.out, there.err)
        assert there.out.endswith(f'{folder} is sound\n'), there.out
        here, there = verb(*words, JSON).expect(0).json(), pawl(*words, JSON, '--url', url).expect(0).json()
        assert set(here) == set(there) and here['sound'] is there['sound'] is True and here['dir'] == there['dir'] == folder, there
        assert ('audit' in here) == ('audit' in there) == ('audit' in words[0] or '--audit' in words)
    verb('audit').expect(0, 'audit: the live stores agree with the log')
    pawl('verify', '--log', folder, '--url', url).expect(0, 'is sound')  # a log is read by the program itself
    stop(server)


def damage_has_the_same_words_and_code(folder):
    verb = filled(folder)
    server, url = serve(folder)
    settle(verb)
    path = glob.glob(f'{folder}/**/*.seg', recursive=True)[0]
    with open(path, 'rb') as file:
        at = file.read().index(b'Ada')
    flip(path, at)
    here, there = verb('verify').expect(3, 'CORRUPT:'), pawl('verify', '--url', url).expect(3, 'CORRUPT:')
    assert timeless(here.out) == timeless(there.out), (here.out, there.out)
    assert pawl('verify', JSON, '--url', url).expect(3).json()['sound'] is False
    server.kill()
    server.wait(PATIENCE)


def a_workspace_is_frozen_and_thawed(folder):
    verb = filled(folder)
    assert verb('ws', 'freeze', '8').expect(0).out == 'workspace 8 is frozen\n'
    server, url = serve(folder)
    for words, said in ((['7'], 'workspace 7 is frozen\n'), (['7'], 'workspace 7 is frozen\n'), (['7', JSON], '{"wsid":7,"frozen":true}\n')):
        assert pawl('ws', 'freeze', *words, '--url', url).expect(0).out == said
    shown = verb('ws', 'show', '7', JSON).expect(0).json()
    assert shown['frozen'] is True and shown['workspace_offset'] == 5, shown  # written once
    refused = pawl('command', '7', '--url', url, stdin=customer('x').encode()).expect(1).json()['error']
    assert refused['code'] == 'PAWL_EREADONLY' and 'workspace 7 is frozen' in refused['message'], refused
    pawl('ws', 'show', '7', '--url', url).expect(0, "frozen     it takes no commands until 'pawl ws freeze 7 --undo'")
    assert pawl('ws', 'list', '--url', url).expect(0).out.count('  frozen\n') == 2
    assert pawl('ws', 'freeze', '99', '--url', url, JSON).expect(1).error()['code'] == 'PAWL_ENOTFOUND'
    pawl('ws', 'freeze', 'x', '--url', url).expect(2)
    verb('project', 'run').expect(0)
    pawl('events', 'read', '--ws', '7', '--from', '5', '--url', url).expect(0, '"command":"sys.FreezeWorkspace"')
    stop(server)
    verb('verify', '--replay', '--audit').expect(0, 'is sound')
    verb('backup', '--to', folder + '.saved').expect(0)
    verb('command', '7', stdin=customer('x').encode()).expect(1, 'PAWL_EREADONLY')
    assert verb('ws', 'freeze', '7', '--undo').expect(0).out == 'workspace 7 takes commands\n'
    assert verb('command', '7', stdin=customer('x').encode()).expect(0).json()['workspace_offset'] == 7
    pawl('command', '7', '--dir', folder + '.saved', stdin=customer('x').encode()).expect(1, 'PAWL_EREADONLY')
    verb('replay', '--to', folder + '.derived').expect(0)
    assert pawl('ws', 'show', '8', JSON, '--dir', folder + '.derived').expect(0).json()['frozen'] is True


def a_server_makes_a_backup(folder):
    saved = folder + '.saved'
    os.mkdir(saved)
    verb = filled(folder)
    server, url = serve(folder, '--backups', saved)
    by_url = pawl('backup', '--to', 'monday', '--url', url).expect(0)
    here = verb('backup', '--to', saved + '/here').expect(0)
    assert timeless(by_url.out).split(':')[0] == timeless(here.out).split(':')[0] == 'saved in T', (by_url.out, here.out)
    done = pawl('backup', '--to', 'tuesday', JSON, '--url', url).expect(0).json()
    assert set(done) == {'to', 'events', 'log_bytes', 'seconds'} and done['to'] == saved + '/tuesday', done
    pawl('verify', '--dir', saved + '/monday').expect(0)
    pawl('backup', '--to', 'monday', '--url', url).expect(1, 'there is a backup monday already')
    pawl('backup', '--to', '../x', '--url', url).expect(2, 'without a slash')
    pawl('backup', '--to', '.x', '--url', url).expect(1, 'expected 1 to 100 letters')
    pawl('backup', '--url', url).expect(2, 'Say --to NEWDIR')
    assert sorted(os.listdir(saved)) == ['here', 'monday', 'tuesday']
    stop(server)
    server, url = serve(folder)
    pawl('backup', '--to', 'x', '--url', url).expect(1, 'no directory for backups is configured')
    stop(server)


class Endless(http.server.BaseHTTPRequestHandler):
    """A server whose job never ends by itself."""
    asked = []

    def answer(self, status, tree):
        body = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers['Content-Length']))
        self.asked.append(f'POST {self.path}')
        self.answer(202, {'job': 3, 'kind': 'verify', 'state': 'waiting'})

    def do_GET(self):  # pylint: disable=invalid-name
        self.answer(200, {'job': 3, 'kind': 'verify', 'state': 'running', 'progress': 'verifying: 1.0 MB of 2.0 MB, 1.0 MB/s'})

    def do_DELETE(self):  # pylint: disable=invalid-name
        self.asked.append(f'DELETE {self.path}')
        self.answer(202, {'job': 3, 'kind': 'verify', 'state': 'cancelled'})

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def a_job_shows_its_progress_and_is_cancelled_with_its_verb(folder):
    del folder
    for number, words in ((signal.SIGINT, ['verify']), (signal.SIGTERM, ['backup', '--to', 'x'])):
        Endless.asked = []
        with http.server.HTTPServer(('127.0.0.1', 0), Endless) as fake:
            thread = threading.Thread(target=fake.serve_forever)
            thread.start()
            verb = start(*words, '--url', f'http://127.0.0.1:{fake.server_port}')
            assert verb.stderr.readline() == b'verifying: 1.0 MB of 2.0 MB, 1.0 MB/s\n'
            verb.send_signal(number)
            out, err = verb.communicate(timeout=PATIENCE)
            fake.shutdown()
            thread.join()
        assert (verb.returncode, out, err) == (128 + number, b'', b''), (verb.returncode, out, err)
        assert Endless.asked == [f'POST /v1/{words[0]}', 'DELETE /v1/jobs/3'], Endless.asked


def tokens_are_managed_by_url_and_beside_a_server(folder):
    verb = shop(folder, 7)
    server, url = serve(folder, '--tokens', stderr=open(folder + '.log', 'wb'))
    root = verb('token', 'create', 'root', '--scope', 'admin,read').expect(0, 'is good for read,admin in all workspaces')  # by the socket
    secret = root.out.strip()

    def far(*words, token=secret):
        return pawl(*words, '--url', url, env={'PAWL_TOKEN': token, 'PAWL_DIR': ''})
    made = far('token', 'create', 'till', '--scope', 'read', '--ws', '7', '--expires', '30d').expect(0)
    assert re.fullmatch(r'pawl_[A-Za-z0-9_-]{43}\n', made.out), made.out
    assert re.fullmatch(r'token till \([0-9a-f]{16}\) is good for read in 1 workspace, until [-0-9T:]+Z\. Its secret is shown only now\.\n', made.err), made.err
    till = made.out.strip()
    far('ws', 'show', '7', token=till).expect(0)
    far('ws', 'list', token=till).expect(1)
    whole = far('token', 'create', 'more', '--scope', 'write', JSON).expect(0).json()
    assert list(whole) == ['name', 'id', 'scopes', 'wsids', 'created', 'expires', 'secret'] and whole['expires'] is None, whole
    for form in ([], [JSON]):
        assert far('token', 'list', *form).expect(0).out == verb('token', 'list', *form).expect(0).out
    far('token', 'create', 'till', '--scope', 'read').expect(1, 'there is a token till already')
    far('token', 'create', 'a/b', '--scope', 'read').expect(2)
    far('token', 'list', token=till).expect(1)
    far('token', 'revoke', 'till').expect(0, 'token till is revoked')
    far('ws', 'show', '7', token=till).expect(1, 'there is no such token')
    assert far('token', 'revoke', 'till', JSON).expect(1).error()['code'] == 'PAWL_ENOTFOUND'
    verb('token', 'revoke', 'more').expect(0)
    there = far('token', 'list', JSON).expect(0).out
    stop(server)
    assert verb('token', 'list', JSON).expect(0).out == there
    with open(folder + '.log', encoding='utf-8') as log:
        said = log.read()
    assert secret not in said and till not in said and whole['secret'] not in said


if __name__ == '__main__':
    main([lanes_of_a_server_are_waited_for, a_lane_that_does_not_catch_up_is_given_up_after_the_timeout, views_are_paused_all_at_once,
          a_server_is_verified_as_a_directory_is, damage_has_the_same_words_and_code, a_server_makes_a_backup, a_workspace_is_frozen_and_thawed,
          a_job_shows_its_progress_and_is_cancelled_with_its_verb, tokens_are_managed_by_url_and_beside_a_server])
