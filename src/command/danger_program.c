/* What programs that destroy are asked to do. */
#include <string.h>

#include "base/str.h"
#include "command/danger_internal.h"

void
danger_overwrite(struct danger *d, struct words w, const struct script_word *target, bool truncates)
{
    enum target t = danger_target(d, target);
    const char *text = target->text;

    if (t == TARGET_DEVICE) {
        danger_found(d, DANGER_CATASTROPHIC, danger_target_rule(t), w, text, danger_target_why(t));
        return;
    }
    if (str_starts(text, "/dev/") || !danger_has_file(d, target)) {
        return;
    }
    if (truncates && t == TARGET_ORDINARY) {
        danger_found(d, DANGER_DANGEROUS, "file.overwritten", w, text,
                     "a file outside the workspace is overwritten");
    } else if (t == TARGET_ORDINARY || t == TARGET_INSIDE || t == TARGET_UNRESOLVED) {
        danger_found(d, DANGER_NOTED, "file.overwritten", w, text,
                     truncates ? "a file is overwritten" : "a file is added to");
    }
}

/* `-x` somewhere in a bundle of letters. */
static bool
has_letter(const char *word, char letter)
{
    return word[0] == '-' && word[1] != '-' && strchr(word + 1, letter) != NULL;
}

/* `--name`, `--name=...`, or an abbreviation of at least `min` letters. */
static bool
is_long(const char *word, const char *name, size_t min)
{
    if (word[0] != '-' || word[1] != '-') {
        return false;
    }

    size_t len = strcspn(word + 2, "=");

    return len >= min && len <= strlen(name) && strncmp(word + 2, name, len) == 0;
}

/* The first word before `--` that is the letter or the name; NULL: none is. */
static const char *
find_option(struct words w, char letter, const char *name, size_t min)
{
    for (size_t i = 1; i < w.n && !str_eq(w.v[i].text, "--"); i++) {
        const char *word = w.v[i].text;

        if ((letter != '\0' && has_letter(word, letter)) ||
            (name != NULL && is_long(word, name, min))) {
            return word;
        }
    }
    return NULL;
}

/* Steps through the operands: *i is the next word to look at, *ended whether -- was seen. */
static const struct script_word *
next_operand(struct words w, size_t *i, bool *ended)
{
    while (*i < w.n) {
        const struct script_word *word = &w.v[(*i)++];

        if (!*ended && str_eq(word->text, "--")) {
            *ended = true;
        } else if (*ended || word->text[0] != '-' || word->text[1] == '\0') {
            return word;
        }
    }
    return NULL;
}

/* A finding for each operand that must not be lost, of the kinds up to `last`. */
static void
judge_targets(struct danger *d, struct words w, bool only_literal, enum target last)
{
    bool ended = false;
    size_t i = 1;

    for (const struct script_word *o = next_operand(w, &i, &ended); o != NULL;
         o = next_operand(w, &i, &ended)) {
        enum target t = danger_target(d, o);
        bool counts = t <= last && !(only_literal && (o->flags & WORD_DYNAMIC) != 0);

        if (counts && danger_target_rule(t) != NULL) {
            danger_found(d, DANGER_CATASTROPHIC, danger_target_rule(t), w, o->text,
                         danger_target_why(t));
        }
    }
}

static void
judge_rm(struct danger *d, struct words w)
{
    const char *force = find_option(w, 'f', "force", 1);
    bool is_recursive =
        find_option(w, 'r', "recursive", 1) != NULL || find_option(w, 'R', NULL, 0) != NULL;
    bool may_be = false;

    for (size_t i = 1; i < w.n; i++) {
        may_be = may_be || (w.v[i].flags & WORD_SPLITS) != 0;
    }
    if (is_recursive || may_be) {
        judge_targets(d, w, !is_recursive, TARGET_ROOT);
    }
    if (force != NULL) {
        danger_found(d, DANGER_DANGEROUS, "rm.forced", w, force, "it removes without asking");
    }
}

static const struct script_word here = {.text = ".", .len = 1};

/* Start points of find that are a catastrophe, when everything below them goes. */
static void
judge_find_roots(struct danger *d, struct words w)
{
    size_t i = 1;
    bool has_root = false;

    while (i < w.n && judge_in_list("-H -L -P", w.v[i].text)) {
        i++;
    }
    for (; i < w.n && strchr("-(!", w.v[i].text[0]) == NULL; i++) {
        (void)danger_targets(d, w, (struct words){&w.v[i], 1});
        has_root = true;
    }
    if (!has_root) {
        (void)danger_targets(d, w, (struct words){&here, 1});
    }
}

