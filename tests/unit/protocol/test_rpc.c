#include "test.h"

#include "base/limits.h"
#include "protocol/rpc.h"

static struct rpc_id
id_of(struct json_doc *doc, const char *json)
{
    struct rpc_id id = {0};

    assert_int_equal(json_parse(doc, json, strlen(json), NULL), SY_E_OK);
    (void)!rpc_id_read(&id, doc->root);
    return id;
}

static void
an_id_keeps_its_type(void **state)
{
    static const char *const good[] = {"1",     "-7",   "9223372036854775807",
                                       "\"1\"", "\"\"", "\"a\\u0000b\""};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct json_doc doc = {0};
        struct buf out = {.max = 1024};
        struct jw w = {.out = &out};
        struct rpc_id id = id_of(&doc, good[i]);

        rpc_id_write(&w, &id);
        assert_int_equal(jw_done(&w), SY_E_OK);
        assert_string_equal(out.data, good[i]);
        buf_fini(&out);
        json_doc_fini(&doc);
    }
}

static void
null_fractions_and_containers_are_no_ids(void **state)
{
    static const char *const bad[] = {"null", "1.5", "1.0", "true", "{}", "[1]"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct json_doc doc = {0};

        assert_int_equal(id_of(&doc, bad[i]).kind, RPC_ID_NONE);
        json_doc_fini(&doc);
    }
}

static void
a_string_id_has_a_maximum(void **state)
{
    char text[LIMIT_MESSAGE_ID + 4];
    struct json_doc doc = {0};

    (void)state;
    memset(text, 'x', sizeof(text));
    text[0] = '"';
    text[LIMIT_MESSAGE_ID + 1] = '"';
    text[LIMIT_MESSAGE_ID + 2] = '\0';
    assert_int_equal(id_of(&doc, text).kind, RPC_ID_STRING);
    json_doc_fini(&doc);

    text[LIMIT_MESSAGE_ID + 1] = 'x';
    text[LIMIT_MESSAGE_ID + 2] = '"';
    text[LIMIT_MESSAGE_ID + 3] = '\0';
    assert_int_equal(id_of(&doc, text).kind, RPC_ID_NONE);
    json_doc_fini(&doc);
}

static void
the_id_of_what_is_no_json_is_found_if_it_is_sure(void **state)
{
    static const struct {
        const char *text;
        const char *id; /* NULL: none */
    } cases[] = {
        {"{\"id\":7,\"method\":\"x\",\"params\":{\"id\":8,\"a\":\"\xff\"}}",                  "7" },
        {"{\"method\":\"x\",\"params\":[{\"id\":8}],\"p\":\"\\ud800\",\"id\" : \"q\\\"w\" }",
         "\"q\\\"w\""                                                                             },
        {"  {\"a\":\"\\\"id\\\":9\",\"id\":-1,\"method\":\"x\",\"b\":[[[}",                   "-1"},
        {"{\"id\":7,\"result\":\"\xff\"}",                                                    NULL},
        {"{\"id\":7,\"id\":8,\"method\":\"\xff\"}",                                           NULL},
        {"[{\"id\":7,\"method\":\"\xff\"}]",                                                  NULL},
        {"{\"id\":1.5,\"method\":\"\xff\"}",                                                  NULL},
        {"{\"id\":\"\xff\",\"method\":\"x\"}",                                                NULL},
        {"{\"method\":\"x\",\"id\":",                                                         NULL},
        {"{\"method\":\"x\",\"id\":\"",                                                       NULL},
        {"{\"method\":\"x\",\"id\"",                                                          NULL},
        {"{\"method\":\"x\\",                                                                 NULL},
        {"id",                                                                                NULL},
        {"",                                                                                  NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_doc doc = {0};
        struct rpc_id id = {0};
        bool found = rpc_id_recover(&id, &doc, cases[i].text, strlen(cases[i].text));

        assert_int_equal(found, cases[i].id != NULL);
        if (found) {
            struct buf out = {.max = 1024};
            struct jw w = {.out = &out};

            rpc_id_write(&w, &id);
            assert_int_equal(jw_done(&w), SY_E_OK);
            assert_string_equal(out.data, cases[i].id);
            buf_fini(&out);
        }
        json_doc_fini(&doc);
    }
}

static void
ids_of_different_type_differ(void **state)
{
    struct rpc_id one = {.kind = RPC_ID_INTEGER, .number = 1};
    struct rpc_id text = {.kind = RPC_ID_STRING, .text = "1", .len = 1};
    struct rpc_id longer = {.kind = RPC_ID_STRING, .text = "12", .len = 2};
    struct rpc_id none = {0};

    (void)state;
    assert_true(rpc_id_eq(&one, &one));
    assert_true(rpc_id_eq(&text, &text));
    assert_false(rpc_id_eq(&one, &text));
    assert_false(rpc_id_eq(&text, &longer));
    assert_false(rpc_id_eq(&none, &none));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_keeps_its_type),
        cmocka_unit_test(null_fractions_and_containers_are_no_ids),
        cmocka_unit_test(a_string_id_has_a_maximum),
        cmocka_unit_test(the_id_of_what_is_no_json_is_found_if_it_is_sure),
        cmocka_unit_test(ids_of_different_type_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
