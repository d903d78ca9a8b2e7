#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "approval/rules.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "rules_yard.h"

static void
may(const char *line, bool want)
{
    struct strv words;

    yard_words(&words, line);

    bool is = rule_may_propose(&words);

    strv_fini(&words);
    if (is != want) {
        fail_msg("'%s' %s be offered", line, is ? "may" : "may not");
    }
}

static const char *const banned[] = {
    "bash",
    "sh",
    "zsh",
    "/bin/bash",
    "/bin/sh",
    "/bin/zsh",
    "bash -c",
    "bash -lc",
    "sh -c",
    "zsh -lc",
    "dash",
    "dash -c",
    "ksh",
    "fish",
    "fish -c",
    "cmd",
    "cmd.exe",
    "cmd /c",
    "cmd.exe /k",
    "powershell",
    "powershell.exe -Command",
    "pwsh",
    "pwsh -EncodedCommand",
    "pwsh -f",
    "python",
    "python3",
    "python3.11",
    "/usr/bin/python3",
    "python -",
    "python -c",
    "python3 -c",
    "python3 -Ic",
    "python -c print(1)",
    "py",
    "py -3",
    "pyw",
    "pythonw",
    "pypy",
    "pypy3",
    "node",
    "nodejs",
    "node -e",
    "node --eval",
    "deno",
    "deno eval",
    "bun",
    "bun -e",
    "bun run",
    "perl",
    "perl -e",
    "perl -pe",
    "ruby",
    "ruby -e",
    "lua",
    "lua -e",
    "julia",
    "julia -e",
    "php",
    "php -r",
    "Rscript",
    "osascript",
    "npm run",
    "pnpm run",
    "yarn run",
    "env",
    "env A=b make",
    "git",
    "rm",
    "rm x",
    "sudo",
    "sudo make",
    "nohup make",
    "xargs rm",
    "timeout 5 make",
    "command make",
    "npx thing",
    "make",
    "git -C x",
    "A=b make",
    "",
    "eval x",
    "bash script.sh",
    "docker run",
    "cargo run",
};

static void
what_runs_anything_is_never_offered(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(banned) / sizeof(banned[0]); i++) {
        may(banned[i], false);
    }
    may("git status", true);
    may("python3 setup.py", true);
    may("python3 -m pytest", true);
    may("npm run build", true);
    may("make test", true);
    may("ls", true);
    may("bashful", true);
    may("cat caf\xc3\xa9", true);
    may("cat caf\xe9", false); /* what is shown and stored would name another file */
}

static void
offers(const char *argv, const char *wanted, const char *want)
{
    SY_AUTO(buf_fini) struct buf is = {.max = 4096};
    struct strv words;
    struct strv wish;
    struct strv out = {.max = 64};

    yard_words(&words, argv);
    yard_words(&wish, wanted);
    assert_int_equal(rule_propose(&out, &words, wanted[0] != '\0' ? &wish : NULL), SY_E_OK);
    for (size_t i = 0; i < out.n; i++) {
        assert_int_equal(buf_addf(&is, "%s%s", i > 0 ? " " : "", out.v[i]), SY_E_OK);
    }
    strv_fini(&words);
    strv_fini(&wish);
    strv_fini(&out);
    assert_string_equal(buf_view(&is), want);
}

static void
the_offer_is_the_narrowest_prefix_that_is_of_use(void **state)
{
    (void)state;
    offers("git status -s", "", "git status");
    offers("cargo test --all", "", "cargo test");
    offers("git push origin main", "", "git push origin main");
    offers("git stat", "", "git stat");
    offers("curl https://example.com", "", "curl https://example.com");
    offers("rm -rf x", "", "");
    offers("bash -lc ls", "", "");
}

static void
a_wish_counts_if_it_is_a_prefix_that_may_be_offered(void **state)
{
    (void)state;
    offers("git push origin main", "git push", "git push");
    offers("git push origin main", "git", "git push origin main");
    offers("git push origin main", "git pull", "git push origin main");
    offers("git push", "git push origin", "git push");
    offers("python3 a.py x", "python3", "python3 a.py x");
    offers("python3 a.py x", "python3 a.py", "python3 a.py");
}

static enum sy_code
propose(void *arg)
{
    struct strv out = {.max = 64};
    enum sy_code rc = rule_propose(&out, arg, NULL);

    strv_fini(&out);
    return rc;
}

static void
memory_that_is_out_is_told(void **state)
{
    struct strv words;

    (void)state;
    yard_words(&words, "curl -s https://example.com");
    fault_run(propose, &words);
    strv_fini(&words);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_anything_is_never_offered),
        cmocka_unit_test(the_offer_is_the_narrowest_prefix_that_is_of_use),
        cmocka_unit_test(a_wish_counts_if_it_is_a_prefix_that_may_be_offered),
        cmocka_unit_test(memory_that_is_out_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
