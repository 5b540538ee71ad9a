// history.js: the figures of the last minutes, one row a second, and the rates that follow from two rows.

const SECONDS = 900;

/** How fast a number of each row has grown, into rates. */
function measure(rates, before, now, key, name, seconds) {
    const old = new Map(before.map((row) => [row[key], Number(row[name])]));
    for (const row of now) {
        const grown = Math.max(0, Number(row[name]) - (old.get(row[key]) ?? Number(row[name]))) / seconds;
        const smooth = (rates.get(row[key]) ?? grown) * 0.6 + grown * 0.4;
        rates.set(row[key], smooth < 0.05 ? 0 : smooth);
    }
}

export class History {
    constructor() {
        this.rows = [];
        this.previous = null;
        this.partitionRates = new Map();
        this.laneRates = new Map();
    }

    add(figures) {
        const before = this.previous;
        const seconds = before ? figures.time - before.time : 0;
        this.previous = figures;
        if (before && seconds <= 0)
            return;
        this.rows.push({
            time: figures.time, rate: figures.rate, p50: figures.p50, p99: figures.p99, sync: figures.log.p99,
            failed: (before && Math.max(0, figures.failed - before.failed) / seconds) || null, // no line where nothing failed
        });
        if (this.rows.length > SECONDS)
            this.rows.shift();
        if (!before)
            return;
        measure(this.partitionRates, before.partitions, figures.partitions, 'partition', 'offset', seconds);
        measure(this.laneRates, before.lanes, figures.lanes, 'key', 'operations', seconds);
    }

    column(name) {
        return this.rows.map((row) => row[name]);
    }

    /** Events a second, smoothed. */
    partitionRate(partition) {
        return this.partitionRates.get(partition) || 0;
    }

    /** Operations a second, smoothed. */
    laneRate(key) {
        return this.laneRates.get(key) || 0;
    }
}
