// system.js: the node, what it keeps on the disk, and the system tables.
import { server } from './api.js';
import { card, empty, h, text } from './dom.js';
import { bytes, count } from './format.js';

const stores = [['log', 'Log'], ['live', 'Live state'], ['checkpoint', 'Checkpoint'], ['local', 'Node-local']];

const words = {
    nodes: 'The nodes of the cluster.', tablets: 'Slices of a partition\'s tokens, by which views are built.', views: 'The views, with their tables.',
    view_building_tasks: 'What is left to build.', view_build_status: 'How each build stands.', built_views: 'Views that are built.',
    view_building_processing_base: 'The base that is being worked on.',
};

export class System {
    title = 'System';
    table = 'nodes';

    constructor() {
        this.facts = h('dl', { class: 'facts' });
        this.parts = stores.map(([name]) => h('i', { class: `st-${name}` }));
        this.sizes = stores.map(([name, label]) => h('li', null, h('i', { class: `st-${name}` }), h('span', null, label), h('b', null, '–')));
        this.tabs = h('div', { class: 'segments wrap', role: 'group', 'aria-label': 'System tables' }, server.systemTables.map((name) =>
            h('button', { type: 'button', 'aria-pressed': 'false', dataset: { table: name }, onclick: () => { location.hash = `#/system/${name}`; } }, name.replaceAll('_', ' '))));
        this.about = h('p', { class: 'quiet' });
        this.place = h('div', { class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'Rows of the table' });
        this.count = h('span', { class: 'quiet' });
        this.element = h('div', { class: 'page' }, h('div', { class: 'pair' }, card('Node', {}, this.facts),
            card('On disk', {}, h('div', { class: 'stores', role: 'img', 'aria-label': 'Shares of the stores' }, this.parts), h('ul', { class: 'store-list' }, this.sizes))),
        card('System tables', { note: this.count }, this.tabs, this.about, this.place));
    }

    update(f) {
        const facts = [['Directory', f.node.directory], ['Version', f.node.version], ['Mode', f.node.writes ? 'reads and writes' : 'reads only'], ['Partitions', count(f.node.partitions)],
            ['Shards', count(f.node.shards)], ['Memory', bytes(f.node.memory_bytes)], ['Address', location.host], ['Checkpoint commits', count(f.checkpoint.commits)]];
        if (this.facts.children.length === 0)
            this.facts.append(...facts.map(([name]) => h('div', null, h('dt', null, name), h('dd', null, '–'))));
        facts.forEach(([, value], i) => text(this.facts.children[i].lastChild, value));
        const all = Math.max(1, stores.reduce((sum, [name]) => sum + Number(f.stores[name]), 0));
        stores.forEach(([name], i) => {
            this.parts[i].style.flexGrow = String(Number(f.stores[name]) / all);
            text(this.sizes[i].lastChild, bytes(f.stores[name]));
        });
    }

    enter() {
        this.load();
    }

    open([table]) {
        const changed = table && server.systemTables.includes(table) && table !== this.table;
        if (changed) {
            this.table = table;
            this.load();
        }
    }

    async load() {
        const name = this.table;
        for (const button of this.tabs.children)
            button.setAttribute('aria-pressed', String(button.dataset.table === name));
        text(this.about, words[name]);
        try {
            const { rows } = await server.system(name);
            if (name !== this.table)
                return;
            text(this.count, rows.length === 1 ? '1 row' : `${count(rows.length)} rows`);
            this.place.replaceChildren(rows.length ? this.rows(rows) : empty('Empty', 'The table has no rows now.'));
        } catch (failure) {
            this.place.replaceChildren(empty('The table cannot be read', `${failure.message}.`, 'trouble'));
        }
    }

    rows(rows) {
        const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
        const value = (v) => (v === undefined || v === null ? '–' : typeof v === 'object' ? JSON.stringify(v) : String(v));
        const numbers = new Set(names.filter((name) => rows.every((row) => row[name] === null || row[name] === undefined || typeof row[name] === 'number')));
        return h('table', { class: 'plain' }, h('thead', null, h('tr', null, names.map((name) => h('th', { scope: 'col', class: numbers.has(name) ? 'number' : null }, name)))),
            h('tbody', null, rows.map((row) => h('tr', null, names.map((name) => h('td', { class: numbers.has(name) ? 'number' : null }, value(row[name])))))));
    }
}
