// An MCP server whose client shows forms, and the person who answers them.
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { call, makeYard, startMcp, textOf } from './client.mjs';

// An answer that comes within 200 ms is no person's: the one wait that is meant as a time.
const READS_MS = 250;

/** The value, once a person has read. */
export const later = (value) => new Promise((resolve) => {
  setTimeout(() => resolve(value), READS_MS);
});

/** For startAsked: a person who decides so, whatever is asked. */
export const says = (decision) => () => later({ action: 'accept', content: { decision } });

/**
 * A server in a yard; `answer(params)` plays the person at the client, undefined: no form there.
 * As startMcp, and: yard; asked, the parameters of each form; tool(name, args, options), the structured
 * result with isError and text; run(command, args, options), that of shell_command.
 */
export async function startAsked(t, { answer, settings = {}, yard = makeYard(), env = {}, clientName } = {}) {
  const clientOptions = answer === undefined ? {} : { capabilities: { elicitation: {} } };
  const server = await startMcp({ cwd: yard.ws, env: { ...yard.env, ...env }, settings, clientOptions, clientName });
  let closed = null;
  const close = () => (closed ??= server.close());
  t.after(close);
  const asked = [];
  if (answer !== undefined) {
    server.client.setRequestHandler(ElicitRequestSchema, async (request) => {
      asked.push(request.params);
      return answer(request.params);
    });
  }
  const tool = async (name, args, options) => {
    const result = await call(server.client, name, args, options);
    return { ...result.structuredContent, isError: result.isError, text: textOf(result) };
  };
  const run = (command, args = {}, options = {}) => tool('shell_command', { command, ...args }, options);
  return { ...server, close, yard, asked, tool, run };
}
