/*
 * What people keep secret in well-known places. What a program can't work without
 * and that need not hold a secret must not be here: ~/.gitconfig, ~/.m2/settings.xml,
 * ~/.gradle/gradle.properties, ~/.yarnrc.yml. Nor Shellyard's own places: no key opens these, so
 * they are no defaults (own_dirs of a policy).
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "sandbox/deny.h"

#define KEYS    "private keys"
#define CLOUD   "credentials of a cloud account"
#define TOKEN   "access tokens"
#define STORE   "stored passwords"
#define BROWSER "cookies and passwords of a browser"
#define HISTORY "what was typed, passwords among it"
#define SYSTEM  "credentials of the machine and its users"
#define DEVICES "terminals, cameras, microphones and disks of others"

/* Sorted as deny_order has it: a directory is compared with all of them at once. */
static const struct deny_default of_home[] = {
    {".ash_history",                       NULL,                          "",                 HISTORY},
    {".authinfo",                          NULL,                          "",                 STORE  },
    {".authinfo.gpg",                      NULL,                          "",                 STORE  },
    {".aws",                               "AWS_SHARED_CREDENTIALS_FILE", "",                 CLOUD  },
    {".azure",                             "AZURE_CONFIG_DIR",            "",                 CLOUD  },
    {".bash_history",                      NULL,                          "",                 HISTORY},
    {".boto",                              "BOTO_CONFIG",                 "",                 CLOUD  },
    {".cache/huggingface/token",           NULL,                          "",                 TOKEN  },
    {".cargo/credentials",                 "CARGO_HOME",                  "credentials",      TOKEN  },
    {".cargo/credentials.toml",            "CARGO_HOME",                  "credentials.toml", TOKEN  },
    {".claude/.credentials.json",          NULL,                          "",                 TOKEN  },
    {".codex/auth.json",                   NULL,                          "",                 TOKEN  },
    {".composer/auth.json",                NULL,                          "",                 TOKEN  },
    {".config/1Password",                  NULL,                          "",                 STORE  },
    {".config/Bitwarden",                  NULL,                          "",                 STORE  },
    {".config/Bitwarden CLI",              NULL,                          "",                 STORE  },
    {".config/BraveSoftware",              NULL,                          "",                 BROWSER},
    {".config/age",                        NULL,                          "",                 KEYS   },
    {".config/chromium",                   NULL,                          "",                 BROWSER},
    {".config/composer/auth.json",         NULL,                          "",                 TOKEN  },
    {".config/containers/auth.json",       "REGISTRY_AUTH_FILE",          "",                 TOKEN  },
    {".config/docker",                     NULL,                          "",                 TOKEN  },
    {".config/doctl",                      NULL,                          "",                 CLOUD  },
    {".config/gcloud",                     "CLOUDSDK_CONFIG",             "",                 CLOUD  },
    {".config/gh",                         "GH_CONFIG_DIR",               "",                 TOKEN  },
    {".config/git/credentials",            NULL,                          "",                 STORE  },
    {".config/github-copilot",             NULL,                          "",                 TOKEN  },
    {".config/glab-cli",                   NULL,                          "",                 TOKEN  },
    {".config/google-chrome",              NULL,                          "",                 BROWSER},
    {".config/google-chrome-beta",         NULL,                          "",                 BROWSER},
    {".config/google-chrome-unstable",     NULL,                          "",                 BROWSER},
    {".config/hcloud",                     NULL,                          "",                 CLOUD  },
    {".config/helm",                       NULL,                          "",                 TOKEN  },
    {".config/hub",                        NULL,                          "",                 TOKEN  },
    {".config/keepassxc",                  NULL,                          "",                 STORE  },
    {".config/microsoft-edge",             NULL,                          "",                 BROWSER},
    {".config/mozilla",                    NULL,                          "",                 BROWSER},
    {".config/op",                         NULL,                          "",                 STORE  },
    {".config/openstack",                  NULL,                          "",                 CLOUD  },
    {".config/opera",                      NULL,                          "",                 BROWSER},
    {".config/pypoetry/auth.toml",         NULL,                          "",                 TOKEN  },
    {".config/rclone",                     "RCLONE_CONFIG",               "",                 CLOUD  },
    {".config/sops/age",                   "SOPS_AGE_KEY_FILE",           "",                 KEYS   },
    {".config/vivaldi",                    NULL,                          "",                 BROWSER},
    {".docker/config.json",                "DOCKER_CONFIG",               "config.json",      TOKEN  },
    {".docker/contexts",                   "DOCKER_CONFIG",               "contexts",         KEYS   },
    {".fly",                               NULL,                          "",                 CLOUD  },
    {".gem/credentials",                   NULL,                          "",                 TOKEN  },
    {".gemini/oauth_creds.json",           NULL,                          "",                 TOKEN  },
    {".git-credentials",                   NULL,                          "",                 STORE  },
    {".gnome2/keyrings",                   NULL,                          "",                 STORE  },
    {".gnupg",                             "GNUPGHOME",                   "",                 KEYS   },
    {".histfile",                          NULL,                          "",                 HISTORY},
    {".huggingface/token",                 NULL,                          "",                 TOKEN  },
    {".irb_history",                       NULL,                          "",                 HISTORY},
    {".kde/share/apps/kwallet",            NULL,                          "",                 STORE  },
    {".kube",                              "KUBECONFIG",                  "",                 CLOUD  },
    {".local/share/fish/fish_history",     NULL,                          "",                 HISTORY},
    {".local/share/gem/credentials",       NULL,                          "",                 TOKEN  },
    {".local/share/gopass",                NULL,                          "",                 STORE  },
    {".local/share/keyrings",              NULL,                          "",                 STORE  },
    {".local/share/kwalletd",              NULL,                          "",                 STORE  },
    {".local/share/password-store",        NULL,                          "",                 STORE  },
    {".m2/settings-security.xml",          NULL,                          "",                 TOKEN  },
    {".mariadb_history",                   NULL,                          "",                 HISTORY},
    {".mongosh",                           NULL,                          "",                 HISTORY},
    {".mozilla",                           NULL,                          "",                 BROWSER},
    {".msmtprc",                           NULL,                          "",                 STORE  },
    {".my.cnf",                            NULL,                          "",                 STORE  },
    {".mylogin.cnf",                       NULL,                          "",                 STORE  },
    {".mysql_history",                     NULL,                          "",                 HISTORY},
    {".netrc",                             "NETRC",                       "",                 STORE  },
    {".node_repl_history",                 NULL,                          "",                 HISTORY},
    {".npmrc",                             "NPM_CONFIG_USERCONFIG",       "",                 TOKEN  },
    {".oci",                               NULL,                          "",                 CLOUD  },
    {".password-store",                    "PASSWORD_STORE_DIR",          "",                 STORE  },
    {".pgpass",                            "PGPASSFILE",                  "",                 STORE  },
    {".pki",                               NULL,                          "",                 KEYS   },
    {".psql_history",                      NULL,                          "",                 HISTORY},
    {".pulumi/credentials.json",           NULL,                          "",                 CLOUD  },
    {".putty",                             NULL,                          "",                 KEYS   },
    {".pypirc",                            NULL,                          "",                 TOKEN  },
    {".python_history",                    NULL,                          "",                 HISTORY},
    {".rediscli_history",                  NULL,                          "",                 HISTORY},
    {".s3cfg",                             NULL,                          "",                 CLOUD  },
    {".sh_history",                        NULL,                          "",                 HISTORY},
    {".smbcredentials",                    NULL,                          "",                 STORE  },
    {".sqlite_history",                    NULL,                          "",                 HISTORY},
    {".ssh",                               NULL,                          "",                 KEYS   },
    {".terraform.d/credentials.tfrc.json", NULL,                          "",                 CLOUD  },
    {".thunderbird",                       NULL,                          "",                 BROWSER},
    {".var/app/com.brave.Browser",         NULL,                          "",                 BROWSER},
    {".var/app/com.google.Chrome",         NULL,                          "",                 BROWSER},
    {".var/app/com.microsoft.Edge",        NULL,                          "",                 BROWSER},
    {".var/app/org.chromium.Chromium",     NULL,                          "",                 BROWSER},
    {".var/app/org.mozilla.firefox",       NULL,                          "",                 BROWSER},
    {".vault-token",                       NULL,                          "",                 TOKEN  },
    {".viminfo",                           NULL,                          "",                 HISTORY},
    {".zhistory",                          NULL,                          "",                 HISTORY},
    {".zsh_history",                       NULL,                          "",                 HISTORY},
    {"_netrc",                             NULL,                          "",                 STORE  },
    {"snap/brave",                         NULL,                          "",                 BROWSER},
    {"snap/chromium",                      NULL,                          "",                 BROWSER},
    {"snap/firefox",                       NULL,                          "",                 BROWSER},
};

