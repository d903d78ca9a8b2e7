/* Programs that start the program behind them. */
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/danger_internal.h"

struct wrapper {
    const char *name;
    const char *value_short; /* letters whose value follows */
    const char *value_long;  /* names whose value follows as the next word */
    const char *stop;        /* options with which it starts nothing */
    unsigned operands;       /* words of its own before the command */
    bool has_assignments;    /* NAME=value before the command */
};

static const struct wrapper wrappers[] = {
    {"sudo",        "ugphCcrtTUDR", "user group prompt host close-from chdir chroot role type other-user",
     "-l -v -V -K",                                                                                                 0, true },
    {"doas",        "uC",           "",                                                                    "-L",    0, false},
    {"env",         "uC",           "unset chdir",                                                         "",      0, true },
    {"runuser",     "ugGwsT",       "user group supp-group shell whitelist-environment",                   "",      0, false},
    {"nohup",       "",             "",                                                                    "",      0, false},
    {"timeout",     "ks",           "kill-after signal",                                                   "",      1, false},
    {"gtimeout",    "ks",           "kill-after signal",                                                   "",      1, false},
    {"nice",        "n",            "adjustment",                                                          "",      0, false},
    {"ionice",      "cnpPu",        "class classdata pid",                                                 "-p",    0, false},
    {"chrt",        "TPD",          "",                                                                    "-p",    1, false},
    {"taskset",     "",             "",                                                                    "-p",    1, false},
    {"setsid",      "",             "",                                                                    "",      0, false},
    {"stdbuf",      "ioe",          "input output error",                                                  "",      0, false},
    {"unbuffer",    "",             "",                                                                    "",      0, false},
    {"time",        "fo",           "format output",                                                       "",      0, false},
    {"command",     "",             "",                                                                    "-v -V", 0, false},
    {"builtin",     "",             "",                                                                    "",      0, false},
    {"exec",        "a",            "",                                                                    "",      0, false},
    {"coproc",      "",             "",                                                                    "",      0, false},
    {"noglob",      "",             "",                                                                    "",      0, false},
    {"nocorrect",   "",             "",                                                                    "",      0, false},
    {"-",           "",             "",                                                                    "",      0, false},
    {"{",           "",             "",                                                                    "",      0, false},
    {"!",           "",             "",                                                                    "",      0, false},
    {"if",          "",             "",                                                                    "",      0, false},
    {"elif",        "",             "",                                                                    "",      0, false},
    {"then",        "",             "",                                                                    "",      0, false},
    {"else",        "",             "",                                                                    "",      0, false},
    {"while",       "",             "",                                                                    "",      0, false},
    {"until",       "",             "",                                                                    "",      0, false},
    {"do",          "",             "",                                                                    "",      0, false},
    {"repeat",      "",             "",                                                                    "",      1, false},
    {"chroot",      "",             "userspec groups",                                                     "",      1, false},
    {"unshare",     "RwSG",         "root wd setuid setgid map-users",                                     "",      0, false},
    {"nsenter",     "tSGrw",        "target setuid setgid",                                                "",      0, false},
    {"setpriv",     "",             "reuid regid groups",                                                  "",      0, false},
    {"flock",       "wE",           "timeout wait conflict-exit-code",                                     "",      1, false},
    {"strace",      "eoOpPsuaEbX",  "",                                                                    "-p",    0, false},
    {"ltrace",      "eopsuaAnlDx",  "",                                                                    "-p",    0, false},
    {"busybox",     "",             "",                                                                    "",      0, false},
    {"toybox",      "",             "",                                                                    "",      0, false},
    {"caffeinate",  "tw",           "",                                                                    "",      0, false},
    {"systemd-run", "pMutE",        "property unit uid gid slice setenv",                                  "",      0, false},
    {"fakeroot",    "lsibu",        "",                                                                    "",      0, false},
    {"firejail",    "",             "",                                                                    "",      0, false},
    {"xvfb-run",    "efnpsw",       "",                                                                    "",      0, false},
    {"parallel",    "jNnLISa",      "jobs max-args arg-file colsep delay results",                         "",      0, false},
    {"xargs",       "IEdLnPsaR",
     "arg-file delimiter max-lines max-args max-procs max-chars replace process-slot-var",                 "",      0,
     false                                                                                                                  },
};

static bool
takes_next(const struct wrapper *wrapper, const char *word)
{
    if (word[1] == '-') {
        return strchr(word, '=') == NULL && judge_in_list(wrapper->value_long, word + 2);
    }
    for (const char *c = word + 1; *c != '\0'; c++) {
        if (strchr(wrapper->value_short, *c) != NULL) {
            return c[1] == '\0';
        }
    }
    return false;
}

static bool
is_assignment(const char *word)
{
    size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

    return len > 0 && word[len] == '=';
}

size_t
danger_wrapper(const char *name, struct words w)
{
    const struct wrapper *wrapper = NULL;
    size_t i = 1;

    for (size_t k = 0; k < sizeof(wrappers) / sizeof(wrappers[0]); k++) {
        if (str_eq(wrappers[k].name, name)) {
            wrapper = &wrappers[k];
        }
    }
    if (wrapper == NULL) {
        return 0;
    }
    for (; i < w.n; i++) {
        const char *word = w.v[i].text;

        if (str_eq(word, "--")) {
            i++;
            break;
        }
        if (judge_in_list(wrapper->stop, word)) {
            return 0;
        }
        if (word[0] == '-' && (word[1] != '\0' || str_eq(name, "env"))) {
            i += word[1] != '\0' && takes_next(wrapper, word) ? 1 : 0;
        } else if (!wrapper->has_assignments || !is_assignment(word)) {
            break;
        }
    }
    while (wrapper->has_assignments && i < w.n && is_assignment(w.v[i].text)) {
        i++;
    }
    if (str_eq(name, "coproc") && i + 1 < w.n && str_eq(w.v[i + 1].text, "{")) {
        i++; /* its name */
    }
    i += wrapper->operands;
    return i < w.n ? i : 0;
}

struct words
danger_unwrap(const struct danger *d, struct words w)
{
    for (;;) {
        char name[PROGRAM_NAME_MAX];
        size_t skip = 0;

        judge_program_name(name, w.v[0].text, d->world->is_windows);
        skip = danger_wrapper(name, w);
        if (skip == 0) {
            return w;
        }
        w = words_from(w, skip);
    }
}

void
danger_joined(struct danger *d, struct words w, struct words script)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_SCRIPT};

    for (size_t i = 0; i < script.n && d->rc == SY_E_OK; i++) {
        enum sy_code rc = i > 0 ? buf_add_char(&text, ' ') : SY_E_OK;

        if (rc == SY_E_OK) {
            rc = buf_add_str(&text, script.v[i].text);
        }
        if (rc == SY_E_NOMEM) {
            d->rc = rc;
        }
        if (rc == SY_E_LIMIT) {
            danger_found(d, DANGER_UNKNOWN, "script.refused", w, NULL, "it is too long");
            return;
        }
    }
    danger_script(d, w, buf_view(&text), text.len);
}
