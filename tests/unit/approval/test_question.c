#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "approval/binding.h"
#include "approval/question.h"
#include "approval/question_access.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"

/* What a person is shown, and what their answer is bound to. */

static const char *const argv[] = {"rm", "-rf", "a b", NULL};
static const char *const env[] = {"A=1", NULL};

static char workspace[] = "/ws";
static struct sandbox_policy policy = {.mode = SANDBOX_WORKSPACE_WRITE, .cwd = workspace};

static struct question
sample(void)
{
    return (struct question){
        .tool = "shell",
        .client = "a client",
        .argv = mem_unconst(argv),
        .cwd = "/ws",
        .env = mem_unconst(env),
        .why = "the command is dangerous",
        .finding = "it removes without asking",
        .justification = "cleaning up",
        .class = APPROVAL_CLASS_DANGEROUS,
        .sandbox = &policy,
        .may_remember = true,
    };
}

static char *
text_of(const struct question *q)
{
    struct buf json = {.max = LIMIT_STORE_TEXT};
    struct buf text = {.max = LIMIT_STORE_TEXT};
    struct sy_error err = {0};

    assert_int_equal(question_write(&json, q), SY_E_OK);
    assert_int_equal(question_text(&text, buf_view(&json), &err), SY_E_OK);
    buf_fini(&json);
    return buf_take(&text);
}

static void
has(const struct question *q, const char *part)
{
    char *text = text_of(q);
    bool is_there = strstr(text, part) != NULL;

    if (!is_there) {
        print_error("%s", text);
    }
    mem_free(text);
    if (!is_there) {
        fail_msg("'%s' is not shown", part);
    }
}

static void
a_person_sees_all_that_they_decide_by(void **state)
{
    struct question q = sample();
    SY_AUTO(strv_fini) struct strv prefix = {.max = 4};

    (void)state;
    has(&q, "  $ rm -rf 'a b'\n");
    has(&q, "Directory:  /ws\n");
    has(&q, "Sandbox:    workspace-write, no network\n");
    has(&q, "Variables:  A=1\n");
    has(&q, "the command is dangerous\n");
    has(&q, "Danger:     it removes without asking\n");
    has(&q, "Agent says: cleaning up\n");
    q.leaves_sandbox = true;
    has(&q, "NONE: it would run with all of your rights\n");
    assert_int_equal(strv_add(&prefix, "rm"), SY_E_OK);
    q.prefix = &prefix;
    has(&q, "Rule:       rm\n");
    q.script = "one\ntwo 'x'";
    has(&q, "  | one\n  | two 'x'\n");
    q.failed = "cp: denied";
    has(&q, "  > cp: denied\n");
}

static void
the_facts_of_the_risk_are_always_shown(void **state)
{
    struct question q = sample();
    struct sandbox_policy other = policy;

    (void)state;
    has(&q,
        "Risk:       writes in the workspace alone, no network, no rights beyond yours, may not "
        "be undone\n");
    q.class = APPROVAL_CLASS_OTHER;
    has(&q, "nothing known that can't be undone\n");
    q.asks_for_rights = true; /* in the sandbox that has no effect */
    q.is_root = true;
    has(&q, "no rights beyond yours");
    q.leaves_sandbox = true;
    has(&q, "Risk:       may write outside of the workspace, reaches the network, runs as root, ");
    q.is_root = false;
    has(&q, "asks for rights beyond yours");
    q.leaves_sandbox = false;
    other.mode = SANDBOX_DANGER_FULL_ACCESS;
    q.sandbox = &other;
    has(&q, "may write outside of the workspace, reaches the network, asks for rights beyond");
    other.mode = SANDBOX_READ_ONLY;
    has(&q, "writes nothing, no network");
    other.has_network = true;
    has(&q, "writes nothing, reaches the network");
    other = policy;
    other.network_allow = (struct strv){.v = mem_unconst(env), .n = 1};
    other.writable_roots = other.network_allow;
    has(&q, "writes in the workspace and further roots, reaches the hosts of network.allow");
}

/* U+202E, in a form that hides nothing here. */
static const char RIGHT_TO_LEFT[] = {(char)0xe2, (char)0x80, (char)0xae, '\0'};

