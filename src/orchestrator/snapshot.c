#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/orchestrator_internal.h"

/* Prints the environment; of the distribution's essential package everywhere. */
#define ENV_PROGRAM "/usr/bin/env"
#define MARKER_MAX  48
/* How our script ends: a shell that ran it to its end although nothing came had
 * its standard output sent elsewhere. */
#define SCRIPT_STATUS 117
/* Small against LIMIT_SNAPSHOT_BYTES, of which noise takes no more at a time. */
#define COLLECT_PIECE ((size_t)16 * 1024)

struct snapshot {
    enum snapshot_state state;
    uint64_t stamp; /* of the profile files, when it was taken */
    /* Where else those of the home directory may lie: as it was told to the shell, and as the shell
     * had it then (a profile may set it, for itself or for others too); NULL: nowhere. */
    char *told_dir;
    char *found_dir;
    char *newly_found; /* not in `stamp` yet */
    struct strv env;
    char reason[SY_ERR_MSG_MAX];
    /* While RUNNING. */
    struct process *process;
    struct output_chain *chain;
    struct buf
        text;       /* standard output: before the first marker its last bytes, then what follows */
    bool has_begun; /* the first marker came */
    bool tells_dir; /* after it stands newly_found */
    bool is_complete; /* and the second: `text` is what stood between */
    bool is_too_long;
    struct strv run_env;
    struct strv run_argv;
    char marker[MARKER_MAX];
    uint64_t give_up_ns;
    uint64_t timeout_ms;
    bool is_over_time;
};

struct snapshot *
snapshot_new(void)
{
    struct snapshot *s = mem_alloc_zero(1, sizeof(*s));

    if (s != NULL) {
        s->env.max = LIMIT_ENV;
    }
    return s;
}

static void
end_run(struct snapshot *s)
{
    process_free(s->process);
    s->process = NULL;
    output_free(s->chain);
    s->chain = NULL;
    buf_fini(&s->text);
    strv_fini(&s->run_env);
    strv_fini(&s->run_argv);
}

void
snapshot_free(struct snapshot *s)
{
    if (s == NULL) {
        return;
    }
    end_run(s);
    strv_fini(&s->env);
    mem_free_charp(&s->told_dir);
    mem_free_charp(&s->found_dir);
    mem_free_charp(&s->newly_found);
    mem_free(s);
}

/* FNV-1a over what changes when a file does. */
static void
mix(uint64_t *hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++) {
        *hash = (*hash ^ p[i]) * 1099511628211ULL;
    }
}

static void
mix_file(uint64_t *hash, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        mix(hash, "-", 1);
        return;
    }
    mix(hash, &st.st_ino, sizeof(st.st_ino));
    mix(hash, &st.st_dev, sizeof(st.st_dev));
    mix(hash, &st.st_size, sizeof(st.st_size));
    mix(hash, &st.st_mtim, sizeof(st.st_mtim));
    mix(hash, &st.st_ctim, sizeof(st.st_ctim));
}

/* The files of a profile directory, in whatever order it lists them. */
static void
mix_directory(uint64_t *hash, const char *path)
{
    DIR *dir = opendir(path);
    uint64_t sum = 0;

    mix_file(hash, path);
    if (dir == NULL) {
        return;
    }
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        char file[LIMIT_PATH];
        uint64_t one = 14695981039346656037ULL;

        if (e->d_name[0] != '.' && snprintf(file, sizeof(file), "%s%s", path, e->d_name) > 0) {
            mix_file(&one, file);
            sum += one;
        }
    }
    closedir(dir);
    mix(hash, &sum, sizeof(sum));
}

/* A row of shell_kind.profiles. */
static void
mix_profile(uint64_t *hash, const char *row, const char *home)
{
    char path[LIMIT_PATH];
    bool is_home = str_starts(row, "~/");

    if (snprintf(path, sizeof(path), "%s%s", is_home ? home : "", is_home ? row + 1 : row) >=
        (int)sizeof(path)) {
        return;
    }
    if (str_ends(path, "/")) {
        mix_directory(hash, path);
    } else {
        mix_file(hash, path);
    }
}

