#include "config/config_internal.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"

/* The narrowest first: requirements.c ranks by position. */
static const char *const sandbox_modes[] = {"read-only", "workspace-write", "external-sandbox",
                                            "danger-full-access", NULL};
static const char *const reports[] = {"default", "full", NULL};
static const char *const tiers[] = {"full", "auto", "no-namespace", NULL};
static const char *const min_tiers[] = {"full", "no-namespace", NULL};
static const char *const identities[] = {"owner", "self", NULL};
static const char *const approval_policies[] = {"unless-trusted", "on-request", "on-failure",
                                                "granular",       "never",      NULL};
static const char *const on_requests[] = {"all", "default", NULL};
static const char *const assessment_styles[] = {"anthropic", "openai", NULL};
static const char *const inherits[] = {"none", "core", "all", NULL};
static const char *const shell_types[] = {"default", "shell_command", "unified_exec",
                                          "all",     "disabled",      NULL};
static const char *const log_levels[] = {"error", "warn", "info", "debug", "trace", NULL};
static const char *const log_formats[] = {"logfmt", "json", NULL};
static const char *const daemon_words[] = {"auto", "never", NULL};
static const char *const outlive_words[] = {"never", "terminals", "all", NULL};

#define OUTPUT_BYTES_MIN  1000
#define OUTPUT_BYTES_MAX  ((int64_t)LIMIT_MODEL_TOKENS * LIMIT_BYTES_PER_TOKEN)
#define OUTPUT_TOKENS_MIN 250
#define KEEP_BYTES_MIN    4096
#define SNAPSHOT_MS_MIN   100
#define SNAPSHOT_MS_MAX   60000
#define EXPORT_MS_MIN     1000
#define EXPORT_MS_MAX     86400000 /* a day */

/* Less memory does not even load a program, and one that runs out before its
 * first instruction shares its memory with us (docs/internals/process.md). */
#define LIMIT_MEMORY_FLOOR ((int64_t)16 * 1024 * 1024)
/* A page each for a few files: less would be no place at all. */
#define LIMIT_TEMP_FLOOR ((int64_t)64 * 1024)
/* A shell with a pipeline, and its descriptors besides 0, 1 and 2. */
#define LIMIT_PROCESSES_FLOOR  4
#define LIMIT_OPEN_FILES_FLOOR 16
#define LIMIT_BYTES_FLOOR      4096
#define LIMIT_BYTES_MOST       ((int64_t)1 << 50) /* 1 PiB: more is a slip of the pen */
#define LIMIT_PROCESSES_MOST   4194304            /* PID_MAX_LIMIT of the kernel */
#define LIMIT_OPEN_FILES_MOST  1048576            /* fs.nr_open as it comes */
#define LIMIT_CPU_SECONDS_MOST 31536000           /* a year */

/* The defaults of the table are text. */
_Static_assert(LIMIT_SNAPSHOT_MS == 10000, "default of shell.snapshot_timeout_ms");
_Static_assert(LIMIT_HOOK_MS == 5000, "default of hooks.timeout_ms");
_Static_assert(LIMIT_TIMEOUT_DEFAULT_MS == 10000, "default of tools.timeout_ms");
_Static_assert(LIMIT_MODEL_BYTES_MCP == 10000, "default of output.max_bytes");
_Static_assert(LIMIT_MODEL_TOKENS == 10000, "default of output.max_tokens");
_Static_assert(LIMIT_STREAM_KEEP == 1048576, "default of output.keep_bytes, sessions.keep_bytes");
_Static_assert(LIMIT_LIVE == 64, "default of sessions.max");

#define AT(member) offsetof(struct config, member)

