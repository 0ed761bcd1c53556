// What a JSON Schema asks for, as a form can ask for it. Drafts are what was typed; `textOf` makes JSON of one,
// `faultsOf` says what is wrong with it. Whatever a form cannot ask for is asked for as JSON. The gateway checks all
// of it again.

import { parse } from './ask.js';

const DEEPEST = 6;

/** The draft of a text that is given and empty; nothing typed is a text that is not given. */
export const EMPTY = null;

/** The schema behind references inside of the document. */
export function resolve(schema, root) {
  let found = schema;
  for (let hops = 0; found && typeof found === 'object' && typeof found.$ref === 'string'; hops += 1) {
    const { $ref, ...beside } = found;
    if (20 < hops || !$ref.startsWith('#')) return beside;
    let at = root;
    for (const part of $ref.slice(1).split('/').filter(Boolean)) {
      let name = part;
      try { name = decodeURIComponent(part); } catch { /* as it is */ }
      at = at && typeof at === 'object' ? at[name.replace(/~1/g, '/').replace(/~0/g, '~')] : undefined;
    }
    found = { ...(at && typeof at === 'object' ? at : {}), ...beside };
  }
  if (found && Array.isArray(found.allOf)) {
    const { allOf, ...rest } = found;
    return sane(allOf.map((it) => resolve(it, root)).reduce((all, it) => ({
      ...all, ...it, properties: { ...all.properties, ...it.properties }, required: [...all.required, ...it.required],
    }), sane(rest)));
  }
  return sane(found);
}

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** A schema whose words are what they should be: whatever else a server says there says nothing. */
function sane(schema) {
  if (!isObject(schema)) return {};
  const found = { ...schema, required: Array.isArray(schema.required) ? schema.required : [] };
  if (!isObject(schema.properties)) delete found.properties;
  for (const word of ['enum', 'oneOf', 'anyOf', 'examples']) if (!Array.isArray(schema[word])) delete found[word];
  for (const word of ['pattern', 'format', 'description', 'title']) if (typeof schema[word] !== 'string') delete found[word];
  return found;
}

/** The ways among which one is chosen, without `null`, which is said by leaving it out. */
function ways(schema, root) {
  const list = schema.oneOf || schema.anyOf;
  if (!Array.isArray(list)) return null;
  return list.filter((it) => resolve(it, root).type !== 'null');
}

/** What a place in a form is: its kind, and the schema that counts. */
export function place(given, root, depth = 0) {
  const schema = resolve(given, root);
  if (DEEPEST < depth) return { kind: 'json', schema };
  if ('const' in schema) return { kind: 'enum', schema, choices: [schema.const] };
  if (Array.isArray(schema.enum)) return { kind: 'enum', schema, choices: schema.enum };
  const list = ways(schema, root);
  if (list && list.length === 1) return place({ ...schema, oneOf: undefined, anyOf: undefined, ...resolve(list[0], root) }, root, depth + 1);
  if (list && list.length) return { kind: 'ways', schema, list };
  const types = [].concat(schema.type || []).filter((it) => it !== 'null');
  const type = types.length === 1 ? types[0] : types.length ? '' : schema.properties ? 'object' : schema.items ? 'array' : '';
  if (type === 'object') return schema.properties ? { kind: 'object', schema } : { kind: 'json', schema };
  if (type === 'array') return Array.isArray(schema.items) || schema.prefixItems ? { kind: 'json', schema } : { kind: 'array', schema };
  if (['string', 'integer', 'number', 'boolean'].includes(type)) return { kind: type, schema };
  return { kind: 'json', schema };
}

