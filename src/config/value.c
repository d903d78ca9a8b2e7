#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "config/config_internal.h"
#include "proxy/allow.h"

#define URL_MAX        2048U
#define NAME_MAX_BYTES 200U

void
config_value_fini(struct config_value *v)
{
    mem_free(v->text);
    strv_fini(&v->list);
    *v = (struct config_value){0};
}

void
config_value_begin(struct config_value *v, const struct config_row *row,
                   const struct config_place *key_at)
{
    config_value_fini(v);
    v->is_set = true;
    v->place = *key_at;
    v->list.max = row->items_max;
}

static bool
is_nothing(const struct config_text *t)
{
    return t->is_plain && (t->len == 0 || str_eq(t->bytes, "~") || str_eq(t->bytes, "null"));
}

/* "'foo'", or "the string 'true'" where quotes made it one. */
struct got {
    char text[96];
};

static const char *
describe(struct got *got, const struct config_text *t, bool name_quotes)
{
    struct place_shown shown;

    if (is_nothing(t)) {
        return t->len == 0 ? "nothing" : "null";
    }
    (void)snprintf(got->text, sizeof(got->text), "%s'%s'%s",
                   name_quotes && !t->is_plain ? "the string " : "",
                   place_visible(&shown, t->bytes, t->len),
                   name_quotes && !t->is_plain ? " (leave out the quotes)" : "");
    return got->text;
}

static enum sy_code
set_choice(struct config_value *v, const struct config_row *row, const struct config_text *t,
           struct sy_error *err)
{
    struct got got;
    const char *text = t->bytes;

    if (row->alias.word != NULL && str_eq(text, row->alias.word)) {
        text = row->alias.means;
    }
    for (const char *const *word = row->words; *word != NULL; word++) {
        if (str_eq(text, *word)) {
            v->word = *word;
            return SY_E_OK;
        }
    }
    return config_error_type(err, &t->at, row, describe(&got, t, false));
}

static enum sy_code
set_boolean(struct config_value *v, const struct config_row *row, const struct config_text *t,
            struct sy_error *err)
{
    /* What YAML 1.1 or a person takes for a boolean; guessing would make
     * `no` in one reader something else in another. */
    static const struct {
        const char *word;
        const char *write;
    } others[] = {
        {"yes",   "true" },
        {"on",    "true" },
        {"y",     "true" },
        {"1",     "true" },
        {"True",  "true" },
        {"TRUE",  "true" },
        {"Yes",   "true" },
        {"YES",   "true" },
        {"On",    "true" },
        {"ON",    "true" },
        {"no",    "false"},
        {"off",   "false"},
        {"n",     "false"},
        {"0",     "false"},
        {"False", "false"},
        {"FALSE", "false"},
        {"No",    "false"},
        {"NO",    "false"},
        {"Off",   "false"},
        {"OFF",   "false"},
    };
    struct got got;

    if (t->is_plain && (str_eq(t->bytes, "true") || str_eq(t->bytes, "false"))) {
        v->flag = t->bytes[0] == 't';
        return SY_E_OK;
    }
    (void)describe(&got, t, true);
    for (size_t i = 0; t->is_plain && i < sizeof(others) / sizeof(others[0]); i++) {
        if (str_eq(t->bytes, others[i].word)) {
            (void)snprintf(got.text, sizeof(got.text), "'%s' (write %s)", others[i].word,
                           others[i].write);
        }
    }
    return config_error_type(err, &t->at, row, is_nothing(t) ? describe(&got, t, true) : got.text);
}

/* "64M" is 67108864. False where there is no unit, or too large a number. */
static bool
with_unit(int64_t *ret, const struct config_row *row, const struct config_text *t)
{
    static const char units[] = "KMG";
    const char *unit = t->len > 1 && row->has_units ? strchr(units, t->bytes[t->len - 1]) : NULL;
    char digits[20];

    if (unit == NULL || t->len > sizeof(digits)) {
        return false;
    }
    memcpy(digits, t->bytes, t->len - 1);
    digits[t->len - 1] = '\0';

    int shift = 10 * (int)(unit - units + 1);

    if (digits[0] == '0' || !str_to_i64(ret, digits, 1, row->max >> shift)) {
        return false;
    }
    *ret *= (int64_t)1 << shift;
    return true;
}

static enum sy_code
set_integer(struct config_value *v, const struct config_row *row, const struct config_text *t,
            struct sy_error *err)
{
    struct got got;
    const char *digits = t->bytes[0] == '-' ? t->bytes + 1 : t->bytes;
    /* 010 is 8 for some readers of YAML and 10 for others. */
    bool is_ambiguous = digits[0] == '0' && digits[1] != '\0';

    int64_t number = 0;
    bool is_number =
        with_unit(&number, row, t) ||
        (t->is_plain && !is_ambiguous && str_to_i64(&number, t->bytes, row->min, row->max));

    if (is_number && (number == 0 || number >= row->floor)) {
        v->number = number;
        return SY_E_OK;
    }
    return config_error_type(err, &t->at, row, describe(&got, t, true));
}

