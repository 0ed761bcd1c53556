// A form made of a schema.

import { EMPTY, begin, place, rules } from './schema.js';
import { clean, html } from './parts.js';

const nameOf = (path) => path.replace(/[^\w.-]/g, '_');

function About({ id, schema, fault }) {
  const said = rules(schema);
  return html`<div id=${`${id}-about`} class="about">
    ${schema.description && html`<span class="quiet">${clean(schema.description)}</span>`}
    ${said.length > 0 && html`<span class="rules">${clean(said.join(' · '))}</span>`}
    ${fault && html`<span class="fault">${clean(fault)}</span>`}</div>`;
}

const Label = ({ id, name, required, schema }) => html`<label for=${id}><code>${clean(name)}</code>
  ${required ? html`<span class="must" title="required">required</span>` : ''}
  <span class="quiet type">${clean([].concat(schema.type || '').join(' or '))}</span></label>`;

function Choice({ id, choices, value, required, onChange, about, bad }) {
  return html`<select id=${id} value=${value} aria-describedby=${about} aria-invalid=${bad} onChange=${(event) => onChange(event.target.value)}>
    ${(!required || value === '') && html`<option value="">${required ? 'choose' : '(not given)'}</option>`}
    ${choices.map(([key, text]) => html`<option key=${key} value=${key}>${clean(text)}</option>`)}</select>`;
}

function Simple({ kind, id, name, schema, choices, value: given, required, fault, onChange }) {
  const value = given ?? '';
  const about = `${id}-about`;
  const bad = fault ? 'true' : undefined;
  const typed = (event) => onChange(event.target.value);
  const common = { id, value, onInput: typed, 'aria-describedby': about, 'aria-invalid': bad, 'aria-required': required || undefined };
  let input;
  if (kind === 'enum') {
    const list = choices.map((it, at) => [String(at), typeof it === 'string' ? it : JSON.stringify(it)]);
    input = html`<${Choice} id=${id} choices=${list} value=${value} required=${required} onChange=${onChange} about=${about} bad=${bad} />`;
  } else if (kind === 'boolean') {
    input = html`<${Choice} id=${id} choices=${[['true', 'true'], ['false', 'false']]} value=${value} required=${required} onChange=${onChange} about=${about} bad=${bad} />`;
  } else if (kind === 'json') {
    input = html`<textarea ...${common} rows="3" spellcheck="false" placeholder="JSON"></textarea>`;
  } else if (kind === 'string' && (300 < (schema.maxLength || 0) || /\n/.test(value) || 60 < value.length)) {
    input = html`<textarea ...${common} rows="4"></textarea>`;
  } else {
    const type = kind === 'string' ? { date: 'date', email: 'email' }[schema.format] || 'text' : 'text';
    const mode = kind === 'integer' ? 'numeric' : kind === 'number' ? 'decimal' : undefined;
    const shown = (schema.examples || [])[0];
    input = html`<input ...${common} type=${type} inputmode=${mode} autocomplete="off" placeholder=${shown === undefined ? '' : clean(shown)} />`;
  }
  // Nothing typed is not given; what is given and empty has to be said.
  const empty = kind === 'string' && value === '' && !schema.minLength && !schema.format && html`<button type="button" class="small" aria-pressed=${given === EMPTY} aria-describedby=${about} title="Send it, as a text without characters" onClick=${() => onChange(given === EMPTY ? '' : EMPTY)}>empty text</button>`;
  return html`<div class="field"><${Label} id=${id} name=${name} required=${required} schema=${schema} />${input}${empty}<${About} id=${id} schema=${schema} fault=${fault} /></div>`;
}