/* The words of -exec up to its end; *i is moved there. */
static struct words
exec_words(struct words w, size_t *i)
{
    struct words inner = words_from(w, *i + 1);
    size_t n = 0;

    while (n < inner.n && !str_eq(inner.v[n].text, ";") &&
           !(str_eq(inner.v[n].text, "+") && n > 0 && str_eq(inner.v[n - 1].text, "{}"))) {
        n++;
    }
    *i += n + 1;
    inner.n = n;
    return inner;
}

static bool
judge_find_exec(struct danger *d, struct words w, struct words inner)
{
    char name[PROGRAM_NAME_MAX];
    bool removes = false;

    if (inner.n == 0) {
        return false;
    }

    judge_program_name(name, danger_unwrap(d, inner).v[0].text, d->world->is_windows);
    removes = judge_in_list("rm unlink shred", name);
    if (removes) {
        danger_found(d, DANGER_DANGEROUS, "find.exec-rm", w, name,
                     "it removes whatever find finds");
    }
    d->layers++;
    danger_words(d, inner);
    d->layers--;
    return removes;
}

static void
judge_find(struct danger *d, struct words w)
{
    static const char filters[] =
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -newer -mtime -mmin "
        "-atime -amin -ctime -cmin -size -empty -user -group -perm -inum -links -lname -samefile "
        "-newermt -uid -gid -nouser -nogroup";
    bool has_filter = false;
    bool removes = false;

    for (size_t i = 1; i < w.n && d->rc == SY_E_OK; i++) {
        const char *word = w.v[i].text;

        has_filter = has_filter || judge_in_list(filters, word);
        if (str_eq(word, "-delete")) {
            danger_found(d, DANGER_DANGEROUS, "find.delete", w, word,
                         "it removes whatever find finds");
            removes = true;
        } else if (judge_in_list("-exec -execdir -ok -okdir", word)) {
            removes = judge_find_exec(d, w, exec_words(w, &i)) || removes;
        } else if (judge_in_list("-fprint -fprint0 -fprintf -fls", word) && i + 1 < w.n) {
            danger_overwrite(d, w, &w.v[i + 1], true);
        }
    }
    if (removes && !has_filter) {
        judge_find_roots(d, w);
    }
}

static void
judge_dd(struct danger *d, struct words w)
{
    for (size_t i = 1; i < w.n; i++) {
        if (str_starts(w.v[i].text, "of=")) {
            const struct script_word target = {w.v[i].text + 3, w.v[i].len - 3, w.v[i].flags};

            danger_overwrite(d, w, &target, true);
        }
    }
}

static void
judge_format(struct danger *d, struct words w)
{
    if (find_option(w, 'l', "list", 2) == NULL) {
        judge_targets(d, w, true, TARGET_DEVICE);
        danger_found(d, DANGER_DANGEROUS, "disk.format", w, NULL, "it destroys what a disk holds");
    }
}

static void
judge_shred(struct danger *d, struct words w)
{
    judge_targets(d, w, true, TARGET_DEVICE);
    danger_found(d, DANGER_DANGEROUS, "shred", w, NULL, "it destroys what files hold");
}

static void
judge_truncate(struct danger *d, struct words w)
{
    bool ended = false;
    size_t i = 1;

    for (size_t k = 1; k + 1 < w.n; k++) {
        const char *size = str_eq(w.v[k].text, "-s") ? w.v[k + 1].text : w.v[k].text;

        if (size[0] == '+' || str_starts(size, "-s+") || str_starts(size, "--size=+")) {
            return; /* it only grows */
        }
    }
    for (const struct script_word *o = next_operand(w, &i, &ended); o != NULL;
         o = next_operand(w, &i, &ended)) {
        bool is_size = i >= 2 && judge_in_list("-s --size -r --reference", w.v[i - 2].text);

        if (!is_size && danger_target(d, o) == TARGET_DEVICE) {
            danger_overwrite(d, w, o, true);
        } else if (!is_size && danger_has_file(d, o)) {
            danger_found(d, DANGER_DANGEROUS, "truncate", w, o->text, "it cuts off what it holds");
        }
    }
}

static void
judge_tee(struct danger *d, struct words w)
{
    bool truncates = find_option(w, 'a', "append", 1) == NULL;
    bool ended = false;
    size_t i = 1;

    for (const struct script_word *o = next_operand(w, &i, &ended); o != NULL;
         o = next_operand(w, &i, &ended)) {
        danger_overwrite(d, w, o, truncates);
    }
}

