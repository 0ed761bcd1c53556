// The other pages, as somebody who runs the gateway sees them: calls as they end, servers, pins, events, context.

import { readFileSync, writeFileSync } from 'node:fs';
import { accessible, address, equal, given, holds, open, run, shot, soon } from './browser.mjs';

/** Asks as another client would. */
async function rpc(method, params, name) {
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } };
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, 'Mcp-Name': name };
  return (await fetch(`${address}/mcp`, { method: 'POST', headers, body: JSON.stringify(body) })).text();
}

const call = (name, args = {}) => rpc('tools/call', { name, arguments: args }, name);

async function calls(page) {
  await open(page, '#/calls');
  await page.getByText('Nobody has called anything yet').waitFor();
  await page.locator('.live').first().waitFor();
  // Live: nobody loads the page again.
  await call('mcp__kit__shape', { title: 'from elsewhere', count: 1 });
  const list = page.getByRole('listbox', { name: 'Calls' });
  await list.getByRole('option').getByText('mcp__kit__shape').waitFor();
  await call('mcp__kit__fail');
  await call('mcp__kit__shape', { title: 'x', count: 1 });
  await call('nothing_of_this_name');
  await soon('four calls', async () => (await list.getByRole('option').count()) === 4);
  const outcomes = await list.getByRole('option').locator('.badge').allInnerTexts();
  equal(outcomes, ['unknown_tool', 'invalid_arguments', 'tool_error', 'ok'], 'newest first');
  const figures = page.getByRole('region', { name: 'Figures by tool' });
  equal(await figures.getByRole('row', { name: /mcp__kit__shape/ }).locator('td').nth(1).innerText(), '2', 'calls of one tool');
  await page.getByRole('img', { name: '4 calls over time, 3 failed' }).waitFor();
  holds(0 < await figures.getByRole('row', { name: /mcp__kit__fail/ }).locator('.spark .bad').count(), 'errors over time');
  holds(0 < await page.getByRole('region', { name: 'Figures by server' }).locator('.spark .slow').count(), 'latency over time');
  // A row shows its calls alone.
  await figures.getByRole('button', { name: 'mcp__kit__fail' }).click();
  await soon('one tool', async () => (await list.getByRole('option').count()) === 1);
  await page.getByRole('button', { name: 'Show all' }).click();
  await soon('all tools', async () => (await list.getByRole('option').count()) === 4);
  await accessible(page, 'calls');
  for (let at = 0; at < 24; at += 1) await call(at % 5 ? 'mcp__kit__shape' : 'mcp__kit__parts', { title: 'more of them', count: 1 + (at % 9) });
  await soon('many calls', async () => (await page.getByText('28 calls').count()) === 1);
  await shot(page, 'console-calls');
  // The story of the one that was refused.
  await page.getByLabel('Search calls').fill('invalid_arguments');
  await soon('one call', async () => (await list.getByRole('option').count()) === 1);
  await list.getByRole('option').click();
  const story = page.getByRole('article', { name: 'The story of a call' });
  await story.getByText('the arguments fit the schema').waitFor();
  equal(await story.locator('.steps li.refused').count(), 1, 'where it ended');
  equal(await story.locator('.steps li.passed').count(), 3, 'what it passed');
  equal(await story.locator('.steps li').last().innerText(), 'there is room for the call not reached', 'what it did not come to');
  equal(await story.getByRole('link', { name: 'mcp__kit__shape' }).count(), 1, 'the way to its tool');
  await story.getByText('of group guest').waitFor();
  await accessible(page, 'a story');
  // What is read is no tool.
  await rpc('resources/read', { uri: 'mcp__kit__shape' }, 'mcp__kit__shape');
  await page.getByLabel('Search calls').fill('unknown_tool');
  await list.getByRole('option').filter({ hasText: 'resource' }).click();
  await story.getByText('resource', { exact: true }).waitFor();
  equal([await story.getByRole('link').count(), await story.getByText('the arguments fit the schema').count()], [0, 0], 'no tool of that name');
  await page.getByLabel('Search calls').fill('');
}

