// All tests of proto.test.mjs once more, each through a daemon.
process.env.TESTS_DAEMON = '1';
await import('./proto.test.mjs');
