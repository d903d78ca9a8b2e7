#ifndef SY_BASE_LIMITS_H
#define SY_BASE_LIMITS_H

/*
 * Every maximum of the program, each with its reason. Nothing that grows is
 * made without one of these. docs/limits.md lists them for users; lint checks
 * that the two agree.
 */

/* One JSON-RPC or JSON Lines message. A command line may be as long as the
 * kernel takes (ARG_MAX is 2 MiB by default), escaped at worst six-fold. */
#define LIMIT_RPC_FRAME 16777216U /* 16 MiB */

/* Nesting of a JSON document. Real requests nest four deep. */
#define LIMIT_JSON_DEPTH 64

/* A configuration file. A hand-written one is a few KiB; libyaml needs more
 * than a second for hostile ones beyond this. */
#define LIMIT_CONFIG_FILE 262144U /* 256 KiB */

/* Nesting of a configuration file. */
#define LIMIT_CONFIG_DEPTH 8

/* Items of one list or map of the configuration. People write a dozen; names
 * are compared one with another. */
#define LIMIT_CONFIG_ITEMS 1024U

/* A file of rules: as a configuration file. Rules of one kind, alternatives of one
 * word and positions of one rule, and examples of one rule. People write a few
 * dozen; each command is compared with all. */
#define LIMIT_RULES_FILE    262144U /* 256 KiB */
#define LIMIT_RULES         2048U
#define LIMIT_RULE_WORDS    256U
#define LIMIT_RULE_EXAMPLES 256U

/* Bytes kept of each output stream: half from the head, half from the tail
 * (UNIFIED_EXEC_OUTPUT_MAX_BYTES of the specification). */
#define LIMIT_STREAM_KEEP 1048576U /* 1 MiB */

/* One output delta, and how many of them a call may emit (specification). */
#define LIMIT_DELTA_BYTES     8192U
#define LIMIT_DELTAS_PER_CALL 10000U

/* Telemetry preview of a call's output (specification). */
#define LIMIT_PREVIEW_BYTES 2048U
#define LIMIT_PREVIEW_LINES 50U

/* Model text: 10,000 bytes over MCP, since clients cut larger results in the
 * middle; 10,000 tokens of 4 bytes elsewhere. */
#define LIMIT_MODEL_BYTES_MCP 10000U
#define LIMIT_MODEL_TOKENS    10000U
/* Less can't say how much is missing. */
#define LIMIT_MODEL_BYTES_LEAST 192U
#define LIMIT_BYTES_PER_TOKEN   4U

/* Command timeout: default (specification) and maximum (24 h), in milliseconds. */
#define LIMIT_TIMEOUT_DEFAULT_MS 10000
#define LIMIT_TIMEOUT_MAX_MS     86400000

/* Input that a command has not read yet, in one process: a pasted file of source text fits; more is
 * refused with the count of what fits. */
#define LIMIT_INPUT_PENDING 1048576U /* 1 MiB */

/* A line beyond that is cut by a terminal in canonical mode: termios(3), MAX_CANON with the
 * newline. */
#define LIMIT_TERMINAL_LINE 4095U

/* How long a background child that still holds a pipe may delay the answer
 * after the command itself has ended. */
#define LIMIT_LINGER_MS 500

/* How long the engine keeps a command's listener (connect(2) is asked about there) after the last
 * call: an idle session costs no descriptor for it then, and the next call one message more. */
#define LIMIT_LISTENER_REST_MS 200

/* How long what a terminal's ruleset grants stays open for the next one, and how many names of it
 * at most: with more the table of descriptors is what costs. */
#define LIMIT_GRANT_STOCK_MS 200
#define LIMIT_GRANT_STOCK    4096U

/* How long calls of an MCP client may go on after the end of its input: it
 * waits for our exit, two seconds if it is the official SDK. */
#define LIMIT_EOF_GRACE_MS 1000

/* The login shell of the environment snapshot. */
#define LIMIT_SNAPSHOT_MS    10000
#define LIMIT_SNAPSHOT_BYTES 1048576U /* 1 MiB */

/* Paths that are bound into one sandbox, as bytes of their list. */
#define LIMIT_MARKS 16777216U /* 16 MiB */

