// lanes.js: the lanes, and the window of numbers that each works on.
import { server } from './api.js';
import { empty, h, keyed, text } from './dom.js';
import { count, duration, percent, rate } from './format.js';
import { Strip, states } from './strip.js';

const POLL_MS = 700;

/** What state a lane is in, in one word. */
export function laneBadge(element, lane, speed) {
    const [words, kind] = Number(lane.stalled) > 0 ? ['stalled', 'bad']
        : lane.state !== 'running' ? [lane.state, 'bad']
        : lane.paused ? ['paused', 'warm']
        : lane.building ? ['building', 'busy']
        : Number(lane.window) > 0 && Number(lane.leased) === 0 && speed === 0 ? ['waits for a worker', 'warm']
        : Number(lane.events_behind) > 2 * speed ? ['working', 'busy'] : ['current', 'good']; // two seconds' work is not behind
    text(element, words);
    element.className = `badge ${kind}`;
}

/** The window of a lane over all partitions, as a bar: how much is leased, ready, stalled, or waits for a worker. */
export function windowBar() {
    const parts = ['ready', 'leased', 'stalled', 'bound'].map((name) => h('i', { class: `w-${name}` }));
    const bar = h('div', { class: 'window-bar', role: 'img' }, parts);
    bar.update = (lane) => {
        const leased = Number(lane.leased), ready = Number(lane.ready), stalled = Number(lane.stalled);
        const rest = Math.max(0, Number(lane.window) - leased - ready - stalled);
        const all = Math.max(1, leased + ready + stalled + rest);
        [ready, leased, stalled, rest].forEach((n, i) => { parts[i].style.flexGrow = String(n / all); });
        bar.classList.toggle('idle', leased + ready + stalled + rest === 0);
        bar.setAttribute('aria-label', `window of ${lane.window}: ${leased} leased, ${ready} ready, ${stalled} stalled`);
    };
    return bar;
}

const figures = [
    ['Behind', (lane) => count(lane.events_behind), 'events of the log that the lane has not applied'],
    ['Operations', (lane) => count(lane.operations), 'applied'],
    ['Rate', (lane, speed) => `${rate(speed)}/s`, 'operations, as they are applied now'],
    ['Window', (lane) => count(lane.window), 'numbers between the last committed one and the last bound one'],
    ['Leased', (lane) => count(lane.leased), 'numbers that are being worked on'],
    ['Ready', (lane) => count(lane.ready), 'done, and waiting for those before them'],
    ['Stalled', (lane) => count(lane.stalled), 'numbers that need an operator'],
    ['Voids', (lane) => count(lane.voids), 'numbers that were decided to have no effect'],
    ['Expired', (lane) => count(lane.expired), 'leases that ended before their work was handed in'],
    ['Efficiency', (lane) => percent(100 * Number(lane.efficiency)), 'share of the time in which leased numbers were worked on'],
    ['Repeated', (lane) => count(lane.repeated), 'runs that were made again, because something that they had read had changed'],
    ['Runs ahead', (lane) => (lane.run_ahead === null ? '–' : count(lane.run_ahead)), 'so many numbers behind the last one in order are given out at most; it shrinks while runs are repeated'],
    ['Repeated time', (lane) => duration(lane.repeated_time), 'that went into runs which were made again'],
    ['p99 wait', (lane) => duration(lane.p99_wait), 'from ready to committed'],
];

