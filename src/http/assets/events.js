// events.js: the history of a workspace, as it grows, and what came of each event.
import { server } from './api.js';
import { card, empty, h, icon, json, keyed, text } from './dom.js';
import { count, moment } from './format.js';

const PAGE = 50;
const KEPT = 400; // rows; older ones are asked for again

const offsetOf = (event) => Number(event.workspace_offset);

// --- workspaces ---

class Workspaces {
    rows = [];
    next = null;
    chosen = null;

    constructor(choose) {
        this.choose = choose;
        this.list = h('ul', { class: 'choices', 'aria-label': 'Workspaces' });
        this.input = h('input', { type: 'search', inputmode: 'numeric', placeholder: 'Number', 'aria-label': 'Workspace number', autocomplete: 'off',
            oninput: () => this.draw() });
        this.note = h('p', { class: 'quiet', role: 'status' });
        this.more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.load() }, 'More workspaces');
        const form = h('form', { class: 'find', onsubmit: (event) => {
            event.preventDefault();
            if (/^\d+$/.test(this.input.value.trim()))
                this.choose(this.input.value.trim());
        } }, this.input, h('button', { class: 'button primary', type: 'submit' }, 'Open'));
        this.element = card('Workspaces', { class: 'workspaces' }, form, this.note, this.list, this.more);
    }

    async load() {
        try {
            const { rows, next } = await server.workspaces(this.next || undefined);
            this.rows.push(...rows);
            this.next = next;
            this.more.hidden = !next;
            text(this.note, this.rows.length ? '' : 'There are none. Create one: pawl ws create 7 shop.tenant');
        } catch (failure) {
            text(this.note, `They cannot be listed: ${failure.message}. A number can still be opened.`);
        }
        this.draw();
    }

    draw() {
        const wanted = this.input.value.trim();
        const byNumber = (a, b) => String(a.wsid).length - String(b.wsid).length || (String(a.wsid) < String(b.wsid) ? -1 : 1);
        const found = this.rows.filter((row) => String(row.wsid).startsWith(wanted)).sort(byNumber);
        keyed(this.list, found, (row) => row.wsid, (row) =>
            h('li', null, h('button', { type: 'button', onclick: () => this.choose(String(row.wsid)) },
                h('b', null, row.wsid), h('span', { title: row.kind }, row.kind.split('.').pop()), h('span', { class: 'number' }, count(row.workspace_offset)))),
        (item, row) => item.firstChild.setAttribute('aria-current', String(String(row.wsid) === this.chosen)));
    }
}

// --- one event ---

function recordRow(wsid, record) {
    const place = h('div', { class: 'outcome' });
    const button = h('button', { class: 'button small', type: 'button', onclick: async () => {
        button.disabled = true;
        try {
            place.replaceChildren(json(await server.record(wsid, record.id, record.type)));
        } catch (failure) {
            place.replaceChildren(h('p', { class: 'trouble' }, `${failure.message}.`));
        }
        button.disabled = false;
    } }, 'Read it now');
    return h('li', null, h('div', { class: 'record-head' }, h('span', { class: `badge ${record.op === 'create' ? 'good' : 'busy'}` }, record.op),
        h('b', null, record.type), h('code', null, record.id), h('span', { class: 'grow' }), button), json(record.fields || {}), place);
}

function operationRow(lane, operation) {
    const outcome = operation.void !== undefined ? h('p', { class: 'trouble' }, `void: ${operation.void}`) : json(operation.writes);
    return h('li', null, h('div', { class: 'record-head' }, h('b', null, operation.projector), h('span', { class: 'quiet' }, `number ${count(operation.number)} in ${lane}`),
        h('span', { class: 'grow' }), h('time', { class: 'quiet' }, moment(operation.time))), outcome);
}

/** What every lane has made of an event. */
async function showOperations(place, event, lanes) {
    const serving = lanes.filter((lane) => lane.serving);
    const answers = await Promise.allSettled(serving.map((lane) => server.operations(lane, event.partition, event.offset)));
    const rows = answers.flatMap((answer, i) => (answer.status === 'fulfilled' ? answer.value.map((row) => operationRow(serving[i].lane, row)) : []));
    const failed = answers.filter((answer) => answer.status === 'rejected');
    if (failed.length)
        rows.push(h('li', null, h('p', { class: 'trouble' }, `${failed[0].reason.message}.`)));
    place.replaceChildren(...(rows.length ? rows : [h('li', { class: 'quiet' }, 'None: no lane has made anything of this event yet.')]));
}

