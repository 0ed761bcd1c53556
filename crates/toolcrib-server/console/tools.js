// Tools: find one, read what it takes, try it.

import { api, rpc, rpcText } from './ask.js';
import { Field, Shape } from './form.js';
import { Badge, Empty, Failed, Fold, Guard, Notice, Rows, Snippet, clean, html, millis, plural, size, useEffect, useLoad, useMemo, useRef, useState } from './parts.js';
import { Result } from './result.js';
import { begin, faultsOf, textOf } from './schema.js';

const CLAIMS = [
  ['readOnlyHint', true, 'read-only', ''], ['destructiveHint', true, 'destructive', 'warn'],
  ['idempotentHint', true, 'idempotent', ''], ['openWorldHint', true, 'reaches outside', ''],
];
const CLAIMED = 'This is what the server claims of its tool. Nobody has checked it.';

function Claims({ claims }) {
  const said = CLAIMS.filter(([key, value]) => claims && claims[key] === value);
  return html`${said.map(([key, , text, kind]) => html`<${Badge} key=${key} kind=${`claim ${kind}`} title=${CLAIMED}>claims: ${text}<//>`)}`;
}

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

const TypeRow = (it) => html`<div class="row-head"><span class="row-name">${clean(it.name)}</span>${it.flag && html`<${Badge} kind="bad" title=${clean(it.flag)}>suspicious<//>`}
  <${Badge} kind="source">${clean(it.source)}<//></div><div class="row-text">${clean(it.description || it.title || 'no description')}</div>`;

/** A shell's single quotes. */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`);

function Questions({ requests, onAnswer }) {
  const entries = Object.entries(requests);
  const [key, first] = entries[0] || [];
  const schema = { type: 'object', ...((first && first.params && first.params.requestedSchema) || {}), };
  const root = { ...schema, properties: schema.properties || {} };
  const [draft, setDraft] = useState(() => begin(root, root, true));
  if (!first || first.method !== 'elicitation/create' || 1 < entries.length) {
    return html`<${Notice} kind="bad">The tool asks for something that this page cannot give: <code>${clean(first && first.method)}</code><//>`;
  }
  const faults = faultsOf(root, root, draft, true, 'answer');
  const answer = (action) => onAnswer(`{${JSON.stringify(key)}:{"action":"${action}"${action === 'accept' ? `,"content":${textOf(root, root, draft, true)}` : ''}}}`);
  return html`<form class="question" onSubmit=${(event) => { event.preventDefault(); answer('accept'); }}>
    <h4>The tool asks</h4><p>${clean(first.params && first.params.message)}</p>
    <${Field} name="answer" schema=${root} root=${root} value=${draft} required=${true} path="answer" faults=${faults} onChange=${setDraft} />
    <button class="strong" type="submit" disabled=${0 < Object.keys(faults).length}>Answer</button> <button type="button" onClick=${() => answer('decline')}>Decline</button></form>`;
}