static enum sy_code
check_nul(const struct config_text *t, struct sy_error *err)
{
    if (strlen(t->bytes) != t->len) {
        return config_error(err, &t->at, "a NUL character, which no path, name or variable holds");
    }
    return SY_E_OK;
}

/* "~" and "~/x" with the home directory in front, "//" and "." taken out. ".."
 * is refused: behind a symbolic link it leads elsewhere than it reads. */
static enum sy_code
add_path(struct buf *b, const struct config_text *t, bool is_pattern, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_PATH};
    struct place_shown shown;
    const char *rest = t->bytes;
    enum sy_code rc = SY_E_OK;

    if (rest[0] == '~' && (rest[1] == '\0' || rest[1] == '/')) {
        if (t->home == NULL || t->home[0] != '/') {
            return config_error(err, &t->at, "'%s': HOME is not set to an absolute path",
                                place_visible(&shown, t->bytes, t->len));
        }
        rc = is_pattern ? path_pattern_quote(&whole, t->home) : buf_add_str(&whole, t->home);
        rest++;
    } else if (rest[0] == '~') {
        return config_error(err, &t->at, "'%s': only '~' and '~/...' are expanded",
                            place_visible(&shown, t->bytes, t->len));
    } else if (rest[0] != '/') {
        return config_error(err, &t->at,
                            "expected an absolute path or one that begins with '~/', "
                            "got '%s'",
                            place_visible(&shown, t->bytes, t->len));
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(&whole, rest);
    }
    if (rc == SY_E_OK) {
        rc = path_normalize(b, buf_view(&whole));
    }
    if (rc == SY_E_LIMIT) {
        return config_error(err, &t->at, "a path of more than %u bytes", LIMIT_PATH);
    }
    return rc != SY_E_OK ? sy_err_nomem(err) : SY_E_OK;
}

static bool
has_dotdot(const char *path)
{
    for (const char *s = path; *s != '\0';) {
        size_t n = strcspn(s, "/");

        if (n == 2 && s[0] == '.' && s[1] == '.') {
            return true;
        }
        s += n;
        s += *s == '/' ? 1 : 0;
    }
    return false;
}

/* Plain http would show commands and key to whoever is on the way. */
static bool
is_safe_url(const char *text)
{
    static const char *const here[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    size_t at = str_starts(text, "https://") ? strlen("https://") : 0;

    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]) && at == 0; i++) {
        size_t n = strlen(here[i]);

        if (str_starts(text, here[i]) && strchr(":/", text[n]) != NULL) {
            return strcspn(text + n, "@") == strlen(text + n);
        }
    }
    return at > 0 && strcspn(text + at, ":/?#@") > 0 &&
           text[at + strcspn(text + at, "/?#@")] != '@';
}

static bool
is_visible_ascii(const char *text)
{
    while (*text > ' ' && *text < 0x7f) {
        text++;
    }
    return *text == '\0';
}

static enum sy_code
add_word(struct buf *b, const struct config_row *row, const struct config_text *t,
         struct sy_error *err)
{
    bool is_url = row->content == CONFIG_URL_OR_EMPTY;
    struct place_shown shown;

    if (t->len > (is_url ? URL_MAX : NAME_MAX_BYTES) || !is_visible_ascii(t->bytes) ||
        (is_url && !is_safe_url(t->bytes))) {
        return config_error(err, &t->at, "expected %s, got '%s'",
                            is_url ? "a URL that begins with https://, or with http:// and this "
                                     "machine (127.0.0.1, localhost, [::1]), without a user name"
                                   : "a name of visible ASCII characters, at most 200",
                            place_visible(&shown, t->bytes, t->len));
    }
    return buf_add_str(b, t->bytes) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
}

