// Small parts that all pages use.

import { Component, h } from './preact.mjs';
import { useCallback, useEffect, useMemo, useRef, useState } from './hooks.mjs';
import htm from './htm.mjs';
import { Num, parse } from './ask.js';

export const html = htm.bind(h);
export { useCallback, useEffect, useMemo, useRef, useState };

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

/** Text of others with everything visible: nothing in it can hide, or turn round what stands beside it. */
export const clean = (text) => String(text ?? '').replace(UNSEEN, (c) => [...c].map((it) => `\\u{${it.codePointAt(0).toString(16)}}`).join(''));

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
export const size = (bytes) => {
  const units = ['B', 'kB', 'MB', 'GB'];
  let [value, at] = [Number(bytes) || 0, 0];
  while (1000 <= value && at < 3) { value /= 1000; at += 1; }
  return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
};
export const millis = (ms) => (ms < 1 ? '< 1 ms' : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`);
export const clock = (text) => {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? clean(text) : date.toLocaleTimeString('en-GB');
};
export const ago = (text) => {
  const seconds = Math.max(0, (Date.now() - new Date(text).getTime()) / 1000);
  if (!(seconds < 1e10)) return '';
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
};

/** Whatever cannot be shown takes nothing else along. */
export class Guard extends Component {
  componentDidCatch(error) { this.setState({ error }); }

  render({ children }, { error }) {
    return error ? html`<${Notice} kind="bad">This cannot be shown: ${clean(error.message)}<//>` : children;
  }
}

/** Loads something, again when `inputs` change; `again` loads it once more. */
export function useLoad(load, inputs) {
  const [state, setState] = useState({ loading: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setState((it) => ({ ...it, loading: true }));
    load(stop.signal).then(
      (data) => stop.signal.aborted || setState({ data }),
      (error) => stop.signal.aborted || setState({ error }),
    );
    return () => stop.abort();
  }, [...inputs, turn]);
  const again = useCallback(() => setTurn((it) => it + 1), []);
  return { ...state, again };
}

export const Badge = ({ kind = '', title, children }) => html`<span class=${`badge ${kind}`} title=${title}>${children}</span>`;

export const Notice = ({ kind = 'info', children }) => html`<p class=${`notice ${kind}`} role=${kind === 'bad' ? 'alert' : 'note'}>${children}</p>`;

export const Failed = ({ error }) => html`<${Notice} kind="bad">${clean(error.message)}<//>`;

export const Empty = ({ title, children }) => html`<div class="empty"><p><b>${title}</b></p>${children && html`<p class="quiet">${children}</p>`}</div>`;

/** Copies a text, and says that it did. */
export function Copy({ text, label }) {
  const [done, setDone] = useState('');
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); setDone('copied'); } catch { setDone('select it and copy'); }
    setTimeout(() => setDone(''), 2000);
  };
  return html`<button class="small" type="button" onClick=${copy} aria-label=${`Copy ${label}`}>${done || 'Copy'}</button>`;
}

export const Snippet = ({ text, label }) => html`<div class="snippet"><div class="bar"><span>${label}</span><${Copy} text=${text} label=${label} /></div>
  <pre tabindex="0" aria-label=${label}>${clean(text)}</pre></div>`;

const isPlain = (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Num);

function Scalar({ value }) {
  if (typeof value === 'string') return html`<span class="j-text">"${clean(value)}"</span>`;
  return html`<span class="j-word">${String(value)}</span>`;
}

const STEP = 100;