function details(event, lanes, close) {
    const facts = [['Time', event.time], ['Partition', event.partition], ['Offset', count(event.offset)], ['Workspace offset', count(event.workspace_offset)],
        ['Actor', event.actor], ['Correlation', event.correlation], ['Causation', event.causation], ['Schema', event.schema], ['Kind', event.kind]]
        .filter(([, value]) => value !== undefined);
    const operations = h('ul', { class: 'outcomes' }, h('li', { class: 'quiet' }, 'Looking …'));
    showOperations(operations, event, lanes);
    return [
        h('div', { class: 'card-head' }, h('button', { class: 'icon-button only-narrow', type: 'button', 'aria-label': 'Back to the events', onclick: close }, icon('back')),
            h('h2', { tabindex: '-1' }, event.command), h('span', { class: 'quiet' }, `№ ${count(event.workspace_offset)}`)),
        h('dl', { class: 'facts first-wide' }, facts.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value)))),
        event.argument === undefined ? null : [h('h3', null, 'Argument'), json(event.argument)],
        h('h3', null, `Records (${event.records.length})`),
        event.records.length ? h('ul', { class: 'outcomes' }, event.records.map((record) => recordRow(event.wsid, record)))
            : h('p', { class: 'quiet' }, 'None were written.'),
        h('h3', null, 'Operations that came of it'), operations,
    ].flat().filter(Boolean);
}

// --- the page ---

export class Events {
    title = 'Events';
    wsid = null;
    events = new Map();
    waiting = [];
    stop = null;
    selected = null;

