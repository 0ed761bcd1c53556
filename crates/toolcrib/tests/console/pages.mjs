// The other pages, as somebody who runs the gateway sees them: calls as they end, servers, pins, events, context.

import { readFileSync, writeFileSync } from 'node:fs';
import { accessible, address, equal, given, holds, open, run, shot, soon } from './browser.mjs';

/** Calls a tool as another client would. */
async function call(name, args = {}) {
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } };
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name };
  return (await fetch(`${address}/mcp`, { method: 'POST', headers, body: JSON.stringify(body) })).text();
}

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
  await accessible(page, 'calls');
  await shot(page, 'console-calls');
  // The story of the one that was refused.
  await page.getByLabel('Search calls').fill('invalid_arguments');
  await soon('one call', async () => (await list.getByRole('option').count()) === 1);
  await list.getByRole('option').click();
  const story = page.getByRole('article', { name: 'The story of a call' });
  await story.getByText('the arguments fit the schema').waitFor();
  equal(await story.locator('.steps li.refused').count(), 1, 'where it ended');
  equal(await story.locator('.steps li.passed').count(), 3, 'what it passed');
  await story.getByText('of group guest').waitFor();
  await accessible(page, 'a story');
}

async function servers(page) {
  await open(page, '#/servers');
  const card = (name) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: new RegExp(`^${name} `) }) });
  await card('kit').getByText('ready', { exact: true }).waitFor();
  await card('broken').getByText('failed', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Problems' }).getByText('no-such-program-here').first().waitFor();
  await accessible(page, 'servers');
  await shot(page, 'console-servers');
  await card('kit').getByRole('button', { name: 'Restart' }).click();
  await card('kit').getByRole('button', { name: 'Yes' }).click();
  await page.getByText('kit is started anew').waitFor();
  await card('kit').getByText('started 2 times').waitFor();
  // Pins: nothing was accepted; then a definition changes.
  const pins = page.getByRole('region', { name: 'Pins' });
  const change = (text) => pins.getByRole('listitem').filter({ hasText: text });
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
  await row.getByRole('button', { name: 'Yes' }).click();
  await page.getByText('guest/worker gets everything again').waitFor();
  await soon('it is behind by all', async () => (await row.locator('td').nth(2).innerText()) === '2');
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
  await page.getByRole('img', { name: /of 150 tokens are used/ }).waitFor();
  const verdicts = await page.getByRole('region', { name: 'Items' }).getByRole('row').allInnerTexts();
  holds(verdicts.some((it) => /\bin\b/.test(it)) && verdicts.some((it) => /no room/.test(it)), verdicts.join('\n'));
  await accessible(page, 'context');
  await page.getByRole('img', { name: /of 150 tokens are used/ }).scrollIntoViewIfNeeded();
  await shot(page, 'console-context');
}

await run(async ({ page, said }) => {
  await calls(page);
  await servers(page);
  await events(page);
  await context(page);
  equal(said, [], 'errors of the page');
});
