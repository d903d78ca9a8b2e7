/*
 * What people keep secret in well-known places. What a program can't work without
 * and that need not hold a secret must not be here: ~/.gitconfig, ~/.m2/settings.xml,
 * ~/.gradle/gradle.properties, ~/.yarnrc.yml.
 */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "sandbox/deny.h"

#define KEYS    "private keys"
#define CLOUD   "credentials of a cloud account"
#define TOKEN   "access tokens"
#define STORE   "stored passwords"
#define BROWSER "cookies and passwords of a browser"
#define HISTORY "what was typed, passwords among it"
#define OURS    "Shellyard's own state and configuration"
#define SYSTEM  "credentials of the machine and its users"

static const struct deny_default defaults[] = {
    {"~/.ssh", NULL, "", KEYS},
    {"~/.gnupg", "GNUPGHOME", "", KEYS},
    {"~/.pki", NULL, "", KEYS},
    {"~/.config/sops/age", "SOPS_AGE_KEY_FILE", "", KEYS},
    {"~/.config/age", NULL, "", KEYS},
    {"~/.putty", NULL, "", KEYS},
    {"~/.aws", "AWS_SHARED_CREDENTIALS_FILE", "", CLOUD},
    {"~/.azure", "AZURE_CONFIG_DIR", "", CLOUD},
    {"~/.config/gcloud", "CLOUDSDK_CONFIG", "", CLOUD},
    {"~/.boto", "BOTO_CONFIG", "", CLOUD},
    {"~/.s3cfg", NULL, "", CLOUD},
    {"~/.oci", NULL, "", CLOUD},
    {"~/.config/doctl", NULL, "", CLOUD},
    {"~/.config/hcloud", NULL, "", CLOUD},
    {"~/.config/rclone", "RCLONE_CONFIG", "", CLOUD},
    {"~/.config/openstack", NULL, "", CLOUD},
    {"~/.terraform.d/credentials.tfrc.json", NULL, "", CLOUD},
    {"~/.pulumi/credentials.json", NULL, "", CLOUD},
    {"~/.fly", NULL, "", CLOUD},
    {"~/.kube", "KUBECONFIG", "", CLOUD},
    {"~/.docker/config.json", "DOCKER_CONFIG", "/config.json", TOKEN},
    {"~/.docker/contexts", "DOCKER_CONFIG", "/contexts", KEYS},
    {"~/.config/docker", NULL, "", TOKEN},
    {"~/.config/containers/auth.json", "REGISTRY_AUTH_FILE", "", TOKEN},
    {"~/.config/helm", NULL, "", TOKEN},
    {"~/.npmrc", "NPM_CONFIG_USERCONFIG", "", TOKEN},
    {"~/.netrc", "NETRC", "", STORE},
    {"~/_netrc", NULL, "", STORE},
    {"~/.authinfo", NULL, "", STORE},
    {"~/.authinfo.gpg", NULL, "", STORE},
    {"~/.pypirc", NULL, "", TOKEN},
    {"~/.config/pypoetry/auth.toml", NULL, "", TOKEN},
    {"~/.cargo/credentials", "CARGO_HOME", "/credentials", TOKEN},
    {"~/.cargo/credentials.toml", "CARGO_HOME", "/credentials.toml", TOKEN},
    {"~/.gem/credentials", NULL, "", TOKEN},
    {"~/.local/share/gem/credentials", NULL, "", TOKEN},
    {"~/.m2/settings-security.xml", NULL, "", TOKEN},
    {"~/.composer/auth.json", NULL, "", TOKEN},
    {"~/.config/composer/auth.json", NULL, "", TOKEN},
    {"~/.git-credentials", NULL, "", STORE},
    {"~/.config/git/credentials", NULL, "", STORE},
    {"~/.config/gh", "GH_CONFIG_DIR", "", TOKEN},
    {"~/.config/hub", NULL, "", TOKEN},
    {"~/.config/glab-cli", NULL, "", TOKEN},
    {"~/.vault-token", NULL, "", TOKEN},
    {"~/.huggingface/token", NULL, "", TOKEN},
    {"~/.cache/huggingface/token", NULL, "", TOKEN},
    {"~/.claude/.credentials.json", NULL, "", TOKEN},
    {"~/.codex/auth.json", NULL, "", TOKEN},
    {"~/.gemini/oauth_creds.json", NULL, "", TOKEN},
    {"~/.config/github-copilot", NULL, "", TOKEN},
    {"~/.pgpass", "PGPASSFILE", "", STORE},
    {"~/.my.cnf", NULL, "", STORE},
    {"~/.mylogin.cnf", NULL, "", STORE},
    {"~/.msmtprc", NULL, "", STORE},
    {"~/.smbcredentials", NULL, "", STORE},
    {"~/.password-store", "PASSWORD_STORE_DIR", "", STORE},
    {"~/.local/share/password-store", NULL, "", STORE},
    {"~/.local/share/gopass", NULL, "", STORE},
    {"~/.local/share/keyrings", NULL, "", STORE},
    {"~/.gnome2/keyrings", NULL, "", STORE},
    {"~/.local/share/kwalletd", NULL, "", STORE},
    {"~/.kde/share/apps/kwallet", NULL, "", STORE},
    {"~/.config/op", NULL, "", STORE},
    {"~/.config/1Password", NULL, "", STORE},
    {"~/.config/Bitwarden", NULL, "", STORE},
    {"~/.config/Bitwarden CLI", NULL, "", STORE},
    {"~/.config/keepassxc", NULL, "", STORE},
    {"~/.mozilla", NULL, "", BROWSER},
    {"~/.config/mozilla", NULL, "", BROWSER},
    {"~/.thunderbird", NULL, "", BROWSER},
    {"~/.config/google-chrome", NULL, "", BROWSER},
    {"~/.config/google-chrome-beta", NULL, "", BROWSER},
    {"~/.config/google-chrome-unstable", NULL, "", BROWSER},
    {"~/.config/chromium", NULL, "", BROWSER},
    {"~/.config/BraveSoftware", NULL, "", BROWSER},
    {"~/.config/microsoft-edge", NULL, "", BROWSER},
    {"~/.config/vivaldi", NULL, "", BROWSER},
    {"~/.config/opera", NULL, "", BROWSER},
    {"~/.var/app/org.mozilla.firefox", NULL, "", BROWSER},
    {"~/.var/app/com.google.Chrome", NULL, "", BROWSER},
    {"~/.var/app/org.chromium.Chromium", NULL, "", BROWSER},
    {"~/.var/app/com.brave.Browser", NULL, "", BROWSER},
    {"~/.var/app/com.microsoft.Edge", NULL, "", BROWSER},
    {"~/snap/firefox", NULL, "", BROWSER},
    {"~/snap/chromium", NULL, "", BROWSER},
    {"~/snap/brave", NULL, "", BROWSER},
    {"~/.bash_history", NULL, "", HISTORY},
    {"~/.sh_history", NULL, "", HISTORY},
    {"~/.ash_history", NULL, "", HISTORY},
    {"~/.zsh_history", NULL, "", HISTORY},
    {"~/.zhistory", NULL, "", HISTORY},
    {"~/.histfile", NULL, "", HISTORY},
    {"~/.local/share/fish/fish_history", NULL, "", HISTORY},
    {"~/.python_history", NULL, "", HISTORY},
    {"~/.node_repl_history", NULL, "", HISTORY},
    {"~/.psql_history", NULL, "", HISTORY},
    {"~/.mysql_history", NULL, "", HISTORY},
    {"~/.mariadb_history", NULL, "", HISTORY},
    {"~/.sqlite_history", NULL, "", HISTORY},
    {"~/.rediscli_history", NULL, "", HISTORY},
    {"~/.mongosh", NULL, "", HISTORY},
    {"~/.irb_history", NULL, "", HISTORY},
    {"~/.viminfo", NULL, "", HISTORY},
    {"~/.local/state/shellyard", NULL, "", OURS},
    {"~/.config/shellyard", NULL, "", OURS},
    {"/etc/shadow", NULL, "", SYSTEM},
    {"/etc/shadow-", NULL, "", SYSTEM},
    {"/etc/gshadow", NULL, "", SYSTEM},
    {"/etc/gshadow-", NULL, "", SYSTEM},
    {"/etc/security/opasswd", NULL, "", SYSTEM},
    {"/etc/ssh/ssh_host_*_key", NULL, "", SYSTEM},
    {"/etc/ssl/private", NULL, "", SYSTEM},
    {"/etc/letsencrypt/archive", NULL, "", SYSTEM},
    {"/etc/krb5.keytab", NULL, "", SYSTEM},
    {"/etc/wireguard", NULL, "", SYSTEM},
    {"/etc/NetworkManager/system-connections", NULL, "", SYSTEM},
    {"/etc/kubernetes/pki", NULL, "", SYSTEM},
    {"/etc/rancher", NULL, "", SYSTEM},
};

