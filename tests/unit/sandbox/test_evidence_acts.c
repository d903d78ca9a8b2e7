/*
 * What is read from complaints that are about no file and no host, though words of them look so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "sandbox/evidence.h"

static bool
collect(void *arg, const struct named *n)
{
    static const char *const words[] = {"any", "read", "written", "removed", "changed"};
    struct buf *out = arg;
    enum sy_code rc = buf_addf(out, "%s%s", out->len > 0 ? "|" : "", n->text);

    if (rc == SY_E_OK && n->is_host) {
        rc = buf_addf(out, " host %u", n->port);
    } else if (rc == SY_E_OK) {
        rc = buf_addf(out, " %s", words[n->intent]);
    }
    assert_int_equal(rc, SY_E_OK);
    return true;
}

struct message {
    const char *text;
    const char *names;
};

static void
expect_each(const struct message *messages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 1 << 16};

        evidence_scan(messages[i].text, strlen(messages[i].text), collect, &out);
        if (strcmp(buf_view(&out), messages[i].names) != 0) {
            fail_msg("'%s' gives '%s' instead of '%s'", messages[i].text, buf_view(&out),
                     messages[i].names);
        }
    }
}

/* Nor the shell that speaks. */
static void
what_was_to_be_done_to_a_process_or_the_machine_is_no_file(void **state)
{
    static const struct message messages[] = {
        {"/bin/bash: line 1: kill: (1) - Operation not permitted",                                  ""            },
        {"sh: 1: ulimit: error setting limit (Operation not permitted)",                            ""            },
        {"/bin/bash: line 1: ulimit: core file size: cannot modify limit: Operation not permitted",
         ""                                                                                                       },
        {"/bin/bash: line 1: tool: Permission denied",                                              "tool any"    },
        {"/O/s.sh: line 3: /O/f: Permission denied",                                                "/O/f any"    },
        {"/bin/bash: line 1: cd: .ssh: Permission denied",                                          ".ssh any"    },
        {"renice: failed to set priority for 1 (process ID): Operation not permitted",              ""            },
        {"nice: cannot set niceness: Permission denied",                                            ""            },
        {"nice: /O/tool: Permission denied",                                                        "/O/tool any" },
        {"strace: test_ptrace_get_syscall_info: PTRACE_TRACEME: Operation not permitted",           ""            },
        {"strace: Can't fopen '/O/trace': Permission denied",                                       "/O/trace any"},
        {"warning: ptrace: Operation not permitted",                                                ""            },
        {"date: cannot set date: Operation not permitted",                                          ""            },
        {"date: /O/f: Permission denied",                                                           "/O/f any"    },
        {"nc: socket: Operation not permitted",                                                     ""            },
    };

    (void)state;
    expect_each(messages, sizeof(messages) / sizeof(messages[0]));
}

/* Without the kernel's words a whole path must be named. */
static void
words_of_a_programs_own_tell_of_whole_paths(void **state)
{
    static const struct message messages[] = {
        {"Cannot create /H/.config/mc directory",                                                "/H/.config/mc written"        },
        {"Unable to create directory /H/.local/share/nano/",                                     "/H/.local/share/nano/ written"},
        {"UserWarning: IPython parent '/H' is not a writable location, using a temp directory.",
         "/H written"                                                                                                           },
        {"error: could not write to /O/out.log",                                                 "/O/out.log written"           },
        {"Failed to create cache directory '/H/.cache/x'",                                       "/H/.cache/x written"          },
        {"error: cannot create package",                                                         ""                             },
        {"Cannot create a new session for 'main'",                                               ""                             },
        {"failed to create build/out",                                                           ""                             },
 /* The kernel's words go first. */
        {"Cannot create '/O/d': File exists",                                                    "/O/d written"                 },
        {"Failed to create /O/d\nPermission denied",                                             "/O/d written"                 },
    };

    (void)state;
    expect_each(messages, sizeof(messages) / sizeof(messages[0]));
}