/** One place of a form, and those inside of it. */
export function Field({ name, schema: given, root, value, required, path, faults, onChange, depth = 0 }) {
  const { kind, schema, choices, list } = place(given, root, depth);
  const id = nameOf(path);
  const fault = faults[path];
  if (kind === 'object') {
    const members = html`${Object.entries(schema.properties).map(([key, inner]) => html`<${Field} key=${key} name=${key} schema=${inner} root=${root} value=${value[key]}
      required=${schema.required.includes(key)} path=${`${path}.${key}`} faults=${faults} depth=${depth + 1}
      onChange=${(it) => onChange({ ...value, [key]: it })} />`)}`;
    if (depth === 0) return members;
    return html`<fieldset><legend><code>${clean(name)}</code> ${required && html`<span class="must">required</span>`}</legend>
      <${About} id=${id} schema=${schema} fault=${fault} />${members}</fieldset>`;
  }
  if (kind === 'array') {
    const set = (at, it) => onChange(value.map((old, place) => (place === at ? it : old)));
    return html`<fieldset><legend><code>${clean(name)}</code> ${required && html`<span class="must">required</span>`} <span class="quiet type">list</span></legend>
      <${About} id=${id} schema=${schema} fault=${fault} />
      ${value.map((it, at) => html`<div class="item" key=${at}><div class="grow"><${Field} name=${`${name}[${at}]`} schema=${schema.items || {}} root=${root} value=${it} required=${true}
        path=${`${path}.${at}`} faults=${faults} depth=${depth + 1} onChange=${(now) => set(at, now)} /></div>
        <button type="button" class="small" aria-label=${`Remove ${clean(name)} ${at + 1}`} onClick=${() => onChange(value.filter((_, place) => place !== at))}>Remove</button></div>`)}
      <button type="button" class="small" onClick=${() => onChange([...value, begin(schema.items || {}, root, true, depth + 1)])}>Add to ${clean(name)}</button></fieldset>`;
  }
  if (kind === 'ways') {
    const titles = list.map((it, at) => String((it && (it.title || String(it.$ref || '').split('/').pop() || [].concat(it.type || '').join(' or '))) || `way ${at + 1}`));
    return html`<fieldset><legend><code>${clean(name)}</code> ${required && html`<span class="must">required</span>`} <span class="quiet type">one of ${list.length}</span></legend>
      <div class="field"><label for=${`${id}-way`}>Which</label><select id=${`${id}-way`} value=${String(value.way)} onChange=${(event) => {
        const way = Number(event.target.value);
        onChange({ way, draft: begin(list[way], root, required, depth + 1) });
      }}>${titles.map((it, at) => html`<option value=${String(at)}>${clean(it)}</option>`)}</select></div>
      <${Field} key=${value.way} name=${titles[value.way]} schema=${list[value.way]} root=${root} value=${value.draft} required=${required} path=${path} faults=${faults}
        depth=${depth + 1} onChange=${(draft) => onChange({ ...value, draft })} /></fieldset>`;
  }
  return html`<${Simple} kind=${kind} id=${id} name=${name} schema=${schema} choices=${choices} value=${value} required=${required} fault=${fault} onChange=${onChange} />`;
}

/** A schema to read: what a tool takes or gives, without a form. */
export function Shape({ schema: given, root, depth = 0 }) {
  const { kind, schema, choices, list } = place(given, root, depth);
  if (kind === 'object') {
    return html`<dl class="shape">${Object.entries(schema.properties).map(([key, inner]) => {
      const at = place(inner, root, depth + 1);
      return html`<div><dt><code>${clean(key)}</code> <span class="quiet">${clean(at.kind === 'enum' ? at.choices.map((it) => JSON.stringify(it)).join(' | ') : [].concat(at.schema.type || at.kind).join(' or '))}</span>
        ${schema.required.includes(key) && html`<span class="must">required</span>`}</dt>
        <dd>${at.schema.description && html`<p>${clean(at.schema.description)}</p>`}
        ${(rules(at.schema).length > 0 || at.schema.default !== undefined) && html`<p class="rules">${clean([...rules(at.schema), ...(at.schema.default === undefined ? [] : [`default ${JSON.stringify(at.schema.default)}`])].join(' · '))}</p>`}
        ${['object', 'array', 'ways'].includes(at.kind) && html`<${Shape} schema=${inner} root=${root} depth=${depth + 1} />`}</dd></div>`;
    })}</dl>`;
  }
  if (kind === 'array') return html`<div class="quiet">each item:</div><${Shape} schema=${schema.items || {}} root=${root} depth=${depth + 1} />`;
  if (kind === 'ways') return html`<div class="quiet">one of:</div>${list.map((it) => html`<${Shape} schema=${it} root=${root} depth=${depth + 1} />`)}`;
  const about = kind === 'enum' ? choices.map((it) => JSON.stringify(it)).join(' | ') : [].concat(schema.type || 'anything').join(' or ');
  return html`<p class="quiet">${clean([about, ...rules(schema)].join(' · '))}</p>`;
}
