// All tests of resources.test.mjs once more, each through a daemon.
process.env.TESTS_DAEMON = '1';
await import('./resources.test.mjs');
