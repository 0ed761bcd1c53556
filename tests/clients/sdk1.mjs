// Drives a gateway with the official TypeScript client, version 1: sdk1.mjs [--direct] MODE TARGET...
//
// MODE is "legacy", "sse" or "stdio"; version 1 knows no other era. TARGET is a URL or a command with its
// arguments. With --direct the target is asker.py itself. Prints one JSON object: what it saw.

import { answers, capabilities, drive, log, mode, need, target } from './steps.mjs';

const sdk = path => need(`@modelcontextprotocol/sdk/${path}`);
const { Client } = sdk('client/index.js');
const { SSEClientTransport } = sdk('client/sse.js');
const { StdioClientTransport } = sdk('client/stdio.js');
const { StreamableHTTPClientTransport } = sdk('client/streamableHttp.js');
const types = sdk('types.js');

function transport() {
  if (mode === 'sse') return new SSEClientTransport(new URL(target[0]));
  if (target[0].startsWith('http')) return new StreamableHTTPClientTransport(new URL(target[0]));
  return new StdioClientTransport({ command: target[0], args: target.slice(1) });
}

const client = new Client({ name: 'sdk1', version: '1' }, { capabilities });
client.setRequestHandler(types.ElicitRequestSchema, answers.elicit);
client.setRequestHandler(types.CreateMessageRequestSchema, answers.sample);
client.setRequestHandler(types.ListRootsRequestSchema, answers.roots);
client.setNotificationHandler(types.LoggingMessageNotificationSchema, log);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
await drive('sdk1', client, transport(), call);
