"""What an operator of a node on Kafka sees: which log it is, how fast, who owns it, and what is wrong, until it is over."""
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

from brokers import HERE, main, run

sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'http'))
from json_schema import check as fits  # noqa: E402  pylint: disable=wrong-import-position

PAWL, CLIENT, ADDRESS = os.environ['PAWL'], os.environ['KAFKA_CLIENT'], os.environ['PAWL_KAFKA']
CLUSTER, FOLDER = os.environ['PAWL_KAFKA_CLUSTER'], os.environ['PAWL_KAFKA_DIR']
OPENAPI = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'docs', 'openapi.json')
PATIENCE = 300  # seconds; a machine that others keep busy is slow, not broken
SCHEMA = {'schema': 1, 'package': 't', 'workspaces': {'tenant': {}},
          'types': {'Item': {'kind': 'CDoc', 'fields': {'who': {'type': 'string'}}}},
          'commands': {'Add': {'records': ['Item']}}}
COMMAND = json.dumps({'command': 't.Add', 'records': [{'id': 1, 'type': 't.Item', 'fields': {'who': 'ada'}}]})


def wait_until(condition, what):
    """What it is once it holds."""
    until = time.monotonic() + PATIENCE
    while not (holds := condition()):
        assert time.monotonic() < until, what
        time.sleep(0.1)
    return holds


class Served:
    """A node on a cluster of its own, served over HTTP, with a workspace."""

    def __init__(self, folder, name, options=''):
        self.dir, self.cluster = os.path.join(folder, name), name
        url = f'kafka://{ADDRESS}/{name}{options}'
        run(PAWL, 'cluster', 'init', '--log', url, '--partitions', '2')
        self.process, self.url = None, None
        wait_until(lambda: self.serves(url), 'brokers do not know the topics')
        schema = os.path.join(folder, 'schema.json')
        with open(schema, 'w', encoding='ascii') as file:
            json.dump(SCHEMA, file)
        self.pawl('schema', 'apply', schema)
        self.pawl('ws', 'create', '7', 't.tenant')

    def serves(self, url):
        """False: a broker has not heard yet of the topics that were just made."""
        self.process = subprocess.Popen([PAWL, 'serve', '--dir', self.dir, '--log', url, '--listen', '127.0.0.1:0'],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = re.search(r'http://[0-9.]+:\d+', self.process.stdout.readline())
        if found:
            self.url = found[0]
            return True
        complaint = self.process.communicate(timeout=PATIENCE)[1]
        assert 'there is no topic' in complaint, f'exit code {self.process.returncode}: {complaint}'
        return False

    def pawl(self, *words, **how):
        return run(PAWL, *words, '--dir', self.dir, **how)

    def get(self, path):
        assert self.process.poll() is None, f'it ended: {self.process.communicate()}'
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def figures(self):
        return json.loads(self.get('/v1/figures'))

    def kafka(self):
        return self.figures()['log']['kafka']

    def alerts(self):
        return {alert['alert']: alert for alert in map(json.loads, self.get('/v1/alerts').splitlines())}

    def add_many(self, count):
        """As many commands, in one request."""
        body = (COMMAND + '\n').encode() * count
        request = urllib.request.Request(self.url + '/v1/ws/7/commands', body, {'Content-Type': 'application/x-ndjson'})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def add(self, check=True):
        """A command; False: it was not acknowledged."""
        done = subprocess.run([PAWL, 'command', '7', '--dir', self.dir], input=COMMAND, text=True, capture_output=True,
                              check=False, timeout=PATIENCE)
        assert done.returncode == 0 or not check, done
        return done.returncode == 0 and '"error"' not in done.stdout

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)