static const struct deny_default of_system[] = {
    [DENY_DEVICES_ROW] = {"dev",                                   NULL, "", DEVICES},
    {"etc/NetworkManager/system-connections", NULL, "", SYSTEM },
    {"etc/gshadow",                           NULL, "", SYSTEM },
    {"etc/gshadow-",                          NULL, "", SYSTEM },
    {"etc/krb5.keytab",                       NULL, "", SYSTEM },
    {"etc/kubernetes/pki",                    NULL, "", SYSTEM },
    {"etc/letsencrypt/archive",               NULL, "", SYSTEM },
    {"etc/rancher",                           NULL, "", SYSTEM },
    {"etc/security/opasswd",                  NULL, "", SYSTEM },
    {"etc/shadow",                            NULL, "", SYSTEM },
    {"etc/shadow-",                           NULL, "", SYSTEM },
    {"etc/ssh/ssh_host_*_key",                NULL, "", SYSTEM },
    {"etc/ssl/private",                       NULL, "", SYSTEM },
    {"etc/wireguard",                         NULL, "", SYSTEM },
};

#define OF_HOME   (sizeof(of_home) / sizeof(of_home[0]))
#define OF_SYSTEM (sizeof(of_system) / sizeof(of_system[0]))

_Static_assert(OF_HOME < DENY_ROWS_MAX && OF_SYSTEM < DENY_ROWS_MAX, "numbers of rules");

