/* Arguments that the tools for sessions share. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/str.h"
#include "tools/live_call.h"

enum sy_code
live_args_id(const char **ret, char room[LIVE_ID_ROOM], const struct invocation *inv,
             struct sy_error *err)
{
    static const char *const names[] = {LIVE_ID_NAMES, NULL};
    const struct js *v = NULL;
    int64_t number = 0;
    enum sy_code rc = request_pick(&v, inv->arguments, names, err);

    *ret = NULL;
    if (rc != SY_E_OK || v == NULL) {
        return rc;
    }
    if (js_type(v) == JS_INT && js_int(&number, v)) {
        (void)snprintf(room, LIVE_ID_ROOM, "%" PRId64, number);
        *ret = room;
        return SY_E_OK;
    }
    struct js_shown is;

    *ret = js_str(v);
    return *ret != NULL && (*ret)[0] != '\0'
               ? SY_E_OK
               : sy_err_set(err, SY_E_ARG,
                            "'session_id' must be the id of a session, e.g. \"4711\", not %s",
                            *ret != NULL ? "an empty string" : js_not_text(&is, v));
}

enum sy_code
live_args_need_id(const char **ret, char room[LIVE_ID_ROOM], const struct invocation *inv,
                  struct sy_error *err)
{
    enum sy_code rc = live_args_id(ret, room, inv, err);

    return rc != SY_E_OK || *ret != NULL
               ? rc
               : sy_err_set(err, SY_E_ARG,
                            "'session_id' is missing: which session? list_sessions tells which "
                            "there are");
}

/* A whole number from min to max; *ret stays where the argument is absent. */
static enum sy_code
number(int64_t *ret, const struct js *args, const char *name, const int64_t range[2],
       struct sy_error *err)
{
    const struct js *v = js_get(args, name);

    if (v == NULL || js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (!js_int(ret, v)) {
        return request_no_number(v, name, err);
    }
    if (*ret < range[0] || *ret > range[1]) {
        return sy_err_set(err, SY_E_ARG,
                          "'%s' is %" PRId64 ": it must be from %" PRId64 " to %" PRId64, name,
                          *ret, range[0], range[1]);
    }
    return SY_E_OK;
}

enum sy_code
live_args_size(unsigned *ret_rows, unsigned *ret_cols, const struct js *args, struct sy_error *err)
{
    int64_t rows = *ret_rows;
    int64_t cols = *ret_cols;
    enum sy_code rc = number(&rows, args, "rows", (const int64_t[2]){1, LIMIT_TERMINAL_ROWS}, err);

    if (rc == SY_E_OK) {
        rc = number(&cols, args, "cols", (const int64_t[2]){2, LIMIT_TERMINAL_COLS}, err);
    }
    *ret_rows = (unsigned)rows;
    *ret_cols = (unsigned)cols;
    return rc;
}

/* A call that names what it waits for wants that, and not what there is after a moment; one that is
 * to be answered at once is. */
static int64_t
default_yield(const struct live_order *o, const struct live_yield *y)
{
    bool has_condition = o->has_until || o->pattern != NULL || o->idle_ms > 0;

    return has_condition && y->fallback_ms > 0 && y->fallback_ms < LIMIT_YIELD_DEFAULT_MS
               ? LIMIT_YIELD_DEFAULT_MS
               : y->fallback_ms;
}

/* Codex moves what is out of range to its border; a wait is no reason to fail a call. */
static int64_t
clamp(int64_t ms, const struct live_yield *y)
{
    if (ms < y->min_ms) {
        return y->min_ms;
    }
    return ms > y->max_ms ? y->max_ms : ms;
}

/* One of the words; *ret stays where the argument is absent. */
static enum sy_code
word(int *ret, const struct js *args, const char *name, const char *const *words,
     struct sy_error *err)
{
    const struct js *v = js_get(args, name);
    const char *text = v != NULL ? js_str(v) : NULL;
    SY_AUTO(buf_fini) struct buf all = {.max = 128};

