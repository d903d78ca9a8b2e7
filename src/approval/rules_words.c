#include <stdio.h>
#include <string.h>

#include "approval/rules_internal.h"
#include "base/limits.h"
#include "base/str.h"

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Between quotes of the kind *text; *text is behind them then. NULL: they do
 * not end. */
static enum sy_code
add_quoted(struct buf *word, const char **text, bool is_literal, const char **ret_fault)
{
    char quote = **text;
    const char *s = *text + 1;
    enum sy_code rc = SY_E_OK;

    for (; rc == SY_E_OK && *s != '\0' && *s != quote; s++) {
        if (quote == '"' && !is_literal && (*s == '$' || *s == '`')) {
            *ret_fault = "has '$' or a backtick, which a shell would replace: write the words as a "
                         "list";
            return SY_E_OK;
        }
        if (quote == '"' && *s == '\\' && s[1] != '\0' && strchr("\"\\$`", s[1]) != NULL) {
            s++;
        }
        rc = buf_add_char(word, *s);
    }
    if (rc == SY_E_OK && *s == '\0') {
        *ret_fault = "has a quote that does not end";
        return SY_E_OK;
    }
    *text = s + 1;
    return rc;
}

/* Up to the blank behind the word. */
static enum sy_code
add_word(struct buf *word, const char **text, bool is_literal, const char **ret_fault)
{
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && *ret_fault == NULL && **text != '\0' && !is_blank(**text)) {
        char c = **text;

        if (c == '\'' || c == '"') {
            rc = add_quoted(word, text, is_literal, ret_fault);
        } else if (c == '\\' && (*text)[1] == '\0') {
            *ret_fault = "ends with a backslash";
        } else if (!is_literal && strchr("|&;<>()$`*?[#~", c) != NULL) {
            *ret_fault = "has a character that a shell would act on: quote it, or write the words "
                         "as a list";
        } else {
            *text += c == '\\' ? 1 : 0;
            rc = buf_add_char(word, **text);
            (*text)++;
        }
    }
    return rc;
}

enum sy_code
rules_split(struct strv *ret, const char *text, bool is_literal, const char **ret_fault)
{
    SY_AUTO(buf_fini) struct buf word = {.max = LIMIT_RULES_FILE};
    enum sy_code rc = SY_E_OK;

    *ret_fault = NULL;
    while (rc == SY_E_OK && *ret_fault == NULL) {
        while (is_blank(*text)) {
            text++;
        }
        if (*text == '\0') {
            break;
        }
        if (*text == '#') {
            *ret_fault = "has '#', which begins a comment: write the words as a list";
            break;
        }
        buf_reset(&word);
        rc = add_word(&word, &text, is_literal, ret_fault);
        if (rc == SY_E_OK && *ret_fault == NULL) {
            rc = strv_add(ret, buf_view(&word));
        }
    }
    if (rc == SY_E_OK && *ret_fault == NULL && ret->n == 0) {
        *ret_fault = "has no words";
    }
    return rc;
}

/* `n` digits within bounds; false otherwise. */
static bool
take_digits(const char **s, size_t n, unsigned max, unsigned *ret)
{
    unsigned value = 0;

    for (size_t i = 0; i < n; i++) {
        char c = **s;

        if (c < '0' || c > '9') {
            return false;
        }
        value = 10 * value + (unsigned)(c - '0');
        (*s)++;
    }
    *ret = value;
    return value <= max;
}

static bool
take_char(const char **s, char c)
{
    bool is_there = **s == c;

    *s += is_there ? 1 : 0;
    return is_there;
}

static unsigned
month_days(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && is_leap ? 1U : 0U);
}

#define DAY_SECONDS 86400

/* Days since 1970, of a year from then on. */
static int64_t
days_since_1970(unsigned year, unsigned month, unsigned day)
{
    int64_t days = day - 1;

    for (unsigned y = 1970; y < year; y++) {
        days += month_days(y, 2) == 29 ? 366 : 365;
    }
    for (unsigned m = 1; m < month; m++) {
        days += month_days(year, m);
    }
    return days;
}

bool
rules_parse_time(int64_t *ret, const char *text)
{
    const char *s = text;
    unsigned year = 0;
    unsigned month = 0;
    unsigned day = 0;
    unsigned clock[3] = {24, 0, 0};

    if (!take_digits(&s, 4, 9999, &year) || !take_char(&s, '-') ||
        !take_digits(&s, 2, 12, &month) || !take_char(&s, '-') || !take_digits(&s, 2, 31, &day) ||
        year < 1970 || month == 0 || day == 0 || day > month_days(year, month)) {
        return false;
    }
    if (*s != '\0' &&
        (!take_char(&s, 'T') || !take_digits(&s, 2, 23, &clock[0]) || !take_char(&s, ':') ||
         !take_digits(&s, 2, 59, &clock[1]) || !take_char(&s, ':') ||
         !take_digits(&s, 2, 59, &clock[2]) || !take_char(&s, 'Z') || *s != '\0')) {
        return false;
    }
    *ret = days_since_1970(year, month, day) * DAY_SECONDS + (int64_t)clock[0] * 3600 +
           (int64_t)clock[1] * 60 + clock[2];
    return *ret > 0;
}

const char *
rules_time_text(char out[RULES_TIME_LEN], int64_t seconds)
{
    int64_t days = seconds / DAY_SECONDS;
    unsigned rest = (unsigned)(seconds % DAY_SECONDS);
    unsigned year = 1970;
    unsigned month = 1;

    while (days >= (month_days(year, 2) == 29 ? 366 : 365)) {
        days -= month_days(year, 2) == 29 ? 366 : 365;
        year++;
    }
    while (days >= month_days(year, month)) {
        days -= month_days(year, month++);
    }
    (void)snprintf(out, RULES_TIME_LEN, "%04u-%02u-%02uT%02u:%02u:%02uZ", year % 100000U, month,
                   (unsigned)days % 100U + 1, rest / 3600, rest / 60 % 60, rest % 60);
    return out;
}