static enum sy_code
set_string(struct config_value *v, const struct config_row *row, const struct config_text *t,
           struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    struct got got;

    if (is_nothing(t)) {
        return config_error_type(err, &t->at, row, describe(&got, t, false));
    }
    if (t->len > 0) {
        enum sy_code rc = row->content == CONFIG_PATH_OR_EMPTY ? add_path(&path, t, false, err)
                                                               : add_word(&path, row, t, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    mem_free(v->text);
    v->text = buf_take(&path);
    return v->text != NULL ? SY_E_OK : sy_err_nomem(err);
}

enum sy_code
config_value_scalar(struct config_value *v, const struct config_row *row,
                    const struct config_text *t, struct sy_error *err)
{
    struct got got;
    enum sy_code rc = check_nul(t, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    switch (row->type) {
    case CONFIG_CHOICE:
        return set_choice(v, row, t, err);
    case CONFIG_BOOLEAN:
        return set_boolean(v, row, t, err);
    case CONFIG_INTEGER:
        return set_integer(v, row, t, err);
    case CONFIG_STRING:
        return set_string(v, row, t, err);
    case CONFIG_LIST:
        return config_error_type(err, &t->at, row, describe(&got, t, false));
    case CONFIG_MAP:
        break;
    }
    /* Not the text: it may be a secret. */
    return config_error_type(err, &t->at, row, is_nothing(t) ? describe(&got, t, false) : "text");
}

/* The result of adding to v->list. */
static enum sy_code
added(enum sy_code rc, const struct config_row *row, const struct config_place *at,
      struct sy_error *err)
{
    if (rc == SY_E_LIMIT) {
        return config_error(err, at, "more than %zu entries", row->items_max);
    }
    return rc != SY_E_OK ? sy_err_nomem(err) : SY_E_OK;
}

/* The grammar is the proxy's own, so that what is accepted here is what it does. */
static enum sy_code
add_host(struct config_value *v, const struct config_row *row, const struct config_text *t,
         struct sy_error *err)
{
    const char *const entry = t->bytes;
    struct allow_list *list = NULL;
    struct sy_error why = {0};
    enum sy_code rc = allow_new(&list, &entry, 1, &why);

    allow_free(list);
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK) {
        return config_error(err, &t->at, "%s", why.msg);
    }
    return added(strv_add(&v->list, t->bytes), row, &t->at, err);
}

enum sy_code
config_value_item(struct config_value *v, const struct config_row *row, const struct config_text *t,
                  struct sy_error *err)
{
    struct place_shown shown;
    enum sy_code rc = check_nul(t, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (t->len == 0) {
        return config_error(err, &t->at, "an empty entry");
    }
    if (row->content == CONFIG_HOST) {
        return add_host(v, row, t, err);
    }
    if (row->content != CONFIG_ROOT && row->content != CONFIG_PATH_PATTERN) {
        if (strchr(t->bytes, '=') != NULL) {
            return config_error(err, &t->at,
                                "expected a pattern of variable names such as *_URL, got '%s'",
                                place_visible(&shown, t->bytes, t->len));
        }
        return added(strv_add(&v->list, t->bytes), row, &t->at, err);
    }

    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

    if (has_dotdot(t->bytes)) {
        return config_error(err, &t->at,
                            "'%s': '..' leads elsewhere behind a symbolic link; write the path out",
                            place_visible(&shown, t->bytes, t->len));
    }
    rc = add_path(&path, t, row->content == CONFIG_PATH_PATTERN, err);
    if (rc != SY_E_OK) {
        return rc;
    }

    const char *fault =
        row->content == CONFIG_PATH_PATTERN ? path_pattern_fault(buf_view(&path)) : NULL;

    if (fault != NULL) {
        return config_error(err, &t->at, "'%s' %s", place_visible(&shown, t->bytes, t->len), fault);
    }
    return added(strv_add_take(&v->list, buf_take(&path)), row, &t->at, err);
}

size_t
config_value_find(const struct config_value *v, const char *name, size_t len)
{
    size_t i = 0;

    /* The name may hold NUL bytes here. */
    while (i < v->list.n && !(strlen(v->list.v[i]) > len && memcmp(v->list.v[i], name, len) == 0 &&
                              v->list.v[i][len] == '=')) {
        i++;
    }
    return i;
}

static bool
is_variable_name(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char digits[] = "0123456789";

    if (*s == '\0' || strchr(letters, *s) == NULL) {
        return false;
    }
    for (; *s != '\0'; s++) {
        if (strchr(letters, *s) == NULL && strchr(digits, *s) == NULL) {
            return false;
        }
    }
    return true;
}

/* Those that the environment of a command never holds: a loader or a shell
 * runs code by them; the engine's own settings stay with the engine. */
static bool
is_never_passed(const char *name)
{
    return str_starts(name, "LD_") || str_starts(name, "SHELLYARD_") || str_eq(name, "BASH_ENV") ||
           str_eq(name, "ENV") || str_eq(name, "PROMPT_COMMAND");
}

enum sy_code
config_value_entry(struct config_value *v, const struct config_row *row,
                   const struct config_text *name, const struct config_text *value,
                   struct sy_error *err)
{
    struct place_shown shown;
    enum sy_code rc = check_nul(name, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (!is_variable_name(name->bytes)) {
        return config_error(err, &name->at,
                            "'%s' is no variable name (letters, digits and '_', no digit first)",
                            place_visible(&shown, name->bytes, name->len));
    }
    if (is_never_passed(name->bytes)) {
        return config_error(err, &name->at, "variable '%s' is never passed to commands",
                            place_visible(&shown, name->bytes, name->len));
    }
    rc = check_nul(value, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (is_nothing(value)) {
        return config_error(err, &value->at,
                            "variable '%s' has no value (write \"\" for an empty "
                            "one)",
                            place_visible(&shown, name->bytes, name->len));
    }
    if (name->len + value->len + 2 > (size_t)LIMIT_ARG_STRLEN) {
        return config_error(err, &value->at, "variable '%s' takes more than %u bytes",
                            place_visible(&shown, name->bytes, name->len), LIMIT_ARG_STRLEN);
    }
    return added(strv_addf(&v->list, "%s=%s", name->bytes, value->bytes), row, &value->at, err);
}