static void
nothing_deceives(void **state)
{
    static const char *const bad[] = {"a\x1b[2Kb", RIGHT_TO_LEFT, "'\n", NULL};
    struct question q = sample();

    (void)state;
    q.argv = mem_unconst(bad);
    q.justification = "ok\r\x1b[1A\xe2\x80\x8b";

    char *text = text_of(&q);

    assert_null(strchr(text, '\x1b'));
    assert_null(strchr(text, '\r'));
    assert_null(strstr(text, RIGHT_TO_LEFT));
    assert_null(strstr(text, "\xe2\x80\x8b"));
    assert_non_null(strstr(text, "\\u{202E}"));
    mem_free(text);
}

static void
the_title_is_one_line_that_is_cut(void **state)
{
    struct question q = sample();
    struct buf json = {.max = LIMIT_STORE_TEXT};
    struct buf title = {.max = 400};
    struct sy_error err = {0};

    (void)state;
    q.script = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nb";
    assert_int_equal(question_write(&json, &q), SY_E_OK);
    assert_int_equal(question_title(&title, buf_view(&json), 20, &err), SY_E_OK);
    assert_true(title.len <= 24);
    assert_null(strchr(buf_view(&title), '\n'));
    buf_fini(&title);
    buf_fini(&json);
}

static void
what_it_offers_is_read_back(void **state)
{
    struct question q = sample();
    struct strv prefix = {.max = 4};
    struct strv back = {.max = 1};
    struct buf json = {.max = LIMIT_STORE_TEXT};
    struct sy_error err = {0};
    bool may = false;
    bool leaves = true;

    (void)state;
    assert_int_equal(strv_add(&prefix, "git"), SY_E_OK);
    assert_int_equal(strv_add(&prefix, "pu\"sh"), SY_E_OK);
    q.prefix = &prefix;
    assert_int_equal(question_write(&json, &q), SY_E_OK);
    assert_int_equal(question_prefix(&back, &may, &leaves, buf_view(&json), &err), SY_E_OK);
    assert_int_equal(back.n, 2);
    assert_string_equal(back.v[1], "pu\"sh");
    assert_true(may);
    assert_false(leaves);
    strv_fini(&back);
    strv_fini(&prefix);
    buf_fini(&json);
}

static void
what_is_no_question_is_told(void **state)
{
    static const char *const bad[] = {
        "", "x", "[]", "{}", "{\"command\":1}", "{\"command\":[\"a\""};
    struct buf text = {.max = 100};
    struct sy_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(question_text(&text, bad[i], &err), SY_E_PARSE);
    }
    buf_fini(&text);
}

/* Does a change change them? */
static void
differs(const struct question *a, const struct question *b, bool digest, bool key)
{
    unsigned char x[BINDING_SIZE];
    unsigned char y[BINDING_SIZE];

    binding_digest(x, a);
    binding_digest(y, b);
    assert_int_equal(memcmp(x, y, sizeof(x)) != 0, digest);
    binding_key(x, a, 0);
    binding_key(y, b, 0);
    assert_int_equal(memcmp(x, y, sizeof(x)) != 0, key);
}

static void
an_answer_is_bound_to_exactly_what_will_run(void **state)
{
    static const char *const joined[] = {"rm", "-rfa b", NULL};
    static const char *const shorter[] = {"rm", "-rf", NULL};
    static const char *const more[] = {"A=1", "B=2", NULL};
    struct sandbox_policy wider = policy;
    const struct question a = sample();
    struct question b = sample();

    (void)state;
    b.justification = "another reason";
    b.why = "another why";
    differs(&a, &b, false, false);
    b.argv = mem_unconst(joined);
    differs(&a, &b, true, true);
    b.argv = mem_unconst(shorter);
    differs(&a, &b, true, true);
    b = sample();
    b.cwd = "/ws2";
    differs(&a, &b, true, true);
    b = sample();
    b.env = mem_unconst(more);
    differs(&a, &b, true, true);
    b.env = NULL;
    differs(&a, &b, true, true);
    b = sample();
    b.leaves_sandbox = true;
    differs(&a, &b, true, true);
    b = sample();
    b.tool = "shell_command";
    differs(&a, &b, true, true);
    b = sample();
    b.sandbox = &wider;
    differs(&a, &b, false, false);
    wider.has_network = true;
    differs(&a, &b, true, false);
}

