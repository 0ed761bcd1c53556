// Tools: find one, read what it takes, try it.

import { api, parse, rpc, rpcText } from './ask.js';
import { Field, Shape } from './form.js';
import { Badge, Empty, Failed, Fold, Guard, Notice, Rows, Snippet, clean, html, millis, plural, size, useEffect, useLoad, useMemo, useState } from './parts.js';
import { Result } from './result.js';
import { begin, faultsOf, fill, same, textOf } from './schema.js';

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

const TypeRow = (it) => html`<div class="row-head"><span class="row-name">${clean(it.name)}</span>${(runs.get(it.name) || {}).busy && html`<${Badge} kind="warn">running<//>`}${it.flag && html`<${Badge} kind="bad" title=${clean(it.flag)}>suspicious<//>`}
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

// What runs goes on when somebody looks elsewhere: by the name of the tool, and what came of it for whoever comes back.
const runs = new Map();
const watching = new Set();

function setRun(name, change) {
  const run = change(runs.get(name));
  if (run) runs.set(name, run); else runs.delete(name);
  for (const hear of watching) hear();
}

const isBusy = () => [...runs.values()].some((it) => it.busy);
addEventListener('beforeunload', (event) => { if (isBusy()) event.preventDefault(); });

/** Takes back whatever runs, for somebody who leaves. */
export function endAll() {
  for (const it of runs.values()) it.stop.abort();
  runs.clear();
}

function useRun(name) {
  const [, turn] = useState(0);
  useEffect(() => {
    const hear = () => turn((it) => it + 1);
    watching.add(hear);
    return () => {
      watching.delete(hear);
      if (name && runs.get(name) && !runs.get(name).busy) runs.delete(name);
    };
  }, [name]);
  return runs.get(name) || null;
}

/** How far a call is, in its own words. */
function Progress({ notice }) {
  const { progress, total, message } = (notice && notice.params) || {};
  if (progress === undefined) return null;
  const whole = 0 < Number(total) ? Number(total) : undefined;
  return html`<progress max=${whole} value=${whole && Number(progress) >= 0 ? Number(progress) : undefined} aria-label="Progress"></progress>
    <span>${clean(progress)}${total === undefined ? '' : ` of ${clean(total)}`} ${clean(message)}</span>`;
}

/** What came of a call, in a few words: that much is read out. */
function summary(run) {
  if (!run) return '';
  if (run.busy) return 'Running';
  if (run.cancelled) return 'Cancelled. What the tool had begun may have been done.';
  if (run.error) return 'It was not answered';
  const { took, text, result, error } = run.answer;
  return `Answered in ${millis(took)}, ${size(text.length)}${error || (result && result.isError) ? ': it failed' : ''}`;
}

const logLine = ({ params }) => clean(`${(params && params.level) || ''} ${params && typeof params.data === 'string' ? params.data : JSON.stringify(params && params.data)}\n`);

