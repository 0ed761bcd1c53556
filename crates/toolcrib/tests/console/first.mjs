// The first minutes: the example, a tool of it, and what it answers.

import { equal, given, open, run, shot } from './browser.mjs';

await run(async ({ page, said }) => {
  await open(page);
  await page.getByRole('option').getByText('mcp__almanac__moon_phase').click();
  const tool = page.getByRole('article', { name: 'Tool mcp__almanac__moon_phase' });
  await tool.getByLabel('date').fill(given.date);
  await tool.getByRole('button', { name: 'Run' }).click();
  await tool.getByText('"full moon"').waitFor();
  await tool.getByText('The same from elsewhere').click();
  const line = await tool.getByLabel('on the command line', { exact: true }).innerText();
  equal(line, `toolcrib call mcp__almanac__moon_phase --args '{"date":"${given.date}"}'`, 'the command line');
  await page.mouse.move(2, 2);
  await shot(page, 'console-tools');
  await page.getByRole('button', { name: /Colours/ }).click();
  await page.mouse.move(2, 2);
  await shot(page, 'console-tools-dark');
  equal(said, [], 'errors of the page');
});