static void
a_patch_has_a_key_for_each_file(void **state)
{
    struct question a = sample();
    struct question b = sample();
    SY_AUTO(strv_fini) struct strv two = {.max = 4};
    SY_AUTO(strv_fini) struct strv one = {.max = 4};
    unsigned char x[BINDING_SIZE];
    unsigned char y[BINDING_SIZE];

    (void)state;
    assert_int_equal(binding_keys(&a), 1);
    assert_int_equal(strv_add(&two, "patch:/ws/a"), SY_E_OK);
    assert_int_equal(strv_add(&two, "patch:/ws/b"), SY_E_OK);
    assert_int_equal(strv_add(&one, "patch:/ws/b"), SY_E_OK);
    a.keys = &two;
    a.patch = "*** Begin Patch\nX\x1b\n";
    b.keys = &one;
    assert_int_equal(binding_keys(&a), 2);
    assert_int_equal(binding_keys(&b), 1);
    binding_key(x, &a, 1);
    binding_key(y, &b, 0);
    assert_memory_equal(x, y, sizeof(x)); /* whatever else the patches do */
    binding_key(x, &a, 0);
    assert_memory_not_equal(x, y, sizeof(x));
    has(&a, "This patch:\n  | *** Begin Patch\n  | X\\x1b\n");
}

static const char access[] =
    "{\"kind\":\"write\",\"object\":\"/srv/a\\u001b\",\"asked\":\"/l\",\"scope\":\"once\","
    "\"workspace\":\"/ws\",\"mode\":\"workspace-write\",\"warning\":\"THINK\",\"gains\":["
    "{\"right\":\"write\",\"object\":\"/srv/a\\u001b\"},"
    "{\"right\":\"read\",\"object\":\"/srv/a/k\",\"secret\":true}],"
    "\"kept\":[\".git\"],\"hidden\":[\"/srv/a/h\"]}";

static void
an_access_is_shown_with_all_that_is_new(void **state)
{
    struct question q = sample();
    SY_AUTO(buf_fini) struct buf json = {.max = LIMIT_STORE_TEXT};
    SY_AUTO(question_access_fini) struct question_access read = {0};
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(question_write(&json, &q), SY_E_OK);
    assert_int_equal(question_access_read(&read, buf_view(&json), &err), SY_E_OK);
    assert_null(read.kind);
    q.access = access;
    has(&q, "Access:     write /srv/a\\x1b\n");
    has(&q, "Asked for:  /l, which is that\n");
    has(&q, "WARNING:    THINK\n");
    has(&q, "New would be:\n  + write /srv/a\\x1b, and all below");
    has(&q, "  + read /srv/a/k (SECRETS), and all below\n");
    has(&q, "Stay protected below: .git\n");
    has(&q, "Stay hidden below: /srv/a/h\n");
    has(&q, "Risk:       writes in the workspace and further roots, no network");
    buf_reset(&json);
    assert_int_equal(question_write(&json, &q), SY_E_OK);
    assert_int_equal(question_access_read(&read, buf_view(&json), &err), SY_E_OK);
    assert_string_equal(read.kind, "write");
    assert_string_equal(read.object, "/srv/a\x1b");
    assert_string_equal(read.workspace, "/ws");
    assert_string_equal(read.mode, "workspace-write");
}

/* A rule made of it must not hold in the directory that U+FFFD would name. */
static void
the_workspace_of_an_access_is_read_byte_by_byte(void **state)
{
    struct question q = sample();
    SY_AUTO(buf_fini) struct buf json = {.max = LIMIT_STORE_TEXT};
    SY_AUTO(question_access_fini) struct question_access read = {0};
    struct sy_error err = {0};

    (void)state;
    q.access = "{\"kind\":\"write\",\"object\":\"/srv\",\"workspace\":{\"hex\":\"2f7773e9\"}}";
    assert_int_equal(question_write(&json, &q), SY_E_OK);
    assert_int_equal(question_access_read(&read, buf_view(&json), &err), SY_E_OK);
    assert_string_equal(read.workspace, "/ws\xe9");
}

