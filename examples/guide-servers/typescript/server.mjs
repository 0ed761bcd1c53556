// The example tools of the guide, as a server made with the official TypeScript SDK: server.mjs
//
// It speaks over standard input and output. GUIDE_DATA is the folder that `read_file` reads from, GUIDE_API the
// one address that `api_call` may call, GUIDE_LOG a file that gets a line for every call.

import { appendFileSync } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const { GUIDE_API: API = '', GUIDE_LOG: LOG = '', GUIDE_API_KEY: KEY = 'none' } = process.env;
const DATA = process.env.GUIDE_DATA || join(dirname(fileURLToPath(import.meta.url)), '..', 'data');
const MOST_BYTES = 1024 * 1024;
const PAGES = [
  { title: 'The Rust book', url: 'https://books.example/rust' },
  { title: 'Rust in the workshop', url: 'https://books.example/workshop' },
  { title: 'Learning Python', url: 'https://books.example/python' },
  { title: 'TypeScript in a week', url: 'https://books.example/typescript' },
];

const item = (id, title, category, status, weight, description = '') => ({ id, title, description, category, status, weight });
const SAMPLES = [
  item('item-1', 'Claw hammer', 'hand', 'active', 0.6),
  item('item-2', 'Block plane', 'hand', 'active', 0.9),
  item('item-3', 'Hand drill', 'hand', 'archived', 1.1),
  item('item-4', 'Band saw', 'machine', 'active', 85),
  item('item-5', 'Drill press', 'machine', 'active', 120.5),
  item('item-6', 'Belt sander', 'machine', 'archived', 30),
  item('item-7', 'Steel rule', 'measure', 'active', 0.1),
];
// Maps, not objects: `__proto__` is a key like any other.
const items = new Map(SAMPLES.map(it => [it.id, it]));
const users = new Map();
const settings = { mode: 'workshop', pageSize: 20, apiKey: KEY };
let created = SAMPLES.length;

/** The arguments have the right form and still make no sense. */
class Invalid extends Error {}
/** Something that could not be done, through no fault of the arguments' form. */
class Fault extends Error {}

// What the schemas are made of.

const text = (description, rules = {}) => ({ type: 'string', description, ...rules });
const whole = (description, rules = {}) => ({ type: 'integer', description, ...rules });
const object = (properties = {}, required = [], rules = {}) => ({ type: 'object', properties, required, additionalProperties: false, ...rules });
const some = (description, each, most, rules = {}) => ({ type: 'array', description, items: each, minItems: 1, maxItems: most, ...rules });

const ID = text('Id of an item, such as item-3', { pattern: '^item-[0-9]{1,6}$' });
const TITLE = text('What the item is called', { minLength: 1, maxLength: 100, pattern: '^[^\\x00-\\x1f\\x7f]*$' });
const ABOUT = text('What to know about it', { maxLength: 1000 });
const CATEGORY = text('Kind of item', { pattern: '^[a-z]{1,20}$' });
const STATUS = text('Whether it is in use', { enum: ['active', 'archived'] });
const WEIGHT = { type: 'number', description: 'Kilograms', minimum: 0, maximum: 1000 };
const CHANGES = { title: TITLE, description: ABOUT, status: STATUS, weight: WEIGHT };

const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
const tools = new Map();

/** Makes a function a tool. It gives a text, and the same as a structure. */
function tool(name, description, inputSchema, hints, run) {
  const annotations = {
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: hints.readOnlyHint === true,
    openWorldHint: false,
    ...hints,
  };
  tools.set(name, { definition: { name, description, inputSchema, annotations }, fits: ajv.compile(inputSchema), run });
}

const READS = { readOnlyHint: true };

// Searching, and a tool made of several steps.

tool(
  'search_web',
  'Search the stored pages for words of their titles',
  object(
    {
      query: text('What to look for', { minLength: 1, maxLength: 200 }),
      limit: whole('How many results to show', { minimum: 1, maximum: 50, default: 10 }),
    },
    ['query'],
  ),
  READS,
  ({ query, limit = 10 }) => {
    const found = PAGES.filter(it => it.title.toLowerCase().includes(query.toLowerCase()));
    const results = found.slice(0, limit);
    const lines = [`Found ${found.length} results for: ${query}`, ...results.map(it => it.title)];
    return [lines.join('\n'), { query, total: found.length, results }];
  },
);

