// Servers: how they are and since when, what is wrong, and what is not as it was accepted.

import { api, parse } from './ask.js';
import { Badge, Confirm, Empty, Failed, Fold, Notice, ago, clean, html, plural, useEffect, useLoad, useMemo, useState } from './parts.js';

const KINDS = { ready: 'good', failed: 'bad', connecting: 'warn' };

function Server({ it, onRestart, busy }) {
  return html`<li class="card"><h3>${clean(it.name)} <${Badge} kind=${KINDS[it.state] || ''}>${clean(it.state)}<//>${it.required && html`<${Badge} title="Without it the gateway is not ready">required<//>`}${it.isolated && html`<${Badge} title="Each client has one of its own">one per client<//>`}</h3>
    <p>${it.since ? html`for ${ago(it.since)}, ` : ''}${plural(it.tools, 'tool')}${it.listed > it.tools ? ` of ${it.listed}` : ''} for you${1 < it.starts ? `, started ${it.starts} times` : ''}
      ${it.tools > 0 && html` <a href=${`#/tools/?source=${encodeURIComponent(it.name)}`}>see them</a>`}</p>
    ${it.cause && html`<${Notice} kind=${it.state === 'failed' ? 'bad' : 'info'}>${clean(it.cause)}${it.hint ? `\n${clean(it.hint)}` : ''}<//>`}
    ${it.last_error && it.state !== 'failed' && html`<p class="quiet">Last error, ${ago(it.last_error.at)} ago: ${clean(it.last_error.cause)}</p>`}
    ${(it.held || []).map((one) => html`<${Notice} kind="warn"><code>${clean(one.tool)}</code> is ${one.hidden ? 'hidden' : 'held back'}: ${clean(one.cause)}<//>`)}
    ${it.restart && html`<${Confirm} label="Restart" question=${`Restart ${clean(it.name)}? Calls that it has not answered fail.`} disabled=${busy} onYes=${() => onRestart(it.name)} />`}</li>`;
}

const pretty = (text) => {
  try { return JSON.stringify(parse(text), null, 2).split('\n'); } catch { return String(text).split('\n'); }
};

/** What lines went and came, by the longest common run of lines. */
function lines(before, now) {
  const [a, b] = [before === null ? [] : pretty(before), now === null ? [] : pretty(now)];
  if (1500 < a.length || 1500 < b.length) return [...a.map((it) => ['gone', it]), ...b.map((it) => ['come', it])];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; 0 <= i; i -= 1) for (let j = b.length - 1; 0 <= j; j -= 1) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { found.push(['same', a[i]]); i += 1; j += 1; }
    else if (j < b.length && (i === a.length || table[i][j + 1] > table[i + 1][j])) { found.push(['come', b[j]]); j += 1; }
    else { found.push(['gone', a[i]]); i += 1; }
  }
  return found;
}

function Diff({ before, now }) {
  const all = useMemo(() => lines(before, now), [before, now]);
  return html`<div class="diff" tabindex="0" role="region" aria-label="What changed">${all.map(([kind, text]) => html`<div class=${kind}>${{ gone: '- ', come: '+ ', same: '  ' }[kind]}${clean(text)}</div>`)}</div>`;
}

/** The tools of a server of which nothing was accepted yet, the suspicious ones first. */
function News({ tools }) {
  const sorted = [...tools].sort((a, b) => Number(Boolean(b.flag)) - Number(Boolean(a.flag)));
  const about = (it) => html`<code>${clean(it.name)}</code>${it.flag && html` <${Badge} kind="bad">suspicious<//>`}`;
  return html`<p>${plural(tools.length, 'tool')}, all new:</p><div class="scroll news" tabindex="0" role="region" aria-label="Tools that would be accepted">${sorted.map((it) => html`<div key=${it.name}>
    ${it.flag && html`<${Notice} kind="bad">${clean(it.flag)}<//>`}
    ${it.definition ? html`<${Fold} title=${about(it)} inside=${() => html`<${Diff} before=${null} now=${it.definition} />`} />` : about(it)}</div>`)}</div>`;
}

function Change({ it, onAccept }) {
  const shown = it.definition_before || it.definition_now;
  const odd = it.flag || (it.tools || []).some((one) => one.flag);
  return html`<li class="card"><p><b>${clean(it.text)}</b></p>
    ${(it.meanings || []).length > 1 && html`<ul>${it.meanings.map((one) => html`<li>${clean(one.text || JSON.stringify(one))}</li>`)}</ul>`}
    ${it.flag && html`<${Notice} kind="bad"><b>Suspicious definition.</b> ${clean(it.flag)}<//>`}
    ${it.tools && it.tools.length > 0 && html`<${News} tools=${it.tools} />`}
    ${shown && html`<${Diff} before=${it.definition_before} now=${it.definition_now} />`}
    ${it.acceptable ? html`<${Confirm} kind="strong" label="Accept" question=${odd ? 'Accept it as it is now, although it is suspicious?' : 'Accept it as it is now?'} onYes=${() => onAccept(it)} />` : html`<p class="quiet">The server cannot be asked just now.</p>`}</li>`;
}

function Pins({ beat }) {
  const { data, error, again } = useLoad((signal) => api('pins', undefined, signal), [beat]);
  const [said, setSaid] = useState(null);
  const accept = async (it) => {
    try {
      await api('pins/accept', { source: it.source, tool: it.tool, stamp: it.stamp });
      setSaid({ text: `Accepted: ${it.text}` });
    } catch (refused) { setSaid({ text: refused.message, bad: true }); }
    again();
  };
  return html`<section aria-labelledby="pins"><h2 id="pins">Pins</h2>
    <div aria-live="polite">${said && html`<${Notice} kind=${said.bad ? 'bad' : 'info'}>${clean(said.text)}<//>`}</div>
    ${error && html`<${Failed} error=${error} />`}
    ${data && html`<p class="quiet">${data.locked ? 'toolcrib.lock says what was accepted.' : 'Nothing was accepted yet: there is no toolcrib.lock.'} Pins: ${clean(data.pins)}. Accepting writes toolcrib.lock.</p>`}
    ${data && !data.changes.length && html`<p>Everything is as it was accepted.</p>`}
    ${data && data.changes.length > 0 && html`<ul class="cards wide">${data.changes.map((it) => html`<${Change} key=${`${it.source} ${it.tool} ${it.stamp}`} it=${it} onAccept=${accept} />`)}</ul>`}</section>`;
}

export function Servers({ me, beat }) {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((it) => it + 1), 2000);
    return () => clearInterval(timer);
  }, []);
  const servers = useLoad((signal) => api('servers', undefined, signal), [beat, tick]);
  const problems = useLoad((signal) => (me.operator ? api('problems', undefined, signal) : Promise.resolve({ problems: [] })), [beat, tick]);
  const [said, setSaid] = useState(null);
  const restart = async (name) => {
    try { await api('servers/restart', { name }); setSaid({ text: `${name} is started anew` }); } catch (error) { setSaid({ text: error.message, bad: true }); }
    servers.again();
  };
  const [kept, setKept] = useState({});
  useEffect(() => { if (servers.data) setKept((it) => ({ ...it, servers: servers.data.servers })); }, [servers.data]);
  useEffect(() => { if (problems.data) setKept((it) => ({ ...it, problems: problems.data.problems })); }, [problems.data]);
  const found = kept.problems || [];
  return html`<div class="page"><section aria-labelledby="servers"><h2 id="servers">Servers</h2>
      <div aria-live="polite">${said && html`<${Notice} kind=${said.bad ? 'bad' : 'info'}>${clean(said.text)}<//>`}</div>
      ${servers.error && html`<${Failed} error=${servers.error} />`}
      ${kept.servers && !kept.servers.length && html`<${Empty} title="There are no servers">Put some into mcp.json, or write tools in tools/.<//>`}
      <ul class="cards">${(kept.servers || []).map((it) => html`<${Server} key=${it.place} it=${it} onRestart=${restart} />`)}</ul></section>
    ${me.operator && html`<section aria-labelledby="problems"><h2 id="problems">Problems</h2>
      ${kept.problems && !found.length && html`<p>There are none.</p>`}
      ${found.map((it) => html`<${Notice} kind=${it.severity === 'problem' ? 'bad' : 'warn'}><b>${clean(it.subject)}</b>: ${clean(it.message)}${it.hint ? `\n${clean(it.hint)}` : ''}<//>`)}</section>
      <${Pins} beat=${beat} />`}</div>`;
}
