// A projector outside Pawl: node statement.mjs URL. Leases events of shop.statements, writes each customer's statement.
//
// Any number may run, and be killed at any time: the rows are those of a serial run. What it reads names its lease, so
// the event is given out again if an earlier one changes that; a commit may be sent twice, and counts once. After a
// commit it soon goes on, even if that waits for an earlier event: perhaps nobody else is there to lease that one.
const url = process.argv[2].replace(/\/$/, '');
const token = process.env.PAWL_TOKEN;
const headers = { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) };
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

// Status and answer. While the server is away or busy, it is asked again, after longer and longer pauses.
async function ask(method, path, body) {
  for (let pause = 50; ; pause = Math.min(2 * pause, 5000)) {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), 90000); // AbortSignal.timeout would not keep Node.js running meanwhile
    try {
      const signal = limit.signal;
      const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body), signal });
      const text = await answer.text();
      if (answer.status < 500) return [answer.status, answer.ok && text ? JSON.parse(text) : null];
    } catch {
      // It is away: ask again.
    } finally {
      clearTimeout(timer);
    }
    await sleep(pause);
  }
}

async function work(lease) {
  const place = `/v1/leases/${lease.partition}/${lease.lane}/${lease.number}`;
  const { operation, event } = lease;
  const customer = event.argument.customer;
  const extending = setInterval(
    () => ask('POST', `${place}/extend`, { operation, duration: '5s' }),
    (lease.expires_in * 1000) / 3,
  );
  const [status, row] = await ask('GET', `${place}/entities/shop.Statement/${customer}?operation=${operation}`);
  const old = row ?? { statements: 0, chain: 0 };
  const statements = old.statements + 1;
  const chain = Number((BigInt(old.chain) * 31n + BigInt(event.workspace_offset)) % 2n ** 50n);
  const set = { statements, chain, text: `statement ${statements}` };
  const writes = [{ upsert: 'shop.Statement', key: { customer }, set }];
  if (status === 200 || status === 404) // 202: handed in, and committed at its turn; 409: it is another's, or given out again
    await ask('POST', `${place}/commit?wait=1s`, { operation, writes });
  clearInterval(extending);
}

for (;;) {
  const lease = { projector: 'shop.statements', duration: '5s', wait: '20s' };
  const [status, leased] = await ask('POST', '/v1/leases', lease);
  if (status === 200) await work(leased);
  else if (status !== 204) throw new Error(`${url}: ${status}`);
}
