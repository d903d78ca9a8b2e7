/* Which objects a text complains about. Pure: a fuzzer gives it anything. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "sandbox/evidence_internal.h"

/* Of those between a complaint and the line that it is the cause of. */
#define CONTEXT_LINES 4U

static const struct {
    const char *text;
    int sys;
    bool is_word;
} complaints[] = {
    {"permission denied",         EACCES, false},
    {"permissiondenied",          EACCES, false},
    {"operation not permitted",   EPERM,  false},
    {"read-only file system",     EROFS,  false},
    {"readonlyfilesystem",        EROFS,  false},
    {"cross-device link",         EXDEV,  false},
    {"device or resource busy",   EBUSY,  false},
    {"resource busy",             EBUSY,  false},
    {"file exists",               EEXIST, false},
    {"is a directory",            EEXIST, false}, /* a name that is kept by one */
    {"no such file or directory", ENOENT, false},
    {"access denied",             EACCES, false},
    {"accessdenied",              EACCES, false},
    {"is denied",                 EACCES, false},
    {"not permitted",             EPERM,  false},
    {"EACCES",                    EACCES, true },
    {"EPERM",                     EPERM,  true },
    {"EROFS",                     EROFS,  true },
    {"EXDEV",                     EXDEV,  true },
    {"EBUSY",                     EBUSY,  true },
};

/* What programs say instead of the kernel's words: a complaint as soon as a whole path is named. */
static const char *const vague[] = {
    "cannot create",    "can't create",       "could not create",   "couldn't create",
    "unable to create", "failed to create",   "error creating",     "cannot write to",
    "can't write to",   "could not write to", "unable to write to", "failed to write to",
    "not writable",     "not a writable",     "not writeable",
};

const char *
span_find(struct span s, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= s.n; i++) {
        if (strncasecmp(s.at + i, word, n) == 0) {
            return s.at + i;
        }
    }
    return NULL;
}

const char *
span_find_word(struct span s, const char *word)
{
    size_t n = strlen(word);
    const char *at = NULL;

    while ((at = span_find(s, word)) != NULL) {
        bool begins = at == s.at || !isalnum((unsigned char)at[-1]);
        bool ends = at + n == s.at + s.n || !isalnum((unsigned char)at[n]);

        if (begins && ends) {
            return at;
        }
        s = span_from(s, at + 1);
    }
    return NULL;
}

struct span
span_before(struct span s, const char *at)
{
    return (struct span){s.at, (size_t)(at - s.at)};
}

struct span
span_from(struct span s, const char *at)
{
    return (struct span){at, s.n - (size_t)(at - s.at)};
}

struct span
span_trim(struct span s)
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

bool
span_starts(struct span s, const char *with)
{
    size_t n = strlen(with);

    return n <= s.n && memcmp(s.at, with, n) == 0;
}

void
scan_tell(struct scan *c, struct span s, struct named named)
{
    if (s.n == 0 || s.n >= sizeof(c->name) || memchr(s.at, '\0', s.n) != NULL || c->is_over) {
        return;
    }
    memcpy(c->name, s.at, s.n);
    c->name[s.n] = '\0';
    named.text = c->name;
    c->told++;
    c->is_over = !c->fn(c->arg, &named) || c->told == EVIDENCE_NAMES;
}

bool
evidence_complaint(struct complaint *ret, struct span line)
{
    for (size_t i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++) {
        const char *at = complaints[i].is_word ? span_find_word(line, complaints[i].text)
                                               : span_find(line, complaints[i].text);

        if (at != NULL) {
            ret->sys = complaints[i].sys;
            ret->text = (struct span){at, strlen(complaints[i].text)};
            return true;
        }
    }
    return false;
}

static bool
find_vague(struct complaint *ret, struct span line)
{
    for (size_t i = 0; i < sizeof(vague) / sizeof(vague[0]); i++) {
        const char *at = span_find_word(line, vague[i]);

        if (at != NULL) {
            *ret = (struct complaint){
                .sys = EACCES, .text = {at, strlen(vague[i])}
            };
            return true;
        }
    }
    return false;
}

