// test_page.mjs: the page in a real browser, served by a real node under load: what a person would see.
import assert from 'node:assert/strict';
import { KEPT, laptop, launch, missing, openPage, phone, screenshot, until } from './browser.mjs';
import { Shop, schema } from './shop.mjs';

const TENANTS = 24;
const dark = { ...laptop, colorScheme: 'dark' };
const tile = (page, name) => page.locator('.tile', { has: page.locator('h3', { hasText: name }) }).locator('b');
const number = async (locator) => Number((await locator.textContent()).replace(/[^\d.]/g, ''));
const live = (page) => page.locator('#connection[data-state="live"]').waitFor();
const go = (page, name) => page.locator(`.nav a[data-page="${name}"]`).click();
const age = (page) => page.evaluate(() => performance.now() / 1000);

/** A package whose projector divides; by what an event says, or by a number. */
const desk = (divisor) => ({
    schema: 1, package: 'desk',
    types: { Share: { kind: 'ODoc', fields: { of: { type: 'int64' }, among: { type: 'int64' } } } },
    commands: { Divide: { argument: 'Share' } },
    entities: { Part: { key: ['of'], fields: { of: { type: 'int64' }, part: { type: 'int64' } } } },
    projectors: { parts: { on: ['Divide'], max_attempts: 1, do: [{ upsert: 'Part', key: { of: '$event.argument.of' },
        set: { part: `$event.argument.of / ${divisor}` } }] } },
});

