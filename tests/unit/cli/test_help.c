#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/clients.h"
#include "cli/verbs.h"
#include "command/command.h"
#include "fault.h"

static void
the_help_of_every_verb_has_usage_and_all_options(void **state)
{
    (void)state;
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
        const struct cli_verb *v = cli_verbs[i];

        assert_int_equal(cli_help_verb(&text, v, v->name), SY_E_OK);
        assert_true(str_starts(buf_view(&text), "Usage: shellyard "));
        assert_non_null(strstr(buf_view(&text), v->summary));
        for (size_t k = 0; v->options[k].name != NULL; k++) {
            assert_non_null(strstr(buf_view(&text), v->options[k].help));
        }
    }
}

static void
the_help_of_the_program_lists_every_verb(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};

    (void)state;
    assert_int_equal(cli_help_program(&text), SY_E_OK);
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        assert_non_null(strstr(buf_view(&text), cli_verbs[i]->summary));
    }
}

static void
the_tables_as_json_name_leaves_and_their_pages(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    bool has_check = false;

    (void)state;
    assert_int_equal(cli_help_json(&text), SY_E_OK);
    assert_int_equal(json_parse(&doc, text.data, text.len, NULL), SY_E_OK);

    const struct js *verbs = js_get(doc.root, "verbs");

    assert_true(js_count(verbs) >= 9);
    for (size_t i = 0; i < js_count(verbs); i++) {
        const struct js *v = js_at(verbs, i);

        assert_string_not_equal(js_str(js_get(v, "name")), "sandbox");
        assert_non_null(js_str(js_get(v, "page")));
        has_check = has_check || str_eq(js_str(js_get(v, "name")), "sandbox check");
    }
    assert_true(has_check);
}

static void
completions_know_every_verb_and_option(void **state)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};

        assert_int_equal(cli_completions(&text, shells[s]), SY_E_OK);
        for (size_t i = 0; cli_verbs[i] != NULL; i++) {
            assert_non_null(strstr(buf_view(&text), cli_verbs[i]->name));
            for (size_t k = 0; cli_verbs[i]->options[k].name != NULL; k++) {
                assert_non_null(strstr(buf_view(&text), cli_verbs[i]->options[k].name));
            }
        }
        assert_non_null(strstr(buf_view(&text), "claude-desktop"));
        assert_non_null(strstr(buf_view(&text), "danger-full-access"));
    }
}

static void
completions_for_an_unknown_shell_are_refused(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};

    (void)state;
    assert_int_equal(cli_completions(&text, "tcsh"), SY_E_ARG);
}

/* The words of setup's help and completion are the rows of clients.c. */
static void
setup_names_exactly_the_clients_that_it_knows(void **state)
{
    SY_AUTO(buf_fini) struct buf words = {.max = LIMIT_CLI_TEXT};

    (void)state;
    for (size_t i = 0; clients[i].name != NULL; i++) {
        assert_int_equal(buf_addf(&words, "%s%s", i > 0 ? "|" : "", clients[i].name), SY_E_OK);
        assert_non_null(strstr(verb_setup.text, clients[i].name));
        assert_ptr_equal(client_find(clients[i].name), &clients[i]);
    }
    assert_string_equal(buf_view(&words), verb_setup.operand_choices);
}

static enum sy_code
all_texts(void *arg)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    enum sy_code rc = cli_help_json(&text);

    (void)arg;
    if (rc == SY_E_OK) {
        rc = cli_help_program(&text);
    }
    if (rc == SY_E_OK) {
        rc = cli_completions(&text, "fish");
    }
    return rc == SY_E_OK ? cli_help_verb(&text, &verb_exec, "exec") : rc;
}

static void
texts_survive_the_lack_of_memory(void **state)
{
    (void)state;
    fault_run(all_texts, NULL);
}

