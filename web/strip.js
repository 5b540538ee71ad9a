// strip.js: the numbers of a lane as cells in a row. New ones come in on the right; the row moves to the left. The first number
// that is not committed can always be seen: if very many wait for a worker, the last of them are beyond the right end.
import { colour } from './charts.js';
import { h, text } from './dom.js';
import { clock, count } from './format.js';

export const states = {
    bound: { words: 'waits for a worker' },
    leased: { words: 'leased' },
    ready: { words: 'ready' },
    committed: { words: 'committed' },
    void: { words: 'void' },
    stalled: { words: 'stalled' },
};

const CELL = 7, GAP = 2, HEIGHT = 34, PITCH = CELL + GAP;
const shown = { taken: 'ready', 'backing off': 'stalled' };
const stillness = matchMedia('(prefers-reduced-motion: reduce)');

const stateOf = (row) => (row.void ? 'void' : shown[row.state] || row.state);

export class Strip {
    constructor(label) {
        this.label = label;
        this.rows = new Map();
        this.right = null; // the number at the right end, as it is drawn; it moves to goal()
        this.target = 0;   // the last number
        this.first = 1;    // the first one that is not committed
        this.pointed = null;
        this.frame = 0;
        this.colours = null;
        this.canvas = h('canvas', { class: 'strip', tabindex: '0', role: 'img', 'aria-label': label,
            onpointermove: (event) => this.point(this.numberAt(event.offsetX)), onpointerleave: () => this.point(null),
            onkeydown: (event) => this.press(event), onblur: () => this.point(null) });
        this.line = h('p', { class: 'strip-line', 'aria-live': 'polite' }, '\u00a0');
        this.element = h('div', { class: 'strip-box' }, this.canvas, this.line);
        new ResizeObserver(() => this.paint()).observe(this.canvas);
        addEventListener('pawl-theme', () => { this.colours = null; this.paint(); });
    }

    reset() {
        this.rows.clear();
        this.right = null;
        this.target = 0;
        this.paint();
    }

    /** rows: of the server, any order. Numbers below all of them that were seen before stay as they were: committed. */
    update(rows) {
        const open = rows.filter((row) => row.state !== 'committed').map((row) => Number(row.number));
        const last = Math.max(this.target, ...rows.map((row) => Number(row.number)));
        const first = open.length ? Math.min(...open) : last + 1;
        for (const [number, row] of this.rows) {
            if (number < last - 600)
                this.rows.delete(number);
            else if (number < first && row.state !== 'committed')
                this.rows.set(number, { ...row, state: 'committed' });
        }
        for (const row of rows)
            this.rows.set(Number(row.number), row);
        this.first = first;
        this.target = last;
        if (this.right === null || stillness.matches || Math.abs(this.goal() - this.right) > 400)
            this.right = this.goal();
        this.describe(rows);
        this.paint();
    }

    /** The number that belongs at the right end. */
    goal() {
        return Math.min(this.target, this.first + Math.floor(this.canvas.clientWidth / PITCH * 0.75));
    }

    describe(rows) {
        const counts = {};
        for (const row of rows)
            counts[stateOf(row)] = (counts[stateOf(row)] || 0) + 1;
        delete counts.committed;
        const words = Object.entries(counts).map(([name, n]) => `${n} ${states[name]?.words || name}`).join(', ');
        this.summary = this.target === 0 ? 'no operation yet in this partition'
            : `up to number ${count(this.target)}: ${words || 'all committed'}`;
        this.canvas.setAttribute('aria-label', `${this.label}, ${this.summary}`);
        if (this.pointed === null)
            text(this.line, this.summary);
    }

    numberAt(x) {
        const number = Math.round(this.right - (this.canvas.clientWidth - x - CELL / 2) / PITCH);
        return number >= 1 && number <= this.target ? number : null;
    }

