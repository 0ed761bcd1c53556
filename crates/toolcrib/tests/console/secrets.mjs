// No secret stands on any page.

import { address, given, holds, run } from './browser.mjs';

await run(async ({ page }) => {
  await page.goto(address);
  await page.getByLabel('Token').fill(given.token);
  await page.getByRole('button', { name: 'Look' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  const look = async (about) => {
    const text = await page.evaluate(() => document.documentElement.outerHTML);
    const at = text.indexOf('SECRET_');
    holds(at < 0, `${about}: ${text.slice(Math.max(0, at - 200), at + 100)}`);
  };
  for (const hash of ['#/calls', '#/servers', '#/events', '#/context', '#/tools', ...given.calls.map((it) => `#/calls/${it}`)]) {
    await page.goto(`${address}/${hash}`);
    if (hash.startsWith('#/calls/')) await page.getByRole('article', { name: 'The story of a call' }).waitFor();
    else await page.waitForTimeout(400);
    await look(hash);
  }
});