/* mv and cp: the last operand is written over, and mv's others are gone. */
static void
judge_move(struct danger *d, const char *name, struct words w)
{
    const struct script_word *last = NULL;
    bool asks = find_option(w, 'n', "no-clobber", 4) != NULL ||
                find_option(w, 'i', "interactive", 1) != NULL ||
                find_option(w, 'b', "backup", 1) != NULL;
    bool ended = false;
    size_t i = 1;

    for (const struct script_word *o = next_operand(w, &i, &ended); o != NULL;
         o = next_operand(w, &i, &ended)) {
        bool is_source = last != NULL && str_eq(name, "mv");

        if (is_source && danger_target(d, last) != TARGET_UNRESOLVED) {
            (void)danger_targets(d, w, (struct words){last, 1});
        }
        last = o;
    }
    if (last == NULL) {
        return;
    }
    if (str_eq(last->text, "/dev/null") && str_eq(name, "mv")) {
        danger_found(d, DANGER_DANGEROUS, "mv.null", w, last->text, "what goes there is lost");
    } else if (!asks) {
        danger_overwrite(d, w, last, true);
    }
}

static void
judge_recursive_mode(struct danger *d, struct words w)
{
    if (find_option(w, 'R', "recursive", 1) != NULL) {
        bool ended = false;
        size_t i = 1;

        for (const struct script_word *o = next_operand(w, &i, &ended); o != NULL;
             o = next_operand(w, &i, &ended)) {
            enum target t = danger_target(d, o);

            if (t == TARGET_ROOT || t == TARGET_HOME) {
                danger_found(d, DANGER_CATASTROPHIC, danger_target_rule(t), w, o->text,
                             danger_target_why(t));
            }
        }
    }
}

static void
judge_rsync(struct danger *d, struct words w)
{
    const char *option = find_option(w, '\0', "delete", 3);

    for (size_t i = 1; i < w.n && option == NULL; i++) {
        option = str_starts(w.v[i].text, "--delete-") ? w.v[i].text : NULL;
    }
    if (option != NULL) {
        (void)danger_targets(d, w, (struct words){&w.v[w.n - 1], 1});
        danger_found(d, DANGER_DANGEROUS, "rsync.delete", w, option,
                     "it removes what the other side has not");
    }
}

static void
judge_kill(struct danger *d, struct words w)
{
    if (w.n > 2 && str_eq(w.v[w.n - 1].text, "-1")) {
        danger_found(d, DANGER_DANGEROUS, "kill.all", w, "-1", "it ends every process of yours");
    }
}

static void
judge_power(struct danger *d, struct words w)
{
    danger_found(d, DANGER_DANGEROUS, "machine.power", w, NULL, "it stops the machine");
}

static void
judge_crontab(struct danger *d, struct words w)
{
    const char *option = find_option(w, 'r', NULL, 0);

    if (option != NULL) {
        danger_found(d, DANGER_DANGEROUS, "crontab.remove", w, option,
                     "it removes all that is planned");
    }
}

/* Our own program: what a person answers, and what they have laid down. */
static void
judge_shellyard(struct danger *d, struct words w)
{
    const char *verb = w.n > 2 ? w.v[1].text : "";
    const char *sub = w.n > 2 ? w.v[2].text : "";

    if (str_eq(verb, "approvals") && !judge_in_list("list show", sub)) {
        danger_found(d, DANGER_DANGEROUS, "shellyard.answers", w, sub,
                     "it would answer in the person's place");
    } else if (str_eq(verb, "rules") && judge_in_list("remove import", sub)) {
        danger_found(d, DANGER_DANGEROUS, "shellyard.rules", w, sub,
                     "it changes the person's rules");
    }
}

static const struct {
    const char *names;
    void (*judge)(struct danger *d, struct words w);
} programs[] = {
    {"rm",                                                                      judge_rm            },
    {"find gfind",                                                              judge_find          },
    {"dd",                                                                      judge_dd            },
    {"mkfs mke2fs mkswap mkdosfs wipefs blkdiscard fdisk sfdisk sgdisk parted", judge_format        },
    {"shred srm",                                                               judge_shred         },
    {"truncate",                                                                judge_truncate      },
    {"tee",                                                                     judge_tee           },
    {"chmod chown chgrp setfacl chattr",                                        judge_recursive_mode},
    {"rsync",                                                                   judge_rsync         },
    {"kill",                                                                    judge_kill          },
    {"shutdown reboot halt poweroff",                                           judge_power         },
    {"crontab",                                                                 judge_crontab       },
    {"shellyard",                                                               judge_shellyard     },
    {"git",                                                                     danger_git          },
};

void
danger_program(struct danger *d, const char *name, struct words w)
{
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (judge_in_list(programs[i].names, name)) {
            programs[i].judge(d, w);
            return;
        }
    }
    if (str_starts(name, "mkfs.")) {
        judge_format(d, w);
    } else if (judge_in_list("mv cp", name)) {
        judge_move(d, name, w);
    } else {
        danger_windows(d, name, w);
    }
}
