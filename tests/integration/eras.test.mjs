// MCP's two eras: a client that knows no `initialize` is refused with what it needs to know, one that knows
// both falls back, by the official SDK of the new era and by hand.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { makeYard, program } from './lib/client.mjs';
import { openProto } from './lib/proto.mjs';

const limit = { timeout: 60_000 };
const SERVED = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const MODERN = '2026-07-28';

/** The SDK of the new era with its way to find out what the server speaks; not yet connected. */
function openSdk(t, mode) {
  const yard = makeYard();
  const transport = new StdioClientTransport({ command: program, args: ['mcp', '-c', 'shell.path=/bin/bash'], cwd: yard.ws, env: yard.env });
  const client = new Client({ name: 'shellyard-tests', version: '1' }, { versionNegotiation: { mode } });
  t.after(() => client.close());
  return { client, connect: () => client.connect(transport) };
}

test('a client of both eras finds out that this server initializes, and works', limit, async (t) => {
  const { client, connect } = openSdk(t, 'auto');
  await connect();
  assert.equal(client.getNegotiatedProtocolVersion(), '2025-11-25');
  const { tools } = await client.listTools();
  assert.ok(tools.some((tool) => tool.name === 'shell_command'));
  const result = await client.callTool({ name: 'shell_command', arguments: { command: 'echo both' } });
  assert.equal(result.structuredContent.output, 'both\n');
});

test('a client of the stateless era alone does not connect', limit, async (t) => {
  const { connect } = openSdk(t, { pin: MODERN });
  await assert.rejects(connect(), /2026-07-28/);
});

test('a stateless request is refused with the versions that are served; initialize then works in the same process', limit, async (t) => {
  const peer = openProto(t, makeYard(), {}, 'mcp');
  let id = 0;
  const ask = (method, params = {}) => {
    id += 1;
    const mine = id;
    peer.send({ jsonrpc: '2.0', id: mine, method, params });
    return peer.next((message) => message.id === mine);
  };
  const meta = { _meta: { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} } };
  const touch = { name: 'shell_command', arguments: { command: 'echo ran > ran' } };
  const refused = async () => {
    for (const [method, params] of [['tools/list', {}], ['tools/call', touch], ['subscriptions/listen', { notifications: {} }]]) {
      const { error } = await ask(method, { ...params, ...meta });
      assert.equal(error.code, -32022, method);
      assert.deepEqual(error.data, { supported: SERVED, requested: MODERN });
    }
  };
  const probe = await ask('server/discover', meta);
  assert.equal(probe.error.code, -32601);
  assert.deepEqual(probe.error.data.supported, SERVED);
  await refused();
  const begun = await ask('initialize', { protocolVersion: MODERN, capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  assert.equal(begun.result.protocolVersion, '2025-11-25');
  await refused();
  const { result } = await ask('tools/call', { name: 'shell_command', arguments: { command: 'ls' } });
  assert.equal(result.structuredContent.output, '', 'what was refused has not run');
});
