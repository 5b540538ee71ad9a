"""Access tokens over HTTP: what a token opens, and what it does not."""
import os

import server
from server import JSON, Server, certificate, customer, pawl, shop


def served(folder, *tokens):
    """A shop with workspaces 7 and 8, the secrets of its tokens, and a server that wants them."""
    data = os.path.join(folder, 'data')
    verb = shop(data, 7, 8)
    secrets = [verb('token', 'create', f't{i}', *words).expect(0).out.strip() for i, words in enumerate(tokens)]
    return Server(data, '--tokens'), secrets


def bearer(secret, **more):
    return {'Authorization': f'Bearer {secret}', **more}


def a_token_opens_what_its_scopes_say(folder):
    s, (reads, writes) = served(folder, ('--scope', 'read'), ('--scope', 'write,admin'))
    s.get('/v1/ws/7', headers=bearer(reads)).expect(200)
    s.get('/v1/schema', headers=bearer(reads)).expect(200)
    s.get('/v1/ws/7', headers=bearer(writes)).expect(403)
    s.post('/v1/ws/7/commands', customer('A'), headers=bearer(writes, **JSON)).expect(200)
    error = s.post('/v1/ws/7/commands', customer('B'), headers=bearer(reads, **JSON)).expect(403).error()
    assert error['code'] == 'PAWL_EACCES' and error['where'] == '$header.Authorization', error
    assert s.get('/v1/ws/7', headers=bearer(reads)).json()['workspace_offset'] == 2  # nothing was written
    for wrong in (reads[:-1], reads + 'x', reads[:-1] + ('A' if reads[-1] != 'A' else 'B'), 'pawl_', ''):
        s.get('/v1/ws/7', headers=bearer(wrong)).expect(401)
    s.stop()
    assert reads not in s.said() and writes not in s.said()


def a_token_of_a_workspace_opens_that_one_alone(folder):
    s, (bound,) = served(folder, ('--scope', 'read,write,project,admin', '--ws', '7'))
    s.get('/v1/ws/7', headers=bearer(bound)).expect(200)
    s.post('/v1/ws/7/commands', customer('A'), headers=bearer(bound, **JSON)).expect(200)
    s.get('/v1/ws/8', headers=bearer(bound)).expect(403, 'other workspaces')
    s.post('/v1/ws/8/commands', customer('A'), headers=bearer(bound, **JSON)).expect(403)
    for path in ('/v1/ws', '/v1/events', '/v1/figures', '/v1/schema', '/v1/system/nodes', '/metrics'):
        s.get(path, headers=bearer(bound)).expect(403)
    s.get('/health/live', headers=bearer(bound)).expect(200)
    s.stop()


def freezing_is_for_admins_of_the_workspace(folder):
    s, (admin, bound, writes) = served(folder, ('--scope', 'admin'), ('--scope', 'admin', '--ws', '7'), ('--scope', 'read,write'))
    s.post('/v1/ws/7/freeze', headers=bearer(writes, **JSON)).expect(403)
    s.post('/v1/ws/8/freeze', headers=bearer(bound, **JSON)).expect(403)
    assert s.post('/v1/ws/7/freeze', headers=bearer(bound, **JSON)).expect(200).json() == {'wsid': 7, 'frozen': True}
    first = s.post('/v1/ws/8/freeze', '{}', headers=bearer(admin, **JSON)).expect(200)
    assert int(first.headers['Pawl-Offset']) > 0
    assert 'Pawl-Offset' not in s.post('/v1/ws/8/freeze', headers=bearer(admin, **JSON)).expect(200).headers
    error = s.post('/v1/ws/7/commands', customer('A'), headers=bearer(writes, **JSON)).expect(403).error()
    assert error['code'] == 'PAWL_EREADONLY', error
    assert s.get('/v1/ws/7', headers=bearer(writes)).expect(200).json()['frozen'] is True
    s.post('/v1/ws/7/thaw', headers=bearer(bound, **JSON)).expect(200)
    s.post('/v1/ws/7/commands', customer('A'), headers=bearer(writes, **JSON)).expect(200)
    for path, status in (('/v1/ws/99/freeze', 404), ('/v1/ws/0/freeze', 400), ('/v1/ws/x/thaw', 400)):
        s.post(path, headers=bearer(admin, **JSON)).expect(status).error()
    s.post('/v1/ws/7/freeze', {'x': 1}, headers=bearer(admin, **JSON)).expect(400).error()
    s.stop()


def a_revoked_token_opens_nothing(folder):
    s, (first, second) = served(folder, ('--scope', 'read'), ('--scope', 'read'))
    s.get('/v1/ws/7', headers=bearer(first)).expect(200)
    s.stop()
    pawl('token', 'revoke', 't0', '--dir', s.folder).expect(0)
    s = Server(s.folder, '--tokens')
    s.get('/v1/ws/7', headers=bearer(first)).expect(401)
    s.get('/v1/ws/7', headers=bearer(second)).expect(200)
    s.stop()


def a_token_that_is_sent_counts_where_none_is_needed(folder):
    s, (reads,) = served(folder, ('--scope', 'read'))
    s.stop()
    s = Server(s.folder)
    s.post('/v1/ws/7/commands', customer('A')).expect(200)
    s.get('/v1/ws/7', headers=bearer(reads)).expect(200)
    s.post('/v1/ws/7/commands', customer('A'), headers=bearer(reads, **JSON)).expect(403)
    s.get('/v1/ws/7', headers=bearer('pawl_' + 'x' * 43)).expect(401)
    s.stop()


