// Tools: find one, fill in its form, run it, and see what comes.

import { accessible, equal, holds, open, run, soon } from './browser.mjs';

await run(async ({ page, said }) => {
  await open(page);
  const list = page.getByRole('listbox', { name: 'Tools' });
  await list.getByRole('option').first().waitFor();

  // Search, from the keyboard alone.
  await page.keyboard.press('/');
  await page.keyboard.type('shape every');
  await soon('one tool is found', async () => (await list.getByRole('option').count()) === 1);
  await page.keyboard.press('Enter');
  const detail = page.getByRole('article', { name: 'Tool mcp__kit__shape' });
  await detail.waitFor();
  await detail.getByText('claims: read-only').waitFor();

  // What is missing is said when it is run, what is wrong while it is typed.
  await detail.getByRole('button', { name: 'Run' }).click();
  equal(await detail.getByText('required', { exact: true }).count() > 0, true, 'required');
  const field = (name) => detail.getByLabel(name, { exact: false });
  await field('title').fill('ab');
  await detail.getByText('at least 3 characters; these are 2').waitFor();
  await field('title').fill('a "quoted" title');
  await detail.getByText('at least 3 characters').first().waitFor({ state: 'detached' }).catch(() => {});
  await field('count').fill('11');
  await detail.getByText('at most 10', { exact: true }).waitFor();
  await field('count').fill('7');
  equal(await field('level').locator('option').allTextContents(), ['(not given)', 'low', 'high'], 'enum');
  await field('level').selectOption({ label: 'high' });
  equal(await field('ratio').inputValue(), '0.50', 'a default, digit for digit');
  // A nested object, and a list of objects.
  await detail.getByRole('group', { name: 'where' }).getByLabel('city').fill('Oslo');
  await detail.getByRole('button', { name: 'Add to tags' }).click();
  await detail.getByRole('button', { name: 'Add to tags' }).click();
  await detail.getByRole('group', { name: 'tags' }).getByRole('textbox').nth(0).fill('one');
  await detail.getByRole('group', { name: 'tags' }).getByRole('textbox').nth(1).fill('two');
  await detail.getByRole('button', { name: 'Remove tags 1' }).click();
  // One of several ways.
  await detail.getByLabel('Which').selectOption({ label: 'by number' });
  await detail.getByRole('group', { name: 'target' }).getByLabel('number').fill('12345678901234567890');
  await accessible(page, 'a form');
  await detail.getByRole('button', { name: 'Run' }).click();
  await detail.getByText('Answered in').waitFor();
  const sent = '{"title":"a \\"quoted\\" title","count":7,"level":"high","ratio":0.50,"where":{"city":"Oslo"},"tags":["two"],"target":{"number":12345678901234567890}}';
  await detail.getByText('The answer as it came').click();
  const raw = await detail.getByLabel('The answer as it came', { exact: true }).innerText();
  holds(raw.includes(JSON.stringify(sent).slice(1, -1)), `what was sent: ${raw}`);
  // The same from elsewhere.
  await detail.getByText('The same from elsewhere').click();
  const line = await detail.getByLabel('on the command line', { exact: true }).innerText();
  equal(line, `toolcrib call mcp__kit__shape --args '${sent}'`, 'the command line');
  const rpc = JSON.parse(await detail.getByLabel('JSON-RPC, to /mcp', { exact: true }).innerText());
  equal([rpc.method, rpc.params.name], ['tools/call', 'mcp__kit__shape'], 'JSON-RPC');
  await detail.getByRole('button', { name: 'Copy on the command line' }).click();
  equal(await page.evaluate(() => navigator.clipboard.readText()), line, 'copied');

  // Results, each as what it is.
  await page.getByLabel('Search tools').fill('');
  const call = async (name) => {
    await page.goto(`${page.url().split('#')[0]}#/tools/${name}`);
    const at = page.getByRole('article', { name: `Tool ${name}` });
    await at.getByRole('button', { name: 'Run' }).click();
    await at.getByText('Answered in').waitFor();
    return at;
  };
  const parts = await call('mcp__kit__parts');
  await parts.getByRole('region', { name: 'Result as a table' }).getByText('Bergen').waitFor();
  await parts.getByRole('button', { name: 'Tree' }).click();
  await parts.getByText('2 items').waitFor();
  equal(await parts.getByRole('img').evaluate((it) => [it.complete, it.naturalWidth]), [true, 1], 'the picture is shown');
  equal(await parts.locator('audio').count(), 1, 'the sound');
  await parts.getByText('file:///notes.txt').waitFor();
  await parts.getByText('remember the milk').waitFor();
  await accessible(page, 'results');
  const failing = await call('mcp__kit__fail');
  await failing.getByText('the tool failed').waitFor();

  // What nobody said is not sent; what is empty can be.
  const unset = page.getByRole('article', { name: 'Tool mcp__kit__unset' });
  await page.goto(`${page.url().split('#')[0]}#/tools/mcp__kit__unset`);
  await unset.getByRole('button', { name: 'Run' }).click();
  await unset.getByText('1 field to put right').waitFor();
  equal(await unset.getByLabel('sure').inputValue(), '', 'a choice that nobody made');
  await unset.getByLabel('sure').selectOption('false');
  await unset.getByRole('button', { name: 'empty text' }).click();
  await unset.getByRole('button', { name: 'Run' }).click();
  await unset.getByText('Answered in').waitFor();
  const echoed = async () => {
    await unset.getByText('The answer as it came').click();
    const text = await unset.getByLabel('The answer as it came', { exact: true }).innerText();
    await unset.getByText('The answer as it came').first().click();
    return text;
  };
  holds((await echoed()).includes('{\\"sure\\":false,\\"note\\":\\"\\"}'), `what was sent: ${await echoed()}`);
  // What is typed as JSON goes into the form; what the form cannot say is not dropped unasked.
  await unset.getByRole('button', { name: 'JSON', exact: true }).first().click();
  await unset.getByLabel('Arguments as JSON').fill('{"note": "from JSON", "sure": true}');
  await unset.getByRole('button', { name: 'Form', exact: true }).click();
  equal([await unset.getByLabel('note').inputValue(), await unset.getByLabel('sure').inputValue()], ['from JSON', 'true'], 'JSON in the form');
  await unset.getByRole('button', { name: 'JSON', exact: true }).first().click();
  await unset.getByLabel('Arguments as JSON').fill('{"sure": true, "other": 1}');
  await unset.getByRole('button', { name: 'Form', exact: true }).click();
  await unset.getByText('The form cannot say all of this.').waitFor();
  equal(await unset.getByLabel('Arguments as JSON').inputValue(), '{"sure": true, "other": 1}', 'it is still there');
  await unset.getByRole('button', { name: 'Drop what it cannot say' }).click();
  equal([await unset.getByLabel('note').inputValue(), await unset.getByLabel('sure').inputValue()], ['', 'true'], 'the rest in the form');

  // Progress; elsewhere and back; and taking it back.
  let calls = 0;
  page.on('request', (request) => { if (request.url().endsWith('/mcp')) calls += 1; });
  await page.goto(`${page.url().split('#')[0]}#/tools/mcp__kit__long`);
  const long = page.getByRole('article', { name: 'Tool mcp__kit__long' });
  await long.getByRole('button', { name: 'Run' }).click();
  await long.getByRole('progressbar').waitFor();
  await long.getByText(/^\d+\s*$/).waitFor();
  await long.getByRole('button', { name: 'JSON', exact: true }).first().focus();
  await page.keyboard.press('Control+Enter');
  await page.keyboard.press('Control+Enter');
  await page.goto(`${page.url().split('#')[0]}#/tools/mcp__kit__fail`);
  await page.getByRole('article', { name: 'Tool mcp__kit__fail' }).waitFor();
  await list.getByRole('option').filter({ hasText: 'mcp__kit__long' }).getByText('running').waitFor();
  await page.goto(`${page.url().split('#')[0]}#/tools/mcp__kit__long`);
  await long.getByText('Running').waitFor();
  equal(calls, 1, 'it runs once');
  await long.getByRole('button', { name: 'Cancel' }).click();
  await long.getByText('Cancelled.').waitFor();

  // A tool that asks before it goes on.
  await page.goto(`${page.url().split('#')[0]}#/tools/mcp__asker__asks`);
  const asker = page.getByRole('article', { name: 'Tool mcp__asker__asks' });
  await asker.getByRole('button', { name: 'Run' }).click();
  await asker.getByText('Who are you?').waitFor();
  holds(await asker.getByRole('button', { name: 'Answer' }).isDisabled(), 'a name is required');
  await asker.locator('.question').getByLabel('name').fill('Ada');
  await asker.getByRole('button', { name: 'Answer' }).click();
  await soon('it was answered', async () => (await asker.getByRole('button', { name: 'Answer' }).count()) === 1 && asker.getByRole('button', { name: 'Answer' }).isDisabled());

  // Move, and back.
  await page.locator('body').click({ position: { x: 5, y: 5 } });
  const chosen = () => list.getByRole('option', { selected: true }).locator('.row-name').innerText();
  const before = await chosen();
  await page.keyboard.press('j');
  await soon('another is chosen', async () => (await chosen()) !== before);
  await page.keyboard.press('k');
  await soon('the first is chosen again', async () => (await chosen()) === before);
  await page.keyboard.press('Escape');
  await page.getByText('Choose a tool').waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');

  // From the keyboard: far through the list, into what is chosen, and not through all of it on the way back.
  await list.getByRole('option').first().click();
  await list.focus();
  const past = () => page.evaluate(() => history.length);
  const before2 = await past();
  const all = await list.getByRole('option').first().getAttribute('aria-setsize');
  const place = () => list.getByRole('option', { selected: true }).getAttribute('aria-posinset');
  await page.keyboard.press('End');
  await soon('the last', async () => (await place()) === all);
  await page.keyboard.press('PageUp');
  await page.keyboard.press('Home');
  await soon('the first', async () => (await place()) === '1');
  await page.keyboard.press('PageDown');
  await soon('further down', async () => (await place()) !== '1');
  await page.keyboard.press('ArrowUp');
  equal(await past(), before2, 'moving leaves no trace');
  await page.keyboard.press('Enter');
  await soon('what was opened has the focus', () => page.evaluate(() => document.activeElement.matches('.detail h2')));
  await page.keyboard.press('Escape');
  await page.getByText('Choose a tool').waitFor();
  await soon('the list has it again', () => page.evaluate(() => document.activeElement.matches('.rows')));

  // The list of one source, by its address.
  await page.goto(`${page.url().split('#')[0]}#/tools/?source=asker`);
  await page.getByText('1 tool of').waitFor();
  await page.getByLabel('Source').selectOption('');

  // Both colours, and a narrow screen.
  await page.getByRole('button', { name: /Colours/ }).click();
  await soon('it is dark', () => page.evaluate(() => document.documentElement.dataset.theme === 'dark'));
  await accessible(page, 'dark');
  await page.setViewportSize({ width: 380, height: 700 });
  await page.keyboard.press('j');
  await page.getByRole('button', { name: 'Back to the list' }).waitFor();
  equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out');
  await accessible(page, 'narrow');
  // Where one sees only the list or what is chosen, moving opens nothing, and the focus goes along.
  await page.getByRole('button', { name: 'Back to the list' }).click();
  await soon('the list has the focus', () => page.evaluate(() => document.activeElement.matches('.rows')));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  equal(await page.getByRole('button', { name: 'Back to the list' }).count(), 0, 'nothing is opened yet');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Back to the list' }).waitFor();
  await soon('what was opened has the focus', () => page.evaluate(() => document.activeElement.matches('.detail h2')));
  equal(said, [], 'errors of the page');
});
