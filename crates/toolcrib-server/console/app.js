// The shell: who is looking, which page, the keys.

import { render } from './preact.mjs';
import { api, follow, onExpired, parse, setToken, token } from './ask.js';
import { Failed, Guard, clean, html, useCallback, useEffect, useRef, useState } from './parts.js';
import { Calls } from './calls.js';
import { Context } from './context.js';
import { Events } from './events.js';
import { Servers } from './servers.js';
import { Tools } from './tools.js';

const PAGES = [['tools', 'Tools', Tools], ['calls', 'Calls', Calls], ['servers', 'Servers', Servers], ['events', 'Events', Events], ['context', 'Context', Context]];

const KEYS = [['/', 'search'], ['j, k', 'next, previous'], ['Enter', 'open, or run in the search field'], ['Esc', 'back'], ['1 to 5', 'pages'], ['?', 'these keys']];

/** The page and what stands behind it, from the address. */
function route() {
  const [page, ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  let path = rest.join('/');
  try { path = decodeURIComponent(path); } catch { /* as it is */ }
  return { page: PAGES.some(([it]) => it === page) ? page : 'tools', path };
}

function Login({ error, onToken }) {
  const [text, setText] = useState('');
  return html`<main class="login"><h1>Toolcrib</h1>
    <p>This gateway asks for a token. You see and do what its group may.</p>
    <form onSubmit=${(event) => { event.preventDefault(); onToken(text.trim()); }}>
      <div class="field"><label for="token">Token</label><input id="token" type="password" autocomplete="off" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
      ${error && html`<p class="fault" role="alert">${clean(error)}</p>`}
      <button class="strong" type="submit">Look</button></form>
    <p class="quiet">It is kept until this tab is closed, and sent to nobody else.</p></main>`;
}

function Theme() {
  const [theme, setTheme] = useState(() => localStorage.getItem('toolcrib-theme') || '');
  useEffect(() => {
    if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
    if (theme) localStorage.setItem('toolcrib-theme', theme); else localStorage.removeItem('toolcrib-theme');
  }, [theme]);
  const next = { '': 'dark', dark: 'light', light: '' };
  return html`<button class="small" type="button" onClick=${() => setTheme(next[theme])} title="Change the colours">Colours: ${theme || 'auto'}</button>`;
}

/** The keys of the whole page. What is typed into a field is left alone. */
function useKeys({ go, at, list, help }) {
  useEffect(() => {
    const pressed = (event) => {
      const field = event.target.closest && event.target.closest('input, textarea, select, dialog');
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'Escape') {
        if (field && field.tagName !== 'DIALOG') { event.target.blur(); return; }
        if (at.path) go(at.page);
        return;
      }
      if (field) return;
      const step = { j: 1, k: -1 }[event.key];
      const found = list.current;
      if (event.key === '/') {
        const search = document.getElementById('search');
        if (search) { event.preventDefault(); search.focus(); search.select(); }
      } else if (event.key === '?') {
        help.current.showModal();
      } else if (step && found && found.items.length) {
        const key = found.keyOf || ((it) => it.name);
        const place = found.items.findIndex((it) => key(it) === found.chosen);
        found.choose(found.items[Math.min(found.items.length - 1, Math.max(0, place < 0 ? 0 : place + step))]);
      } else if (event.key === 'Enter' && event.target === document.body) {
        const heading = document.querySelector('.detail h2');
        if (heading) heading.focus();
      } else if (/^[1-9]$/.test(event.key) && PAGES[event.key - 1]) {
        go(PAGES[event.key - 1][0]);
      }
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, [go, at]);
}

function Shell({ me, onLeave }) {
  const [at, setAt] = useState(route());
  const [beat, setBeat] = useState(0);
  const [live, setLive] = useState(['lost', '']);
  const heard = useRef(new Set());
  const list = useRef(null);
  const help = useRef(null);
  const waiting = useRef(0);
  useEffect(() => {
    const changed = () => setAt(route());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  useEffect(() => {
    const stop = new AbortController();
    follow('api/live', {
      signal: stop.signal,
      onState: (...now) => setLive(now),
      onEvent: (event) => {
        const said = parse(event.data);
        // Servers that come and go do not make the page load everything four times a second.
        if (said.catalogue !== undefined && !waiting.current) {
          waiting.current = setTimeout(() => { waiting.current = 0; setBeat((it) => it + 1); }, 700);
        }
        if (said.calls) for (const hear of heard.current) hear(said.calls);
      },
    });
    return () => stop.abort();
  }, [me]);
  const go = useCallback((path) => { location.hash = `#/${path}`; }, []);
  useKeys({ go, at, list, help });
  const onCalls = useCallback((hear) => { heard.current.add(hear); return () => heard.current.delete(hear); }, []);
  const [, title, Page] = PAGES.find(([it]) => it === at.page);
  useEffect(() => { document.title = `${title} · Toolcrib`; }, [title]);
  return html`<div class="shell"><a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.getElementById('content').focus(); }}>Skip to the content</a>
    <header><h1><img src="console/icon.svg" alt="" />Toolcrib</h1>
      <nav aria-label="Pages">${PAGES.map(([it, name]) => html`<a href=${`#/${it}`} aria-current=${it === at.page ? 'page' : undefined}>${name}</a>`)}</nav>
      <div class="who"><span class=${live[0]} title=${live[1]}>${live[0] === 'live' ? 'live' : 'not connected'}</span>
        <span>group <b>${clean(me.group)}</b>${me.operator ? ', operator' : ''}</span><span class="quiet">${clean(me.version)}</span>
        <${Theme} /><button class="small" type="button" onClick=${() => help.current.showModal()}>Keys</button>
        ${token() && html`<button class="small" type="button" onClick=${onLeave}>Leave</button>`}</div></header>
    <main id="content" tabindex="-1" aria-label=${title}><${Guard} key=${at.page}><${Page} me=${me} path=${at.path} go=${go} search=${list} beat=${beat} onCalls=${onCalls} /><//></main>
    <dialog ref=${help} aria-labelledby="keys"><h2 id="keys">Keys</h2><dl class="facts">${KEYS.map(([key, about]) => html`<dt><kbd>${key}</kbd></dt><dd>${about}</dd>`)}</dl>
      <form method="dialog"><button class="strong" type="submit">Close</button></form></dialog></div>`;
}

function App() {
  const [state, setState] = useState({});
  const enter = useCallback(async () => {
    try { setState({ me: await api('me') }); } catch (error) {
      if (error.status === 401) setState({ ask: true, error: token() ? 'Nobody has this token.' : '' }); else setState({ error });
    }
  }, []);
  useEffect(() => {
    onExpired(() => setState((it) => (it.me ? { ask: true, error: 'The token is no longer good.' } : it)));
    enter();
  }, []);
  if (state.ask) return html`<${Login} error=${state.error} onToken=${(text) => { setToken(text); enter(); }} />`;
  if (state.error) return html`<main class="login"><h1>Toolcrib</h1><${Failed} error=${state.error} /><button type="button" onClick=${enter}>Try again</button></main>`;
  if (!state.me) return html`<p class="quiet pad">Loading</p>`;
  return html`<${Shell} me=${state.me} onLeave=${() => { setToken(''); setState({}); enter(); }} />`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
