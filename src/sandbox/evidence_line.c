/*
 * The paths that a line with a complaint names, and what was to be done with each, as far as its
 * words say.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "sandbox/evidence_internal.h"

/* How likely a name is the object: the words say what was to be done with it; the form of the
 * line; it is quoted; it looks like a path; it is a source or the program itself. */
enum rank { RANK_INTENT, RANK_FORM, RANK_QUOTED, RANK_WORD, RANK_SOURCE };

struct line {
    struct span text;
    const struct complaint *complaint;
    struct line_names *names;
};

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

/* What the words between the name before and this one say, the complaint aside. */
static enum named_intent
intent_of(const struct line *l, struct span words)
{
    struct span text = l->complaint->text;
    enum named_intent intent = NAMED_ANY;

    if (text.n == 0 || text.at < words.at || text.at + text.n > words.at + words.n) {
        return span_intent(words);
    }
    intent = span_intent(span_from(words, text.at + text.n));
    return intent != NAMED_ANY ? intent : span_intent(span_before(words, text.at));
}

static bool
overlaps(struct span a, struct span b)
{
    return a.at < b.at + b.n && b.at < a.at + a.n;
}

/* "ptrace: Operation not permitted": calls that no file is the object of. */
static bool
is_call_name(struct span name)
{
    static const char *const calls[] = {
        "ptrace",    "socket",      "socketpair",  "bind",  "connect", "setuid", "setgid",
        "setgroups", "sethostname", "setpriority", "clone", "unshare", "reboot", NULL};

    for (const char *const *call = calls; *call != NULL; call++) {
        if (span_is_word(name, *call)) {
            return true;
        }
    }
    return false;
}

static void
add(struct line *l, struct span name, enum named_intent intent, unsigned rank)
{
    struct line_names *names = l->names;
    size_t i = 0;

    struct complaint complaint;

    if (name.n == 0 || names->n == LINE_NAMES || is_call_name(name) ||
        evidence_complaint(&complaint, name)) {
        return;
    }
    for (i = 0; i < names->n; i++) {
        if (overlaps(name, names->v[i].at)) {
            return;
        }
    }
    if (intent == NAMED_READ) {
        rank = RANK_SOURCE;
    } else if (intent != NAMED_ANY) {
        rank = RANK_INTENT;
    }
    /* Behind those of the same rank, but what is written comes before what goes away, and of
     * quoted names the last one is the likeliest. */
    for (i = names->n; i > 0; i--) {
        bool is_before = rank < names->v[i - 1].rank ||
                         (rank == names->v[i - 1].rank &&
                          (rank == RANK_QUOTED ||
                           (intent == NAMED_WRITTEN && names->v[i - 1].intent == NAMED_REMOVED)));

        if (!is_before) {
            break;
        }
        names->v[i] = names->v[i - 1];
    }
    names->v[i].at = name;
    names->v[i].intent = intent;
    names->v[i].rank = rank;
    names->n++;
}

/*
 * The second of two names. Links are made by their second name, unless the line begins with
 * it ("failed to create symbolic link 'B' -> 'A'").
 */
static enum named_intent
second_intent(const struct line *l, struct span words, enum named_intent first)
{
    if (!span_leads_to(words)) {
        return intent_of(l, words);
    }
    return first == NAMED_WRITTEN && !span_is_word(span_last_word(words), "to") ? NAMED_READ
                                                                                : NAMED_WRITTEN;
}

/* Pairs of quotation marks; an apostrophe within a word opens none. */
static const struct {
    const char *open;
    const char *close;
} quotes[] = {
    {"'",            "'"           },
    {"\"",           "\""          },
    {"`",            "`"           },
    {"`",            "'"           },
    {"\xe2\x80\x98", "\xe2\x80\x99"},
    {"\xe2\x80\x9c", "\xe2\x80\x9d"},
};

#define QUOTES (sizeof(quotes) / sizeof(quotes[0]))

/* Where the quotation that is opened at `at` by pair q ends; 0: nowhere. */
static size_t
quote_end(struct span s, size_t at, size_t q)
{
    size_t from = at + strlen(quotes[q].open);
    size_t n = strlen(quotes[q].close);

    for (size_t i = from; i + n <= s.n; i++) {
        if (span_starts(span_from(s, s.at + i), quotes[q].close) &&
            (i + n == s.n || !isalnum((unsigned char)s.at[i + n]))) {
            return i > from ? i : 0;
        }
    }
    return 0;
}