/* How long making a sandbox of the full tier may take: some milliseconds, more
 * where many things are mounted. */
#define LIMIT_LAUNCH_MS 10000

/* Arguments of one command, and variables of one environment. */
#define LIMIT_ARGV 65536U
#define LIMIT_ENV  8192U

/* One execve argument or environment string: MAX_ARG_STRLEN of the kernel
 * (32 pages, execve(2)). */
#define LIMIT_ARG_STRLEN 131072U /* 128 KiB */

/* A path, as the kernel has it (PATH_MAX). */
#define LIMIT_PATH 4096U

/* Writable roots of a policy. Each costs one Landlock rule per spawn set-up. */
#define LIMIT_ROOTS 256U

/* Patterns of what can't be read that a configuration names, and those of a
 * policy: ours for up to three homes besides. Each is compared with the names in
 * its directories. */
#define LIMIT_DENY_READ     256U
#define LIMIT_DENY_PATTERNS 2048U

/* Objects that patterns may find, and directories and names that may be looked at
 * for them: each set-up of a sandbox pays for them. */
#define LIMIT_DENY_OBJECTS 4096U
#define LIMIT_DENY_DIRS    4096U
#define LIMIT_DENY_NAMES   262144U

/* Names of a hidden directory that stay, so that their opening is told; and names so opened that
 * are kept while calls run. Beyond, it is told of the directory. */
#define LIMIT_HIDDEN_NAMES  64U
#define LIMIT_HIDDEN_OPENED 256U

/* How often symbolic links may lead patterns on to further places. */
#define LIMIT_DENY_ROUNDS 16U

/* Names that stay read-only inside writable roots. Ours are two dozen; each is
 * one more alternative of an expression, or one entry per root. */
#define LIMIT_PROTECTED 128U

/* A Seatbelt profile and its parameters. They go into an exec on macOS, whose
 * ARG_MAX is 1 MiB; the other half is for the command and its environment. */
#define LIMIT_SEATBELT_ARGS 524288U /* 512 KiB */

/* A session's name: any that a program makes (a UUID has 36). */
#define LIMIT_SESSION_ID 64U

/* Of its command, as it is shown. */
#define LIMIT_SESSION_COMMAND 1024U
#define LIMIT_SESSION_LISTED  100U /* of it, in the list that a model gets */

/* What became of sessions that are not known any more: one sentence each, 20 KiB in all. */
#define LIMIT_SESSION_MEMORIES 64U

/* A line that is typed to a session and judged before it is: what is longer is not typed where a
 * shell may read it. Shells take longer ones, people and models do not write them. */
#define LIMIT_TYPED_LINE 65536U
/* How long the processor may work at judging a command that is not whole, which is read again with
 * each line of it and each Ctrl-D, before it is judged line by line; and at one call's input. No
 * session's calls are answered meanwhile. */
#define LIMIT_TYPED_BLOCK_MS 500U
#define LIMIT_TYPED_MS       5000U
/* So long at once; then whoever else has something to do is served. */
#define LIMIT_TYPED_SLICE_MS 10U

/* Processes of a terminal, and threads of each, among which is looked for the one that reads it: 20
 * and 10 microseconds each, up to a thousand times a second while somebody waits for that. */
#define LIMIT_STATE_PROCESSES 128U
#define LIMIT_STATE_THREADS   256U

/* Sessions at once where nothing is configured (MAX_UNIFIED_EXEC_PROCESSES of the specification),
 * from how many running ones on a caller is warned (WARNING_UNIFIED_EXEC_PROCESSES), and the most
 * that can be configured: each has some descriptors. */
#define LIMIT_LIVE          64U
#define LIMIT_SESSIONS_WARN 4U /* below the most */
#define LIMIT_SESSIONS_MOST 10000

/* What is kept of a session's output, at most: all of them have a gigabyte then. */
#define LIMIT_SESSION_KEEP_MOST 16777216

/* How long a call may wait for a session, in milliseconds (the specification's yield, and Codex'
 * limits for the same). */
