// Events: as they come, who reads them and how far they are, and publishing some.

import { api, follow, parse, publish } from './ask.js';
import { Confirm, Empty, Failed, Notice, Rows, Tree, ago, clean, clock, html, plural, useEffect, useLoad, useRef, useState } from './parts.js';
import { Try } from './tools.js';

const MOST = 1000;
const STARTS = [['recent', 'the last 100 on'], ['new', 'from now on'], ['first', 'from the beginning']];

/** Where a stream begins, as the bus counts. */
async function begin(from, signal) {
  if (from !== 'recent') return from;
  const { last } = await api('consumers', undefined, signal);
  return String(Math.max(1, Number(last) - 99));
}

const EventRow = (it) => html`<div class="row-head"><span class="row-name">${clean(it.type)}</span><span class="quiet">#${clean(it.sequence)}</span></div>
  <div class="row-text">${clock(it.time)} · ${clean(it.source)} · ${clean(JSON.stringify(it.data ?? null).slice(0, 200))}</div>`;

function Stream({ path, go, search }) {
  const [match, setMatch] = useState('');
  const [from, setFrom] = useState('recent');
  const [asked, setAsked] = useState({ match: '', from: 'recent' });
  const [state, setState] = useState(['lost', '']);
  const [gaps, setGaps] = useState(0);
  const [events, setEvents] = useState([]);
  const waiting = useRef([]);
  useEffect(() => {
    const stop = new AbortController();
    setEvents([]);
    setGaps(0);
    waiting.current = [];
    const read = (first) => follow(`events?from=${encodeURIComponent(first)}${asked.match ? `&match=${encodeURIComponent(asked.match)}` : ''}`, {
      signal: stop.signal, onState: (...now) => setState(now),
      onEvent: (event) => {
        if (event.event === 'gap') {
          const { missed, damaged } = parse(event.data);
          setGaps((it) => it + (Number(missed) || 0) + (damaged || []).length);
          return;
        }
        if (!waiting.current.length) {
          // Many come at once; the page is made anew once for all of them.
          setTimeout(() => {
            const more = waiting.current.splice(0);
            if (!stop.signal.aborted) setEvents((now) => [...more.reverse(), ...now].slice(0, MOST));
          }, 50);
        }
        waiting.current.push(parse(event.data));
      },
    });
    begin(asked.from, stop.signal).then(read, (error) => stop.signal.aborted || setState(['lost', error.message]));
    return () => stop.abort();
  }, [asked]);
  const chosen = events.find((it) => it.id === path);
  const choose = (it, how) => go(`events/${encodeURIComponent(it.id)}`, how);
  useEffect(() => {
    search.current = { items: events, chosen: path, choose, keyOf: (it) => it.id };
    return () => { search.current = null; };
  });
  return html`<section class="list" aria-label="Stream of events"><form class="filters" onSubmit=${(event) => { event.preventDefault(); setAsked({ match, from }); }}>
      <label class="grow"><span class="hidden">Names of events</span><input id="search" placeholder="task.*   /" value=${match} onInput=${(event) => setMatch(event.target.value)} /></label>
      <label for="events-from" class="hidden">From</label><select id="events-from" value=${from} onChange=${(event) => setFrom(event.target.value)}>${STARTS.map(([key, text]) => html`<option value=${key}>${text}</option>`)}</select>
      <button type="submit">Follow</button></form>
    <p class="count quiet" aria-live="polite"><span class=${state[0]}>${state[0] === 'live' ? `following ${clean(asked.match || 'everything you may read')}` : clean(state[1] || 'connecting')}</span>, ${plural(events.length, 'event')}${events.length === MOST ? ', the newest' : ''}</p>
    ${gaps > 0 && html`<${Notice} kind="warn">${plural(gaps, 'event')} at least ${gaps === 1 ? 'is' : 'are'} missing here: no longer kept, or damaged.<//>`}
    <${Rows} label="Events" items=${events} height=${62} chosen=${path} keyOf=${(it) => it.id} onChoose=${choose} row=${EventRow} /></section>
    ${path && html`<article class="detail" aria-label="Event"><button class="small back" type="button" onClick=${() => go('events')}>Back to the list</button>
      ${chosen ? html`<h2 tabindex="-1">${clean(chosen.type)}</h2><${Tree} value=${chosen} />` : html`<${Empty} title="This event is not among those that are shown">It may be older than where the stream begins.<//>`}</article>`}`;
}

/** Asks from where a consumer is to read again, and says what is lost by it. */
function Replay({ it, onReplay }) {
  const [from, setFrom] = useState('');
  return html`<${Confirm} label="Replay" question=${`Send ${clean(it.name)} everything again? What it has in hand and the ${plural(Number(it.dead), 'event')} it gave up are forgotten.`} onYes=${() => onReplay(it.name, from)}>
    <label>From # <input inputmode="numeric" value=${from} placeholder="the oldest" onInput=${(event) => setFrom(event.target.value.replace(/\D/g, ''))} /></label><//>`;
}

function Consumers({ me }) {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((it) => it + 1), 3000);
    return () => clearInterval(timer);
  }, []);
  const load = useLoad((signal) => api('consumers', undefined, signal), [tick]);
  const [kept, setKept] = useState(null);
  const [said, setSaid] = useState(null);
  useEffect(() => { if (load.data) setKept(load.data); }, [load.data]);
  const replay = async (name, from) => {
    try {
      await api('consumers/replay', { consumer: name, ...(from ? { from: Number(from) } : {}) });
      setSaid({ text: `${name} gets everything again${from ? ` from #${from} on` : ''}` });
    } catch (error) { setSaid({ text: error.message, bad: true }); }
    load.again();
  };
  return html`<h2>Consumers</h2><div aria-live="polite">${said && html`<${Notice} kind=${said.bad ? 'bad' : 'info'}>${clean(said.text)}<//>`}</div>
    ${load.error && html`<${Failed} error=${load.error} />`}
    ${kept && !kept.consumers.length && html`<p class="quiet">No program reads events durably. Whoever reads <code>/events?consumer=NAME</code>, and every webhook, is listed here.</p>`}
    ${kept && kept.consumers.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Consumers"><table><thead><tr><th scope="col">consumer</th><th scope="col">reads</th><th class="number" scope="col">behind</th><th class="number" scope="col">in hand</th><th class="number" scope="col">given up</th><th scope="col">seen</th><th scope="col"><span class="hidden">Do</span></th></tr></thead>
      <tbody>${kept.consumers.map((it) => html`<tr key=${it.name}><td>${clean(it.name)}</td><td>${clean((it.match || []).join(', ') || 'everything')}</td><td class="number">${String(it.behind)}</td><td class="number">${String(it.pending)}</td><td class="number">${String(it.dead)}</td><td>${ago(it.seen)} ago</td>
        <td>${me.operator && html`<${Replay} it=${it} onReplay=${replay} />`}</td></tr>`)}</tbody></table></div>`}`;
}

function Publish() {
  const tools = useLoad((signal) => api('tools', undefined, signal), []);
  const [name, setName] = useState('');
  const [definition, setDefinition] = useState(null);
  const [type, setType] = useState('');
  const [data, setData] = useState('{}');
  const [said, setSaid] = useState(null);
  const own = ((tools.data && tools.data.tools) || []).filter((it) => it.source === 'events/');
  const pick = async (chosen) => {
    setName(chosen);
    setDefinition(null);
    setSaid(null);
    if (!chosen) return;
    try { setDefinition((await api(`tool?name=${encodeURIComponent(chosen)}`)).definition); } catch (error) { setSaid({ text: error.message, bad: true }); }
  };
  const send = async (event) => {
    event.preventDefault();
    try {
      JSON.parse(data);
      const taken = await publish(`{"type":${JSON.stringify(type)},"data":${data}}`);
      setSaid({ text: `Published as #${taken.sequence}` });
    } catch (error) { setSaid({ text: error.message, bad: true }); }
  };
  return html`<h2>Publish</h2><div class="field"><label for="event-tool">What</label><select id="event-tool" value=${name} onChange=${(event) => pick(event.target.value)}><option value="">any event, by name</option>${own.map((it) => html`<option value=${it.name}>${clean(it.name)}</option>`)}</select></div>
    ${name ? definition && html`<p class="description">${clean(definition.description)}</p><${Try} key=${name} name=${name} definition=${definition} />`
      : html`<form aria-label="Publish an event" onSubmit=${send}><div class="field"><label for="event-name">Name</label><input id="event-name" value=${type} placeholder="task.done" onInput=${(event) => setType(event.target.value)} /></div>
        <div class="field"><label for="event-data">What it says, as JSON</label><textarea id="event-data" rows="4" spellcheck="false" value=${data} onInput=${(event) => setData(event.target.value)}></textarea></div>
        <button class="strong" type="submit" disabled=${!type.trim()}>Publish</button></form>`}
    ${tools.error && html`<${Failed} error=${tools.error} />`}
    <div aria-live="polite">${said && html`<${Notice} kind=${said.bad ? 'bad' : 'info'}>${clean(said.text)}<//>`}</div>`;
}

export function Events({ me, path, go, search }) {
  if (!me.events) return html`<div class="page"><${Empty} title="There is no event bus">The folder .toolcrib of the workspace cannot be written, or the bus cannot be reached.<//></div>`;
  return html`<div class=${`split ${path ? 'has-detail' : ''}`}><${Stream} path=${path} go=${go} search=${search} />
    ${!path && html`<div class="detail"><${Publish} /><${Consumers} me=${me} /></div>`}</div>`;
}