/* Keys of a section stand together, in the order in which they are shown. */
const struct config_row config_rows[CONFIG_KEYS] = {
    {.info = {"sandbox.mode", "choice",
              "read-only|workspace-write|external-sandbox|danger-full-access", "workspace-write",
              "What commands may touch"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_CHOICE,
     .words = sandbox_modes,
     .offset = AT(sandbox.mode)                                                                                                                                                                                                    },
    {.info = {"sandbox.writable_roots", "list", "", "[]",
              "Directories that workspace-write may write besides the workspace"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_ROOTS,
     .content = CONFIG_ROOT,
     .items_max = LIMIT_ROOTS,
     .offset = AT(sandbox.writable_roots)},
    {.info = {"sandbox.linked_worktrees", "boolean", "", "true",
              "In a linked worktree, whether the git directory of its repository is writable too"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_TRUE_IS_WIDE,
     .offset = AT(sandbox.linked_worktrees)                                                                                                },
    {.info = {"sandbox.deny_read", "list", "", "[]",
              "Patterns of files and directories that commands can't read, besides the defaults"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_SUPERSET,
     .content = CONFIG_PATH_PATTERN,
     .items_max = LIMIT_DENY_READ,
     .offset = AT(sandbox.deny_read)},
    {.info = {"sandbox.default_deny_read", "boolean", "", "true",
              "Whether keys, credentials, histories and browser profiles can't be read"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_FALSE_IS_WIDE,
     .offset = AT(sandbox.default_deny_read)                                                                                               },
    {.info = {"sandbox.allow_read", "list", "", "[]",
              "Paths that the defaults of deny_read leave out"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_FEWER,
     .content = CONFIG_ROOT,
     .items_max = LIMIT_DENY_READ,
     .offset = AT(sandbox.allow_read)},
    {.info = {"sandbox.network_access", "boolean", "", "false",
              "Whether commands may reach the network"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_TRUE_IS_WIDE,
     .offset = AT(sandbox.network_access)                                                                                                },
    {.info = {"sandbox.exclude_tmpdir_env_var", "boolean", "", "false",
              "true: the directory that $TMPDIR names is not writable"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_FALSE_IS_WIDE,
     .offset = AT(sandbox.exclude_tmpdir_env_var)                                                                                      },
    {.info = {"sandbox.exclude_slash_tmp", "boolean", "", "false", "true: /tmp is not writable"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_FALSE_IS_WIDE,
     .offset = AT(sandbox.exclude_slash_tmp)                                                                                         },
    {.info = {"sandbox.required", "boolean", "", "true",
              "false: run commands unsandboxed where the kernel lacks what the mode needs"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_FALSE_IS_WIDE,
     .offset = AT(sandbox.required)   },
    {.info = {"sandbox.report", "choice", "default|full", "default",
              "full: each write that is refused is reported, also one that the command hides"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = reports,
     .offset = AT(sandbox.report)                                                                                                                                                                                       },
    {.info = {"sandbox.read_audit", "boolean", "", "true",
              "Servers read from the kernel's audit log what was refused, where they may"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_EQUAL,
     .offset = AT(sandbox.read_audit)                                                                                                             },
    {.info = {"sandbox.tier", "choice", "full|auto|no-namespace", "auto",
              "How sandboxes are made: with namespaces, or with Landlock and seccomp alone"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_CHOICE,
     .words = tiers,
     .offset = AT(sandbox.tier)                                                                                                                                                                                                  },
    {.info = {"sandbox.min_tier", "choice", "full|no-namespace", "no-namespace",
              "Where this can't be had, commands are refused"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_CHOICE,
     .words = min_tiers,
     .offset = AT(sandbox.min_tier)                                                                                                                                                                                          },
    {.info = {"sandbox.run_as", "choice", "owner|self", "owner",
              "As root, run commands as the workspace's owner, or as root without rights"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_CHOICE,
     .words = identities,
     .offset = AT(sandbox.run_as)                                                                                          },
    {.info = {"sandbox.protect", "boolean", "", "true",
              "false: commands may change git hooks and configuration, editors' and agents' files"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_FALSE_IS_WIDE,
     .offset = AT(sandbox.protect)                                                                                                       },
    {.info = {"sandbox.unprotected_names", "list", "", "[]",
              "Protected names that commands may change all the same, such as .git/config"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_FEWER,
     .items_max = LIMIT_PROTECTED,
     .offset = AT(sandbox.unprotected_names)},
    {.info =
         {"network.allow", "list", "", "[]",
          "Hosts that commands may reach through the proxy while sandbox.network_access is false"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_FEWER,
     .content = CONFIG_HOST,
     .items_max = LIMIT_PROXY_ALLOW,
     .offset = AT(network.allow)},
    {.info = {"approval.policy", "choice", "unless-trusted|on-request|on-failure|granular|never",
              "on-request", "When a person is asked before a command runs"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_CHOICE,
     .words = approval_policies,
     .alias = {"untrusted", "unless-trusted"},
     .offset = AT(approval.policy)},
    {.info = {"approval.on_request", "choice", "all|default", "default",
              "all: under on-request a person is asked about safe commands too"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_CHOICE,
     .words = on_requests,
     .offset = AT(approval.on_request)                                                                                                                                                                                                  },
    {.info = {"approval.retry_on_request", "boolean", "", "false",
              "true: under on-request too, ask to run again outside what the sandbox refused"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_EQUAL,
     .offset = AT(approval.retry_on_request)                                                                                                            },
    {.info = {"approval.granular_sandbox_approval", "boolean", "", "false",
              "Under granular a person may be asked about commands that are dangerous"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_TRUE_IS_WIDE,
     .offset = AT(approval.granular_sandbox_approval)                                                                                                },
    {.info = {"approval.granular_rules", "boolean", "", "false",
              "Under granular a person may be asked about what a rule asks about"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_TRUE_IS_WIDE,
     .offset = AT(approval.granular_rules)                                                                                                                          },
    {.info = {"approval.hold_ms", "integer", "", "45000",
              "How long a call waits for a person whom the client asks"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_EQUAL,
     .min = 0,
     .max = LIMIT_APPROVAL_MS,
     .offset = AT(approval.hold_ms)},
    {.info = {"approval.expires_ms", "integer", "", "600000",
              "How long a request for approval can be answered"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = 1000,
     .max = LIMIT_APPROVAL_MS,
     .offset = AT(approval.expires_ms)},
    {.info = {"assessment.url", "string", "", "",
              "Where a model is asked for a comment on requests for approval; empty: nowhere"},
     .type = CONFIG_STRING,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_URL_OR_EMPTY,
     .offset = AT(assessment.url)                                                                                                                                                                                           },
    {.info = {"assessment.model", "string", "", "", "The model's name there"},
     .type = CONFIG_STRING,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_NAME_OR_EMPTY,
     .offset = AT(assessment.model)                                                                                                                                                                                                  },
    {.info = {"assessment.style", "choice", "anthropic|openai", "anthropic",
              "How it is asked: Messages, or Chat Completions"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = assessment_styles,
     .offset = AT(assessment.style)                                                                                                                                                                                                        },
    {.info = {"assessment.key_file", "string", "", "",
              "The file that holds the key for it, an absolute path; empty: no key is sent"},
     .type = CONFIG_STRING,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_PATH_OR_EMPTY,
     .offset = AT(assessment.key_file)                                                                                                                                                                                                  },
    {.info = {"hooks.pre_exec", "list", "", "[]",
              "Programs that are asked before each call runs; in files only"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_SUPERSET,
     .content = CONFIG_ROOT,
     .is_of_files = true,
     .items_max = LIMIT_HOOKS,
     .offset = AT(hooks.pre_exec)},
    {.info = {"hooks.permission_request", "list", "", "[]",
              "Programs that are asked before a person is; in files only"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_ROOT,
     .is_of_files = true,
     .items_max = LIMIT_HOOKS,
     .offset = AT(hooks.permission_request)},
    {.info = {"hooks.timeout_ms", "integer", "", "5000", "How long a hook may take; in files only"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .is_of_files = true,
     .min = 100,
     .max = LIMIT_HOOK_MS_MOST,
     .offset = AT(hooks.timeout_ms)},
    {.info = {"shell.path", "string", "", "",
              "The shell that runs command strings, an absolute path; empty: detect it"},
     .type = CONFIG_STRING,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_PATH_OR_EMPTY,
     .offset = AT(shell.path)                                                                                                                                                                                         },
    {.info = {"shell.login", "boolean", "", "true",
              "Whether a call that does not say runs in a login shell"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_EQUAL,
     .offset = AT(shell.login)                                                                                                            },
    {.info = {"shell.snapshot", "boolean", "", "true",
              "Run the login shell once and reuse its environment"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_EQUAL,
     .offset = AT(shell.snapshot)                                                                                                       },
    {.info = {"shell.snapshot_timeout_ms", "integer", "", "10000",
              "How long the login shell of the snapshot may take"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = SNAPSHOT_MS_MIN,
     .max = SNAPSHOT_MS_MAX,
     .offset = AT(shell.snapshot_timeout_ms)},
    {.info = {"environment.inherit", "choice", "none|core|all", "all",
              "Which variables commands get to begin with"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_CHOICE,
     .words = inherits,
     .offset = AT(environment.inherit)                                                                                                                                                                                                                   },
    {.info = {"environment.default_excludes", "boolean", "", "true",
              "Leave out variables whose names look like secrets"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_FALSE_IS_WIDE,
     .offset = AT(environment.default_excludes)                                                                                               },
    {.info = {"environment.exclude", "list", "", "[]",
              "Patterns of further variables to leave out"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_SUPERSET,
     .content = CONFIG_PATTERN,
     .items_max = LIMIT_CONFIG_ITEMS,
     .offset = AT(environment.exclude)},
    {.info = {"environment.set", "map", "", "{}", "Variables to set"},
     .type = CONFIG_MAP,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_VARIABLE,
     .items_max = LIMIT_CONFIG_ITEMS,
     .offset = AT(environment.set)},
    {.info = {"environment.include_only", "list", "", "[]",
              "If not empty: patterns of the only variables to keep"},
     .type = CONFIG_LIST,
     .order = CONFIG_ORDER_SUBSET,
     .content = CONFIG_PATTERN,
     .items_max = LIMIT_CONFIG_ITEMS,
     .offset = AT(environment.include_only)},
    {.info = {"tools.shell_type", "choice", "default|shell_command|unified_exec|all|disabled",
              "all", "Which shell tools are listed"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = shell_types,
     .offset = AT(tools.shell_type)                                                                                                                                                                                                   },
    {.info = {"tools.timeout_ms", "integer", "", "10000",
              "How long a command may run when the call does not say"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = 1,
     .max = LIMIT_TIMEOUT_MAX_MS,
     .offset = AT(tools.timeout_ms)},
    {.info = {"sessions.max", "integer", "", "64", "Sessions that are kept at once"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = LIMIT_SESSIONS_PROTECTED + 1,
     .max = LIMIT_SESSIONS_MOST,
     .offset = AT(sessions.max)},
    {.info = {"sessions.keep_bytes", "integer", "", "1048576",
              "Bytes of what a session writes that are kept"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = KEEP_BYTES_MIN,
     .max = LIMIT_SESSION_KEEP_MOST,
     .offset = AT(sessions.keep_bytes)},
    {.info = {"sessions.outlive", "choice", "never|terminals|all", "terminals",
              "Which sessions go on when their client has gone, where the daemon serves it"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = outlive_words,
     .offset = AT(sessions.outlive)                                                                                                                                                                                                                    },
    {.info = {"output.max_bytes", "integer", "", "10000", "Bytes of output in an answer over MCP"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = OUTPUT_BYTES_MIN,
     .max = OUTPUT_BYTES_MAX,
     .offset = AT(output.max_bytes)},
    {.info = {"output.max_tokens", "integer", "", "10000",
              "Tokens of output in an answer elsewhere, and the most a call may ask for"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = OUTPUT_TOKENS_MIN,
     .max = LIMIT_MODEL_TOKENS,
     .offset = AT(output.max_tokens)},
    {.info = {"output.keep_bytes", "integer", "", "1048576",
              "Bytes kept of each output stream, half from each end"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_NUMBER,
     .min = KEEP_BYTES_MIN,
     .max = (int64_t)LIMIT_STREAM_KEEP,
     .offset = AT(output.keep_bytes)},
    {.info = {"limits.memory_bytes", "integer", "", "0",
              "Memory of a command and all that it starts; 0: no limit"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_LIMIT,
     .max = LIMIT_BYTES_MOST,
     .floor = LIMIT_MEMORY_FLOOR,
     .has_units = true,
     .offset = AT(limits.memory_bytes)},
    {.info = {"limits.processes", "integer", "", "0",
              "Processes and threads of a command at a time; 0: no limit"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_LIMIT,
     .max = LIMIT_PROCESSES_MOST,
     .floor = LIMIT_PROCESSES_FLOOR,
     .offset = AT(limits.processes)},
    {.info = {"limits.open_files", "integer", "", "0",
              "Descriptors of each process of a command; 0: as Shellyard itself has it"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_LIMIT,
     .max = LIMIT_OPEN_FILES_MOST,
     .floor = LIMIT_OPEN_FILES_FLOOR,
     .offset = AT(limits.open_files)},
    {.info = {"limits.file_bytes", "integer", "", "0",
              "Size of each file that a command writes; 0: as Shellyard itself has it"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_LIMIT,
     .max = LIMIT_BYTES_MOST,
     .floor = LIMIT_BYTES_FLOOR,
     .has_units = true,
     .offset = AT(limits.file_bytes)},
    {.info = {"limits.cpu_seconds", "integer", "", "0",
              "CPU time of a command and all that it starts; 0: no limit"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_LIMIT,
     .max = LIMIT_CPU_SECONDS_MOST,
     .floor = 1,
     .offset = AT(limits.cpu_seconds)},
    {.info = {"limits.output_bytes", "integer", "", "0",
              "Output of a command, both streams together; 0: no limit"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_LIMIT,
     .max = LIMIT_BYTES_MOST,
     .floor = LIMIT_BYTES_FLOOR,
     .has_units = true,
     .offset = AT(limits.output_bytes)},
    {.info =
         {"limits.temp_bytes", "integer", "", "0",
          "Private temporary directories of a session, in the full tier; 0: half of the memory"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_LIMIT,
     .max = LIMIT_BYTES_MOST,
     .floor = LIMIT_TEMP_FLOOR,
     .has_units = true,
     .offset = AT(limits.temp_bytes)},
    {.info = {"log.level", "choice", "error|warn|info|debug|trace", "warn",
              "What is logged on standard error"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = log_levels,
     .offset = AT(log.level)                                                                                                                                                                                                        },
    {.info = {"log.format", "choice", "logfmt|json", "logfmt", "How a log line is written"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = log_formats,
     .offset = AT(log.format)                                                                                                              },
    {.info = {"telemetry.metrics", "boolean", "", "true",
              "Whether counts are kept in the state directory, for shellyard metrics"},
     .type = CONFIG_BOOLEAN,
     .order = CONFIG_ORDER_EQUAL,
     .offset = AT(telemetry.metrics)                                                                                                           },
    {.info = {"telemetry.otlp_endpoint", "string", "", "",
              "Where metrics are exported by OTLP/HTTP, without /v1/metrics; empty: nowhere"},
     .type = CONFIG_STRING,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_URL_OR_EMPTY,
     .offset = AT(telemetry.otlp_endpoint)                                                                                                                                                                                                  },
    {.info = {"telemetry.otlp_headers_file", "string", "", "",
              "A file of headers for exports, lines of Name: value; an absolute path"},
     .type = CONFIG_STRING,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_PATH_OR_EMPTY,
     .offset = AT(telemetry.otlp_headers_file)                                                                                                                                                                                             },
    {.info = {"telemetry.otlp_interval_ms", "integer", "", "60000",
              "Time from one export of metrics to the next"},
     .type = CONFIG_INTEGER,
     .order = CONFIG_ORDER_EQUAL,
     .min = EXPORT_MS_MIN,
     .max = EXPORT_MS_MAX,
     .offset = AT(telemetry.otlp_interval_ms)},
    {.info = {"telemetry.otlp_headers_env", "string", "", "",
              "The variable that has headers for exports, as name=value,name=value"},
     .type = CONFIG_STRING,
     .order = CONFIG_ORDER_EQUAL,
     .content = CONFIG_NAME_OR_EMPTY,
     .offset = AT(telemetry.otlp_headers_env)                                                                                                                                                                                                       },
    {.info = {"daemon.use", "choice", "auto|never", "auto",
              "Whether mcp and proto let the daemon work that is up"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = daemon_words,
     .offset = AT(daemon.use)                                                                                                                                                                                                      },
    {.info = {"daemon.start", "choice", "auto|never", "never",
              "Whether mcp and proto start the daemon where none is up"},
     .type = CONFIG_CHOICE,
     .order = CONFIG_ORDER_EQUAL,
     .words = daemon_words,
     .offset = AT(daemon.start)                                                                                                                                                                                                  },
};

static const char *const sections[] = {
    "sandbox",  "network", "approval", "assessment", "hooks",     "shell",  "environment", "tools",
    "sessions", "output",  "limits",   "log",        "telemetry", "daemon", "requirements"};
/* `requirements` is no section of keys. */
#define SECTIONS (sizeof(sections) / sizeof(sections[0]) - 1)

const struct config_key_info *
config_key(size_t i)
{
    return i < CONFIG_KEYS ? &config_rows[i].info : NULL;
}

const char *
config_short_name(const struct config_row *row)
{
    return strchr(row->info.key, '.') + 1;
}

static bool
is_text(const char *word, const char *text, size_t len)
{
    return strlen(word) == len && memcmp(word, text, len) == 0;
}

size_t
config_find_key(const char *key, size_t len)
{
    size_t i = 0;

    while (i < CONFIG_KEYS && !is_text(config_rows[i].info.key, key, len)) {
        i++;
    }
    return i;
}

static bool
is_in_section(const struct config_row *row, const char *section)
{
    size_t n = strlen(section);

    return strncmp(row->info.key, section, n) == 0 && row->info.key[n] == '.';
}

size_t
config_find_in_section(const char *section, const char *name, size_t len)
{
    size_t i = 0;

    while (i < CONFIG_KEYS && !(is_in_section(&config_rows[i], section) &&
                                is_text(config_short_name(&config_rows[i]), name, len))) {
        i++;
    }
    return i;
}

const char *
config_find_section(const char *name, size_t len)
{
    for (size_t i = 0; i < SECTIONS; i++) {
        if (is_text(sections[i], name, len)) {
            return sections[i];
        }
    }
    return NULL;
}

void
config_variable_name(char dst[CONFIG_VARIABLE_MAX], const struct config_row *row)
{
    static const char prefix[] = "SHELLYARD_";
    size_t n = sizeof(prefix) - 1;

    memcpy(dst, prefix, n);
    for (const char *s = row->info.key; *s != '\0' && n + 1 < CONFIG_VARIABLE_MAX; s++) {
        unsigned char c = (unsigned char)*s;

        if (c >= 'a' && c <= 'z') {
            c = (unsigned char)(c - 'a' + 'A');
        }
        if (c == '.') {
            c = '_';
        }
        dst[n++] = (char)c;
    }
    dst[n] = '\0';
}

/* The longest text that can still be near a name. */
#define NEAR_MAX 64

struct near_text {
    char text[NEAR_MAX + 1];
};

static const char *
terminated(struct near_text *copy, const char *got, size_t len)
{
    size_t n = len < NEAR_MAX ? len : NEAR_MAX;

    memcpy(copy->text, got, n);
    copy->text[n] = '\0';
    return copy->text;
}

const char *
config_nearest_key(const char *got, size_t len)
{
    const char *names[CONFIG_KEYS];
    struct near_text copy;

    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        names[i] = config_rows[i].info.key;
    }
    return str_nearest(terminated(&copy, got, len), names, CONFIG_KEYS);
}

const char *
config_nearest_section(const char *got, size_t len, bool with_requirements)
{
    struct near_text copy;

    return str_nearest(terminated(&copy, got, len), sections,
                       with_requirements ? SECTIONS + 1 : SECTIONS);
}

const char *
config_nearest_in_section(const char *section, const char *got, size_t len)
{
    const char *names[CONFIG_KEYS];
    size_t n = 0;
    struct near_text copy;

    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (is_in_section(&config_rows[i], section)) {
            names[n++] = config_short_name(&config_rows[i]);
        }
    }
    return str_nearest(terminated(&copy, got, len), names, n);
}

const char *
config_same_elsewhere(const char *got, size_t len)
{
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (is_text(config_short_name(&config_rows[i]), got, len)) {
            return config_rows[i].info.key;
        }
    }
    return NULL;
}