/** A form for a tool, and what comes of it. */
export function Try({ name, definition }) {
  const root = useMemo(() => ({ type: 'object', properties: {}, ...definition.inputSchema }), [definition]);
  const [draft, setDraft] = useState(() => begin(root, root, true));
  const [json, setJson] = useState(null);
  const [tried, setTried] = useState(false);
  const [lossy, setLossy] = useState(false);
  const run = useRun(name);
  const busy = Boolean(run && run.busy);
  const faults = useMemo(() => {
    if (json === null) return faultsOf(root, root, draft, true);
    try { const value = JSON.parse(json); return value && typeof value === 'object' && !Array.isArray(value) ? {} : { args: 'arguments are an object' }; } catch (error) { return { args: `not JSON: ${error.message}` }; }
  }, [root, draft, json]);
  const args = json === null ? textOf(root, root, draft, true) : json.trim() || '{}';
  const wrong = Object.keys(faults).length;
  // What is missing is said when somebody wants to run it, what is wrong at once.
  const shown = tried ? faults : Object.fromEntries(Object.entries(faults).filter(([, it]) => it !== 'required'));

  const call = async (more = {}) => {
    if ((runs.get(name) || {}).busy) return;
    const stop = new AbortController();
    setRun(name, () => ({ busy: true, notices: [], stop }));
    const own = (change) => setRun(name, (it) => (it && it.stop === stop ? { ...it, ...change(it) } : it));
    const onNotice = (message) => own((it) => ({ notices: [...it.notices.slice(-99), message] }));
    try {
      const params = { name: JSON.stringify(name), arguments: args, ...more };
      const answer = await rpc('tools/call', params, { name, schema: definition.inputSchema, signal: stop.signal, onNotice });
      own(() => ({ busy: false, answer }));
    } catch (error) {
      const cancelled = error.name === 'AbortError';
      own(() => ({ busy: false, error: cancelled ? null : error, cancelled }));
    }
  };
  const submit = (event) => { event.preventDefault(); setTried(true); if (!wrong) call(); };
  const keys = (event) => { if ((event.ctrlKey || event.metaKey) && event.key === 'Enter') submit(event); };
  // What was typed as JSON goes into the form; where the form cannot say all of it, nothing is lost unasked.
  const toForm = (anyway) => {
    if (json === null) return;
    let filled = null;
    try { filled = fill(root, root, parse(args), true); } catch { /* not JSON */ }
    const whole = filled && same(textOf(root, root, filled, true), args);
    if (!whole && !anyway) { setLossy(true); return; }
    setDraft(filled || begin(root, root, true));
    setLossy(false);
    setJson(null);
  };
  const progress = run && [...run.notices].reverse().find((it) => it.method === 'notifications/progress');
  const logs = run ? run.notices.filter((it) => it.method === 'notifications/message') : [];
  const answer = run && run.answer;
  const asks = answer && answer.result && answer.result.resultType === 'input_required' && answer.result;
  return html`<form class="try" aria-label=${`Try ${name}`} onSubmit=${submit} onKeyDown=${keys}>
    <div class="switch" role="group" aria-label="Fill in as"><button type="button" class="small" aria-pressed=${json === null} onClick=${() => toForm(false)}>Form</button>
      <button type="button" class="small" aria-pressed=${json !== null} onClick=${() => json === null && setJson(args)}>JSON</button></div>
    ${json === null ? html`${Object.keys(root.properties || {}).length === 0 && html`<p class="quiet">It takes no arguments.</p>`}
      <${Field} name="arguments" schema=${root} root=${root} value=${draft} required=${true} path="args" faults=${shown} onChange=${setDraft} />`
      : html`<div class="field"><label for="args">Arguments as JSON</label><textarea id="args" rows="8" spellcheck="false" value=${json} aria-invalid=${faults.args ? 'true' : undefined} aria-describedby="args-about" onInput=${(event) => { setJson(event.target.value); setLossy(false); }}></textarea>
        <div id="args-about" class="about">${faults.args && html`<span class="fault">${clean(faults.args)}</span>`}</div>
        ${lossy && html`<p class="notice warn" role="alert">The form cannot say all of this. <button type="button" class="small" onClick=${() => toForm(true)}>Drop what it cannot say</button></p>`}</div>`}
    <div class="line"><button class="strong" type="submit" disabled=${busy}>Run</button>
      ${busy && html`<button type="button" onClick=${() => run.stop.abort()}>Cancel</button>`}
      <span class="quiet">${tried && wrong ? `${plural(wrong, 'field')} to put right` : 'Ctrl + Enter runs it'}</span></div>
  </form>
  <div class="outcome" aria-busy=${busy}>
    <p class=${busy ? 'busy' : 'quiet'} role="status">${summary(run)}</p>
    ${busy && html`<p><${Progress} notice=${progress} /></p>`}
    ${run && run.error && html`<${Failed} error=${run.error} />`}
    ${answer && answer.error && html`<${Notice} kind="bad">${clean(answer.error.message)} (code ${clean(answer.error.code)})<//>`}
    ${asks && html`<${Questions} requests=${asks.inputRequests || {}} onAnswer=${(text) => call({ inputResponses: text, ...(asks.requestState === undefined ? {} : { requestState: JSON.stringify(asks.requestState) }) })} />`}
    ${answer && answer.result && !asks && html`<${Guard} key=${answer.text}><${Result} result=${answer.result} /><//>`}
    ${0 < logs.length && html`<details><summary>${plural(logs.length, 'log message')}</summary><pre tabindex="0">${logs.map(logLine).join('')}</pre></details>`}
    ${answer && html`<${Fold} title="The answer as it came" inside=${() => html`<pre tabindex="0" aria-label="The answer as it came">${clean(answer.text.slice(0, 200_000))}</pre>`} />`}
  </div>
  <${Fold} kind="same" title="The same from elsewhere" inside=${() => html`
    <${Snippet} label="on the command line" text=${`toolcrib call ${quoted(name)}${args === '{}' ? '' : ` --args ${quoted(args)}`}`} />
    <${Snippet} label="JSON-RPC, to /mcp" text=${rpcText(1, 'tools/call', { name: JSON.stringify(name), arguments: args })} />`} />`;
}

function Detail({ name, me, group, beat, onBack }) {
  const other = group === me.group ? '' : `&group=${encodeURIComponent(group)}`;
  const { data, error, loading } = useLoad((signal) => api(`tool?name=${encodeURIComponent(name)}${other}`, undefined, signal), [name, group, beat]);
  if (error) return html`<article class="detail"><button class="small back" onClick=${onBack}>Back to the list</button><${Failed} error=${error} /></article>`;
  if (!data || (loading && data.definition.name !== name)) return html`<article class="detail"><p class="quiet">Loading</p></article>`;
  const { definition, source, original, flag, faults = [], groups } = data;
  const schema = { type: 'object', properties: {}, ...definition.inputSchema };
  return html`<article class="detail" aria-label=${`Tool ${name}`}>
    <button class="small back" type="button" onClick=${onBack}>Back to the list</button>
    <h2 tabindex="-1">${clean(name)}</h2>
    <p>${definition.title && html`<b>${clean(definition.title)}</b> `}<${Badge} kind="source">${clean(source)}<//> <${Claims} claims=${definition.annotations} /></p>
    ${flag && html`<${Notice} kind="bad"><b>Suspicious definition.</b> ${clean(flag)}<//>`}
    <p class="description">${clean(definition.description || 'The server does not describe it.')}</p>
    ${original && original !== name && html`<p class="quiet">The server calls it <code>${clean(original)}</code>.${groups ? ` Groups that may call it: ${groups.map(clean).join(', ') || 'none'}.` : ''}</p>`}
    ${data.stored_over && html`<p class="quiet">Results over ${size(data.stored_over)} are stored, for ${clean(me.group)}.</p>`}
    ${faults.map((it) => html`<${Notice}>${clean(it.message)}<//>`)}
    <h3>Try it</h3>${other && html`<${Notice}>This is what group ${clean(group)} sees. You call it as ${clean(me.group)}.<//>`}
    <${Guard}><${Try} key=${`${name} ${JSON.stringify(definition.inputSchema)}`} name=${name} definition=${definition} /><//>
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
  // `#/tools/?source=NAME` is a list, of one source.
  const wanted = /^\?source=(.*)$/s.exec(path);
  useEffect(() => { if (wanted) setSource(wanted[1]); }, [path]);
  const chosen = wanted ? '' : path;
  const choose = (it, how) => go(`tools/${encodeURIComponent(it.name)}`, how);
  useRun('');
  useEffect(() => {
    search.current = { items: found, chosen, choose };
    return () => { search.current = null; };
  });
  return html`<div class=${`split ${chosen ? 'has-detail' : ''}`}>
    <section class="list" aria-label="Tools">
      <div class="filters">
        <label class="grow"><span class="hidden">Search tools</span><input id="search" type="search" placeholder="Search tools   /" value=${query} onInput=${(event) => setQuery(event.target.value)}
          onKeyDown=${(event) => { if (event.key === 'Enter' && found[0]) { event.preventDefault(); choose(found[0], 'open'); } }} /></label>
        <label><span class="hidden">Source</span><select value=${source} onChange=${(event) => setSource(event.target.value)}><option value="">all sources</option>${sources.map((it) => html`<option value=${it}>${clean(it)}</option>`)}</select></label>
        <label><span class="hidden">Claims</span><select value=${claim} onChange=${(event) => setClaim(event.target.value)}><option value="">any</option><option value="readOnlyHint">claims read-only</option><option value="destructiveHint">claims destructive</option><option value="flag">suspicious</option></select></label>
        ${1 < me.groups.length && html`<label><span class="hidden">Group</span><select value=${group} onChange=${(event) => setGroup(event.target.value)}>${me.groups.map((it) => html`<option value=${it}>group ${clean(it)}</option>`)}</select></label>`}
      </div>
      <p class="count quiet" aria-live="polite">${load.data ? `${plural(found.length, 'tool')}${found.length === all.length ? '' : ` of ${all.length.toLocaleString('en')}`}` : 'Loading'}${group === me.group ? '' : `, as group ${clean(group)} sees them`}</p>
      ${load.error && html`<${Failed} error=${load.error} />`}
      ${load.data && !all.length ? html`<${Empty} title="There are no tools yet">Put servers into mcp.json, or write a function in tools/: toolcrib new tool hello<//>`
        : html`<${Rows} label="Tools" items=${found} height=${62} chosen=${chosen} keyOf=${(it) => it.name} onChoose=${choose} row=${TypeRow} />`}
    </section>
    ${chosen ? html`<${Detail} key=${chosen} name=${chosen} me=${me} group=${group} beat=${beat} onBack=${() => go('tools')} />`
      : html`<div class="detail none"><${Empty} title="Choose a tool">Search with / and move with j and k. Enter opens. ? shows all keys.<//></div>`}
  </div>`;
}