#define LIMIT_YIELD_DEFAULT_MS  10000
#define LIMIT_YIELD_WRITE_MS    250
#define LIMIT_YIELD_POLL_MS     5000
#define LIMIT_YIELD_MIN_MS      250
#define LIMIT_YIELD_MAX_MS      30000
#define LIMIT_YIELD_POLL_MAX_MS 300000
/* How long a screen is the same until it is stable: longer than a program takes between two parts
 * of one drawing, shorter than the shortest yield. */
#define LIMIT_STABLE_MS 150
/* How long a program writes nothing until it is idle: longer than most take between two lines of
 * the same answer. */
#define LIMIT_IDLE_MS 500

/* Sessions used last, which are not ended to make room (the specification's pruning). */
#define LIMIT_SESSIONS_PROTECTED 8U

/* The end of a command's output in which its last line is looked for, for progress. */
#define LIMIT_LAST_LINE 8192U

/* The log of a session as a resource of MCP: what clients show and models read without a cursor;
 * the rest is read by since_seq. */
#define LIMIT_RESOURCE_LOG 262144U /* 256 KiB */

/* Sessions on one page of resources/list. */
#define LIMIT_RESOURCE_PAGE 100U

/* Resources that one client has subscribed to. */
#define LIMIT_SUBSCRIPTIONS 256U

/* Bytes that wait for a client above which it is told of no change and no progress: the latest
 * state is told once it reads again. */
#define LIMIT_NOTICE_BACKLOG 262144U /* 256 KiB */

/* Calls in flight in one engine; more are refused with a clear error. */
#define LIMIT_CALLS 256U

/* Sessions below the first one of a connection, how deep they may lie, and the bytes of a session's
 * id and of its name. An agent has a handful of subagents, which seldom have some of their own;
 * each change of a turn goes through all that lie below. */
#define LIMIT_SESSIONS      64U
#define LIMIT_SESSION_DEPTH 8U
#define LIMIT_SESSION_NAME  64U
#define LIMIT_SESSION_TITLE 200U

/* Subscribers of one event bus: front ends and telemetry, a handful each. */
#define LIMIT_SUBSCRIBERS 256U

/* Bytes that wait for a peer that does not read. Far above any burst of a
 * working peer (the largest answer is 240 KiB), far below what hurts us. */
#define LIMIT_SEND_QUEUE 67108864U /* 64 MiB */

/* Above this backlog output deltas are dropped (and counted), so that a slow
 * reader costs itself and neither the command nor the memory. */
#define LIMIT_DELTA_BACKLOG 4194304U /* 4 MiB */

/* Time for the last answers to reach the peer once everything has ended. */
#define LIMIT_DRAIN_MS 2000U

/* A request id, call id, turn id or progress token. Real ones are 10-40 bytes. */
#define LIMIT_MESSAGE_ID 256U

/* What one verb of the command line prints at once: `exec --json` with three
 * texts of LIMIT_STREAM_KEEP, each byte escaped at most six-fold. */
#define LIMIT_CLI_TEXT 33554432U /* 32 MiB */

/* Output of one stream of `exec` that a slow reader has not taken yet. The
 * command is not read further meanwhile, so that this holds one step's worth
 * (4 MiB), a few of them when it is killed then, and what the pipes held. */
#define LIMIT_CLI_PENDING 33554432U /* 32 MiB */

/* A client's configuration file that `setup` edits. Claude Code keeps its
 * history in the same file, which grows to some MiB. */
#define LIMIT_CLIENT_FILE 67108864U /* 64 MiB */

/* Entries of `network.allow`. People write a dozen; each request compares all. */
#define LIMIT_PROXY_ALLOW 1024U

/* Head of one request to the network proxy, first TLS message, and buffer of
 * each direction that it relays. Browsers' largest heads have 16 KiB. */
#define LIMIT_PROXY_HEAD 32768U /* 32 KiB */

/* Connections that one proxy serves at a time, hence its memory and descriptors
 * (64 KiB and two each); more wait in the listening socket's queue. */
#define LIMIT_PROXY_CONNECTIONS 256U

/* Addresses of one name that are tried, in the resolver's order. */
#define LIMIT_PROXY_ADDRESSES 16U

