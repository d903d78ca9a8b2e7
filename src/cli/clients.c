#include "cli/clients.h"

#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/command.h"

#define PROGRAM "\"@PROGRAM\""
#define ARGS    "[\"mcp\"]"

static const struct edit_field plain_fields[] = {
    {"command", PROGRAM, EDIT_OURS    },
    {"args",    ARGS,    EDIT_OUR_HEAD},
    {"env",     "{}",    EDIT_THEIRS  },
    {NULL,      NULL,    EDIT_THEIRS  },
};

static const struct edit_field stdio_fields[] = {
    {"type",    "\"stdio\"", EDIT_OURS    },
    {"command", PROGRAM,     EDIT_OURS    },
    {"args",    ARGS,        EDIT_OUR_HEAD},
    {NULL,      NULL,        EDIT_THEIRS  },
};

/* Without `required` a slow start leaves the first turn without the tools;
 * without the approval mode `codex exec` refuses to run them at all. */
static const struct edit_field codex_fields[] = {
    {"command",                      PROGRAM,       EDIT_OURS    },
    {"args",                         ARGS,          EDIT_OUR_HEAD},
    {"required",                     "true",        EDIT_THEIRS  },
    {"startup_timeout_sec",          "10",          EDIT_THEIRS  },
    {"tool_timeout_sec",             "120",         EDIT_THEIRS  },
    {"supports_parallel_tool_calls", "true",        EDIT_THEIRS  },
    {"default_tools_approval_mode",  "\"approve\"", EDIT_THEIRS  },
    {NULL,                           NULL,          EDIT_THEIRS  },
};

static const struct edit_field zed_fields[] = {
    {"source",  "\"custom\"", EDIT_OURS    },
    {"command", PROGRAM,      EDIT_OURS    },
    {"args",    ARGS,         EDIT_OUR_HEAD},
    {"env",     "{}",         EDIT_THEIRS  },
    {NULL,      NULL,         EDIT_THEIRS  },
};

static const struct edit_field gemini_fields[] = {
    {"command", PROGRAM,  EDIT_OURS    },
    {"args",    ARGS,     EDIT_OUR_HEAD},
    {"timeout", "600000", EDIT_THEIRS  },
    {"trust",   "false",  EDIT_THEIRS  },
    {NULL,      NULL,     EDIT_THEIRS  },
};

static const struct edit_field opencode_fields[] = {
    {"type",    "\"local\"",              EDIT_OURS    },
    {"command", "[\"@PROGRAM\",\"mcp\"]", EDIT_OUR_HEAD},
    {"enabled", "true",                   EDIT_THEIRS  },
    {"timeout", "60000",                  EDIT_THEIRS  },
    {NULL,      NULL,                     EDIT_THEIRS  },
};

static const struct edit_field goose_fields[] = {
    {"name",    "\"shellyard\"", EDIT_OURS    },
    {"type",    "\"stdio\"",     EDIT_OURS    },
    {"cmd",     PROGRAM,         EDIT_OURS    },
    {"args",    ARGS,            EDIT_OUR_HEAD},
    {"enabled", "true",          EDIT_THEIRS  },
    {"timeout", "300",           EDIT_THEIRS  },
    {NULL,      NULL,            EDIT_THEIRS  },
};

static const struct edit_field cline_fields[] = {
    {"command",  PROGRAM, EDIT_OURS    },
    {"args",     ARGS,    EDIT_OUR_HEAD},
    {"timeout",  "600",   EDIT_THEIRS  },
    {"disabled", "false", EDIT_THEIRS  },
    {NULL,       NULL,    EDIT_THEIRS  },
};

static const struct edit_field copilot_fields[] = {
    {"type",    "\"local\"", EDIT_OURS    },
    {"command", PROGRAM,     EDIT_OURS    },
    {"args",    ARGS,        EDIT_OUR_HEAD},
    {"tools",   "[\"*\"]",   EDIT_THEIRS  },
    {NULL,      NULL,        EDIT_THEIRS  },
};

