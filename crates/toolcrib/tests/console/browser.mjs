// A real browser before a real gateway. Each script is run as `node SCRIPT ADDRESS`; what it does not find it says,
// and ends with 1. TOOLS is where playwright-core and Chromium are, CHROMIUM the browser, SHOTS a folder for
// pictures, where some are wanted. CONSOLE is the folder crates/toolcrib-server/console, where the page is to be tried
// as it is there and not as it was when the binary was built.

import { createRequire } from 'node:module';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';

const require = createRequire(path.join(process.env.TOOLS, 'package.json'));
const { chromium } = require('playwright-core');
export const axeSource = require('axe-core').source;

export const address = process.argv[2];
export const given = JSON.parse(process.argv[3] || '{}');

/** Runs a script in a browser, and ends the process with what came of it. */
export async function run(script, options = {}) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => {});
  if (process.env.CONSOLE) {
    await context.route(`${address}/console/*`, (route) => {
      const file = path.join(process.env.CONSOLE, path.basename(new URL(route.request().url()).pathname));
      return existsSync(file) ? route.fulfill({ path: file }) : route.continue();
    });
  }
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const said = [];
  page.on('console', (message) => { if (message.type() === 'error') said.push(message.text()); });
  page.on('pageerror', (error) => said.push(`${error}`));
  let code = 0;
  try {
    await script({ page, context, browser, said });
  } catch (error) {
    code = 1;
    console.error(error.stack);
    console.error('the page said:', said);
    console.error(await page.locator('body').innerText().catch(() => ''));
    if (process.env.SHOTS) await page.screenshot({ path: path.join(process.env.SHOTS, 'failed.png') }).catch(() => {});
  }
  await browser.close();
  process.exit(code);
}

export function equal(found, expected, about = '') {
  const [a, b] = [found, expected].map((it) => JSON.stringify(it));
  if (a !== b) throw new Error(`${about}: ${a} is not ${b}`);
}

export function holds(condition, about) {
  if (!condition) throw new Error(about);
}

/** Waits until something is so. */
export async function soon(about, isSo, patience = 30_000) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await isSo();
    if (found) return found;
    if (end < Date.now()) throw new Error(`not in time: ${about}`);
    await new Promise((next) => setTimeout(next, 50));
  }
}

/** A picture for the documentation, where some are wanted. */
export async function shot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(process.env.SHOTS, `${name}.png`) });
}

/** Serious findings of axe on what is shown now. */
export async function accessible(page, about) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const grave = found.violations.filter((it) => ['serious', 'critical'].includes(it.impact));
  const told = grave.map((it) => `${it.id}: ${it.help}: ${it.nodes.slice(0, 3).map((node) => node.html).join(' ')}`);
  equal(told, [], `axe, ${about}`);
}

/** Goes to a page of the console and waits until it shows something. */
export async function open(page, hash = '') {
  await page.goto(`${address}/${hash}`);
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
}