/* What programs quote that is no file: threads, code, the complaint itself. */
static bool
is_quoted_name(struct span name, struct span before, bool is_code)
{
    struct span word = span_last_word(before);
    bool is_function = word.n >= 2 && strncmp(word.at + word.n - 2, "in", 2) == 0;

    return !span_is_word(word, "thread") && !is_function && span_find(name, "::") == NULL &&
           span_find(name, "(") == NULL &&
           (!is_code || memchr(name.at, '/', name.n) != NULL ||
            memchr(name.at, '.', name.n) != NULL);
}

/* The names in quotation marks. */
static void
add_quoted(struct line *l)
{
    struct span s = l->text;
    enum named_intent first = NAMED_ANY;
    size_t from = 0; /* the end of the name before */
    bool is_second = false;
    size_t i = 0;

    while (i < s.n) {
        size_t end = 0;
        size_t q = 0;

        for (; q < QUOTES && end == 0; q++) {
            bool may_open = i == 0 || !isalnum((unsigned char)s.at[i - 1]);

            end = may_open && span_starts(span_from(s, s.at + i), quotes[q].open)
                      ? quote_end(s, i, q)
                      : 0;
        }
        if (end == 0) {
            i++;
            continue;
        }
        q--;

        size_t open = i + strlen(quotes[q].open);
        struct span name = {s.at + open, end - open};
        struct span words = {s.at + from, i - from};

        if (is_quoted_name(name, words, quotes[q].close[0] == '`')) {
            enum named_intent intent =
                is_second ? second_intent(l, words, first) : intent_of(l, words);

            add(l, name, !is_second && span_leads_to(words) ? NAMED_WRITTEN : intent, RANK_QUOTED);
            first = intent;
            is_second = true;
        }
        i = end + strlen(quotes[q].close);
        from = i;
    }
}

/* Words that look like paths, without what stands around them. */
static void
add_words(struct line *l)
{
    static const char around[] = "()[]{}<>,;:'\"`=";
    struct span s = l->text;
    size_t i = 0;

    while (i < s.n) {
        size_t n = 0;

        while (i + n < s.n && s.at[i + n] != ' ' && s.at[i + n] != '\t') {
            n++;
        }

        struct span word = {s.at + i, n};
        bool is_first = i == 0;
        struct span words = {s.at, i};

        i += n + 1;
        while (word.n > 0 && strchr(around, word.at[0]) != NULL) {
            word.at++;
            word.n--;
        }
        while (word.n > 0 &&
               (strchr(around, word.at[word.n - 1]) != NULL || word.at[word.n - 1] == '\r')) {
            word.n--;
        }
        if (span_is_path(word) && has_name(word)) {
            add(l, word,
                is_first               ? NAMED_ANY
                : span_leads_to(words) ? NAMED_WRITTEN
                                       : intent_of(l, words),
                is_first ? RANK_SOURCE : RANK_WORD);
        }
    }
}

/* Cuts the next field, up to ": ", from *s. */
static struct span
next_field(struct span *s)
{
    struct span field = *s;
    const char *end = span_find(*s, ": ");

    if (end == NULL) {
        s->n = 0;
        if (field.n > 0 && field.at[field.n - 1] == ':') {
            field.n--;
        }
        return span_trim(field);
    }
    field.n = (size_t)(end - s->at);
    s->n -= field.n + 2;
    s->at = end + 2;
    return span_trim(field);
}

