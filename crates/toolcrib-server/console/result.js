// What a call brought, each part as what it is. Nothing that a server sent becomes markup or an address to go to.

import { api, download, parse, rpc, save } from './ask.js';
import { Badge, Failed, Text, Value, clean, html, size, useState } from './parts.js';

const ARTIFACT = 'toolcrib://artifact/';
const media = (type, family) => new RegExp(`^${family}/[a-z0-9.+-]+$`, 'i').test(type || '');
const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

function Blob64({ data, type, name }) {
  const text = String(data ?? '');
  if (media(type, 'image')) return html`<img class="shown" src=${`data:${type};base64,${text}`} alt=${`Picture: ${clean(name || type)}`} />`;
  if (media(type, 'audio')) return html`<audio controls src=${`data:${type};base64,${text}`} aria-label=${`Sound: ${clean(name || type)}`}></audio>`;
  const keep = () => { try { save(bytesOf(text), 'result.bin'); } catch { /* it is no base64 */ } };
  return html`<p>${clean(type || 'bytes')}, ${size(text.length * 0.75)} <button type="button" class="small" onClick=${keep}>Save as a file</button></p>`;
}

function Resource({ it }) {
  const type = it.mimeType || '';
  return html`<p class="quiet"><code>${clean(it.uri)}</code> ${clean(type)}</p>
    ${it.text !== undefined ? html`<${Text} text=${String(it.text)} />` : html`<${Blob64} data=${it.blob} type=${type} name=${it.uri} />`}`;
}

/** Reads a resource as any client would. */
export async function readResource(uri) {
  const answer = await rpc('resources/read', { uri: JSON.stringify(uri) }, { name: uri });
  if (answer.error) throw new Error(answer.error.message);
  return answer.result.contents || [];
}

const PIECES = [
  ['head', 'First characters', '2000'], ['tail', 'Last characters', '2000'], ['lines', 'Lines', '0:20'], ['rows', 'Rows', '0:20'],
  ['keys', 'Keys of', '$'], ['path', 'JSONPath', '$'], ['grep', 'Lines that match', ''], ['count', 'Count rows by column', '*'],
];

/** A stored result, of which pieces are read. */
export function Artifact({ uri, about }) {
  const [piece, setPiece] = useState('head');
  const [text, setText] = useState('2000');
  const [state, setState] = useState({});
  const id = uri.slice(ARTIFACT.length).split('?')[0];
  const read = async (what) => {
    setState({ busy: true });
    try { setState({ contents: await readResource(what) }); } catch (error) { setState({ error }); }
  };
  const ask = (event) => { event.preventDefault(); read(`${ARTIFACT}${id}?${piece}=${encodeURIComponent(text)}`); };
  const keep = async () => { try { await download(id); } catch (error) { setState({ error }); } };
  const next = ((state.contents || [])[0] || {})._meta?.['toolcrib/next'];
  return html`<section class="artifact" aria-label=${`Stored result ${clean(id)}`}>
    <p><${Badge} kind="source">stored<//> <code>${clean(id)}</code> <span class="quiet">${clean(about || '')}</span> <button type="button" class="small" onClick=${keep}>Download</button></p>
    <form class="line" onSubmit=${ask}>
      <label>Piece <select value=${piece} onChange=${(event) => { setPiece(event.target.value); setText(PIECES.find(([it]) => it === event.target.value)[2]); }}>
        ${PIECES.map(([key, name]) => html`<option value=${key}>${name}</option>`)}</select></label>
      <label class="grow">Which <input value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      <button type="submit">Read</button></form>
    ${state.error && html`<${Failed} error=${state.error} />`}
    ${(state.contents || []).map((it) => html`<${Resource} it=${it} />`)}
    ${next && html`<button type="button" class="small" onClick=${() => read(next)}>Go on</button>`}
  </section>`;
}

function Link({ it }) {
  const [state, setState] = useState({});
  const uri = String(it.uri ?? '');
  const about = [it.title || it.name, it.mimeType, it.size === undefined ? '' : size(Number(it.size)), it.description].filter(Boolean).join(' · ');
  if (uri.startsWith(ARTIFACT)) return html`<${Artifact} uri=${uri} about=${about} />`;
  const read = async () => {
    try { setState({ contents: await readResource(uri) }); } catch (error) { setState({ error }); }
  };
  return html`<p><code>${clean(uri)}</code> <span class="quiet">${clean(about)}</span> <button type="button" class="small" onClick=${read}>Read</button></p>
    ${state.error && html`<${Failed} error=${state.error} />`}${(state.contents || []).map((part) => html`<${Resource} it=${part} />`)}`;
}

function Part({ it }) {
  switch (it && it.type) {
    case 'text': return html`<${Text} text=${String(it.text ?? '')} />`;
    case 'image': case 'audio': return html`<${Blob64} data=${it.data} type=${it.mimeType} />`;
    case 'resource': return html`<${Resource} it=${it.resource || {}} />`;
    case 'resource_link': return html`<${Link} it=${it} />`;
    default: return html`<${Value} value=${it} />`;
  }
}

const same = (part, structure) => {
  if (!part || part.type !== 'text') return false;
  try { return JSON.stringify(parse(part.text)) === JSON.stringify(structure); } catch { return false; }
};

/** The result of a call. */
export function Result({ result }) {
  const structure = result.structuredContent;
  const all = Array.isArray(result.content) ? result.content : [];
  // Many servers say their structure once more as text.
  const content = structure === undefined ? all : all.filter((it) => !same(it, structure));
  const meta = result._meta || {};
  const call = meta['toolcrib/call'];
  return html`${result.isError && html`<p><${Badge} kind="bad">the tool failed<//> ${meta['toolcrib/blame'] && html`<span class="quiet">fault of the ${clean(meta['toolcrib/blame'])}</span>`}
      ${call && html` <a href=${`#/calls/${encodeURIComponent(call)}`}>the story of this call</a>`}</p>`}
    ${structure !== undefined && html`<div class="part"><h4>Structured content</h4><${Value} value=${structure} /></div>`}
    ${content.map((it, at) => html`<div class="part" key=${at}>${1 < content.length && html`<h4>Part ${at + 1}: ${clean(it && it.type)}</h4>`}<${Part} it=${it} /></div>`)}
    ${!content.length && structure === undefined && html`<p class="quiet">The result is empty.</p>`}`;
}

/** What is stored for the group. */
export const storedResults = (signal) => api('artifacts', undefined, signal);