const struct client clients[] = {
    {"claude-code",    "Claude Code",        CLIENT_JSON,        "CLAUDE_CONFIG_DIR", ".claude.json",           ".claude.json",
     "mcpServers",                                                                                                                                                                                                            stdio_fields,
     "Quit Claude Code first: it writes the same file. To let it use only Shellyard's shell, put\n"
     "  {\"permissions\": {\"deny\": [\"Bash\"], \"allow\": [\"mcp__shellyard__*\"]}}\n"
     "into ~/.claude/settings.json.\n"                                                                                                                                                                                                                                               },
    {"codex",          "Codex CLI",          CLIENT_TOML,        "CODEX_HOME",        "config.toml",            ".codex/config.toml",
     "mcp_servers",                                                                                                                                                                                                           codex_fields,
     "To leave only Shellyard's shell, set shell_tool = false under [features].\n"                                                                                                                                                                                                   },
    {"cursor",         "Cursor",             CLIENT_JSON,        NULL,                NULL,                     ".cursor/mcp.json",                                                                        "mcpServers",      plain_fields,
     NULL                                                                                                                                                                                                                                                                            },
    {"vscode",         "Visual Studio Code", CLIENT_JSONC,       "XDG_CONFIG_HOME",   "Code/User/mcp.json",
     ".config/Code/User/mcp.json",                                                                                                                                                                         "servers",         stdio_fields,
     "For one project alone put the same into .vscode/mcp.json.\n"                                                                                                                                                                                                                   },
    {"zed",            "Zed",                CLIENT_JSONC,       "XDG_CONFIG_HOME",   "zed/settings.json",
     ".config/zed/settings.json",                                                                                                                                                                          "context_servers", zed_fields,      NULL                                  },
    {"gemini-cli",     "Gemini CLI",         CLIENT_JSONC,       NULL,                NULL,                     ".gemini/settings.json",                                                                   "mcpServers",
     gemini_fields,                                                                                                                                                                                                                            NULL                                  },
    {"claude-desktop", "Claude Desktop",     CLIENT_JSON,        "XDG_CONFIG_HOME",
     "Claude/claude_desktop_config.json",                                                                       ".config/Claude/claude_desktop_config.json",                                               "mcpServers",
     plain_fields,                                                                                                                                                                                                                             "Restart Claude Desktop afterwards.\n"},
    {"opencode",       "OpenCode",           CLIENT_JSONC_NAMED, "XDG_CONFIG_HOME",   "opencode/opencode.json",
     ".config/opencode/opencode.json",                                                                                                                                                                     "mcp",             opencode_fields, NULL                                  },
    {"goose",          "Goose",              CLIENT_YAML,        "XDG_CONFIG_HOME",   "goose/config.yaml",
     ".config/goose/config.yaml",                                                                                                                                                                          "extensions",      goose_fields,    NULL                                  },
    {"cline",          "Cline",              CLIENT_JSON,        "XDG_CONFIG_HOME",
     "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",                         ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
     "mcpServers",                                                                                                                                                                                                            cline_fields,    NULL                                  },
    {"copilot-cli",    "GitHub Copilot CLI", CLIENT_JSON,        "COPILOT_HOME",      "mcp-config.json",
     ".copilot/mcp-config.json",                                                                                                                                                                           "mcpServers",      copilot_fields,  NULL                                  },
    {"jetbrains",      "JetBrains Junie",    CLIENT_JSON,        NULL,                NULL,                     ".junie/mcp/mcp.json",                                                                     "mcpServers",
     plain_fields,                                                                                                                                                                                                                             NULL                                  },
    {NULL,             NULL,                 CLIENT_JSON,        NULL,                NULL,                     NULL,                                                                                      NULL,              NULL,            NULL                                  },
};

const struct client *
client_find(const char *name)
{
    for (size_t i = 0; clients[i].name != NULL; i++) {
        if (str_eq(clients[i].name, name)) {
            return &clients[i];
        }
    }
    return NULL;
}

void
client_fields_fini(struct client_fields *f)
{
    for (size_t i = 0; i < CLIENT_FIELDS_MAX; i++) {
        buf_fini(&f->values[i]);
    }
}

/* A value with the program's path as a JSON string in place of its mark. */
static enum sy_code
fill_value(struct buf *out, const char *value, const char *program)
{
    const char *mark = strstr(value, PROGRAM);

    if (mark == NULL) {
        return buf_add_str(out, value);
    }

    struct jw w = {.out = out};
    enum sy_code rc = buf_add(out, value, (size_t)(mark - value));

    if (rc != SY_E_OK) {
        return rc;
    }
    jw_str(&w, program);
    rc = jw_done(&w);
    return rc == SY_E_OK ? buf_add_str(out, mark + strlen(PROGRAM)) : rc;
}

enum sy_code
client_fields_make(struct client_fields *ret, const struct client *c, const char *program)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; c->fields[i].key != NULL; i++) {
        SY_ASSERT(i + 1 < CLIENT_FIELDS_MAX);
        ret->values[i].max = (size_t)8 * LIMIT_PATH;

        enum sy_code rc = fill_value(&ret->values[i], c->fields[i].value, program);

        if (rc != SY_E_OK) {
            return rc;
        }
        ret->fields[i] = c->fields[i];
        ret->fields[i].value = buf_view(&ret->values[i]);
    }
    return SY_E_OK;
}

enum sy_code
client_home(struct buf *ret, char *const *environ_list, struct sy_error *err)
{
    SY_AUTO(mem_free_charp) char *shell = NULL;
    SY_AUTO(mem_free_charp) char *passwd_home = NULL;
    const char *home = strv_env_find(environ_list, "HOME");
    enum sy_code rc = SY_E_OK;

    if (home == NULL || home[0] != '/') {
        rc = passwd_lookup(getuid(), &shell, &passwd_home, err);
        home = passwd_home;
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (home == NULL || home[0] != '/') {
        return sy_err_set(err, SY_E_ARG,
                          "HOME is not set, and passwd(5) has no home for user %u: where are the "
                          "clients' files?",
                          (unsigned)getuid());
    }
    rc = buf_add_str(ret, home);
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "path too long");
}