/** JSON as a tree; what is closed is not made yet. */
export function Tree({ name, value, open = true, depth = 0 }) {
  const [shown, setShown] = useState(open);
  const [most, setMost] = useState(STEP);
  const label = name === undefined ? null : html`<span class="j-key">${clean(name)}</span>: `;
  const list = Array.isArray(value);
  if (!list && !isPlain(value)) return html`<div class="j-row">${label}<${Scalar} value=${value} /></div>`;
  const entries = list ? value.map((it, at) => [at, it]) : Object.entries(value);
  const about = list ? plural(entries.length, 'item') : plural(entries.length, 'member');
  return html`<details class="j-node" open=${shown} onToggle=${(event) => { if (event.currentTarget === event.target) setShown(event.target.open); }}>
    <summary>${label}<span class="quiet">${list ? '[' : '{'} ${about} ${list ? ']' : '}'}</span></summary>
    ${shown && html`<div class="j-inner">${entries.slice(0, most).map(([key, it]) => html`<${Tree} key=${key} name=${key} value=${it} depth=${depth + 1} open=${depth < 1 && entries.length < 30} />`)}
      ${most < entries.length && html`<button class="small" type="button" onClick=${() => setMost(most + 10 * STEP)}>Show more of ${entries.length}</button>`}</div>`}
  </details>`;
}

/** The columns of a list that is a table; nothing where it is none. */
export function columns(value) {
  if (!Array.isArray(value) || value.length < 1 || !value.every(isPlain)) return null;
  const names = new Set();
  for (const row of value.slice(0, 200)) for (const key of Object.keys(row)) names.add(key);
  return 0 < names.size && names.size <= 24 ? [...names] : null;
}

const cell = (value) => {
  if (value === undefined) return '';
  if (typeof value === 'string') return clean(value);
  return value !== null && typeof value === 'object' && !(value instanceof Num) ? clean(JSON.stringify(value)) : String(value);
};