const RULES = [
  { rule: 'eval', breaks: line => line.includes('eval('), suggestion: 'call what is meant directly' },
  { rule: 'todo', breaks: line => line.includes('TODO'), suggestion: 'do it, or open an issue' },
  { rule: 'long', breaks: line => [...line].length > 100, suggestion: 'break the line' },
];
const parseCode = async code => code.split('\n').map((line, at) => ({ line, number: at + 1 }));
const findIssues = async lines =>
  lines.flatMap(({ line, number }) => RULES.filter(it => it.breaks(line)).map(it => ({ number, ...it })));
const suggest = async issues => issues.map(({ number, rule, suggestion }) => ({ line: number, rule, suggestion }));

tool(
  'analyze_code',
  'Look through source code for doubtful lines; the code is never run',
  object({ code: text('The source code', { minLength: 1, maxLength: 10000 }) }, ['code']),
  READS,
  async ({ code }) => {
    const lines = await parseCode(code);
    const issues = await suggest(await findIssues(lines));
    const said = issues.map(it => `line ${it.line}: ${it.rule}: ${it.suggestion}`);
    return [[`${lines.length} lines, ${issues.length} issues`, ...said].join('\n'), { lines: lines.length, issues }];
  },
);

// Items: create, get, update, delete; filters, pages, many at once.

function findItem(id) {
  const found = items.get(id);
  if (!found) throw new Fault(`there is no item \`${id}\`; search_items finds what there is`);
  return found;
}

function change(id, changes) {
  items.set(id, { ...items.get(id), ...changes });
  return items.get(id);
}

tool(
  'create_item',
  'Create a new item and give it an id',
  object({ title: TITLE, description: ABOUT, category: { ...CATEGORY, default: 'general' }, weight: WEIGHT }, ['title']),
  {},
  ({ title, description = '', category = 'general', weight = 0 }) => {
    if (items.size >= 1000) throw new Fault('there is room for 1000 items');
    created += 1;
    const made = item(`item-${created}`, title, category, 'active', weight, description);
    items.set(made.id, made);
    return [`Created ${made.id}`, made];
  },
);

tool('get_item', 'Get one item by its id', object({ id: ID }, ['id']), READS, ({ id }) => {
  const found = findItem(id);
  return [`${id}: ${found.title}`, found];
});

tool(
  'update_item',
  'Change an item; what is left out stays as it is',
  object({ id: ID, ...CHANGES }, ['id']),
  { idempotentHint: true },
  ({ id, ...changes }) => {
    findItem(id);
    if (Object.keys(changes).length === 0) throw new Invalid('name at least one thing to change');
    return [`Updated ${id}`, change(id, changes)];
  },
);

tool('delete_item', 'Delete one item by its id', object({ id: ID }, ['id']), { destructiveHint: true }, ({ id }) => {
  findItem(id);
  items.delete(id);
  return [`Deleted ${id}`, { deleted: id }];
});

tool(
  'search_items',
  'Search items by a part of their title, with filters',
  object({
    query: text('Part of the title', { maxLength: 200 }),
    category: CATEGORY,
    status: STATUS,
    limit: whole('How many items to show', { minimum: 1, maximum: 100, default: 20 }),
  }),
  READS,
  ({ query = '', category, status, limit = 20 }) => {
    const fits = it =>
      it.title.toLowerCase().includes(query.toLowerCase()) &&
      (category ?? it.category) === it.category &&
      (status ?? it.status) === it.status;
    const found = [...items.values()].filter(fits);
    return [`Found ${found.length} items`, { total: found.length, items: found.slice(0, limit) }];
  },
);

tool(
  'list_items',
  'List the ids of all items, page by page',
  object({
    page: whole('Which page, from 1', { minimum: 1, maximum: 1000000, default: 1 }),
    limit: whole('Items per page', { minimum: 1, maximum: 100, default: 20 }),
  }),
  READS,
  ({ page = 1, limit = 20 }) => {
    const begin = (page - 1) * limit;
    const shown = [...items.keys()].slice(begin, begin + limit);
    const said = shown.length
      ? `Items ${begin + 1} to ${begin + shown.length} of ${items.size}`
      : `No items on page ${page} of ${items.size} items`;
    return [said, { items: shown, page, limit, total: items.size }];
  },
);

tool(
  'batch_update',
  'Update several items: all of them, or none',
  object(
    {
      items: some(
        'Ids, each with what to change',
        object({ id: ID, changes: object(CHANGES, [], { minProperties: 1 }) }, ['id', 'changes']),
        50,
      ),
    },
    ['items'],
  ),
  { idempotentHint: true },
  ({ items: wanted }) => {
    wanted.forEach(it => findItem(it.id));
    wanted.forEach(it => change(it.id, it.changes));
    return [`Updated ${wanted.length} items`, { updated: wanted.map(it => it.id) }];
  },
);

