// Whatever servers say, it stays text: on every page, in every place where it shows.

import { address, equal, given, holds, open, run } from './browser.mjs';

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
  for (const name of names) {
    await page.goto(`${address}/#/tools/${encodeURIComponent(name)}`);
    const detail = page.getByRole('article', { name: `Tool ${name}` });
    await detail.waitFor();
    await page.evaluate(() => document.querySelectorAll('details').forEach((it) => { it.open = true; }));
    await clean(`definition of ${name}`);
    await detail.getByRole('button', { name: 'Run' }).click();
    await detail.getByText('Answered in').waitFor();
    await page.evaluate(() => document.querySelectorAll('details').forEach((it) => { it.open = true; }));
    await clean(`result of ${name}`);
  }
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
  await page.goto(`${address}/#/servers`);
  if (given.flagged) await page.getByRole('region', { name: 'Problems' }).getByText('poisoned').first().waitFor();
  const foreign = asked.filter((it) => !it.startsWith(address) && !it.startsWith('data:') && !it.startsWith('blob:'));
  equal(foreign, [], 'requests to others');
  equal(said, [], 'errors of the page');
});
