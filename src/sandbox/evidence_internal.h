#ifndef SY_SANDBOX_EVIDENCE_INTERNAL_H
#define SY_SANDBOX_EVIDENCE_INTERNAL_H

#include "sandbox/evidence.h"

/* A part of a line. */
struct span {
    const char *at;
    size_t n;
};

/* The first place of `word` in s, letters of either case alike; NULL: nowhere. */
const char *span_find(struct span s, const char *word);
/* The same for a word that no letter or digit is part of on either side. */
const char *span_find_word(struct span s, const char *word);
/* What is before and from `at` on, which lies in s. */
struct span span_before(struct span s, const char *at);
struct span span_from(struct span s, const char *at);
/* Without the white space around it. */
struct span span_trim(struct span s);
bool span_starts(struct span s, const char *with);
/* "/...", "./...", "../..." */
bool span_is_path(struct span s);
/* The one before the end of s. */
struct span span_last_word(struct span s);
/* With names that the coreutils quote for a shell ('a'$'\\n''b') as they are, in quotation marks.
 * `room` has space for as many bytes as s; the result lies there, or is s. */
struct span span_unquote(struct span s, char *room);
/* Letters of either case alike. */
bool span_is_word(struct span s, const char *word);

/* What the words before a name say that was to be done with it (evidence_words.c). */
enum named_intent span_intent(struct span words);
/* "A" to "B", "A" -> "B", "A" => "B": B is written. */
bool span_leads_to(struct span words);
/* Cuts the words before a name without quotation marks off *s, into *words. */
bool span_cut_lead(struct span *s, struct span *words);

/* Longer names are no paths. */
#define EVIDENCE_NAME_BYTES 4096U

/* Longer lines are looked at up to here. */
#define EVIDENCE_LINE_BYTES 8192U

struct scan {
    named_fn *fn;
    void *arg;
    unsigned told;
    bool is_over;
    char name[EVIDENCE_NAME_BYTES];
    char rooms[2][EVIDENCE_LINE_BYTES]; /* of lines that are not as they came */
};

/* Tells one name, unless it can't be one. */
void scan_tell(struct scan *c, struct span s, struct named named);

/* The complaint of a line: what the kernel says when it refuses, as C libraries and languages
 * write it. */
struct complaint {
    int sys;
    struct span text;
};

bool evidence_complaint(struct complaint *ret, struct span line);

/*
 * The paths of a line (evidence_line.c), likeliest first. `complaint` lies in the line, or, where
 * `line` is one before it, nowhere.
 */
#define LINE_NAMES 8
struct line_names {
    struct {
        struct span at;
        enum named_intent intent;
        unsigned rank; /* lower is likelier */
    } v[LINE_NAMES];
    size_t n;
};

/* is_run: the lines before say that something was to be run. */
void evidence_line(struct line_names *ret, struct span line, const struct complaint *complaint,
                   bool is_run);

/* The hosts of a line (evidence_host.c). */
void evidence_hosts(struct scan *c, struct span line);

#endif
