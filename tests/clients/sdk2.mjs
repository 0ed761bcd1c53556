// Drives a gateway with the official TypeScript client, version 2: sdk2.mjs [--direct] MODE TARGET...
//
// MODE is "auto", "legacy", "modern", "sse" or "stdio" (the client's own choice of era, which is legacy).
// TARGET is a URL or a command with its arguments. With --direct the target is asker.py itself.
// Prints one JSON object: what it saw.

import { answers, capabilities, drive, log, mode, need, target } from './steps.mjs';

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = need('@modelcontextprotocol/client');
const { StdioClientTransport } = need('@modelcontextprotocol/client/stdio');

function transport() {
  if (mode === 'sse') return new SSEClientTransport(new URL(target[0]));
  if (target[0].startsWith('http')) return new StreamableHTTPClientTransport(new URL(target[0]));
  return new StdioClientTransport({ command: target[0], args: target.slice(1) });
}

const era = { auto: 'auto', modern: { pin: '2026-07-28' } }[mode] ?? 'legacy';
const client = new Client({ name: 'sdk2', version: '1' }, { capabilities, versionNegotiation: { mode: era } });
client.setRequestHandler('elicitation/create', answers.elicit);
client.setRequestHandler('sampling/createMessage', answers.sample);
client.setRequestHandler('roots/list', answers.roots);
client.setNotificationHandler('notifications/message', log);
// In the modern era every request says for itself which log messages it wants.
const meta = era === 'legacy' ? {} : { _meta: { 'io.modelcontextprotocol/logLevel': 'info' } };
const call = (name, args, options) => client.callTool({ name, arguments: args, ...meta }, options);
await drive('sdk2', client, transport(), call, era === 'legacy');
