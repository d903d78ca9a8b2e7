#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "fault.h"

static struct json_doc
parsed(const char *text, size_t len)
{
    struct json_doc doc = {0};
    struct sy_error err = {0};

    if (json_parse(&doc, text, len, &err) != SY_E_OK) {
        fail_msg("%s: %s", text, err.msg);
    }
    return doc;
}

static void
assert_refused(const char *text, size_t len)
{
    struct json_doc doc = {0};
    struct sy_error err = {0};
    enum sy_code rc = json_parse(&doc, text, len, &err);

    if (rc != SY_E_PARSE || err.msg[0] == '\0' || doc.root != NULL) {
        fail_msg("'%s' gives %s: %s", text, sy_code_name(rc), err.msg);
    }
}

static void
each_type_is_read(void **state)
{
    static const char text[] = "{\"null\":null,\"yes\":true,\"no\":false,\"int\":-42,\"real\":1.5,"
                               "\"whole\":5000.0,\"text\":\"a\\u20ac\",\"list\":[1,\"two\",[]],"
                               "\"big\":9223372036854775807}";
    SY_AUTO(json_doc_fini) struct json_doc doc = parsed(text, sizeof(text) - 1);
    const struct js *root = doc.root;
    int64_t n = 7;
    bool b = false;

    (void)state;
    assert_int_equal(js_type(root), JS_OBJECT);
    assert_int_equal(js_count(root), 9);
    assert_int_equal(js_type(js_get(root, "null")), JS_NULL);
    assert_non_null(js_get(root, "null"));
    assert_null(js_get(root, "absent"));
    assert_true(js_bool(&b, js_get(root, "yes")));
    assert_true(b);
    assert_true(js_bool(&b, js_get(root, "no")));
    assert_false(b);
    assert_false(js_bool(&b, js_get(root, "int")));
    assert_true(js_int(&n, js_get(root, "int")));
    assert_int_equal(n, -42);
    assert_true(js_int(&n, js_get(root, "whole")));
    assert_int_equal(n, 5000);
    assert_true(js_int(&n, js_get(root, "big")));
    assert_true(n == INT64_MAX);
    assert_false(js_int(&n, js_get(root, "real")));
    assert_false(js_int(&n, js_get(root, "text")));
    assert_false(js_int(&n, js_get(root, "yes")));
    assert_false(js_int(&n, NULL));
    assert_true(n == INT64_MAX);
    assert_string_equal(js_str(js_get(root, "text")), "a\xe2\x82\xac");
    assert_int_equal(js_str_len(js_get(root, "text")), 4);
    assert_int_equal(js_type(js_at(js_get(root, "list"), 2)), JS_ARRAY);
    assert_string_equal(js_str(js_at(js_get(root, "list"), 1)), "two");
    assert_null(js_at(js_get(root, "list"), 3));
    assert_int_equal(js_count(js_get(root, "list")), 3);
}

static void
questions_to_the_wrong_type_have_an_empty_answer(void **state)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = parsed("[1]", 3);
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;
    bool b = false;

    (void)state;
    assert_null(js_get(doc.root, "x"));
    assert_null(js_get(NULL, "x"));
    assert_null(js_str(doc.root));
    assert_null(js_str_raw(NULL));
    assert_int_equal(js_str_len(doc.root), 0);
    assert_int_equal(js_count(js_at(doc.root, 0)), 0);
    assert_int_equal(js_count(NULL), 0);
    assert_null(js_at(NULL, 0));
    assert_null(js_at(js_at(doc.root, 0), 0));
    assert_false(js_next(doc.root, &it, &key, &value));
    assert_false(js_next(NULL, &it, &key, &value));
    assert_false(js_bool(&b, NULL));
    assert_int_equal(js_type(NULL), JS_NULL);
    assert_string_equal(js_type_name(JS_REAL), "number");
    assert_string_equal(js_type_name(JS_INT), "integer");
}

static void
any_root_is_taken(void **state)
{
    static const char *const texts[] = {"1", "\"x\"", "null", "true", "[]", "{}", " {} \n", "-0.5"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        SY_AUTO(json_doc_fini) struct json_doc doc = parsed(texts[i], strlen(texts[i]));

        assert_non_null(doc.root);
    }
}

