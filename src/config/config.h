#ifndef SY_CONFIG_CONFIG_H
#define SY_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Configuration: /etc/shellyard/config.yaml < ~/.config/shellyard/config.yaml
 * < SHELLYARD_* < flags (-c key=value), made once into this struct and then
 * only read. Choices are kept as their (validated) words: the rooms that own
 * the types parse them. A file inside the workspace is never read.
 */
struct config {
    struct {
        const char *mode; /* read-only | workspace-write | danger-full-access | external-sandbox */
        struct strv writable_roots; /* absolute, "~" expanded */
        bool linked_worktrees;      /* their repositories are roots too (sandbox/linux/linked.h) */
        struct strv deny_read;      /* patterns (base/path_pattern.h), "~" expanded */
        bool default_deny_read;
        struct strv allow_read; /* paths taken out of the default patterns */
        bool network_access;
        bool exclude_tmpdir_env_var;
        bool exclude_slash_tmp;
        bool required;                 /* false lifts "fail closed"; never a tool argument */
        const char *tier;              /* full | auto | no-namespace */
        const char *min_tier;          /* full | no-namespace */
        const char *run_as;            /* owner | self */
        const char *report;            /* default | full */
        bool read_audit;               /* Landlock's refusals, from the kernel's audit log */
        bool protect;                  /* names that others run programs from stay as they are */
        struct strv unprotected_names; /* those of them that don't */
    } sandbox;
    struct {
        struct strv allow; /* hosts in reach while sandbox.network_access is false */
    } network;
    struct {
        const char *policy;     /* never | unless-trusted | on-failure | on-request | granular */
        const char *on_request; /* default | all */
        bool retry_on_request;  /* ask about what the sandbox refused, as on-failure does */
        bool granular_sandbox_approval; /* what granular lets a person be asked about */
        bool granular_rules;
        int64_t hold_ms;    /* how long a call waits for a person */
        int64_t expires_ms; /* how long a request can be answered */
    } approval;
    struct {
        const char *url; /* of a model that comments on requests for approval; "" = none does */
        const char *model;
        const char *style;    /* anthropic | openai */
        const char *key_file; /* "" = no key is sent */
    } assessment;
    struct {
        struct strv pre_exec;           /* programs, absolute */
        struct strv permission_request; /* as well */
        int64_t timeout_ms;             /* of each */
    } hooks;
    struct {
        const char *path; /* "" = detect */
        bool login;       /* default of a call's `login` */
        bool snapshot;    /* login shell once per engine */
        int64_t snapshot_timeout_ms;
    } shell;
    struct {
        const char *inherit; /* core | all | none */
        bool default_excludes;
        struct strv exclude;
        struct strv set; /* "NAME=value" */
        struct strv include_only;
    } environment;
    struct {
        const char *shell_type; /* default | shell_command | unified_exec | all | disabled */
        int64_t timeout_ms;     /* default of a call's timeout_ms */
    } tools;
    struct {
        int64_t max;         /* kept at once */
        int64_t keep_bytes;  /* of what each writes */
        const char *outlive; /* never | terminals | all */
    } sessions;
    struct {
        int64_t max_bytes;  /* model text over MCP */
        int64_t max_tokens; /* model text elsewhere, and the most a call may ask for */
        int64_t keep_bytes; /* per stream */
    } output;
    struct {
        int64_t memory_bytes; /* 0: no limit, here and below */
        int64_t processes;
        int64_t open_files;
        int64_t file_bytes;
        int64_t cpu_seconds;
        int64_t output_bytes;
        int64_t temp_bytes; /* of all commands of a session together */
    } limits;               /* of what a command and all that it starts may use */
    struct {
        const char *level;  /* error | warn | info | debug | trace */
        const char *format; /* logfmt | json */
    } log;
    struct {
        bool metrics;              /* counts are kept in the state directory */
        const char *otlp_endpoint; /* "" = nothing is exported */
        const char *otlp_headers_file;
        const char *otlp_headers_env; /* the name of a variable */
        int64_t otlp_interval_ms;
    } telemetry;
    struct {
        const char *use;   /* auto | never */
        const char *start; /* auto | never */
    } daemon;
    struct config_impl *impl; /* where each value comes from; owns the words */
};

/* Where to look. Any member may be NULL. */
struct config_sources {
    const char *system_path;   /* default "/etc/shellyard/config.yaml" */
    const char *user_path;     /* default $XDG_CONFIG_HOME or ~/.config, shellyard/config.yaml */
    const char *workspace;     /* absolute; config files below it are refused */
    char *const *environ_list; /* the environment to read SHELLYARD_* and HOME from */
    const char *home;          /* the home where HOME is no absolute path, as passwd(5) has it */
    char *const *overrides;    /* NULL-terminated "key=value" */
    const char *mode;          /* of -s: sandbox.mode, over the overrides; NULL: none */
};

#define CONFIG_SYSTEM_PATH "/etc/shellyard/config.yaml"

/* Is there a system or user file to read, or what may be one? */
bool config_has_files(char *const *environ_list);

/* A file of the user's beside user_path's default ("rules.yaml"), to be freed by the
 * caller; *ret stays NULL when there is no home. Reads environ_list and home alone. */
enum sy_code config_user_file(char **ret, const struct config_sources *sources, const char *name,
                              struct sy_error *err) SY_NODISCARD;
/* The home directory by environ_list and home, absolute; NULL when there is none. */
const char *config_user_home(const struct config_sources *sources);

/*
 * Loads and merges. Every error is SY_E_CONFIG and names file, line and column
 * (or the variable, or the flag) and the nearest right key or the right values.
 */
enum sy_code config_load(struct config *ret, const struct config_sources *sources,
                         struct sy_error *err) SY_NODISCARD;
void config_fini(struct config *c);

/* Does an administrator require the key ("sandbox.mode"), so that nobody may widen it? */
bool config_requires(const struct config *c, const char *key);

/* Effective values with their sources, as text for people or as JSON. */
enum sy_code config_show(const struct config *c, struct buf *out, bool as_json) SY_NODISCARD;

/* Appends where a key's value comes from: "FILE:LINE", a variable's name, "-c KEY", "default". */
enum sy_code config_where(struct buf *ret, const struct config *c, const char *key) SY_NODISCARD;

/* One key of the table, for docs and lint. */
struct config_key_info {
    const char *key;      /* "sandbox.mode" */
    const char *type;     /* "choice", "boolean", "integer", "string", "list", "map" */
    const char *choices;  /* "a|b|c" or "" */
    const char *fallback; /* the default, as text */
    const char *help;     /* one line */
};
/* NULL past the last. */
const struct config_key_info *config_key(size_t i);

#endif
