#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "proxy/environment.h"

struct row {
    const char *name;
    const char *value; /* NULL: must not be there */
};

static const struct row both_ports[] = {
    {"HTTP_PROXY",             "http://127.0.0.1:3128"   },
    {"http_proxy",             "http://127.0.0.1:3128"   },
    {"HTTPS_PROXY",            "http://127.0.0.1:3128"   },
    {"https_proxy",            "http://127.0.0.1:3128"   },
    {"WS_PROXY",               "http://127.0.0.1:3128"   },
    {"wss_proxy",              "http://127.0.0.1:3128"   },
    {"ALL_PROXY",              "socks5h://127.0.0.1:1080"},
    {"all_proxy",              "socks5h://127.0.0.1:1080"},
    {"NO_PROXY",               ""                        },
    {"no_proxy",               ""                        },
    {"FTP_PROXY",              NULL                      },
    {"ftp_proxy",              NULL                      },
    {"RSYNC_PROXY",            "127.0.0.1:3128"          },
    {"NODE_USE_ENV_PROXY",     "1"                       },
    {"ELECTRON_GET_USE_PROXY", "1"                       },
    {"npm_config_proxy",       "http://127.0.0.1:3128"   },
    {"npm_config_https_proxy", "http://127.0.0.1:3128"   },
    {"npm_config_noproxy",     ""                        },
    {"npm_config_http_proxy",  NULL                      },
    {"NPM_CONFIG_PROXY",       NULL                      },
    {"YARN_HTTP_PROXY",        "http://127.0.0.1:3128"   },
    {"YARN_HTTPS_PROXY",       "http://127.0.0.1:3128"   },
    {"YARN_NO_PROXY",          NULL                      },
    {"PIP_PROXY",              "http://127.0.0.1:3128"   },
    {"CARGO_HTTP_PROXY",       "http://127.0.0.1:3128"   },
    {"GIT_PROXY_COMMAND",      NULL                      },
    {"GIT_CONFIG_COUNT",       "1"                       },
    {"GIT_CONFIG_KEY_0",       "http.proxy"              },
    {"GIT_CONFIG_VALUE_0",     "http://127.0.0.1:3128"   },
    {"GIT_SSH_COMMAND",        NULL                      },
    {"JAVA_TOOL_OPTIONS",
     "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 "
     "-Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts="      },
    {"HOME",                   "/home/u"                 },
};

static void
check(const struct strv *env, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = strv_env_get(env, rows[i].name);

        if (rows[i].value == NULL ? got != NULL : got == NULL || strcmp(got, rows[i].value) != 0) {
            fail_msg("%s is '%s', expected '%s'", rows[i].name, got != NULL ? got : "(unset)",
                     rows[i].value != NULL ? rows[i].value : "(unset)");
        }
    }
}

static void
apply(struct strv *env, const char *const *before, const struct proxy_environment *p)
{
    for (; *before != NULL; before++) {
        assert_int_equal(strv_add(env, *before), SY_E_OK);
    }
    assert_int_equal(proxy_environment_apply(env, p, NULL), SY_E_OK);
}

static void
each_tools_variables_lead_to_the_proxy(void **state)
{
    static const char *const before[] = {"HOME=/home/u",
                                         "HTTP_PROXY=http://corp:8080",
                                         "no_proxy=*",
                                         "NO_PROXY=.corp",
                                         "ftp_proxy=http://corp",
                                         "npm_config_http_proxy=http://corp",
                                         "NPM_CONFIG_PROXY=http://corp",
                                         "YARN_NO_PROXY=x",
                                         "GIT_PROXY_COMMAND=x",
                                         NULL};
    struct proxy_environment p = {.http_port = 3128, .socks_port = 1080};
    struct strv env = {.max = 1000};

    (void)state;
    apply(&env, before, &p);
    check(&env, both_ports, sizeof(both_ports) / sizeof(both_ports[0]));
    strv_fini(&env);
}