static void
malformed_documents_are_refused_with_a_sentence(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":}",
        "{\"a\"}",
        "{a:1}",
        "{'a':1}",
        "nul",
        "tru",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "NaN",
        "Infinity",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\n\"",
        "\"\t\"",
        "{} {}",
        "[1] x",
        "// c\n1",
        "/* */1",
        "\"\\ud800\"",
        "\"\\udc00x\"",
        "\xef\xbb\xbf{}",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xe2\x82\"",
        "99999999999999999999",
        "1e999",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"o\":{\"b\":1,\"b\":1}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_refused(bad[i], strlen(bad[i]));
    }
    assert_refused("1\0", 2);
    assert_refused("{\"a\\u0000b\":1}", 14);

    struct json_doc doc = {0};
    struct sy_error err = {0};

    assert_int_equal(json_parse(&doc, "{\n  \"a\": x}", 11, &err), SY_E_PARSE);
    assert_non_null(strstr(err.msg, "line 2"));
}

static void
a_string_may_hold_nul_but_is_then_no_c_string(void **state)
{
    static const char text[] = "[\"a\\u0000b\", \"\"]";
    SY_AUTO(json_doc_fini) struct json_doc doc = parsed(text, sizeof(text) - 1);
    const struct js *v = js_at(doc.root, 0);

    (void)state;
    assert_int_equal(js_str_len(v), 3);
    assert_memory_equal(js_str_raw(v), "a\0b", 3);
    assert_null(js_str(v));
    assert_string_equal(js_str(js_at(doc.root, 1)), "");
}

static size_t
nested(char *text, size_t depth, const char *open, const char *close)
{
    size_t n = 0;

    for (size_t i = 0; i < depth; i++) {
        memcpy(text + n, open, strlen(open));
        n += strlen(open);
    }
    text[n++] = '1';
    for (size_t i = 0; i < depth; i++) {
        memcpy(text + n, close, strlen(close));
        n += strlen(close);
    }
    text[n] = '\0';
    return n;
}

/* Puts the letters over what is there, without their NUL. */
static void
put_at(char *text, const char *letters)
{
    while (*letters != '\0') {
        *text++ = *letters++;
    }
}

static void
nesting_has_a_limit(void **state)
{
    char text[2000];

    (void)state;
    size_t n = nested(text, LIMIT_JSON_DEPTH, "[", "]");
    SY_AUTO(json_doc_fini) struct json_doc at_limit = parsed(text, n);

    assert_non_null(at_limit.root);
    n = nested(text, LIMIT_JSON_DEPTH + 1, "[", "]");
    assert_refused(text, n);
    n = nested(text, LIMIT_JSON_DEPTH + 1, "{\"a\":", "}");
    assert_refused(text, n);

    /* Brackets in strings, and many in a row, are not nesting. */
    memset(text, '[', 1000);
    text[0] = '"';
    put_at(text + 1, "\\\"\\\\");
    text[999] = '"';
    SY_AUTO(json_doc_fini) struct json_doc in_string = parsed(text, 1000);

    assert_int_equal(js_type(in_string.root), JS_STRING);
    text[0] = '[';
    for (size_t i = 0; i < 300; i++) {
        put_at(text + 1 + i * 3, "[],");
    }
    put_at(text + 901, "1]");
    SY_AUTO(json_doc_fini) struct json_doc in_row = parsed(text, 903);

    assert_int_equal(js_count(in_row.root), 301);
}

static void
walking_an_object_meets_each_member_once(void **state)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = parsed("{\"a\":1,\"b\":2,\"c\":3}", 19);
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;
    int64_t sum = 0;
    char keys[4] = {0};
    size_t count = 0;

    (void)state;
    while (js_next(doc.root, &it, &key, &value)) {
        int64_t n = 0;

        assert_true(js_int(&n, value));
        assert_true(count < 3);
        keys[count++] = key[0];
        sum += n;
    }
    assert_string_equal(keys, "abc");
    assert_int_equal(sum, 6);
}

static void
the_writer_puts_commas_where_they_belong(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};
    SY_AUTO(json_doc_fini) struct json_doc doc = parsed("{\"k\": [1, \"\\u0001\"]}", 20);
    struct jw w = {.out = &b};

    (void)state;
    jw_object(&w);
    jw_key_str(&w, "s", "x");
    jw_key_int(&w, "i", INT64_MIN);
    jw_key_bool(&w, "b", true);
    jw_key(&w, "a");
    jw_array(&w);
    jw_int(&w, 1);
    jw_null(&w);
    jw_bool(&w, false);
    jw_array(&w);
    jw_end_array(&w);
    jw_object(&w);
    jw_end_object(&w);
    jw_real(&w, 1.0 / 3, 3);
    jw_end_array(&w);
    jw_key(&w, "raw");
    jw_raw(&w, "[0]", 3);
    jw_key(&w, "value");
    jw_value(&w, doc.root);
    jw_key_strn(&w, "n", "abc", 2);
    jw_end_object(&w);
    assert_int_equal(jw_done(&w), SY_E_OK);
    assert_string_equal(buf_view(&b), "{\"s\":\"x\",\"i\":-9223372036854775808,\"b\":true,"
                                      "\"a\":[1,null,false,[],{},0.333],\"raw\":[0],"
                                      "\"value\":{\"k\":[1,\"\\u0001\"]},\"n\":\"ab\"}");
}

