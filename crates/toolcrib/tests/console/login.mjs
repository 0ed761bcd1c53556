// A token lets one in, and a group sees and does what it may.

import { accessible, address, equal, open, run, soon } from './browser.mjs';

await run(async ({ page, said }) => {
  await page.goto(address);
  await page.getByLabel('Token').waitFor();
  await accessible(page, 'login');
  await page.getByLabel('Token').fill('SECRET_WRONG');
  await page.getByRole('button', { name: 'Look' }).click();
  await page.getByText('Nobody has this token.').waitFor();
  const enter = async (token) => {
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Look' }).click();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  };
  // Somebody of a group: its tools, its calls, nothing to do with how the gateway runs.
  await enter('SECRET_TOKEN_A');
  await page.getByText('group a').waitFor();
  const names = () => page.getByRole('listbox', { name: 'Tools' }).locator('.row-name').allInnerTexts();
  await soon('the tools of a', async () => (await names()).length > 0);
  equal((await names()).filter((it) => !it.startsWith('mcp__a__')), [], 'tools of others');
  equal(await page.evaluate(() => [document.cookie, Object.keys(localStorage).join()]), ['', ''], 'the token is kept nowhere else');
  await page.goto(`${address}/#/tools/mcp__a__echo`);
  await page.getByRole('article').getByRole('button', { name: 'Run' }).click();
  await page.getByText('Answered in').waitFor();
  await page.goto(`${address}/#/tools/mcp__b__echo`);
  await page.getByText('there is no such tool').waitFor();
  await page.goto(`${address}/#/calls`);
  const calls = page.getByRole('listbox', { name: 'Calls' });
  await calls.getByRole('option').first().waitFor();
  equal(await calls.locator('.row-name').allInnerTexts(), ['mcp__a__echo'], 'calls of a');
  await page.goto(`${address}/#/servers`);
  await page.getByRole('heading', { name: /^a / }).waitFor();
  equal([await page.getByRole('heading', { name: /^b / }).count(), await page.getByRole('button', { name: 'Restart' }).count(), await page.getByRole('heading', { name: 'Pins' }).count()], [0, 0, 0], 'nothing of others');
  // An operator sees the calls of all, and may restart.
  await page.getByRole('button', { name: 'Leave' }).click();
  await enter('SECRET_TOKEN_BOSS');
  await page.getByText('operator').first().waitFor();
  await page.getByRole('button', { name: 'Restart' }).first().waitFor();
  await page.goto(`${address}/#/calls`);
  await calls.getByRole('option').first().waitFor();
  equal(await calls.locator('.row-name').allInnerTexts(), ['mcp__a__echo'], 'calls of all');
  // The catalogue as another group sees it.
  await page.goto(`${address}/#/tools`);
  await page.getByLabel('Group').selectOption('b');
  await soon('the tools of b', async () => (await names()).join() === 'mcp__b__echo,mcp__b__other');
  equal(said.filter((it) => !it.includes('401') && !it.includes('404')), [], 'errors of the page');
});
