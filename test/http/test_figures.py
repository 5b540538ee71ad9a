#!/usr/bin/env python3
"""Figures, alerts and metrics: that they are there, that they move, and that Prometheus and Grafana can use them."""
import json
import os
import re
import shutil
import subprocess

import server
from server import customer, serve_shop, wait_until
from streams import Stream

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMTOOL = shutil.which('promtool')
RULES = f'{ROOT}/docs/prometheus/pawl.rules.yml'
GRAFANA = f'{ROOT}/docs/grafana/pawl.json'


def figures_show_what_happens(folder):
    s = serve_shop(folder, wsids=(7, 8))
    before = s.get('/v1/figures').expect(200).json()
    assert s.get('/v1/alerts').expect(200).body == b''
    assert before['commands']['ok'] == 0 and before['alerts'] == [], before
    assert before['node']['directory'] == f'{folder}/data' and before['node']['memory_bytes'] > 1 << 20
    for name in ('Ada', 'Bea', 'Cleo'):
        s.post('/v1/ws/7/commands', customer(name, idempotency_key=name)).expect(200)
    s.post('/v1/ws/7/commands', customer('Ada', idempotency_key='Ada')).expect(200)
    s.post('/v1/ws/99/commands', customer('Ada')).expect(404)
    wait_until(lambda: s.get('/v1/figures').json()['commands']['rate_10s'] == 0.5)  # five in ten seconds
    after = s.get('/v1/figures').json()
    commands = after['commands']
    assert (commands['ok'], commands['repeated'], commands['failed']) == (3, 1, {'PAWL_ENOTFOUND': 1}), commands
    times = commands['latency_10s']
    assert times['count'] == 5 and 0 < times['p50'] <= times['p99'] < 60 and times['mean'] > 0, times
    assert after['log']['sync_10s']['count'] > 0 and after['log']['batch_mean_10s'] >= 1
    assert after['log']['kind'] == 'files' and 'kafka' not in after['log'], after['log']
    assert all(lane['run_ahead'] > 0 and lane['repeated_time'] == 0 for lane in after['lanes']), after['lanes']
    assert sum(p['offset'] for p in after['partitions']) == 5 and len(after['partitions']) == 4
    assert [p['shard'] for p in after['partitions']] == [0, 1, 0, 1]
    assert {lane['lane'] for lane in after['lanes']} == {'shop.accounts', 'shop.statements'}
    assert all(after['stores'][name] > 0 for name in ('log', 'live', 'checkpoint')), after['stores']
    wait_until(lambda: all(v['state'] == 'built' for v in s.get('/v1/figures').json()['views']))
    view = s.get('/v1/figures').json()['views'][0]
    assert view['percent'] == 100 and view['tablets'] == [1, 1, 1, 1], view
    s.stop()


def figures_come_once_a_second_to_all_who_follow(folder):
    s = serve_shop(folder)
    streams = [Stream(s, '/v1/figures?limit=3') for _ in range(20)]
    got = [[json.loads(stream.block()['data']) for _ in range(3)] for stream in streams]
    assert all(stream.block() is None for stream in streams)
    times = [figures['time'] for figures in got[0]]
    assert times == sorted(set(times)), times
    made = {figures['time'] for own in got for figures in own}
    assert len(made) < 10, made  # made once for all, not once for each
    s.get('/v1/figures?limit=0', headers={'Accept': 'text/event-stream'}).expect(400)
    s.stop()


def metrics_text(folder):
    s = serve_shop(folder)
    s.post('/v1/ws/7/commands', customer('Ada')).expect(200)
    answer = s.get('/metrics').expect(200)
    assert answer.headers['Content-Type'] == 'text/plain; version=0.0.4; charset=utf-8'
    s.stop()
    return answer.body.decode()


def names_of(text):
    return set(re.findall(r'^([a-z0-9_]+)(?:\{| )', text, re.M))


def promtool_accepts_the_metrics(folder):
    text = metrics_text(folder)
    done = subprocess.run([PROMTOOL, 'check', 'metrics'], input=text.encode(), capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert 'wsid' not in text and 'workspace=' not in text  # never a label per workspace
    for name in ('pawl_commands_total', 'pawl_command_seconds_bucket', 'pawl_log_sync_seconds_bucket', 'pawl_log_batch_events_bucket',
                 'pawl_partition_offset', 'pawl_sequencer_status', 'pawl_sequencer_unflushed', 'pawl_recovery_seconds',
                 'pawl_lease_active', 'pawl_lease_run_ahead', 'pawl_lease_repeated_seconds_total', 'pawl_log_info', 'pawl_log_ack_seconds_bucket',
                 'pawl_log_unknown_entries', 'pawl_log_claims_held', 'pawl_log_silence_seconds', 'pawl_log_weak_topics', 'pawl_mirror_off', 'pawl_mirror_unwritten_entries',
                 'pawl_view_build_tasks', 'pawl_view_build_rows_total', 'pawl_store_bytes',
                 'pawl_mailbox_depth', 'pawl_alerts', 'pawl_http_followers'):
        assert name in names_of(text), name
    assert re.search(r'^pawl_commands_total\{result="ok"\} 1$', text, re.M)
    assert re.search(r'^pawl_command_seconds_count 1$', text, re.M)
    buckets = [int(n) for n in re.findall(r'^pawl_command_seconds_bucket\{le="[^"]*"\} (\d+)$', text, re.M)]
    assert buckets == sorted(buckets) and buckets[-1] == 1


def promtool_accepts_the_rules_and_each_has_its_page(folder):
    done = subprocess.run([PROMTOOL, 'check', 'rules', RULES], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    rules = open(RULES, encoding='utf-8').read()
    pages = open(f'{ROOT}/docs/OPERATIONS.md', encoding='utf-8').read()
    alerts = re.findall(r'- alert: (\w+)', rules)
    urls = re.findall(r'runbook_url: \S*OPERATIONS\.md#(\S+)', rules)
    assert len(alerts) == len(set(alerts)) == len(urls) > 5, (alerts, urls)
    anchors = {re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in re.findall(r'^#+ (.*)$', pages, re.M)}
    for alert, anchor in zip(alerts, urls):
        assert anchor in anchors, (alert, anchor)
        assert f'`{alert}`' in pages, alert
    assert folder


def every_metric_that_is_named_exists(folder):
    there = names_of(metrics_text(folder))
    for path in (RULES, GRAFANA):
        named = set(re.findall(r'\bpawl_[a-z0-9_]+\b', open(path, encoding='utf-8').read()))
        assert named and named <= there, (path, named - there)
    board = json.load(open(GRAFANA, encoding='utf-8'))
    ids = [panel['id'] for panel in board['panels']]
    assert len(ids) == len(set(ids)) and all(panel.get('targets') or panel['type'] == 'row' for panel in board['panels'])


if __name__ == '__main__':
    assert PROMTOOL, 'promtool is needed: tools/install test'
    server.main([figures_show_what_happens,
                 figures_come_once_a_second_to_all_who_follow,
                 promtool_accepts_the_metrics,
                 promtool_accepts_the_rules_and_each_has_its_page,
                 every_metric_that_is_named_exists])
