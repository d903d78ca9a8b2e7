/* The words around the names of a line with a complaint. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "sandbox/evidence_internal.h"

/* Words before a name that say what was to be done with it; the last one counts. */
static const struct {
    const char *word;
    enum named_intent intent;
} intents[] = {
    {"copy",          NAMED_READ   },
    {"copying",       NAMED_READ   },
    {"copyfile",      NAMED_READ   },
    {"cannot access", NAMED_READ   },
    {"can't access",  NAMED_READ   },
    {"to access",     NAMED_READ   },
    {"opendir",       NAMED_READ   },
    {"scandir",       NAMED_READ   },
    {"read",          NAMED_READ   },
    {"reading",       NAMED_READ   },
    {"stat",          NAMED_READ   },
    {"spawn",         NAMED_READ   }, /* whoever runs a file reads it */
    {"spawnsync",     NAMED_READ   },
    {"exec",          NAMED_READ   },
    {"execve",        NAMED_READ   },
    {"execute",       NAMED_READ   },
    {"run command",   NAMED_READ   },
    {"move",          NAMED_REMOVED},
    {"moving",        NAMED_REMOVED},
    {"rename",        NAMED_REMOVED},
    {"renaming",      NAMED_REMOVED},
    {"remove",        NAMED_REMOVED},
    {"removing",      NAMED_REMOVED},
    {"unlink",        NAMED_REMOVED},
    {"unlinkat",      NAMED_REMOVED},
    {"rmdir",         NAMED_REMOVED},
    {"delete",        NAMED_REMOVED},
    {"create",        NAMED_WRITTEN},
    {"creating",      NAMED_WRITTEN},
    {"touch",         NAMED_WRITTEN},
    {"mkdir",         NAMED_WRITTEN},
    {"mkstemp",       NAMED_WRITTEN},
    {"write",         NAMED_WRITTEN},
    {"writing",       NAMED_WRITTEN},
    {"append",        NAMED_WRITTEN},
    {"lock",          NAMED_WRITTEN},
    {"truncate",      NAMED_WRITTEN},
    {"temporary",     NAMED_WRITTEN},
    {"output",        NAMED_WRITTEN},
    {"permissions",   NAMED_CHANGED},
    {"ownership",     NAMED_CHANGED},
    {"times",         NAMED_CHANGED},
    {"chmod",         NAMED_CHANGED},
    {"chown",         NAMED_CHANGED},
    {"utime",         NAMED_CHANGED},
};

/* Words that end where the name of a file begins, in fields without quotation marks. */
static const char *const leads[] = {
    "open",   "create", "creating", "mkdir",   "write",    "writing", "file",   "to",
    "append", "remove", "unlink",   "rename",  "renaming", "move",    "copy",   "directory",
    "rmdir",  "chmod",  "chown",    "symlink", "link",     "touch",   "read",   "template",
    "stat",   "lstat",  "truncate", "readdir", "unlinkat", "openat",  "access", "repository",
};

bool
span_is_path(struct span s)
{
    return span_starts(s, "/") || span_starts(s, "./") || span_starts(s, "../");
}

struct span
span_last_word(struct span s)
{
    size_t n = 0;

    s = span_trim(s);
    while (n < s.n && s.at[s.n - 1 - n] != ' ' && s.at[s.n - 1 - n] != '\t') {
        n++;
    }
    return (struct span){s.at + s.n - n, n};
}

bool
span_is_word(struct span s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.at, word, s.n) == 0;
}

enum named_intent
span_intent(struct span words)
{
    enum named_intent intent = NAMED_ANY;
    const char *latest = NULL;

    for (size_t i = 0; i < sizeof(intents) / sizeof(intents[0]); i++) {
        struct span rest = words;
        const char *at = NULL;

        while ((at = span_find_word(rest, intents[i].word)) != NULL) {
            if (latest == NULL || at > latest) {
                latest = at;
                intent = intents[i].intent;
            }
            rest = span_from(rest, at + 1);
        }
    }
    return intent;
}