/** A stream that breaks: what ended in between is there afterwards. */
async function missed(page) {
  let [times, go] = [0, null];
  const away = new Promise((then) => { go = then; });
  await page.route('**/api/live', async (route) => {
    times += 1;
    if (times === 1) return route.fulfill({ contentType: 'text/event-stream', body: 'data: {"watching":true}\n\n' });
    await away;
    return route.continue();
  });
  await open(page, '#/calls');
  await page.reload();
  const list = page.getByRole('listbox', { name: 'Calls' });
  await list.getByRole('option').first().waitFor();
  await soon('the stream is asked for again', () => 1 < times);
  await call('mcp__kit__parts', { title: 'while nobody looked' });
  await soon('it is on record', async () => (await (await fetch(`${address}/api/calls?tool=mcp__kit__parts`)).json()).calls.length === 6);
  equal(await page.getByText('30 calls').count(), 0, 'nobody has told the page');
  go();
  await page.getByText('30 calls').waitFor();
  await page.unroute('**/api/live');
}

async function servers(page) {
  await open(page, '#/servers');
  const card = (name) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: new RegExp(`^${name} `) }) });
  await card('kit').getByText('ready', { exact: true }).waitFor();
  await card('broken').getByText('failed', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Problems' }).getByText('no-such-program-here').first().waitFor();
  await accessible(page, 'servers');
  await shot(page, 'console-servers');
  // Whoever is asked and turns to `No` is left there, however often the page looks again.
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  await card('kit').getByRole('button', { name: 'Restart' }).click();
  await soon('yes comes first', async () => (await focused()) === 'Yes');
  await page.keyboard.press('Tab');
  await page.waitForResponse('**/api/servers');
  await page.waitForResponse('**/api/servers');
  equal(await focused(), 'No', 'the focus stays');
  await page.keyboard.press('Enter');
  await soon('and goes back', async () => (await focused()) === 'Restart');
  // The tools of one server.
  await card('kit').getByRole('link', { name: 'see them' }).click();
  await soon('only its own', async () => {
    const names = await page.getByRole('listbox', { name: 'Tools' }).locator('.row-name').allInnerTexts();
    return names.length > 0 && names.every((it) => it.startsWith('mcp__kit__'));
  });
  await soon('the filter', async () => (await page.getByLabel('Source').inputValue()) === 'kit');
  await open(page, '#/servers');
  await card('kit').getByRole('button', { name: 'Restart' }).click();
  await card('kit').getByRole('button', { name: 'Yes' }).click();
  await page.getByText('kit is started anew').waitFor();
  await card('kit').getByText('started 2 times').waitFor();
  // Pins: nothing was accepted; then a definition changes.
  const pins = page.getByRole('region', { name: 'Pins' });
  const change = (text) => pins.getByRole('listitem').filter({ hasText: text });
  // Whoever accepts all of a server sees what that is.
  await change('server kit').getByText('6 tools, all new').waitFor();
  const news = change('server kit').getByRole('region', { name: 'Tools that would be accepted' });
  await news.getByText('shape', { exact: true }).click();
  await news.getByText('Takes arguments of every shape').waitFor();
  await accessible(page, 'what is new');
  await change('kit').getByRole('button', { name: 'Accept' }).click();
  await change('kit').getByRole('button', { name: 'Yes' }).click();
  await pins.getByText(/^Accepted:/).waitFor();
  await soon('nothing of kit differs', async () => (await change('server kit').count()) === 0);
  writeFileSync(given.listed, readFileSync(given.listed, 'utf8').replace('Always fails', 'Always fails, and more'));
  await card('kit').getByRole('button', { name: 'Restart' }).click();
  await card('kit').getByRole('button', { name: 'Yes' }).click();
  const changed = change('tool `fail` changed');
  await changed.waitFor();
  await changed.getByText('+ ').first().waitFor();
  holds((await changed.locator('.come').allInnerTexts()).some((it) => it.includes('and more')), 'the difference is shown');
  await accessible(page, 'pins');
  await changed.getByRole('button', { name: 'Accept' }).click();
  await changed.getByRole('button', { name: 'Yes' }).click();
  await soon('accepted', async () => (await changed.count()) === 0);
}