enum sy_code
client_path(struct buf *ret, const struct client *c, char *const *environ_list, const char *home,
            struct sy_error *err)
{
    const char *dir = c->dir_env != NULL ? strv_env_find(environ_list, c->dir_env) : NULL;
    enum sy_code rc = SY_E_OK;

    if (dir != NULL && dir[0] == '/') {
        rc = buf_addf(ret, "%s/%s", dir, c->env_file);
    } else if (home[0] == '/') {
        rc = buf_addf(ret, "%s/%s", home, c->home_file);
    } else {
        return sy_err_set(err, SY_E_ARG, "HOME is not set: where is the file of %s?", c->title);
    }
    if (rc == SY_E_OK && c->format == CLIENT_JSONC_NAMED && access(buf_view(ret), F_OK) != 0) {
        rc = buf_add_char(ret, 'c');
        if (rc == SY_E_OK && access(buf_view(ret), F_OK) != 0) {
            ret->data[--ret->len] = '\0';
        }
    }
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "path too long");
}

/* Does each line end with CR LF, as Windows and editors there have it? */
static bool
has_dos_lines(const struct buf *text)
{
    const char *s = buf_view(text);
    const char *at = s;

    while ((at = strchr(at, '\n')) != NULL) {
        if (at == s || at[-1] != '\r') {
            return false;
        }
        at++;
    }
    return strchr(s, '\n') != NULL;
}

/* With every "\n" as "\r\n", or the other way round. */
static enum sy_code
convert_lines(struct buf *out, const struct buf *text, bool to_dos)
{
    const char *s = buf_view(text);
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < text->len && rc == SY_E_OK;) {
        size_t n = strcspn(s + i, "\n");
        bool is_line = i + n < text->len && s[i + n] == '\n';

        rc = buf_add(out, s + i, n - (is_line && !to_dos ? 1 : 0));
        if (rc == SY_E_OK && is_line) {
            rc = buf_add_str(out, to_dos ? "\r\n" : "\n");
        }
        i += n + 1;
    }
    return rc;
}

static enum sy_code
edit_lines(struct buf *out, const struct client *c, const struct buf *text,
           const struct edit_field *fields, enum edit_outcome *ret_outcome, struct sy_error *err)
{
    const struct edit_entry entry = {.section = c->section, .name = CLIENT_ENTRY, .fields = fields};

    switch (c->format) {
    case CLIENT_JSON:
        return edit_json(out, text, &entry, ret_outcome, err);
    case CLIENT_JSONC:
    case CLIENT_JSONC_NAMED:
        return edit_jsonc(out, text, &entry, ret_outcome, err);
    case CLIENT_TOML:
        return edit_toml(out, text, &entry, ret_outcome, err);
    case CLIENT_YAML:
        return edit_yaml(out, text, &entry, ret_outcome, err);
    }
    return sy_err_set(err, SY_E_INTERNAL, "unknown format");
}

/* The editors know one end of lines: the file's own comes back behind them. */
enum sy_code
client_edit(struct buf *out, const struct client *c, const struct buf *text,
            const struct edit_field *fields, enum edit_outcome *ret_outcome, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf edited = {.max = LIMIT_CLIENT_FILE};
    enum sy_code rc = SY_E_OK;

    if (strlen(buf_view(text)) != text->len || !has_dos_lines(text)) {
        return edit_lines(out, c, text, fields, ret_outcome, err);
    }
    rc = convert_lines(&plain, text, false);
    if (rc == SY_E_OK) {
        rc = edit_lines(&edited, c, &plain, fields, ret_outcome, err);
        if (rc != SY_E_OK) {
            return rc;
        }
        rc = convert_lines(out, &edited, true);
    }
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "%s", sy_code_text(rc));
}

enum sy_code
client_snippet(struct buf *out, const struct client *c, const struct edit_field *fields)
{
    const struct buf nothing = {.max = 1};
    enum edit_outcome outcome = EDIT_ADDED;

    /* What a new file would hold is what one pastes into an old one. */
    return client_edit(out, c, &nothing, fields, &outcome, NULL);
}

enum client_state
client_look(const struct client *c, const char *program, const char *path, struct sy_error *err)
{
    SY_AUTO(client_fields_fini) struct client_fields f = {0};
    SY_AUTO(edit_file_fini) struct edit_file file = {0};
    SY_AUTO(buf_fini) struct buf edited = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_ADDED;
    enum sy_code rc = client_fields_make(&f, c, program);

    if (rc == SY_E_OK) {
        rc = edit_file_read(&file, path, err);
    }
    if (rc == SY_E_OK && !file.exists) {
        return CLIENT_NO_FILE;
    }
    if (rc == SY_E_OK) {
        rc = client_edit(&edited, c, &file.text, f.fields, &outcome, err);
    }
    if (rc != SY_E_OK) {
        return CLIENT_UNREADABLE;
    }
    switch (outcome) {
    case EDIT_UNCHANGED:
        return CLIENT_SET;
    case EDIT_CHANGED:
        return CLIENT_DIFFERS;
    case EDIT_ADDED:
        break;
    }
    return CLIENT_NOT_SET;
}
