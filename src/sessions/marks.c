/*
 * The prompt of a shell that we start tells itself: at its end stands a mark (OSC 133;B) with a
 * number of this session alone (terminal.h), so that it is known at once, and nobody else's output
 * can say so.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "sessions/sessions_internal.h"

/* What a shell's name and options consist of; anything else is more than a name and options. */
#define WORD_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-"

/*
 * bash runs it before its first prompt, when it has read the user's files, which are nobody's to
 * change. Then it is gone, from what children inherit too, unless those files have added to it:
 * then all but the first run do nothing. An rc file that sets it anew gets its way: there is no
 * mark then.
 */
#define PROMPT_COMMAND                                                                             \
    "case $PS1 in *sy=%s*);;*)PS1=$PS1'\\[\\033]133;B;sy=%s\\007\\]';esac;"                        \
    "export -n PROMPT_COMMAND;[ ${#PROMPT_COMMAND} = %03zu ]&&unset PROMPT_COMMAND"

/*
 * zsh and sh take no such variable, but read a file that one names. Ours (libexec/shellyard/prompt)
 * finds the number of the marks in its environment, and unsets that; that of zsh stands where the
 * person's would be, and so reads that one itself.
 */
#define VAR_MARK "SHELLYARD_MARK"

static const struct {
    const char *file;     /* beside shellyard-launch */
    const char *variable; /* names it, or its directory */
    const char *own;      /* holds what that variable was before; NULL: never there (env.h) */
    bool is_dir;
} files[] = {
    [MARKS_ZSH] = {"/prompt/.zshenv", "ZDOTDIR", "SHELLYARD_ZDOTDIR", true },
    [MARKS_SH] = {"/prompt/sh",      "ENV",     NULL,                false},
};

static bool
takes_operand(const char *option)
{
    return str_eq(option, "--rcfile") || str_eq(option, "--init-file") || str_eq(option, "-O") ||
           str_eq(option, "+O") || str_eq(option, "-o") || str_eq(option, "+o");
}

/* One word behind the name: false where it makes bash run something else than what is typed. */
static bool
is_bash_option(const char *word)
{
    if (word[0] != '-' && word[0] != '+') {
        return false;
    }
    return strncmp(word, "--", 2) == 0 || strpbrk(word, "cs") == NULL;
}

/* Of zsh and sh those alone that leave them interactive and their files read. */
static bool
is_plain_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && word[1 + strspn(word + 1, "il")] == '\0';
}

enum marks_shell
marks_shell(const struct strv *words)
{
    static const struct {
        const char *name;
        enum marks_shell shell;
    } known[] = {
        {"bash", MARKS_BASH},
        {"zsh",  MARKS_ZSH },
        {"sh",   MARKS_SH  },
        {"dash", MARKS_SH  },
    };
    const char *name = words->n > 0 ? strrchr(words->v[0], '/') : NULL;
    enum marks_shell ret = MARKS_NONE;

    if (words->n == 0) {
        return MARKS_NONE;
    }
    name = name != NULL ? name + 1 : words->v[0];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        ret = str_eq(name, known[i].name) ? known[i].shell : ret;
    }
    for (size_t i = 1; i < words->n; i++) {
        bool is_option =
            ret == MARKS_BASH ? is_bash_option(words->v[i]) : is_plain_option(words->v[i]);

        if (!is_option) {
            return MARKS_NONE;
        }
        i += ret == MARKS_BASH && takes_operand(words->v[i]) ? 1 : 0;
    }
    return ret == MARKS_BASH && strv_has(words, "--noediting") ? MARKS_PLAIN_BASH : ret;
}

enum sy_code
marks_split(struct strv *ret, const char *script)
{
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && *script != '\0') {
        size_t n = strspn(script, WORD_CHARS);
        char word[128];

        if (n >= sizeof(word) || (n == 0 && *script != ' ')) {
            strv_fini(ret);
            return SY_E_OK;
        }
        if (n == 0) {
            script++;
            continue;
        }
        memcpy(word, script, n);
        word[n] = '\0';
        script += n;
        if (ret->n > 0 || !str_eq(word, "exec")) {
            rc = strv_add(ret, word);
        }
    }
    return rc;
}

/*
 * A line editor draws the prompt anew with its line, the mark too: readline does when a key takes
 * the highlight off what was pasted, an Enter as well, whose command has yet to run. One that knows
 * pastes says that it leaves (2004l) before each command, and comes back with the next prompt.
 */
static bool
is_drawn_anew(const struct live *l)
{
    const struct terminal_state *state = terminal_state(l->screen);

    return l->prompted_ns != 0 && state->keys.bracketed_paste && state->pastes == l->prompt_pastes;
}

static void
on_mark(void *arg, enum terminal_mark mark, int exit_code)
{
    struct live *l = arg;

    (void)exit_code;
    if (mark == TERMINAL_INPUT && !is_drawn_anew(l)) {
        l->prompted_ns = clock_mono_ns();
        l->owed -= l->owed > 0 ? 1 : 0;
        l->prompt_pastes = terminal_state(l->screen)->pastes;
    }
}

