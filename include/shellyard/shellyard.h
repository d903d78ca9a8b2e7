#ifndef SHELLYARD_SHELLYARD_H
#define SHELLYARD_SHELLYARD_H

#include <stddef.h>
#include <stdint.h>

/*
 * libshellyard: run commands under a Shellyard policy from a program in C or C++.
 *
 *     struct sy_engine *engine = NULL;
 *     struct sy_result *result = NULL;
 *     char why[SY_WHY_MAX];
 *     const char *argv[] = {"make", "-j2", NULL};
 *     struct sy_command command = {.size = sizeof(command), .argv = argv};
 *
 *     if (sy_engine_new(&engine, &options, why, sizeof(why)) == SY_OK &&
 *         sy_run(engine, &command, &result, why, sizeof(why)) == SY_OK) {
 *         printf("exit code %d\n", sy_result_exit_code(result));
 *     }
 *
 * An engine is used by one thread at a time; different engines are
 * independent. Nothing here installs signal handlers or reaps children that
 * are not its own (commands are waited for with __WALL and send no SIGCHLD).
 * Functions that can fail return SY_OK or another sy_status and write one
 * sentence into `why` (cut to why_size; may be NULL with size 0).
 *
 * NULL where an engine, options, a command or a place for what is returned must be is
 * SY_ERR_ARGUMENT. Of a result that is NULL the functions below give SY_FAILED, exit code 125, no
 * text and none of anything else; what frees takes NULL. So a program that forgot to look at the
 * status goes on, and finds no success.
 *
 * Option structs begin with `size`: set it to sizeof and leave the rest zero,
 * so that a library with more members knows which you have.
 */

#if defined(__GNUC__)
#    define SY_API __attribute__((visibility("default")))
#else
#    define SY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SY_WHY_MAX 240

/* What a function returned. The numbers never change. */
enum sy_status {
    SY_OK = 0,
    SY_ERR_ARGUMENT = 1, /* a member of an option struct is wrong */
    SY_ERR_CONFIG = 2,   /* configuration file, environment or override */
    SY_ERR_SANDBOX = 3,  /* the kernel can't hold the policy; nothing ran */
    SY_ERR_MEMORY = 4,
    SY_ERR_SYSTEM = 5
};

/* How a command ended. */
enum sy_outcome {
    SY_EXITED = 0,
    SY_SIGNALED = 1,  /* exit code 128 + signal */
    SY_TIMED_OUT = 2, /* exit code 124, with all output up to then */
    SY_CANCELLED = 3, /* exit code 130 */
    SY_DENIED = 4,    /* refused by policy before it ran; sy_result_error says why */
    SY_FAILED = 5     /* could not run: 126, 127 or 125; sy_result_error says why */
};

enum sy_stream { SY_STDOUT = 0, SY_STDERR = 1, SY_BOTH = 2 };

/* The version of the library, e.g. "0.1.0". */
SY_API const char *sy_version(void);

struct sy_engine;

struct sy_engine_options {
    size_t size;
    const char *workspace;           /* absolute; NULL: the current directory */
    const char *const *overrides;    /* "key=value" as of shellyard -c; NULL-terminated or NULL */
    const char *const *environ_list; /* NULL: the process's environment */
    /* Absolute path of shellyard-launch (libexec/shellyard): with it sandboxes are of the full
     * tier where that can be had. It is a child of this process, which ends with the engine and
     * sends SIGCHLD then. NULL: none, and the tier is no-namespace. */
    const char *launcher;
};

/*
 * Makes an engine: configuration is loaded (system file, user's file,
 * SHELLYARD_*, overrides) and stays as it is. Strings are copied. *ret is set
 * only on success; free it with sy_engine_free, which ends nothing but memory:
 * no run may be under way.
 */
SY_API enum sy_status sy_engine_new(struct sy_engine **ret, const struct sy_engine_options *options,
                                    char *why, size_t why_size);
SY_API void sy_engine_free(struct sy_engine *engine);

/*
 * A way to end a run from another thread or from a signal handler. Fired, it
 * stays fired: one token serves one run.
 */
struct sy_cancel;
SY_API struct sy_cancel *sy_cancel_new(void);         /* NULL: no memory or descriptor */
SY_API void sy_cancel_fire(struct sy_cancel *cancel); /* async-signal-safe */
SY_API void sy_cancel_free(struct sy_cancel *cancel);

