/* PowerShell, cmd and what opens addresses, by their words: their scripts need not parse. */
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/str.h"
#include "command/danger_internal.h"

#define TOKEN_MAX ((size_t)256)

/* The next piece of *s that holds none of `ends`, without quotes, in small letters. */
static bool
next_token(const char **s, const char *end, const char *ends, char ret[TOKEN_MAX])
{
    const char *begin = *s + strspn(*s, ends);
    const char *stop = begin + strcspn(begin, ends);
    size_t n = 0;

    if (begin >= end) {
        *s = end;
        return false;
    }
    stop = stop < end ? stop : end;
    for (const char *c = begin; c < stop && n < TOKEN_MAX - 1; c++) {
        if (strchr("\"'`", *c) == NULL) {
            ret[n++] = *c;
        }
    }
    ret[n] = '\0';
    judge_small_letters(ret);
    *s = stop;
    return true;
}

static bool
has_address(const char *s)
{
    return strcasestr(s, "http://") != NULL || strcasestr(s, "https://") != NULL;
}

/* A drive, the root, a home, all names. */
static bool
is_everything(const char *token)
{
    bool is_drive = token[0] >= 'a' && token[0] <= 'z' && token[1] == ':';
    const char *rest = is_drive ? token + 2 : token;

    if (is_drive && judge_in_list("\\ / * \\* /*", rest)) {
        return true;
    }
    return judge_in_list("/ /* \\ \\* ~ ~\\* ~/* * $home $home\\* $home/* $env:userprofile "
                         "$env:userprofile\\* $env:systemdrive\\ $env:systemroot",
                         token);
}

static void
judge_segment(struct danger *d, struct words w, const char *s, const char *end)
{
    char token[TOKEN_MAX];
    bool removes = false;
    bool is_forced = false;
    bool is_recursive = false;
    bool is_all = false;

    while (next_token(&s, end, " \t\r{}()[],;", token)) {
        removes = removes || judge_in_list("remove-item ri rm del erase rd rmdir", token);
        is_forced = is_forced || str_eq(token, "-force") || str_starts(token, "-force:");
        is_recursive = is_recursive || judge_in_list("-recurse -r -rec", token);
        is_all = is_all || is_everything(token);
    }
    if (removes && (is_forced || is_recursive) && is_all) {
        danger_found(d, DANGER_CATASTROPHIC, "catastrophe.system", w, NULL,
                     "it is a drive, a home or everything");
    }
    if (removes && is_forced) {
        danger_found(d, DANGER_DANGEROUS, "powershell.remove-forced", w, "-Force",
                     "it removes without asking");
    }
}

static void
judge_powershell_text(struct danger *d, struct words w, const char *text)
{
    const char *end = text + strlen(text);
    const char *s = text;
    char token[TOKEN_MAX];
    bool opens =
        strcasestr(text, "shellexecute") != NULL || strcasestr(text, "shell.application") != NULL;
    bool brings = strcasestr(text, "downloadstring") != NULL;
    bool runs = false;

    for (const char *p = text; next_token(&p, end, " \t\r\n{}()[],;|&", token);) {
        opens = opens || judge_in_list("start-process start saps invoke-item ii", token);
        runs = runs || judge_in_list("invoke-expression iex", token);
        brings =
            brings || judge_in_list("invoke-webrequest iwr invoke-restmethod irm curl wget", token);
    }
    if (brings && runs) {
        danger_download_found(d, w);
    }
    if (opens && has_address(text)) {
        danger_found(d, DANGER_DANGEROUS, "windows.opens-address", w, NULL,
                     "it opens an address in another program");
    }
    while (s < end) {
        size_t len = strcspn(s, ";|&\n");

        judge_segment(d, w, s, s + len);
        s += len + (s[len] != '\0' ? 1 : 0);
    }
}

static enum sy_code
join(struct words w, struct buf *text)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < w.n && rc == SY_E_OK; i++) {
        rc = i > 0 ? buf_add_char(text, ' ') : SY_E_OK;
        rc = rc == SY_E_OK ? buf_add_str(text, w.v[i].text) : rc;
    }
    return rc;
}

