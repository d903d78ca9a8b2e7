#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "tools/access_call.h"
#include "tools/access_world.h"

/* What is asked for by request_access: found, compared with the machine, asked and applied, each
 * also while every allocation fails in turn. */

struct yard {
    char dir[48]; /* ws/, out/, out/file, link -> out */
    char ws[64];
    char out[64];
    struct config config;
    struct access_order order; /* of the call that is made */
    struct tool_output *answer;
};

static char path_variable[] = "PATH=/usr/bin:/bin";
static char home_variable[] = "HOME=/nonexistent";
static char *const environ_list[] = {path_variable, home_variable, NULL};

static void
path_in(char ret[128], const struct yard *y, const char *name)
{
    (void)snprintf(ret, 128, "%s/%s", y->dir, name);
}

static int
make(void **state)
{
    static struct yard y;
    const struct config_sources sources = {
        .environ_list = environ_list, .system_path = "/nonexistent", .workspace = y.ws};
    struct sy_error err = {0};
    char path[128];
    FILE *file = NULL;

    y = (struct yard){0};
    (void)snprintf(y.dir, sizeof(y.dir), "/var/tmp/shellyard-access-XXXXXX");
    if (mkdtemp(y.dir) == NULL) {
        return -1;
    }
    (void)snprintf(y.ws, sizeof(y.ws), "%s/ws", y.dir);
    (void)snprintf(y.out, sizeof(y.out), "%s/out", y.dir);
    path_in(path, &y, "link");
    if (mkdir(y.ws, 0700) != 0 || mkdir(y.out, 0700) != 0 || symlink("out", path) != 0) {
        return -1;
    }
    path_in(path, &y, "out/file");
    file = fopen(path, "we");
    if (file == NULL || fclose(file) != 0) {
        return -1;
    }
    if (config_load(&y.config, &sources, &err) != SY_E_OK) {
        print_error("%s\n", err.msg);
        return -1;
    }
    *state = &y;
    return 0;
}

static int
unmake(void **state)
{
    static const char *const names[] = {"out/file", "link"};
    struct yard *y = *state;
    char path[128];

    config_fini(&y->config);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path_in(path, y, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(y->out);
    (void)rmdir(y->ws);
    return rmdir(y->dir);
}

/* What is found for `object`, or the sentence. */
static void
finds(enum access_kind kind, const char *object, const char *want)
{
    struct access_found f = {0};
    struct sy_error err = {0};

    if (want == NULL || want[0] == '/') {
        if (access_find(&f, kind, object, "/nowhere:/usr/bin:/bin", &err) != SY_E_OK) {
            fail_msg("%s: %s", object, err.msg);
        }
        if (want != NULL) {
            assert_string_equal(f.access.object, want);
        }
        assert_true(access_find_is_same(&f));
        access_found_fini(&f);
        return;
    }
    assert_int_equal(access_find(&f, kind, object, "/usr/bin:/bin", &err), SY_E_DENIED);
    if (strstr(err.msg, want) == NULL) {
        fail_msg("%s: %s", object, err.msg);
    }
}

static void
what_is_asked_for_is_found_where_it_really_is(void **state)
{
    struct yard *y = *state;
    char link[128];
    char file[128];
    char none[128];

    path_in(link, y, "link/file");
    path_in(file, y, "out/file");
    path_in(none, y, "link/new");
    finds(ACCESS_WRITE, link, file);
    finds(ACCESS_WRITE, none, y->out); /* its directory */
    finds(ACCESS_READ, link, file);
    finds(ACCESS_READ, none, "is not there");
    finds(ACCESS_RUN, link, "is no program");
    finds(ACCESS_RUN, "sh", NULL);
    finds(ACCESS_RUN, "no-such-program", "is not in PATH");
    finds(ACCESS_RUN, "a/b", "must be an absolute path");
    finds(ACCESS_WRITE, "here", "must be an absolute path");
    finds(ACCESS_WRITE, "/dev/null", "neither a directory nor a file");
    finds(ACCESS_CONNECT, "*.example.com", "only one host");
    finds(ACCESS_CONNECT, "unix:/x", "only one host");
    finds(ACCESS_CONNECT, "a b", "");
}

static void
a_file_that_was_replaced_is_another_one(void **state)
{
    struct yard *y = *state;
    struct access_found f = {0};
    char file[128];

    path_in(file, y, "out/file");
    assert_int_equal(access_find(&f, ACCESS_WRITE, file, NULL, NULL), SY_E_OK);
    assert_true(access_find_is_same(&f));
    assert_int_equal(unlink(file), 0);
    assert_false(access_find_is_same(&f));
    assert_int_equal(symlink("/etc/passwd", file), 0);
    assert_false(access_find_is_same(&f));
    access_found_fini(&f);
}

struct search {
    enum access_kind kind;
    const char *object;
};

static enum sy_code
find_one(void *arg)
{
    const struct search *s = arg;
    struct access_found f = {0};
    enum sy_code rc = access_find(&f, s->kind, s->object, "/usr/bin:/bin", NULL);

    access_found_fini(&f);
    return rc;
}

static void
a_search_may_run_out_of_memory(void **state)
{
    struct yard *y = *state;
    char link[128];
    char none[128];
    struct search all[] = {
        {ACCESS_WRITE,   link              },
        {ACCESS_WRITE,   none              },
        {ACCESS_READ,    link              },
        {ACCESS_RUN,     "sh"              },
        {ACCESS_CONNECT, "example.com:8080"},
        {ACCESS_CONNECT, "localhost"       },
    };

    path_in(link, y, "link/file");
    path_in(none, y, "link/new");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        fault_run(find_one, &all[i]);
    }
}