static uint64_t
profile_stamp(const struct snapshot *s, const struct shell *shell, const char *home)
{
    uint64_t hash = 14695981039346656037ULL;

    mix(&hash, shell->path, strlen(shell->path));
    mix(&hash, home, strlen(home));
    for (const char *const *f = shell->kind->profiles; f != NULL && *f != NULL; f++) {
        mix_profile(&hash, *f, home);
        if (str_starts(*f, "~/") && s->told_dir != NULL) {
            mix_profile(&hash, *f, s->told_dir);
        }
        if (str_starts(*f, "~/") && s->found_dir != NULL) {
            mix_profile(&hash, *f, s->found_dir);
        }
    }
    return hash;
}

/* A directory that a profile has named counts from now on, if nothing changed while that ran. */
static bool
is_stale(struct snapshot *s, const struct shell *shell, const char *home)
{
    if (s->stamp != profile_stamp(s, shell, home)) {
        return true;
    }
    if (s->newly_found != NULL) {
        mem_free(s->found_dir);
        s->found_dir = s->newly_found;
        s->newly_found = NULL;
        s->stamp = profile_stamp(s, shell, home);
    }
    return false;
}

enum snapshot_state
snapshot_state(struct snapshot *s, const struct shell *shell, const char *home)
{
    if ((s->state == SNAPSHOT_READY || s->state == SNAPSHOT_FAILED) && is_stale(s, shell, home)) {
        strv_fini(&s->env);
        s->state = SNAPSHOT_NONE;
    }
    return s->state;
}

/* Output of profiles can't be taken for ours: the marker is a random number. */
static void
make_marker(char marker[MARKER_MAX])
{
    unsigned char random[16] = {0};
    size_t at = (size_t)snprintf(marker, MARKER_MAX, "SHELLYARD-");

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        uint64_t now = clock_mono_ns();

        memcpy(random, &now, sizeof(now));
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        at += (size_t)snprintf(marker + at, MARKER_MAX - at, "%02x", (unsigned)random[i]);
    }
}

/* Looks for the marker from `from` on; its place, or SIZE_MAX. */
static size_t
find_marker(const struct snapshot *s, size_t from)
{
    size_t len = strlen(s->marker) + 1; /* with its NUL */
    const char *text = buf_view(&s->text);
    const char *at =
        s->text.len > from ? memmem(text + from, s->text.len - from, s->marker, len) : NULL;

    return at != NULL ? (size_t)(at - text) : SIZE_MAX;
}

/* What a profile prints before the first marker is nobody's: only as much of it is
 * kept as may be the marker's beginning. */
static void
take_text(struct snapshot *s, size_t old_len)
{
    size_t len = strlen(s->marker) + 1;
    size_t from = old_len >= len ? old_len - len + 1 : 0;
    size_t at = find_marker(s, from);

    if (!s->has_begun && at == SIZE_MAX) {
        buf_drop(&s->text, s->text.len >= len ? s->text.len - len + 1 : 0);
        return;
    }
    if (!s->has_begun) {
        s->has_begun = true;
        buf_drop(&s->text, at + len);
        at = find_marker(s, 0);
    }
    if (at != SIZE_MAX) {
        s->text.len = at;
        s->text.data[at] = '\0';
        s->is_complete = true;
    }
}

static enum sy_code
collect(void *arg, enum output_stream stream, const char *bytes, size_t n)
{
    struct snapshot *s = arg;

    while (stream == STREAM_STDOUT && n > 0 && !s->is_complete && !s->is_too_long) {
        size_t piece = n < COLLECT_PIECE ? n : COLLECT_PIECE;
        size_t old_len = s->text.len;
        enum sy_code rc = buf_add(&s->text, bytes, piece);

        if (rc == SY_E_LIMIT) {
            s->is_too_long = true;
            return SY_E_OK;
        }
        if (rc != SY_E_OK) {
            return rc;
        }
        take_text(s, old_len);
        bytes += piece;
        n -= piece;
    }
    return SY_E_OK;
}

/* Between the markers stands the directory of profiles, where the shell has such a variable, and
 * the environment; the second says that this was whole. */
