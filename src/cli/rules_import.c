#include "approval/rules_import.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/edit.h"
#include "cli/rules.h"

/* What one import works on. */
struct import {
    struct cli_rules_place place;
    struct rules own;      /* the user's file, as it is */
    struct rules imported; /* the file that is imported */
    struct buf known;      /* `own` written out */
    struct buf rules;      /* entries of each section that `own` has not */
    struct buf programs;
    struct buf network;
    size_t added;
    size_t left_out; /* that are there already */
};

static void
import_fini(struct import *im)
{
    cli_rules_place_fini(&im->place);
    rules_fini(&im->own);
    rules_fini(&im->imported);
    buf_fini(&im->known);
    buf_fini(&im->rules);
    buf_fini(&im->programs);
    buf_fini(&im->network);
}

static enum sy_code
read_imported(struct import *im, const char *path, const struct rules_import_options *options,
              struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_RULES_FILE};
    enum sy_code rc = fd_read_file(path, &text, err);
    const struct place_text in = {.name = path, .text = buf_view(&text), .len = text.len};

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "%s: the file is larger than %u bytes", path,
                          LIMIT_RULES_FILE);
    }
    return rc == SY_E_OK ? rules_import(&im->imported, &in, options, err) : rc;
}

/* Does the entry stand there as a whole? */
static bool
is_known(const struct import *im, const char *entry)
{
    size_t len = strlen(entry);

    for (const char *at = strstr(buf_view(&im->known), entry); at != NULL;
         at = strstr(at + 1, entry)) {
        bool begins = at[-1] == '\n'; /* the name of a section is before */
        bool ends = !str_starts(at + len, "    ");

        if (begins && ends) {
            return true;
        }
    }
    return false;
}

/* Behind the entries that are new, unless it is known. */
static enum sy_code
keep_new(struct import *im, struct buf *section, const struct buf *entry, enum sy_code rc)
{
    if (rc != SY_E_OK) {
        return rc;
    }
    if (is_known(im, buf_view(entry))) {
        im->left_out++;
        return SY_E_OK;
    }
    im->added++;
    return buf_add(section, buf_view(entry), entry->len);
}

static enum sy_code
collect(struct import *im)
{
    SY_AUTO(buf_fini) struct buf entry = {.max = LIMIT_CLI_TEXT};
    enum sy_code rc = rules_write(&im->known, &im->own);

    for (size_t i = 0; rc == SY_E_OK && i < im->imported.n; i++) {
        buf_reset(&entry);
        rc = rules_write_rule(&entry, &im->imported.rules[i]);
        rc = keep_new(im, &im->rules, &entry, rc);
    }
    for (size_t i = 0; rc == SY_E_OK && i < im->imported.programs_n; i++) {
        buf_reset(&entry);
        rc = rules_write_program(&entry, &im->imported.programs[i]);
        rc = keep_new(im, &im->programs, &entry, rc);
    }
    for (size_t i = 0; rc == SY_E_OK && i < im->imported.network_n; i++) {
        buf_reset(&entry);
        rc = rules_write_network(&entry, &im->imported.network[i]);
        rc = keep_new(im, &im->network, &entry, rc);
    }
    return rc;
}

static enum sy_code
add_section(struct buf *text, const char *section, const struct buf *entries, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf out = {.max = text->max};

    if (entries->len == 0) {
        return SY_E_OK;
    }

    enum sy_code rc = edit_yaml_append(&out, text, section, buf_view(entries), err);

    if (rc != SY_E_OK) {
        sy_err_wrap(err, "nothing is written");
        return rc;
    }
    buf_fini(text);
    *text = out;
    out = (struct buf){0};
    return SY_E_OK;
}

/* All entries of a file and, if not NULL, behind those of each list what is to be added. */
static enum sy_code
write_all(struct buf *b, const struct rules *r, const struct import *added)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < r->n; i++) {
        rc = rules_write_rule(b, &r->rules[i]);
    }
    if (rc == SY_E_OK && added != NULL) {
        rc = buf_add(b, buf_view(&added->rules), added->rules.len);
    }
    for (size_t i = 0; rc == SY_E_OK && i < r->programs_n; i++) {
        rc = rules_write_program(b, &r->programs[i]);
    }
    if (rc == SY_E_OK && added != NULL) {
        rc = buf_add(b, buf_view(&added->programs), added->programs.len);
    }
    for (size_t i = 0; rc == SY_E_OK && i < r->network_n; i++) {
        rc = rules_write_network(b, &r->network[i]);
    }
    return rc == SY_E_OK && added != NULL
               ? buf_add(b, buf_view(&added->network), added->network.len)
               : rc;
}

