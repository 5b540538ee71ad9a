// format.js: numbers, durations and times as people read them. All digits are grouped in the same way everywhere.

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** A count: 1,234,567, and from ten millions on 12.3 M. */
export function count(n) {
    n = Number(n);
    if (!Number.isFinite(n))
        return '–';
    if (Math.abs(n) >= 1e9)
        return `${(n / 1e9).toFixed(2)} G`;
    return Math.abs(n) >= 1e7 ? `${(n / 1e6).toFixed(1)} M` : grouped.format(n);
}

/** A number a second: one decimal if it is small. */
export function rate(n) {
    n = Number(n);
    return n > 0 && n < 10 ? n.toFixed(1) : count(Math.round(n));
}

/** A duration in seconds as [number, unit]. */
export function durationParts(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(Number(seconds)))
        return ['–', ''];
    const s = Number(seconds);
    if (s === 0)
        return ['0', 'ms'];
    if (s < 0.001)
        return [(s * 1e6).toFixed(0), 'µs'];
    if (s < 0.01)
        return [(s * 1e3).toFixed(2), 'ms'];
    if (s < 1)
        return [(s * 1e3).toFixed(s < 0.1 ? 1 : 0), 'ms'];
    if (s < 60)
        return [s.toFixed(s < 10 ? 2 : 1), 's'];
    if (s < 3600)
        return [`${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, '0')}`, 'min'];
    if (s < 86400)
        return [(s / 3600).toFixed(1), 'h'];
    return [(s / 86400).toFixed(1), 'd'];
}

export function duration(seconds) {
    const [number, unit] = durationParts(seconds);
    return unit ? `${number} ${unit}` : number;
}

export function bytesParts(n) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let value = Number(n), unit = 0;
    if (!Number.isFinite(value))
        return ['–', ''];
    while (value >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit++;
    }
    return [unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1), units[unit]];
}

export function bytes(n) {
    return bytesParts(n).join(' ');
}

export function percent(n) {
    const p = Number(n);
    return p >= 100 ? '100 %' : `${p.toFixed(1)} %`;
}

const two = (n) => String(n).padStart(2, '0');

/** A time of day, of a Date or of seconds since 1970. */
export function clock(time, withSeconds = true) {
    const date = time instanceof Date ? time : new Date(time * 1000);
    return `${two(date.getHours())}:${two(date.getMinutes())}${withSeconds ? `:${two(date.getSeconds())}` : ''}`;
}

/** An event's time: of today the time of day with milliseconds, else the day as well. */
export function moment(iso) {
    const date = new Date(iso);
    if (Number.isNaN(date.getTime()))
        return String(iso);
    const time = `${clock(date)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
    const today = date.toDateString() === new Date().toDateString();
    return today ? time : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}