    constructor(app) {
        this.app = app;
        this.workspaces = new Workspaces((wsid) => { location.hash = `#/events/${wsid}`; });
        this.body = h('tbody');
        this.status = h('p', { class: 'quiet', role: 'status' }, '\u00a0');
        this.live = h('button', { class: 'button small', type: 'button', 'aria-pressed': 'true', onclick: () => this.toggle() }, 'Live');
        this.filter = h('input', { type: 'search', placeholder: 'Filter: a command, an actor, an ID', 'aria-label': 'Filter the events', oninput: () => this.draw() });
        this.older = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.loadOlder() }, 'Older events');
        this.table = h('table', { class: 'events', hidden: true }, h('thead', null, h('tr', null, h('th', { scope: 'col', class: 'number' }, '№'), h('th', { scope: 'col' }, 'Time'),
            h('th', { scope: 'col' }, 'Command'), h('th', { scope: 'col', class: 'number' }, 'Records'), h('th', { scope: 'col', class: 'wide-only' }, 'Actor'))), this.body);
        this.nothing = empty('Choose a workspace', 'Its events appear here, the newest first, and go on as they come in.');
        this.heading = h('span', { class: 'quiet' });
        this.list = card('History', { class: 'history', note: this.heading }, h('div', { class: 'find' }, this.filter, this.live), this.status,
            this.nothing, this.table, this.older);
        this.detail = h('section', { class: 'card detail', 'aria-label': 'Event' }, empty('No event chosen', 'Choose one: its argument, its records and the operations that came of it appear here.'));
        this.element = h('div', { class: 'page event-page' }, this.workspaces.element, this.list, this.detail);
    }

    enter() {
        if (this.workspaces.rows.length === 0)
            this.workspaces.load();
        if (this.wsid && !this.stop && this.live.getAttribute('aria-pressed') === 'true')
            this.follow();
    }

    leave() {
        this.stop?.();
        this.stop = null;
    }

    async open([wsid, offset]) {
        if (wsid && wsid !== this.wsid)
            await this.openWorkspace(wsid, offset ? Number(offset) : null);
        if (offset)
            this.select(Number(offset));
    }

    async openWorkspace(wsid, offset) {
        this.leave();
        this.wsid = wsid;
        this.events.clear();
        this.select(null);
        this.workspaces.chosen = wsid;
        this.workspaces.draw();
        text(this.status, 'Loading …');
        try {
            const workspace = await server.workspace(wsid);
            const last = Number(workspace.workspace_offset);
            this.first = Math.max(1, (offset ? Math.min(offset + PAGE / 2, last) : last) - PAGE + 1);
            const { rows } = await server.events(wsid, this.first, PAGE);
            if (this.wsid !== wsid)
                return;
            this.take(rows);
            text(this.heading, `workspace ${wsid}, ${workspace.kind}`);
            text(this.status, '\u00a0');
            if (this.live.getAttribute('aria-pressed') === 'true')
                this.follow();
        } catch (failure) {
            text(this.status, failure.status === 404 ? `There is no workspace ${wsid}.` : `The events cannot be read: ${failure.message}.`);
        }
        this.draw();
    }

    take(rows) {
        for (const event of rows)
            this.events.set(offsetOf(event), event);
        if (this.events.size > KEPT) {
            const offsets = [...this.events.keys()].sort((a, b) => a - b);
            for (const offset of offsets.slice(0, offsets.length - KEPT))
                this.events.delete(offset);
        }
    }

    /** Events that come in are shown together, once a frame, however many there are. */
    follow() {
        const next = Math.max(0, ...this.events.keys()) + 1;
        this.stop = server.followEvents(this.wsid, next, (event) => {
            this.waiting.push(event);
            if (this.waiting.length === 1)
                requestAnimationFrame(() => {
                    this.take(this.waiting.splice(0).slice(-KEPT));
                    this.draw();
                });
        }, (state, details) => {
            if (state === 'refused')
                text(this.status, `They cannot be followed: ${details.failure.message}.`);
            else
                text(this.status, state === 'waiting' ? 'The connection is lost; trying again …' : '\u00a0');
        });
    }

    toggle() {
        const on = this.live.getAttribute('aria-pressed') !== 'true';
        this.live.setAttribute('aria-pressed', String(on));
        this.leave();
        if (on && this.wsid)
            this.follow();
    }

    async loadOlder() {
        const first = Math.min(...this.events.keys());
        const from = Math.max(1, first - PAGE);
        try {
            const { rows } = await server.events(this.wsid, from, first - from);
            for (const event of rows)
                this.events.set(offsetOf(event), event);
        } catch (failure) {
            text(this.status, `Older ones cannot be read: ${failure.message}.`);
        }
        this.draw();
    }

    draw() {
        const words = this.filter.value.trim().toLowerCase();
        const all = [...this.events.values()].sort((a, b) => offsetOf(b) - offsetOf(a));
        const found = words ? all.filter((event) => JSON.stringify(event).toLowerCase().includes(words)) : all;
        keyed(this.body, found, offsetOf, (event) => this.row(event), (row, event) =>
            row.setAttribute('aria-selected', String(offsetOf(event) === this.selected)));
        this.table.hidden = found.length === 0;
        this.nothing.hidden = found.length > 0;
        this.nothing.firstChild.textContent = !this.wsid ? 'Choose a workspace' : words ? 'Nothing matches' : 'No events';
        this.nothing.lastChild.textContent = !this.wsid ? 'Its events appear here, the newest first, and go on as they come in.'
            : words ? 'The filter looks at the events that are loaded. Older ones can be loaded, if there are any.' : 'As soon as a command is answered, its event appears here.';
        this.older.hidden = all.length === 0 || offsetOf(all[all.length - 1]) <= 1;
    }

    row(event) {
        const go = () => { location.hash = `#/events/${this.wsid}/${offsetOf(event)}`; };
        return h('tr', { tabindex: '0', onclick: go, onkeydown: (key) => {
            if (key.key === 'Enter' || key.key === ' ') {
                key.preventDefault();
                go();
            } else if (key.key === 'ArrowDown' || key.key === 'ArrowUp') {
                key.preventDefault();
                (key.key === 'ArrowDown' ? key.currentTarget.nextElementSibling : key.currentTarget.previousElementSibling)?.focus();
            }
        } }, h('td', { class: 'number' }, count(event.workspace_offset)), h('td', { class: 'time' }, moment(event.time)), h('td', null, event.command),
        h('td', { class: 'number' }, event.records.length), h('td', { class: 'wide-only' }, event.actor || '–'));
    }

    async select(offset) {
        this.selected = offset;
        this.element.classList.toggle('has-detail', offset !== null);
        if (offset === null) {
            this.draw();
            return;
        }
        let event = this.events.get(offset);
        try {
            event ||= (await server.events(this.wsid, offset, 1)).rows[0];
        } catch (failure) {
            this.detail.replaceChildren(empty('The event cannot be read', `${failure.message}.`, 'trouble'));
            return;
        }
        if (!event || offsetOf(event) !== offset) {
            this.detail.replaceChildren(empty('There is no such event', `Workspace ${this.wsid} has no event ${offset}.`));
            return;
        }
        this.detail.replaceChildren(...details(event, this.app.figures?.lanes || [], () => { location.hash = `#/events/${this.wsid}`; this.select(null); }));
        this.draw();
        if (matchMedia('(max-width: 899px)').matches)
            this.detail.querySelector('h2').focus();
    }
}
