/*
 * What is read from a failed command's output.
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
    struct buf *out = arg;

    assert_int_equal(buf_addf(out, "%s%s", out->len > 0 ? "|" : "", n->text), SY_E_OK);
    if (n->port != 0) {
        assert_int_equal(buf_addf(out, " port %u", n->port), SY_E_OK);
    }
    if (n->is_host) {
        assert_int_equal(buf_add_str(out, " (host)"), SY_E_OK);
    }
    if (!n->is_host && n->intent != NAMED_ANY) {
        static const char *const words[] = {"any", "read", "written", "removed", "changed"};

        assert_int_equal(buf_addf(out, " (%s)", words[n->intent]), SY_E_OK);
    }
    return true;
}

static void
expect_names(const char *text, const char *names)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 1 << 16};

    evidence_scan(text, strlen(text), collect, &out);
    if (strcmp(buf_view(&out), names) != 0) {
        fail_msg("'%s' gives '%s' instead of '%s'", text, buf_view(&out), names);
    }
}

/* What programs print, and what their lines name: likeliest first. */
static const struct {
    const char *text;
    const char *names;
} messages[] = {
  /* coreutils, busybox */
    {"touch: cannot touch '/O/f': Permission denied",                                                  "/O/f (written)"                                                                },
    {"mkdir: cannot create directory \xe2\x80\x98/O/a b\xe2\x80\x99: Read-only file system",
     "/O/a b (written)"                                                                                                                                                                },
    {"touch: cannot touch '/O/caf'$'\\351': Permission denied",                                        "/O/caf\xe9 (written)"                                                          },
    {"mv: cannot move '/O/a'$'\\t\\001' to '/O/'$'\\377': Permission denied",
     "/O/\xff (written)|/O/a\t\x01 (removed)"                                                                                                                                          },
    {"rm: cannot remove '/O/it'\\''s \"x\"': Operation not permitted",                                 "/O/it's \"x\" (removed)"                                                       },
    {"cat: ''$'\\351''b c'$'\\n''d': Permission denied",                                               "\xe9"
                                                         "b c\nd"                                                              },
    {"mkdir: can't create directory '/O/d': Permission denied",                                        "/O/d (written)"                                                                },
    {"rm: cannot remove '/O/f': Operation not permitted",                                              "/O/f (removed)"                                                                },
    {"rmdir: failed to remove '/O/d': Read-only file system",                                          "/O/d (removed)"                                                                },
    {"mv: cannot move '/O/a' to '/O/b': Permission denied",                                            "/O/b (written)|/O/a (removed)"                                                 },
    {"mv: cannot move '.git' to 'g': Device or resource busy",                                         "g (written)|.git (removed)"                                                    },
    {"mv: can't rename '/O/a': Permission denied",                                                     "/O/a (removed)"                                                                },
    {"mv: inter-device move failed: '/a/b' to '/O/b'; unable to remove target: Read-only file system",
     "/O/b (written)|/a/b (removed)"                                                                                                                                                   },
    {"mv: rename a to /O/b: Permission denied",                                                        "/O/b (written)|a (removed)"                                                    },
    {"cp: cannot create regular file '/O/x': Permission denied",                                       "/O/x (written)"                                                                },
    {"cp: cannot open '/H/.ssh/id' for reading: Permission denied",                                    "/H/.ssh/id"                                                                    },
    {"cp: cannot stat '/H/x': Permission denied",                                                      "/H/x (read)"                                                                   },
    {"install: cannot create regular file '/usr/local/bin/x': Permission denied",
     "/usr/local/bin/x (written)"                                                                                                                                                      },
    {"ln: failed to create symbolic link '/O/l' -> '/usr/bin/x': Permission denied",
     "/O/l (written)|/usr/bin/x (read)"                                                                                                                                                },
    {"ln: failed to create hard link 'c' => '.git/config': Invalid cross-device link",
     "c (written)|.git/config (read)"                                                                                                                                                  },
    {"chmod: changing permissions of '/O/f': Operation not permitted",                                 "/O/f (changed)"                                                                },
    {"chown: changing ownership of '/O/f': Operation not permitted",                                   "/O/f (changed)"                                                                },
    {"touch: setting times of '/O/f': Permission denied",                                              "/O/f (changed)"                                                                },
    {"dd: failed to open '/O/x': Permission denied",                                                   "/O/x"                                                                          },
    {"truncate: cannot open '/O/x' for writing: Read-only file system",                                "/O/x (written)"                                                                },
    {"tee: /O/f: Permission denied",                                                                   "/O/f"                                                                          },
    {"tee: f: Permission denied",                                                                      "f"                                                                             },
    {"cat: ../O/f: Permission denied",                                                                 "../O/f"                                                                        },
    {"ls: cannot open directory '/H/.ssh': Permission denied",                                         "/H/.ssh"                                                                       },
    {"ls: cannot access '/H/x': Permission denied",                                                    "/H/x (read)"                                                                   },
    {"mktemp: failed to create file via template '/O/tmp.XXXXXXXXXX': Permission denied",
     "/O/tmp.XXXXXXXXXX (written)"                                                                                                                                                     },
 /* shells */
    {"bash: line 1: /O/a b: Permission denied",                                                        "/O/a b"                                                                        },
    {"bash: f: Permission denied",                                                                     "f"                                                                             },
    {"bash: line 1: .git/config: Read-only file system",                                               ".git/config"                                                                   },
    {"/tmp/x.sh: line 3: /O/f: Permission denied",                                                     "/O/f"                                                                          },
    {"/tmp/x.sh: 3: cannot create out.txt: Permission denied",                                         "out.txt (written)"                                                             },
    {"sh: 1: cannot create /O/f: Permission denied",                                                   "/O/f (written)"                                                                },
    {"sh: can't create /O/f: Permission denied",                                                       "/O/f (written)"                                                                },
    {"zsh: permission denied: /O/f",                                                                   "/O/f"                                                                          },
    {"zsh:1: read-only file system: out",                                                              "out"                                                                           },
    {"warning: An error occurred while redirecting file '/O/f'\nopen: Permission denied",              ""                                                                              },
 /* git */
    {"fatal: Unable to create '/w/.git/index.lock': Read-only file system",
     "/w/.git/index.lock (written)"                                                                                                                                                    },
    {"fatal: cannot copy '/usr/share/git-core/templates/description' to '/w/.git/description': "
     "Read-only file system",                                                                     "/w/.git/description (written)|/usr/share/git-core/templates/description (read)"},
    {"fatal: failed to copy template /usr/share/a to /w/.git/a: Permission denied",
     "/w/.git/a (written)|/usr/share/a (read)"                                                                                                                                         },
    {"error: could not lock config file .git/config: Read-only file system",
     ".git/config (written)"                                                                                                                                                           },
    {"error: could not lock config file /home/u/.gitconfig: Permission denied",
     "/home/u/.gitconfig (written)"                                                                                                                                                    },
    {"error: could not write config file .git/config: Device or resource busy",
     ".git/config (written)"                                                                                                                                                           },
    {"fatal: cannot mkdir .git/hooks: Read-only file system",                                          ".git/hooks (written)"                                                          },
    {"fatal: could not create work tree dir 'r': Permission denied",                                   "r (written)"                                                                   },
    {"error: unable to create file src/a.c: Permission denied",                                        "src/a.c (written)"                                                             },
    {"error: unable to unlink old 'f': Read-only file system",                                         "f (removed)"                                                                   },
    {"error: unable to create temporary file: Permission denied",                                      ""                                                                              },
    {"fatal: cannot update the ref 'HEAD': unable to append to '.git/logs/HEAD': Permission denied",
     ".git/logs/HEAD (written)|HEAD"                                                                                                                                                   },
    {"warning: unable to access '/U/.config/git/attributes': Permission denied",
     "/U/.config/git/attributes (read)"                                                                                                                                                },
    {"error: rename '/O/a' to '/O/b': Permission denied",                                              "/O/b (written)|/O/a (removed)"                                                 },
 /* archives, build tools, editors, downloads */
    {"tar: /O/x: Cannot open: Permission denied",                                                      "/O/x"                                                                          },
    {"tar: d/x: Cannot mkdir: Read-only file system",                                                  "d/x (written)"                                                                 },
    {"tar: x: Cannot unlink: Read-only file system",                                                   "x (removed)"                                                                   },
    {"checkdir error:  cannot create /O/x\n                 Read-only file system",
     "/O/x (written)"                                                                                                                                                                  },
    {"rsync: [generator] recv_generator: mkdir \"/O/x\" failed: Permission denied (13)",
     "/O/x (written)"                                                                                                                                                                  },
    {"/usr/bin/ld: cannot open output file /O/a.out: Permission denied",                               "/O/a.out (written)"                                                            },
    {"/usr/bin/ld: cannot open output file a.out: Permission denied",                                  "a.out (written)"                                                               },
    {"Fatal error: can't create /O/x.o: Permission denied",                                            "/O/x.o (written)"                                                              },
    {"make: /O/tool: Permission denied",                                                               "/O/tool (read)"                                                                },
    {"sed: couldn't open temporary file /O/sedA1b2C3: Permission denied",                              "/O/sedA1b2C3 (written)"                                                        },
    {"gzip: /O/x.gz: Permission denied",                                                               "/O/x.gz"                                                                       },
    {"[ Error writing /O/x: Permission denied ]",                                                      "/O/x (written)"                                                                },
    {"Warning: Failed to open the file /O/x: Permission denied",                                       "/O/x"                                                                          },
    {"/O/x: Permission denied",                                                                        "/O/x"                                                                          },
    {"error: failed to create directory `/O/target`\n\nCaused by:\n"
     "  Read-only file system (os error 30)",                                                     "/O/target (written)"                                                           },
 /* languages */
    {"PermissionError: [Errno 13] Permission denied: '/etc/x'",                                        "/etc/x"                                                                        },
    {"OSError: [Errno 30] Read-only file system: 'x'",                                                 "x"                                                                             },
    {"OSError: [Errno 18] Invalid cross-device link: '/a' -> '/b'",                                    "/b (written)|/a"                                                               },
    {"ls: cannot access '/nope': No such file or directory",                                           "/nope (read)"                                                                  },
    {"cat: /H/.ssh/id: No such file or directory",                                                     "/H/.ssh/id"                                                                    },
    {"bash: .envrc: Is a directory",                                                                   ".envrc"                                                                        },
    {"FileExistsError: [Errno 17] File exists: '.git'",                                                ".git"                                                                          },
    {"Error: EACCES: permission denied, open '/etc/q'",                                                "/etc/q"                                                                        },
    {"Error: EROFS: read-only file system, open 'x'",                                                  "x"                                                                             },
    {"Error: EROFS: read-only file system, mkdir '/O/d'",                                              "/O/d (written)"                                                                },
    {"Error: EXDEV: cross-device link not permitted, rename '/a' -> '/b'",
     "/b (written)|/a (removed)"                                                                                                                                                       },
    {"Error: EACCES: permission denied, copyfile '/a' -> '/b'",                                        "/b (written)|/a (read)"                                                        },
    {"npm ERR! Error: EACCES: permission denied, mkdir '/usr/lib/node_modules/x'",
     "/usr/lib/node_modules/x (written)"                                                                                                                                               },
    {"open /etc/y: permission denied",                                                                 "/etc/y"                                                                        },
    {"panic: open out.txt: read-only file system",                                                     "out.txt"                                                                       },
    {"go: could not create module cache: mkdir /U/go: permission denied",                              "/U/go (written)"                                                               },
    {"rename /O/a /O/b: permission denied",                                                            "/O/b (written)|/O/a (removed)"                                                 },
    {"remove out: read-only file system",                                                              "out (removed)"                                                                 },
    {"java.io.FileNotFoundException: /etc/x (Permission denied)",                                      "/etc/x"                                                                        },
    {"Exception in thread \"main\" java.io.FileNotFoundException: out.txt (Read-only file system)",
     "out.txt"                                                                                                                                                                         },
    {"java.nio.file.AccessDeniedException: /etc/x",                                                    "/etc/x"                                                                        },
    {"java.nio.file.FileSystemException: out.txt: Read-only file system",                              "out.txt"                                                                       },
    {"Error: failed to write to /O/x: Os { code: 30, kind: ReadOnlyFilesystem, message: "
     "\"Read-only file system\" }",                                                               "/O/x (written)"                                                                },
    {"thread 'main' panicked at src/main.rs:4:5: called `Result::unwrap()` on an `Err` value: Os "
     "{ code: 13, kind: PermissionDenied, message: \"Permission denied\" }",                      ""                                                                              },
    {"Can't open '/O/f': Permission denied at x.pl line 3.",                                           "/O/f"                                                                          },
    {"x.rb:1:in `initialize': Permission denied @ rb_sysopen - /O/x (Errno::EACCES)",                  "/O/x"                                                                          },
    {"PHP Warning:  fopen(/O/x): Failed to open stream: Permission denied in /w/x.php on line 1",
     "/O/x|/w/x.php"                                                                                                                                                                   },
    {"System.UnauthorizedAccessException: Access to the path '/etc/x' is denied.",                     "/etc/x"                                                                        },
    {"/O/x: openFile: permission denied (Permission denied)",                                          "openFile|/O/x"                                                                 },
};