def tokens_are_made_listed_and_revoked(folder):
    s, (root,) = served(folder, ('--scope', 'admin'))
    admin = bearer(root, **JSON)
    made = s.post('/v1/tokens', {'name': 'till', 'scopes': ['read'], 'wsids': [8, 7, 8], 'expires_in': '12h'}, headers=admin).expect(201)
    assert made.headers['Cache-Control'] == 'no-store'
    till = made.json()
    assert till['scopes'] == ['read'] and till['wsids'] == [7, 8] and till['expired'] is False and till['expires'] > till['created'], till
    s.get('/v1/ws/7', headers=bearer(till['secret'])).expect(200)
    listed = s.get('/v1/tokens', headers=bearer(root)).expect(200)
    assert [t['name'] for t in listed.lines()] == ['t0', 'till'] and b'secret' not in listed.body and b'pawl_' not in listed.body
    assert listed.lines()[1] == {name: till[name] for name in till if name != 'secret'}
    assert s.post('/v1/tokens', {'name': 'till', 'scopes': ['read']}, headers=admin).expect(409).error()['code'] == 'PAWL_EEXISTS'
    assert s.ask('DELETE', '/v1/tokens/till', headers=bearer(root)).expect(200).json() == {'name': 'till', 'revoked': True}
    s.get('/v1/ws/7', headers=bearer(till['secret'])).expect(401)
    s.ask('DELETE', '/v1/tokens/till', headers=bearer(root)).expect(404)
    for body, where in (({}, '$.name'), ({'name': 'a'}, '$.scopes'), ({'name': 'a', 'scopes': []}, None), ({'name': 'a', 'scopes': 'read'}, '$.scopes'),
                        ({'name': 'a', 'scopes': ['read,write']}, '$.scopes'), ({'name': 'a', 'scopes': ['root']}, '$.scopes'),
                        ({'name': '', 'scopes': ['read']}, None), ({'name': 'a/b', 'scopes': ['read']}, None), ({'name': 'x' * 65, 'scopes': ['read']}, None),
                        ({'name': 'a', 'scopes': ['read'], 'wsids': [0]}, '$.wsids'), ({'name': 'a', 'scopes': ['read'], 'wsids': [1] * 65}, '$.wsids'),
                        ({'name': 'a', 'scopes': ['read'], 'wsids': 7}, '$.wsids'), ({'name': 'a', 'scopes': ['read'], 'expires_in': 0}, '$.expires_in'),
                        ({'name': 'a', 'scopes': ['read'], 'expires_in': -1}, '$.expires_in'), ({'name': 'a', 'scopes': ['read'], 'expires_in': '9999999d'}, '$.expires_in'),
                        ({'name': 'a', 'scopes': ['read'], 'more': 1}, None), ([], None)):
        error = s.post('/v1/tokens', body, headers=admin).expect(400).error()
        assert where is None or error['where'] == where, (body, error)
    assert len(s.get('/v1/tokens', headers=bearer(root)).lines()) == 1
    s.stop()
    assert till['secret'] not in s.said() and root not in s.said()
    s = Server(s.folder, '--tokens')  # what was done lasts
    assert [t['name'] for t in s.get('/v1/tokens', headers=bearer(root)).expect(200).lines()] == ['t0']
    s.stop()


def only_an_unbound_admin_or_the_socket_manages_tokens(folder):
    s, (all_but, bound) = served(folder, ('--scope', 'read,write,project'), ('--scope', 'admin', '--ws', '7'))
    wish = {'name': 'a', 'scopes': ['admin']}
    for secret in (all_but, bound):
        s.get('/v1/tokens', headers=bearer(secret)).expect(403)
        s.post('/v1/tokens', wish, headers=bearer(secret, **JSON)).expect(403)
        s.ask('DELETE', '/v1/tokens/t0', headers=bearer(secret)).expect(403)
    s.get('/v1/tokens').expect(401)
    s.stop()
    s = Server(s.folder)  # asks for no token, but for these
    assert s.get('/v1/tokens').expect(403).error()['code'] == 'PAWL_EACCES'
    s.post('/v1/tokens', wish).expect(403, 'Unix socket')
    s.ask('DELETE', '/v1/tokens/t0').expect(403)
    made = s.over_unix('POST', '/v1/tokens', '{"name":"a","scopes":["admin"]}').expect(201).json()
    assert [t['name'] for t in s.get('/v1/tokens', headers=bearer(made['secret'])).expect(200).lines()] == ['a', 't0', 't1']
    s.over_unix('DELETE', '/v1/tokens/a').expect(200)
    s.get('/v1/tokens', headers=bearer(made['secret'])).expect(401)
    s.stop()
    assert made['secret'] not in s.said()


def beyond_this_machine_tls_is_not_enough(folder):
    data = os.path.join(folder, 'data')
    cert, key = certificate(folder)
    verb = shop(data, 7)
    far = ('serve', '--dir', data, '--listen', '0.0.0.0:0', '--tls-cert', cert, '--tls-key', key)
    pawl(*far).expect(1, 'it needs a token')
    verb('token', 'create', 'one', '--scope', 'read').expect(0)
    s = Server(data, '--listen', '0.0.0.0:0', '--tls-cert', cert, '--tls-key', key)
    assert 'https://0.0.0.0:' in s.ready, s.ready
    s.stop()


if __name__ == '__main__':
    server.main([a_token_opens_what_its_scopes_say, a_token_of_a_workspace_opens_that_one_alone,
                 freezing_is_for_admins_of_the_workspace, a_revoked_token_opens_nothing,
                 a_token_that_is_sent_counts_where_none_is_needed, tokens_are_made_listed_and_revoked,
                 only_an_unbound_admin_or_the_socket_manages_tokens, beyond_this_machine_tls_is_not_enough])