static void
a_client_is_found_below_home_or_its_own_variable(void **state)
{
    static char own[] = "CODEX_HOME=/srv/codex";
    static char other[] = "PATH=/bin";
    char *const with_own[] = {other, own, NULL};
    char *const without[] = {other, NULL};
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    struct sy_error err = {0};
    const struct client *codex = client_find("codex");

    (void)state;
    assert_int_equal(client_path(&path, codex, without, "/home/a", &err), SY_E_OK);
    assert_string_equal(buf_view(&path), "/home/a/.codex/config.toml");
    buf_reset(&path);
    assert_int_equal(client_path(&path, codex, with_own, "/home/a", &err), SY_E_OK);
    assert_string_equal(buf_view(&path), "/srv/codex/config.toml");
    buf_reset(&path);
    assert_int_equal(client_path(&path, codex, with_own, "", &err), SY_E_OK);
    buf_reset(&path);
    assert_int_equal(client_path(&path, codex, without, "", &err), SY_E_ARG);
}

static void
home_is_the_variable_or_what_passwd_says(void **state)
{
    static char set[] = "HOME=/home/a";
    static char relative[] = "HOME=a";
    char *const with[] = {set, NULL};
    char *const without[] = {relative, NULL};
    SY_AUTO(buf_fini) struct buf home = {.max = LIMIT_PATH};
    SY_AUTO(mem_free_charp) char *shell = NULL;
    SY_AUTO(mem_free_charp) char *expected = NULL;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(client_home(&home, with, &err), SY_E_OK);
    assert_string_equal(buf_view(&home), "/home/a");
    buf_reset(&home);
    assert_int_equal(passwd_lookup(getuid(), &shell, &expected, &err), SY_E_OK);
    if (expected != NULL && expected[0] == '/') {
        assert_int_equal(client_home(&home, without, &err), SY_E_OK);
        assert_string_equal(buf_view(&home), expected);
    } else {
        assert_int_equal(client_home(&home, without, &err), SY_E_ARG);
        assert_non_null(strstr(err.msg, "passwd"));
    }
}

/* Each client: its snippet holds the program's path, escaped, and setting it
 * twice changes nothing. */
static void
every_client_is_set_once(void **state)
{
    (void)state;
    for (size_t i = 0; clients[i].name != NULL; i++) {
        SY_AUTO(client_fields_fini) struct client_fields f = {0};
        SY_AUTO(buf_fini) struct buf once = {.max = LIMIT_CLI_TEXT};
        SY_AUTO(buf_fini) struct buf twice = {.max = LIMIT_CLI_TEXT};
        enum edit_outcome outcome = EDIT_ADDED;
        struct sy_error err = {0};

        assert_int_equal(client_fields_make(&f, &clients[i], "/opt/a \"b\"/shellyard"), SY_E_OK);
        assert_int_equal(client_snippet(&once, &clients[i], f.fields), SY_E_OK);
        assert_non_null(strstr(buf_view(&once), "/opt/a \\\"b\\\"/shellyard"));
        assert_int_equal(client_edit(&twice, &clients[i], &once, f.fields, &outcome, &err),
                         SY_E_OK);
        assert_int_equal(outcome, EDIT_UNCHANGED);
        assert_string_equal(buf_view(&twice), buf_view(&once));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_help_of_every_verb_has_usage_and_all_options),
        cmocka_unit_test(the_help_of_the_program_lists_every_verb),
        cmocka_unit_test(the_tables_as_json_name_leaves_and_their_pages),
        cmocka_unit_test(completions_know_every_verb_and_option),
        cmocka_unit_test(completions_for_an_unknown_shell_are_refused),
        cmocka_unit_test(setup_names_exactly_the_clients_that_it_knows),
        cmocka_unit_test(texts_survive_the_lack_of_memory),
        cmocka_unit_test(a_client_is_found_below_home_or_its_own_variable),
        cmocka_unit_test(home_is_the_variable_or_what_passwd_says),
        cmocka_unit_test(every_client_is_set_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