export function Table({ heads, rows, label }) {
  const [most, setMost] = useState(STEP);
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${heads.map((it) => html`<th scope="col">${clean(it)}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, most).map((row) => html`<tr>${row.map((it) => html`<td>${it}</td>`)}</tr>`)}</tbody></table></div>
    ${most < rows.length && html`<button class="small" type="button" onClick=${() => setMost(most + 10 * STEP)}>Show more of ${rows.length}</button>`}`;
}

/** Something that is made when it is opened. */
export function Fold({ title, kind, inside }) {
  const [open, setOpen] = useState(false);
  return html`<details class=${kind} onToggle=${(event) => { if (event.currentTarget === event.target) setOpen(event.target.open); }}><summary>${title}</summary>${open && inside()}</details>`;
}

/** A value: a table where it is one, a tree else. */
export function Value({ value }) {
  const inner = isPlain(value) && Object.keys(value).length === 1 ? Object.values(value)[0] : value;
  const heads = columns(inner);
  const [tree, setTree] = useState(false);
  if (!heads) return html`<${Tree} value=${value} />`;
  return html`<div class="switch" role="group" aria-label="Show as"><button class="small" type="button" aria-pressed=${!tree} onClick=${() => setTree(false)}>Table</button>
      <button class="small" type="button" aria-pressed=${tree} onClick=${() => setTree(true)}>Tree</button></div>
    ${tree ? html`<${Tree} value=${value} />` : html`<${Table} label="Result as a table" heads=${heads} rows=${inner.map((row) => heads.map((it) => cell(row[it])))} />`}`;
}

/** Text, or what it says where it is JSON. */
export function Text({ text }) {
  const value = useMemo(() => {
    if (!/^\s*[[{]/.test(text) || 4_000_000 < text.length) return undefined;
    try { return parse(text); } catch { return undefined; }
  }, [text]);
  const [whole, setWhole] = useState(false);
  const [raw, setRaw] = useState(false);
  const shown = whole ? text : text.slice(0, 20_000);
  const plain = html`<pre tabindex="0" aria-label="Text">${clean(shown)}</pre>
    ${shown.length < text.length && html`<button class="small" type="button" onClick=${() => setWhole(true)}>Show all ${size(text.length)}</button>`}`;
  if (value === undefined) return plain;
  return html`<div class="switch" role="group" aria-label="Read as"><button class="small" type="button" aria-pressed=${!raw} onClick=${() => setRaw(false)}>JSON</button>
      <button class="small" type="button" aria-pressed=${raw} onClick=${() => setRaw(true)}>Text</button></div>
    ${raw ? plain : html`<${Value} value=${value} />`}`;
}

const narrow = () => matchMedia('(max-width: 820px)').matches;

/** Whether what is opened next gets the focus: whoever works with keys, or sees only one of both, goes on there. */
const opening = { focus: false };

/** Puts the focus on what was opened, once it is there, if that is wanted. */
export function settle(patience = 60) {
  if (!opening.focus) return;
  const heading = document.querySelector('.detail h2[tabindex]');
  if (heading || !patience) opening.focus = false;
  if (heading) heading.focus(); else if (patience) setTimeout(() => settle(patience - 1), 50);
}

/** A long list of rows of one height, of which only those in sight are made. Where it is alone on the screen, moving only marks a row. */
export function Rows({ items, height, label, chosen, onChoose, row, keyOf }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, tall: 600 });
  const look = () => box.current && setView({ top: box.current.scrollTop, tall: box.current.clientHeight });
  useEffect(() => {
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const [marked, setMarked] = useState(undefined);
  const at = items.findIndex((it) => keyOf(it) === (marked ?? chosen));
  useEffect(() => setMarked(undefined), [chosen]);
  useEffect(() => {
    if (at < 0 || !box.current) return;
    const { scrollTop, clientHeight } = box.current;
    if (at * height < scrollTop) box.current.scrollTop = at * height;
    if (scrollTop + clientHeight < (at + 1) * height) box.current.scrollTop = (at + 1) * height - clientHeight;
  }, [chosen, marked, items]);
  const first = Math.max(0, Math.floor(view.top / height) - 6);
  const last = Math.min(items.length, Math.ceil((view.top + view.tall) / height) + 6);
  const open = (it, byKey) => {
    opening.focus = byKey || narrow();
    if (keyOf(it) === chosen) settle(); else onChoose(it, 'open');
  };
  const keys = (event) => {
    const page = Math.max(1, Math.floor(view.tall / height) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: items.length - 1 }[event.key];
    if ((to === undefined && event.key !== 'Enter') || !items.length) return;
    event.preventDefault();
    if (to === undefined) { if (0 <= at) open(items[at], true); return; }
    const next = items[Math.min(items.length - 1, Math.max(0, to))];
    if (narrow()) setMarked(keyOf(next)); else onChoose(next, 'move');
  };
  const name = (place) => `${label.replace(/\W+/g, '-')}-${place}`;
  return html`<div class="rows" ref=${box} role="listbox" aria-label=${label} tabindex="0" onScroll=${look} onKeyDown=${keys}
      aria-activedescendant=${first <= at && at < last ? name(at) : undefined}>
    <div class="rows-all" role="presentation" style=${{ height: `${items.length * height}px` }}>
      ${items.slice(first, last).map((it, offset) => html`<div key=${keyOf(it)} id=${name(first + offset)} class="row" role="option" aria-selected=${first + offset === at}
        aria-setsize=${items.length} aria-posinset=${first + offset + 1} style=${{ top: `${(first + offset) * height}px`, height: `${height}px` }}
        onClick=${() => open(it, false)}>${row(it)}</div>`)}
    </div></div>`;
}

/** Asks before something is done that cannot be taken back. */
export function Confirm({ label, question, disabled, onYes, kind = '', children }) {
  const [asking, setAsking] = useState(null);
  const button = useRef(null);
  // Once for each question, and back when it is answered: whatever else the page makes anew, the focus stays where it is.
  useEffect(() => { if (asking !== null && button.current) button.current.focus(); }, [asking]);
  const leave = (event) => { if (event.key === 'Escape') { event.stopPropagation(); setAsking(false); } };
  if (!asking) return html`<button key="ask" ref=${button} type="button" class=${`small ${kind}`} disabled=${disabled} onClick=${() => setAsking(true)}>${label}</button>`;
  return html`<span key="answer" class="confirm" role="group" aria-label=${question} onKeyDown=${leave}>${question} ${children}
    <button type="button" class="small strong" ref=${button} onClick=${() => { setAsking(false); onYes(); }}>Yes</button>
    <button type="button" class="small" onClick=${() => setAsking(false)}>No</button></span>`;
}
