// Whatever servers say, it stays text: on every page, in every place where it shows.

import { readFileSync, writeFileSync } from 'node:fs';
import { address, equal, given, holds, open, run, soon } from './browser.mjs';

await run(async ({ page, context, said }) => {
  const asked = [];
  context.on('request', (request) => asked.push(request.url()));
  page.on('dialog', async (dialog) => { said.push(`dialog ${dialog.message()}`); await dialog.dismiss(); });
  const clean = async (about) => {
    // C0 and C1, tags that hide text, overrides that turn it round.
    const found = await page.evaluate(() => {
      const text = document.documentElement.innerText + [...document.querySelectorAll('*')].flatMap((it) => [...it.attributes].map((one) => one.value)).join('\n');
      const bad = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u202e]|\udb40[\udc00-\udfff]/.exec(text);
      return [bad && bad[0].charCodeAt(0).toString(16), document.querySelectorAll('script:not([src^="console/"]), iframe, object, embed, [onerror], [onclick], a[href^="javascript"], img[src*="CANARY"], base, meta[http-equiv]').length, globalThis.CANARY === undefined];
    });
    equal(found, [null, 0, true], about);
  };
  const first = await page.goto(address);
  const head = first.headers();
  holds(head['content-security-policy'].includes("default-src 'none'; script-src 'self'") && head['content-security-policy'].includes("frame-ancestors 'none'"), 'the policy');
  equal([head['x-content-type-options'], head['referrer-policy']], ['nosniff', 'no-referrer'], 'headers');
  await open(page);
  const list = page.getByRole('listbox', { name: 'Tools' });
  await list.getByRole('option').first().waitFor();
  await clean('the list');
  const names = await list.locator('.row-name').allInnerTexts();
  const unfold = () => page.evaluate(() => document.querySelectorAll('details').forEach((it) => { it.open = true; }));
  for (const name of names) {
    if (name.includes('__creeps')) continue;
    await page.goto(`${address}/#/tools/${encodeURIComponent(name)}`);
    const detail = page.getByRole('article', { name: `Tool ${name}` });
    await detail.waitFor();
    await unfold();
    await clean(`definition of ${name}`);
    await detail.getByRole('button', { name: 'Run' }).click();
    await detail.getByText('Answered in').waitFor();
    await unfold();
    await clean(`result of ${name}`);
  }
  // How far a call is, in whatever words; and notices that are no notices.
  await page.goto(`${address}/#/tools/${given.creeps}`);
  const creeps = page.getByRole('article', { name: `Tool ${given.creeps}` });
  await creeps.getByRole('button', { name: 'Run' }).click();
  await creeps.getByRole('progressbar').waitFor();
  await creeps.getByText('txt.exe').first().waitFor();
  await clean('progress');
  await creeps.getByRole('button', { name: 'Cancel' }).click();
  await creeps.getByText('Cancelled.').waitFor();
  await page.goto(`${address}/#/tools`);
  if (given.flagged) {
    await list.getByText('suspicious').first().waitFor();
    await page.goto(`${address}/#/tools/${given.flagged}`);
    await page.getByText('Suspicious definition.').waitFor();
  }
  for (const hash of ['#/calls', '#/servers', '#/events', '#/context']) {
    await open(page, hash);
    await page.waitForTimeout(300);
    await clean(hash);
  }
  // The story of every call.
  const told = (await (await fetch(`${address}/api/calls`)).json()).calls;
  holds(names.length - 1 <= told.length, `${told.length} calls`);
  for (const { call } of told) {
    await page.goto(`${address}/#/calls/${call}`);
    await page.getByRole('article', { name: 'The story of a call' }).getByText(call).first().waitFor();
    await clean('a story');
  }
  // What events say.
  await page.goto(`${address}/#/events`);
  const events = page.getByRole('listbox', { name: 'Events' });
  await events.getByText('note.odd').click();
  await page.getByRole('article', { name: 'Event' }).getByText('txt.exe').first().waitFor();
  await unfold();
  await clean('an event');
  // What an agent would find.
  await open(page, '#/context');
  await page.getByLabel('What it wants to do').fill('img onerror says fails txt exe');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.locator('.found li').first().waitFor();
  await clean('what is found');
  // What a server said before it ended, and what would be accepted.
  await page.goto(`${address}/#/servers`);
  await page.getByText('STDERR').first().waitFor();
  await clean('the last error');
  const pins = page.getByRole('region', { name: 'Pins' });
  const change = pins.getByRole('listitem').filter({ hasText: 'server s:' });
  await change.getByText('all new').waitFor();
  await change.getByText('poisoned').first().waitFor();
  await unfold();
  await clean('what would be accepted');
  await change.getByRole('button', { name: 'Accept' }).click();
  await change.getByRole('group', { name: /although it is suspicious/ }).getByRole('button', { name: 'Yes' }).click();
  await soon('it is accepted', async () => (await change.count()) === 0);
  const list2 = JSON.parse(readFileSync(given.listed, 'utf8'));
  list2.find((it) => it.name === 'says').description = list2[0].description + list2[1].description;
  writeFileSync(given.listed, JSON.stringify(list2));
  await fetch(`${address}/api/servers/restart`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"name":"s"}' });
  await pins.locator('.come').first().waitFor();
  await clean('the difference');
  if (given.flagged) await page.getByRole('region', { name: 'Problems' }).getByText('poisoned').first().waitFor();
  const foreign = asked.filter((it) => !it.startsWith(address) && !it.startsWith('data:') && !it.startsWith('blob:'));
  equal(foreign, [], 'requests to others');
  equal(said, [], 'errors of the page');
});
