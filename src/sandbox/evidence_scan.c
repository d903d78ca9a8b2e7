/* Which objects a text complains about. Pure: a fuzzer gives it anything. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "sandbox/evidence.h"

/* Longer lines are looked at up to here. */
#define LINE_MAX_BYTES 8192U
#define NAME_MAX_BYTES 4096U

struct scan {
    named_fn *fn;
    void *arg;
    unsigned told;
    bool is_over;
    char name[NAME_MAX_BYTES];
};

/* A part of a line. */
struct span {
    const char *at;
    size_t n;
};

/* What the kernel says when it refuses, as C libraries and languages write it. */
static const char *const complaints[] = {
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "access denied",
    "accessdenied",
    "not permitted",
    "cross-device link",
    "EACCES",
    "EPERM",
    "EROFS",
    "EXDEV",
};

static const char *const removals[] = {"remove", "rename", "unlink", "move", "rmdir", "delete"};

/* The first place of `word` in s, letters of either case alike. */
static const char *
find(struct span s, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= s.n; i++) {
        if (strncasecmp(s.at + i, word, n) == 0) {
            return s.at + i;
        }
    }
    return NULL;
}

static const char *
find_any(struct span s, const char *const *words, size_t n)
{
    const char *at = NULL;

    for (size_t i = 0; i < n && at == NULL; i++) {
        at = find(s, words[i]);
    }
    return at;
}

#define FIND_ANY(s, words) find_any((s), (words), sizeof(words) / sizeof((words)[0]))

static struct span
trim(struct span s)
{
    while (s.n > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.n--;
    }
    while (s.n > 0 && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t' || s.at[s.n - 1] == '\r')) {
        s.n--;
    }
    return s;
}

static bool
tell(struct scan *c, struct span s, struct named named)
{
    if (s.n == 0 || s.n >= sizeof(c->name) || memchr(s.at, '\0', s.n) != NULL || c->is_over) {
        return false;
    }
    memcpy(c->name, s.at, s.n);
    c->name[s.n] = '\0';
    named.text = c->name;
    c->told++;
    c->is_over = !c->fn(c->arg, &named) || c->told == EVIDENCE_NAMES;
    return true;
}

static bool
is_path_start(struct span s)
{
    return (s.n > 0 && s.at[0] == '/') || (s.n > 1 && strncmp(s.at, "./", 2) == 0) ||
           (s.n > 2 && strncmp(s.at, "../", 3) == 0);
}

/* Pairs of quotation marks; an apostrophe within a word opens none. */
static const struct {
    const char *open;
    const char *close;
} quotes[] = {
    {"'",            "'"           },
    {"\"",           "\""          },
    {"`",            "'"           },
    {"`",            "`"           },
    {"\xe2\x80\x98", "\xe2\x80\x99"},
    {"\xe2\x80\x9c", "\xe2\x80\x9d"},
};

#define QUOTES (sizeof(quotes) / sizeof(quotes[0]))

static bool
starts(struct span s, size_t at, const char *with)
{
    size_t n = strlen(with);

    return at + n <= s.n && memcmp(s.at + at, with, n) == 0;
}

/* Where the quotation that is opened at `at` by pair q ends; 0: nowhere. */
static size_t
quote_end(struct span s, size_t at, size_t q)
{
    size_t from = at + strlen(quotes[q].open);
    size_t n = strlen(quotes[q].close);

    for (size_t i = from; i + n <= s.n; i++) {
        if (starts(s, i, quotes[q].close) &&
            (i + n == s.n || !isalnum((unsigned char)s.at[i + n]))) {
            return i > from ? i : 0;
        }
    }
    return 0;
}