/** What a place begins with. */
export function begin(given, root, required, depth = 0) {
  const { kind, schema, choices, list } = place(given, root, depth);
  const has = schema.default !== undefined;
  switch (kind) {
    case 'enum': {
      const at = has ? choices.findIndex((it) => JSON.stringify(it) === JSON.stringify(schema.default)) : -1;
      return at < 0 ? (required && choices.length === 1 ? '0' : '') : String(at);
    }
    case 'boolean': return has ? String(schema.default === true) : '';
    case 'string': return typeof schema.default === 'string' ? schema.default || EMPTY : '';
    case 'integer': case 'number': return has ? String(schema.default) : '';
    case 'object': {
      const members = Object.entries(schema.properties).map(([name, it]) => {
        const inner = resolve(it, root);
        const whole = has && schema.default && typeof schema.default === 'object' && name in schema.default;
        const from = whole ? { ...inner, default: schema.default[name] } : it;
        return [name, begin(from, root, schema.required.includes(name), depth + 1)];
      });
      return Object.fromEntries(members);
    }
    case 'array': {
      if (Array.isArray(schema.default)) return schema.default.map((it) => begin({ ...resolve(schema.items || {}, root), default: it }, root, true, depth + 1));
      const least = required ? Math.min(schema.minItems || 0, 5) : 0;
      return Array.from({ length: least }, () => begin(schema.items || {}, root, true, depth + 1));
    }
    case 'ways': return { way: 0, draft: begin(list[0], root, required, depth + 1) };
    default: return has ? JSON.stringify(schema.default) : '';
  }
}

/** The draft that says this value, as far as a form can say it; whoever asks compares what it says. */
export function fill(given, root, value, required, depth = 0) {
  const { kind, schema, choices, list } = place(given, root, depth);
  const none = value === undefined;
  const text = none ? '' : JSON.stringify(value);
  switch (kind) {
    case 'enum': return none ? '' : String(choices.findIndex((it) => JSON.stringify(it) === text)).replace('-1', '');
    case 'boolean': return typeof value === 'boolean' ? text : '';
    case 'string': return typeof value === 'string' ? value || EMPTY : '';
    case 'integer': case 'number': return NUMBER.test(text) ? text : '';
    case 'object': return Object.fromEntries(Object.entries(schema.properties).map(([name, it]) => [name, fill(it, root, isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined, schema.required.includes(name), depth + 1)]));
    case 'array': return Array.isArray(value) ? value.map((it) => fill(schema.items || {}, root, it, true, depth + 1)) : [];
    case 'ways': {
      const drafts = list.map((it) => fill(it, root, value, required, depth + 1));
      const fits = (draft, at) => !none && same(textOf(list[at], root, draft, required, depth + 1), text) && !Object.keys(faultsOf(list[at], root, draft, required, '', {}, depth + 1)).length;
      const way = Math.max(0, drafts.findIndex(fits));
      return { way, draft: drafts[way] };
    }
    default: return text;
  }
}

/** Whether two JSON texts say the same, in whatever order. */
export function same(a, b) {
  const sorted = (_key, it) => (isObject(it) && !it.toJSON ? Object.fromEntries(Object.entries(it).sort(([x], [y]) => (x < y ? -1 : 1))) : it);
  try { return JSON.stringify(parse(a), sorted) === JSON.stringify(parse(b), sorted); } catch { return false; }
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** A draft as JSON; nothing where it says nothing. */
export function textOf(given, root, draft, required, depth = 0) {
  const { kind, schema, choices, list } = place(given, root, depth);
  switch (kind) {
    case 'enum': return draft === '' ? undefined : JSON.stringify(choices[Number(draft)]);
    case 'boolean': return draft === '' ? undefined : draft;
    case 'string': return draft === '' ? undefined : JSON.stringify(draft ?? '');
    case 'integer': case 'number': return draft.trim() === '' ? undefined : NUMBER.test(draft.trim()) ? draft.trim() : JSON.stringify(draft);
    case 'object': {
      const members = Object.entries(schema.properties).flatMap(([name, it]) => {
        const text = textOf(it, root, draft[name], schema.required.includes(name), depth + 1);
        return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
      });
      return members.length || required ? `{${members.join(',')}}` : undefined;
    }
    case 'array': {
      const items = draft.map((it) => textOf(schema.items || {}, root, it, true, depth + 1)).map((it) => it ?? '""');
      return items.length || required ? `[${items.join(',')}]` : undefined;
    }
    case 'ways': return textOf(list[draft.way], root, draft.draft, required, depth + 1);
    default: return draft.trim() === '' ? undefined : draft.trim();
  }
}

const FORMATS = {
  date: [/^\d{4}-\d\d-\d\d$/, 'a date such as 2026-01-31'],
  'date-time': [/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/, 'a time such as 2026-01-31T12:00:00Z'],
  email: [/^[^@\s]+@[^@\s]+$/, 'an address of mail'],
  uri: [/^[a-zA-Z][\w+.-]*:/, 'an address such as scheme://host/path'],
  uuid: [/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i, 'a UUID'],
};

/** What a schema demands, in words. */
export function rules(schema) {
  const said = [];
  const range = (least, most, what) => {
    if (least !== undefined && most !== undefined) said.push(`${least} to ${most}${what}`);
    else if (least !== undefined) said.push(`at least ${least}${what}`);
    else if (most !== undefined) said.push(`at most ${most}${what}`);
  };
  range(schema.minimum, schema.maximum, '');
  range(schema.minLength, schema.maxLength, ' characters');
  range(schema.minItems, schema.maxItems, ' items');
  if (schema.exclusiveMinimum !== undefined) said.push(`more than ${schema.exclusiveMinimum}`);
  if (schema.exclusiveMaximum !== undefined) said.push(`less than ${schema.exclusiveMaximum}`);
  if (schema.multipleOf !== undefined) said.push(`a multiple of ${schema.multipleOf}`);
  if (schema.pattern) said.push(`matches ${schema.pattern}`);
  if (schema.format) said.push((FORMATS[schema.format] || [])[1] || schema.format);
  if (schema.uniqueItems) said.push('no two alike');
  return said;
}

function textFault(schema, text) {
  const length = [...text].length;
  if (length < (schema.minLength ?? 0)) return `at least ${schema.minLength} characters; these are ${length}`;
  if ((schema.maxLength ?? Infinity) < length) return `at most ${schema.maxLength} characters; these are ${length}`;
  const [form, about] = FORMATS[schema.format] || [];
  if (form && !form.test(text)) return `this is not ${about}`;
  if (!schema.pattern || 10_000 < text.length) return '';
  // Only what takes linear time is tried here; the gateway tries the rest.
  if (/[+*}]\)*[+*{]|\\[1-9]/.test(schema.pattern)) return '';
  try { return new RegExp(schema.pattern, 'u').test(text) ? '' : `this does not match ${schema.pattern}`; } catch { return ''; }
}