    if (v == NULL || js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    for (int i = 0; words[i] != NULL; i++) {
        if (text != NULL && str_eq(words[i], text)) {
            *ret = i;
            return SY_E_OK;
        }
        if (buf_addf(&all, "%s\"%s\"", i > 0 ? ", " : "", words[i]) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    return sy_err_set(err, SY_E_ARG, "'%s' must be one of %s", name, buf_view(&all));
}

/* What `until` names. An end is always told; it is there for those who want nothing else. */
enum until_word {
    UNTIL_PROMPT,
    UNTIL_INPUT,
    UNTIL_STABLE,
    UNTIL_IDLE,
    UNTIL_PATTERN,
    UNTIL_EXIT,
    UNTIL_WORDS
};

static enum sy_code
add_until(bool ret[UNTIL_WORDS], const char *text, size_t n, struct sy_error *err)
{
    static const char *const words[] = {"prompt", "input", "stable", "idle", "pattern", "exit"};

    while (n > 0 && text[0] == ' ') {
        text++;
        n--;
    }
    while (n > 0 && text[n - 1] == ' ') {
        n--;
    }
    for (size_t i = 0; i < UNTIL_WORDS; i++) {
        if (strlen(words[i]) == n && strncmp(words[i], text, n) == 0) {
            ret[i] = true;
            return SY_E_OK;
        }
    }
    return sy_err_set(err, SY_E_ARG,
                      "'until' names what ends the wait: prompt, input, stable, idle, pattern, "
                      "exit, or several with commas (\"prompt,idle\"), not \"%.*s\"",
                      n < 40 ? (int)n : 40, text);
}

/* A list with commas in one text, since schemas are flat. */
static enum sy_code
add_untils(bool ret[UNTIL_WORDS], const struct js *v, struct sy_error *err)
{
    const char *text = js_str(v);
    enum sy_code rc = SY_E_OK;

    if (text == NULL) {
        struct js_shown is;

        return sy_err_set(err, SY_E_ARG, "'until' must be a text, e.g. \"prompt,idle\", not %s",
                          js_not_text(&is, v));
    }
    for (const char *end = text; rc == SY_E_OK && end != NULL;) {
        end = strchr(text, ',');
        rc = add_until(ret, text, end != NULL ? (size_t)(end - text) : strlen(text), err);
        text = end != NULL ? end + 1 : text;
    }
    return rc;
}

static enum sy_code
until(struct live_order *ret, int64_t *idle, const struct js *args, struct sy_error *err)
{
    const struct js *v = js_get(args, "until");
    bool wants[UNTIL_WORDS] = {false};
    enum sy_code rc = SY_E_OK;

    if (v == NULL || js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (js_type(v) == JS_ARRAY && js_count(v) == 0) {
        return sy_err_set(err, SY_E_ARG,
                          "'until' is an empty list: name what ends the wait, e.g. "
                          "[\"prompt\", \"idle\"], or leave it out");
    }
    if (js_type(v) != JS_ARRAY) {
        rc = add_untils(wants, v, err);
    }
    for (size_t i = 0; js_type(v) == JS_ARRAY && i < js_count(v) && rc == SY_E_OK; i++) {
        rc = add_untils(wants, js_at(v, i), err);
    }
    if (rc == SY_E_OK && wants[UNTIL_PATTERN] && ret->pattern == NULL) {
        return sy_err_set(err, SY_E_ARG,
                          "'until' names the pattern, but there is none: give 'pattern', a regular "
                          "expression, e.g. \"ready|error\"");
    }
    ret->has_until = true;
    ret->until_prompt = wants[UNTIL_PROMPT];
    ret->until_input = wants[UNTIL_INPUT];
    ret->until_stable = wants[UNTIL_STABLE];
    if (*idle == 0 && wants[UNTIL_IDLE]) {
        *idle = LIMIT_IDLE_MS;
    }
    if (*idle == 0 && wants[UNTIL_STABLE]) {
        *idle = LIMIT_STABLE_MS;
    }
    return rc;
}

static enum sy_code
conditions(struct live_order *ret, const struct js *args, struct sy_error *err)
{
    static const char *const views[] = {"auto", "stream", "screen", "diff", NULL};
    const struct js *v = js_get(args, "pattern");
    int view = LIVE_VIEW_AUTO;
    enum sy_code rc = word(&view, args, "view", views, err);

    if (rc == SY_E_OK && v != NULL && js_type(v) != JS_NULL) {
        ret->pattern = js_str(v);
        if (ret->pattern == NULL || ret->pattern[0] == '\0') {
            struct js_shown is;

            return sy_err_set(
                err, SY_E_ARG,
                "'pattern' must be a regular expression, e.g. \"ready|error\", not %s",
                ret->pattern != NULL ? "an empty string" : js_not_text(&is, v));
        }
    }
    ret->view = (enum live_view)view;
    return rc;
}

enum sy_code
live_args_wait(struct live_order *ret, const struct invocation *inv, const struct live_yield *yield,
               struct sy_error *err)
{
    const struct js *args = inv->arguments;
    int64_t ms = -1;
    int64_t idle = 0;
    int64_t since = -1;
    enum sy_code rc = number(&ms, args, "yield_time_ms", (const int64_t[2]){0, INT32_MAX}, err);

    if (rc == SY_E_OK) {
        rc = number(&idle, args, "idle_ms", (const int64_t[2]){1, LIMIT_YIELD_POLL_MAX_MS}, err);
    }
    if (rc == SY_E_OK) {
        rc = number(&since, args, "since_seq", (const int64_t[2]){0, INT64_MAX}, err);
    }
    if (rc == SY_E_OK) {
        rc = conditions(ret, args, err);
    }
    if (rc == SY_E_OK) {
        rc = until(ret, &idle, args, err);
    }
    if (rc == SY_E_OK) {
        rc = request_fill_budget(&ret->max_bytes, inv, err);
    }
    ret->idle_ms = (uint64_t)idle;
    ret->yield_ms = (uint64_t)clamp(ms >= 0 ? ms : default_yield(ret, yield), yield);
    if (rc == SY_E_OK && since >= 0 && ret->view == LIVE_VIEW_DIFF) {
        return sy_err_set(err, SY_E_ARG,
                          "'view' diff tells what changed since the last answer, not since a "
                          "number: leave out 'since_seq', or give another 'view'");
    }
    ret->has_since = since >= 0;
    ret->since_seq = since >= 0 ? (uint64_t)since : 0;
    return rc;
}

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"INT",   SIGINT  },
    {"TERM",  SIGTERM },
    {"HUP",   SIGHUP  },
    {"QUIT",  SIGQUIT },
    {"KILL",  SIGKILL },
    {"STOP",  SIGSTOP },
    {"CONT",  SIGCONT },
    {"WINCH", SIGWINCH},
    {"TSTP",  SIGTSTP },
    {"USR1",  SIGUSR1 },
    {"USR2",  SIGUSR2 },
};

enum sy_code
live_args_signal(int *ret, const struct js *v, struct sy_error *err)
{
    const char *name = js_str(v);
    struct js_shown is;

    if (name != NULL && strncasecmp(name, "SIG", 3) == 0) {
        name += 3;
    }
    for (size_t i = 0; name != NULL && i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (strcasecmp(signals[i].name, name) == 0) {
            *ret = signals[i].number;
            return SY_E_OK;
        }
    }
    return sy_err_set(
        err, SY_E_ARG,
        "'signal' must be one of INT, TERM, HUP, QUIT, KILL, STOP, CONT, WINCH, TSTP, "
        "USR1, USR2, not %.40s",
        js_str(v) != NULL ? js_str(v) : js_not_text(&is, v));
}