tool(
  'batch_get_items',
  'Get several items with one call',
  object({ itemIds: some('Ids of the items', ID, 50, { uniqueItems: true }) }, ['itemIds']),
  READS,
  ({ itemIds }) => {
    const found = itemIds.filter(id => items.has(id)).map(id => items.get(id));
    const missing = itemIds.filter(id => !items.has(id));
    return [`Got ${found.length} of ${itemIds.length} items`, { items: found, missing }];
  },
);

// Tools that need care: settings, everything at once, users.

tool('get_config', 'Get the settings; secrets are masked', object(), READS, () => {
  const shown = { ...settings, apiKey: '****' };
  return [`mode: ${shown.mode}, page size: ${shown.pageSize}, api key: ${shown.apiKey}`, shown];
});

tool(
  'delete_database',
  'Delete every item for good',
  object(
    { name: text('Which database', { enum: ['guide'] }), confirm: { type: 'boolean', description: 'That this is really meant' } },
    ['name', 'confirm'],
  ),
  { destructiveHint: true },
  ({ name, confirm }) => {
    if (!confirm) throw new Invalid('confirm must be true, since every item is deleted');
    const deleted = items.size;
    items.clear();
    return [`Deleted ${deleted} items of ${name}`, { deleted }];
  },
);

tool(
  'ensure_user_exists',
  'Create a user unless there is one of that name',
  object(
    {
      username: text('Name to sign in with', { pattern: '^[a-z][a-z0-9_]{2,30}$' }),
      email: text('Where to write to', { format: 'email', maxLength: 254 }),
    },
    ['username', 'email'],
  ),
  { idempotentHint: true },
  ({ username, email }) => {
    const isNew = !users.has(username);
    if (isNew && users.size >= 1000) throw new Fault('there is room for 1000 users');
    if (isNew) users.set(username, email);
    return [`${isNew ? 'Created' : 'Found'} user ${username}`, { username, created: isNew }];
  },
);

// Reaching outside: an address, a query, a file. Each within a fence.

tool(
  'api_call',
  'Call an endpoint of the one HTTP address that is allowed',
  object(
    {
      endpoint: text('Address to call', { format: 'uri', maxLength: 2000 }),
      method: text('What to do there', { enum: ['GET', 'POST', 'PUT', 'DELETE'], default: 'GET' }),
      body: { type: 'object', description: 'Sent as JSON' },
    },
    ['endpoint'],
  ),
  { destructiveHint: true, openWorldHint: true },
  async ({ endpoint, method = 'GET', body }) => {
    // Compared as text, up to the slash that ends the host: two programs may read an odd address in two ways.
    if (!API || !endpoint.startsWith(`${API}/`)) throw new Invalid('endpoint is not at the address that is allowed');
    if (method === 'GET' && body !== undefined) throw new Invalid('body: a GET has none');
    // A redirect could lead anywhere, so it is an answer like any other.
    const request = { method, redirect: 'manual', signal: AbortSignal.timeout(5000) };
    if (body !== undefined) {
      request.body = JSON.stringify(body);
      request.headers = { 'Content-Type': 'application/json' };
    }
    let status, bytes;
    try {
      const response = await fetch(endpoint, request);
      status = response.status;
      bytes = await response.arrayBuffer();
    } catch {
      throw new Fault('the endpoint cannot be reached');
    }
    const answer = { status, body: new TextDecoder().decode(bytes.slice(0, MOST_BYTES)) };
    return [`${method} gave ${status}`, answer];
  },
);

const COLUMNS = ['id', 'title', 'category', 'status', 'weight'];
const COMPARE = new Map([
  ['=', (a, b) => a === b],
  ['<', (a, b) => a < b],
  ['>', (a, b) => a > b],
]);

/** Reads SELECT … FROM items [WHERE column = ? AND …]. A value can only be a `?`. */
function readQuery(query) {
  const words = query.match(/[A-Za-z_]+|[^ \t\r\n]/gu) ?? [];
  let at = 0;
  const take = (...allowed) => {
    const word = words[at]?.toLowerCase();
    if (!allowed.includes(word)) throw new Invalid(`query: expected ${allowed.join(' or ')} at word ${at + 1}`);
    at += 1;
    return word;
  };
  const condition = () => {
    const found = { column: take(...COLUMNS), sign: take(...COMPARE.keys()) };
    take('?');
    return found;
  };
  take('select');
  const columns = [take('*', ...COLUMNS)];
  while (columns[0] !== '*' && words[at] === ',') {
    take(',');
    columns.push(take(...COLUMNS));
  }
  take('from');
  take('items');
  const conditions = [];
  while (at < words.length) {
    take(conditions.length ? 'and' : 'where');
    conditions.push(condition());
  }
  return { columns: columns[0] === '*' ? COLUMNS : columns, conditions };
}