/* What a home holds by default may lie elsewhere altogether. */
static const struct {
    const char *below;
    const char *variable;
} moved[] = {
    {".config/",      "XDG_CONFIG_HOME"},
    {".local/share/", "XDG_DATA_HOME"  },
    {".local/state/", "XDG_STATE_HOME" },
    {".cache/",       "XDG_CACHE_HOME" },
};

#define MOVED (sizeof(moved) / sizeof(moved[0]))

const struct deny_default *
deny_home_default(size_t i)
{
    return i < OF_HOME ? &of_home[i] : NULL;
}

size_t
deny_home_defaults(void)
{
    return OF_HOME;
}

bool
deny_has_plain_names(const struct deny_default *d)
{
    return str_eq(d->reason, KEYS) || str_eq(d->reason, CLOUD) || str_eq(d->reason, TOKEN);
}

const struct deny_default *
deny_system_default(size_t i)
{
    return i < OF_SYSTEM ? &of_system[i] : NULL;
}

/* home, and below it; false where that is longer than a path can be. */
static bool
join(char path[LIMIT_PATH], const char *home, const char *below)
{
    bool is_top = home[1] == '\0';
    int n = snprintf(path, LIMIT_PATH, "%s%s%s", is_top && below[0] != '\0' ? "" : home,
                     below[0] != '\0' ? "/" : "", below);

    return n > 0 && (size_t)n < LIMIT_PATH;
}

bool
deny_is_left_out(char *const *allow_read, const char *home, const char *below)
{
    char path[LIMIT_PATH];

    if (allow_read == NULL || *allow_read == NULL || !join(path, home, below)) {
        return false;
    }
    for (char *const *v = allow_read; *v != NULL; v++) {
        if (path_is_below(path, *v)) {
            return true;
        }
    }
    return false;
}

/* A part of what is hidden as a whole can't be left out: what else there is in
 * it, and what comes later, could not be named. */
static enum sy_code
check_allowed(char *const *allow_read, const char *home, const char *below, struct sy_error *err)
{
    char path[LIMIT_PATH];

    for (char *const *v = allow_read; v != NULL && *v != NULL; v++) {
        if (join(path, home, below) && path_is_below(*v, path) && !str_eq(*v, path) &&
            !deny_is_left_out(allow_read, home, below)) {
            return sy_err_set(err, SY_E_CONFIG,
                              "sandbox.allow_read: '%.80s' is a part of '%.80s', which is hidden "
                              "as a whole: name that",
                              *v, path);
        }
    }
    return SY_E_OK;
}