/* What is written reads back as itself; invalid bytes as U+FFFD each. */
static void
assert_round_trip(const char *s, size_t n)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 100000};
    SY_AUTO(buf_fini) struct buf want = {.max = 100000};
    struct jw w = {.out = &b};

    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        size_t m = utf8_decode(&c, s + i, n - i);

        assert_int_equal(m > 0 ? buf_add(&want, s + i, m) : buf_add_str(&want, "\xef\xbf\xbd"),
                         SY_E_OK);
        i += m > 0 ? m : 1;
    }
    jw_strn(&w, s, n);
    assert_int_equal(jw_done(&w), SY_E_OK);
    assert_true(utf8_is_valid(b.data, b.len));
    for (size_t i = 0; i < b.len; i++) {
        assert_true((unsigned char)b.data[i] >= 0x20);
    }

    SY_AUTO(json_doc_fini) struct json_doc doc = parsed(b.data, b.len);

    assert_int_equal(js_str_len(doc.root), want.len);
    assert_memory_equal(js_str_raw(doc.root), buf_view(&want), want.len);
}

static void
every_byte_at_every_place_of_a_word_reads_back(void **state)
{
    char s[40];

    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < 24; at++) {
            memset(s, 'a', sizeof(s));
            s[at] = (char)c;
            assert_round_trip(s, 24);
            s[at + 1] = (char)c;
            s[at + 9] = '"';
            assert_round_trip(s, sizeof(s));
        }
    }
    assert_round_trip("", 0);
    assert_round_trip("\xe2\x82", 2);
    assert_round_trip("\xf0\x9f\x98\x80\xff\xfe\\\"/\x7f\x1b[0m", 14);
}

static void
escapes_are_the_short_ones(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};
    struct jw w = {.out = &b};

    (void)state;
    jw_strn(&w, "\"\\/\b\f\n\r\t\0\x1f\x7f\xff", 12);
    assert_int_equal(jw_done(&w), SY_E_OK);
    assert_string_equal(buf_view(&b),
                        "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\xef\xbf\xbd\"");
}

static void
assert_exact(const char *bytes, const char *written)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};
    SY_AUTO(buf_fini) struct buf back = {.max = 1000};
    struct jw w = {.out = &b};

    jw_exact(&w, bytes);
    assert_int_equal(jw_done(&w), SY_E_OK);
    assert_string_equal(buf_view(&b), written);

    SY_AUTO(json_doc_fini) struct json_doc doc = parsed(buf_view(&b), b.len);

    assert_int_equal(js_exact(&back, doc.root), SY_E_OK);
    assert_string_equal(buf_view(&back), bytes);
}

static void
what_must_be_read_as_the_same_bytes_is(void **state)
{
    static const char *const no_bytes[] = {
        "{\"hex\":\"\"}",
        "{\"hex\":\"e\"}",
        "{\"hex\":\"E9\"}",
        "{\"hex\":\"00\"}",
        "{\"hex\":\"e9g0\"}",
        "{\"hex\":1}",
        "{}",
        "{\"hax\":\"e9\"}",
        "{\"hex\":\"e9\",\"a\":1}",
        "\"a\\u0000b\"",
        "1",
        "[\"a\"]",
    };
    char all[256];

    (void)state;
    for (int i = 0; i < 255; i++) {
        all[i] = (char)(i + 1);
    }
    all[255] = '\0';
    assert_exact("", "\"\"");
    assert_exact("/w/lat\xef\xbf\xbd \"", "\"/w/lat\xef\xbf\xbd \\\"\"");
    assert_exact("/w/lat\xe9", "{\"hex\":\"2f772f6c6174e9\"}");
    assert_exact("\xed\xa0\x80", "{\"hex\":\"eda080\"}");

    SY_AUTO(buf_fini) struct buf b = {.max = 2000};
    SY_AUTO(buf_fini) struct buf back = {.max = 1000};
    struct jw w = {.out = &b};

    jw_exact(&w, all);
    assert_int_equal(jw_done(&w), SY_E_OK);

    SY_AUTO(json_doc_fini) struct json_doc doc = parsed(buf_view(&b), b.len);

    assert_int_equal(js_exact(&back, doc.root), SY_E_OK);
    assert_string_equal(buf_view(&back), all);
    for (size_t i = 0; i < sizeof(no_bytes) / sizeof(no_bytes[0]); i++) {
        SY_AUTO(json_doc_fini) struct json_doc bad = parsed(no_bytes[i], strlen(no_bytes[i]));

        assert_int_equal(js_exact(&back, bad.root), SY_E_PARSE);
        assert_string_equal(buf_view(&back), all);
    }
    assert_int_equal(js_exact(&back, NULL), SY_E_PARSE);
}

