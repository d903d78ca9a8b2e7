// All tests of sessions.test.mjs once more, each through a daemon.
process.env.TESTS_DAEMON = '1';
await import('./sessions.test.mjs');
