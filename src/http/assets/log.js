// log.js: which log a node has, and how it is doing: files, or a cluster of Kafka, with who owns its streams.
import { card, h, keyed, show, text } from './dom.js';
import { count, duration, rate } from './format.js';

const fileFacts = [
    ['Kept in', () => 'files of this node'],
    ['Syncs', (log) => `${rate(log.syncs)}/s`],
    ['Sync p50', (log) => duration(log.p50)],
    ['Sync p99', (log) => duration(log.p99)],
    ['Records each', (log) => Number(log.batch).toFixed(1)],
];

const kafkaFacts = [
    ['Kept on', (k) => `Kafka, cluster ${k.cluster}`],
    ['Brokers', (k) => k.brokers.split(',').join(', ')],
    ['Acknowledged means', (k) => `on ${Number(k.replication) > 1 ? 'at least 2 brokers' : '1 broker'}, ${k.broker_sync ? 'synced' : 'not synced'}`],
    ['Acknowledged', (k) => `${rate(k.acks_10s)}/s`],
    ['Brokers p50', (k) => duration(k.ack_10s.count ? k.ack_10s.p50 : null)],
    ['Brokers p99', (k) => duration(k.ack_10s.count ? k.ack_10s.p99 : null)],
    ['Unknown entries', (k) => `${count(k.unknown)} now, ${count(k.unknown_total)} ever`],
    ['Did not count', (k) => `${count(k.ignored)} records`],
    ['Broker heard', (k) => (Number(k.silence) < 3 ? 'just now' : `${duration(k.silence)} ago`)],
    ['Outages', (k) => (Number(k.outages) ? `${count(k.outages)}, ${duration(k.outage_time)}` : 'none')],
    ['Connection errors', (k) => count(k.connection_errors)],
    ['This node', (k) => k.node],
];

/** A node's ID as far as people need it. */
const short = (node, own) => (node === own ? 'this node' : node.slice(0, 8));

export class LogCard {
    constructor() {
        this.badge = h('span', { class: 'badge' });
        this.facts = h('dl', { class: 'facts' });
        this.claims = h('tbody');
        this.table = h('div', { class: 'scroll', hidden: true, tabindex: '0', role: 'region', 'aria-label': 'Claims, a table' },
            h('table', null, h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Streams'), h('th', { scope: 'col', class: 'number' }, 'Held here'),
                h('th', { scope: 'col' }, 'Owner'), h('th', { scope: 'col', class: 'number' }, 'Epoch'), h('th', { scope: 'col', class: 'number' }, 'Assignment'))), this.claims));
        this.element = card('Log', { class: 'log-card', note: this.badge }, this.facts, this.table);
    }

    update(log) {
        const kafka = log.kafka;
        const [words, kind] = !kafka ? ['files', 'good'] : Number(kafka.weak_topics) ? ['settings weakened', 'bad']
            : Number(kafka.silence) > 10 || Number(kafka.stalled) > 10 ? ['no broker', 'bad'] : ['Kafka', 'good'];
        text(this.badge, words);
        this.badge.className = `badge ${kind}`;
        keyed(this.facts, kafka ? kafkaFacts : fileFacts, ([name]) => name, ([name]) => h('div', null, h('dt', null, name), h('dd', null, '–')),
            (element, [, value]) => text(element.lastChild, value(kafka || log)));
        show(this.table, Boolean(kafka));
        keyed(this.claims, kafka ? kafka.claims.topics : [], (topic) => topic.topic, (topic) => h('tr', null, h('th', { scope: 'row' }, topic.topic),
            h('td', { class: 'number' }), h('td'), h('td', { class: 'number' }), h('td', { class: 'number' })), (row, topic) => {
            text(row.children[1], `${count(topic.held)} of ${count(topic.streams)}`);
            text(row.children[2], short(topic.node, kafka.node));
            text(row.children[3], count(topic.epoch));
            text(row.children[4], count(topic.assignment));
        });
    }
}