static void
errors_of_the_writer_stick(void **state)
{
    SY_AUTO(buf_fini) struct buf small = {.max = 10};
    SY_AUTO(buf_fini) struct buf b = {.max = 100};
    struct jw full = {.out = &small};
    struct jw open = {.out = &b};
    struct jw closed = {.out = &b};

    (void)state;
    jw_array(&full);
    jw_str(&full, "0123456789");
    jw_int(&full, 1);
    jw_end_array(&full);
    assert_int_equal(jw_done(&full), SY_E_LIMIT);
    jw_array(&open);
    assert_int_equal(jw_done(&open), SY_E_INTERNAL);
    jw_end_object(&closed);
    assert_int_equal(jw_done(&closed), SY_E_INTERNAL);
}

static void
values_dump_compactly(void **state)
{
    static const char text[] = "[ 1, -2.5, \"\\u20ac\\n\", { \"a\" : null } ]";
    SY_AUTO(json_doc_fini) struct json_doc doc = parsed(text, sizeof(text) - 1);
    SY_AUTO(buf_fini) struct buf b = {.max = 100};
    SY_AUTO(buf_fini) struct buf small = {.max = 5};

    (void)state;
    assert_int_equal(js_dump(&b, doc.root), SY_E_OK);
    assert_string_equal(buf_view(&b), "[1,-2.5,\"\xe2\x82\xac\\n\",{\"a\":null}]");
    buf_reset(&b);
    assert_int_equal(js_dump(&b, NULL), SY_E_OK);
    assert_string_equal(buf_view(&b), "null");
    assert_int_equal(js_dump(&small, doc.root), SY_E_LIMIT);
}

static enum sy_code
parse_once(void *arg)
{
    const char *text = arg;
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    struct sy_error err = {0};

    return json_parse(&doc, text, strlen(text), &err);
}

static enum sy_code
write_once(void *arg)
{
    const struct json_doc *doc = arg;
    SY_AUTO(buf_fini) struct buf b = {.max = 100000};
    struct jw w = {.out = &b};

    jw_array(&w);
    for (int i = 0; i < 100; i++) {
        jw_str(&w, "some text\nand more");
        jw_value(&w, doc->root);
    }
    jw_end_array(&w);
    return jw_done(&w);
}

static void
json_survives_each_failed_allocation(void **state)
{
    static char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                         "\"name\":\"shell\",\"arguments\":{\"command\":[\"ls\",\"-la\","
                         "\"a long argument that makes the string buffer grow and grow\","
                         "1.5,true,null,\"\\u20ac\"]}},\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,"
                         "\"f\":6,\"g\":7,\"h\":8,\"i\":9}";
    SY_AUTO(json_doc_fini) struct json_doc doc = parsed(text, sizeof(text) - 1);

    (void)state;
    fault_run(parse_once, text);
    fault_run(write_once, &doc);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_is_read),
        cmocka_unit_test(questions_to_the_wrong_type_have_an_empty_answer),
        cmocka_unit_test(any_root_is_taken),
        cmocka_unit_test(malformed_documents_are_refused_with_a_sentence),
        cmocka_unit_test(a_string_may_hold_nul_but_is_then_no_c_string),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(walking_an_object_meets_each_member_once),
        cmocka_unit_test(the_writer_puts_commas_where_they_belong),
        cmocka_unit_test(every_byte_at_every_place_of_a_word_reads_back),
        cmocka_unit_test(escapes_are_the_short_ones),
        cmocka_unit_test(what_must_be_read_as_the_same_bytes_is),
        cmocka_unit_test(errors_of_the_writer_stick),
        cmocka_unit_test(values_dump_compactly),
        cmocka_unit_test(json_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