static bool
make_nonce(char ret[MARKS_NONCE])
{
    unsigned char random[(MARKS_NONCE - 1) / 2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        (void)snprintf(ret + i * 2, 3, "%02x", random[i]);
    }
    return true;
}

static enum sy_code
add_command(struct strv *env, const char *nonce)
{
    char command[320];
    size_t n = (size_t)snprintf(NULL, 0, PROMPT_COMMAND, nonce, nonce, (size_t)0);

    SY_ASSERT(n < sizeof(command));
    (void)snprintf(command, sizeof(command), PROMPT_COMMAND, nonce, nonce, n);
    return strv_env_set(env, "PROMPT_COMMAND", command);
}

static enum sy_code
add_file(struct strv *env, enum marks_shell shell, const char *nonce, const char *dir)
{
    const char *own = strv_env_get(env, files[shell].variable);
    const char *keeper = files[shell].own;
    char path[LIMIT_PATH];
    enum sy_code rc = SY_E_OK;

    if (snprintf(path, sizeof(path), "%s%s", dir, files[shell].file) >= (int)sizeof(path)) {
        return SY_E_OK;
    }
    if (files[shell].is_dir) {
        *strrchr(path, '/') = '\0';
    }
    if (keeper != NULL) {
        strv_env_unset(env, keeper);
    }
    rc = own != NULL && keeper != NULL ? strv_env_set(env, keeper, own) : SY_E_OK;
    if (rc == SY_E_OK) {
        rc = strv_env_set(env, VAR_MARK, nonce);
    }
    return rc == SY_E_OK ? strv_env_set(env, files[shell].variable, path) : rc;
}

enum sy_code
marks_environment(struct strv *env, enum marks_shell shell, const char *nonce, const char *dir)
{
    switch (shell) {
    case MARKS_NONE:
        break;
    case MARKS_BASH:
    case MARKS_PLAIN_BASH:
        return add_command(env, nonce);
    case MARKS_ZSH:
    case MARKS_SH:
        return dir != NULL ? add_file(env, shell, nonce, dir) : SY_E_OK;
    }
    return SY_E_OK;
}

/* May everybody read it? As root we can't tell by access(2): a command may run as somebody else. */
static bool
is_public(const char *file)
{
    char path[LIMIT_PATH];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s", file);
    if (stat(path, &st) != 0 || (st.st_mode & S_IROTH) == 0) {
        return false;
    }
    for (char *slash = strrchr(path, '/'); slash != NULL && slash != path;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        if (stat(path, &st) != 0 || (st.st_mode & S_IXOTH) == 0) {
            return false;
        }
    }
    return true;
}

/*
 * The directory of this session's shell's file. NULL: its command could not read it, and would
 * then read none of the person's either.
 */
static const char *
find_files(char ret[LIMIT_PATH], const struct live *l, const struct orch_call *call)
{
    const char *launcher = session_launcher_path(l->session);
    char real[PATH_MAX];
    char file[LIMIT_PATH];

    if (launcher == NULL || realpath(launcher, real) == NULL) {
        return NULL;
    }
    *strrchr(real, '/') = '\0';
    if (snprintf(ret, LIMIT_PATH, "%s", real) >= (int)LIMIT_PATH ||
        snprintf(file, sizeof(file), "%s%s", real, files[l->shell].file) >= (int)sizeof(file)) {
        return NULL;
    }
    return (geteuid() == 0 ? is_public(file) : access(file, R_OK) == 0) && orch_may_read(call, file)
               ? ret
               : NULL;
}

static enum sy_code
on_environment(void *arg, const struct orch_call *call, struct strv *env)
{
    const struct live *l = arg;
    char dir[LIMIT_PATH];
    bool has_file = l->shell == MARKS_ZSH || l->shell == MARKS_SH;

    return marks_environment(env, l->shell, l->nonce, has_file ? find_files(dir, l, call) : NULL);
}

enum sy_code
marks_prepare(struct live *l, struct exec_request *request, struct terminal_options *options)
{
    SY_AUTO(strv_fini) struct strv words = {.max = LIMIT_ARGV};
    enum sy_code rc = SY_E_OK;

    l->prompted_ns = 0;
    l->owed = 0;
    l->typed_ns = 0;
    l->shell = MARKS_NONE;
    if (request->input.kind != INPUT_TERMINAL) {
        return SY_E_OK;
    }
    rc = request->script != NULL ? marks_split(&words, request->script)
                                 : strv_add_all(&words, strv_view(&request->params.argv));
    if (rc != SY_E_OK) {
        return rc == SY_E_LIMIT ? SY_E_OK : rc;
    }
    l->shell = marks_shell(&words);
    /* Without random numbers there are no marks. */
    if (l->shell == MARKS_NONE || !make_nonce(l->nonce)) {
        return SY_E_OK;
    }
    request->input.on_environment = on_environment;
    request->input.on_environment_arg = l;
    options->nonce = l->nonce;
    options->on_mark = on_mark;
    options->arg = l;
    return SY_E_OK;
}