async function events(page) {
  await open(page, '#/events');
  const list = page.getByRole('listbox', { name: 'Events' });
  await page.locator('.live').nth(1).waitFor();
  // Publish by hand, and from the schema.
  const form = page.getByRole('form', { name: 'Publish an event' });
  await form.getByLabel('Name').fill('note.taken');
  await form.getByLabel('What it says').fill('{"text": "by hand", "number": 12345678901234567890}');
  await form.getByRole('button', { name: 'Publish' }).click();
  await page.getByText('Published as #1').waitFor();
  await list.getByRole('option').getByText('note.taken').waitFor();
  await page.getByLabel('What', { exact: true }).selectOption('delegate_task');
  const tool = page.getByRole('form', { name: 'Try delegate_task' });
  await tool.getByLabel('task_id').fill('t1');
  await tool.getByLabel('instructions').fill('sweep the floor');
  await tool.getByRole('button', { name: 'Run' }).click();
  await list.getByRole('option').getByText('task.delegate').waitFor();
  await accessible(page, 'events');
  await shot(page, 'console-events');
  // A consumer that lags, and gets everything again.
  await fetch(`${address}/events?consumer=worker&max=2&wait=1s`, { headers: { Accept: 'application/json' } });
  const row = page.getByRole('row', { name: /guest\/worker/ });
  await row.waitFor();
  await row.getByRole('button', { name: 'Replay' }).click();
  await row.getByText('the 0 events it gave up are forgotten').waitFor();
  await row.getByLabel('From #').fill('2');
  await row.getByRole('button', { name: 'Yes' }).click();
  await page.getByText('guest/worker gets everything again from #2 on').waitFor();
  await soon('it is behind by one', async () => (await row.locator('td').nth(2).innerText()) === '1');
  await row.getByRole('button', { name: 'Replay' }).click();
  await row.getByLabel('From #').fill('');
  await row.getByRole('button', { name: 'Yes' }).click();
  await page.getByText('guest/worker gets everything again', { exact: true }).waitFor();
  await soon('it is behind by all', async () => (await row.locator('td').nth(2).innerText()) === '2');
  // From now on means that.
  await page.getByLabel('From', { exact: true }).selectOption('new');
  await page.getByRole('button', { name: 'Follow' }).click();
  await page.getByText('following everything you may read, 0 events').waitFor();
  // A filter, and a payload to the last digit.
  await page.getByLabel('Names of events').fill('note.*');
  await page.getByLabel('From', { exact: true }).selectOption('first');
  await page.getByRole('button', { name: 'Follow' }).click();
  await soon('only notes', async () => (await list.getByRole('option').count()) === 1);
  await list.getByRole('option').click();
  await page.getByRole('article', { name: 'Event' }).getByText('12345678901234567890').waitFor();
}

async function context(page) {
  await open(page, '#/context');
  await page.getByLabel('What it wants to do').fill('a task for a worker');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('listitem').getByText('delegate_task').first().waitFor();
  const costs = page.getByRole('region', { name: 'Costs' });
  const numbers = await costs.getByRole('row', { name: /guest/ }).locator('td.number').allInnerTexts();
  holds(numbers.every((it) => 0 < Number(it.replace(/,/g, ''))), `costs: ${numbers}`);
  // A large result, and pieces of it.
  await call('mcp__kit__rows');
  await page.getByRole('button', { name: 'Look again' }).click();
  const stored = page.getByRole('region', { name: 'Stored results' }).getByRole('row', { name: /mcp__kit__rows/ });
  await stored.getByRole('button').click();
  const artifact = page.getByRole('region', { name: /^Stored result / });
  await artifact.getByLabel('Piece').selectOption('rows');
  await artifact.getByLabel('Which').fill('0:2');
  await artifact.getByRole('button', { name: 'Read' }).click();
  await artifact.getByRole('table').or(artifact.locator('pre')).first().waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), artifact.getByRole('button', { name: 'Download' }).click()]);
  holds(/\.json$/.test(download.suggestedFilename()), download.suggestedFilename());
  // A session, packed.
  await page.getByLabel('Session, a JSON object a line').fill(given.session);
  await page.getByLabel('Query').fill('invoice status');
  await page.getByLabel('Budget').fill('150');
  await page.getByRole('button', { name: 'Pack' }).click();
  const bar = page.getByRole('img', { name: /of 150 tokens are used; \d+ tokens stayed out/ });
  await bar.waitFor();
  holds(0 < await bar.locator('.in').count() && 0 < await bar.locator('.left').count(), 'what is in and what is out');
  const verdicts = await page.getByRole('region', { name: 'Items' }).getByRole('row').allInnerTexts();
  holds(verdicts.some((it) => /\bin\b/.test(it)) && verdicts.some((it) => /no room/.test(it)), verdicts.join('\n'));
  await accessible(page, 'context');
  await page.getByRole('heading', { name: 'Pack a session' }).evaluate((it) => it.scrollIntoView());
  await shot(page, 'console-context');
}

await run(async ({ page, said }) => {
  await calls(page);
  await missed(page);
  await servers(page);
  await events(page);
  await context(page);
  equal(said, [], 'errors of the page');
});