/* The names in quotation marks. True if there was one. */
static bool
scan_quoted(struct scan *c, struct span s, struct named named)
{
    bool found = false;
    size_t i = 0;

    while (i < s.n) {
        size_t end = 0;
        size_t q = 0;

        for (; q < QUOTES && end == 0; q++) {
            bool may_open = i == 0 || !isalnum((unsigned char)s.at[i - 1]);

            end = may_open && starts(s, i, quotes[q].open) ? quote_end(s, i, q) : 0;
        }
        if (end == 0) {
            i++;
            continue;
        }
        q--;

        struct span inner = {s.at + i + strlen(quotes[q].open), end - i - strlen(quotes[q].open)};

        found = tell(c, inner, named) || found;
        i = end + strlen(quotes[q].close);
    }
    return found;
}

/* Slashes and dots alone are punctuation. */
static bool
has_name(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.at[i] != '/' && s.at[i] != '.') {
            return true;
        }
    }
    return false;
}

/* Words that look like paths, without what stands around them. */
static bool
scan_words(struct scan *c, struct span s, struct named named)
{
    static const char around[] = "()[]{}<>,;:'\"`=";
    bool found = false;
    size_t i = 0;

    while (i < s.n) {
        size_t n = 0;

        while (i + n < s.n && s.at[i + n] != ' ' && s.at[i + n] != '\t') {
            n++;
        }

        struct span word = {s.at + i, n};

        i += n + 1;
        while (word.n > 0 && strchr(around, word.at[0]) != NULL) {
            word.at++;
            word.n--;
        }
        while (word.n > 0 &&
               (strchr(around, word.at[word.n - 1]) != NULL || word.at[word.n - 1] == '\r')) {
            word.n--;
        }
        if (is_path_start(word) && has_name(word)) {
            found = tell(c, word, named) || found;
        }
    }
    return found;
}

/* Cuts the next field, up to ": ", from *s. */
static struct span
next_field(struct span *s)
{
    struct span field = *s;
    const char *end = find(*s, ": ");

    if (end == NULL) {
        s->n = 0;
        if (field.n > 0 && field.at[field.n - 1] == ':') {
            field.n--;
        }
        return trim(field);
    }
    field.n = (size_t)(end - s->at);
    s->n -= field.n + 2;
    s->at = end + 2;
    return trim(field);
}

/* "line 3" or "3": what is before it is the script's name. */
static bool
is_line_number(struct span s)
{
    if (s.n > 5 && strncmp(s.at, "line ", 5) == 0) {
        s.at += 5;
        s.n -= 5;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (!isdigit((unsigned char)s.at[i])) {
            return false;
        }
    }
    return s.n > 0;
}

/* How shells begin the field that ends with the path. */
static struct span
without_verb(struct span s)
{
    static const char *const verbs[] = {"cannot create ", "can't create ", "cannot open ",
                                        "can't open "};

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        size_t n = strlen(verbs[i]);

        if (s.n > n && strncmp(s.at, verbs[i], n) == 0) {
            s.at += n;
            s.n -= n;
        }
    }
    return s;
}

/*
 * "PROGRAM: line 1: PATH: COMPLAINT": the field before the complaint is a name, with spaces or
 * not. False if the line is not of this form.
 */
static bool
scan_fields(struct scan *c, struct span s, struct named named)
{
    struct span before = {NULL, 0};
    unsigned fields = 0;

    while (s.n > 0) {
        struct span field = next_field(&s);

        if (FIND_ANY(field, complaints) != NULL) {
            const char *bracket = find(field, " (");

            if (is_path_start(field) && bracket != NULL) { /* "PATH (COMPLAINT)" */
                return tell(c, (struct span){field.at, (size_t)(bracket - field.at)}, named);
            }
            before = without_verb(before);
            if (before.n == 0 || is_line_number(before) ||
                (!is_path_start(before) && (fields < 2 || memchr(before.at, ' ', before.n)))) {
                return false;
            }
            return tell(c, before, named);
        }
        before = field;
        fields++;
    }
    return false;
}

static void
scan_paths(struct scan *c, struct span line)
{
    struct named named = {.is_removal = FIND_ANY(line, removals) != NULL};

    if (FIND_ANY(line, complaints) != NULL && !scan_quoted(c, line, named) &&
        !scan_fields(c, line, named)) {
        (void)scan_words(c, line, named);
    }
}

