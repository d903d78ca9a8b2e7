#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"

#define LOG_LINE_MAX  8192U
#define LOG_VALUE_MAX 256U

static enum log_level threshold = LOG_WARN;
static enum log_format line_format = LOG_LOGFMT;

static const char *const level_names[] = {
    [LOG_ERROR] = "error", [LOG_WARN] = "warn",   [LOG_INFO] = "info",
    [LOG_DEBUG] = "debug", [LOG_TRACE] = "trace",
};

void
log_set(enum log_level level, enum log_format format)
{
    threshold = level;
    line_format = format;
}

bool
log_enabled(enum log_level level)
{
    return level <= threshold;
}

bool
log_level_parse(enum log_level *ret, const char *name)
{
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (str_eq(level_names[i], name)) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

const char *
log_level_name(enum log_level level)
{
    return level_names[level];
}

static enum sy_code
add_logfmt_value(struct buf *line, const char *text)
{
    SY_AUTO(buf_fini) struct buf shown = {.max = LOG_VALUE_MAX + 16};
    enum sy_code rc = str_add_visible(&shown, text, strlen(text), LOG_VALUE_MAX);

    if (rc != SY_E_OK) {
        return rc;
    }

    const char *s = buf_view(&shown);

    if (*s != '\0' && strpbrk(s, " =\"\\") == NULL) {
        return buf_add_str(line, s);
    }
    rc = buf_add_char(line, '"');
    for (; *s != '\0' && rc == SY_E_OK; s++) {
        if (*s == '"' || *s == '\\') {
            rc = buf_add_char(line, '\\');
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(line, *s);
        }
    }
    return rc == SY_E_OK ? buf_add_char(line, '"') : rc;
}

static enum sy_code
build_logfmt(struct buf *line, enum log_level level, const char *room, const char *message,
             const struct log_kv *kvs, size_t n)
{
    char when[CLOCK_WALL_LEN];

    clock_wall_text(when);

    enum sy_code rc = buf_addf(line, "ts=%s level=%s room=%s msg=", when, level_names[level], room);

    if (rc == SY_E_OK) {
        rc = add_logfmt_value(line, message);
    }
    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        rc = buf_addf(line, " %s=", kvs[i].key);
        if (rc == SY_E_OK) {
            rc = kvs[i].text != NULL ? add_logfmt_value(line, kvs[i].text)
                                     : buf_addf(line, "%lld", (long long)kvs[i].number);
        }
    }
    return rc;
}

static enum sy_code
build_json(struct buf *line, enum log_level level, const char *room, const char *message,
           const struct log_kv *kvs, size_t n)
{
    char when[CLOCK_WALL_LEN];
    struct jw w = {.out = line};

    clock_wall_text(when);
    jw_object(&w);
    jw_key_str(&w, "ts", when);
    jw_key_str(&w, "level", level_names[level]);
    jw_key_str(&w, "room", room);
    jw_key_str(&w, "msg", message);
    for (size_t i = 0; i < n; i++) {
        if (kvs[i].text == NULL) {
            jw_key_int(&w, kvs[i].key, kvs[i].number);
            continue;
        }

        SY_AUTO(buf_fini) struct buf shown = {.max = LOG_VALUE_MAX + 16};

        if (str_add_visible(&shown, kvs[i].text, strlen(kvs[i].text), LOG_VALUE_MAX) == SY_E_OK) {
            jw_key_str(&w, kvs[i].key, buf_view(&shown));
        }
    }
    jw_end_object(&w);
    return jw_done(&w);
}

/* What can be said without heap, when the whole line can't be made: it is
 * often about just that. Room and message are constants of the program. */
static void
write_bare(enum log_level level, const char *room, const char *message)
{
    char when[CLOCK_WALL_LEN];
    char line[512];

    clock_wall_text(when);

    int n = snprintf(line, sizeof(line),
                     line_format == LOG_JSON
                         ? "{\"ts\":\"%s\",\"level\":\"%s\",\"room\":\"%s\",\"msg\":\"%s\"}\n"
                         : "ts=%s level=%s room=%s msg=\"%s\"\n",
                     when, level_names[level], room, message);

    if (n > 0 && (size_t)n < sizeof(line) &&
        fd_write_all(STDERR_FILENO, line, (size_t)n, NULL) != SY_E_OK) {
        return;
    }
}

void
log_write(enum log_level level, const char *room, const char *message, const struct log_kv *kvs,
          size_t n)
{
    SY_AUTO(buf_fini) struct buf line = {.max = LOG_LINE_MAX};
    enum sy_code rc = line_format == LOG_JSON ? build_json(&line, level, room, message, kvs, n)
                                              : build_logfmt(&line, level, room, message, kvs, n);

    if (rc == SY_E_OK) {
        rc = buf_add_char(&line, '\n');
    }
    if (rc != SY_E_OK) {
        write_bare(level, room, message);
    } else if (fd_write_all(STDERR_FILENO, line.data, line.len, NULL) != SY_E_OK) {
        /* A closed standard error loses logs, nothing else. */
        return;
    }
}
