// api.js: the server, as the page sees it. The only module that knows paths, headers and the server's JSON.
//
// A token, if the server asks for one, is kept in sessionStorage and sent with every request. Streams are read by fetch
// and not by EventSource, which cannot send it.

const KEPT = 'pawl-token';
const SILENCE_MS = 45000; // the server says something at least every 15 s
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

export class Failure extends Error {
    constructor(status, error) {
        super(error.message);
        this.status = status; // of HTTP; 0: there was no answer
        this.code = error.code;
        this.where = error.where;
    }
}

// --- tokens ---

let prompt = null; // (words) => Promise of a token
let asking = null;

/** Set what asks the user for a token. */
export function askTokenBy(ask) {
    prompt = ask;
}

/** Ask once for all requests that were refused. refused: the token that they had sent. */
async function renewToken(refused) {
    if ((sessionStorage.getItem(KEPT) || '') !== (refused || ''))
        return;
    asking ||= prompt(refused ? 'The server does not know this token. Has it been revoked?' : null)
        .then((token) => sessionStorage.setItem(KEPT, token))
        .finally(() => { asking = null; });
    await asking;
}

// --- requests ---

async function failureOf(answer) {
    const body = await answer.text();
    try {
        return new Failure(answer.status, JSON.parse(body).error);
    } catch {
        return new Failure(answer.status, { message: body.trim() || `the server answered with ${answer.status}` });
    }
}

async function send(path, { headers = {}, ...options } = {}) {
    for (;;) {
        const token = sessionStorage.getItem(KEPT);
        let answer;
        try {
            answer = await fetch(path, {
                ...options, cache: 'no-store',
                headers: token ? { ...headers, Authorization: `Bearer ${token}` } : headers,
            });
        } catch (error) {
            if (error.name === 'AbortError')
                throw error;
            throw new Failure(0, { message: 'the server cannot be reached' });
        }
        if (answer.status === 401) {
            await renewToken(token);
            continue;
        }
        if (!answer.ok)
            throw await failureOf(answer);
        return answer;
    }
}

async function object(path, options) {
    return (await send(path, options)).json();
}

/** A list: JSON lines, and the cursor of the next page. */
async function lines(path, options) {
    const answer = await send(path, options);
    const rows = (await answer.text()).split('\n').filter(Boolean).map((line) => JSON.parse(line));
    return { rows, next: answer.headers.get('Pawl-Next') };
}

function query(values) {
    const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
    return given.length ? `?${new URLSearchParams(given)}` : '';
}

const segment = encodeURIComponent;

// --- streams ---

/** Hand each event of a text/event-stream to take(data, id), until it ends. Lines may come in any pieces. */
async function readEvents(body, take, heard) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '', data = [], id = null;
    for (;;) {
        const { value, done } = await reader.read();
        if (done)
            return;
        heard();
        const parts = (rest + value).split('\n');
        rest = parts.pop();
        for (const part of parts) {
            const line = part.endsWith('\r') ? part.slice(0, -1) : part;
            if (line === '') {
                if (data.length)
                    take(data.join('\n'), id);
                data = [];
            } else if (line.startsWith('data:')) {
                data.push(line.slice(line[5] === ' ' ? 6 : 5));
            } else if (line.startsWith('id:')) {
                id = line.slice(3).trim();
            }
        }
    }
}

/** Follow a stream, and go on with it after every break, until stop() is called.
 *  take(object): an event. state(name, details): 'live', 'waiting' ({ ms, failure }), 'refused' ({ failure }). */