tool(
  'execute_query',
  'Read from the table items with a small part of SQL: SELECT columns FROM items WHERE column = ? AND column < ?',
  object(
    {
      query: text('The SELECT; a ? stands for each value', { minLength: 1, maxLength: 1000 }),
      params: {
        type: 'array',
        description: 'The values, in order',
        items: { type: ['string', 'number', 'boolean'] },
        maxItems: 20,
      },
    },
    ['query'],
  ),
  READS,
  ({ query, params = [] }) => {
    const { columns, conditions } = readQuery(query);
    if (conditions.length !== params.length) {
      throw new Invalid(`params: the query has ${conditions.length} ?, and there are ${params.length} values`);
    }
    conditions.forEach(({ column }, at) => {
      const wanted = column === 'weight' ? 'number' : 'string';
      if (typeof params[at] !== wanted) throw new Invalid(`params: that is no value for ${column}`);
    });
    const fits = it => conditions.every(({ column, sign }, at) => COMPARE.get(sign)(it[column], params[at]));
    const rows = [...items.values()].filter(fits).map(it => columns.map(column => it[column]));
    return [`${rows.length} rows`, { columns, rows: rows.slice(0, 100) }];
  },
);

/** Reads a file of the data folder. What is outside and what is not there get the same answer. */
async function readInside(path, encoding) {
  let bytes;
  try {
    const folder = await realpath(DATA);
    // realpath follows `..` and links, so what is compared is the file that would be opened.
    const file = await realpath(resolve(folder, path));
    const about = await stat(file);
    if (file.startsWith(folder + sep) && about.isFile() && about.size <= MOST_BYTES) bytes = await readFile(file);
  } catch {
    // Why it cannot be read would tell what there is.
  }
  if (bytes === undefined) throw new Invalid('path: the data folder has no such file');
  if (encoding === 'latin1') return bytes.toString('latin1');
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Fault('the file is not utf-8');
  }
}

tool(
  'read_file',
  'Read a text file of the data folder',
  object(
    {
      path: text('Where it is in that folder', { minLength: 1, maxLength: 255 }),
      encoding: text('How its bytes are to be read', { enum: ['utf-8', 'latin1'], default: 'utf-8' }),
    },
    ['path'],
  ),
  READS,
  async ({ path, encoding = 'utf-8' }) => {
    const said = await readInside(path, encoding);
    return [said, { path, text: said }];
  },
);

const cache = new Map();
let fetches = 0;

/** A Map keeps the order in which keys came: whoever is used goes to the end, the first one leaves. */
async function fetchResource(key) {
  let said = cache.get(key);
  if (said === undefined) {
    said = await readInside(`${key}.txt`, 'utf-8');
    fetches += 1;
  }
  cache.delete(key);
  cache.set(key, said);
  if (cache.size > 128) cache.delete(cache.keys().next().value);
  return said;
}

tool(
  'get_cached_resource',
  'Get a text by its key; it is read once and then remembered',
  object({ key: text('Name of the text', { pattern: '^[a-z]{1,20}$' }) }, ['key']),
  READS,
  async ({ key }) => {
    const said = await fetchResource(key);
    return [said, { key, text: said, fetches }];
  },
);

// The server.

const log = line => LOG && appendFileSync(LOG, `${line}\n`);

/** Whoever calls without a gateway is held to the schema too. */
function check({ fits }, args) {
  if (fits(args)) return;
  const [{ instancePath, keyword }] = fits.errors;
  throw new Invalid(`${instancePath.slice(1) || 'arguments'}: ${keyword} does not hold`);
}

async function callTool({ params: { name, arguments: args = {} } }) {
  const called = tools.get(name);
  log(called ? `call ${name}` : 'unknown tool');
  try {
    if (!called) throw new Invalid('there is no such tool');
    check(called, args);
    const [said, structuredContent] = await called.run(args);
    return { content: [{ type: 'text', text: said }], structuredContent, isError: false };
  } catch (error) {
    log(called ? `failed ${name}` : 'failed');
    // What an unexpected error says may hold anything; its kind does not.
    let said = `Error: ${error.name}`;
    if (error instanceof Invalid) said = `Invalid input: ${error.message}`;
    if (error instanceof Fault) said = `Error: ${error.message}`;
    return { content: [{ type: 'text', text: said }], isError: true };
  }
}

const server = new Server({ name: 'guide-typescript', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...tools.values()].map(it => it.definition) }));
server.setRequestHandler(CallToolRequestSchema, callTool);
await server.connect(new StdioServerTransport());
