// Five thousand tools: the list stays small in the page, and typing stays quick.

import { equal, holds, open, run, soon } from './browser.mjs';

await run(async ({ page, said }) => {
  await open(page);
  const list = page.getByRole('listbox', { name: 'Tools' });
  await page.getByText('5,000 tools').waitFor({ timeout: 30_000 });
  const made = () => list.getByRole('option').count();
  holds((await made()) < 60, 'only what is in sight is made');
  equal(await list.getByRole('option').first().getAttribute('aria-setsize'), '5000', 'how many there are');
  // To the very end, and the last one is there.
  await list.evaluate((it) => { it.scrollTop = it.scrollHeight; });
  await list.getByText('mcp__many__tool_4999').waitFor();
  holds((await made()) < 60, 'and still');
  // Searching makes nothing that is not shown; no turn of the page takes long.
  await page.evaluate(() => {
    globalThis.longest = 0;
    new PerformanceObserver((seen) => { for (const it of seen.getEntries()) globalThis.longest = Math.max(globalThis.longest, it.duration); }).observe({ type: 'longtask' });
  });
  await page.getByLabel('Search tools').fill('');
  await page.getByLabel('Search tools').pressSequentially('number 4321', { delay: 20 });
  await page.getByText('1 tool of 5,000').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('article', { name: 'Tool mcp__many__tool_4321' }).waitFor();
  await page.keyboard.press('Escape');
  for (let step = 0; step < 30; step += 1) await page.keyboard.press('ArrowDown');
  await soon('it rests', async () => true);
  if (process.env.TOOLCRIB_FULL) holds((await page.evaluate(() => globalThis.longest)) < 250, `the longest turn: ${await page.evaluate(() => globalThis.longest)} ms`);
  equal(said, [], 'errors of the page');
});