function numberFault(schema, kind, text) {
  if (!NUMBER.test(text)) return 'this is not a number';
  const value = Number(text);
  if (kind === 'integer' && !Number.isInteger(value)) return 'this is not a whole number';
  if (value < (schema.minimum ?? -Infinity)) return `at least ${schema.minimum}`;
  if ((schema.maximum ?? Infinity) < value) return `at most ${schema.maximum}`;
  if (value <= (schema.exclusiveMinimum ?? -Infinity)) return `more than ${schema.exclusiveMinimum}`;
  if ((schema.exclusiveMaximum ?? Infinity) <= value) return `less than ${schema.exclusiveMaximum}`;
  const times = value / schema.multipleOf;
  return schema.multipleOf && 1e-9 < Math.abs(times - Math.round(times)) ? `a multiple of ${schema.multipleOf}` : '';
}

/** What is wrong with a draft, by the path of the place. */
export function faultsOf(given, root, draft, required, path = 'args', found = {}, depth = 0) {
  const { kind, schema, list } = place(given, root, depth);
  const text = textOf(given, root, draft, required, depth);
  if (text === undefined) {
    if (required) found[path] = 'required';
    return found;
  }
  const note = (fault) => { if (fault) found[path] = fault; };
  switch (kind) {
    case 'string': note(textFault(schema, draft ?? '')); break;
    case 'integer': case 'number': note(numberFault(schema, kind, draft.trim())); break;
    case 'object':
      for (const [name, it] of Object.entries(schema.properties)) {
        faultsOf(it, root, draft[name], schema.required.includes(name), `${path}.${name}`, found, depth + 1);
      }
      break;
    case 'array':
      if (draft.length < (schema.minItems ?? 0)) note(`at least ${schema.minItems} items`);
      if ((schema.maxItems ?? Infinity) < draft.length) note(`at most ${schema.maxItems} items`);
      if (schema.uniqueItems && new Set(draft.map((it) => JSON.stringify(it))).size < draft.length) note('no two alike');
      draft.forEach((it, at) => faultsOf(schema.items || {}, root, it, true, `${path}.${at}`, found, depth + 1));
      break;
    case 'ways': faultsOf(list[draft.way], root, draft.draft, required, path, found, depth + 1); break;
    case 'json': try { JSON.parse(draft); } catch (error) { note(`not JSON: ${error.message}`); } break;
    default: break;
  }
  return found;
}
