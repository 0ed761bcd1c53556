// Calls: as they end, the story of one, and how long tools and servers take.

import { api } from './ask.js';
import { Badge, Empty, Failed, Notice, Rows, clean, clock, html, millis, plural, size, useEffect, useLoad, useMemo, useState } from './parts.js';

const MOST = 2000;
const isBad = (it) => it.outcome !== 'ok' && it.outcome !== 'cancelled';
const ms = (it) => Number(it.ms) || 0;
const percentile = (sorted, share) => (sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] : 0);

const CallRow = (it) => html`<div class="row-head"><span class="row-name">${clean(it.tool || 'no tool')}</span>${it.method && html`<${Badge} kind="source">${READS[it.method] || clean(it.method)}<//>`}<${Badge} kind=${it.outcome === 'ok' ? 'good' : isBad(it) ? 'bad' : ''}>${clean(it.outcome)}<//><span class="quiet">${millis(ms(it))}</span></div>
  <div class="row-text">${clock(it.ts)} · ${clean(it.group)} · ${clean(it.who)}${it.source ? ` · ${clean(it.source)}` : ''}${it.cause ? ` · ${clean(it.cause)}` : ''}</div>`;

/** Each call a dot: when it ended, how long it took (each line is ten times the one below), red where it failed. */
function Chart({ calls }) {
  const times = calls.map((it) => new Date(it.ts).getTime());
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const x = (time) => 54 + (to === from ? 0.5 : (time - from) / (to - from)) * 531;
  const y = (value) => 128 - (Math.log10(Math.min(Math.max(value, 0.1), 100_000)) + 1) * 20;
  const bad = calls.filter(isBad).length;
  return html`<svg class="chart" viewBox="0 0 600 150" role="img" aria-label=${`${plural(calls.length, 'call')} over time, ${bad} failed`}>
    ${[1, 100, 10_000].map((it) => html`<line x1="48" x2="596" y1=${y(it)} y2=${y(it)} /><text x="2" y=${y(it) + 4}>${millis(it)}</text>`)}
    ${calls.map((it, at) => html`<circle class=${`dot ${isBad(it) ? 'bad' : ''}`} cx=${x(times[at])} cy=${y(ms(it))} r=${isBad(it) ? 3.5 : 2.5} />`)}
    <text x="50" y="146">${clock(from)}</text><text x="590" y="146" text-anchor="end">${clock(to)}</text></svg>`;
}

const PIECES = 24;

/** Calls over time, in pieces: how long the median and the slowest twentieth took (each fifth of the height is ten times more), and how many of a piece failed, from above. */
function Spark({ calls, from, to }) {
  const pieces = Array.from({ length: PIECES }, () => []);
  for (const it of calls) pieces[Math.min(PIECES - 1, Math.floor((PIECES * (new Date(it.ts) - from)) / (to - from || 1)))].push(it);
  const tall = (value) => 4 + (Math.log10(Math.min(Math.max(value, 1), 100_000)) / 5) * 26;
  return html`<svg class="spark" viewBox="0 0 120 40" preserveAspectRatio="none" aria-hidden="true">${pieces.map((list, at) => {
    if (!list.length) return null;
    const sorted = list.map(ms).sort((a, b) => a - b);
    const [half, most] = [0.5, 0.95].map((share) => tall(percentile(sorted, share)));
    const failed = (8 * list.filter(isBad).length) / list.length;
    return html`<rect class="slow" x=${at * 5} y=${40 - most} width="4" height=${most} /><rect x=${at * 5} y=${40 - half} width="4" height=${half} />${0 < failed && html`<rect class="bad" x=${at * 5} y="0" width="4" height=${Math.max(2, failed)} />`}`;
  })}</svg>`;
}

function Figures({ calls, by, name, onOnly }) {
  const rows = useMemo(() => {
    const groups = new Map();
    for (const it of calls) {
      const key = it[by] || '(none)';
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(it);
    }
    return [...groups].map(([key, list]) => {
      const sorted = list.map(ms).sort((a, b) => a - b);
      return { key, list, count: list.length, bad: list.filter(isBad).length, middle: percentile(sorted, 0.5), slow: percentile(sorted, 0.95), most: sorted[sorted.length - 1] };
    }).sort((a, b) => b.count - a.count).slice(0, 50);
  }, [calls, by]);
  const times = calls.map((it) => new Date(it.ts).getTime());
  const [from, to] = [Math.min(...times), Math.max(...times)];
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${`Figures by ${name}`}><table><thead><tr><th scope="col">${name}</th><th class="number" scope="col">calls</th><th class="number" scope="col">failed</th><th class="number" scope="col">median</th><th class="number" scope="col">95 %</th><th class="number" scope="col">longest</th><th scope="col">over time</th></tr></thead>
    <tbody>${rows.map((it) => html`<tr key=${it.key} class="pick" onClick=${() => onOnly({ by, key: it.key })}><td><button class="small" type="button" title=${`Only this ${name}`}>${clean(it.key)}</button></td><td class="number">${it.count}</td><td class="number">${it.bad}</td><td class="number">${millis(it.middle)}</td><td class="number">${millis(it.slow)}</td><td class="number">${millis(it.most)}</td>
      <td><${Spark} calls=${it.list} from=${from} to=${to} /></td></tr>`)}</tbody></table></div>`;
}

