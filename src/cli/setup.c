#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/clients.h"
#include "cli/verbs.h"

/* One run of `setup`. */
struct setup {
    const struct client *client;
    struct client_fields fields;
    struct edit_file file;
    struct buf path; /* of the file, as the client names it until it is read */
    struct buf snippet;
    struct buf backup;
    const char *state; /* "printed", "added", "changed", "already set", "failed" */
};

static void
setup_fini(struct setup *s)
{
    client_fields_fini(&s->fields);
    edit_file_fini(&s->file);
    buf_fini(&s->path);
    buf_fini(&s->snippet);
    buf_fini(&s->backup);
}

static enum sy_code
find_client(struct setup *s, const char *name, struct sy_error *err)
{
    const char *names[32];
    size_t n = 0;

    s->client = client_find(name);
    if (s->client != NULL) {
        return SY_E_OK;
    }
    for (; clients[n].name != NULL && n < sizeof(names) / sizeof(names[0]); n++) {
        names[n] = clients[n].name;
    }

    const char *near = str_nearest(name, names, n);

    if (near != NULL) {
        return sy_err_set(err, SY_E_ARG, "setup: unknown client '%s'; did you mean '%s'?", name,
                          near);
    }

    SY_AUTO(buf_fini) struct buf all = {.max = SY_ERR_MSG_MAX};

    for (size_t i = 0; i < n; i++) {
        if (buf_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    return sy_err_set(err, SY_E_ARG, "setup: unknown client '%.40s'; right are %s", name,
                      buf_view(&all));
}

static enum sy_code
prepare(struct setup *s, const char *name, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf home = {.max = LIMIT_PATH};
    struct sy_error no_home = {0};
    char program[LIMIT_PATH];
    enum sy_code rc = find_client(s, name, err);

    if (rc == SY_E_OK) {
        rc = cli_self_path(program, err);
    }
    if (rc == SY_E_OK) {
        rc = client_home(&home, environ, &no_home);
        rc = rc == SY_E_NOMEM ? sy_err_nomem(err) : SY_E_OK;
    }
    if (rc == SY_E_OK) {
        rc = client_path(&s->path, s->client, environ, buf_view(&home), err);
        if (rc != SY_E_OK && no_home.code != SY_E_OK) {
            *err = no_home;
        }
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = client_fields_make(&s->fields, s->client, program);
    if (rc == SY_E_OK) {
        rc = client_snippet(&s->snippet, s->client, s->fields.fields);
    }
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "setup: %s", sy_code_text(rc));
}

static enum sy_code
read_client(struct setup *s, struct sy_error *err)
{
    enum sy_code rc = edit_file_read(&s->file, buf_view(&s->path), err);

    if (rc != SY_E_OK) {
        return rc;
    }
    buf_reset(&s->path);
    rc = buf_add_str(&s->path, buf_view(&s->file.path));
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

static enum sy_code
write_client(struct setup *s, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf edited = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_ADDED;
    enum sy_code rc =
        client_edit(&edited, s->client, &s->file.text, s->fields.fields, &outcome, err);

    if (rc != SY_E_OK) {
        sy_err_wrap(err, "'%s' was left as it is", buf_view(&s->file.path));
        return rc;
    }
    switch (outcome) {
    case EDIT_UNCHANGED:
        s->state = "already set";
        return SY_E_OK;
    case EDIT_ADDED:
        s->state = "added";
        break;
    case EDIT_CHANGED:
        s->state = "changed";
        break;
    }
    return edit_file_write(&s->file, &edited, &s->backup, err);
}

static enum sy_code
add_snippet(struct buf *out, const struct setup *s)
{
    enum sy_code rc = buf_addf(out, "Add to %s:\n\n%s", buf_view(&s->path), buf_view(&s->snippet));

    return rc == SY_E_OK && s->client->note != NULL ? buf_addf(out, "\n%s", s->client->note) : rc;
}

static enum sy_code
result_text(struct buf *out, const struct setup *s)
{
    if (str_eq(s->state, "printed")) {
        enum sy_code rc = add_snippet(out, s);

        return rc == SY_E_OK ? buf_addf(out, "\nOr let 'shellyard setup %s --write' do it.\n",
                                        s->client->name)
                             : rc;
    }

    enum sy_code rc =
        buf_addf(out, "%s: %s (%s)\n", s->client->title, s->state, buf_view(&s->path));

    if (rc == SY_E_OK && s->backup.len > 0) {
        rc = buf_addf(out, "The old file is %s\n", buf_view(&s->backup));
    }
    return rc == SY_E_OK && s->client->note != NULL ? buf_add_str(out, s->client->note) : rc;
}

static enum sy_code
result_json(struct buf *out, const struct setup *s, const struct sy_error *err)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_str(&w, "client", s->client->name);
    jw_key_str(&w, "title", s->client->title);
    jw_key_str(&w, "file", buf_view(&s->path));
    jw_key_bool(&w, "existed", s->file.exists);
    jw_key_str(&w, "state", s->state);
    if (s->backup.len > 0) {
        jw_key_str(&w, "backup", buf_view(&s->backup));
    }
    if (err->code != SY_E_OK) {
        jw_key_str(&w, "error", err->msg);
    }
    jw_key_str(&w, "snippet", buf_view(&s->snippet));
    if (s->client->note != NULL) {
        jw_key_str(&w, "note", s->client->note);
    }
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static int
setup_main(const struct cli_args *args)
{
    SY_AUTO(setup_fini)
    struct setup s = {.path = {.max = LIMIT_PATH},
                      .snippet = {.max = LIMIT_CLI_TEXT},
                      .backup = {.max = LIMIT_PATH},
                      .state = "printed"};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    struct sy_error print_err = {0};

    if (prepare(&s, args->operands[0], &err) != SY_E_OK) {
        return cli_fail(&err);
    }

    bool is_failed = read_client(&s, &err) != SY_E_OK ||
                     (cli_get(args, "write") != NULL && write_client(&s, &err) != SY_E_OK);
    enum sy_code rc = SY_E_OK;

    if (is_failed) {
        s.state = "failed";
        (void)cli_fail(&err);
    }
    if (cli_get(args, "json") != NULL) {
        rc = result_json(&text, &s, &err);
    } else {
        rc = is_failed ? add_snippet(&text, &s) : result_text(&text, &s);
    }
    if (rc != SY_E_OK) {
        sy_err_set(&print_err, rc, "setup: %s", sy_code_text(rc));
        return cli_fail(&print_err);
    }
    return cli_out(&text, is_failed ? 1 : 0);
}

static const struct cli_option setup_options[] = {
    {0, "write", NULL, NULL, "edit the client's file (keeping all else, with a backup)"},
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

const struct cli_verb verb_setup = {
    .name = "setup",
    .summary = "Connect an MCP client: print what it needs, or write it",
    .operands = "CLIENT",
    .text = "CLIENT is claude-code, codex, cursor, vscode, zed, gemini-cli, claude-desktop,\n"
            "opencode, goose, cline, copilot-cli or jetbrains.\n",
    .examples = "  shellyard setup codex\n"
                "  shellyard setup claude-code --write\n",
    .page = "shellyard-setup.1",
    .options = setup_options,
    .operand_choices = "claude-code|codex|cursor|vscode|zed|gemini-cli|claude-desktop|opencode|"
                       "goose|cline|copilot-cli|jetbrains",
    .min_operands = 1,
    .max_operands = 1,
    .run = setup_main,
};