/* The client's time for its request's head or first TLS message, and ours to
 * resolve and connect. Below what clients wait themselves (curl: 300 s). */
#define LIMIT_PROXY_HEAD_MS    30000U
#define LIMIT_PROXY_CONNECT_MS 30000U

/* How long one direction of a connection may be silent once the other has
 * ended. A client that was killed would keep its place for ever otherwise. */
#define LIMIT_PROXY_HALF_MS 120000U

/* How long a refused client may take to read why before the proxy hangs up. */
#define LIMIT_PROXY_LINGER_MS 1000U

/* What the guard of protected paths looks at: directories below the roots of one
 * policy (each costs a watch and about 200 bytes), how deep, and for how long at
 * once. A large monorepo has 50,000; beyond this the answer says so. Deeper than that no path of
 * 4096 bytes leads. */
#define LIMIT_GUARD_DIRS    65536U
#define LIMIT_GUARD_DEPTH   2048U
#define LIMIT_GUARD_WALK_MS 2000U

/* How deep the launcher's own walk for them goes, which holds a descriptor a level. */
#define LIMIT_PROTECT_DEPTH 96U

/* Names of one directory that are of interest at once. */
#define LIMIT_GUARD_NAMES 33554432U /* 32 MiB */

/* Protected files that are compared after each run, without mounts. */
#define LIMIT_GUARD_FILES 4096U

/* What is kept of a protected file, to put it back, and of all of them. A git
 * configuration has some KiB, an agent's folder some hundred. */
#define LIMIT_GUARD_COPY   262144U  /* 256 KiB */
#define LIMIT_GUARD_COPIES 4194304U /* 4 MiB */

/* Paths that git configurations name (core.hooksPath, include.path), and those that protected
 * links lead to. */
#define LIMIT_GUARD_EXTRAS 256U

/* A git configuration file that is read. Submodules make some hundred KiB. */
#define LIMIT_GIT_CONFIG 1048576U /* 1 MiB */

/* Placeholders of all engines of one user, engines that share one, and the file
 * that lists them. */
#define LIMIT_GUARD_PLACEHOLDERS 1024U
#define LIMIT_GUARD_OWNERS       64U
#define LIMIT_GUARD_JOURNAL      8388608U /* 8 MiB */

/* They stay for so long after a command: making two dozen of them takes longer than most
 * commands, and what an agent does next comes soon. */
#define LIMIT_PLACEHOLDER_LINGER_MS 3000U

/* A script whose commands are looked at before it runs. As an argument of a shell it has
 * LIMIT_ARG_STRLEN at most: a longer one is refused later. */
#define LIMIT_SCRIPT 1048576U /* 1 MiB */

/* Nesting of its parts. Real ones have some dozen levels. */
#define LIMIT_SCRIPT_DEPTH 512U

/* What the parser may use for one script: 40 bytes for each byte of a common one,
 * hundreds for one that is made to be hard. */
#define LIMIT_SCRIPT_MEMORY 67108864U /* 64 MiB */

/* And how long the processor may work at it: so long, and 1 ms more for each so many bytes. A
 * common script takes a fifth of that. */
#define LIMIT_SCRIPT_WORK_MS    100U
#define LIMIT_SCRIPT_WORK_BYTES 128U

/* Scripts in scripts (sh -c, eval, trap, xargs): how deep they are looked into. */
#define LIMIT_SCRIPT_LAYERS 8U

/* A patch: its bytes (a model's whole answer is far below), files (each holds up to two
 * descriptors, of the 1,024 that a process has by default), chunks and lines. */
#define LIMIT_PATCH        4194304U /* 4 MiB */
#define LIMIT_PATCH_FILES  256U
#define LIMIT_PATCH_CHUNKS 10000U
#define LIMIT_PATCH_LINES  1000000U

/* A file that a patch changes, its lines, and all files of one patch together. They are held
 * in memory, old and new. */
#define LIMIT_PATCH_FILE       33554432U /* 32 MiB */
#define LIMIT_PATCH_FILE_LINES 2000000U
#define LIMIT_PATCH_TOTAL      134217728U /* 128 MiB */