static void
paths_are_found_in_the_complaints_of_common_programs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        expect_names(messages[i].text, messages[i].names);
    }
}

static void
hosts_are_found_in_the_complaints_of_common_programs(void **state)
{
    (void)state;
    expect_names("curl: (6) Could not resolve host: example.com", "example.com (host)");
    expect_names("fatal: unable to access 'https://github.com/a/b/': Could not resolve host: "
                 "github.com",
                 "github.com (host)");
    expect_names("curl: (7) Failed to connect to 127.0.0.1 port 8080 after 0 ms: x",
                 "127.0.0.1 port 8080 (host)");
    expect_names("ssh: Could not resolve hostname git.example.org: Temporary failure in name "
                 "resolution",
                 "git.example.org (host)");
    expect_names("ssh: connect to host git.example.org port 22: Network is unreachable",
                 "git.example.org port 22 (host)");
    expect_names("wget: unable to resolve host address \xe2\x80\x98"
                 "a.b\xe2\x80\x99",
                 "a.b (host)");
    expect_names("Temporary failure resolving 'deb.debian.org'", "deb.debian.org (host)");
    expect_names("Error: getaddrinfo EAI_AGAIN packages.example.org",
                 "packages.example.org (host)");
    expect_names("dial tcp: lookup proxy.golang.org: no such host", "proxy.golang.org (host)");
    expect_names("HTTPSConnectionPool(host='pypi.org', port=443): Max retries",
                 "pypi.org port 443 (host)");
}

