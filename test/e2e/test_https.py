"""The program with a server behind TLS: what it trusts, and how it says what it does not trust."""
import json
import os
import subprocess

from shell import PATIENCE, customer, end, main, pawl, serve, shop, start

JSON = '--json'


def certificate(folder, name, days=2, issuer=None):
    """A certificate for localhost and its key, signed by itself or by another: (certificate, key)."""
    key, request, cert, extra = (f'{folder}/{name}.{end_}' for end_ in ('key', 'csr', 'pem', 'ext'))
    with open(extra, 'w', encoding='utf-8') as file:
        file.write('subjectAltName=DNS:localhost\n' if name != 'ca' else 'basicConstraints=critical,CA:TRUE\n')
    signer = ['-signkey', key] if not issuer else ['-CA', issuer[0], '-CAkey', issuer[1], '-CAcreateserial']
    for words in (['req', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', request, '-subj', f'/CN={name}'],
                  ['x509', '-req', '-in', request, *signer, '-days', str(days), '-out', cert, '-extfile', extra]):
        subprocess.run(['openssl', *words], check=True, capture_output=True)
    return cert, key


def served(folder, cert, key):
    """A shop behind TLS, at localhost, and a function that runs a verb on it with this file of certificates to trust."""
    data = folder + '/data'
    if not os.path.exists(data):
        shop(data, 7)
    server, url = serve(data, '--tls-cert', cert, '--tls-key', key)
    url = url.replace('127.0.0.1', 'localhost')
    assert url.startswith('https://'), url

    def far(*words, ca=cert, at=url, **how):
        return pawl(*words, '--url', at, env={'PAWL_CA': ca, 'PAWL_DIR': '', 'PAWL_TOKEN': ''}, **how)
    far.url = url
    return server, far


def stop(server):
    server.terminate()
    server.stdout.read()
    assert server.wait(PATIENCE) == 0


def refused(answer, *words):
    """A failure, exit code 1, with one clear sentence on stderr and nothing on stdout."""
    assert answer.code == 1 and answer.out == '', (answer.code, answer.out, answer.err)
    failure = answer.error()
    assert failure['code'] == 'PAWL_EIO' and all(word in failure['message'] for word in words), failure


def the_right_authority_is_trusted(folder):
    ca = certificate(folder, 'ca')
    cert, key = certificate(folder, 'server', issuer=ca)
    for trusted, mine in ((ca[0], (cert, key)), (None, certificate(folder, 'self'))):
        server, far = served(folder, *mine)
        trusted = trusted or mine[0]
        assert far('ws', 'list', JSON, ca=trusted).expect(0).json()['wsid'] == 7
        before = far('ws', 'show', '7', JSON, ca=trusted).expect(0).json()['workspace_offset']
        answers = far('command', '7', ca=trusted, stdin=(customer('a') * 300).encode()).expect(0).lines()
        assert [a['workspace_offset'] for a in answers] == list(range(before + 1, before + 301))
        follower = start('events', 'follow', '--ws', '7', '--limit', '2', '--url', far.url, env={**os.environ, 'PAWL_CA': trusted})
        assert json.loads(follower.stdout.readline())['workspace_offset'] == 1
        end(follower, 0)
        far('project', 'run', ca=trusted).expect(0)
        far('verify', ca=trusted).expect(0, 'is sound')
        stop(server)


def a_wrong_authority_is_not_trusted(folder):
    cert, key = certificate(folder, 'server')
    other, _ = certificate(folder, 'other')
    server, far = served(folder, cert, key)
    for ca in (other, ''):  # '': what the system trusts
        refused(far('ws', 'list', JSON, ca=ca), f'cannot trust {far.url}', 'signed by nobody who is trusted', 'PAWL_CA')
    answers = far('command', '7', ca=other, stdin=(customer('a') * 2).encode()).expect(1).lines()
    assert [a['error']['code'] for a in answers] == ['PAWL_EIO'] * 2, answers  # nothing was sent, and this is known
    far('events', 'follow', '--ws', '7', ca=other).expect(1, 'cannot trust')
    text = far('ws', 'list', ca=other).expect(1)
    assert text.err.startswith(f'pawl: cannot trust {far.url}: ') and text.err.count('\n') == 1, text.err
    assert far('ws', 'show', '7', JSON).expect(0).json()['workspace_offset'] == 1
    stop(server)


def a_wrong_host_name_is_not_trusted(folder):
    server, far = served(folder, *certificate(folder, 'server'))
    by_address = far.url.replace('localhost', '127.0.0.1')
    refused(far('ws', 'list', JSON, at=by_address), f'cannot trust {by_address}', 'is for another name')
    stop(server)


def an_expired_certificate_is_not_trusted(folder):
    server, far = served(folder, *certificate(folder, 'server', days=-1))
    refused(far('ws', 'list', JSON), f'cannot trust {far.url}', 'its certificate has expired')
    stop(server)


def a_file_of_certificates_that_is_none_is_named(folder):
    cert, key = certificate(folder, 'server')
    server, far = served(folder, cert, key)
    missing = folder + '/none.pem'
    refused(far('ws', 'list', JSON, ca=missing), 'cannot read the certificates to trust in ' + missing, 'PAWL_CA')
    refused(far('ws', 'list', JSON, ca=key), 'cannot')  # a file without a certificate trusts nobody
    stop(server)


def http_and_https_are_told_apart(folder):
    server, far = served(folder, *certificate(folder, 'server'))
    plain = far.url.replace('https:', 'http:')
    refused(far('ws', 'list', JSON, at=plain), plain, 'say https://')
    stop(server)
    server, url = serve(folder + '/data')
    secure = url.replace('http:', 'https:')
    refused(far('ws', 'list', JSON, at=secure), f'cannot reach {secure}', 'say http://')
    stop(server)


if __name__ == '__main__':
    main([the_right_authority_is_trusted, a_wrong_authority_is_not_trusted, a_wrong_host_name_is_not_trusted,
          an_expired_certificate_is_not_trusted, a_file_of_certificates_that_is_none_is_named, http_and_https_are_told_apart])
