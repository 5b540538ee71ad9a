// shop.mjs: a real `pawl serve` with the demo shop, and clerks who send it commands.
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PAWL = process.env.PAWL;
const TRIES_MAX = 5; // of a request whose connection was closed
const SCHEMA = fileURLToPath(new URL('../../examples/shop/shop.json', import.meta.url));

/** How long a clerk or a worker takes for something; nobody waits for it. */
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

export const schema = () => JSON.parse(readFileSync(SCHEMA, 'utf8'));

export class Shop {
    children = [];
    open = true;
    sent = 0;
    busy = []; // clerks and workers
    failure = null; // what the first of them has met

    constructor(tenants) {
        this.folder = mkdtempSync(join(tmpdir(), 'pawl-web-'));
        this.dir = join(this.folder, 'shop.pawl');
        this.tenants = tenants;
        this.verb('init', '--partitions', '4');
        this.verb('schema', 'apply', SCHEMA);
    }

    verb(...words) {
        return execFileSync(PAWL, [...words, '--dir', this.dir], { encoding: 'utf8' });
    }

    /** Start the server; on the port that it had before, if it had one. */
    async serve(...options) {
        const process = spawn(PAWL, ['serve', '--dir', this.dir, '--listen', `127.0.0.1:${this.port || 0}`, '--log-level', 'error', ...options],
            { stdio: ['ignore', 'pipe', 'inherit'] });
        this.children.push(process);
        this.process = process;
        for await (const line of createInterface({ input: process.stdout })) {
            this.url = line.match(/(http:\/\/127\.0\.0\.1:(\d+))/)[1];
            this.port = new URL(this.url).port;
            return;
        }
        throw new Error('the server does not start');
    }

    kill() {
        return new Promise((resolve) => {
            this.process.once('exit', resolve);
            this.process.kill('SIGKILL');
        });
    }

    async askOnce(method, path, body) {
        const answer = await fetch(this.url + path, {
            method, body: body && JSON.stringify(body), headers: body ? { 'Content-Type': 'application/json' } : {} });
        return { ok: answer.ok, status: answer.status, text: await answer.text() };
    }

    /** Everything that is asked here is safe to ask again. On a machine that stands still for a minute, the server has closed
     *  connections as idle that requests are just written to. */
    async ask(method, path, body) {
        for (let tries = 1; ; tries++) {
            try {
                const { ok, status, text } = await this.askOnce(method, path, body);
                if (ok)
                    return text;
                throw Object.assign(new Error(`${method} ${path}: ${status} ${text}`), { code: JSON.parse(text).error.code });
            } catch (error) {
                if (error.code || tries === TRIES_MAX)
                    throw error;
            }
        }
    }

    async command(wsid, body) {
        const answer = JSON.parse(await this.ask('POST', `/v1/ws/${wsid}/commands`, { idempotency_key: randomUUID(), ...body }));
        this.sent++;
        return answer;
    }

    async createTenants() {
        for (let wsid = 1; wsid <= this.tenants; wsid++)
            await this.ask('PUT', `/v1/ws/${wsid}`, { kind: 'shop.tenant' });
    }

    async addCustomer(wsid, name, more = {}) {
        const answer = await this.command(wsid, { command: 'shop.AddCustomer',
            records: [{ id: 1, type: 'shop.Customer', fields: { name } }], ...more });
        return answer.ids['1'];
    }

    placeOrder(wsid, customer, cents, more = {}) {
        return this.command(wsid, { command: 'shop.PlaceOrder',
            argument: { id: 1, customer, cents, lines: [{ id: 2, qty: 1, cents }] },
            records: [{ id: 3, type: 'shop.Invoice', fields: { order: 1, customer, cents } }], ...more });
    }

    keepBusy(work) {
        this.busy.push(work.catch((error) => { this.failure ||= error; }));
    }

    /** Clerks who work until close(), at the pace of people. */
    employ(clerks) {
        const work = async (clerk) => {
            for (let round = 0; this.open; round++) {
                const wsid = 1 + (clerk + round * clerks) % this.tenants;
                const customer = await this.addCustomer(wsid, `Customer ${clerk}/${round}`, { actor: `till-${clerk}` });
                for (let i = 0; i < 4 && this.open; i++) {
                    await this.placeOrder(wsid, customer, 100 + (round * 37 + i * 11) % 900, { actor: `till-${clerk}` });
                    if (i === 3)
                        await this.command(wsid, { command: 'shop.AskStatement', argument: { id: 1, customer }, actor: `till-${clerk}` });
                    await pause(5 + Math.random() * 10);
                }
            }
        };
        for (let clerk = 0; clerk < clerks; clerk++)
            this.keepBusy(work(clerk));
    }

    /** Workers outside, who write statements: each takes its time, so that the window of the lane can be seen. */
    hire(workers) {
        const lease = (name, l, body) => this.ask('POST', `/v1/leases/${l.partition}/${l.lane}/${l.number}/${name}`, body);
        const write = async () => {
            while (this.open) {
                const text = await this.ask('POST', '/v1/leases', { projector: 'shop.statements', duration: '60s', wait: '2s' });
                if (text === '')
                    continue;
                const l = JSON.parse(text);
                await pause(80 + Math.random() * 500);
                const statement = { upsert: 'shop.Statement', key: { customer: l.event.argument.customer },
                    set: { statements: { expr: 'coalesce(statements, 0) + 1' }, text: 'Dear customer' } };
                await lease('commit', l, { operation: l.operation, writes: [statement] }).catch((error) => {
                    if (error.code !== 'PAWL_EFENCED') // another has it; take the next
                        throw error;
                });
            }
        };
        for (let i = 0; i < workers; i++)
            this.keepBusy(write());
    }

    async close() {
        this.open = false;
        await Promise.all(this.busy);
        for (const child of this.children)
            child.kill('SIGKILL');
        rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
        if (this.failure)
            throw this.failure;
    }
}