/* Words alone say nothing, and neither do names that nothing is said about. */
static void
what_is_no_complaint_about_an_object_gives_no_name(void **state)
{
    (void)state;
    expect_names("permission denied / sandbox / seccomp", "");
    expect_names("Permission denied", "");
    expect_names("./sandbox/p.json\n/etc/hosts\n", "");
    expect_names("bash: nosuchcmd_x: command not found", "");
    expect_names("/usr/include/x.h:3:1: error: unknown type", "");
    expect_names("  File \"/usr/lib/python3/x.py\", line 3, in f", "");
    expect_names("see https://example.com/: it works", "");
}

static void
the_number_of_names_and_the_length_of_lines_are_bounded(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1 << 20};
    SY_AUTO(buf_fini) struct buf out = {.max = 1 << 20};
    size_t names = 1;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf_addf(&text, "touch: '/O/%d': Permission denied\n", i), SY_E_OK);
    }
    evidence_scan(buf_view(&text), text.len, collect, &out);
    for (size_t i = 0; i < out.len; i++) {
        names += out.data[i] == '|' ? 1 : 0;
    }
    assert_int_equal(names, EVIDENCE_NAMES);

    buf_reset(&text);
    buf_reset(&out);
    assert_int_equal(buf_add_char(&text, '/'), SY_E_OK);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(buf_add_char(&text, 'a'), SY_E_OK);
    }
    assert_int_equal(buf_add_str(&text, ": Permission denied\n"), SY_E_OK);
    evidence_scan(buf_view(&text), text.len, collect, &out);
    assert_string_equal(buf_view(&out), "");
}

/* ---- what is made of it ---- */

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_found_in_the_complaints_of_common_programs),
        cmocka_unit_test(hosts_are_found_in_the_complaints_of_common_programs),
        cmocka_unit_test(what_is_no_complaint_about_an_object_gives_no_name),
        cmocka_unit_test(the_number_of_names_and_the_length_of_lines_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