/** A form for a tool, and what comes of it. */
export function Try({ name, definition }) {
  const root = useMemo(() => ({ type: 'object', properties: {}, ...definition.inputSchema }), [definition]);
  const [draft, setDraft] = useState(() => begin(root, root, true));
  const [json, setJson] = useState(null);
  const [tried, setTried] = useState(false);
  const [run, setRun] = useState(null);
  const stop = useRef(null);
  useEffect(() => () => stop.current && stop.current.abort(), []);
  const faults = useMemo(() => {
    if (json === null) return faultsOf(root, root, draft, true);
    try { const value = JSON.parse(json); return value && typeof value === 'object' && !Array.isArray(value) ? {} : { args: 'arguments are an object' }; } catch (error) { return { args: `not JSON: ${error.message}` }; }
  }, [root, draft, json]);
  const args = json === null ? textOf(root, root, draft, true) : json.trim() || '{}';
  const wrong = Object.keys(faults).length;
  // What is missing is said when somebody wants to run it, what is wrong at once.
  const shown = tried ? faults : Object.fromEntries(Object.entries(faults).filter(([, it]) => it !== 'required'));

  const call = async (more = {}) => {
    stop.current = new AbortController();
    const began = { busy: true, notices: [] };
    setRun(began);
    const onNotice = (message) => setRun((it) => ({ ...it, notices: [...it.notices.slice(-99), message] }));
    try {
      const params = { name: JSON.stringify(name), arguments: args, ...more };
      const answer = await rpc('tools/call', params, { name, schema: definition.inputSchema, signal: stop.current.signal, onNotice });
      setRun((it) => ({ ...it, busy: false, answer }));
    } catch (error) {
      setRun((it) => ({ ...it, busy: false, error: error.name === 'AbortError' ? null : error, cancelled: error.name === 'AbortError' }));
    }
  };
  const submit = (event) => { event.preventDefault(); setTried(true); if (!wrong) call(); };
  const keys = (event) => { if ((event.ctrlKey || event.metaKey) && event.key === 'Enter') submit(event); };
  const progress = run && [...run.notices].reverse().find((it) => it.method === 'notifications/progress');
  const logs = run ? run.notices.filter((it) => it.method === 'notifications/message') : [];
  const answer = run && run.answer;
  const asks = answer && answer.result && answer.result.resultType === 'input_required' && answer.result;
  return html`<form class="try" aria-label=${`Try ${name}`} onSubmit=${submit} onKeyDown=${keys}>
    <div class="switch" role="group" aria-label="Fill in as"><button type="button" class="small" aria-pressed=${json === null} onClick=${() => setJson(null)}>Form</button>
      <button type="button" class="small" aria-pressed=${json !== null} onClick=${() => json === null && setJson(args)}>JSON</button></div>
    ${json === null ? html`${Object.keys(root.properties || {}).length === 0 && html`<p class="quiet">It takes no arguments.</p>`}
      <${Field} name="arguments" schema=${root} root=${root} value=${draft} required=${true} path="args" faults=${shown} onChange=${setDraft} />`
      : html`<div class="field"><label for="args">Arguments as JSON</label><textarea id="args" rows="8" spellcheck="false" value=${json} aria-invalid=${faults.args ? 'true' : undefined} aria-describedby="args-about" onInput=${(event) => setJson(event.target.value)}></textarea>
        <div id="args-about" class="about">${faults.args && html`<span class="fault">${clean(faults.args)}</span>`}</div></div>`}
    <div class="line"><button class="strong" type="submit" disabled=${run && run.busy}>Run</button>
      ${run && run.busy && html`<button type="button" onClick=${() => stop.current.abort()}>Cancel</button>`}
      <span class="quiet">${tried && wrong ? `${plural(wrong, 'field')} to put right` : 'Ctrl + Enter runs it'}</span></div>
  </form>
  <div class="outcome" aria-live="polite" aria-busy=${run && run.busy ? 'true' : 'false'}>
    ${run && run.busy && html`<p class="busy">Running ${progress && html`<progress max=${progress.params.total ? Number(progress.params.total) : undefined} value=${progress.params.total ? Number(progress.params.progress) : undefined}></progress>
      <span>${String(progress.params.progress)}${progress.params.total ? ` of ${progress.params.total}` : ''} ${clean(progress.params.message || '')}</span>`}</p>`}
    ${run && run.cancelled && html`<${Notice}>Cancelled. What the tool had begun may have been done.<//>`}
    ${run && run.error && html`<${Failed} error=${run.error} />`}
    ${answer && html`<p class="quiet">Answered in ${millis(answer.took)}, ${size(answer.text.length)}</p>`}
    ${answer && answer.error && html`<${Notice} kind="bad">${clean(answer.error.message)} (code ${String(answer.error.code)})<//>`}
    ${asks && html`<${Questions} requests=${asks.inputRequests || {}} onAnswer=${(text) => call({ inputResponses: text, ...(asks.requestState === undefined ? {} : { requestState: JSON.stringify(asks.requestState) }) })} />`}
    ${answer && answer.result && !asks && html`<${Guard} key=${answer.text}><${Result} result=${answer.result} /><//>`}
    ${0 < logs.length && html`<details><summary>${plural(logs.length, 'log message')}</summary><pre tabindex="0">${logs.map((it) => clean(`${it.params.level || ''} ${typeof it.params.data === 'string' ? it.params.data : JSON.stringify(it.params.data)}\n`)).join('')}</pre></details>`}
    ${answer && html`<${Fold} title="The answer as it came" inside=${() => html`<pre tabindex="0" aria-label="The answer as it came">${clean(answer.text.slice(0, 200_000))}</pre>`} />`}
  </div>
  <${Fold} kind="same" title="The same from elsewhere" inside=${() => html`
    <${Snippet} label="on the command line" text=${`toolcrib call ${quoted(name)}${args === '{}' ? '' : ` --args ${quoted(args)}`}`} />
    <${Snippet} label="JSON-RPC, to /mcp" text=${rpcText(1, 'tools/call', { name: JSON.stringify(name), arguments: args })} />`} />`;
}

function Detail({ name, me, onBack }) {
  const { data, error, loading } = useLoad((signal) => api(`tool?name=${encodeURIComponent(name)}`, undefined, signal), [name]);
  const heading = useRef(null);
  if (error) return html`<article class="detail"><button class="small back" onClick=${onBack}>Back to the list</button><${Failed} error=${error} /></article>`;
  if (!data || (loading && data.definition.name !== name)) return html`<article class="detail"><p class="quiet">Loading</p></article>`;
  const { definition, source, original, flag, faults = [], groups } = data;
  const schema = { type: 'object', properties: {}, ...definition.inputSchema };
  return html`<article class="detail" aria-label=${`Tool ${name}`}>
    <button class="small back" type="button" onClick=${onBack}>Back to the list</button>
    <h2 ref=${heading} tabindex="-1">${clean(name)}</h2>
    <p>${definition.title && html`<b>${clean(definition.title)}</b> `}<${Badge} kind="source">${clean(source)}<//> <${Claims} claims=${definition.annotations} /></p>
    ${flag && html`<${Notice} kind="bad"><b>Suspicious definition.</b> ${clean(flag)}<//>`}
    <p class="description">${clean(definition.description || 'The server does not describe it.')}</p>
    ${original && original !== name && html`<p class="quiet">The server calls it <code>${clean(original)}</code>.${groups ? ` Groups that may call it: ${groups.map(clean).join(', ') || 'none'}.` : ''}</p>`}
    ${data.stored_over && html`<p class="quiet">Results over ${size(data.stored_over)} are stored, for ${clean(me.group)}.</p>`}
    ${faults.map((it) => html`<${Notice}>${clean(it.message)}<//>`)}
    <h3>Try it</h3><${Guard}><${Try} key=${name} name=${name} definition=${definition} /><//>
    <${Fold} title="What it takes" inside=${() => html`<${Shape} schema=${schema} root=${schema} />`} />
    ${definition.outputSchema && html`<${Fold} title="What it gives" inside=${() => html`<${Shape} schema=${definition.outputSchema} root=${definition.outputSchema} />`} />`}
    <${Fold} title="Its definition" inside=${() => html`<${Snippet} label="definition" text=${JSON.stringify(definition, null, 2)} />`} />
  </article>`;
}

export function Tools({ me, path, go, search, beat }) {
  const [query, setQuery] = useState('');
  const [source, setSource] = useState('');
  const [claim, setClaim] = useState('');
  const [group, setGroup] = useState(me.group);
  const load = useLoad((signal) => api(`tools${group === me.group ? '' : `?group=${encodeURIComponent(group)}`}`, undefined, signal), [group, beat]);
  const all = load.data ? load.data.tools : [];
  const sources = useMemo(() => [...new Set(all.map((it) => it.source))].sort(), [all]);
  const indexed = useMemo(() => all.map((it) => [it, `${it.name} ${it.title || ''} ${it.description || ''} ${it.source}`.toLowerCase()]), [all]);
  const found = useMemo(() => {
    const wanted = words(query);
    const claims = (it) => claim === '' || (claim === 'flag' ? it.flag : it.claims && it.claims[claim] === true);
    return indexed.filter(([it, text]) => (source === '' || it.source === source) && claims(it) && wanted.every((word) => text.includes(word))).map(([it]) => it);
  }, [indexed, query, source, claim]);
  const chosen = path;
  const choose = (it) => go(`tools/${encodeURIComponent(it.name)}`);
  useEffect(() => {
    search.current = { items: found, chosen, choose };
    return () => { search.current = null; };
  });
  return html`<div class=${`split ${chosen ? 'has-detail' : ''}`}>
    <section class="list" aria-label="Tools">
      <div class="filters">
        <label class="grow"><span class="hidden">Search tools</span><input id="search" type="search" placeholder="Search tools   /" value=${query} onInput=${(event) => setQuery(event.target.value)}
          onKeyDown=${(event) => { if (event.key === 'Enter' && found[0]) { event.preventDefault(); choose(found[0]); } }} /></label>
        <label><span class="hidden">Source</span><select value=${source} onChange=${(event) => setSource(event.target.value)}><option value="">all sources</option>${sources.map((it) => html`<option value=${it}>${clean(it)}</option>`)}</select></label>
        <label><span class="hidden">Claims</span><select value=${claim} onChange=${(event) => setClaim(event.target.value)}><option value="">any</option><option value="readOnlyHint">claims read-only</option><option value="destructiveHint">claims destructive</option><option value="flag">suspicious</option></select></label>
        ${1 < me.groups.length && html`<label><span class="hidden">Group</span><select value=${group} onChange=${(event) => setGroup(event.target.value)}>${me.groups.map((it) => html`<option value=${it}>group ${clean(it)}</option>`)}</select></label>`}
      </div>
      <p class="count quiet" aria-live="polite">${load.data ? `${plural(found.length, 'tool')}${found.length === all.length ? '' : ` of ${all.length.toLocaleString('en')}`}` : 'Loading'}${group === me.group ? '' : `, as group ${clean(group)} sees them`}</p>
      ${load.error && html`<${Failed} error=${load.error} />`}
      ${load.data && !all.length ? html`<${Empty} title="There are no tools yet">Put servers into mcp.json, or write a function in tools/: toolcrib new tool hello<//>`
        : html`<${Rows} label="Tools" items=${found} height=${62} chosen=${chosen} keyOf=${(it) => it.name} onChoose=${choose} row=${TypeRow} />`}
    </section>
    ${chosen ? html`<${Detail} key=${chosen} name=${chosen} me=${me} onBack=${() => go('tools')} />`
      : html`<div class="detail none"><${Empty} title="Choose a tool">Search with / and move with j and k. Enter opens. ? shows all keys.<//></div>`}
  </div>`;
}
