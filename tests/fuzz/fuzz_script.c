/*
 * The reader of scripts and the judges of commands. The first byte chooses the language; what
 * follows is the script.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/danger.h"
#include "command/dialect.h"
#include "command/safe.h"
#include "fuzz_check.h"

static enum sy_code
find_program(void *arg, struct buf *ret_path, bool *ret_trusted, const char *name,
             const struct judge_world *world)
{
    (void)arg;
    (void)world;
    *ret_trusted = strpbrk(name, "/\\") == NULL;
    buf_reset(ret_path);
    return buf_add_str(ret_path, "/bin/x");
}

static bool
git_is_tame(void *arg, const char *cwd)
{
    (void)arg;
    return cwd[0] == '/';
}

static void
check_word(const struct script_word *w, size_t len)
{
    SY_ASSERT(w->text[w->len] == '\0' && w->len <= len);
    SY_ASSERT((w->flags & WORD_SPLITS) == 0 || (w->flags & WORD_DYNAMIC) != 0);
}

/* What holds for each script, whatever is in it. */
static void
// NOLINTNEXTLINE(readability-function-cognitive-complexity): each assertion counts as a branch
check_script(const struct script *s, const char *text, size_t len)
{
    SY_ASSERT((s->form == SCRIPT_PLAIN) == (s->reason[0] == '\0'));
    SY_ASSERT(s->form != SCRIPT_UNREADABLE || (s->n_commands == 0 && s->n_redirects == 0));
    SY_ASSERT(s->form != SCRIPT_HEREDOC || (s->n_commands == 1 && s->n_inputs > 0));
    for (size_t i = 0; i < s->n_commands; i++) {
        SY_ASSERT(s->commands[i].n > 0);
        for (size_t k = 0; k < s->commands[i].n; k++) {
            check_word(&s->commands[i].words[k], len);
        }
    }
    if (s->form == SCRIPT_PLAIN) {
        /* Nothing that starts a command or writes a file is in it unquoted, whatever the
         * grammar made of it; so these can only be in quotes or comments. */
        bool has_quote = memchr(text, '\'', len) != NULL || memchr(text, '"', len) != NULL ||
                         memchr(text, '\\', len) != NULL || memchr(text, '#', len) != NULL;

        SY_ASSERT(has_quote || (memchr(text, '`', len) == NULL && memchr(text, '(', len) == NULL));
        SY_ASSERT(s->n_redirects == 0 && s->n_inputs == 0 && s->n_assigned == 0);
    }
}

/* Whatever a script has, each dialect has a reading of it, and its pieces have no marks. */
static void
// NOLINTNEXTLINE(readability-function-cognitive-complexity): each assertion counts as a branch
check_dialects(const char *text, size_t len)
{
    struct buf b = {.max = (size_t)LIMIT_SCRIPT * 4};

    for (unsigned one = DIALECT_BASH; one <= DIALECT_CSH; one <<= 1U) {
        bool differs = false;
        enum sy_code rc = dialect_read(&b, &differs, text, len, one | DIALECT_TYPED);

        SY_ASSERT(rc == SY_E_OK || rc == SY_E_LIMIT);
        SY_ASSERT(rc != SY_E_OK || differs || b.len == len);
    }
    for (int is_document = 0; is_document < 2; is_document++) {
        buf_reset(&b);
        SY_ASSERT(dialect_add_hidden(&b, text, len, is_document != 0) == SY_E_OK);
        SY_ASSERT(b.len <= len);
    }
    SY_ASSERT(dialect_pieces(&b, text, len, DIALECT_CUT_MANY) == SY_E_OK && b.len <= len);
    SY_ASSERT(strpbrk(buf_view(&b), "\"'`(){};&|#$<>") == NULL);
    buf_fini(&b);
}

int
// NOLINTNEXTLINE(readability-function-cognitive-complexity): each assertion counts as a branch
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct script_reader *reader;
    static char root[] = "/W";
    static char *roots[] = {root, NULL};
    bool is_powershell = size > 0 && data[0] == 'p';
    const char *text = size > 0 ? (const char *)data + 1 : "";
    size_t len = size > 0 ? size - 1 : 0;
    struct script s = {0};

    if (reader == NULL) {
        reader = script_reader_new();
        SY_ASSERT(reader != NULL);
    }

    enum sy_code rc =
        script_read(reader, &s, is_powershell ? SCRIPT_POWERSHELL : SCRIPT_BASH, text, len, NULL);

    SY_ASSERT(rc == SY_E_OK || rc == SY_E_PARSE || rc == SY_E_LIMIT);
    SY_ASSERT(rc == SY_E_OK || s.form == SCRIPT_UNREADABLE);
    if (is_powershell || memchr(text, '\0', len) != NULL) {
        script_fini(&s);
        return 0;
    }
    check_script(&s, text, len);
    check_dialects(text, len);

    const struct judge_world world = {.reader = reader,
                                      .cwd = "/W/src",
                                      .home = "/home/u",
                                      .roots = roots,
                                      .find_program = find_program,
                                      .git_is_tame = git_is_tame};
    char *script = mem_strndup(text, len);
    char *argv[] = {mem_unconst("bash"), mem_unconst("-c"), script, NULL};
    char *pwsh[] = {mem_unconst("pwsh"), mem_unconst("-c"), script, NULL};
    char *cmd[] = {mem_unconst("cmd"), mem_unconst("/c"), script, NULL};
    struct safe_verdict safe;
    struct danger_verdict danger;

    SY_ASSERT(script != NULL);
    SY_ASSERT(safe_judge(&safe, &world, argv, NULL, NULL, NULL) == SY_E_OK);
    SY_ASSERT(danger_judge(&danger, &world, argv, NULL, NULL, NULL) == SY_E_OK);
    /* What only looks destroys nothing. */
    SY_ASSERT(!safe.is_safe || (danger.level == DANGER_NONE && s.form == SCRIPT_PLAIN));
    SY_ASSERT(danger_judge(&danger, &world, pwsh, NULL, NULL, NULL) == SY_E_OK);
    SY_ASSERT(safe_judge(&safe, &world, pwsh, NULL, NULL, NULL) == SY_E_OK);
    SY_ASSERT(danger_judge(&danger, &world, cmd, NULL, NULL, NULL) == SY_E_OK);
    mem_free(script);
    script_fini(&s);
    return 0;
}