def figures_metrics_status_and_top_name_the_log_and_who_owns_it(folder):
    with Served(folder, 'seen', '?timeout-ms=120000') as s:  # brokers that are busy for some seconds are no outage
        def measured():
            """The figures, if 20 acknowledgements are in the last ten seconds; other 20 are on their way if they are not."""
            s.add_many(20)
            log = s.figures()['log']
            return log if log['kafka']['ack_10s']['count'] >= 20 else None

        wait_until(lambda: s.add(check=False), 'no command is acknowledged')
        log = wait_until(measured, 'nothing was measured')
        kafka = log['kafka']
        assert log['kind'] == 'kafka' and log['sync_10s']['count'] == 0
        assert (kafka['cluster'], kafka['brokers'], kafka['replication'], kafka['broker_sync']) == ('seen', ADDRESS, 3, True)
        assert 0 < kafka['ack_10s']['p50'] <= kafka['ack_10s']['p99'] < 60 and kafka['acks_10s'] >= 2, kafka
        assert kafka['acknowledged'] > 20 and kafka['unknown'] == kafka['unknown_total'] == kafka['outages'] == 0, kafka
        assert kafka['silence'] < 60 and kafka['weak_topics'] == 0, kafka
        mirror = kafka['mirror']
        assert mirror['bytes_max'] == 256 << 20 and mirror['unwritten'] >= 20 and not mirror['off'], mirror
        claims = {topic['topic']: topic for topic in kafka['claims']['topics']}
        assert set(claims) == {'group0', 'plog'} and claims['plog']['streams'] == claims['plog']['held'] == 2, claims
        assert kafka['claims']['held'] == 3 and kafka['claims']['won'] >= 3 and kafka['assignment'] > 0
        for topic in claims.values():
            assert topic['node'] == kafka['node'] and topic['epoch'] > 0, topic
            assert topic['assignment'] == kafka['assignment'], topic
        wait_until(lambda: s.alerts() == {}, 'an alert stays')
        with open(OPENAPI, encoding='utf-8') as file:
            document = json.load(file)
        fits(document, document['components']['schemas']['Figures'], s.figures(), '$')

        text = s.get('/metrics')
        assert 'pawl_log_info{kind="kafka",cluster="seen",replication="3",broker_sync="true"} 1' in text
        assert int(re.search(r'^pawl_log_ack_seconds_count (\d+)$', text, re.M)[1]) > 20
        assert re.search(r'^pawl_log_claims_held 3$', text, re.M) and re.search(r'^pawl_log_unknown_entries 0$', text, re.M)

        assert re.search(r'^pawl_mirror_off 0$', text, re.M) and re.search(r'^pawl_mirror_bytes_max 268435456$', text, re.M)

        said = s.pawl('status')
        assert re.search(r'^mirror +\S+ \S+ of 268.4 MB, \d+ entries not written yet', said, re.M), said
        assert f'on Kafka: cluster seen at {ADDRESS}, replication 3, synced by the brokers' in said, said
        assert '3 streams are held by this node' in said and 'plog: 2 of 2 held here' in said, said
        wait_until(lambda: re.search(r'^alerts +none$', s.pawl('status'), re.M), 'an alert stays')
        assert json.loads(s.pawl('status', '--json'))['log']['kafka']['cluster'] == 'seen'
        assert ' commands/s' in s.pawl('top', '--count', '1')
    again = json.loads(run(PAWL, 'status', '--dir', s.dir, '--json'))['log']['kafka']  # nobody serves it
    assert again['cluster'] == 'seen' and again['claims']['held'] == again['assignment'] == 0, again


def a_topic_that_is_weakened_under_its_owner_is_an_alert_until_it_is_mended(folder):
    with Served(folder, 'weakened', '?check-ms=1000') as s:
        s.add()
        run(CLIENT, ADDRESS, 'alter', 'weakened.plog', 'retention.ms=1000000', 'min.insync.replicas=2', 'flush.messages=1',
            'retention.bytes=-1', 'max.message.bytes=2097152')
        alert = wait_until(lambda: s.alerts().get('settings'), 'nobody has noticed')
        assert 'weakened.plog' in alert['text'] and 'retention.ms=1000000' in alert['text'], alert
        assert 'cluster check' in alert['advice'] and 'partition' not in alert, alert
        wait_until(lambda: s.kafka()['weak_topics'] == 1, 'it is not counted')  # until all brokers know, it may go and come
        wait_until(lambda: 'retention.ms=1000000' in s.pawl('status'), 'it is not told')
        s.add()  # it is said, and the owner goes on: what it holds is no safer if nobody can write
        run(CLIENT, ADDRESS, 'alter', 'weakened.plog', 'retention.ms=-1', 'min.insync.replicas=2', 'flush.messages=1',
            'retention.bytes=-1', 'max.message.bytes=2097152')
        wait_until(lambda: s.alerts() == {}, 'the alert stays')


