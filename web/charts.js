// charts.js: lines over the last minutes, by uPlot. Colours come from the style sheet, and follow its scheme.
import uPlot from './uplot.js';
import { clock } from './format.js';
import { h, text } from './dom.js';

const HEIGHT = 208;

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A number not less than n that reads well at the end of an axis. */
function ceiling(n) {
    const power = 10 ** Math.floor(Math.log10(n));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= n * 1.05) * power || n;
}

/** 5.00 ms as 5 ms: the numbers of an axis are round. */
const trim = (words) => words.replace(/(\.\d*?)0+(?=\s|$)/, '$1').replace(/\.(?=\s|$)/, '');

/** A chart with its legend, which shows the values under the pointer, or the newest ones.
 *  series: [{ label, colour, fill, column, none }]; column: of the history (history.js); none: what the legend says where it has no value. least: what the axis shows at least. */
export class Chart {
    constructor({ label, series, format, least }) {
        this.series = series;
        this.format = format;
        this.least = least;
        this.span = 300;
        this.columns = null;
        this.values = series.map(() => h('b', null, '–'));
        this.when = h('span', { class: 'legend-when' });
        this.legend = h('div', { class: 'legend' }, series.map((one, i) =>
            h('span', null, h('i', { class: `swatch ${one.colour.slice(2)}` }), one.label, ' ', this.values[i])), this.when);
        this.host = h('div', { class: 'chart', role: 'img', 'aria-label': label });
        this.element = h('div', { class: 'chart-box' }, this.legend, this.host);
        this.plot = null;
        new ResizeObserver(() => this.resize()).observe(this.host);
        addEventListener('pawl-theme', () => this.rebuild());
    }

    resize() {
        const width = this.host.clientWidth;
        if (width === 0)
            return;
        if (!this.plot)
            this.build(width);
        else if (this.plot.width !== width)
            this.plot.setSize({ width, height: HEIGHT });
    }

    rebuild() {
        this.plot?.destroy();
        this.plot = null;
        this.resize();
    }

    build(width) {
        const axis = colour('--ink-3'), line = colour('--line');
        const font = `11px ${colour('--mono')}`;
        this.plot = new uPlot({
            width, height: HEIGHT, padding: [10, 12, 0, 0],
            legend: { show: false },
            cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'pawl' }, points: { size: 7 } },
            scales: {
                x: { time: true, range: () => this.range() },
                y: { range: (u, low, high) => [0, ceiling(Math.max(high || 0, this.least))] },
            },
            axes: [
                { stroke: axis, font, grid: { show: false }, ticks: { show: false }, size: 26, space: 72,
                  values: (u, splits) => splits.map((t) => (t > u.scales.x.max - (u.scales.x.max - u.scales.x.min) * 0.05 ? '' : clock(t, splits[1] - splits[0] < 60))) },
                { stroke: axis, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, size: 62, space: 42, gap: 8,
                  values: (u, splits) => splits.map((n) => (n === 0 ? '0' : trim(this.format(n)))) },
            ],
            series: [{}, ...this.series.map((one) => ({
                stroke: colour(one.colour), width: 1.75, points: { show: false }, spanGaps: false,
                fill: one.fill ? colour(one.fill) : undefined,
            }))],
            hooks: { setCursor: [(u) => this.point(u.cursor.idx)] },
        }, this.columns || [[], ...this.series.map(() => [])], this.host);
        this.plot.over.setAttribute('aria-hidden', 'true');
    }

    range() {
        const times = this.columns?.[0];
        const end = times?.length ? times[times.length - 1] : Date.now() / 1000;
        const age = times?.length ? end - times[0] : 0;
        return [end - Math.min(this.span, Math.max(60, age)), end];
    }

    point(index) {
        const times = this.columns?.[0] || [];
        const pointed = index !== null && index !== undefined && index < times.length;
        const at = pointed ? index : times.length - 1;
        this.series.forEach((one, i) => {
            const value = this.columns?.[i + 1][at];
            text(this.values[i], value === null || value === undefined ? one.none || '–' : this.format(value));
        });
        text(this.when, pointed ? clock(times[at]) : '');
    }

    update(history, span) {
        this.span = span;
        this.columns = [history.column('time'), ...this.series.map((one) => history.column(one.column))];
        if (this.plot) {
            this.plot.setData(this.columns, true);
            this.point(this.plot.cursor.left >= 0 ? this.plot.cursor.idx : null);
        }
    }
}