static void
one_port_serves_all_and_loopback_may_be_direct(void **state)
{
    static const char *const before[] = {NULL};
    static const struct row rows[] = {
        {"ALL_PROXY",          "http://127.0.0.1:9"     },
        {"NO_PROXY",           "localhost,127.0.0.1,::1"},
        {"no_proxy",           "localhost,127.0.0.1,::1"},
        {"npm_config_noproxy", "localhost,127.0.0.1,::1"},
    };
    struct proxy_environment p = {.http_port = 9, .is_loopback_direct = true};
    struct strv env = {.max = 1000};

    (void)state;
    apply(&env, before, &p);
    check(&env, rows, sizeof(rows) / sizeof(rows[0]));
    assert_non_null(strstr(strv_env_get(&env, "JAVA_TOOL_OPTIONS"),
                           "-Dhttp.nonProxyHosts=localhost|127.*|[::1]"));
    strv_fini(&env);
}

static void
what_the_user_has_for_java_git_and_ssh_stays(void **state)
{
    static const char *const before[] = {"JAVA_TOOL_OPTIONS=-Xmx1g", "GIT_CONFIG_COUNT=2",
                                         "GIT_CONFIG_KEY_1=core.pager",
                                         "GIT_SSH_COMMAND=ssh -i key", NULL};
    static const struct row rows[] = {
        {"GIT_CONFIG_COUNT",   "3"                                                 },
        {"GIT_CONFIG_KEY_1",   "core.pager"                                        },
        {"GIT_CONFIG_KEY_2",   "http.proxy"                                        },
        {"GIT_CONFIG_VALUE_2", "http://127.0.0.1:3128"                             },
        {"GIT_SSH_COMMAND",    "ssh -i key -o 'ProxyCommand=/usr/bin/helper %h %p'"},
    };
    struct proxy_environment p = {.http_port = 3128, .ssh_proxy_command = "/usr/bin/helper"};
    struct strv env = {.max = 1000};

    (void)state;
    apply(&env, before, &p);
    check(&env, rows, sizeof(rows) / sizeof(rows[0]));
    assert_ptr_equal(
        strstr(strv_env_get(&env, "JAVA_TOOL_OPTIONS"), "-Xmx1g -Dhttp.proxyHost=127.0.0.1"),
        strv_env_get(&env, "JAVA_TOOL_OPTIONS"));
    strv_fini(&env);
}

static void
applying_it_twice_changes_nothing_but_what_is_appended(void **state)
{
    static const char *const before[] = {"GIT_CONFIG_COUNT=nonsense", NULL};
    struct proxy_environment p = {.http_port = 3128, .socks_port = 1080};
    struct strv env = {.max = 1000};

    (void)state;
    apply(&env, before, &p);

    size_t n = env.n;

    assert_int_equal(proxy_environment_apply(&env, &p, NULL), SY_E_OK);
    assert_int_equal(env.n, n);
    assert_string_equal(strv_env_get(&env, "GIT_CONFIG_COUNT"), "nonsense");
    strv_fini(&env);
}

static enum sy_code
apply_and_free(void *arg)
{
    struct proxy_environment p = {.http_port = 1, .socks_port = 2, .ssh_proxy_command = "x"};
    struct strv env = {.max = 1000};
    enum sy_code rc = proxy_environment_apply(&env, &p, NULL);

    (void)arg;
    strv_fini(&env);
    return rc;
}

static void
running_out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    fault_run(apply_and_free, NULL);
}

static void
a_full_environment_is_an_error(void **state)
{
    struct proxy_environment p = {.http_port = 1};
    struct sy_error err = {.code = SY_E_OK};
    struct strv env = {.max = 3};

    (void)state;
    assert_int_equal(proxy_environment_apply(&env, &p, &err), SY_E_LIMIT);
    assert_non_null(strstr(err.msg, "environment"));
    strv_fini(&env);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tools_variables_lead_to_the_proxy),
        cmocka_unit_test(one_port_serves_all_and_loopback_may_be_direct),
        cmocka_unit_test(what_the_user_has_for_java_git_and_ssh_stays),
        cmocka_unit_test(applying_it_twice_changes_nothing_but_what_is_appended),
        cmocka_unit_test(running_out_of_memory_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_full_environment_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