const cases = {
    async a_view_build_reaches_100_percent({ browser, shop }) {
        const page = await openPage(browser, `${shop.url}/#/views`, dark);
        await live(page);
        const more = schema();
        more.views.invoices_by_customer = { base: 'Invoice', key: ['customer', 'number'], include: ['cents'] };
        await shop.ask('PUT', '/v1/schema', more);
        const card = page.locator('.view[data-view="shop.invoices_by_customer"]');
        await card.waitFor();
        await until('it is seen on its way, with some tablets covered, but not all', () => card.evaluate((element) => {
            const percent = parseFloat(element.querySelector('.big').textContent);
            const full = element.querySelectorAll('.tablets .full').length;
            return percent > 0 && percent < 100 && full > 0 && full < element.querySelectorAll('.tablets i').length
                && element.querySelector('.badge').textContent === 'building';
        }));
        await screenshot(page, 'views-dark-laptop');
        await until('it is built', async () => (await card.locator('.big').textContent()) === '100 %');
        await until('and says so', async () => (await card.locator('.badge').textContent()) === 'built');
        assert.equal(await card.locator('.tablets .full').count(), await card.locator('.tablets i').count());
        return page;
    },

    async numbers_move_while_commands_come_in({ browser, shop }) {
        const page = await openPage(browser, shop.url);
        await live(page);
        await until('commands are counted', async () => (await number(tile(page, 'Commands'))) > 0);
        const events = await number(tile(page, 'Events'));
        await until('events grow', async () => (await number(tile(page, 'Events'))) > events);
        const again = await number(tile(page, 'Events'));
        await until('and grow', async () => (await number(tile(page, 'Events'))) > again);
        assert.match(await tile(page, 'Latency p99').textContent(), /\d/);
        await until('the charts have values', async () => (await page.locator('.legend b').allTextContents()).every((words) => /\d/.test(words)));
        assert.equal(await page.locator('.chart canvas').count(), 2);
        assert.equal(await page.locator('section[aria-label="Partitions"] tbody tr').count(), 4);
        assert.match(await page.locator('section[aria-label="Log"]').textContent(), /files of this node.*Sync p99/);
        await page.locator('.segments button', { hasText: '1 min' }).click();
        await page.locator('.segments button[aria-pressed="true"]', { hasText: '1 min' }).waitFor();
        await until('the charts have a minute', async () => (await age(page)) > 70);
        await screenshot(page, 'overview-light-laptop');
        return page;
    },

    async an_alert_appears_with_its_advice_and_clears({ browser, shop }) {
        const page = await openPage(browser, shop.url);
        await live(page);
        await page.locator('.clear').waitFor();
        await shop.ask('PUT', '/v1/schema', desk('$event.argument.among'));
        await shop.command(1, { command: 'desk.Divide', argument: { id: 1, of: 12, among: 0 } });
        const alert = page.locator('.alert');
        await alert.waitFor();
        assert.match(await alert.textContent(), /desk\.parts/);
        assert.ok((await alert.locator('.alert-advice').textContent()).length > 10);
        assert.equal(await page.locator('.nav a[data-page="overview"] .nav-count').textContent(), '1');
        await screenshot(page, 'alert-light-laptop');
        await shop.ask('PUT', '/v1/schema', desk('3')); // the projector is corrected, and its lane is built anew
        await page.locator('.clear').waitFor();
        assert.equal(await alert.count(), 0);
        return page;
    },

    async an_event_is_found_with_what_came_of_it({ browser, shop }) {
        const customer = await shop.addCustomer(5, 'Ada Lovelace');
        const page = await openPage(browser, shop.url, { ...laptop, viewport: { width: 1440, height: 900 } });
        await live(page);
        await go(page, 'events');
        await page.getByRole('searchbox', { name: 'Workspace number' }).fill('5');
        await page.locator('.choices button').first().click();
        const rows = page.locator('.events tbody tr');
        await rows.first().waitFor();
        await page.getByRole('searchbox', { name: 'Filter the events' }).fill('countess');
        // Now, and not before: clerks write to this workspace, too, and the page keeps its newest events only.
        await shop.placeOrder(5, customer, 4711, { actor: 'countess', correlation: 'engine-1' });
        await until('only it is left', async () => (await rows.count()) === 1);
        await rows.first().focus();
        await page.keyboard.press('Enter');
        const detail = page.locator('.detail');
        await detail.locator('h2', { hasText: 'shop.PlaceOrder' }).waitFor();
        assert.match(await detail.textContent(), /engine-1/);
        await detail.getByRole('button', { name: 'Read it now' }).click();
        await detail.locator('.outcome .json', { hasText: '4711' }).waitFor();
        await detail.locator('.outcomes li', { hasText: 'shop.accounts' }).locator('.json', { hasText: 'orders' }).waitFor();
        await page.getByRole('searchbox', { name: 'Filter the events' }).fill('');
        await until('the others are back', async () => (await rows.count()) > 10);
        await page.getByRole('searchbox', { name: 'Workspace number' }).fill('');
        await screenshot(page, 'events-light-laptop');
        await page.getByRole('searchbox', { name: 'Filter the events' }).fill('Grace Hopper');
        await until('nothing matches', async () => (await rows.count()) === 0);
        await shop.addCustomer(5, 'Grace Hopper');
        await until('the new one comes by itself', async () => (await rows.count()) === 1);
        return page;
    },

    async a_lease_window_moves({ browser, shop }) {
        const page = await openPage(browser, `${shop.url}/#/lanes`);
        await live(page);
        const card = page.locator('.lane[aria-label="shop.accounts"]');
        const line = card.locator('.strip-line');
        const upTo = async () => Number((await line.textContent()).match(/number ([\d,]+)/)?.[1].replaceAll(',', '') || 0);
        const first = await until('it has numbers', upTo);
        await until('and goes on', async () => (await upTo()) > first);
        await card.locator('canvas').focus();
        await page.keyboard.press('ArrowLeft');
        await until('the keyboard points at a number', async () => /^number [\d,]+ · \w+/.test(await line.textContent()));
        await page.locator('.lane[aria-label="shop.statements"] .strip-line', { hasText: /\d leased/ }).waitFor();
        await screenshot(page, 'lanes-light-laptop');
        return page;
    },

    async system_tables_are_there({ browser, shop }) {
        const page = await openPage(browser, `${shop.url}/#/system`, dark);
        await live(page);
        await page.locator('.facts', { hasText: 'shop.pawl' }).waitFor();
        for (const name of ['views', 'tablets', 'nodes', 'tablets']) {
            await page.locator(`.segments button[data-table="${name}"]`).click();
            await page.locator(`.segments button[data-table="${name}"][aria-pressed="true"]`).waitFor();
            await page.locator('.plain tbody tr').first().waitFor();
        }
        await page.locator('.plain th', { hasText: 'partition' }).waitFor();
        await screenshot(page, 'system-dark-laptop');
        return page;
    },

    async a_phone_shows_every_page_without_scrolling_sideways({ browser, shop }) {
        const page = await openPage(browser, shop.url, phone);
        await live(page);
        for (const name of ['lanes', 'views', 'events', 'system', 'overview']) {
            await go(page, name);
            await page.locator(`.nav a[data-page="${name}"][aria-current]`).waitFor();
            if (name === 'overview')
                await until('the charts have some seconds', async () => (await age(page)) > 40);
            const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            assert.equal(wider, 0, `${name} is wider than the screen by ${wider} px`);
            const nav = await page.locator('.nav').boundingBox();
            assert.ok(nav.y > 700 && nav.y + nav.height <= 844, `the navigation is at ${nav.y}`);
            await screenshot(page, `${name}-dark-phone`);
        }
        return page;
    },

    async the_colour_scheme_follows_the_system_and_the_switch({ browser, shop }) {
        const page = await openPage(browser, shop.url, dark);
        const brightness = () => page.evaluate(() => Number(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0]));
        await live(page);
        assert.ok((await brightness()) < 40);
        await page.emulateMedia({ colorScheme: 'light' });
        await until('it follows the system', async () => (await brightness()) > 200);
        const button = page.getByRole('button', { name: /Colour scheme/ });
        await button.click();
        await button.click();
        assert.match(await button.getAttribute('aria-label'), /dark/);
        assert.ok((await brightness()) < 40);
        await page.reload();
        await live(page);
        assert.ok((await brightness()) < 40, 'the choice is not kept');
        return page;
    },

    async the_keyboard_reaches_everything({ browser, shop }) {
        const page = await openPage(browser, shop.url);
        await live(page);
        await page.keyboard.press('Tab');
        assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
        await page.keyboard.press('3');
        await page.locator('h1', { hasText: 'Views' }).waitFor();
        const unnamed = await page.evaluate(() => [...document.querySelectorAll('button, a, input, select, canvas.strip')]
            .filter((one) => !one.getAttribute('aria-label') && !one.textContent.trim() && !one.labels?.length).map((one) => one.outerHTML));
        assert.deepEqual(unnamed, []);
        return page;
    },

    async a_lost_connection_is_said_and_found_again({ browser }) {
        const shop = new Shop(1);
        try {
            await shop.serve();
            const page = await openPage(browser, shop.url);
            await page.locator('body.ready').waitFor();
            await shop.kill();
            await page.locator('#banner', { hasText: 'connection' }).waitFor();
            assert.equal(await page.locator('#connection').getAttribute('data-state'), 'waiting');
            await screenshot(page, 'lost-light-laptop');
            await shop.serve();
            await live(page);
            await page.locator('#banner').waitFor({ state: 'hidden' });
            page.complaints = page.complaints.filter((words) => !/net::ERR_/.test(words)); // the browser's own words for it
            return page;
        } finally {
            await shop.close();
        }
    },

    async a_token_is_asked_for({ browser }) {
        const shop = new Shop(1);
        try {
            await shop.serve('--tokens');
            const page = await openPage(browser, shop.url);
            await page.getByRole('dialog').waitFor();
            await screenshot(page, 'token-light-laptop');
            await page.getByLabel('Token', { exact: true }).fill('no-such-token');
            await page.keyboard.press('Enter');
            await page.getByText('does not know this token').waitFor();
            page.complaints = page.complaints.filter((words) => !/401/.test(words)); // the browser reports each refusal
            return page;
        } finally {
            await shop.close();
        }
    },
};

