/*
 * The prompt of a bash that we start tells itself: at its end stands a mark (OSC 133;B) with a
 * number of this session alone (terminal.h), so that it is known at once, and nobody else's output
 * can say so.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

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

static bool
takes_operand(const char *option)
{
    return str_eq(option, "--rcfile") || str_eq(option, "--init-file") || str_eq(option, "-O") ||
           str_eq(option, "+O") || str_eq(option, "-o") || str_eq(option, "+o");
}

/* One word behind the name: false where it makes bash run something else than what is typed. */
static bool
is_option(const char *word)
{
    if (word[0] != '-' && word[0] != '+') {
        return false;
    }
    return strncmp(word, "--", 2) == 0 || strpbrk(word, "cs") == NULL;
}

bool
marks_is_shell(const struct strv *words)
{
    const char *name = words->n > 0 ? strrchr(words->v[0], '/') : NULL;

    if (words->n == 0 || !str_eq(name != NULL ? name + 1 : words->v[0], "bash")) {
        return false;
    }
    for (size_t i = 1; i < words->n; i++) {
        if (!is_option(words->v[i])) {
            return false;
        }
        i += takes_operand(words->v[i]) ? 1 : 0;
    }
    return true;
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

static void
on_mark(void *arg, enum terminal_mark mark, int exit_code)
{
    struct live *l = arg;

    (void)exit_code;
    if (mark == TERMINAL_INPUT) {
        l->prompted_ns = clock_mono_ns();
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

enum sy_code
marks_prepare(struct live *l, struct exec_request *request, struct terminal_options *options)
{
    SY_AUTO(strv_fini) struct strv words = {.max = LIMIT_ARGV};
    enum sy_code rc = SY_E_OK;

    l->prompted_ns = 0;
    if (request->input.kind != INPUT_TERMINAL) {
        return SY_E_OK;
    }
    rc = request->script != NULL ? marks_split(&words, request->script)
                                 : strv_add_all(&words, strv_view(&request->params.argv));
    /* Without random numbers there are no marks. */
    if (rc != SY_E_OK || !marks_is_shell(&words) || !make_nonce(l->nonce)) {
        return rc == SY_E_LIMIT ? SY_E_OK : rc;
    }

    size_t n = (size_t)snprintf(NULL, 0, PROMPT_COMMAND, l->nonce, l->nonce, (size_t)0);

    (void)snprintf(l->prompt_command, sizeof(l->prompt_command), PROMPT_COMMAND, l->nonce, l->nonce,
                   n);
    SY_ASSERT(n < sizeof(l->prompt_command));
    request->input.prompt_command = l->prompt_command;
    options->nonce = l->nonce;
    options->on_mark = on_mark;
    options->arg = l;
    return SY_E_OK;
}
