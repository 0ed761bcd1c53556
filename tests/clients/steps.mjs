// What both Node.js clients here do with a gateway, and the JSON they print. The packages are looked up in
// the folder that TOOLS names, by default .tools in the repository.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const tools = process.env.TOOLS ?? join(here, '../../.tools');
export const need = createRequire(join(tools, 'package.json'));

// SCRIPT [--direct] MODE TARGET...
const rest = process.argv.slice(2);
export const direct = rest[0] === '--direct';
export const [mode, ...target] = rest.slice(direct ? 1 : 0);

const KEYS = ['client', 'mode', 'tools', 'echo', 'moon', 'prompts', 'prompt', 'resources', 'read', 'templates',
  'dynamic', 'progress', 'cancelled', 'after_cancel', 'elicited', 'sampled', 'roots', 'logged', 'unknown'];
const AWAITED = ['mcp__everything__echo', 'mcp__almanac__moon_phase', 'mcp__asker__ask_name',
  'mcp__time__get_current_time'];
const LONG = 'mcp__everything__trigger_long_running_operation';

// What the client declares, and how it answers each request of a server.
export const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
export const answers = {
  elicit: async () => ({ action: 'accept', content: { name: 'Ada' } }),
  sample: async () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'blue' } }),
  roots: async () => ({ roots: [{ uri: 'file:///srv/work' }] }),
};
const logs = [];
const progress = [];
export const log = ({ params }) => void logs.push(params);

const message = error => String(error?.message ?? error).replace(/^(MCP error -?\d+: )+/, '');
const first = async call => {
  const { content, isError } = await call;
  if (isError) throw new Error(content[0].text);
  return content[0].text;
};
const attempt = call => first(call).catch(error => `error: ${message(error)}`);

// Notifications may be handled a moment after the result that they came before.
const until = async (done, seconds) => {
  const end = Date.now() + 1000 * seconds;
  while (!(await done()) && Date.now() < end) await sleep(100);
};

// call(name, arguments, options) is the only thing that the two clients spell differently.
async function ordinary(client, call) {
  let names = [];
  // A gateway on standard input answers before its servers are up.
  await until(async () => {
    names = (await client.listTools()).tools.map(tool => tool.name);
    return AWAITED.every(name => names.includes(name));
  }, 20);
  const { resources } = await client.listResources();
  const read = await client.readResource({ uri: resources[0].uri });
  const prompt = await client.getPrompt({ name: 'mcp__everything__args_prompt', arguments: { city: 'Oslo' } });
  const dynamic = await client.readResource({ uri: 'demo://resource/dynamic/text/1' });
  const seen = {
    tools: names.length,
    echo: await attempt(call('mcp__everything__echo', { message: 'hi' })),
    moon: (await call('mcp__almanac__moon_phase', { date: '2026-11-24' })).structuredContent,
    prompts: (await client.listPrompts()).prompts.map(prompt => prompt.name).sort(),
    prompt: prompt.messages[0].content.text,
    resources: resources.length,
    read: read.contents[0].uri === resources[0].uri,
    templates: (await client.listResourceTemplates()).resourceTemplates.length,
    dynamic: dynamic.contents[0].text.split(':')[0],
    progress,
  };
  await call(LONG, { duration: 1, steps: 2 }, { onprogress: () => {} });
  await until(() => progress.length === 2, 2);
  const began = Date.now();
  const signal = AbortSignal.timeout(500);
  const ended = await call(LONG, { duration: 20, steps: 2 }, { signal }).then(() => 'done', () => 'aborted');
  seen.cancelled = ended === 'aborted' && Date.now() - began < 5000;
  seen.after_cancel = await attempt(call('mcp__everything__echo', { message: 'still here' }));
  seen.unknown = await first(call('mcp__almanac__nothing', {})).then(() => null, message);
  return seen;
}

async function asking(client, call, prefix, setLevel) {
  const seen = {
    elicited: await attempt(call(`${prefix}ask_name`, {})),
    sampled: await attempt(call(`${prefix}ask_model`, {})),
    roots: await attempt(call(`${prefix}list_roots`, {})),
  };
  // Other servers log too.
  const logged = () => logs.filter(one => one.logger?.endsWith('asker')).map(one => one.data);
  try {
    if (setLevel && client.getServerCapabilities()?.logging) await client.setLoggingLevel('info');
    await first(call(`${prefix}log_three`, {}));
    await until(() => logged().length === 3, 2);
    seen.logged = logged();
  } catch (error) {
    seen.logged = `error: ${message(error)}`;
  }
  return seen;
}

export async function drive(name, client, transport, call, setLevel = true) {
  await client.connect(transport);
  // Both clients lose a progress notification that arrives in one read with the result, so this looks at
  // what arrives, and not at what their handlers are told.
  const receive = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (message.method === 'notifications/progress') progress.push(message.params.progress);
    receive(message, extra);
  };
  const seen = { client: name, mode };
  if (!direct) Object.assign(seen, await ordinary(client, call));
  Object.assign(seen, await asking(client, call, direct ? '' : 'mcp__asker__', setLevel));
  await client.close();
  console.log(JSON.stringify(Object.fromEntries(KEYS.map(key => [key, seen[key] ?? null]))));
}