const READS = { 'resources/read': 'resource', 'prompts/get': 'prompt' };

/** What it was: only a tool has a page. */
const What = ({ it }) => html`<${Fact} name=${READS[it.method] || 'tool'}>${it.method || !it.tool ? clean(it.tool) : html`<a href=${`#/tools/${encodeURIComponent(it.tool)}`}>${clean(it.tool)}</a>`}${it.source ? ` of ${clean(it.source)}` : ''}<//>`;

const CAME = ['passed', 'not refused'];

const Fact = ({ name, children }) => html`<dt>${name}</dt><dd>${children}</dd>`;

function Story({ id, onBack }) {
  const { data, error } = useLoad((signal) => api(`call?id=${encodeURIComponent(id)}`, undefined, signal), [id]);
  const back = html`<button class="small back" type="button" onClick=${onBack}>Back to the list</button>`;
  if (error) return html`<article class="detail">${back}<${Failed} error=${error} /></article>`;
  if (!data) return html`<article class="detail"><p class="quiet">Loading</p></article>`;
  const { record: it, checks } = data;
  return html`<article class="detail" aria-label="The story of a call">${back}
    <h2 tabindex="-1">${clean(it.tool)}</h2>
    <p><${Badge} kind=${it.outcome === 'ok' ? 'good' : isBad(it) ? 'bad' : ''}>${clean(it.outcome)}<//> ${it.blame && html`<span class="quiet">fault of the ${clean(it.blame)}</span>`}</p>
    ${it.cause && html`<${Notice} kind=${isBad(it) ? 'bad' : 'info'}>${clean(it.cause)}<//>`}
    <h3>What it went through</h3>
    <ol class="steps">${checks.map((step) => html`<li class=${CAME.includes(step.outcome) ? 'passed' : step.outcome.replace(' ', '-')}>${step.about} <span class="quiet">${step.outcome}</span></li>`)}
      ${it.cache && html`<li class="passed">cache: ${clean(it.cache)}</li>`}
      ${checks.every((step) => step.outcome !== 'refused') && it.source && html`<li class=${it.outcome === 'ok' ? 'passed' : 'refused'}>${it.cache === 'hit' ? 'kept from before' : `asked ${clean(it.source)}`}${it.retries ? `, ${plural(Number(it.retries), 'time')} again` : ''}, ${millis(ms(it))}</li>`}</ol>
    <h3>Facts</h3>
    <dl class="facts"><${Fact} name="call"><code>${clean(it.call)}</code><//><${Fact} name="when">${clean(it.ts)}<//>
      <${Fact} name="who">${clean(it.who)} of group ${clean(it.group)}${it.client ? `, from ${clean(it.client)}` : ''}<//>
      <${What} it=${it} />
      <${Fact} name="took">${millis(ms(it))}${it.retries ? `, tried again ${plural(Number(it.retries), 'time')}` : ''}<//>
      <${Fact} name="arguments">${size(it.arguments?.bytes)}${it.arguments?.text ? html` <code>${clean(it.arguments.text)}</code>` : ''}<//>
      <${Fact} name="result">${size(it.result?.bytes)}${it.result?.text ? html` <code>${clean(it.result.text)}</code>` : ''}<//>
      ${it.code !== undefined && html`<${Fact} name="error code">${clean(it.code)}<//>`}
      ${it.rule && html`<${Fact} name="decided by">${clean(it.rule)}<//>`}
      ${it.artifacts && html`<${Fact} name="stored">${it.artifacts.map((one) => html`<a href=${`#/context/${encodeURIComponent(one)}`}>${clean(one)}</a> `)}<//>`}
      ${it.trace && html`<${Fact} name="trace"><code>${clean(it.trace)}</code><//>`}
      ${it.definition && html`<${Fact} name="definition"><code>${clean(it.definition)}</code><//>`}</dl>
    <p class="quiet">On the command line: <code>toolcrib why --call ${clean(it.call)}</code></p></article>`;
}

export function Calls({ me, path, go, search, onCalls, joined }) {
  const [query, setQuery] = useState('');
  const [outcome, setOutcome] = useState('');
  const [calls, setCalls] = useState([]);
  const [only, setOnly] = useState(null);
  const load = useLoad((signal) => api('calls?limit=1000', undefined, signal), [joined]);
  useEffect(() => {
    if (load.data) setCalls((now) => merge(load.data.calls, now));
  }, [load.data]);
  useEffect(() => onCalls((more) => setCalls((now) => merge(now, more))), [onCalls]);
  const shown = useMemo(() => {
    const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (it) => {
      const text = `${it.tool} ${it.group} ${it.who} ${it.source || ''} ${it.outcome} ${it.call}`.toLowerCase();
      return (!only || (it[only.by] || '(none)') === only.key) && (outcome === '' || (outcome === 'bad' ? isBad(it) : it.outcome === outcome)) && wanted.every((word) => text.includes(word));
    };
    return calls.filter(fits).reverse();
  }, [calls, query, outcome, only]);
  const choose = (it, how) => go(`calls/${encodeURIComponent(it.call)}`, how);
  useEffect(() => {
    search.current = { items: shown, chosen: path, choose, keyOf: (it) => it.call };
    return () => { search.current = null; };
  });
  if (!me.calls) return html`<div class="page"><${Empty} title="Calls are not on record here">Take <code>audit: off</code> out of network.yaml to see them.<//></div>`;
  return html`<div class=${`split ${path ? 'has-detail' : ''}`}><section class="list" aria-label="Calls">
      <div class="filters"><label class="grow"><span class="hidden">Search calls</span><input id="search" type="search" placeholder="Tool, group, who, id   /" value=${query} onInput=${(event) => setQuery(event.target.value)} /></label>
        <label><span class="hidden">Outcome</span><select value=${outcome} onChange=${(event) => setOutcome(event.target.value)}><option value="">all outcomes</option><option value="bad">failed</option><option value="ok">ok</option><option value="cancelled">cancelled</option></select></label></div>
      <p class="count quiet" aria-live="polite">${plural(shown.length, 'call')}${me.operator ? ' of all groups' : ` of group ${clean(me.group)}`}, newest first</p>
      ${only && html`<p class="count"><${Badge} kind="source">only ${clean(only.key)}<//> <button class="small" type="button" onClick=${() => setOnly(null)}>Show all</button></p>`}
      ${load.error && html`<${Failed} error=${load.error} />`}
      ${load.data && !calls.length ? html`<${Empty} title="Nobody has called anything yet">Calls appear here as they end.<//>`
        : html`<${Rows} label="Calls" items=${shown} height=${62} chosen=${path} keyOf=${(it) => it.call} onChoose=${choose} row=${CallRow} />`}</section>
    ${path ? html`<${Story} key=${path} id=${path} onBack=${() => go('calls')} />`
      : html`<div class="detail"><h2>How long calls take</h2>${shown.length ? html`<${Chart} calls=${shown.slice(0, 600)} /><h3>By tool</h3><${Figures} calls=${shown} by="tool" name="tool" onOnly=${setOnly} /><h3>By server</h3><${Figures} calls=${shown} by="source" name="server" onOnly=${setOnly} />
        <p class="quiet">Over time: how long the median (dark) and the slowest twentieth (light) took, and in red, from above, what failed. A row shows its calls alone.</p>` : html`<p class="quiet">There is nothing to show yet.</p>`}</div>`}</div>`;
}

/** Both lists by time, each call once. What was missed may be older than what is there. */
function merge(a, b) {
  const known = new Set(a.map((it) => it.call));
  const all = [...a, ...b.filter((it) => !known.has(it.call))];
  return all.sort((one, other) => (one.ts < other.ts ? -1 : Number(one.ts > other.ts))).slice(-MOST);
}
