// All tests of shell_actions.test.mjs once more, each through a daemon.
process.env.TESTS_DAEMON = '1';
await import('./shell_actions.test.mjs');
