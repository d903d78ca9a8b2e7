#include "proxy/environment.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

#define LOOPBACK "localhost,127.0.0.1,::1"

enum value { VALUE_HTTP, VALUE_ALL, VALUE_AUTHORITY, VALUE_DIRECT, VALUE_ON, VALUE_UNSET };

static const struct {
    const char *name;
    enum value value;
} variables[] = {
    {"HTTP_PROXY",             VALUE_HTTP     },
    {"http_proxy",             VALUE_HTTP     },
    {"HTTPS_PROXY",            VALUE_HTTP     },
    {"https_proxy",            VALUE_HTTP     },
    {"WS_PROXY",               VALUE_HTTP     },
    {"ws_proxy",               VALUE_HTTP     },
    {"WSS_PROXY",              VALUE_HTTP     },
    {"wss_proxy",              VALUE_HTTP     },
    {"ALL_PROXY",              VALUE_ALL      },
    {"all_proxy",              VALUE_ALL      },
    {"NO_PROXY",               VALUE_DIRECT   },
    {"no_proxy",               VALUE_DIRECT   },
    {"FTP_PROXY",              VALUE_UNSET    }, /* FTP does not go through it */
    {"ftp_proxy",              VALUE_UNSET    },
    {"RSYNC_PROXY",            VALUE_AUTHORITY},
    {"NODE_USE_ENV_PROXY",     VALUE_ON       },
    {"ELECTRON_GET_USE_PROXY", VALUE_ON       },
 /* npm knows no http-proxy: npm_config_http_proxy makes it warn. */
    {"npm_config_proxy",       VALUE_HTTP     },
    {"npm_config_https_proxy", VALUE_HTTP     },
    {"npm_config_noproxy",     VALUE_DIRECT   },
    {"NPM_CONFIG_PROXY",       VALUE_UNSET    },
    {"NPM_CONFIG_HTTPS_PROXY", VALUE_UNSET    },
    {"NPM_CONFIG_NOPROXY",     VALUE_UNSET    },
    {"npm_config_http_proxy",  VALUE_UNSET    },
    {"NPM_CONFIG_HTTP_PROXY",  VALUE_UNSET    },
 /* Yarn reads no others; it stops at YARN_NO_PROXY, which it does not know. */
    {"YARN_HTTP_PROXY",        VALUE_HTTP     },
    {"YARN_HTTPS_PROXY",       VALUE_HTTP     },
    {"YARN_NO_PROXY",          VALUE_UNSET    },
    {"PIP_PROXY",              VALUE_HTTP     }, /* before a proxy in pip.conf */
    {"CARGO_HTTP_PROXY",       VALUE_HTTP     }, /* before one in config.toml or .gitconfig */
    {"GIT_PROXY_COMMAND",      VALUE_UNSET    },
};

struct values {
    char http[40];
    char all[40];
    char authority[24];
    const char *direct;
};

static enum sy_code
set_variable(struct strv *env, const char *name, enum value value, const struct values *v)
{
    switch (value) {
    case VALUE_HTTP:
        return strv_env_set(env, name, v->http);
    case VALUE_ALL:
        return strv_env_set(env, name, v->all);
    case VALUE_AUTHORITY:
        return strv_env_set(env, name, v->authority);
    case VALUE_DIRECT:
        return strv_env_set(env, name, v->direct);
    case VALUE_ON:
        return strv_env_set(env, name, "1");
    case VALUE_UNSET:
        break;
    }
    strv_env_unset(env, name);
    return SY_E_OK;
}

/* Java reads no *_PROXY. Each JVM takes this variable, and says so in one line
 * on its standard error. What the user has there stays, and ours wins: it comes
 * last. */
static enum sy_code
set_java(struct strv *env, const struct proxy_environment *p)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_ARG_STRLEN};
    const char *before = strv_env_get(env, "JAVA_TOOL_OPTIONS");
    enum sy_code rc =
        buf_addf(&text,
                 "%s%s-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=%u "
                 "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=%u -Dhttp.nonProxyHosts=%s",
                 before != NULL ? before : "", before != NULL && before[0] != '\0' ? " " : "",
                 (unsigned)p->http_port, (unsigned)p->http_port,
                 p->is_loopback_direct ? "localhost|127.*|[::1]" : "");

    return rc == SY_E_OK ? strv_env_set(env, "JAVA_TOOL_OPTIONS", text.data) : rc;
}

/* git prefers http.proxy of its configuration to the environment: one more
 * setting by GIT_CONFIG_COUNT wins over every file. */
static enum sy_code
set_git(struct strv *env, const char *url)
{
    const char *before = strv_env_get(env, "GIT_CONFIG_COUNT");
    uint64_t n = 0;
    char name[40];
    char count[24];

    if (before != NULL && before[0] != '\0' && !str_to_u64(&n, before, 0, LIMIT_ENV)) {
        return SY_E_OK; /* git stops at it by itself, and says why. */
    }
    (void)snprintf(name, sizeof(name), "GIT_CONFIG_KEY_%u", (unsigned)n);

    enum sy_code rc = strv_env_set(env, name, "http.proxy");

    (void)snprintf(name, sizeof(name), "GIT_CONFIG_VALUE_%u", (unsigned)n);
    rc = rc == SY_E_OK ? strv_env_set(env, name, url) : rc;
    (void)snprintf(count, sizeof(count), "%u", (unsigned)n + 1);
    return rc == SY_E_OK ? strv_env_set(env, "GIT_CONFIG_COUNT", count) : rc;
}

static enum sy_code
set_ssh(struct strv *env, const char *command)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_ARG_STRLEN};
    const char *before = strv_env_get(env, "GIT_SSH_COMMAND");
    enum sy_code rc = SY_E_OK;

    if (command == NULL) {
        return SY_E_OK;
    }
    rc = buf_addf(&text, "%s -o 'ProxyCommand=%s %%h %%p'",
                  before != NULL && before[0] != '\0' ? before : "ssh", command);
    return rc == SY_E_OK ? strv_env_set(env, "GIT_SSH_COMMAND", text.data) : rc;
}

enum sy_code
proxy_environment_apply(struct strv *env, const struct proxy_environment *p, struct sy_error *err)
{
    struct values v = {.direct = p->is_loopback_direct ? LOOPBACK : ""};
    enum sy_code rc = SY_E_OK;

    SY_ASSERT(p->http_port != 0);
    (void)snprintf(v.authority, sizeof(v.authority), "127.0.0.1:%u", (unsigned)p->http_port);
    (void)snprintf(v.http, sizeof(v.http), "http://%s", v.authority);
    (void)snprintf(v.all, sizeof(v.all), "%s127.0.0.1:%u",
                   p->socks_port != 0 ? "socks5h://" : "http://",
                   (unsigned)(p->socks_port != 0 ? p->socks_port : p->http_port));
    for (size_t i = 0; rc == SY_E_OK && i < sizeof(variables) / sizeof(variables[0]); i++) {
        rc = set_variable(env, variables[i].name, variables[i].value, &v);
    }
    rc = rc == SY_E_OK ? set_java(env, p) : rc;
    rc = rc == SY_E_OK ? set_git(env, v.http) : rc;
    rc = rc == SY_E_OK ? set_ssh(env, p->ssh_proxy_command) : rc;
    if (rc == SY_E_OK || rc == SY_E_NOMEM) {
        return rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    return sy_err_set(err, rc, "the environment grows too large with the proxy's variables");
}