async function run(name, test, context) {
    try {
        const page = await test(context);
        assert.deepEqual(page.complaints, []);
        return null;
    } catch (error) {
        for (const page of context.browser.contexts().flatMap((one) => one.pages()))
            await screenshot(page, `failed-${name}`);
        return error;
    } finally {
        for (const one of context.browser.contexts())
            await one.close();
    }
}

async function main() {
    const reason = missing();
    if (reason) {
        console.log(`1..1\nnot ok 1 - there is a browser # ${reason}; tools/install test gets what is missing`);
        return 1;
    }
    const chosen = Object.entries(cases).filter(([name]) => process.argv.length < 3 || process.argv.includes(name));
    const browser = await launch();
    const shop = new Shop(TENANTS);
    let failed = 0;
    console.log(`1..${chosen.length}`);
    try {
        for (let i = 0; i < 4; i++)
            shop.verb('tablet', 'split');
        shop.verb('view', 'throttle', '200'); // so that a build can be watched
        await shop.serve();
        await shop.createTenants();
        shop.employ(4);
        shop.hire(40);
        await until('there is something to see', () => shop.failure || shop.sent > 1500);
        for (const [i, [name, test]] of chosen.entries()) {
            const error = await run(name, test, { browser, shop });
            failed += error ? 1 : 0;
            console.log(`${error ? 'not ok' : 'ok'} ${i + 1} - ${name}`);
            if (error)
                console.error(error);
        }
    } finally {
        await browser.close();
        await shop.close();
    }
    console.error(`screenshots are in ${KEPT}`);
    return failed ? 1 : 0;
}

process.exitCode = await main();