function follow(path, take, state) {
    let stopped = false, failures = 0, last = null, controller = null;
    const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
    async function once() {
        controller = new AbortController();
        let silence = null;
        const heard = () => {
            clearTimeout(silence);
            silence = setTimeout(() => controller.abort(), SILENCE_MS);
        };
        heard();
        try {
            const headers = { Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) };
            const answer = await send(path, { headers, signal: controller.signal });
            state('live');
            await readEvents(answer.body, (data, id) => {
                failures = 0;
                last = id || last;
                if (!stopped)
                    take(JSON.parse(data));
            }, heard);
        } finally {
            clearTimeout(silence);
        }
    }
    (async () => {
        while (!stopped) {
            let failure = null;
            try {
                await once();
            } catch (error) {
                failure = error;
            }
            if (stopped)
                return;
            if (failure instanceof Failure && failure.status >= 400 && failure.status < 500) {
                state('refused', { failure });
                return;
            }
            const ms = RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)];
            state('waiting', { ms, failure });
            await pause(ms);
        }
    })();
    return () => {
        stopped = true;
        controller?.abort();
    };
}

// --- what the server has ---

/** GET /v1/figures as the pages use it. */
export function adaptFigures(raw) {
    const failed = Object.values(raw.commands.failed).reduce((sum, n) => sum + Number(n), 0);
    const latency = raw.commands.latency.count ? raw.commands.latency : null;
    const recent = raw.commands.latency_10s.count ? raw.commands.latency_10s : null;
    return {
        time: Date.parse(raw.time) / 1000,
        node: raw.node,
        rate: Number(raw.commands.rate),
        p50: latency ? Number(latency.p50) : null,
        p99: latency ? Number(latency.p99) : null,
        recent: recent ? { p50: Number(recent.p50), p99: Number(recent.p99) } : null,
        answered: Number(raw.commands.ok) + Number(raw.commands.repeated),
        failed,
        failures: raw.commands.failed,
        log: {
            syncs: raw.log.syncs_10s,
            p50: raw.log.sync_10s.count ? raw.log.sync_10s.p50 : null,
            p99: raw.log.sync_10s.count ? raw.log.sync_10s.p99 : null,
            batch: raw.log.batch_mean_10s,
            kafka: raw.log.kafka || null,
        },
        checkpoint: raw.checkpoint,
        partitions: raw.partitions.map((p) => ({ ...p, offset: Number(p.offset) })),
        shards: raw.shards,
        lanes: raw.lanes.map((lane) => ({ ...lane, key: `${lane.lane}/${lane.generation}` })),
        views: raw.views,
        alerts: raw.alerts,
        stores: raw.stores,
    };
}

export const server = {
    figures: (take, state) => follow('/v1/figures', (raw) => take(adaptFigures(raw)), state),

    workspaces: (cursor) => lines(`/v1/ws${query({ limit: 200, cursor })}`),
    workspace: (wsid) => object(`/v1/ws/${segment(wsid)}`),

    events: (wsid, from, limit) => lines(`/v1/ws/${segment(wsid)}/events${query({ from, limit })}`),
    followEvents: (wsid, from, take, state) => follow(`/v1/ws/${segment(wsid)}/events${query({ from })}`, take, state),

    record: (wsid, id, type) => object(`/v1/ws/${segment(wsid)}/records/${segment(id)}${query({ type })}`),

    /** What a lane has made of an event. Operations are in the order of their events: it is found by halving. */
    async operations(lane, partition, event) {
        const read = async (from, limit) => (await lines(`/v1/operations${query({ lane: lane.lane, partition, from, limit })}`)).rows;
        let low = 1, high = Number(lane.operations) + 1; // the first one that is not before the event is between them
        while (low < high) {
            const middle = Math.floor((low + high) / 2);
            const [found] = await read(middle, 1);
            if (!found || Number(found.event) >= Number(event))
                high = middle;
            else
                low = middle + 1;
        }
        return (await read(low, 64)).filter((row) => String(row.event) === String(event));
    },

    /** The numbers of a lane in a partition: from 0 those under way, else all from this one on. */
    leases: (lane, partition, from, limit) =>
        lines(`/v1/lanes/${segment(lane)}/leases${query({ partition, from, limit })}`),

    systemTables: ['nodes', 'tablets', 'views', 'view_building_tasks', 'view_build_status', 'built_views',
        'view_building_processing_base'],
    system: (table) => lines(`/v1/system/${segment(table)}`),
};
