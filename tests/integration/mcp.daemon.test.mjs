// All tests of mcp.test.mjs once more, each through a daemon.
process.env.TESTS_DAEMON = '1';
await import('./mcp.test.mjs');