/* Places at which the chunks of one patch are looked for. A file of 10,000 lines with
 * 200 chunks that fit by the last means has some six million; this takes a second. */
#define LIMIT_PATCH_WORK 400000000U

/* Notes about one patch, and the text of its difference. */
#define LIMIT_PATCH_NOTES 20U
#define LIMIT_PATCH_DIFF  1048576U /* 1 MiB */

/* The store. How long a writer waits for others of the user: a commit on a disk under
 * load takes a second. Jobs that wait for the writer, and that it commits as one: more
 * than 64 gain little. */
#define LIMIT_STORE_BUSY_MS 5000U
#define LIMIT_STORE_QUEUE   256U
#define LIMIT_STORE_BATCH   64U
/* Requests that wait for a person, of all processes of one user; a person answers some in
 * a minute. Those that are over and kept to be looked at. */
#define LIMIT_STORE_PENDING 256U
#define LIMIT_STORE_ENDED   10000U
/* What a request shows: a script (ARG_MAX is 2 MiB, people read less) with its facts. Its
 * shorter texts: session, principal, reason. */
#define LIMIT_STORE_TEXT 262144U /* 256 KiB */
#define LIMIT_STORE_NAME 4096U
/* Grants of one session, and keys of one grant: a patch has one for each file. */
#define LIMIT_STORE_GRANTS 4096U
#define LIMIT_STORE_KEYS   1024U
/* Hooks of one event; what one is told (a patch, escaped) and may print; how long it may take. */
#define LIMIT_HOOKS        8U
#define LIMIT_HOOK_INPUT   67108864U /* 64 MiB */
#define LIMIT_HOOK_OUTPUT  65536U
#define LIMIT_HOOK_MS      5000
#define LIMIT_HOOK_MS_MOST 60000
/* The longest that a request for approval may wait. */
#define LIMIT_APPROVAL_MS 86400000 /* 24 h */
/* What was approved for a session ends with it, and at the latest then. */
#define LIMIT_GRANT_MS 86400000U /* 24 h */
/* Rules that answers made. */
#define LIMIT_STORE_RULES 4096U
/* Requests of one session that were told and that nobody has decided: as many calls may be under
 * way, and more than a person answers. */
#define LIMIT_ASKED 256U

/* Counters (docs/metrics.md). What can be a label is short, and the longest name of ours has half
 * of it. Counts are stored this often at most: what a crash loses. How long a store that
 * others use may hold up the end of a server, and how long the last export may. */
#define LIMIT_METRIC_LABEL    32U
#define LIMIT_METRICS_KEEP_MS 5000U
#define LIMIT_METRICS_BUSY_MS 500U
#define LIMIT_METRICS_ROWS    8192U
/* An export by OTLP: how long it may take, and the last one, since clients kill a server that does
 * not end within some 2 s; its answer's size. */
#define LIMIT_EXPORT_MS     10000U
#define LIMIT_EXPORT_END_MS 1000U
#define LIMIT_EXPORT_ANSWER 65536U

/* One HTTP exchange as a client: headers that a request may have, its body and the body of the
 * answer (metrics of a busy day have some hundred KiB), and the head of the answer. */
#define LIMIT_HTTP_HEADERS 64U
#define LIMIT_HTTP_BODY    4194304U /* 4 MiB */
#define LIMIT_HTTP_ANSWER  4194304U /* 4 MiB */
#define LIMIT_HTTP_HEAD    65536U   /* 64 KiB */

/* A model's comment on a request for approval: time for it, size of the answer, the key, and
 * how many are asked for at a time. A form waits for it, so it must not take long. */
#define LIMIT_COMMENT_MS     5000U
#define LIMIT_COMMENT_ANSWER 65536U /* 64 KiB */
#define LIMIT_COMMENT_KEY    4096U
#define LIMIT_COMMENTS       8U

/* A terminal: its size (the largest screens have some 200 rows of 700 characters; erasing all is
 * one short sequence, and has to be quick), and what its emulator may allocate (40 bytes a cell,
 * two screens, and as much again while it is resized). */