/* Running a file asks for no right to write it. */
static void
what_could_not_be_run_was_not_to_be_written(void **state)
{
    static const struct message messages[] = {
        {"Error: spawnSync /O/tool EACCES",                                   "/O/tool read"},
        {"Error: spawn /O/tool EACCES",                                       "/O/tool read"},
        {"fork/exec /O/tool: permission denied",                              "/O/tool read"},
        {"Can't exec \"/O/tool\": Permission denied at -e line 1.",           "/O/tool read"},
        {"timeout: failed to run command '/O/tool': Permission denied",       "/O/tool read"},
        {"make: /O/tool: Permission denied",                                  "/O/tool read"},
        {"xargs: /O/tool: Permission denied",                                 "/O/tool read"},
        {"  File \"/usr/lib/python3.11/subprocess.py\", line 1953, in _execute_child\n"
         "    raise child_exception_type(errno_num, err_msg, err_filename)\n"
         "PermissionError: [Errno 13] Permission denied: '/O/tool'", "/O/tool read"},
        {"  File \"x.py\", line 1, in <module>\n"
         "PermissionError: [Errno 13] Permission denied: '/O/f'",    "/O/f any"    },
    };

    (void)state;
    expect_each(messages, sizeof(messages) / sizeof(messages[0]));
}

/* These programs do with a path what no right to write it would allow. */
static void
acts_on_the_machine_are_about_no_file(void **state)
{
    static const struct message messages[] = {
        {"mount: /mnt: permission denied.",                                         ""        },
        {"/bin/mount: /mnt: permission denied.",                                    ""        },
        {"umount: /mnt: umount failed: Operation not permitted.",                   ""        },
        {"chroot: cannot change root directory to '/mnt': Operation not permitted", ""        },
        {"swapon: /swapfile: swapon failed: Operation not permitted",               ""        },
        {"modprobe: ERROR: could not insert 'dummy': Operation not permitted",      ""        },
        {"mountpoints.sh: /mnt: Permission denied",                                 "/mnt any"},
    };

    (void)state;
    expect_each(messages, sizeof(messages) / sizeof(messages[0]));
}

static void
a_path_ends_where_the_call_begins(void **state)
{
    static const struct message messages[] = {
        {"E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)",
         "/var/lib/dpkg/lock-frontend written"},
    };

    (void)state;
    expect_each(messages, sizeof(messages) / sizeof(messages[0]));
}

/* "bus" and "the" are words; an address, a name with a dot, a port or quotation marks is not. */
static void
a_host_looks_like_one(void **state)
{
    static const struct message messages[] = {
        {"Failed to connect to bus: Host is down",                                      ""                       },
        {"error: failed to connect to the daemon: Host is down",                        ""                       },
        {"Unable to connect to database",                                               ""                       },
        {"failed to connect to unix:///run/x.sock: refused",                            ""                       },
        {"Failed to connect to db port 5432: refused",                                  "db host 5432"           },
        {"Failed to connect to 'db'",                                                   "db host 0"              },
        {"Unable to connect to localhost: refused",                                     "localhost host 0"       },
        {"Unable to connect to http://example.com:8080/x",                              "example.com host 8080"  },
        {"Unable to connect to postgres://u:"
         "p@db.example.com/x",                                                 "db.example.com host 0"  },
        {"failed to connect to db:5432: refused",                                       "db host 5432"           },
        {"ssh: connect to host db port 22: Network is unreachable",                     "db host 22"             },
        {"psql: error: connection to server at \"db\" (10.1.2.3), port 5432 failed: x",
         "db host 5432"                                                                                          },
        {"could not translate host name \"db\" to address: x",                          "db host 0"              },
        {"ERROR 2003 (HY000): Can't connect to MySQL server on 'db:3306' (101)",        "db host 3306"           },
        {"Could not connect to Redis at 127.0.0.1:6379: x",                             "127.0.0.1 host 6379"    },
        {"java.net.UnknownHostException: repo.example.org",                             "repo.example.org host 0"},
        {"Failed to open TCP connection to example.com:80 (x)",                         "example.com host 80"    },
    };

    (void)state;
    expect_each(messages, sizeof(messages) / sizeof(messages[0]));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_to_be_done_to_a_process_or_the_machine_is_no_file),
        cmocka_unit_test(words_of_a_programs_own_tell_of_whole_paths),
        cmocka_unit_test(what_could_not_be_run_was_not_to_be_written),
        cmocka_unit_test(acts_on_the_machine_are_about_no_file),
        cmocka_unit_test(a_path_ends_where_the_call_begins),
        cmocka_unit_test(a_host_looks_like_one),
    };

    return cmocka_run_group_tests_name("evidence_acts", tests, NULL, NULL);
}