/* Output as it comes: raw bytes, valid only during the call. Returns 0, or
 * anything else to end the command as cancelled. Like all functions that are called
 * back it must return: no C++ exception and no longjmp may leave it, since the frames between are
 * C, and the command and its descriptors would stay behind. */
typedef int sy_output_fn(void *arg, enum sy_stream stream, const char *bytes, size_t n);

struct sy_command {
    size_t size;
    const char *const *argv; /* program and arguments, NULL-terminated; or */
    const char *script;      /* a script for the user's shell (exactly one of the two) */
    const char *cwd;         /* relative to the workspace or absolute; NULL: the workspace */
    const char *const *env;  /* "NAME=value" to add; NULL-terminated or NULL */
    int64_t timeout_ms;      /* 1 to 86400000; 0: none */
    int login;               /* script: with the login environment */
    sy_output_fn *on_output; /* may be NULL */
    void *arg;
    struct sy_cancel *cancel; /* may be NULL */
};

struct sy_result;

/*
 * Runs the command to its end (blocking). SY_OK means that there is a result,
 * however the command ended; anything else that nothing ran. Standard input is
 * empty; every descendant is ended with the command.
 */
SY_API enum sy_status sy_run(struct sy_engine *engine, const struct sy_command *command,
                             struct sy_result **ret, char *why, size_t why_size);
SY_API void sy_result_free(struct sy_result *result);

SY_API enum sy_outcome sy_result_outcome(const struct sy_result *result);
SY_API int sy_result_exit_code(const struct sy_result *result);
SY_API int sy_result_signal(const struct sy_result *result); /* 0: none */
SY_API uint64_t sy_result_duration_ms(const struct sy_result *result);
/* Bytes the command wrote to a stream, kept or not; 0 for a stream that there is not. */
SY_API uint64_t sy_result_total_bytes(const struct sy_result *result, enum sy_stream stream);
/*
 * What was kept of a stream (head and tail, 1 MiB each by default) as valid
 * UTF-8 with a marker where bytes were omitted; NUL-terminated, `*ret_size`
 * (may be NULL) without the NUL. Valid until the result is freed; NULL when
 * memory is out, and for a stream that there is not.
 */
SY_API const char *sy_result_text(struct sy_result *result, enum sy_stream stream,
                                  size_t *ret_size);
/* Why it was denied or failed, or ""; and what else is worth knowing, or "". */
SY_API const char *sy_result_error(const struct sy_result *result);
SY_API const char *sy_result_note(const struct sy_result *result);
/* Something that the sandbox refused to the command. */
struct sy_denial {
    size_t size;
    const char *operation; /* "read", "write", "connect", ... */
    const char *object;    /* a path, "host:port", "unix:PATH", ... */
    const char *layer;     /* who refused it: "landlock", "broker", ... */
    int is_exact;          /* else inferred: the command failed, named the object, and the policy
                              would refuse it */
    uint32_t count;        /* how often */
    const char *rule;      /* which rule says so, or "" */
    const char *fix;       /* the configuration line that would allow it, or "": none would */
};
/* How many different ones there are (64 are kept), and the one at `index`: 1, or 0 if there is
 * none. Set ret->size. The texts live as long as the result. */
SY_API size_t sy_result_denials(const struct sy_result *result);
SY_API int sy_result_denial(const struct sy_result *result, size_t index, struct sy_denial *ret);
/* How strong the sandbox was that it ran in: "full", "no-namespace" or "none". */
SY_API const char *sy_result_tier(const struct sy_result *result);
/* Why it was not "full", though the policy would take that: one sentence, also where no launcher
 * was named; or "". Lives as long as the result. */
SY_API const char *sy_result_tier_reason(const struct sy_result *result);
/* One of the things that a sandbox is made of. */
struct sy_feature {
    size_t size;
    const char *name;  /* "fs_write", "network", "pid_namespace", ...: see docs/sandbox.md */
    const char *text;  /* what it holds, for people */
    const char *state; /* "enforced", "emulated" (by something weaker) or "absent" */
};
/* How many a result has (0: tier "none"), and the one at `index`: 1, or 0 if there is none. Set
 * ret->size. The texts live for ever. */
SY_API size_t sy_result_features(const struct sy_result *result);
SY_API int sy_result_feature(const struct sy_result *result, size_t index, struct sy_feature *ret);

#ifdef __cplusplus
}
#endif

#endif
