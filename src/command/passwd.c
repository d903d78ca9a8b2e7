#include "base/colon_record.h"
#include "base/fd.h"
#include "base/mem.h"
#include "command/command_internal.h"

/* A machine with 50,000 local users has less than this. */
#define PASSWD_MAX ((size_t)16 * 1024 * 1024)

/* Fields of passwd(5): name:password:uid:gid:comment:home:shell. */
enum field { FIELD_UID = 2, FIELD_HOME = 5, FIELD_SHELL = 6, FIELD_COUNT = 7 };

/* Lines of another form are left out: comments, "+" of the NIS days. */
static bool
find(struct colon_text fields[FIELD_COUNT], const char *text, size_t len, unsigned uid)
{
    struct colon_text rest = {text, len};
    size_t n = 0;

    while ((n = colon_record_next(&rest, fields, FIELD_COUNT)) > 0) {
        if (n == FIELD_COUNT && colon_text_is(fields[FIELD_UID], uid)) {
            return true;
        }
    }
    return false;
}

enum sy_code
passwd_scan(const char *text, size_t len, unsigned uid, char **ret_shell, char **ret_home)
{
    struct colon_text fields[FIELD_COUNT];

    *ret_shell = NULL;
    *ret_home = NULL;
    if (!find(fields, text, len, uid)) {
        return SY_E_OK;
    }

    char *shell = mem_strndup(fields[FIELD_SHELL].s, fields[FIELD_SHELL].n);
    char *home = mem_strndup(fields[FIELD_HOME].s, fields[FIELD_HOME].n);

    if (shell == NULL || home == NULL) {
        mem_free(shell);
        mem_free(home);
        return SY_E_NOMEM;
    }
    *ret_shell = shell;
    *ret_home = home;
    return SY_E_OK;
}

static enum sy_code
read_all(struct buf *text, struct sy_error *err)
{
    enum sy_code rc = fd_read_file("/etc/passwd", text, err);

    if (rc == SY_E_NOTFOUND) {
        /* Some containers have no users at all. */
        sy_err_clear(err);
        return SY_E_OK;
    }
    return rc;
}

enum sy_code
passwd_lookup(unsigned uid, char **ret_shell, char **ret_home, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = PASSWD_MAX};
    enum sy_code rc = read_all(&text, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = passwd_scan(buf_view(&text), text.len, uid, ret_shell, ret_home);
    return rc != SY_E_OK ? sy_err_nomem(err) : SY_E_OK;
}

enum sy_code
passwd_scan_name(const char *text, size_t len, unsigned uid, char **ret_name)
{
    struct colon_text fields[FIELD_COUNT];

    *ret_name = NULL;
    if (!find(fields, text, len, uid)) {
        return SY_E_OK;
    }
    *ret_name = mem_strndup(fields[0].s, fields[0].n);
    return *ret_name != NULL ? SY_E_OK : SY_E_NOMEM;
}

enum sy_code
passwd_name(unsigned uid, char **ret_name, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = PASSWD_MAX};
    enum sy_code rc = read_all(&text, err);

    *ret_name = NULL;
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = passwd_scan_name(buf_view(&text), text.len, uid, ret_name);
    return rc != SY_E_OK ? sy_err_nomem(err) : SY_E_OK;
}