static enum sy_code
make_script(struct snapshot *s, struct buf *ret, const struct shell_kind *kind)
{
    make_marker(s->marker);
    s->tells_dir = kind->profile_variable != NULL;

    enum sy_code rc = buf_addf(ret, "printf '%%s\\0' '%s'; ", s->marker);

    if (rc == SY_E_OK && s->tells_dir) {
        rc = buf_addf(ret, "printf '%%s\\0' \"${%s-}\"; ", kind->profile_variable);
    }
    return rc == SY_E_OK ? buf_addf(ret, ENV_PROGRAM " -0 && printf '%%s\\0' '%s'; exit %d",
                                    s->marker, SCRIPT_STATUS)
                         : rc;
}

static enum sy_code
keep_told_dir(struct snapshot *s, const struct shell_kind *kind)
{
    const char *dir =
        kind->profile_variable != NULL ? strv_env_get(&s->run_env, kind->profile_variable) : NULL;

    mem_free_charp(&s->told_dir);
    s->told_dir = dir != NULL && dir[0] == '/' ? mem_strdup(dir) : NULL;
    return dir != NULL && dir[0] == '/' && s->told_dir == NULL ? SY_E_NOMEM : SY_E_OK;
}

static enum sy_code
prepare_run(struct snapshot *s, struct session *session, const struct turn_context *turn,
            const struct shell *shell, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf script = {.max = 512};
    struct env_facts facts = {
        .has_network = sandbox_policy_has_network(&turn->sandbox),
        .tmpdir = turn->sandbox.tmpdir,
    };
    struct output_options options = {.keep_bytes = 1, .on_raw = collect, .arg = s};

    s->run_env = (struct strv){.max = LIMIT_ENV};
    s->run_argv = (struct strv){.max = 8};
    s->text = (struct buf){.max = LIMIT_SNAPSHOT_BYTES};
    s->has_begun = s->is_complete = s->is_too_long = false;
    s->chain = output_new(&options);

    enum sy_code rc = s->chain == NULL ? SY_E_NOMEM : make_script(s, &script, shell->kind);

    if (rc == SY_E_OK) {
        rc = env_build(&s->run_env, &turn->env, session_environ(session), NULL, &facts);
    }
    if (rc == SY_E_OK) {
        rc = keep_told_dir(s, shell->kind);
    }
    if (rc == SY_E_OK) {
        rc = shell_derive(&s->run_argv, shell, buf_view(&script), true);
    }
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "preparing the login shell");
}

