// overview.js: the first page: what comes in, how long it takes, what lags, and what is wrong.
import { Chart } from './charts.js';
import { card, empty, fillMeter, h, icon, keyed, meter, text } from './dom.js';
import { bytes, bytesParts, count, duration, durationParts, percent, rate } from './format.js';
import { laneBadge, windowBar } from './lanes.js';
import { LogCard } from './log.js';
import { viewBadge } from './views.js';

// --- tiles ---

function tile(label) {
    const value = h('b', null, '–'), unit = h('small');
    const note = h('p', null, '\u00a0'), title = h('h3', null, label);
    return { label: title, element: h('div', { class: 'tile' }, title, h('div', { class: 'tile-value' }, value, unit), note),
             set([number, of], words) { text(value, number); text(unit, of); text(note, words); } };
}

const sum = (rows, name) => rows.reduce((total, row) => total + Number(row[name]), 0);

// --- alerts ---

const shortNames = {
    different: 'The two states differ', live: 'Live state damaged', checkpoint: 'Checkpoint damaged', log: 'Log damaged',
    no_broker: 'No broker', fenced: 'Taken over by another node', settings: 'Topic settings weakened', mirror: 'Mirror off',
    expired: 'Leases expire', wait: 'Operations wait long', active: 'Many leases at once', voids: 'Operations were void',
    stalled: 'Lane stalled',
};

function alertRow(alert) {
    const where = alert.lane ? `${alert.lane}, most in partition ${alert.most_in_partition}`
        : alert.partition === undefined ? '' : `partition ${alert.partition}, offset ${count(alert.offset)}`;
    return h('li', { class: 'alert' }, icon('alert'), h('div', null,
        h('strong', null, shortNames[alert.alert] || alert.alert), h('span', { class: 'alert-where' }, where),
        h('p', { class: 'alert-text' }, alert.text), h('p', { class: 'alert-advice' }, alert.advice)));
}

const alertKey = (a) => [a.alert, a.lane, a.generation, a.partition, a.table, a.text].join('/');

// --- the page ---

export class Overview {
    title = 'Overview';

    constructor(app) {
        this.app = app;
        this.tiles = {
            rate: tile('Commands'), latency: tile('Latency p99'), sync: tile('Disk sync p99'),
            events: tile('Events'), lag: tile('Projection lag'), size: tile('On disk'),
        };
        this.throughput = new Chart({
            label: 'Commands a second, over the last minutes', least: 10, format: rate,
            series: [{ label: 'answered/s', column: 'rate', colour: '--accent', fill: '--accent-wash' },
                { label: 'failed/s', column: 'failed', colour: '--bad', none: '0' }],
        });
        this.latency = new Chart({
            label: 'Latency of commands, over the last minutes', least: 0.001, format: duration,
            series: [{ label: 'p99', column: 'p99', colour: '--warm' }, { label: 'p50', column: 'p50', colour: '--accent' }],
        });
        this.span = 300;
        this.alerts = h('ul', { class: 'alerts' });
        this.clear = h('div', { class: 'clear', hidden: true }, icon('check'), h('span', null, 'All clear'));
        this.alertCount = h('span', { class: 'count', hidden: true });
        this.log = new LogCard();
        this.partitions = h('tbody');
        this.shards = h('tbody');
        this.lanes = h('ul', { class: 'rows' });
        this.views = h('ul', { class: 'rows' });
        this.noLanes = empty('No lanes', 'Projectors of the schema that are not synchronous appear here.');
        this.noViews = empty('No views', 'Make one: pawl view create NAME --base TYPE --key FIELDS');
        for (const nothing of [this.noLanes, this.noViews])
            nothing.hidden = true; // until it is known
        this.element = this.make();
    }

