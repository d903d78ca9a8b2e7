#include <string.h>

#include "approval/question.h"
#include "approval/question_access.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

static void
write_text(struct jw *w, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        jw_key_str(w, key, text);
    }
}

/* Would the access that is asked for be one of that kind? Its kind stands first
 * (question_access_write). */
static bool
widens(const struct question *q, const char *kind)
{
    static const char begin[] = "{\"kind\":\"";

    return q->access != NULL && str_starts(q->access, begin) &&
           str_starts(q->access + sizeof(begin) - 1, kind);
}

/* What can be said of the risk by what is known, for each request: of an access, how it would be
 * with it. */
static void
write_facts(struct jw *w, const struct question *q)
{
    bool is_free = q->leaves_sandbox || !sandbox_mode_is_enforced(q->sandbox->mode);
    enum sandbox_network network = is_free ? NETWORK_ON : sandbox_policy_network(q->sandbox);
    bool has_roots = q->sandbox->writable_roots.n > 0 || widens(q, "write");
    const char *writes = is_free                                 ? "anywhere"
                         : q->sandbox->mode == SANDBOX_READ_ONLY ? "nowhere"
                         : has_roots                             ? "workspace-and-roots"
                                                                 : "workspace";

    if (network == NETWORK_OFF && widens(q, "connect")) {
        network = NETWORK_ALLOW_LIST;
    }

    jw_key(w, "facts");
    jw_object(w);
    jw_key_str(w, "writes", writes);
    jw_key_str(w, "network", sandbox_network_name(network));
    jw_key_str(w, "rights",
               is_free && q->is_root           ? "root"
               : is_free && q->asks_for_rights ? "more"
                                               : "yours");
    jw_key_bool(w, "irreversible",
                q->class == APPROVAL_CLASS_DANGEROUS || q->class == APPROVAL_CLASS_CATASTROPHIC);
    jw_end_object(w);
}

void
subagent_write(struct jw *w, const struct subagent *a)
{
    if (a == NULL) {
        return;
    }
    jw_key(w, "subagent");
    jw_object(w);
    jw_key_str(w, "id", a->id);
    write_text(w, "name", a->name);
    jw_key_list(w, "of", mem_unconst(a->of));
    jw_end_object(w);
}

enum sy_code
question_write(struct buf *ret, const struct question *q)
{
    struct jw w = {.out = ret};

    jw_object(&w);
    jw_key_str(&w, "tool", q->tool);
    write_text(&w, "client", q->client);
    subagent_write(&w, q->subagent);
    jw_key_list(&w, "command", q->argv);
    write_text(&w, "script", q->script);
    write_text(&w, "patch", q->patch);
    if (q->access != NULL) {
        jw_key(&w, "access");
        jw_raw(&w, q->access, strlen(q->access));
    }
    jw_key_str(&w, "cwd", q->cwd);
    jw_key_list(&w, "env", q->env);
    jw_key_str(&w, "reason", q->why);
    write_text(&w, "finding", q->finding);
    write_text(&w, "justification", q->justification);
    write_text(&w, "failed", q->failed);
    jw_key_str(&w, "class", approval_class_name(q->class));
    jw_key_str(&w, "sandbox", sandbox_mode_name(q->sandbox->mode));
    jw_key_bool(&w, "leaves_sandbox", q->leaves_sandbox);
    if (q->input != NULL) {
        jw_key_str(&w, "input", q->input);
    }
    jw_key_bool(&w, "network", sandbox_policy_has_network(q->sandbox));
    write_facts(&w, q);
    jw_key_bool(&w, "may_remember", q->may_remember);
    jw_key_list(&w, "prefix", q->prefix != NULL ? strv_view(q->prefix) : NULL);
    jw_end_object(&w);
    return jw_done(&w);
}

static enum sy_code
parse(struct json_doc *doc, const char *json, struct sy_error *err)
{
    struct sy_error why = {0};
    enum sy_code rc = json_parse(doc, json, strlen(json), &why);

    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK || js_type(doc->root) != JS_OBJECT ||
        js_type(js_get(doc->root, "command")) != JS_ARRAY) {
        return sy_err_set(err, SY_E_PARSE, "the request's text is not what Shellyard writes");
    }
    return SY_E_OK;
}

static const char *
text_of(const struct js *v, const char *key)
{
    const char *text = js_str(js_get(v, key));

    return text != NULL ? text : "";
}

static bool
is_true(const struct js *v, const char *key)
{
    bool ret = false;

    return js_bool(&ret, js_get(v, key)) && ret;
}

static enum sy_code
add_visible(struct buf *ret, const char *text, size_t n)
{
    return str_add_visible(ret, text, n, (size_t)LIMIT_STORE_TEXT * 4);
}

/* As a shell would have to be given it. */
static enum sy_code
add_word(struct buf *ret, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:=@%+,-";
    enum sy_code rc = SY_E_OK;

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        return buf_add_str(ret, word);
    }
    rc = buf_add_char(ret, '\'');
    while (rc == SY_E_OK && *word != '\0') {
        size_t n = strcspn(word, "'");

        rc = add_visible(ret, word, n);
        word += n;
        if (rc == SY_E_OK && *word == '\'') {
            rc = buf_add_str(ret, "'\\''");
            word++;
        }
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\'') : rc;
}

