// views.js: the views, and how far each covers its base, tablet by tablet.
import { empty, fillMeter, h, keyed, meter, text } from './dom.js';
import { count, duration, percent, rate } from './format.js';

export function viewBadge(element, view) {
    const kind = { built: 'good', failed: 'bad', building: 'busy', rebuilding: 'busy' }[view.state] || 'warm';
    text(element, view.state);
    element.className = `badge ${kind}`;
}

const figures = [
    ['Rows', (v) => count(v.rows)],
    ['Base rows read', (v) => (Number(v.tasks) ? `${count(v.rows_done)} of ${count(v.rows_total)}` : '–')],
    ['Rate', (v) => (v.state === 'built' ? '–' : `${rate(v.rate)}/s`)],
    ['Time left', (v) => (v.state === 'built' ? '–' : v.eta_seconds === null ? 'not known yet' : duration(v.eta_seconds))],
    ['Tasks left', (v) => (Number(v.tasks) ? `${count(v.tasks_left)} of ${count(v.tasks)}` : '–')],
    ['Left out', (v) => count(v.rows_failed)],
];

/** As many cells a row that the rows are full, if that can be. */
function columns(count) {
    const most = innerWidth < 500 ? 24 : 36;
    for (let n = most; n > most / 2; n--)
        if (count % n === 0)
            return n;
    return Math.min(most, Math.max(8, count));
}

/** One cell a tablet, filled as far as the view covers it. */
function updateMap(map, view) {
    const tablets = view.tablets || [];
    while (map.children.length > tablets.length)
        map.lastChild.remove();
    while (map.children.length < tablets.length)
        map.append(h('i'));
    let covered = 0;
    tablets.forEach((share, i) => {
        const full = Number(share) >= 1;
        covered += full ? 1 : 0;
        map.children[i].className = full ? 'full' : Number(share) > 0 ? 'part' : '';
    });
    map.style.setProperty('--columns', columns(tablets.length));
    map.hidden = tablets.length === 0;
    map.setAttribute('aria-label', `${covered} of ${tablets.length} tablets covered`);
    return `${count(covered)} of ${count(tablets.length)} tablets`;
}

class ViewCard {
    constructor(view) {
        this.badge = h('span', { class: 'badge' });
        this.percent = h('b', { class: 'big' }, '–');
        this.words = h('p', { class: 'view-words', hidden: true });
        this.map = h('div', { class: 'tablets', role: 'img' });
        this.tablets = h('span', { class: 'quiet' });
        this.values = figures.map(([name]) => h('div', null, h('dt', null, name), h('dd', null, '–')));
        this.element = h('section', { class: 'card view', 'aria-label': view.view, dataset: { view: view.view } },
            h('div', { class: 'card-head' }, h('h2', null, view.view), this.badge, h('span', { class: 'quiet' }, `over ${view.base}`)),
            h('div', { class: 'view-progress' }, this.percent, h('div', { class: 'view-bar' }, meter('tall'), this.tablets)),
            this.map, this.words, h('dl', { class: 'figures' }, this.values));
    }

    update(view) {
        viewBadge(this.badge, view);
        text(this.percent, percent(view.percent));
        fillMeter(this.element, Number(view.percent) / 100);
        text(this.tablets, updateMap(this.map, view));
        figures.forEach(([, value], i) => text(this.values[i].lastChild, value(view)));
        text(this.words, view.words || '');
        this.words.hidden = !view.words;
        this.words.classList.toggle('trouble', view.state === 'failed');
        this.element.classList.toggle('building', view.state === 'building' || view.state === 'rebuilding');
    }
}

export class Views {
    title = 'Views';
    cards = new Map();

    constructor() {
        this.list = h('div', { class: 'view-grid' });
        this.none = empty('No views yet', 'Make one while commands go on: pawl view create NAME --base TYPE --key FIELDS');
        this.none.hidden = true;
        this.element = h('div', { class: 'page' }, this.none, this.list);
    }

    /** Views that are being built come first. */
    update(f) {
        const order = (view) => (view.state === 'built' ? 1 : 0);
        const views = [...f.views].sort((a, b) => order(a) - order(b) || a.view.localeCompare(b.view));
        this.none.hidden = views.length > 0;
        keyed(this.list, views, (view) => view.view, (view) => {
            const made = new ViewCard(view);
            this.cards.set(view.view, made);
            return made.element;
        }, (_, view) => this.cards.get(view.view).update(view));
    }
}
