// Context: what a model gets to see, and what it costs.

import { api } from './ask.js';
import { Badge, Empty, Failed, Notice, ago, clean, html, plural, size, useEffect, useLoad, useState } from './parts.js';
import { Artifact } from './result.js';

function Search({ me }) {
  const [query, setQuery] = useState('');
  const [group, setGroup] = useState(me.group);
  const [state, setState] = useState({});
  const find = async (event) => {
    event.preventDefault();
    const other = group === me.group ? '' : `&group=${encodeURIComponent(group)}`;
    try { setState({ data: await api(`search?q=${encodeURIComponent(query)}&top=10${other}`) }); } catch (error) { setState({ error }); }
  };
  const found = (state.data && state.data.tools) || [];
  const best = Math.max(1e-9, ...found.map((it) => Number(it.score)));
  return html`<section aria-labelledby="finding"><h2 id="finding">Search as an agent does</h2>
    <form class="line" onSubmit=${find}><label class="grow">What it wants to do <input id="search" value=${query} onInput=${(event) => setQuery(event.target.value)} placeholder="how full is the moon   /" /></label>
      ${1 < me.groups.length && html`<label>As group <select value=${group} onChange=${(event) => setGroup(event.target.value)}>${me.groups.map((it) => html`<option value=${it}>${clean(it)}</option>`)}</select></label>`}
      <button class="strong" type="submit" disabled=${!query.trim()}>Search</button></form>
    <div>${state.error && html`<${Failed} error=${state.error} />`}
      <p role="status">${state.data ? (found.length ? `${found.length} of ${plural(state.data.total, 'tool')}, the best first` : `None of ${plural(state.data.total, 'tool')} fits. Say it in other words.`) : ''}</p>
      ${found.length > 0 && html`<ol class="found">${found.map((it) => html`<li key=${it.name}><a href=${`#/tools/${encodeURIComponent(it.name)}`}>${clean(it.name)}</a> <${Badge} kind="source">${clean(it.source)}<//>
        <svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="6" /><rect width=${(100 * Number(it.score)) / best} height="6" /></svg><span class="quiet">${clean(it.description)}</span></li>`)}</ol>`}</div></section>`;
}

function Costs({ beat }) {
  const { data, error } = useLoad((signal) => api('costs', undefined, signal), [beat]);
  const most = Math.max(1, ...((data && data.groups) || []).flatMap((it) => [it.all, it.searching]));
  const bar = (value) => html`<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="6" /><rect width=${(100 * value) / most} height="6" /></svg>`;
  const number = (value) => Number(value).toLocaleString('en');
  return html`<section aria-labelledby="costs"><h2 id="costs">What the catalogue costs, in tokens</h2>${error && html`<${Failed} error=${error} />`}
    ${data && html`<div class="scroll" tabindex="0" role="region" aria-label="Costs"><table><thead><tr><th scope="col">group</th><th scope="col">view</th><th class="number" scope="col">tools</th><th class="number" scope="col">its list</th><th class="number" scope="col">all tools</th><th class="number" scope="col">search tools</th><th class="number" scope="col">a task with search</th></tr></thead>
      <tbody>${data.groups.map((it) => html`<tr key=${it.group}><td>${clean(it.group)}</td><td>${it.view}</td><td class="number">${number(it.tools)}</td><td class="number"><b>${number(it.shown)}</b></td><td class="number">${number(it.all)}${bar(it.all)}</td><td class="number">${number(it.search)}</td><td class="number">${number(it.searching)}${bar(it.searching)}</td></tr>`)}</tbody></table></div>
      <p class="quiet">A list is read with every prompt; with <code>view: search</code> a model gets a few tools that find the others. Counted at four characters a token.</p>`}</section>`;
}

function Stored({ me, path, go }) {
  const { data, error, again } = useLoad((signal) => (me.artifacts ? api('artifacts', undefined, signal) : Promise.resolve(null)), []);
  if (!me.artifacts || error) return html`<section aria-labelledby="stored"><h2 id="stored">Stored results</h2><p class="quiet">${error ? clean(error.message) : 'Nothing is stored here.'}</p></section>`;
  const list = (data && data.artifacts) || [];
  const chosen = list.find((it) => it.id === path);
  return html`<section aria-labelledby="stored"><h2 id="stored">Stored results</h2>
    <p class="quiet">${data ? plural(data.total, 'artifact') : 'Loading'} of group ${clean(me.group)} <button class="small" type="button" onClick=${again}>Look again</button></p>
    ${path && html`<${Artifact} key=${path} uri=${`toolcrib://artifact/${path}`} about=${chosen ? `${chosen.media_type}, ${size(chosen.bytes)}` : ''} />`}
    ${data && !list.length && html`<${Empty} title="Nothing is stored yet">With <code>results: { inline_up_to: 16KB }</code> in network.yaml larger results are kept here.<//>`}
    ${list.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Stored results"><table><thead><tr><th scope="col">id</th><th scope="col">tool</th><th scope="col">kind</th><th class="number" scope="col">size</th><th scope="col">age</th></tr></thead>
      <tbody>${list.map((it) => html`<tr key=${it.id}><td><button class="small" type="button" onClick=${() => go(`context/${encodeURIComponent(it.id)}`)}>${clean(it.id)}</button></td><td>${clean(it.tool)} ${clean(it.label)}</td><td>${clean(it.media_type)}</td><td class="number">${size(it.bytes)}</td><td>${ago(it.created)}</td></tr>`)}</tbody></table></div>`}</section>`;
}

const WHY = { sensitivity: 'too sensitive', dedup: 'said elsewhere', kind_limit: 'too many of the kind', budget: 'no room', apart: 'the other half may not be shown' };

/** The budget as a bar: what went in, in order, how much is left, and behind the line what stayed out. */
function Tokens({ pack }) {
  const { budget, tokens, header_footer_tokens: frame } = pack.stats;
  const inside = pack.items.filter((it) => it.included);
  const outside = pack.items.filter((it) => !it.included);
  const left = outside.reduce((all, it) => all + Number(it.tokens), 0);
  const room = Math.max(Number(budget), Number(tokens), 1);
  const whole = room + left;
  let at = 0;
  const piece = (width, kind, title) => {
    const x = at;
    at += width;
    return html`<rect class=${kind} x=${(1000 * x) / whole} width=${Math.max(0.5, (1000 * width) / whole)} y="0" height="34"><title>${title}</title></rect>`;
  };
  const used = html`${piece(Number(frame), 'frame', `frame: ${clean(frame)} tokens`)}${inside.map((it) => piece(Number(it.tokens), 'in', `${clean(it.id)}: ${clean(it.tokens)} tokens`))}`;
  at = room;
  const rest = outside.map((it) => piece(Number(it.tokens), 'left', `${clean(it.id)}: ${clean(it.tokens)} tokens, out: ${clean(WHY[it.reason] || it.reason)}`));
  const line = (1000 * room) / whole;
  return html`<svg class="tokens" viewBox="0 0 1000 34" preserveAspectRatio="none" role="img" aria-label=${`${clean(tokens)} of ${clean(budget)} tokens are used; ${left} tokens stayed out`}><rect class="out" width=${line} height="34" />${used}${rest}<line x1=${line} x2=${line} y1="0" y2="34" /></svg>
    <p class="quiet">Strong: in. Grey: frame, and room that is left. Amber, behind the line: what stayed out, ${plural(left, 'token')}.</p>`;
}

function Pack({ me }) {
  const [text, setText] = useState('');
  const [session, setSession] = useState('');
  const [phase, setPhase] = useState('answer');
  const [query, setQuery] = useState('');
  const [budget, setBudget] = useState('');
  const [state, setState] = useState({});
  const sessions = useLoad((signal) => (me.operator && me.sessions ? api('sessions', undefined, signal) : Promise.resolve({ sessions: [] })), []);
  const names = (sessions.data && sessions.data.sessions) || [];
  const pick = async (event) => { const [file] = event.target.files; if (file) { setText(await file.text()); setSession(''); } };
  const build = async (event) => {
    event.preventDefault();
    const from = session ? { session } : { text };
    try { setState({ pack: await api('pack', { ...from, phase, query, ...(budget ? { budget: Number(budget) } : {}) }) }); } catch (error) { setState({ error }); }
  };
  const { pack } = state;
  return html`<section aria-labelledby="packing"><h2 id="packing">Pack a session</h2><form onSubmit=${build}>
      ${names.length > 0 && html`<div class="field"><label for="session">Recorded session</label><select id="session" value=${session} onChange=${(event) => setSession(event.target.value)}><option value="">none: the lines below</option>${names.map((it) => html`<option value=${it.name}>${clean(it.name)}, ${size(it.bytes)}</option>`)}</select></div>`}
      ${!session && html`<div class="field"><label for="lines">Session, a JSON object a line</label><textarea id="lines" rows="5" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)} placeholder=${'{"id": "u1", "type": "user_turn", "text": "hello"}'}></textarea><label class="quiet">or a file <input type="file" accept=".jsonl,.json,.txt" onChange=${pick} /></label></div>`}
      <div class="line"><label>For <select value=${phase} onChange=${(event) => setPhase(event.target.value)}>${['route', 'call', 'interpret', 'answer'].map((it) => html`<option value=${it}>${it}</option>`)}</select></label>
        <label class="grow">Query <input value=${query} onInput=${(event) => setQuery(event.target.value)} /></label><label>Budget <input inputmode="numeric" value=${budget} placeholder="usual" onInput=${(event) => setBudget(event.target.value.replace(/\D/g, ''))} /></label>
        <button class="strong" type="submit" disabled=${!session && !text.trim()}>Pack</button></div></form>
    <div>${state.error && html`<${Failed} error=${state.error} />`}
      <p role="status">${pack && html`<b>${Number(pack.stats.tokens).toLocaleString('en')}</b> of ${Number(pack.stats.budget).toLocaleString('en')} tokens; ${plural(pack.stats.included_count, 'item')} in, ${clean(pack.stats.dropped_count)} out`}</p>${pack && html`<${Tokens} pack=${pack} />
        <div class="scroll" tabindex="0" role="region" aria-label="Items"><table><thead><tr><th scope="col">item</th><th scope="col">kind</th><th class="number" scope="col">tokens</th><th class="number" scope="col">score</th><th scope="col">verdict</th></tr></thead>
        <tbody>${pack.items.map((it) => html`<tr key=${it.id}><td>${clean(it.id)}</td><td>${clean(it.kind)}</td><td class="number">${String(it.tokens)}</td><td class="number">${it.score === null ? '' : Number(it.score).toFixed(3)}</td><td>${it.included ? html`<${Badge} kind="good">in<//>` : html`<${Badge} kind="warn">out<//> ${clean(WHY[it.reason] || it.reason)}`}${it.from_closure ? ', others follow from it' : ''}</td></tr>`)}</tbody></table></div>
        <details><summary>The prompt</summary><pre tabindex="0">${clean(pack.prompt)}</pre></details>`}</div>
    ${!me.sessions && html`<${Notice}>Calls are not recorded as sessions here: <code>sessions: on</code> in network.yaml does that.<//>`}</section>`;
}

export function Context({ me, path, go, search, beat }) {
  useEffect(() => { search.current = null; });
  return html`<div class="page"><${Search} me=${me} /><${Costs} beat=${beat} /><${Stored} me=${me} path=${path} go=${go} /><${Pack} me=${me} /></div>`;
}
