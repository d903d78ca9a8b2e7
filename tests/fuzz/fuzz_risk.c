/*
 * What a language model answered, in the envelope of either interface: the first byte says which.
 * Whatever it wrote, what a person is shown of it is one short line in which nothing deceives, and
 * a request with it is still one.
 */
#include <stdint.h>
#include <string.h>

#include "approval/question.h"
#include "approval/risk.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "fuzz_check.h"

/* Right to left, an isolate, zero width: made visible. As bytes, so that this file has none. */
static const char hidden[][4] = {
    {(char)0xe2, (char)0x80, (char)0xae, 0},
    {(char)0xe2, (char)0x81, (char)0xa6, 0},
    {(char)0xe2, (char)0x80, (char)0x8b, 0},
};

static void
check_shown(const char *text)
{
    CHECK(utf8_is_valid(text, strlen(text)));
    for (const char *s = text; *s != '\0'; s++) {
        CHECK((unsigned char)*s >= 0x20U && *s != 0x7F);
    }
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        CHECK(strstr(text, hidden[i]) == NULL);
    }
}

/* Added to a request, it is read again there and stands in one line. */
static void
check_added(const struct risk *risk)
{
    static const char question[] = "{\"command\":[\"ls\"],\"prefix\":[]}";
    struct buf with = {.max = LIMIT_STORE_TEXT};
    struct buf line = {.max = LIMIT_STORE_TEXT};
    struct buf twice = {.max = LIMIT_STORE_TEXT};
    struct sy_error err = {0};
    bool is_added = false;

    CHECK(risk_add(&with, question, risk, "the model", &err) == SY_E_OK);
    CHECK(risk_is_added(&is_added, buf_view(&with), &err) == SY_E_OK && is_added);
    CHECK(risk_add(&twice, buf_view(&with), risk, "the model", &err) == SY_E_ARG);
    CHECK(question_comment(&line, buf_view(&with), &err) == SY_E_OK);
    CHECK(line.len > 0 && line.data[line.len - 1] == '\n');
    line.data[line.len - 1] = '\0';
    CHECK(strchr(line.data, '\n') == NULL);
    check_shown(line.data);
    buf_fini(&with);
    buf_fini(&line);
    buf_fini(&twice);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct risk risk = {0};
    struct sy_error err = {0};
    size_t live = mem_live();
    enum sy_code rc = SY_E_OK;

    if (size == 0) {
        return 0;
    }
    rc = risk_read_answer(&risk, data[0] == 'o' ? RISK_OPENAI : RISK_ANTHROPIC,
                          (const char *)data + 1, size - 1, &err);
    if (rc == SY_E_OK) {
        CHECK(risk.level <= RISK_HIGH && strlen(risk.sentence) < RISK_SENTENCE_MAX);
        check_shown(risk.sentence);
        check_added(&risk);
    } else {
        CHECK(rc == SY_E_PARSE && err.code == rc && err.msg[0] != '\0');
        CHECK(risk.sentence[0] == '\0');
    }
    CHECK(mem_live() == live);
    return 0;
}
