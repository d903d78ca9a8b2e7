/* PowerShell's commands that only look. */
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "command/safe_internal.h"

static bool
in_list_nocase(const char *const *list, const char *word)
{
    for (; *list != NULL; list++) {
        if (strcasecmp(*list, word) == 0) {
            return true;
        }
    }
    return false;
}

bool
safe_powershell_command(const char *name, bool is_windows)
{
    static const char *const cmdlets[] = {"write-output",  "write-host",    "get-childitem",
                                          "get-content",   "select-string", "measure-object",
                                          "get-location",  "test-path",     "resolve-path",
                                          "select-object", "get-item",      NULL};
    /* Elsewhere these are programs of the system. */
    static const char *const aliases[] = {"echo",   "dir",     "ls",      "gci", "cat", "type",
                                          "gc",     "sls",     "gl",      "pwd", "tp",  "rvpa",
                                          "select", "measure", "findstr", NULL};

    return in_list_nocase(cmdlets, name) || (is_windows && in_list_nocase(aliases, name));
}

bool
safe_powershell_is_bad_word(const char *word)
{
    static const char *const bad[] = {"set-content",   "add-content",  "out-file",  "new-item",
                                      "remove-item",   "move-item",    "copy-item", "rename-item",
                                      "start-process", "stop-process", NULL};
    char own[PROGRAM_NAME_MAX];
    size_t len = 0;

    word += strspn(word, "()-");
    len = strlen(word);
    while (len > 0 && strchr("()-", word[len - 1]) != NULL) {
        len--;
    }
    if (len >= sizeof(own)) {
        return false;
    }
    memcpy(own, word, len);
    own[len] = '\0';
    return in_list_nocase(bad, own);
}

static enum sy_code
join(struct words w, struct buf *joined)
{
    for (size_t i = 0; i < w.n; i++) {
        enum sy_code rc = i > 0 ? buf_add_char(joined, ' ') : SY_E_OK;

        if (rc == SY_E_OK) {
            rc = buf_add_str(joined, w.v[i].text);
        }
        if (rc != SY_E_OK) {
            return rc == SY_E_LIMIT ? SY_E_ARG : rc;
        }
    }
    return joined->len > 0 ? SY_E_OK : SY_E_ARG;
}

enum sy_code
safe_powershell_script(struct words w, struct buf *joined)
{
    static const char *const harmless[] = {"-nologo", "-noprofile", "-noninteractive",
                                           "-mta",    "-sta",       NULL};
    static const char *const command[] = {"-command", "/command", "-c", NULL};

    for (size_t i = 0; i < w.n; i++) {
        const char *s = w.v[i].text;

        if (in_list_nocase(command, s)) {
            return w.n - i == 2 ? join(words_from(w, i + 1), joined) : SY_E_ARG;
        }
        if (strncasecmp(s, "-command:", 9) == 0 || strncasecmp(s, "/command:", 9) == 0) {
            enum sy_code rc = w.n - i == 1 ? buf_add_str(joined, s + 9) : SY_E_ARG;

            return rc == SY_E_LIMIT ? SY_E_ARG : rc;
        }
        if (s[0] != '-' && s[0] != '/') {
            return join(words_from(w, i), joined);
        }
        if (!in_list_nocase(harmless, s)) {
            return SY_E_ARG;
        }
    }
    return SY_E_ARG;
}
