// The shell: who is looking, which page, the keys.

import { render } from './preact.mjs';
import { api, follow, onExpired, parse, setToken, token } from './ask.js';
import { Failed, Guard, clean, html, settle, useCallback, useEffect, useRef, useState } from './parts.js';
import { Calls } from './calls.js';
import { Context } from './context.js';
import { Events } from './events.js';
import { Servers } from './servers.js';
import { Tools, endAll } from './tools.js';

const PAGES = [['tools', 'Tools', Tools], ['calls', 'Calls', Calls], ['servers', 'Servers', Servers], ['events', 'Events', Events], ['context', 'Context', Context]];

const KEYS = [['/', 'search'], ['j, k', 'next, previous'], ['Home, End, Page', 'far in a list'], ['Enter', 'open, or run in the search field'], ['Esc', 'back'], ['1 to 5', 'pages'], ['?', 'these keys']];

/** The page and what stands behind it, from the address. */
function route() {
  const [page, ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  let path = rest.join('/');
  try { path = decodeURIComponent(path); } catch { /* as it is */ }
  return { page: PAGES.some(([it]) => it === page) ? page : 'tools', path };
}

function Login({ error, onToken, onBack }) {
  const [text, setText] = useState('');
  return html`<main class="login"><h1>Toolcrib</h1>
    <p>${onBack ? 'With a token you may see more.' : 'This gateway asks for a token.'} You see and do what its group may.</p>
    <form onSubmit=${(event) => { event.preventDefault(); onToken(text.trim()); }}>
      <div class="field"><label for="token">Token</label><input id="token" type="password" autocomplete="off" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
      ${error && html`<p class="fault" role="alert">${clean(error)}</p>`}
      <button class="strong" type="submit">Look</button> ${onBack && html`<button type="button" onClick=${onBack}>Go on without</button>`}</form>
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
        found.choose(found.items[Math.min(found.items.length - 1, Math.max(0, place < 0 ? 0 : place + step))], 'move');
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

function Shell({ me, onLeave, onLogin, onBeat }) {
  const [at, setAt] = useState(route());
  const [beat, setBeat] = useState(0);
  const [joined, setJoined] = useState(0);
  const [live, setLive] = useState(['lost', '']);
  const heard = useRef(new Set());
  const list = useRef(null);
  const help = useRef(null);
  const waiting = useRef({});
  const was = useRef('');
  useEffect(() => {
    settle();
    // Whoever came back stands in the list again, not at the top of the page.
    if (was.current && !at.path && document.activeElement === document.body) document.querySelector('.rows')?.focus();
    was.current = at.path;
  }, [at]);
  useEffect(() => {
    const changed = () => setAt(route());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  useEffect(() => {
    const stop = new AbortController();
    // Servers that come and go do not make the page load everything four times a second.
    const later = (name, pause, then) => {
      waiting.current[name] ||= setTimeout(() => { waiting.current[name] = 0; then(); }, pause);
    };
    follow('api/live', {
      signal: stop.signal,
      onState: (...now) => setLive(now),
      onEvent: (event) => {
        const said = parse(event.data);
        if (said.catalogue !== undefined) later('beat', 700, () => { setBeat((it) => it + 1); onBeat(); });
        // What ended before the stream began, or was too much for it, is on record.
        if (said.watching) setJoined((it) => it + 1);
        if (said.passed) later('passed', 3000, () => setJoined((it) => it + 1));
        if (said.calls) for (const hear of heard.current) hear(said.calls);
      },
    });
    return () => stop.abort();
  }, [me]);
  // Whoever moves through a list does not want to go back through all of it.
  const go = useCallback((path, how) => {
    if (how !== 'move' || !route().path) { location.hash = `#/${path}`; return; }
    history.replaceState(null, '', `#/${path}`);
    setAt(route());
  }, []);
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
        ${token() ? html`<button class="small" type="button" onClick=${onLeave}>Leave</button>` : me.tokens && html`<button class="small" type="button" onClick=${onLogin}>Log in</button>`}</div></header>
    <main id="content" tabindex="-1" aria-label=${title}><${Guard} key=${at.page}><${Page} me=${me} path=${at.path} go=${go} search=${list} beat=${beat} joined=${joined} onCalls=${onCalls} /><//></main>
    <dialog ref=${help} aria-labelledby="keys"><h2 id="keys">Keys</h2><dl class="facts">${KEYS.map(([key, about]) => html`<dt><kbd>${key}</kbd></dt><dd>${about}</dd>`)}</dl>
      <form method="dialog"><button class="strong" type="submit">Close</button></form></dialog></div>`;
}

function App() {
  const [state, setState] = useState({});
  const enter = useCallback(async (open) => {
    try { setState({ me: await api('me') }); } catch (error) {
      if (error.status === 401) setState({ ask: true, open, error: token() ? 'Nobody has this token.' : '' }); else setState({ error });
    }
  }, []);
  useEffect(() => {
    onExpired(() => setState((it) => (it.me ? { ask: true, error: 'The token is no longer good.' } : it)));
    enter();
  }, []);
  // What one may do can change while one looks.
  const look = useCallback(() => api('me').then((me) => setState((it) => (it.me && JSON.stringify(it.me) !== JSON.stringify(me) ? { me } : it)), () => {}), []);
  const leave = () => { endAll(); setToken(''); setState({}); enter(); };
  const without = state.open && (() => { setToken(''); enter(); });
  if (state.ask) return html`<${Login} error=${state.error} onBack=${without} onToken=${(text) => { setToken(text); enter(state.open); }} />`;
  if (state.error) return html`<main class="login"><h1>Toolcrib</h1><${Failed} error=${state.error} /><button type="button" onClick=${() => enter()}>Try again</button></main>`;
  if (!state.me) return html`<p class="quiet pad">Loading</p>`;
  return html`<${Shell} me=${state.me} onBeat=${look} onLeave=${leave} onLogin=${() => setState({ ask: true, open: true })} />`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