#define DEFAULTS (sizeof(defaults) / sizeof(defaults[0]))

/* What a home holds by default may lie elsewhere altogether. */
static const struct {
    const char *below_home;
    const char *variable;
} moved[] = {
    {"~/.config/",      "XDG_CONFIG_HOME"},
    {"~/.local/share/", "XDG_DATA_HOME"  },
    {"~/.local/state/", "XDG_STATE_HOME" },
    {"~/.cache/",       "XDG_CACHE_HOME" },
};

#define MOVED (sizeof(moved) / sizeof(moved[0]))

const struct deny_default *
deny_default(size_t i)
{
    return i < DEFAULTS ? &defaults[i] : NULL;
}

static const char *
variable(const struct deny_sources *from, const char *name)
{
    size_t n = strlen(name);

    for (char *const *v = from->environ_list; v != NULL && *v != NULL; v++) {
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=') {
            return *v + n + 1;
        }
    }
    return NULL;
}

static bool
is_left_out(const struct deny_sources *from, const char *pattern)
{
    for (char *const *v = from->allow_read; v != NULL && *v != NULL; v++) {
        if (path_is_below(pattern, *v)) {
            return true;
        }
    }
    return false;
}

/* A part of what is hidden as a whole can't be left out: what else there is in
 * it, and what comes later, could not be named. */
