#ifndef SY_BASE_LIMITS_H
#define SY_BASE_LIMITS_H

/*
 * Every maximum of the program, each with its reason. Nothing that grows is
 * made without one of these. docs/limits.md lists them for users; lint checks
 * that the two agree.
 */

/* One JSON-RPC or JSON Lines message. A command line may be as long as the
 * kernel takes (ARG_MAX is 2 MiB by default), escaped at worst six-fold. */
#define LIMIT_RPC_FRAME (16U * 1024 * 1024)

/* Nesting of a JSON document. Real requests nest four deep. */
#define LIMIT_JSON_DEPTH 64

/* A configuration file. A hand-written one is a few KiB; libyaml needs more
 * than a second for hostile ones beyond this. */
#define LIMIT_CONFIG_FILE (256U * 1024)

/* Nesting of a configuration file. */
#define LIMIT_CONFIG_DEPTH 8

/* Bytes kept of each output stream: half from the head, half from the tail
 * (UNIFIED_EXEC_OUTPUT_MAX_BYTES of the specification). */
#define LIMIT_STREAM_KEEP (1024U * 1024)

/* One output delta, and how many of them a call may emit (seed 000). */
#define LIMIT_DELTA_BYTES     8192U
#define LIMIT_DELTAS_PER_CALL 10000U

/* Telemetry preview of a call's output (seed 000). */
#define LIMIT_PREVIEW_BYTES 2048U
#define LIMIT_PREVIEW_LINES 50U

/* Model text: 10,000 bytes over MCP, since clients cut larger results in the
 * middle; 10,000 tokens of 4 bytes elsewhere (design section 2). */
#define LIMIT_MODEL_BYTES_MCP 10000U
#define LIMIT_MODEL_TOKENS    10000U
#define LIMIT_BYTES_PER_TOKEN 4U

/* Command timeout: default (seed 000) and maximum (24 h), in milliseconds. */
#define LIMIT_TIMEOUT_DEFAULT_MS 10000
#define LIMIT_TIMEOUT_MAX_MS     86400000

/* How long a background child that still holds a pipe may delay the answer
 * after the command itself has ended. */
#define LIMIT_LINGER_MS 500

/* The login shell of the environment snapshot. */
#define LIMIT_SNAPSHOT_MS    10000
#define LIMIT_SNAPSHOT_BYTES (1024U * 1024)

/* Arguments of one command, and variables of one environment. */
#define LIMIT_ARGV 65536U
#define LIMIT_ENV  8192U

/* One execve argument or environment string: MAX_ARG_STRLEN of the kernel
 * (32 pages, execve(2)). */
#define LIMIT_ARG_STRLEN (128U * 1024)

/* A path, as the kernel has it (PATH_MAX). */
#define LIMIT_PATH 4096U

/* Writable roots of a policy. Each costs one Landlock rule per spawn set-up. */
#define LIMIT_ROOTS 256U

/* Calls in flight in one engine; more are refused with a clear error. */
#define LIMIT_CALLS 256U

#endif