class LaneCard {
    constructor(lane) {
        this.key = lane.key;
        this.lane = lane;
        this.partition = 0;
        this.chosen = false; // by the user
        this.from = 0;
        this.badge = h('span', { class: 'badge' });
        this.values = figures.map(([name, , title]) => h('div', { title }, h('dt', null, name), h('dd', null, '–')));
        this.picker = h('select', { 'aria-label': `Partition of ${lane.lane}`, onchange: () => {
            this.partition = Number(this.picker.value);
            this.chosen = true;
            this.from = 0;
            this.strip.reset();
            this.poll();
        } });
        this.strip = new Strip(`Lease window of ${lane.lane}`);
        this.window = windowBar();
        this.trouble = h('p', { class: 'trouble', hidden: true });
        this.element = h('section', { class: 'card lane', 'aria-label': lane.lane, id: `lane-${lane.key}` },
            h('div', { class: 'card-head' }, h('h2', null, lane.lane), this.badge,
                h('span', { class: 'quiet' }, `generation ${lane.generation}${lane.serving ? ', serving' : ''}`),
                h('span', { class: 'grow' }), h('label', { class: 'quiet pick' }, 'Partition ', this.picker)),
            this.strip.element, this.trouble,
            h('dl', { class: 'figures' }, this.values),
            h('div', { class: 'quiet bar-label' }, 'All partitions'), this.window);
    }

    update(lane, partitions, speed) {
        this.lane = lane;
        laneBadge(this.badge, lane, speed);
        figures.forEach(([, value], i) => text(this.values[i].lastChild, value(lane, speed)));
        this.window.update(lane);
        if (this.picker.length !== partitions.length)
            this.picker.replaceChildren(...partitions.map((p) => h('option', { value: p.partition }, p.partition)));
        this.picker.value = String(this.partition);
    }

    /** Until somebody chooses one, show a partition that has something to show. */
    choose(partitions) {
        if (!this.chosen && partitions.length > 0)
            this.partition = partitions.reduce((most, p) => (p.offset > most.offset ? p : most)).partition;
        this.chosen = true;
    }

    async poll() {
        try {
            const { rows } = await server.leases(this.lane.lane, this.partition, this.from || undefined, 400);
            const own = rows.filter((row) => row.generation === this.lane.generation && row.partition === this.partition);
            const open = own.filter((row) => row.state !== 'committed').map((row) => Number(row.number));
            const last = Math.max(0, ...own.map((row) => Number(row.number)));
            if (last > 0)
                this.from = Math.max(1, (open.length ? Math.min(...open) : last) - 160);
            this.strip.update(own);
            this.trouble.hidden = true;
        } catch (failure) {
            text(this.trouble, `The lease window cannot be read: ${failure.message}.`);
            this.trouble.hidden = false;
        }
    }
}

export class Lanes {
    title = 'Lanes';
    cards = new Map();
    timer = null;
    visible = false;

    constructor(app) {
        this.app = app;
        this.list = h('div', { class: 'stack' });
        this.none = empty('No lanes', 'Projectors of the schema that are not synchronous run in lanes. Apply a schema that has one: pawl schema apply FILE');
        this.none.hidden = true;
        this.element = h('div', { class: 'page' },
            h('ul', { class: 'key', 'aria-label': 'States of a number' }, Object.entries(states).map(([name, { words }]) =>
                h('li', null, h('i', { class: `k-${name}` }), h('span', null, words)))),
            this.none, this.list);
    }

    update(f) {
        this.none.hidden = f.lanes.length > 0;
        keyed(this.list, f.lanes, (lane) => lane.key, (lane) => {
            const made = new LaneCard(lane);
            this.cards.set(lane.key, made);
            return made.element;
        }, (_, lane) => {
            const one = this.cards.get(lane.key);
            one.choose(f.partitions);
            one.update(lane, f.partitions, this.app.history.laneRate(lane.key));
        });
        for (const key of this.cards.keys())
            if (!f.lanes.some((lane) => lane.key === key))
                this.cards.delete(key);
    }

    open([key]) {
        if (key)
            document.getElementById(`lane-${key}`)?.scrollIntoView({ block: 'start' });
    }

    /** Ask again only when the last answers are there, and only while somebody can see them. */
    enter() {
        this.visible = true;
        const round = async () => {
            if (!document.hidden)
                await Promise.all([...this.cards.values()].map((one) => one.poll()));
            if (this.visible)
                this.timer = setTimeout(round, this.cards.size ? POLL_MS : 100);
        };
        round();
    }

    leave() {
        this.visible = false;
        clearTimeout(this.timer);
    }
}
