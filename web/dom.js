// dom.js: the few helpers by which the pages make and change elements. Text is always set as text, never parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/** An element. Properties: class, dataset, on* (a listener), and attributes; children: elements, texts, lists of them. */
export function h(tag, properties, ...children) {
    return fill(document.createElement(tag), properties, children);
}

export function s(tag, properties, ...children) {
    return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
    for (const [name, value] of Object.entries(properties || {})) {
        if (value === undefined || value === null || value === false)
            continue;
        if (name.startsWith('on'))
            element.addEventListener(name.slice(2), value);
        else if (name === 'dataset')
            Object.assign(element.dataset, value);
        else
            element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return element;
}

/** Set a text, if it is another: most figures do not change from one second to the next. */
export function text(element, words) {
    const value = String(words);
    if (element.textContent !== value)
        element.textContent = value;
}

export function show(element, shown) {
    if (element.hidden === shown)
        element.hidden = !shown;
}

/** Make the children of parent those of items, in their order. An element stays as long as its item's key does. */
export function keyed(parent, items, keyOf, make, update) {
    const kept = parent.keyedChildren || (parent.keyedChildren = new Map());
    const seen = new Set();
    let at = parent.firstElementChild;
    for (const item of items) {
        const key = String(keyOf(item));
        seen.add(key);
        let element = kept.get(key);
        if (!element) {
            element = make(item);
            kept.set(key, element);
        }
        if (element === at)
            at = at.nextElementSibling;
        else
            parent.insertBefore(element, at);
        update?.(element, item);
    }
    for (const [key, element] of kept) {
        if (!seen.has(key)) {
            element.remove();
            kept.delete(key);
        }
    }
}

const paths = {
    overview: 'M4 13h6V4H4zm0 7h6v-5H4zm10 0h6v-9h-6zm0-16v5h6V4z',
    lanes: 'M4 6h16M4 12h10M4 18h13M17.5 12h2.5',
    views: 'M4 5h16v14H4zM4 10h16M10 10v9',
    events: 'M5 4v16M5 7h13l-2.5 3.5L18 14H5',
    system: 'M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.2 2.2M16.2 16.2l2.2 2.2M18.4 5.6l-2.2 2.2M7.8 16.2l-2.2 2.2',
    sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M18.4 5.6L17 7M7 17l-1.4 1.4',
    moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
    auto: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 4v16M15 5v14M18 7v10',
    alert: 'M12 4l9 16H3zM12 10v4.5M12 17.2v.3',
    check: 'M5 12.5l4.5 4.5L19 7.5',
    back: 'M14 6l-6 6 6 6',
};

export function icon(name) {
    return s('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, s('path', { d: paths[name] }));
}

/** What a place shows when it has nothing to show: what that means, and what to do. */
export function empty(title, advice, kind = 'empty') {
    return h('div', { class: `empty ${kind}` }, h('strong', null, title), h('p', null, advice));
}

export function card(title, properties, ...children) {
    const { note, id, ...rest } = properties || {};
    const heading = h('h2', { id }, title);
    return h('section', { ...rest, class: `card ${rest.class || ''}`, 'aria-label': title },
        h('div', { class: 'card-head' }, heading, note || null), ...children);
}

/** A bar that fillMeter fills. */
export function meter(kind = '') {
    return h('span', { class: `meter ${kind}`, 'aria-hidden': 'true' }, h('i'));
}

/** Fill the meter in element to a share from 0 to 1. */
export function fillMeter(element, share) {
    const bar = element.querySelector('.meter > i');
    const scale = `scaleX(${Math.max(0, Math.min(1, share || 0)).toFixed(3)})`;
    if (bar.style.transform !== scale)
        bar.style.transform = scale;
}

/** Indented JSON, with its names, texts and numbers marked. */
export function json(value) {
    const code = h('code');
    write(code, value, '');
    return h('pre', { class: 'json', tabindex: '0' }, code);
}

function write(to, value, indent) {
    if (value === null || typeof value !== 'object') {
        const kind = value === null ? 'null' : typeof value;
        to.append(h('span', { class: `j-${kind}` }, JSON.stringify(value)));
        return;
    }
    const list = Array.isArray(value);
    const entries = list ? value.map((item) => [null, item]) : Object.entries(value);
    if (entries.length === 0) {
        to.append(list ? '[]' : '{}');
        return;
    }
    to.append(list ? '[' : '{');
    entries.forEach(([name, item], i) => {
        to.append(`${i ? ',' : ''}\n${indent}  `);
        if (name !== null)
            to.append(h('span', { class: 'j-name' }, JSON.stringify(name)), ': ');
        write(to, item, `${indent}  `);
    });
    to.append(`\n${indent}${list ? ']' : '}'}`);
}
