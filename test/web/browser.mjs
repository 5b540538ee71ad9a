// browser.mjs: Chromium, driven by playwright-core, and what is wrong in any page whatever it shows.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));
export const KEPT = fileURLToPath(new URL('../../build/web/', import.meta.url)); // screenshots; and what npm gets
export const PATIENCE = 600000; // ms; a machine that others keep busy is slow, not broken; one stood still for two minutes

const CHROMIUM = '/usr/bin/chromium';
// Without these Chromium looks for its maker's servers, and as root it does not start.
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'];

/** Why the browser cannot be had; null: it can. */
export function missing() {
    if (!existsSync(CHROMIUM))
        return `${CHROMIUM} is not there`;
    mkdirSync(KEPT, { recursive: true });
    try {
        for (const name of ['package.json', 'package-lock.json'])
            copyFileSync(join(HERE, name), join(KEPT, name));
        if (!existsSync(join(KEPT, 'node_modules', 'playwright-core')))
            execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--silent'], { cwd: KEPT, stdio: 'ignore' });
    } catch (error) {
        return `npm cannot get playwright-core: ${error.message}`;
    }
    return null;
}

export async function launch() {
    const { chromium } = createRequire(join(KEPT, 'package.json'))('playwright-core');
    return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

export const laptop = { viewport: { width: 1280, height: 860 }, colorScheme: 'light' };
export const phone = { viewport: { width: 390, height: 844 }, colorScheme: 'dark', deviceScaleFactor: 2, hasTouch: true, isMobile: true };

/** A page that is being watched: whatever it complains of, and whoever else it asks, is in complaints. */
export async function openPage(browser, url, how = laptop) {
    const context = await browser.newContext(how);
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.complaints = [];
    page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning')
            page.complaints.push(message.text());
    });
    page.on('pageerror', (error) => page.complaints.push(String(error.stack)));
    page.on('request', (request) => {
        if (new URL(request.url()).host !== new URL(url).host)
            page.complaints.push(`asks ${request.url()}`);
    });
    await page.addInitScript(() => {
        addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    });
    await page.goto(url);
    return page;
}

export async function screenshot(page, name) {
    await page.screenshot({ path: join(KEPT, `${name}.png`), animations: 'disabled' });
}

/** A condition on what the page shows, looked at until it holds; returns what it returned. */
export async function until(words, condition) {
    const end = Date.now() + PATIENCE;
    for (;;) {
        const value = await condition();
        if (value)
            return value;
        if (Date.now() > end)
            throw new Error(`it does not happen: ${words}`);
        await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
}