enum sy_code
snapshot_start(struct snapshot *s, struct session *session, const struct turn_context *turn,
               const struct sandbox_entry *sandbox, struct sy_error *err)
{
    const struct shell *shell = NULL;
    enum sy_code rc = session_shell(session, &shell, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = prepare_run(s, session, turn, shell, err);
    /* Before it runs: a file that changes while it runs makes it stale. */
    s->stamp = profile_stamp(s, shell, session_home(session));
    if (rc == SY_E_OK) {
        struct exec_env env = {
            .program = shell->path,
            .argv = strv_view(&s->run_argv),
            .envp = strv_view(&s->run_env),
            .cwd = session_home(session),
            .sandbox = sandbox->ready,
        };

        if (access(env.cwd, X_OK) != 0) {
            env.cwd = "/";
        }
        rc = process_start(&s->process, &env, s->chain, err);
    }
    if (rc != SY_E_OK) {
        end_run(s);
        return rc;
    }
    s->timeout_ms = session_snapshot_timeout_ms(session);
    s->give_up_ns = clock_mono_ns() + s->timeout_ms * 1000000ULL;
    s->is_over_time = false;
    s->state = SNAPSHOT_RUNNING;
    return SY_E_OK;
}

size_t
snapshot_watches(const struct snapshot *s, struct process_watch out[PROCESS_WATCHES])
{
    return s->process != NULL ? process_watches(s->process, out) : 0;
}

uint64_t
snapshot_deadline_ns(const struct snapshot *s)
{
    if (s->process == NULL) {
        return UINT64_MAX;
    }

    uint64_t of_process = process_deadline_ns(s->process);
    uint64_t own = s->is_over_time ? UINT64_MAX : s->give_up_ns;

    return own < of_process ? own : of_process;
}

static void
set_failed(struct snapshot *s, const char *why)
{
    snprintf(s->reason, sizeof(s->reason), "%s", why);
    s->state = SNAPSHOT_FAILED;
}

/* Why the shell has ended without a whole environment. */
static void
set_incomplete(struct snapshot *s, const struct process_result *r)
{
    char why[SY_ERR_MSG_MAX];
    bool was_exit = r->outcome == PROCESS_EXITED;

    if (s->is_too_long) {
        snprintf(why, sizeof(why), "the login shell's environment is longer than %u bytes",
                 LIMIT_SNAPSHOT_BYTES);
    } else if (s->has_begun) {
        snprintf(why, sizeof(why),
                 "the login shell did not print its environment (" ENV_PROGRAM
                 " failed, as where a profile exports too much)");
    } else if (was_exit && r->exit_code == SCRIPT_STATUS) {
        snprintf(why, sizeof(why),
                 "the login profile sends standard output elsewhere (as 'exec "
                 ">FILE' does), so that the environment could not be read");
    } else {
        snprintf(why, sizeof(why),
                 "the login profile replaced or ended the shell (%s %d) before it could be asked "
                 "for its environment",
                 was_exit ? "status" : "signal", was_exit ? r->exit_code : r->signal);
    }
    set_failed(s, why);
}

/* Splits what stood between the two markers into variables. */
static enum sy_code
parse_environment(struct snapshot *s)
{
    const char *first = buf_view(&s->text);
    const char *last = first + s->text.len;

    strv_fini(&s->env);
    if (s->tells_dir && first < last) {
        mem_free(s->newly_found);
        s->newly_found = first[0] == '/' ? mem_strdup(first) : NULL;
        if (first[0] == '/' && s->newly_found == NULL) {
            return SY_E_NOMEM;
        }
        first += strlen(first) + 1;
    }
    while (first < last) {
        enum sy_code rc = strv_add(&s->env, first);

        if (rc == SY_E_LIMIT) {
            set_failed(s, "the login shell has too many variables");
            return SY_E_OK;
        }
        if (rc != SY_E_OK) {
            return rc;
        }
        first += strlen(first) + 1;
    }
    if (s->env.n == 0) {
        set_failed(s, "the login shell's environment is empty");
        return SY_E_OK;
    }
    s->state = SNAPSHOT_READY;
    return SY_E_OK;
}

static void
finish(struct snapshot *s)
{
    const struct process_result *r = process_result(s->process);
    char why[SY_ERR_MSG_MAX];

    bool good = output_finish(s->chain) == SY_E_OK; /* what it held back comes now */

    if (s->is_complete) {
        good = good && parse_environment(s) == SY_E_OK;
    } else if (r->outcome == PROCESS_FAILED) {
        snprintf(why, sizeof(why), "the login shell could not run: %.180s", r->err.msg);
        set_failed(s, why);
    } else if (s->is_over_time) {
        snprintf(why, sizeof(why), "the login profile did not end within %llu ms",
                 (unsigned long long)s->timeout_ms);
        set_failed(s, why);
    } else {
        set_incomplete(s, r);
    }
    if (!good) {
        set_failed(s, "no memory for the login shell's environment");
    }
    end_run(s);
}

bool
snapshot_step(struct snapshot *s, uint64_t now_ns)
{
    bool is_done = false;

    if (s->process == NULL) {
        return true;
    }
    if (!s->is_over_time && now_ns >= s->give_up_ns) {
        s->is_over_time = true;
        process_kill(s->process);
    }
    if (process_step(s->process, now_ns, &is_done, NULL) != SY_E_OK) {
        set_failed(s, "no memory for the login shell's output");
        end_run(s);
        return true;
    }
    if (!is_done && !s->is_complete) {
        return false;
    }
    /* What it still does when its environment is here (an EXIT trap) keeps nobody: end_run ends it.
     */
    finish(s);
    return true;
}

void
snapshot_abandon(struct snapshot *s)
{
    end_run(s);
    if (s->state == SNAPSHOT_RUNNING) {
        s->state = SNAPSHOT_NONE;
    }
}

const struct strv *
snapshot_env(const struct snapshot *s)
{
    return &s->env;
}

const char *
snapshot_reason(const struct snapshot *s)
{
    return s->reason;
}
