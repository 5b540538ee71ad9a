// app.js: the frame around the pages: navigation, connection, token, colour scheme.
import { askTokenBy, server } from './api.js';
import { h, icon, keyed, text } from './dom.js';
import { bytes, count } from './format.js';
import { Events } from './events.js';
import { History } from './history.js';
import { Lanes } from './lanes.js';
import { Overview } from './overview.js';
import { System } from './system.js';
import { Views } from './views.js';

const $ = (id) => document.getElementById(id);
const app = { figures: null, history: new History() };

// --- pages ---

const pages = { overview: new Overview(app), lanes: new Lanes(app), views: new Views(app), events: new Events(app), system: new System(app) };
let current = null;

const links = Object.entries(pages).map(([name, page]) => h('a', { href: `#/${name}`, dataset: { page: name } },
    icon(name), h('span', null, page.title), h('b', { class: 'nav-count', hidden: true })));
$('nav').append(...links);
for (const page of Object.values(pages)) {
    page.element.hidden = true;
    $('main').append(page.element);
}

function navigate() {
    const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
    const page = pages[name] || pages.overview;
    if (page !== current) {
        if (current) {
            current.leave?.();
            current.element.hidden = true;
        }
        current = page;
        page.element.hidden = false;
        text($('title'), page.title);
        document.title = `${page.title} · Pawl`;
        for (const link of links) {
            if (pages[link.dataset.page] === page)
                link.setAttribute('aria-current', 'page');
            else
                link.removeAttribute('aria-current');
        }
        if (app.figures)
            page.update?.(app.figures);
        page.enter?.();
        scrollTo(0, 0);
    }
    page.open?.(rest);
}
addEventListener('hashchange', navigate);
navigate();

// Keys 1 to 5 choose a page, unless somebody is writing.
addEventListener('keydown', (event) => {
    const page = Object.keys(pages)[Number(event.key) - 1];
    if (page && !event.ctrlKey && !event.metaKey && !event.altKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName))
        location.hash = `#/${page}`;
});

// --- colour scheme ---

const schemes = { auto: ['auto', 'as the system'], light: ['sun', 'light'], dark: ['moon', 'dark'] };

function showScheme() {
    const [picture, words] = schemes[document.documentElement.dataset.scheme];
    $('theme').replaceChildren(icon(picture));
    $('theme').setAttribute('aria-label', `Colour scheme: ${words}. Change it`);
    $('theme').title = `Colour scheme: ${words}`;
}

$('theme').addEventListener('click', () => {
    const names = Object.keys(schemes);
    const next = names[(names.indexOf(document.documentElement.dataset.scheme) + 1) % names.length];
    localStorage.setItem('pawl-scheme', next);
    dispatchEvent(new Event('pawl-scheme')); // theme.js
});
addEventListener('pawl-theme', showScheme);
showScheme();

// --- token ---

let answer = null;

askTokenBy((complaint) => new Promise((resolve) => {
    answer = resolve;
    connection('denied', 'Token needed');
    if (complaint)
        text($('token-words'), complaint);
    $('token-input').value = '';
    $('token').showModal();
}));
$('token-form').addEventListener('submit', () => answer($('token-input').value.trim()));
$('token').addEventListener('cancel', (event) => event.preventDefault());

// --- connection ---

function connection(state, words) {
    $('connection').dataset.state = state;
    text($('connection').lastElementChild, words);
}

function banner(words) {
    $('banner').hidden = !words;
    text($('banner'), words || '');
}

function showNode(f) {
    const facts = [['Node', f.node.directory.split('/').filter(Boolean).pop() || f.node.directory], ['Version', f.node.version], ['Memory', bytes(f.node.memory_bytes)]];
    keyed($('node'), facts, ([name]) => name, ([name]) => h('div', null, h('dt', null, name), h('dd')), (row, [, value]) => {
        text(row.lastChild, value);
        row.lastChild.title = value;
    });
    const alerts = links[0].lastChild, building = links[2].lastChild;
    const busy = f.views.filter((view) => view.state !== 'built').length;
    alerts.hidden = f.alerts.length === 0;
    text(alerts, count(f.alerts.length));
    building.hidden = busy === 0;
    text(building, count(busy));
    text($('subtitle'), f.node.writes ? '' : 'reads only');
}

server.figures((figures) => {
    app.figures = figures;
    app.history.add(figures);
    document.body.classList.add('ready');
    showNode(figures);
    current.update?.(figures);
}, (state, details) => {
    if (state === 'live') {
        connection('live', 'Live');
        banner(null);
    } else if (state === 'refused') {
        connection('denied', 'Refused');
        banner(`The server refuses to show its figures: ${details.failure.message}.`);
    } else {
        connection('waiting', 'Reconnecting');
        banner('The connection to the server is lost. The page shows what was there last, and goes on by itself as soon as the server answers.');
    }
});