bool
span_leads_to(struct span words)
{
    struct span word = span_last_word(words);

    /* An opening quotation mark stands right before the name. */
    return span_is_word(word, "to") || span_is_word(word, "->") || span_is_word(word, "=>");
}

bool
span_cut_lead(struct span *s, struct span *words)
{
    struct span rest = *s;
    size_t cut = 0;

    for (size_t i = 0; i < rest.n; i++) {
        struct span head = {rest.at, i};
        bool is_end = rest.at[i] == ' ' && i + 1 < rest.n;

        /* A path may hold such words, too. */
        if (is_end && span_is_path(span_from(rest, rest.at + i + 1))) {
            cut = i + 1;
            break;
        }
        for (size_t k = 0; is_end && k < sizeof(leads) / sizeof(leads[0]); k++) {
            if (span_is_word(span_last_word(head), leads[k])) {
                cut = i + 1;
            }
        }
    }
    if (cut == 0) {
        return false;
    }
    *words = (struct span){rest.at, cut};
    *s = span_trim(span_from(rest, rest.at + cut));
    return s->n > 0;
}

/* One character of $'...'; returns the end of it. */
static const char *
unescape(char *ret, const char *at, const char *end)
{
    static const char letters[] = "abfnrtv";
    static const char meanings[] = "\a\b\f\n\r\t\v";
    unsigned value = 0;
    int digits = 0;

    if (at[0] != '\\' || at + 1 == end) {
        *ret = at[0];
        return at + 1;
    }
    at++;
    for (; digits < 3 && at < end && at[0] >= '0' && at[0] <= '7'; digits++) {
        value = value * 8 + (unsigned)(at++[0] - '0');
    }
    if (digits > 0) {
        *ret = (char)(value & 0xFFU);
        return at;
    }

    const char *letter = strchr(letters, at[0]);

    *ret = at[0];
    if (letter != NULL && at[0] != '\0') {
        *ret = meanings[letter - letters];
    }
    return at + 1;
}

/* One piece of a word, 'a' or $'\n' or \'; returns its end, NULL: there is none. */
static const char *
unquote_piece(char **to, const char *at, const char *end)
{
    bool is_escaped = at + 1 < end && at[0] == '$' && at[1] == '\'';

    if (at + 1 < end && at[0] == '\\' && at[1] == '\'') {
        *(*to)++ = '\'';
        return at + 2;
    }
    if (at == end || (at[0] != '\'' && !is_escaped)) {
        return NULL;
    }
    at += is_escaped ? 2 : 1;
    while (at < end && at[0] != '\'') {
        if (is_escaped) {
            at = unescape((*to)++, at, end);
        } else {
            *(*to)++ = *at++;
        }
    }
    return at < end ? at + 1 : NULL;
}

/* A word of more than one piece into `to`, in one pair of quotation marks; NULL: it is none. */
static const char *
unquote_word(char **to, const char *at, const char *end)
{
    char *made = *to;
    const char *next = at;
    unsigned pieces = 0;

    *made++ = '\'';
    while ((next = unquote_piece(&made, next, end)) != NULL) {
        at = next;
        pieces++;
        *to = pieces > 1 ? made : *to;
    }
    if (pieces < 2) {
        return NULL;
    }
    *(*to)++ = '\'';
    return at;
}

struct span
span_unquote(struct span s, char *room)
{
    const char *end = s.at + s.n;
    char *to = room;

    if (span_find(s, "'$'") == NULL && span_find(s, "'\\''") == NULL) {
        return s; /* nearly always */
    }
    for (const char *at = s.at; at < end;) {
        bool may_open = at[0] == '\'' && (at == s.at || !isalnum((unsigned char)at[-1]));
        const char *next = may_open ? unquote_word(&to, at, end) : NULL;

        if (next == NULL) {
            *to++ = *at++;
        } else {
            at = next;
        }
    }
    return (struct span){room, (size_t)(to - room)};
}
