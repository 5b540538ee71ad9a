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
                 a_revoked_token_opens_nothing, a_token_that_is_sent_counts_where_none_is_needed,
                 beyond_this_machine_tls_is_not_enough])
