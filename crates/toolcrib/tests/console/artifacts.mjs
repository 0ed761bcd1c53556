// What is kept, and could be a page: it is saved as a file, and never run, whoever leads the browser to it.

import { readFileSync } from 'node:fs';
import { address, equal, given, holds, open, run } from './browser.mjs';

await run(async ({ page, context, said }) => {
  const kept = await (await fetch(`${address}/api/artifacts`)).json();
  equal(kept.artifacts.map((it) => it.media_type).sort(), given.kinds, 'what is kept');
  for (const { id, media_type: kind } of kept.artifacts) {
    const tab = await context.newPage();
    const [download] = await Promise.all([tab.waitForEvent('download'), tab.goto(`${address}/api/artifact?id=${id}`).catch(() => {})]);
    equal(download.suggestedFilename(), `${id}.bin`, kind);
    holds(readFileSync(await download.path(), 'utf8').includes('CANARY'), `${kind} is whole`);
    equal(tab.url(), 'about:blank', 'nothing is shown');
    await tab.close();
  }
  // In the console it is text; a picture is one, without its scripts.
  await open(page, '#/context');
  const rows = page.getByRole('region', { name: 'Stored results', exact: true }).last().getByRole('row');
  for (let at = 1; at < await rows.count(); at += 1) {
    await rows.nth(at).getByRole('button').click();
    const artifact = page.getByRole('region', { name: /^Stored result [0-9a-z]/ });
    await artifact.getByRole('button', { name: 'Read' }).click();
    await artifact.locator('pre, img').first().waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), artifact.getByRole('button', { name: 'Download' }).click()]);
    holds(download.suggestedFilename().endsWith('.bin'), download.suggestedFilename());
  }
  equal(await page.evaluate(() => globalThis.CANARY === undefined), true, 'nothing ran');
  equal(said, [], 'errors of the page');
});
