// What the page weighs, and, on a machine that does nothing else, how long it takes beside a page of the same size
// that does nothing.

import http from 'node:http';
import { address, holds, run } from './browser.mjs';

const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

await run(async ({ context }) => {
  const load = async (url) => {
    const page = await context.newPage();
    await page.goto(url, { waitUntil: 'load' });
    const took = await page.evaluate(() => { const [it] = performance.getEntriesByType('navigation'); return it.loadEventStart - it.startTime; });
    const bytes = await page.evaluate(() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource').filter((it) => it.name.includes('/console/'))].reduce((all, it) => all + it.decodedBodySize, 0));
    await page.close();
    return { took, bytes };
  };
  const { bytes } = await load(address);
  holds(50_000 < bytes && bytes < 150_000, `${bytes} bytes`);
  if (!process.env.TOOLCRIB_FULL) return;
  const text = `<!doctype html><title>x</title><p>${'x'.repeat(bytes)}</p>`;
  const server = http.createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(text)).listen(0, '127.0.0.1');
  await new Promise((next) => server.once('listening', next));
  const still = `http://127.0.0.1:${server.address().port}/`;
  const [ours, theirs] = [[], []];
  for (let round = 0; round < 5; round += 1) {
    theirs.push((await load(still)).took);
    ours.push((await load(address)).took);
  }
  server.close();
  console.log(`the page: ${bytes} bytes, ${middle(ours).toFixed(0)} ms; one of the same size: ${middle(theirs).toFixed(0)} ms`);
  holds(middle(ours) <= 3 * middle(theirs), `${middle(ours)} ms beside ${middle(theirs)} ms`);
});
