#!/usr/bin/env python3
"""The page's files, as a browser gets them: whole, with a strict policy, and not again if they have not changed."""
import os
import re

from server import main, serve_shop
from tap import ROOT

BUILT = os.path.join(ROOT, 'src', 'http', 'assets')


def built(name):
    with open(os.path.join(BUILT, name), 'rb') as file:
        return file.read()


def the_page_and_all_its_files_are_served_as_they_were_built(folder):
    s = serve_shop(folder)
    assert s.get('/').expect(200).body == built('index.html')
    types = {'.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8',
             '.js': 'text/javascript; charset=utf-8', '.svg': 'image/svg+xml'}
    for name in os.listdir(BUILT):
        answer = s.get(f'/assets/{name}').expect(200)
        assert answer.body == built(name), f'{name}: is it in src/http/meson.build?'
        assert answer.headers['Content-Type'] == types[os.path.splitext(name)[1]], name
    s.stop()


def whatever_a_file_names_is_there(folder):
    s = serve_shop(folder)
    named = set(re.findall(r'(?:src|href)="(assets/[^"]+)"', built('index.html').decode()))
    for name in os.listdir(BUILT):
        if name.endswith('.js') and name != 'uplot.js':
            named |= {f'assets/{other}' for other in re.findall(r"from '\./([^']+)'", built(name).decode())}
    assert len(named) > 10, named
    for path in named:
        s.get(f'/{path}').expect(200)
    s.stop()


def a_file_that_has_not_changed_is_not_sent_again(folder):
    s = serve_shop(folder)
    first = s.get('/assets/app.js').expect(200)
    tag = first.headers['ETag']
    assert re.fullmatch(r'"[0-9a-f]{20}"', tag) and first.headers['Cache-Control'] == 'no-cache', first.headers
    for known in (tag, f'W/{tag}', f'"other", {tag}', '*'):
        again = s.get('/assets/app.js', headers={'If-None-Match': known})
        assert again.status == 304 and again.body == b'' and again.headers['ETag'] == tag, known
    assert s.get('/assets/app.js', headers={'If-None-Match': '"other"'}).expect(200).body == first.body
    assert s.get('/assets/app.css').headers['ETag'] != tag
    head = s.ask('HEAD', '/').expect(200)
    assert head.body == b'' and head.headers['Content-Length'] == str(len(built('index.html')))
    s.stop()


def a_strict_policy_holds_for_the_page(folder):
    s = serve_shop(folder)
    for path in ('/', '/assets/app.js', '/assets/icon.svg'):
        answer = s.get(path).expect(200)
        policy = answer.headers['Content-Security-Policy']
        assert policy.startswith("default-src 'none'") and 'unsafe' not in policy and '*' not in policy, policy
        assert "frame-ancestors 'none'" in policy and "connect-src 'self'" in policy, policy
        assert answer.headers['X-Content-Type-Options'] == 'nosniff'
    page = built('index.html').decode()
    assert not re.search(r'<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)', page), 'something is inline'
    for name in os.listdir(BUILT):
        text = re.sub(r'/\*.*?\*/', '', built(name).decode(), flags=re.S).replace('http://www.w3.org/2000/svg', '')
        assert not re.search(r'https?://', text), f'{name} names another host'
    s.stop()


def what_is_not_there_is_404_and_the_page_needs_no_token(folder):
    s = serve_shop(folder, '--tokens')
    s.get('/').expect(200)
    s.get('/assets/app.js').expect(200)
    assert s.get('/assets/nothing.js').expect(404).error()['where'] == '$path.file'
    s.get('/assets').expect(404)
    s.get('/assets/..%2fapp.js').expect(400)
    s.post('/').expect(405)
    s.get('/v1/figures').expect(401)
    s.stop()


main([the_page_and_all_its_files_are_served_as_they_were_built, whatever_a_file_names_is_there,
      a_file_that_has_not_changed_is_not_sent_again, a_strict_policy_holds_for_the_page,
      what_is_not_there_is_404_and_the_page_needs_no_token])