static void
an_answer_is_bound_to_what_was_shown_and_to_the_policy(void **state)
{
    struct question a = sample();
    struct question b = sample();
    struct sandbox_policy other = policy;
    char x[BINDING_HEX];
    char y[BINDING_HEX];

    (void)state;
    a.access = access;
    differs(&a, &b, true, false); /* something that runs is no access */
    b.access = "{\"kind\":\"write\"}";
    differs(&a, &b, true, false);
    b.access = access;
    differs(&a, &b, false, false);
    other.mode = SANDBOX_READ_ONLY;
    b.sandbox = &other;
    differs(&a, &b, true, false);
    binding_policy(x, &policy);
    binding_policy(y, &policy);
    assert_string_equal(x, y);
    assert_int_equal(strlen(x), BINDING_HEX - 1);
    binding_policy(y, &other);
    assert_string_not_equal(x, y);
}

static void
a_subagent_is_named(void **state)
{
    static const char *const of[] = {"b", "a", NULL};
    const struct subagent agent = {.id = "c", .name = "tests\x1b[2J", .of = of};
    const struct subagent plain = {.id = "c", .of = of + 2};
    struct question q = sample();
    struct buf json = {.max = LIMIT_STORE_TEXT};
    struct buf title = {.max = 200};

    (void)state;
    q.subagent = &agent;
    has(&q, "Asked by:   subagent c of b of a, called: tests");
    assert_int_equal(question_write(&json, &q), SY_E_OK);
    assert_non_null(strstr(buf_view(&json), "\"subagent\":{\"id\":\"c\",\"name\":"));
    assert_non_null(strstr(buf_view(&json), "\"of\":[\"b\",\"a\"]}"));
    assert_int_equal(question_title(&title, buf_view(&json), 100, NULL), SY_E_OK);
    assert_string_equal(buf_view(&title), "subagent c: rm -rf 'a b'");
    buf_fini(&title);
    buf_fini(&json);

    char *text = text_of(&q);

    assert_null(strchr(text, '\x1b'));
    mem_free(text);
    q.subagent = &plain;
    has(&q, "Asked by:   subagent c\n");
}

static enum sy_code
write_and_show(void *arg)
{
    struct question q = sample();
    struct question_access read = {0};
    struct buf json = {.max = LIMIT_STORE_TEXT};
    struct buf text = {.max = LIMIT_STORE_TEXT};
    struct strv prefix = {.max = 1};
    struct sy_error err = {0};
    bool may = false;
    bool leaves = false;
    enum sy_code rc = SY_E_OK;

    q.access = arg;
    rc = question_write(&json, &q);
    if (rc == SY_E_OK) {
        rc = question_text(&text, buf_view(&json), &err);
    }
    if (rc == SY_E_OK) {
        rc = question_title(&text, buf_view(&json), 40, &err);
    }
    if (rc == SY_E_OK) {
        rc = question_prefix(&prefix, &may, &leaves, buf_view(&json), &err);
    }
    if (rc == SY_E_OK) {
        rc = question_access_read(&read, buf_view(&json), &err);
    }
    question_access_fini(&read);
    buf_fini(&json);
    buf_fini(&text);
    strv_fini(&prefix);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    (void)state;
    fault_run(write_and_show, NULL);
    fault_run(write_and_show, mem_unconst(access));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_sees_all_that_they_decide_by),
        cmocka_unit_test(a_subagent_is_named),
        cmocka_unit_test(the_facts_of_the_risk_are_always_shown),
        cmocka_unit_test(an_access_is_shown_with_all_that_is_new),
        cmocka_unit_test(the_workspace_of_an_access_is_read_byte_by_byte),
        cmocka_unit_test(an_answer_is_bound_to_what_was_shown_and_to_the_policy),
        cmocka_unit_test(nothing_deceives),
        cmocka_unit_test(the_title_is_one_line_that_is_cut),
        cmocka_unit_test(what_it_offers_is_read_back),
        cmocka_unit_test(what_is_no_question_is_told),
        cmocka_unit_test(a_patch_has_a_key_for_each_file),
        cmocka_unit_test(an_answer_is_bound_to_exactly_what_will_run),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
