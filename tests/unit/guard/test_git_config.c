#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "guard/git_config.h"

static enum sy_code
add_line(void *arg, const struct git_config_entry *e)
{
    enum sy_code rc = git_config_text(arg, e);

    return rc == SY_E_OK ? buf_add_char(arg, '\n') : rc;
}

/* Static buffer. "!" where it is no configuration. */
static const char *
read_text(const char *text, size_t len)
{
    static char told[4096];
    SY_AUTO(buf_fini) struct buf out = {.max = sizeof(told) - 1};

    if (git_config_read(text, len, add_line, &out, NULL) != SY_E_OK) {
        return "!";
    }
    (void)snprintf(told, sizeof(told), "%s", buf_view(&out));
    return told;
}

#define READ(text) read_text(text, sizeof(text) - 1)

static void
entries_read_as_git_reads_them(void **state)
{
    (void)state;
    assert_string_equal(READ(""), "");
    assert_string_equal(READ("[Core]\n\tFileMode = true ; c\n# x\n; y\n"), "core.filemode=true\n");
    assert_string_equal(READ("[core] bare\n"), "core.bare\n");
    assert_string_equal(READ("[a \"B \\\"c\\\\\"]k=v"), "a.B \"c\\.k=v\n");
    assert_string_equal(READ("[branch.Foo]\nremote=x\n"), "branch.foo.remote=x\n");
    assert_string_equal(READ("[a]\nk = \"x # \" y # z\n"), "a.k=x #  y\n");
    assert_string_equal(READ("[a]\nk = x\\\n  y\\tz\n"), "a.k=x  y\tz\n");
    assert_string_equal(READ("\xef\xbb\xbf[a]\r\nk = v\r\n"), "a.k=v\n");
    assert_string_equal(READ("[a]\nk =\n"), "a.k=\n");
}

static void
what_git_refuses_is_refused(void **state)
{
    (void)state;
    assert_string_equal(READ("[a\nk=v\n"), "!");
    assert_string_equal(READ("[a \"b]\nk=v\n"), "!");
    assert_string_equal(READ("[a \"b\" ]\nk=v\n"), "!");
    assert_string_equal(READ("[a]\nk = \"x\n"), "!");
    assert_string_equal(READ("[a]\nk = \\x\n"), "!");
    assert_string_equal(READ("[a]\nk.b = x\n"), "!");
    assert_string_equal(READ("[a]\n1k = x\n"), "!");
    assert_string_equal(READ("k = v\n"), "!");
    assert_string_equal(READ("[a]\nk = a\0b\n"), "!");
}

static bool
is_harmless(const char *text)
{
    char *roots[] = {mem_unconst("/W"), NULL};
    const struct git_config_place at = {.git_dir = "/W/.git/modules/s", .roots = roots};
    char line[256];
    char *dot;
    char *equals;
    struct git_config_entry e = {0};

    (void)snprintf(line, sizeof(line), "%s", text);
    equals = strchr(line, '=');
    if (equals != NULL) {
        *equals = '\0';
        e.value = equals + 1;
    }
    dot = strrchr(line, '.');
    *dot = '\0';
    e.key = dot + 1;
    dot = strchr(line, '.');
    if (dot != NULL) {
        *dot = '\0';
        e.subsection = dot + 1;
    }
    e.section = line;
    return git_config_is_harmless(&e, &at);
}

static void
// NOLINTNEXTLINE(readability-function-size): a list
settings_that_can_run_or_redirect_are_harmful(void **state)
{
    static const char *const harmful[] = {
        "core.fsmonitor=./x",
        "core.hookspath=h",
        "core.sshcommand=x",
        "core.editor=x",
        "core.pager=x",
        "core.askpass=x",
        "core.gitproxy=x",
        "core.attributesfile=x",
        "core.worktree=/etc",
        "core.worktree=../../../..",
        "alias.st=!x",
        "filter.x.clean=x",
        "filter.x.smudge=x",
        "filter.x.process=x",
        "diff.x.command=x",
        "diff.x.textconv=x",
        "diff.external=x",
        "merge.x.driver=x",
        "credential.helper=x",
        "credential.https://a.helper=x",
        "include.path=x",
        "includeif.gitdir:x.path=x",
        "gpg.program=x",
        "gpg.ssh.program=x",
        "remote.o.uploadpack=x",
        "remote.o.receivepack=x",
        "remote.o.vcs=x",
        "remote.o.proxy=x",
        "remote.o.url=ext::sh -c x",
        "remote.o.url=fd::3",
        "remote.o.url=-x",
        "remote.o.url=x://y",
        "remote.o.pushurl=ext::x",
        "branch.x.remote=ext::x",
        "branch.x.mergeoptions=-s x",
        "submodule.s.update=!x",
        "submodule.s.url=ext::x",
        "url.x.insteadof=y",
        "http.proxy=x",
        "http.sslverify=false",
        "sequence.editor=x",
        "uploadpack.packobjectshook=x",
        "gc.recentobjectshook=x",
        "man.x.cmd=y",
        "browser.x.cmd=y",
        "difftool.x.cmd=y",
        "mergetool.x.cmd=y",
        "pager.log=x",
        "interactive.difffilter=x",
        "init.templatedir=x",
        "protocol.ext.allow=always",
        "safe.directory=*",
        "trailer.x.command=y",
        "lfs.customtransfer.x.path=y",
        "core. fsmonitor=x",
        "core.=x",
        "unknown.key=x",
    };
    static const char *const fine[] = {
        "core.bare=false",
        "core.fsmonitor=false",
        "core.worktree=../../../s",
        "core.filemode",
        "remote.o.url=https://a/b",
        "remote.o.url=git@h:a/b.git",
        "remote.o.url=../x",
        "remote.o.url=/a",
        "remote.o.url=ssh://h/a",
        "remote.o.fetch=+refs/heads/*:refs/remotes/o/*",
        "branch.x.remote=o",
        "branch.x.merge=refs/heads/x",
        "branch.x.rebase=true",
        "user.name=n",
        "user.email=e",
        "submodule.s.url=../s",
        "submodule.s.active=true",
        "submodule.s.update=none",
        "extensions.worktreeconfig=true",
        "pull.rebase=true",
        "advice.detachedhead=false",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++) {
        if (is_harmless(harmful[i])) {
            fail_msg("'%s' counts as harmless", harmful[i]);
        }
    }
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        if (!is_harmless(fine[i])) {
            fail_msg("'%s' counts as harmful", fine[i]);
        }
    }
}

static enum sy_code
read_once(void *arg)
{
    static const char text[] = "[a \"b\"]\nk = \"v\"\n[c]\nd\n";
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    (void)arg;
    return git_config_read(text, sizeof(text) - 1, add_line, &out, NULL);
}

static void
each_allocation_may_fail(void **state)
{
    (void)state;
    fault_run(read_once, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_read_as_git_reads_them),
        cmocka_unit_test(what_git_refuses_is_refused),
        cmocka_unit_test(settings_that_can_run_or_redirect_are_harmful),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