#define LIMIT_TERMINAL_ROWS 300U
#define LIMIT_TERMINAL_COLS 1000U
/* Where no size is asked for: that of a VT100. */
#define LIMIT_TERMINAL_ROWS_DEFAULT 24U
#define LIMIT_TERMINAL_COLS_DEFAULT 80U
#define LIMIT_TERMINAL_MEMORY       67108864U /* 64 MiB */
/* Bytes of a program that wait until somebody looks at the screen: at least the first, at most
 * the second, four characters a cell between. */
#define LIMIT_TERMINAL_LOG      8192U
#define LIMIT_TERMINAL_LOG_MOST 262144U /* 256 KiB */
/* A control string that is read (titles, marks, queries), and how far the end of a longer
 * one is looked for. Pictures and clipboards are longer, and are not kept: of one that has no
 * end, texts say how long it was. */
#define LIMIT_TERMINAL_STRING 4096U
#define LIMIT_TERMINAL_SKIP   16777216U /* 16 MiB */
/* Answers to queries that the program has not read yet. */
#define LIMIT_TERMINAL_REPLIES 4096U
#define LIMIT_TERMINAL_TITLE   256U
/* A screen that is painted for another terminal: behind this the rest comes with the next
 * piece, and a row of the widest terminal fits behind it, each cell in two colours of its own. */
#define LIMIT_PAINT      65536U
#define LIMIT_PAINT_MOST 262144U /* 256 KiB */
/* Parts of a screen that stand out and are told by their text. A menu has one or two. */
#define LIMIT_TERMINAL_RUNS 64U

/* A regular expression over output: its text, groups in groups, steps and heap for one search (a
 * million steps take some 2 ms), and how long a match may be. */
#define LIMIT_PATTERN        4096U
#define LIMIT_PATTERN_DEPTH  64U
#define LIMIT_PATTERN_STEPS  1000000U
#define LIMIT_PATTERN_HEAP   8388608U /* 8 MiB */
#define LIMIT_PATTERN_WINDOW 65536U   /* 64 KiB */
#define LIMIT_PATTERN_BEFORE 4096U    /* of the line that an earlier answer gave the beginning of */

/* Findings of one run that are told; more are counted. */
#define LIMIT_GUARD_FINDINGS 64U

/* A person who has joined a session: the most of one frame (a paste comes in some), and how often
 * the screen is painted at most: as often as eyes see, and as screens are refreshed. A
 * program that says its screen is not whole yet (synchronised output) is waited for that long. */
#define LIMIT_ATTACH_FRAME    65536U
#define LIMIT_ATTACH_PAINT_MS 8U
#define LIMIT_ATTACH_WHOLE_MS 100U
/* What may wait for a terminal that takes nothing: one piece of the screen with its frames, notes
 * and the last word. What is on the screen meanwhile does not wait, it is looked at later. */
#define LIMIT_ATTACH_QUEUE 524288U /* 512 KiB */

/* The daemon. Clients at a time, each with an engine of its own; agents of one person are some
 * dozen. A client's first words: environment and arguments, of which the kernel takes 2 MiB by
 * default and people have some KiB. Arguments among them. Time for them, and for the answer. */
#define LIMIT_DAEMON_CLIENTS 64U
/* Descriptors that it allows itself, where its hard limit does: a client at work has some thirty.
 */
#define LIMIT_DAEMON_FILES  65536U
#define LIMIT_HELLO         1048576U /* 1 MiB */
#define LIMIT_HELLO_ARGS    1024U
#define LIMIT_HELLO_MS      5000U
#define LIMIT_HELLO_WAIT_MS 10000U
/* Its log, when it runs in the background: emptied beyond that. Its answer to a verb that asks. */
#define LIMIT_DAEMON_LOG    1048576U /* 1 MiB */
#define LIMIT_DAEMON_ANSWER 4194304U /* 4 MiB */
/* How long the daemon waits for its hosts to say what they have, in milliseconds: longer than a
 * busy machine needs, shorter than a person's patience. How long after a client it makes a spare
 * host: not while that one starts. How long sessions are known that have ended without their
 * client: one hour. */
#define LIMIT_HOSTS_ASKED_MS 3000U
#define LIMIT_SPARE_HOST_MS  100U
#define LIMIT_KEPT_MS        3600000U

#endif