/* "line 3" or "3": what is before it is the script's name. */
static bool
is_line_number(struct span s)
{
    if (s.n > 5 && span_starts(s, "line ")) {
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

/* "rename A to B", "rename A B", "copy template A to B" without quotation marks. */
static bool
add_pair(struct line *l, struct span field)
{
    static const char *const verbs[] = {"template ", "rename ", "renaming ", "move ",
                                        "copy ",     "link ",   "symlink "};
    static const char *const between[] = {" to ", " -> ", " => ", " "};

    for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
        const char *at = span_find(field, verbs[v]);

        if (at == NULL || (at != field.at && at[-1] != ' ')) {
            continue;
        }
        struct span words = span_before(field, at + strlen(verbs[v]));
        struct span rest = span_trim(span_from(field, at + strlen(verbs[v])));

        for (size_t b = 0; b < sizeof(between) / sizeof(between[0]); b++) {
            const char *mid = span_find(rest, between[b]);

            if (mid == NULL) {
                continue;
            }
            struct span second = span_trim(span_from(rest, mid + strlen(between[b])));

            if (b == 3 && memchr(second.at, ' ', second.n) != NULL) {
                continue;
            }
            add(l, span_before(rest, mid), intent_of(l, words), RANK_FORM);
            add(l, second, NAMED_WRITTEN, RANK_FORM);
            return true;
        }
    }
    return false;
}

/* "fopen(PATH)" */
static bool
add_argument(struct line *l, struct span field)
{
    const char *open = memchr(field.at, '(', field.n);

    if (open == NULL || field.at[field.n - 1] != ')' || memchr(field.at, ' ', field.n) != NULL) {
        return false;
    }

    struct span inner = span_from(field, open + 1);

    inner.n--;
    add(l, inner, NAMED_ANY, RANK_FORM);
    return true;
}

/* "PATH - open (13", as apt goes on before the complaint: the path alone. */
static struct span
without_call(struct span field)
{
    const char *call = span_find(field, " - ");
    size_t n = field.n;

    while (n > 0 && isdigit((unsigned char)field.at[n - 1])) {
        n--;
    }
    return call != NULL && n < field.n && n > 1 && field.at[n - 1] == '(' && field.at[n - 2] == ' '
               ? span_before(field, call)
               : field;
}

/* The name, with the words before it, if there are any. */
static void
add_field(struct line *l, struct span field)
{
    struct span words = {field.at, 0};

    field = without_call(field);

    if (add_pair(l, field) || add_argument(l, field)) {
        return;
    }
    if (!span_is_path(field)) {
        (void)span_cut_lead(&field, &words);
    }
    if (span_is_path(field) || memchr(field.at, ' ', field.n) == NULL) {
        add(l, field, span_leads_to(words) ? NAMED_WRITTEN : intent_of(l, words), RANK_FORM);
    }
}

/* The name of an exception, a call or a thing that failed rather than a file. */
static bool
is_act(struct span s)
{
    static const char *const acts[] = {"cannot ", "can't ", "could not ", "couldn't ",
                                       "failed to "};
    struct span words = {NULL, 0};

    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (s.n > strlen(acts[i]) && strncasecmp(s.at, acts[i], strlen(acts[i])) == 0) {
            struct span rest = s;

            return !span_cut_lead(&rest, &words) || span_is_word(rest, "stream");
        }
    }
    return false;
}

/* The field with the complaint in it: "PATH (Permission denied)". */
static bool
add_bracketed(struct line *l, struct span field, struct span before)
{
    const char *bracket = span_find(field, " (");
    bool is_exception = before.n > 0 && (span_find(before, "exception") != NULL ||
                                         span_find(before, "error") != NULL);

    if (bracket == NULL || bracket > l->complaint->text.at ||
        (!span_is_path(field) && !is_exception)) {
        return false;
    }
    add(l, span_before(field, bracket), NAMED_ANY, RANK_FORM);
    return true;
}

/*
 * "PROGRAM: line 1: PATH: COMPLAINT": the field before the complaint is a name, with spaces or
 * not. "tar: PATH: Cannot open: COMPLAINT", "zsh: COMPLAINT: PATH".
 */
static void
add_fields(struct line *l)
{
    struct span rest = l->text;
    struct span earlier = {NULL, 0};
    struct span before = {NULL, 0};
    unsigned fields = 0;

    while (rest.n > 0) {
        struct span field = next_field(&rest);

        if (!overlaps(field, l->complaint->text)) {
            earlier = before;
            before = field;
            fields++;
            continue;
        }
        if (add_bracketed(l, field, before)) {
            return;
        }
        if (rest.n > 0 && span_starts(l->text, "zsh")) {
            add(l, span_trim(rest), NAMED_ANY, RANK_FORM);
            return;
        }
        if (before.n > 0 && is_act(before) && earlier.n > 0 && fields > 2) {
            if (!add_argument(l, earlier)) {
                add(l, earlier, intent_of(l, before), RANK_FORM);
            }
            return;
        }
        if (before.n == 0 || is_line_number(before) || (fields < 2 && !span_is_path(before))) {
            struct span words;
            struct span only = before;

            /* "open PATH: COMPLAINT" */
            if (before.n > 0 && fields == 1 && span_cut_lead(&only, &words)) {
                add_field(l, before);
            }
            return;
        }
        add_field(l, before);
        return;
    }
}