/* A hook that is reached by a link on the way: its name, the link, and where it is. */
static bool
keeps_hooks(const struct access_surroundings *around, const struct yard *y)
{
    static const char *const names[] = {"link/file", "link", "out/file"};
    bool ret = true;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];

        path_in(path, y, names[i]);
        ret = ret && strv_has(&around->programs, path);
    }
    return ret;
}

static enum sy_code
look_around(void *arg)
{
    const struct yard *y = arg;
    struct turn_context turn = {0};
    struct access_surroundings around = {0};
    enum sy_code rc = turn_from_config(&turn, &y->config, y->ws, environ_list, NULL);

    if (rc == SY_E_OK) {
        rc = access_surroundings_find(&around, &y->config, &turn.sandbox, environ_list, NULL);
    }
    if (rc == SY_E_OK && (!strv_has(&around.homes, "/nonexistent") ||
                          !strv_has(&around.own, "/nonexistent/.config/shellyard") ||
                          !strv_has(&around.protected, ".git") || !keeps_hooks(&around, y))) {
        rc = SY_E_INTERNAL;
    }
    access_surroundings_fini(&around);
    turn_context_fini(&turn);
    return rc;
}

static void
a_look_at_the_machine_may_run_out_of_memory(void **state)
{
    struct yard *y = *state;
    char hook[128];

    path_in(hook, y, "link/file");
    assert_int_equal(strv_add(&y->config.hooks.permission_request, hook), SY_E_OK);
    fault_run(look_around, y);
}

/* A reviewer whose person says yes at once. */
struct review_ticket {
    struct review_answer answer;
};

static enum sy_code
say_yes(struct review *r, struct review_ticket **ret, const struct review_question *q,
        struct sy_error *err)
{
    struct review_ticket *t = mem_alloc_zero(1, sizeof(*t));

    (void)r;
    (void)q;
    if (t == NULL) {
        return sy_err_nomem(err);
    }
    t->answer = (struct review_answer){.outcome = REVIEW_APPROVED,
                                       .status = STORE_APPROVED_FOR_SESSION,
                                       .word = "approved_for_session",
                                       .id = "1"};
    *ret = t;
    return SY_E_OK;
}

static const struct review_answer *
yes(const struct review_ticket *t)
{
    return &t->answer;
}

static const char *
yes_id(const struct review_ticket *t)
{
    return t->answer.id;
}

static const char *
yes_text(const struct review_ticket *t)
{
    (void)t;
    return "{}";
}

static void
yes_leave(struct review_ticket *t)
{
    mem_free(t);
}

static const struct review_ops yes_ops = {
    .ask = say_yes, .answer = yes, .id = yes_id, .text = yes_text, .leave = yes_leave};

struct heard {
    bool is_done;
    bool is_error;
    char text[512];
};

