#include <string.h>

#include "approval/assess_internal.h"
#include "approval/rules.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/command.h"
#include "command/dialect.h"

void
assess_commands_fini(struct assess_commands *c)
{
    for (size_t i = 0; c->v != NULL && i < c->n; i++) {
        strv_fini(&c->v[i]);
    }
    inner_fini(&c->hidden);
    mem_free(c->v);
    mem_free(c->is_trusted);
    mem_free(c->is_allowed);
}

static enum sy_code
commands_make(struct assess_commands *c, size_t n)
{
    c->v = mem_alloc_zero(n + 1, sizeof(*c->v));
    c->is_trusted = mem_alloc_zero(n + 1, sizeof(*c->is_trusted));
    c->is_allowed = mem_alloc_zero(n + 1, sizeof(*c->is_allowed));
    if (c->v == NULL || c->is_trusted == NULL || c->is_allowed == NULL) {
        return SY_E_NOMEM;
    }
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        c->v[i].max = LIMIT_ARGV;
    }
    return SY_E_OK;
}

/* To which command an assignment belongs is not kept: each that has one gets them all. A rule
 * that allows must name them, so that errs on the side of asking. */
static enum sy_code
copy_command(struct strv *ret, const struct script *s, const struct script_command *from)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < s->n_assigned && rc == SY_E_OK; i++) {
        if ((from->flags & COMMAND_ASSIGNS) != 0) {
            rc = strv_add(ret, s->assigned[i].text);
        }
    }
    return rc == SY_E_OK ? inner_add_words(ret, from->words, from->n) : rc;
}

static bool
is_literal(const struct script_command *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if ((c->words[i].flags & (WORD_DYNAMIC | WORD_GLOB | WORD_TILDE | WORD_BRACE)) != 0) {
            return false;
        }
    }
    return true;
}

static bool
has_braces(const struct script_command *c)
{
    unsigned flags = 0;

    for (size_t i = 0; i < c->n; i++) {
        flags |= c->words[i].flags;
    }
    return (flags & WORD_BRACE) != 0;
}

/* Another reading of it may run more. */
static enum sy_code
is_read_alike(bool *ret, const char *text, unsigned dialects)
{
    bool differs = true;
    enum sy_code rc = dialect_differs(&differs, text, strlen(text), dialects);

    *ret = rc == SY_E_OK && !differs;
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

static enum sy_code
commands_of_script(struct assess_commands *c, const struct judge_world *world,
                   struct script *script, char *const *argv, struct sy_error *err)
{
    const char *text = shell_script_of(argv);
    const unsigned dialects = world->typed != 0 ? world->typed : dialect_of(path_base(argv[0]));
    struct sy_error why = {0};
    enum sy_code rc = script_read(world->reader, script, SCRIPT_BASH, text, strlen(text), &why);

    if (rc == SY_E_NOMEM || is_read_alike(&c->is_whole, text, dialects) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    c->is_script = true;
    c->is_whole = c->is_whole && script->n_redirects == 0 &&
                  (script->form == SCRIPT_PLAIN || script->form == SCRIPT_HEREDOC);
    rc = commands_make(c, script->n_commands);
    for (size_t i = 0; i < c->n && rc == SY_E_OK; i++) {
        rc = copy_command(&c->v[i], script, &script->commands[i]);
        c->is_literal = c->is_literal && is_literal(&script->commands[i]);
        c->has_braces = c->has_braces || has_braces(&script->commands[i]);
    }
    return rc == SY_E_LIMIT ? sy_err_set(err, rc, "a command has more than %u words", LIMIT_ARGV)
           : rc != SY_E_OK  ? sy_err_nomem(err)
                            : rc;
}

static enum sy_code
find_trusted(struct assess_commands *c, const struct judge_world *world)
{
    for (size_t i = 0; i < c->n; i++) {
        SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
        size_t at = c->is_script ? rule_assignments(&c->v[i]) : 0;

        if (at >= c->v[i].n) {
            continue;
        }
        if (judge_find_program(NULL, &path, &c->is_trusted[i], c->v[i].v[at], world) ==
            SY_E_NOMEM) {
            return SY_E_NOMEM;
        }
    }
    return SY_E_OK;
}

enum sy_code
assess_commands_find(struct assess_commands *c, struct script *script,
                     const struct assess_input *in, const struct judge_world *world,
                     struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    c->is_literal = true;
    if (shell_script_of(in->argv) != NULL) {
        rc = commands_of_script(c, world, script, in->argv, err);
    } else {
        c->is_whole = true;
        rc = commands_make(c, 1);
        if (rc == SY_E_OK) {
            rc = strv_add_all(&c->v[0], in->argv);
        }
        rc = rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    if (rc == SY_E_OK && find_trusted(c, world) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc;
}