    press(event) {
        const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[event.key];
        if (!step)
            return;
        event.preventDefault();
        const least = Math.max(1, Math.ceil(this.right - this.canvas.clientWidth / PITCH) + 1);
        this.point(Math.min(this.goal(), Math.max(least, (this.pointed ?? this.goal() + 1) + step)));
    }

    point(number) {
        this.pointed = number;
        this.canvas.classList.toggle('pointed', number !== null);
        if (number === null) {
            text(this.line, this.summary || '\u00a0');
        } else {
            const row = this.rows.get(number);
            const parts = [`number ${count(number)}`, row ? (row.void ? 'void' : row.state) : 'committed'];
            if (row?.projector)
                parts.push(row.projector);
            if (row?.event)
                parts.push(`event ${count(row.event)}`);
            if (Number(row?.attempt) > 1)
                parts.push(`attempt ${row.attempt}`);
            if (row?.ends_at)
                parts.push(`lease ends ${clock(new Date(row.ends_at))}`);
            if (row?.committed_at)
                parts.push(`committed ${clock(new Date(row.committed_at))}`);
            if (row?.words)
                parts.push(row.words);
            text(this.line, parts.join(' · '));
        }
        this.paint();
    }

    paint() {
        if (!this.frame)
            this.frame = requestAnimationFrame(() => this.draw());
    }

    palette() {
        const named = Object.keys(states).map((name) => [name, colour(`--s-${name}`)]);
        this.colours ||= { ...Object.fromEntries(named), line: colour('--line-2'), ink: colour('--ink'), watermark: colour('--accent') };
        return this.colours;
    }

    /** One cell: filled, or only its outline if nobody works on it yet; a void is crossed out. */
    cell(context, x, state, palette) {
        context.fillStyle = palette[state] || palette.bound;
        context.strokeStyle = palette[state] || palette.bound;
        context.lineWidth = 1.25;
        context.beginPath();
        if (state === 'bound' || state === 'void') {
            context.roundRect(x + 0.75, 0.75, CELL - 1.5, HEIGHT - 1.5, 2.5);
            context.stroke();
            if (state === 'void') {
                context.beginPath();
                context.moveTo(x + 1.5, HEIGHT - 2);
                context.lineTo(x + CELL - 1.5, 2);
                context.stroke();
            }
        } else {
            context.roundRect(x, 0, CELL, HEIGHT, 2.5);
            context.fill();
        }
    }

    draw() {
        this.frame = 0;
        const width = this.canvas.clientWidth, scale = devicePixelRatio || 1;
        if (width === 0)
            return;
        if (this.canvas.width !== Math.round(width * scale)) {
            this.canvas.width = Math.round(width * scale);
            this.canvas.height = Math.round((HEIGHT + 8) * scale);
        }
        const context = this.canvas.getContext('2d');
        context.setTransform(scale, 0, 0, scale, 0, 4 * scale);
        context.clearRect(0, -4, width, HEIGHT + 8);
        const goal = this.goal();
        const moving = this.right !== null && Math.abs(goal - this.right) > 0.02;
        if (moving)
            this.right += (goal - this.right) * 0.14;
        else
            this.right = this.target ? goal : null;
        this.cells(context, width, this.palette());
        if (moving)
            this.paint();
    }

    cells(context, width, palette) {
        const right = this.right ?? 0;
        for (let number = Math.ceil(right); number > right - width / PITCH - 1; number--) {
            const x = width - CELL - (right - number) * PITCH;
            if (x < -CELL || x > width)
                continue;
            if (number < 1 || number > this.target) {
                context.fillStyle = palette.line;
                context.fillRect(x + CELL / 2 - 1, HEIGHT / 2 - 1, 2, 2);
                continue;
            }
            const row = this.rows.get(number);
            this.cell(context, x, row ? stateOf(row) : 'committed', palette);
            if (number === this.pointed) {
                context.strokeStyle = palette.ink;
                context.lineWidth = 1.5;
                context.strokeRect(x - 1, -2.5, CELL + 2, HEIGHT + 5);
            }
        }
    }
}