static void
judge_powershell(struct danger *d, struct words w)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_SCRIPT};

    for (size_t i = 1; i < w.n; i++) {
        if (strncasecmp(w.v[i].text, "-e", 2) == 0 &&
            strncasecmp(w.v[i].text, "-ex", 3) != 0) { /* -EncodedCommand, -ec, -enc */
            danger_found(d, DANGER_UNKNOWN, "powershell.encoded", w, w.v[i].text,
                         "its script is hidden");
        }
    }

    enum sy_code rc = join(words_from(w, 1), &text);

    if (rc == SY_E_OK) {
        judge_powershell_text(d, w, buf_view(&text));
    } else if (rc == SY_E_NOMEM) {
        d->rc = rc;
    } else {
        danger_found(d, DANGER_UNKNOWN, "script.refused", w, NULL, "it is too long");
    }
}

/* /x, alone or glued to others (/s/q). */
static bool
has_switch(const char *token, char letter)
{
    for (const char *s = strchr(token, '/'); token[0] == '/' && s != NULL; s = strchr(s + 1, '/')) {
        if (s[1] == letter && (s[2] == '\0' || s[2] == '/')) {
            return true;
        }
    }
    return false;
}

static void
judge_cmd_segment(struct danger *d, struct words w, const char *s, const char *end)
{
    char first[TOKEN_MAX] = "";
    char token[TOKEN_MAX];
    bool has_f = false;
    bool has_s = false;
    bool has_q = false;
    bool opens = false;

    (void)next_token(&s, end, " \t\r\n@()\"", first);
    while (next_token(&s, end, " \t\r\n\"", token)) {
        has_f = has_f || has_switch(token, 'f');
        has_s = has_s || has_switch(token, 's');
        has_q = has_q || has_switch(token, 'q');
        opens = opens || has_address(token);
    }
    if ((judge_in_list("del erase", first) && has_f) ||
        (judge_in_list("rd rmdir", first) && has_s && has_q)) {
        danger_found(d, DANGER_DANGEROUS, "cmd.remove-forced", w, first,
                     "it removes without asking");
    }
    if (str_eq(first, "start") && opens) {
        danger_found(d, DANGER_DANGEROUS, "windows.opens-address", w, first,
                     "it opens an address in another program");
    }
}

static void
judge_cmd(struct danger *d, struct words w)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_SCRIPT};
    size_t i = 1;

    while (i < w.n && strcasecmp(w.v[i].text, "/c") != 0 && strcasecmp(w.v[i].text, "/r") != 0 &&
           strcasecmp(w.v[i].text, "/k") != 0 && strcasecmp(w.v[i].text, "-c") != 0) {
        i++;
    }

    enum sy_code rc = join(words_from(w, i + 1), &text);
    const char *s = buf_view(&text);
    const char *end = s + text.len;

    if (rc == SY_E_NOMEM) {
        d->rc = rc;
        return;
    }
    if (rc != SY_E_OK) {
        danger_found(d, DANGER_UNKNOWN, "script.refused", w, NULL, "it is too long");
        return;
    }
    while (s < end) {
        size_t len = strcspn(s, "&|\n");

        judge_cmd_segment(d, w, s, s + len);
        s += len + (s[len] != '\0' ? 1 : 0);
    }
}

void
danger_windows(struct danger *d, const char *name, struct words w)
{
    bool has_one = false;

    if (judge_in_list("pwsh powershell", name)) {
        judge_powershell(d, w);
        return;
    }
    if (str_eq(name, "cmd")) {
        judge_cmd(d, w);
        return;
    }
    for (size_t i = 1; i < w.n; i++) {
        has_one = has_one || has_address(w.v[i].text);
    }
    if (has_one && judge_in_list("rundll32 mshta explorer chrome msedge firefox iexplore", name) &&
        d->world->is_windows) {
        danger_found(d, DANGER_DANGEROUS, "windows.opens-address", w, NULL,
                     "it opens an address in another program");
    }
}