/* A line that tells of a failure whose cause may come in one of the next lines. */
static bool
is_failure(struct span line)
{
    static const char *const words[] = {"cannot", "can't",  "could not", "couldn't",
                                        "failed", "unable", "error"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (span_find_word(line, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Is there nothing in it but the complaint, with a number before or behind? */
static bool
is_bare(struct span line, const struct complaint *complaint)
{
    struct span before = span_trim(span_before(line, complaint->text.at));
    struct span after = span_trim(span_from(line, complaint->text.at + complaint->text.n));

    for (size_t i = 0; i < before.n; i++) {
        if (!isdigit((unsigned char)before.at[i]) && before.at[i] != ':') {
            return false;
        }
    }
    return after.n <= 1 || span_starts(after, "(os error ") || span_starts(after, "(errno");
}

/* The last lines, as far as a complaint may be about them. */
struct context {
    struct span failure; /* a complaint of its own, if a vague one, unless its cause follows */
    unsigned number;     /* of that line */
    unsigned age;
    unsigned run_lines; /* for how many more lines a program was to be run */
};

/* Where a traceback of Python says that it was about to run something. */
static void
note_run(struct context *context, struct span line)
{
    if (span_find(line, "in _execute_child") != NULL) {
        context->run_lines = CONTEXT_LINES;
    } else if (context->run_lines > 0) {
        context->run_lines--;
    }
}

static void
tell_all(struct scan *c, const struct line_names *names, int sys, unsigned number)
{
    for (size_t i = 0; i < names->n; i++) {
        scan_tell(c, names->v[i].at,
                  (struct named){.intent = names->v[i].intent, .sys = sys, .line = number});
    }
}

/* No cause has come for the last failure: what it says by itself. */
static void
end_failure(struct scan *c, struct context *context)
{
    struct line_names names = {.n = 0};
    struct complaint complaint;

    if (context->failure.n > 0 && find_vague(&complaint, context->failure)) {
        evidence_line(&names, context->failure, &complaint, false);
    }
    for (size_t i = 0; i < names.n; i++) {
        enum named_intent intent = names.v[i].intent;

        if (span_starts(names.v[i].at, "/")) {
            scan_tell(c, names.v[i].at,
                      (struct named){.intent = intent == NAMED_ANY ? NAMED_WRITTEN : intent,
                                     .sys = complaint.sys,
                                     .line = context->number});
        }
    }
    context->failure.n = 0;
}

static void
scan_paths(struct scan *c, struct span line, unsigned number, struct context *context)
{
    struct line_names names;
    struct complaint complaint;

    note_run(context, line);
    if (line.n > 0 && ++context->age > CONTEXT_LINES) {
        end_failure(c, context);
    }
    if (!evidence_complaint(&complaint, line)) {
        if (is_failure(line) || find_vague(&complaint, line)) {
            end_failure(c, context);
            context->failure = line;
            context->number = number;
            context->age = 0;
        }
        return;
    }
    evidence_line(&names, line, &complaint, context->run_lines > 0);
    if (names.n == 0 && context->failure.n > 0 && is_bare(line, &complaint)) {
        complaint.text = (struct span){NULL, 0};
        evidence_line(&names, context->failure, &complaint, false);
        number = context->number;
        context->failure.n = 0;
    }
    tell_all(c, &names, complaint.sys, number);
}

void
evidence_scan(const char *text, size_t n, named_fn *fn, void *arg)
{
    struct scan c = {.fn = fn, .arg = arg};
    struct context context = {0};

    for (unsigned number = 1; n > 0 && !c.is_over; number++) {
        const char *end = memchr(text, '\n', n);
        size_t len = end != NULL ? (size_t)(end - text) : n;
        struct span line = {text, len < EVIDENCE_LINE_BYTES ? len : EVIDENCE_LINE_BYTES};

        /* A failure that is kept may lie in one of the rooms. */
        line = span_unquote(span_trim(line), c.rooms[context.failure.at == c.rooms[0] ? 1 : 0]);
        scan_paths(&c, line, number, &context);
        if (!c.is_over) {
            evidence_hosts(&c, line);
        }
        len += end != NULL ? 1 : 0;
        text += len;
        n -= len;
    }
    end_failure(&c, &context);
}
