// What the page asks the gateway: MCP over /mcp, as any client would, and /api for what MCP does not have.
//
// The token lives in sessionStorage: it ends with the tab, and no other site can make the browser send it.

const KEY = 'toolcrib-token';
const VERSION = '2026-07-28';

let expired = () => {};

/** Says what to do when the token is no longer good. */
export const onExpired = (then) => { expired = then; };
export const token = () => sessionStorage.getItem(KEY) || '';
export const setToken = (text) => {
  if (text) sessionStorage.setItem(KEY, text); else sessionStorage.removeItem(KEY);
};

/** An answer that says no. */
export class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

const headers = (more) => (token() ? { ...more, Authorization: `Bearer ${token()}` } : more);

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: 'no-store', ...options, headers: headers(options.headers || {}) });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, 'The gateway does not answer. Does it still run?');
  }
  if (response.status === 401) expired();
  return response;
}

async function refusal(response) {
  const text = await response.text().catch(() => '');
  try { return new Refused(response.status, JSON.parse(text).error || text); } catch { /* plain text */ }
  return new Refused(response.status, text.trim() || `The gateway answers ${response.status}`);
}

/** Asks /api; with a body it is a POST. */
export async function api(path, body, signal) {
  const more = body === undefined ? {} : {
    method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' },
  };
  const response = await send(`api/${path}`, { ...more, signal });
  if (!response.ok) throw await refusal(response);
  return parse(await response.text());
}

/** Publishes an event, as text: numbers stay as they were typed. */
export async function publish(text) {
  const more = { method: 'POST', body: text, headers: { 'Content-Type': 'application/json' } };
  const response = await send('events', more);
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/** Saves an artifact as a file. The browser never shows it itself. */
export async function download(id) {
  const response = await send(`api/artifact?id=${encodeURIComponent(id)}`, {});
  if (!response.ok) throw await refusal(response);
  const name = /filename="([\w.-]+)"/.exec(response.headers.get('Content-Disposition') || '');
  save(await response.blob(), name ? name[1] : `${id}.bin`);
}

/** Saves bytes as a file, under a type that nothing runs. */
export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A number as it was written, where JavaScript would write another. */
export class Num {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
  toJSON() { return JSON.rawJSON ? JSON.rawJSON(this.text) : Number(this.text); }
}

/** Reads JSON without losing digits. */
export const parse = (text) => JSON.parse(text, (_key, value, context) => {
  const source = context && context.source;
  return typeof value === 'number' && source !== undefined && String(value) !== source ? new Num(source) : value;
});

/** The events of a stream. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.search(/\r?\n\r?\n/)) !== -1) {
      const block = rest.slice(0, end);
      rest = rest.slice(end).replace(/^\r?\n\r?\n/, '');
      const event = { event: 'message', data: [] };
      for (const line of block.split(/\r?\n/)) {
        const [, key, text] = /^(\w+): ?(.*)$/.exec(line) || [];
        if (key === 'data') event.data.push(text); else if (key) event[key] = text;
      }
      yield { ...event, data: event.data.join('\n') };
    }
  }
}

/** Follows a stream until the signal says to stop, and takes it up again where it broke. */
export async function follow(path, { signal, onEvent, onState = () => {} }) {
  let last = '';
  let pause = 500;
  while (!signal.aborted) {
    try {
      const more = { Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) };
      const response = await send(path, { headers: more, signal });
      if (!response.ok) throw await refusal(response);
      onState('live', '');
      for await (const event of events(response)) {
        pause = 500;
        if (event.id) last = event.id;
        if (event.data) onEvent(event);
      }
      onState('lost', 'the stream ended');
    } catch (error) {
      if (signal.aborted) return;
      onState('lost', error.message);
      if (error.status === 401 || error.status === 400 || error.status === 403) return;
    }
    await new Promise((next) => setTimeout(next, pause));
    pause = Math.min(pause * 2, 10_000);
  }
}

let nextId = 1;

/** What a header may say as it is; anything else goes in base64. */
function headerText(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?')) return text;
  let bytes = '';
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return `=?base64?${btoa(bytes)}?=`;
}

/** Arguments that a tool wants in headers too. */
function mirrored(schema, value, found = {}) {
  for (const [name, inner] of Object.entries((schema && schema.properties) || {})) {
    const given = value && typeof value === 'object' ? value[name] : undefined;
    if (inner && typeof inner['x-mcp-header'] === 'string' && given !== undefined && given !== null) {
      found[`Mcp-Param-${inner['x-mcp-header']}`] = headerText(String(given));
    }
    if (inner && inner.properties) mirrored(inner, given, found);
  }
  return found;
}

/** A request as text, with the parameters that are given as text. */
export function rpcText(id, method, params) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'toolcrib-console', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
    progressToken: id,
  };
  const members = Object.entries(params).map(([key, text]) => `${JSON.stringify(key)}:${text}`);
  members.push(`"_meta":${JSON.stringify(meta)}`);
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${members.join(',')}}}`;
}

/**
 * Sends an MCP request. `params` holds JSON texts. Resolves to `{ result | error, text, took }`; `onNotice` hears
 * what comes before the answer. To take it back, abort the signal: the connection ends, and the call with it.
 */
export async function rpc(method, params, { name, schema, signal, onNotice = () => {} } = {}) {
  const id = nextId++;
  const more = {
    Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json',
    'MCP-Protocol-Version': VERSION, 'Mcp-Method': method,
    ...(name === undefined ? {} : { 'Mcp-Name': headerText(name) }),
    ...(schema && params.arguments ? mirrored(schema, parse(params.arguments)) : {}),
  };
  const begin = performance.now();
  const response = await send('mcp', { method: 'POST', headers: more, body: rpcText(id, method, params), signal });
  const answer = (text) => {
    const { result, error } = parse(text);
    return { result, error, text, took: performance.now() - begin };
  };
  const kind = response.headers.get('Content-Type') || '';
  if (kind.startsWith('text/event-stream')) {
    for await (const event of events(response)) {
      if (!event.data) continue;
      const message = parse(event.data);
      if (message.method) onNotice(message); else return answer(event.data);
    }
    throw new Refused(0, 'The connection ended before the answer came.');
  }
  if (!kind.startsWith('application/json')) throw await refusal(response);
  return answer(await response.text());
}
