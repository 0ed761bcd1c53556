// Every page in both colours, on a wide and on a narrow screen: what axe finds, and that nothing sticks out.

import { accessible, address, equal, given, holds, open, run, soon } from './browser.mjs';

await run(async ({ page, said }) => {
  const [{ call }] = (await (await fetch(`${address}/api/calls`)).json()).calls;
  const event = (await (await fetch(`${address}/events?from=first&max=1`, { headers: { Accept: 'application/json' } })).json()).events[0];
  const pages = [
    ['#/tools', '.row'], [`#/tools/${given.tool}`, 'form.try'], ['#/calls', '.spark'], [`#/calls/${call}`, '.steps'],
    ['#/servers', '.card'], ['#/events', '.row'], [`#/events/${encodeURIComponent(event.id)}`, '.j-node'], ['#/events/none', '.empty'], ['#/context', '.meter'],
  ];
  for (const theme of ['light', 'dark']) {
    await open(page);
    // A page that has just come up notes its own colours, perhaps after us.
    await soon('the colours', async () => {
      await page.evaluate((it) => localStorage.setItem('toolcrib-theme', it), theme);
      await page.reload();
      await page.getByText(`Colours: ${theme}`).waitFor({ timeout: 2_000 }).catch(() => {});
      return (await page.evaluate(() => document.documentElement.dataset.theme)) === theme;
    });
    for (const [width, height] of [[1280, 800], [380, 700]]) {
      await page.setViewportSize({ width, height });
      for (const [hash, sign] of pages) {
        const about = `${hash}, ${theme}, ${width}`;
        await page.goto(`${address}/${hash}`);
        await page.reload();
        await page.locator(sign).first().waitFor({ state: 'attached' });
        equal(await page.evaluate(() => document.documentElement.dataset.theme), theme, about);
        await accessible(page, about);
        holds(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `nothing sticks out: ${about}`);
        // Where only one of both fits, there is a way back.
        if (width < 820 && hash.split('/').length === 3) await page.getByRole('button', { name: 'Back to the list' }).waitFor();
      }
    }
  }
  equal(said, [], 'errors of the page');
});
