#ifndef SY_BASE_LOG_H
#define SY_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Logs go to standard error, one line an event, logfmt or JSON:
 *
 *     LOG(LOG_INFO, "process", "started", kv_str("run", id), kv_int("pid", pid));
 *
 * Never logged: environment values, command output, secrets; argv only at
 * DEBUG and below. Foreign strings are made visible and cut at 256 bytes.
 * Rooms below cli/ do not log above LOG_DEBUG.
 */
enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log_kv {
    const char *key;
    const char *text; /* NULL: the number counts */
    int64_t number;
};

static inline struct log_kv
kv_str(const char *key, const char *text)
{
    return (struct log_kv){.key = key, .text = text != NULL ? text : ""};
}

static inline struct log_kv
kv_int(const char *key, int64_t number)
{
    return (struct log_kv){.key = key, .number = number};
}

void log_set(enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);
/* false when the name is none of error, warn, info, debug, trace. */
bool log_level_parse(enum log_level *ret, const char *name) SY_NODISCARD;
const char *log_level_name(enum log_level level);

void log_write(enum log_level level, const char *room, const char *message,
               const struct log_kv *kvs, size_t n);

#define LOG(level, room, message, ...)                                                             \
    do {                                                                                           \
        if (log_enabled(level)) {                                                                  \
            const struct log_kv log_kvs_[] = {__VA_ARGS__};                                        \
            log_write(level, room, message, log_kvs_, sizeof(log_kvs_) / sizeof(log_kvs_[0]));     \
        }                                                                                          \
    } while (0)

#endif