static const char *
first_inside(const struct deny_sources *from, const char *pattern)
{
    for (char *const *v = from->allow_read; v != NULL && *v != NULL; v++) {
        if (path_is_below(*v, pattern)) {
            return *v;
        }
    }
    return NULL;
}

/* Adds `place` (a pattern, normalized) with `rest` (another) behind it, unless it
 * is left out. Each start of a command comes through here a hundred times. */
static enum sy_code
add(struct strv *ret, const struct deny_sources *from, const char *place, const char *rest,
    struct sy_error *err)
{
    size_t n = strlen(place);
    size_t more = strlen(rest) + 1;
    SY_AUTO(mem_free_charp) char *pattern = mem_alloc(n + more);

    if (pattern == NULL) {
        return sy_err_nomem(err);
    }
    memcpy(pattern, place, n);
    memcpy(pattern + n, rest, more);

    const char *inside = first_inside(from, pattern);

    if (is_left_out(from, pattern)) {
        return SY_E_OK;
    }
    if (inside != NULL) {
        return sy_err_set(err, SY_E_CONFIG,
                          "sandbox.allow_read: '%.80s' is a part of '%.80s', which is hidden as a "
                          "whole: name that",
                          inside, pattern);
    }

    char *taken = pattern;

    pattern = NULL;

    enum sy_code rc = strv_add_take(ret, taken);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "sandbox.deny_read: more than %zu patterns", ret->max);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

/* A path as `place` for add. Empty where no file can have that name. */
static enum sy_code
quote(struct buf *ret, const char *path, size_t len, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf quoted = {.max = LIMIT_PATH};
    enum sy_code rc = buf_add(&whole, path, len);

    if (rc == SY_E_OK) {
        rc = path_pattern_quote(&quoted, buf_view(&whole));
    }
    if (rc == SY_E_OK) {
        rc = path_normalize(ret, buf_view(&quoted));
    }
    if (rc == SY_E_LIMIT || (rc == SY_E_OK && ret->len == 1)) {
        buf_reset(ret);
        return SY_E_OK;
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

/* Where a variable says that it lies, one place or several with ':' between. A
 * device (NPM_CONFIG_USERCONFIG=/dev/null) is nobody's secret. */
static enum sy_code
add_named(struct strv *ret, const struct deny_sources *from, const char *value, const char *rest,
          struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf place = {.max = LIMIT_PATH};
    enum sy_code rc = SY_E_OK;

    while (value != NULL && *value != '\0' && rc == SY_E_OK) {
        size_t n = strcspn(value, ":");
        bool is_device = strncmp(value, "/dev/", 5) == 0 || strncmp(value, "/proc/", 6) == 0;

        if (value[0] == '/' && !is_device) {
            rc = quote(&place, value, n, err);
        }
        if (rc == SY_E_OK && place.len > 0) {
            rc = add(ret, from, buf_view(&place), rest, err);
        }
        buf_reset(&place);
        value += n;
        value += *value == ':' ? 1 : 0;
    }
    return rc;
}

static enum sy_code
add_moved(struct strv *ret, const struct deny_sources *from, const struct deny_default *d,
          struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (d->variable != NULL) {
        rc = add_named(ret, from, variable(from, d->variable), d->below, err);
    }
    for (size_t i = 0; i < MOVED && rc == SY_E_OK; i++) {
        if (str_starts(d->path, moved[i].below_home)) {
            rc = add_named(ret, from, variable(from, moved[i].variable),
                           d->path + strlen(moved[i].below_home) - 1, err);
        }
    }
    return rc;
}

enum sy_code
deny_add_defaults(struct strv *ret, const struct deny_sources *from, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf home = {.max = LIMIT_PATH};
    enum sy_code rc = SY_E_OK;

    for (size_t h = 0; from->homes[h] != NULL && rc == SY_E_OK; h++) {
        rc = quote(&home, from->homes[h], strlen(from->homes[h]), err);
        for (size_t i = 0; i < DEFAULTS && rc == SY_E_OK && home.len > 0; i++) {
            if (defaults[i].path[0] == '~') {
                rc = add(ret, from, buf_view(&home), defaults[i].path + 1, err);
            }
        }
    }
    for (size_t i = 0; i < DEFAULTS && rc == SY_E_OK; i++) {
        if (defaults[i].path[0] == '~') {
            rc = add_moved(ret, from, &defaults[i], err);
        } else if (from->is_root) {
            rc = add(ret, from, "", defaults[i].path, err);
        }
    }
    return rc;
}