enum sy_code
deny_check_own(char *const *allow_read, char *const *own_dirs, struct sy_error *err)
{
    for (; allow_read != NULL && *allow_read != NULL; allow_read++) {
        for (char *const *own = own_dirs; own != NULL && *own != NULL; own++) {
            if (path_is_below(*allow_read, *own)) {
                return sy_err_set(err, SY_E_CONFIG,
                                  "sandbox.allow_read: '%.80s' is Shellyard's own state or "
                                  "configuration, which no sandbox shows: take it out",
                                  *allow_read);
            }
        }
    }
    return SY_E_OK;
}

static enum sy_code
check_all_allowed(const struct deny_sources *from, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (from->allow_read == NULL || *from->allow_read == NULL) {
        return SY_E_OK;
    }
    for (char *const *home = from->homes; *home != NULL; home++) {
        for (size_t i = 0; i < OF_HOME && rc == SY_E_OK; i++) {
            rc = check_allowed(from->allow_read, *home, of_home[i].below, err);
        }
    }
    for (size_t i = 0; i < OF_SYSTEM && rc == SY_E_OK; i++) {
        rc = check_allowed(from->allow_read, "/", of_system[i].below, err);
    }
    return rc;
}

/* One place, and what is meant below it. */
static enum sy_code
add(struct strv *ret, const struct deny_sources *from, const char *place, const char *tail,
    struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf pattern = {.max = LIMIT_PATH};
    enum sy_code rc = path_normalize(&whole, place);

    if (rc == SY_E_OK && deny_is_left_out(from->allow_read, buf_view(&whole), tail)) {
        return SY_E_OK;
    }
    if (rc == SY_E_OK) {
        rc = path_pattern_quote(&pattern, buf_view(&whole));
    }
    if (rc == SY_E_OK && tail[0] != '\0') {
        rc = buf_addf(&pattern, "/%s", tail);
    }
    if (rc == SY_E_LIMIT || (rc == SY_E_OK && path_pattern_fault(buf_view(&pattern)) != NULL)) {
        return SY_E_OK; /* no path is that long, and nobody means all that there is */
    }
    if (rc == SY_E_OK) {
        rc = strv_add(ret, buf_view(&pattern));
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "sandbox.deny_read: more than %zu patterns", ret->max);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

/* Where a variable says that it lies, one place or several with ':' between. A
 * device (NPM_CONFIG_USERCONFIG=/dev/null) is nobody's secret. */
static enum sy_code
add_places(struct strv *ret, const struct deny_sources *from, const char *value, const char *tail,
           struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    while (value != NULL && *value != '\0' && rc == SY_E_OK) {
        char place[LIMIT_PATH];
        size_t n = strcspn(value, ":");

        if (n < sizeof(place)) {
            memcpy(place, value, n);
            place[n] = '\0';
            if (place[0] == '/' && !path_is_below(place, "/dev") &&
                !path_is_below(place, "/proc")) {
                rc = add(ret, from, place, tail, err);
            }
        }
        value += n;
        value += *value == ':' ? 1 : 0;
    }
    return rc;
}

/* A directory of a home that a variable moves, unless it says where it is anyway. */
static enum sy_code
add_moved(struct strv *ret, const struct deny_sources *from, size_t which, struct sy_error *err)
{
    const char *value = strv_env_find(from->environ_list, moved[which].variable);
    size_t n = strlen(moved[which].below);
    char path[LIMIT_PATH];
    enum sy_code rc = SY_E_OK;

    for (char *const *home = from->homes; value != NULL && *home != NULL; home++) {
        if (join(path, *home, moved[which].below)) {
            path[strlen(path) - 1] = '\0';
            value = str_eq(path, value) ? NULL : value;
        }
    }
    for (size_t i = 0; i < OF_HOME && value != NULL && rc == SY_E_OK; i++) {
        if (str_starts(of_home[i].below, moved[which].below)) {
            rc = add_places(ret, from, value, of_home[i].below + n, err);
        }
    }
    return rc;
}

enum sy_code
deny_add_named(struct strv *ret, const struct deny_sources *from, struct sy_error *err)
{
    enum sy_code rc = check_all_allowed(from, err);

    for (size_t i = 0; i < OF_HOME && rc == SY_E_OK; i++) {
        if (of_home[i].variable != NULL) {
            rc = add_places(ret, from, strv_env_find(from->environ_list, of_home[i].variable),
                            of_home[i].tail, err);
        }
    }
    for (size_t i = 0; i < MOVED && rc == SY_E_OK; i++) {
        rc = add_moved(ret, from, i, err);
    }
    return rc;
}