/* A script or a program of which the rest of the line speaks is not what it complains about. */
static void
drop_speaker(struct line *l)
{
    struct line_names *names = l->names;
    struct span rest = l->text;
    struct span first = next_field(&rest);
    size_t n = names->n;

    if (n < 1 || names->v[n - 1].rank != RANK_SOURCE || names->v[n - 1].at.at != first.at) {
        return;
    }
    /* "SHELL: line 1: ..." speaks of its script. */
    if (is_line_number(next_field(&rest))) {
        names->n--;
        return;
    }
    if (n < 2) {
        return;
    }
    /* "PATH: openFile: permission denied": the other one is the name of a call. */
    if (n == 2 && names->v[0].intent == NAMED_ANY && names->v[0].rank == RANK_FORM) {
        for (size_t i = 0; i < names->v[0].at.n; i++) {
            if (!isalpha((unsigned char)names->v[0].at.at[i])) {
                names->n--;
                return;
            }
        }
        return;
    }
    names->n--;
}

/* Who says the line: "PROGRAM: ...", or a builtin, "SHELL: line 1: BUILTIN: ...". */
static struct span
find_speaker(struct span line)
{
    struct span first = next_field(&line);

    return is_line_number(next_field(&line)) ? next_field(&line) : first;
}

/* Is the line by one of these programs, under whatever path? */
static bool
is_said_by(struct span line, const char *const *programs)
{
    struct span first = find_speaker(line);

    for (size_t i = first.n; i > 0; i--) {
        if (first.at[i - 1] == '/') {
            first = span_from(first, first.at + i);
            break;
        }
    }
    for (; *programs != NULL; programs++) {
        if (span_is_word(first, *programs)) {
            return true;
        }
    }
    return false;
}

/* Of these a path is where they act, and no right to write it lets them. */
static const char *const machine_programs[] = {
    "mount",   "umount",  "chroot",   "swapon", "swapoff", "pivot_root",
    "unshare", "nsenter", "modprobe", "insmod", "rmmod",   NULL,
};

/* What these are refused is mostly no file but an act upon a process or the machine; a file that
 * they mean has a directory. */
static const char *const act_programs[] = {
    "kill",    "pkill",  "killall",  "renice", "nice",   "ionice", "chrt",
    "taskset", "ulimit", "prlimit",  "strace", "ltrace", "gdb",    "perf",
    "date",    "dmesg",  "hostname", "ping",   "ip",     NULL,
};

/* What these can't open is what they could not run, or read. */
static const char *const runners[] = {"make", "gmake", "xargs", NULL};

static void
drop_words(struct line_names *names)
{
    size_t n = 0;

    for (size_t i = 0; i < names->n; i++) {
        if (memchr(names->v[i].at.at, '/', names->v[i].at.n) != NULL) {
            names->v[n++] = names->v[i];
        }
    }
    names->n = n;
}

static void
take_as_read(struct line_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        names->v[i].intent = names->v[i].intent == NAMED_ANY ? NAMED_READ : names->v[i].intent;
    }
}

void
evidence_line(struct line_names *ret, struct span line, const struct complaint *complaint,
              bool is_run)
{
    struct line l = {.text = line, .complaint = complaint, .names = ret};

    ret->n = 0;
    if (is_said_by(line, machine_programs)) {
        return;
    }
    add_quoted(&l);
    if (ret->n == 0 || ret->v[0].intent == NAMED_ANY) {
        if (complaint->text.n > 0) {
            add_fields(&l);
        } else {
            struct span rest = line;
            struct span last = next_field(&rest);

            while (rest.n > 0) {
                last = next_field(&rest);
            }
            add_field(&l, last);
        }
    }
    add_words(&l);
    drop_speaker(&l);
    if (is_said_by(line, act_programs)) {
        drop_words(ret);
    }
    if (is_run || is_said_by(line, runners)) {
        take_as_read(ret);
    }
}