    make() {
        const spans = h('div', { class: 'segments', role: 'group', 'aria-label': 'Time span of the charts' },
            [[60, '1 min'], [300, '5 min'], [900, '15 min']].map(([seconds, words]) =>
                h('button', { type: 'button', 'aria-pressed': String(seconds === this.span), onclick: (event) => {
                    this.span = seconds;
                    for (const button of spans.children)
                        button.setAttribute('aria-pressed', String(button === event.currentTarget));
                    this.draw();
                } }, words)));
        return h('div', { class: 'page overview' },
            h('div', { class: 'tiles' }, Object.values(this.tiles).map((one) => one.element)),
            card('Alerts', { class: 'alerts-card', note: [this.clear, this.alertCount] }, this.alerts),
            h('div', { class: 'pair' },
                card('Throughput', { note: spans }, this.throughput.element),
                card('Latency', {}, this.latency.element)),
            h('div', { class: 'pair' },
                card('Lanes', { note: h('a', { href: '#/lanes' }, 'Lease windows') }, this.noLanes, this.lanes),
                card('Views', { note: h('a', { href: '#/views' }, 'Tablet maps') }, this.noViews, this.views)),
            this.log.element,
            h('div', { class: 'pair wide-left' },
                card('Partitions', {}, h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Partitions, a table' },
                    h('table', null, h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Partition'), h('th', { scope: 'col' }, 'Shard'),
                        h('th', { scope: 'col', class: 'number' }, 'Offset'), h('th', { scope: 'col', class: 'number' }, 'Events/s'),
                        h('th', { scope: 'col', class: 'bar-cell' }, 'Share'))), this.partitions))),
                card('Shards', {}, h('div', { class: 'scroll' },
                    h('table', null, h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Shard'),
                        h('th', { scope: 'col', class: 'number' }, 'Waiting'), h('th', { scope: 'col', class: 'number' }, 'Under way'),
                        h('th', { scope: 'col', class: 'number' }, 'Checkpoint lag'), h('th', { scope: 'col', class: 'bar-cell wide-only' }, 'Of its bound'))), this.shards)))));
    }

    draw() {
        this.throughput.update(this.app.history, this.span);
        this.latency.update(this.app.history, this.span);
    }

    update(f) {
        this.updateTiles(f);
        this.draw();
        this.updateAlerts(f.alerts);
        this.log.update(f.log);
        this.updateTables(f);
        this.updateLists(f);
    }

    updateTiles(f) {
        const t = this.tiles;
        const behind = sum(f.lanes, 'events_behind');
        const stored = Object.values(f.stores).reduce((total, n) => total + Number(n), 0);
        t.rate.set([rate(f.rate), '/s'], `${count(f.answered)} answered\n${count(f.failed)} failed`);
        t.latency.set(durationParts(f.recent?.p99), f.recent ? `p50 ${duration(f.recent.p50)}\nover the last 10 s` : 'no command in the last 10 s');
        this.updateSync(f.log);
        t.events.set([count(sum(f.partitions, 'offset')), ''], `${count(f.node.partitions)} partitions\n${count(f.node.shards)} shards`);
        t.lag.set([count(behind), behind === 1 ? 'event' : 'events'], f.lanes.length ? `${f.lanes.length} lanes\n${count(sum(f.lanes, 'leased'))} leases` : 'no lanes');
        t.size.set(bytesParts(stored), `log ${bytes(f.stores.log)}\nmemory ${bytes(f.node.memory_bytes)}`);
    }

    /** How long durability takes: a sync of the disk, or the brokers' acknowledgement. */
    updateSync(log) {
        const t = this.tiles.sync, acks = log.kafka?.ack_10s;
        text(t.label, log.kafka ? 'Brokers p99' : 'Disk sync p99');
        const p99 = log.kafka ? (acks.count ? acks.p99 : null) : log.p99;
        t.set(durationParts(p99), p99 === null ? 'nothing written in the last 10 s'
            : log.kafka ? `p50 ${duration(acks.p50)}\n${rate(log.kafka.acks_10s)} acknowledged/s`
            : `${rate(log.syncs)} syncs/s\n${Number(log.batch).toFixed(1)} records each`);
    }

    updateAlerts(alerts) {
        keyed(this.alerts, alerts, alertKey, alertRow);
        this.clear.hidden = alerts.length > 0;
        this.alertCount.hidden = alerts.length === 0;
        text(this.alertCount, alerts.length);
    }

    updateTables(f) {
        const rates = f.partitions.map((p) => this.app.history.partitionRate(p.partition));
        const most = Math.max(1, ...rates);
        keyed(this.partitions, f.partitions, (p) => p.partition, (p) => h('tr', null, h('th', { scope: 'row' }, p.partition),
            h('td', null, p.shard), h('td', { class: 'number' }), h('td', { class: 'number' }),
            h('td', { class: 'bar-cell' }, meter())), (row, p) => {
            text(row.children[2], count(p.offset));
            text(row.children[3], rate(this.app.history.partitionRate(p.partition)));
            fillMeter(row.children[4], this.app.history.partitionRate(p.partition) / most);
        });
        keyed(this.shards, f.shards, (s) => s.shard, (s) => h('tr', null, h('th', { scope: 'row' }, s.shard),
            h('td', { class: 'number' }), h('td', { class: 'number' }), h('td', { class: 'number' }),
            h('td', { class: 'bar-cell wide-only' }, meter())), (row, s) => {
            text(row.children[1], count(s.mailbox));
            text(row.children[2], count(s.commands));
            text(row.children[3], count(s.checkpoint_lag));
            fillMeter(row.children[4], Number(s.checkpoint_lag) / Number(f.checkpoint.lag_max || 1));
        });
    }

    updateLists(f) {
        this.noLanes.hidden = f.lanes.length > 0;
        this.noViews.hidden = f.views.length > 0;
        keyed(this.lanes, f.lanes, (lane) => lane.key, (lane) => h('li', null,
            h('a', { href: `#/lanes/${encodeURIComponent(lane.key)}`, class: 'row-name' }, lane.lane), h('span', { class: 'badge' }),
            h('span', { class: 'row-value' }), windowBar()), (row, lane) => {
            const speed = this.app.history.laneRate(lane.key);
            laneBadge(row.children[1], lane, speed);
            text(row.children[2], `${count(lane.events_behind)} behind · ${rate(speed)}/s`);
            row.children[3].update(lane);
        });
        keyed(this.views, f.views, (view) => view.view, (view) => h('li', null,
            h('a', { href: '#/views', class: 'row-name' }, view.view), h('span', { class: 'badge' }),
            h('span', { class: 'row-value' }), meter()), (row, view) => {
            viewBadge(row.children[1], view);
            text(row.children[2], view.state === 'built' ? `${count(view.rows)} rows` : percent(view.percent));
            fillMeter(row, Number(view.percent) / 100);
            row.classList.toggle('done', view.state === 'built');
        });
    }
}