/* The text says what both files say together, and nothing else. */
static enum sy_code
verify(struct import *im, const struct buf *text, struct sy_error *err)
{
    SY_AUTO(rules_fini) struct rules now = {0};
    SY_AUTO(buf_fini) struct buf is = {.max = LIMIT_CLI_TEXT};
    SY_AUTO(buf_fini) struct buf wanted = {.max = LIMIT_CLI_TEXT};
    const struct place_text in = {
        .name = im->place.user_path, .text = buf_view(text), .len = text->len};
    enum sy_code rc = rules_read(&now, &in, im->place.home, err);

    if (rc != SY_E_OK) {
        sy_err_wrap(err, "nothing is written: with the new rules");
        return rc;
    }
    if (write_all(&is, &now, NULL) != SY_E_OK || write_all(&wanted, &im->own, im) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return str_eq(buf_view(&is), buf_view(&wanted))
               ? SY_E_OK
               : sy_err_set(err, SY_E_PARSE,
                            "nothing is written: '%s' is written in a way that new rules can't be "
                            "put into; add by hand what is printed without --write",
                            im->place.user_path);
}

static enum sy_code
write_user_file(struct import *im, struct buf *ret_backup, struct sy_error *err)
{
    SY_AUTO(edit_file_fini) struct edit_file file = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_RULES_FILE};
    enum sy_code rc = edit_file_read(&file, im->place.user_path, err);

    if (rc == SY_E_OK && buf_add(&text, buf_view(&file.text), file.text.len) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = add_section(&text, "rules", &im->rules, err);
    }
    if (rc == SY_E_OK) {
        rc = add_section(&text, "programs", &im->programs, err);
    }
    if (rc == SY_E_OK) {
        rc = add_section(&text, "network", &im->network, err);
    }
    if (rc == SY_E_OK) {
        rc = verify(im, &text, err);
    }
    if (rc == SY_E_OK) {
        file.mode = S_IRUSR | S_IWUSR;
        rc = edit_file_write(&file, &text, ret_backup, err);
    }
    return rc;
}

static enum sy_code
print_new(struct buf *out, const struct import *im)
{
    const struct {
        const char *name;
        const struct buf *entries;
    } sections[] = {
        {"rules",    &im->rules   },
        {"programs", &im->programs},
        {"network",  &im->network },
    };
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < 3; i++) {
        if (sections[i].entries->len > 0) {
            rc = buf_addf(out, "%s:\n%s", sections[i].name, buf_view(sections[i].entries));
        }
    }
    return rc;
}

/* The user's file and the imported one, compared. */
static enum sy_code
prepare(struct import *im, const struct cli_args *args, struct sy_error *err)
{
    const struct rules_import_options options = {.lifts_sandbox =
                                                     cli_get(args, "outside-sandbox") != NULL};
    enum sy_code rc = cli_rules_place_find(&im->place, environ, err);

    if (rc == SY_E_OK && im->place.user_path == NULL) {
        rc = sy_err_set(err, SY_E_CONFIG, "no home directory, hence no file of rules: set HOME");
    }

    /* The user's file alone: one that is not there stands for the system's. */
    const struct rules_sources sources = {
        .system_path = "/dev/null/none", .user_path = im->place.user_path, .home = im->place.home};

    if (rc == SY_E_OK) {
        rc = rules_load(&im->own, &sources, err);
    }
    if (rc == SY_E_OK) {
        rc = read_imported(im, args->operands[0], &options, err);
    }
    if (rc == SY_E_OK && collect(im) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc;
}

static int
write_main(struct import *im)
{
    SY_AUTO(buf_fini) struct buf backup = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc = im->added > 0 ? write_user_file(im, &backup, &err) : SY_E_OK;

    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }
    rc = buf_addf(&out, "%s: %zu added, %zu there already\n", im->place.user_path, im->added,
                  im->left_out);
    if (rc == SY_E_OK && backup.len > 0) {
        rc = buf_addf(&out, "the old file is %s\n", buf_view(&backup));
    }
    if (rc != SY_E_OK) {
        sy_err_nomem(&err);
        return cli_fail(&err);
    }
    return cli_out(&out, 0);
}

static int
import_main(const struct cli_args *args)
{
    SY_AUTO(import_fini)
    struct import im = {.known = {.max = LIMIT_CLI_TEXT},
                        .rules = {.max = LIMIT_CLI_TEXT},
                        .programs = {.max = LIMIT_CLI_TEXT},
                        .network = {.max = LIMIT_CLI_TEXT}};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc = prepare(&im, args, &err);

    if (rc == SY_E_OK && cli_get(args, "write") != NULL) {
        return write_main(&im);
    }
    if (rc == SY_E_OK && print_new(&out, &im) != SY_E_OK) {
        rc = sy_err_nomem(&err);
    }
    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }
    cli_note("%zu new, %zu there already; --write adds them to %s", im.added, im.left_out,
             im.place.user_path);
    return cli_out(&out, 0);
}

static const struct cli_option import_options[] = {
    {0, "write",           NULL, NULL, "add them to the user's file (with a backup)"},
    {0, "outside-sandbox", NULL, NULL,
     "what they allow runs outside of the sandbox too, as in Codex"                 },
    CLI_OPTION_END,
};

const struct cli_verb verb_rules_import = {
    .name = "import",
    .summary = "Turn a .rules file of Codex into rules, and print or add them",
    .operands = "FILE",
    .text = "What has no equal is an error with its line and column, and nothing is added then.\n",
    .page = "shellyard-rules.1",
    .options = import_options,
    .min_operands = 1,
    .max_operands = 1,
    .examples = "  shellyard rules import ~/.codex/rules/default.rules\n"
                "  shellyard rules import --write ~/.codex/rules/default.rules\n",
    .run = import_main,
};