/* The texts before the name of a host that could not be reached. */
static const char *const host_leads[] = {
    "could not resolve host: ",
    "couldn't resolve host ",
    "could not resolve hostname ",
    "could not resolve proxy: ",
    "could not resolve ",
    "unable to resolve host address ",
    "unable to look up ",
    "temporary failure resolving ",
    "failed to connect to ",
    "couldn't connect to server ",
    "unable to connect to ",
    "connect to host ",
    "connect to address ",
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo EAI_AGAIN ",
    "connect EPERM ",
    "connect EACCES ",
    "connect ENETUNREACH ",
    "dial tcp: lookup ",
    "dial tcp ",
    "dial udp ",
    "ConnectionPool(host=",
};

static bool
is_host_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
           c == ']';
}

/* Digits at the beginning; 0 if there is no port. */
static unsigned
port_of(struct span s)
{
    unsigned port = 0;

    for (size_t i = 0; i < s.n && i < 5 && isdigit((unsigned char)s.at[i]); i++) {
        port = port * 10 + (unsigned)(s.at[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* The port that is named after the host: ":443", " port 443", ", port=443". */
static unsigned
port_after(struct span rest)
{
    static const char *const leads[] = {" port ", "port="};

    for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
        const char *at = find(rest, leads[i]);

        if (at != NULL) {
            at += strlen(leads[i]);
            return port_of((struct span){at, rest.n - (size_t)(at - rest.at)});
        }
    }
    return 0;
}

static void
scan_host(struct scan *c, struct span rest)
{
    struct named named = {.is_host = true};

    while (rest.n > 0 &&
           (strchr("'\"`", rest.at[0]) != NULL || (unsigned char)rest.at[0] >= 0x80)) {
        rest.at++;
        rest.n--;
    }

    struct span host = {rest.at, 0};

    while (host.n < rest.n && is_host_char(rest.at[host.n])) {
        host.n++;
    }
    rest.at += host.n;
    rest.n -= host.n;
    while (host.n > 0 && (host.at[host.n - 1] == ':' || host.at[host.n - 1] == '.')) {
        host.n--;
    }

    const char *colon = host.n > 0 ? memchr(host.at, ':', host.n) : NULL;
    bool is_v6 = host.n > 0 && host.at[0] != '[' && colon != NULL &&
                 memchr(colon + 1, ':', host.n - (size_t)(colon + 1 - host.at)) != NULL;

    if (host.n > 0 && host.at[0] == '[') {
        colon = find(host, "]:");
        colon = colon != NULL ? colon + 1 : NULL;
    }
    if (colon != NULL && !is_v6) {
        named.port = port_of((struct span){colon + 1, host.n - (size_t)(colon + 1 - host.at)});
        host.n = (size_t)(colon - host.at);
    } else {
        named.port = port_after(rest);
    }
    if (host.n > 0 && host.n <= 253) {
        (void)tell(c, host, named);
    }
}

static void
scan_hosts(struct scan *c, struct span line)
{
    for (size_t i = 0; i < sizeof(host_leads) / sizeof(host_leads[0]); i++) {
        const char *at = find(line, host_leads[i]);

        if (at != NULL) {
            at += strlen(host_leads[i]);
            scan_host(c, (struct span){at, line.n - (size_t)(at - line.at)});
            return;
        }
    }
}

void
evidence_scan(const char *text, size_t n, named_fn *fn, void *arg)
{
    struct scan c = {.fn = fn, .arg = arg};

    while (n > 0 && !c.is_over) {
        const char *end = memchr(text, '\n', n);
        size_t len = end != NULL ? (size_t)(end - text) : n;
        struct span line = {text, len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES};

        line = trim(line);
        scan_paths(&c, line);
        if (!c.is_over) {
            scan_hosts(&c, line);
        }
        len += end != NULL ? 1 : 0;
        text += len;
        n -= len;
    }
}