static enum sy_code
add_words(struct buf *ret, const struct js *list)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < js_count(list) && rc == SY_E_OK; i++) {
        const char *word = js_str(js_at(list, i));

        rc = i > 0 ? buf_add_char(ret, ' ') : SY_E_OK;
        if (rc == SY_E_OK) {
            rc = add_word(ret, word != NULL ? word : "");
        }
    }
    return rc;
}

/* Each line of it by itself, behind `lead`. */
static enum sy_code
add_lines(struct buf *ret, const char *lead, const char *text)
{
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && *text != '\0') {
        size_t n = strcspn(text, "\n");

        rc = buf_add_str(ret, lead);
        if (rc == SY_E_OK) {
            rc = add_visible(ret, text, n);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(ret, '\n');
        }
        text += n + (text[n] == '\n' ? 1 : 0);
    }
    return rc;
}

static enum sy_code
add_named(struct buf *ret, const char *name, const char *text)
{
    enum sy_code rc = SY_E_OK;

    if (text[0] == '\0') {
        return rc;
    }
    rc = buf_addf(ret, "%-11s ", name);
    if (rc == SY_E_OK) {
        rc = add_visible(ret, text, strlen(text));
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

static enum sy_code
add_command(struct buf *ret, const struct js *q)
{
    const char *script = text_of(q, "script");
    const char *patch = text_of(q, "patch");
    enum sy_code rc = SY_E_OK;

    if (js_get(q, "access") != NULL) {
        return question_access_text(ret, js_get(q, "access"));
    }
    if (script[0] != '\0') {
        return add_lines(ret, "  | ", script);
    }
    if (patch[0] != '\0') {
        rc = buf_add_str(ret, "This patch:\n");
        return rc == SY_E_OK ? add_lines(ret, "  | ", patch) : rc;
    }
    rc = buf_add_str(ret, "  $ ");
    if (rc == SY_E_OK) {
        rc = add_words(ret, js_get(q, "command"));
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

static enum sy_code
add_sandbox(struct buf *ret, const struct js *q)
{
    if (is_true(q, "leaves_sandbox")) {
        return buf_add_str(ret, "Sandbox:    NONE: it would run with all of your rights\n");
    }

    enum sy_code rc = buf_add_str(ret, "Sandbox:    ");

    if (rc == SY_E_OK) {
        rc = add_visible(ret, text_of(q, "sandbox"), strlen(text_of(q, "sandbox")));
    }
    return rc == SY_E_OK ? buf_addf(ret, ", %s network\n", is_true(q, "network") ? "with" : "no")
                         : rc;
}

/* What nobody has seen yet would be read by it. */
static enum sy_code
add_input(struct buf *ret, const struct js *q)
{
    return text_of(q, "input")[0] != '\0'
               ? buf_add_str(ret, "Input:      it runs on, and reads what the agent types later\n")
               : SY_E_OK;
}

static enum sy_code
add_list(struct buf *ret, const char *name, const struct js *list)
{
    enum sy_code rc = SY_E_OK;

    if (js_count(list) == 0) {
        return rc;
    }
    rc = buf_addf(ret, "%-11s ", name);
    if (rc == SY_E_OK) {
        rc = add_words(ret, list);
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

/* The sentence for a word of `facts`. */
static const char *
say(const struct js *facts, const char *key)
{
    static const char *const words[][3] = {
        {"writes",  "nowhere",             "writes nothing"                           },
        {"writes",  "workspace",           "writes in the workspace alone"            },
        {"writes",  "workspace-and-roots", "writes in the workspace and further roots"},
        {"writes",  "anywhere",            "may write outside of the workspace"       },
        {"network", "off",                 "no network"                               },
        {"network", "allow-list",          "reaches the hosts of network.allow"       },
        {"network", "on",                  "reaches the network"                      },
        {"rights",  "yours",               "no rights beyond yours"                   },
        {"rights",  "more",                "asks for rights beyond yours"             },
        {"rights",  "root",                "runs as root"                             },
    };
    const char *word = text_of(facts, key);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (str_eq(words[i][0], key) && str_eq(words[i][1], word)) {
            return words[i][2];
        }
    }
    return "?";
}

static enum sy_code
add_facts(struct buf *ret, const struct js *facts)
{
    if (js_type(facts) != JS_OBJECT) {
        return SY_E_OK; /* of an older Shellyard */
    }
    return buf_addf(ret, "Risk:       %s, %s, %s, %s\n", say(facts, "writes"),
                    say(facts, "network"), say(facts, "rights"),
                    is_true(facts, "irreversible") ? "may not be undone"
                                                   : "nothing known that can't be undone");
}

/* A model's opinion, which says whose it is. */
static enum sy_code
add_comment(struct buf *ret, const struct js *a)
{
    const char *by = text_of(a, "by");
    const char *level = text_of(a, "level");
    const char *sentence = text_of(a, "sentence");
    enum sy_code rc = SY_E_OK;

    if (level[0] == '\0') {
        return rc;
    }
    rc = buf_add_str(ret, "Comment:    the model ");
    if (rc == SY_E_OK) {
        rc = add_visible(ret, by, strlen(by));
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(ret, " says: risk ");
    }
    if (rc == SY_E_OK) {
        rc = add_visible(ret, level, strlen(level));
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(ret, sentence[0] != '\0' ? ". " : "");
    }
    if (rc == SY_E_OK) {
        rc = add_visible(ret, sentence, strlen(sentence));
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

/* "subagent c of b of a, called: what it is for". */
static enum sy_code
add_subagent(struct buf *ret, const struct js *a)
{
    SY_AUTO(buf_fini) struct buf line = {.max = LIMIT_STORE_TEXT};
    const struct js *of = js_get(a, "of");
    enum sy_code rc = SY_E_OK;

    if (js_type(a) != JS_OBJECT) {
        return rc;
    }
    rc = buf_addf(&line, "subagent %s", text_of(a, "id"));
    for (size_t i = 0; i < js_count(of) && rc == SY_E_OK; i++) {
        const char *above = js_str(js_at(of, i));

        rc = buf_addf(&line, " of %s", above != NULL ? above : "?");
    }
    if (rc == SY_E_OK && text_of(a, "name")[0] != '\0') {
        rc = buf_addf(&line, ", called: %s", text_of(a, "name"));
    }
    return rc == SY_E_OK ? add_named(ret, "Asked by:", buf_view(&line)) : rc;
}

static enum sy_code
add_all(struct buf *ret, const struct js *q)
{
    const char *failed = text_of(q, "failed");
    enum sy_code rc = add_command(ret, q);

    if (rc == SY_E_OK) {
        rc = add_subagent(ret, js_get(q, "subagent"));
    }
    if (rc == SY_E_OK) {
        rc = add_named(ret, "Directory:", text_of(q, "cwd"));
    }
    if (rc == SY_E_OK) {
        rc = add_sandbox(ret, q);
    }
    if (rc == SY_E_OK) {
        rc = add_input(ret, q);
    }
    if (rc == SY_E_OK) {
        rc = add_list(ret, "Variables:", js_get(q, "env"));
    }
    if (rc == SY_E_OK) {
        rc = add_named(ret, "Asked as:", text_of(q, "reason"));
    }
    if (rc == SY_E_OK) {
        rc = add_named(ret, "Danger:", text_of(q, "finding"));
    }
    if (rc == SY_E_OK) {
        rc = add_facts(ret, js_get(q, "facts"));
    }
    if (rc == SY_E_OK) {
        rc = add_named(ret, "Agent says:", text_of(q, "justification"));
    }
    if (rc == SY_E_OK) {
        rc = add_comment(ret, js_get(q, "assessment"));
    }
    if (rc == SY_E_OK && failed[0] != '\0') {
        rc = buf_add_str(ret, "Its first attempt, in the sandbox:\n");
        rc = rc == SY_E_OK ? add_lines(ret, "  > ", failed) : rc;
    }
    return rc == SY_E_OK ? add_list(ret, "Rule:", js_get(q, "prefix")) : rc;
}

enum sy_code
question_text(struct buf *ret, const char *json, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    enum sy_code rc = parse(&doc, json, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = add_all(ret, doc.root);
    return rc == SY_E_LIMIT ? sy_err_set(err, rc, "the request is too long to be shown")
           : rc != SY_E_OK  ? sy_err_nomem(err)
                            : rc;
}

enum sy_code
question_comment(struct buf *ret, const char *json, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    enum sy_code rc = parse(&doc, json, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = add_comment(ret, js_get(doc.root, "assessment"));
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

enum sy_code
question_title(struct buf *ret, const char *json, size_t max, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    SY_AUTO(buf_fini) struct buf line = {.max = (size_t)LIMIT_STORE_TEXT * 8};
    enum sy_code rc = parse(&doc, json, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    const char *script = text_of(doc.root, "script");
    const char *subagent = text_of(js_get(doc.root, "subagent"), "id");

    rc = subagent[0] != '\0' ? buf_addf(&line, "subagent %s: ", subagent) : SY_E_OK;
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    rc = script[0] != '\0' ? add_visible(&line, script, strlen(script))
                           : add_words(&line, js_get(doc.root, "command"));
    if (rc == SY_E_OK) {
        rc = str_add_visible(ret, buf_view(&line), line.len, max);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

enum sy_code
question_prefix(struct strv *ret, bool *ret_may_remember, bool *ret_leaves_sandbox,
                const char *json, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    enum sy_code rc = parse(&doc, json, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    const struct js *prefix = js_get(doc.root, "prefix");

    ret->max = LIMIT_ARGV;
    for (size_t i = 0; i < js_count(prefix) && rc == SY_E_OK; i++) {
        const char *word = js_str(js_at(prefix, i));

        rc = strv_add(ret, word != NULL ? word : "");
    }
    *ret_may_remember = is_true(doc.root, "may_remember");
    *ret_leaves_sandbox = is_true(doc.root, "leaves_sandbox");
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}