static void
take(void *arg, struct tool_call *call, struct tool_output *output)
{
    struct heard *h = arg;

    (void)call;
    h->is_done = true;
    h->is_error = output->is_error;
    (void)snprintf(h->text, sizeof(h->text), "%s", buf_view(&output->text));
}

static enum sy_code
ask(struct heard *h, const struct yard *y, struct tool_context *context, uv_loop_t *loop)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1024};
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    struct jw w = {.out = &text};
    struct tool_call *call = NULL;
    enum sy_code rc = SY_E_OK;

    jw_object(&w);
    jw_key_str(&w, "access", access_kind_name(y->order.kind));
    jw_key_str(&w, "object", y->order.object);
    jw_key_str(&w, "justification", "the test");
    jw_end_object(&w);
    rc = jw_done(&w);
    if (rc == SY_E_OK) {
        rc = json_parse(&doc, text.data, text.len, NULL);
    }
    if (rc == SY_E_OK) {
        const struct invocation inv = {
            .context = context,
            .turn = tool_context_turn(context),
            .call_id = "c",
            .tool_name = "request_access",
            .payload = PAYLOAD_FUNCTION,
            .arguments = doc.root,
            .front = FRONT_PROTO,
        };

        rc = tool_start(&call, &inv, take, h, NULL);
    }
    while (rc == SY_E_OK && !h->is_done) {
        (void)uv_run(loop, UV_RUN_ONCE);
    }
    return rc;
}

/* A whole engine, and one call in it. */
static enum sy_code
ask_once(struct heard *h, const struct yard *y)
{
    static const struct assess_by no_judge = {0};
    static const struct review_by person = {.ops = &yes_ops};
    struct tool_context *context = NULL;
    uv_loop_t loop;
    enum sy_code rc = SY_E_OK;

    *h = (struct heard){0};
    SY_ASSERT(uv_loop_init(&loop) == 0);
    rc = tool_context_new(&context, &y->config, y->ws, environ_list, &loop, NULL);
    if (rc == SY_E_OK) {
        session_use_approval(tool_context_session(context), &no_judge, &person);
        rc = ask(h, y, context, &loop);
        tool_context_free(context);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    SY_ASSERT(uv_loop_close(&loop) == 0);
    return rc;
}

static void
answers(struct yard *y, enum access_kind kind, const char *object, const char *want)
{
    struct heard h;

    y->order = (struct access_order){.kind = kind, .object = object};
    assert_int_equal(ask_once(&h, y), SY_E_OK);
    if (strstr(h.text, want) == NULL) {
        fail_msg("'%s' is not in: %s", want, h.text);
    }
}

static void
it_is_applied_once_a_person_has_said_yes(void **state)
{
    struct yard *y = *state;

    answers(y, ACCESS_WRITE, y->out, "Applied: write");
    answers(y, ACCESS_WRITE, y->ws, "Already allowed: write");
    answers(y, ACCESS_WRITE, "/etc", "is granted to nobody");
}

static enum sy_code
call_one(void *arg)
{
    struct yard *y = arg;
    struct heard h;
    enum sy_code rc = ask_once(&h, y);
    bool is_applied = strstr(h.text, "Applied:") == h.text;
    bool is_already = strstr(h.text, "Already allowed:") == h.text;

    if (rc == SY_E_OK && !mem_fault_fired() && h.is_error) {
        return SY_E_INTERNAL; /* all was well, and yet not */
    }
    if (rc == SY_E_OK && h.is_error) {
        return SY_E_NOMEM;
    }
    /* Whatever is said without an error is one of the two. */
    return rc != SY_E_OK || is_applied || is_already ? rc : SY_E_INTERNAL;
}

static void
a_call_may_run_out_of_memory(void **state)
{
    struct yard *y = *state;

    y->order = (struct access_order){.kind = ACCESS_WRITE, .object = y->out};
    fault_run_lenient(call_one, y);
    y->order = (struct access_order){.kind = ACCESS_WRITE, .object = y->ws};
    fault_run_lenient(call_one, y);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_asked_for_is_found_where_it_really_is),
        TEST(a_file_that_was_replaced_is_another_one),
        TEST(a_search_may_run_out_of_memory),
        TEST(a_look_at_the_machine_may_run_out_of_memory),
        TEST(it_is_applied_once_a_person_has_said_yes),
        TEST(a_call_may_run_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