def a_mirror_that_cannot_be_written_is_an_alert_and_hurts_nobody(folder):
    os.mkdir(os.path.join(folder, 'unmirrored'))
    with open(os.path.join(folder, 'unmirrored', 'mirror'), 'w', encoding='ascii'):
        pass  # a file, where its directory would be
    with Served(folder, 'unmirrored') as s:
        s.add()
        alert = wait_until(lambda: s.alerts().get('mirror'), 'nobody has noticed')
        assert 'unmirrored/mirror' in alert['text'] and 'disk' in alert['advice'], alert
        assert s.kafka()['mirror']['off']
        assert re.search(r'^pawl_mirror_off 1$', s.get('/metrics'), re.M)
        assert re.search(r'^mirror +off: .*unmirrored/mirror', s.pawl('status'), re.M)


def brokers_that_hang_are_an_alert_until_they_go_on(folder):
    with Served(folder, 'hung', '?timeout-ms=6000') as s:
        wait_until(lambda: s.add(check=False), 'no command is acknowledged')
        wait_until(lambda: s.alerts() == {}, 'an alert stays')
        before = s.kafka()['outages']  # the machine may have been busy
        run(CLUSTER, 'pause', FOLDER, 'all')
        try:
            alert = wait_until(lambda: s.alerts().get('no_broker'), 'nobody has noticed')
            assert ADDRESS.split(',', maxsplit=1)[0] in alert['text'] and 'has answered for' in alert['text'], alert
            assert 'brokers run' in alert['advice'], alert
            assert not s.add(check=False)
            assert re.search(r'^pawl_alerts [1-9]', s.get('/metrics'), re.M)
            assert s.kafka()['unknown_total'] > 0
            wait_until(lambda: s.kafka()['outages'] == before + 1, 'it is not counted once')
        finally:
            run(CLUSTER, 'resume', FOLDER, 'all')
        wait_until(lambda: s.alerts() == {}, 'the alert stays')
        wait_until(lambda: s.add(check=False), 'commands do not go on')
        wait_until(lambda: s.kafka()['unknown'] == 0, 'outcomes stay unknown')
        kafka = s.kafka()
        assert kafka['outages'] > before and kafka['outage_time'] > 1 and kafka['connection_errors'] > 0, kafka
        wait_until(lambda: f'{s.kafka()["outages"]} outages' in s.pawl('status'), 'it is not told')


def too_few_in_sync_are_an_alert_though_a_broker_answers(folder):
    with Served(folder, f'few{os.urandom(4).hex()}', '?timeout-ms=6000') as s:
        s.add()
        run(CLUSTER, 'kill', FOLDER, '2', '3')
        try:
            wait_until(lambda: not s.add(check=False), 'a command was acknowledged by one broker')
            wait_until(lambda: 'no_broker' in s.alerts(), 'nobody has noticed')
        finally:
            run(CLUSTER, 'restart', FOLDER, '2', '3')
        # A claim that was given up as unknown may come late, and must not be taken for another node's.
        wait_until(lambda: s.alerts() == {}, 'the alert stays')
        wait_until(lambda: s.add(check=False), 'commands do not go on')


if __name__ == '__main__':
    CASES = [figures_metrics_status_and_top_name_the_log_and_who_owns_it,
             a_topic_that_is_weakened_under_its_owner_is_an_alert_until_it_is_mended,
             a_mirror_that_cannot_be_written_is_an_alert_and_hurts_nobody]
    LONG = [brokers_that_hang_are_an_alert_until_they_go_on] + 5 * [too_few_in_sync_are_an_alert_though_a_broker_answers]
    main(CASES + (LONG if sys.argv[1:] == ['long'] else []))
