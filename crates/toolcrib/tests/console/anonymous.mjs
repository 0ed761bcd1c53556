// Somebody without a token is let in, and may still have one.

import { address, equal, open, run, soon } from './browser.mjs';

await run(async ({ page, said }) => {
  await open(page);
  await page.getByText('group guest').waitFor();
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByLabel('Token').fill('SECRET_WRONG');
  await page.getByRole('button', { name: 'Look' }).click();
  await page.getByText('Nobody has this token.').waitFor();
  // Back to what one was.
  await page.getByRole('button', { name: 'Go on without' }).click();
  await page.getByText('group guest').waitFor();
  equal(await page.evaluate(() => sessionStorage.length), 0, 'no token is kept');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByLabel('Token').fill('SECRET_TOKEN_A');
  await page.getByRole('button', { name: 'Look' }).click();
  await page.getByText('group a').waitFor();
  await soon('the tools of a', async () => (await page.getByRole('listbox', { name: 'Tools' }).locator('.row-name').allInnerTexts()).includes('mcp__a__echo'));
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.getByText('group guest').waitFor();
  await page.goto(`${address}/#/tools`);
  equal(said.filter((it) => !it.includes('401')), [], 'errors of the page');
});
