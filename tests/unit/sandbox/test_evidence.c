/*
 * What is read from a failed command's output, and what is made of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fault.h"
#include "fixture.h"
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

static int
plain_permissions(void *arg, const char *path, int how)
{
    (void)arg;
    return faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0 ? 0 : errno;
}

static int
refused_by_mode(void *arg, const char *path, int how)
{
    (void)arg;
    (void)path;
    (void)how;
    return EACCES;
}

/* Everything whose path ends so is protected. */
static bool
envrc_is_held(void *arg, struct sandbox_explanation *ret, enum sandbox_operation op,
              const char *path)
{
    const char *end = strstr(path, ".envrc");

    (void)arg;
    (void)op;
    if (end == NULL || strcmp(end, ".envrc") != 0) {
        return false;
    }
    (void)snprintf(ret->rule, sizeof(ret->rule), "held");
    (void)snprintf(ret->fix, sizeof(ret->fix), "lift it");
    return true;
}

/* Of the next cases; NULL: none. */
static char **dirs;

static char *const *
tell_dirs(void *arg)
{
    (void)arg;
    return dirs;
}

static enum sy_code
infer(const struct place *p, struct denial_list *list, char *note, evidence_access_fn *access,
      const char *text)
{
    const struct evidence_case c = {
        .plan = p->plan,
        .cwd = p->policy.cwd,
        .dirs = tell_dirs,
        .exit_code = 1,
        .access = access,
        .held = envrc_is_held,
        .uid = geteuid(),
        .note = note,
    };

    note[0] = '\0';
    return evidence_infer(list, &c, text, strlen(text));
}

static void
a_path_that_only_the_policy_refuses_is_a_denial(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];
    char fix[400];

    place_ready(p);
    (void)snprintf(text, sizeof(text),
                   "touch: cannot touch '%s': Permission denied\n"
                   "touch: cannot touch '%s': Permission denied\n"
                   "touch: cannot touch 'in': Permission denied\n",
                   place_path(p, "O/f"), place_path(p, "W/f"));
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1); /* the workspace is allowed: that was something else */
    assert_string_equal(list.v[0].object, place_path(p, "O/f"));
    assert_string_equal(list.v[0].operation, "write");
    assert_int_equal(list.v[0].confidence, DENIAL_INFERRED);
    assert_int_equal(list.v[0].layer, DENIAL_LANDLOCK);
    (void)snprintf(fix, sizeof(fix), "sandbox.writable_roots: [\"%s\"]", place_path(p, "O"));
    assert_string_equal(list.v[0].fix, fix);
    assert_string_equal(note, "");
}

static void
what_is_refused_anyway_is_told_as_not_ours(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];

    place_ready(p);
    (void)snprintf(text, sizeof(text), "touch: cannot touch '%s': Permission denied\n",
                   place_path(p, "O/f"));
    assert_int_equal(infer(p, &list, note, refused_by_mode, text), SY_E_OK);
    assert_int_equal(list.n, 0);
    assert_non_null(strstr(note, "not the sandbox: "));
    assert_non_null(strstr(note, place_path(p, "O/f")));
    assert_null(strstr(note, "writable_roots"));
}

static void
what_is_missing_is_no_denial(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];

    place_ready(p);
    (void)snprintf(text, sizeof(text), "x: '%s': Permission denied\n",
                   place_path(p, "O/missing/f"));
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 0);
    assert_string_equal(note, "");
}

static void
a_removal_is_judged_by_the_directory(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];
    char fix[400];

    place_file(p, "O/old", "1");
    place_ready(p);
    (void)snprintf(text, sizeof(text), "rm: cannot remove '%s': Permission denied\n",
                   place_path(p, "O/old"));
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].operation, "delete");
    (void)snprintf(fix, sizeof(fix), "sandbox.writable_roots: [\"%s\"]", place_path(p, "O"));
    assert_string_equal(list.v[0].fix, fix);
}

static void
a_host_is_refused_while_the_network_is_off_and_only_then(void **state)
{
    static const char text[] = "curl: (6) Could not resolve host: example.com\n";
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];

    place_ready(p);
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].object, "example.com");
    assert_string_equal(list.v[0].operation, "connect");
    assert_string_equal(list.v[0].fix, "sandbox.network_access: true");
    denial_list_fini(&list);

    p->policy.has_network = true;
    place_ready(p);
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 0);
}

/* The text with both paths put in gives these denials, or none and a note that has the word. */
static void
expect_denials(struct place *p, const char *text, const char *denials, const char *note_word)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    SY_AUTO(buf_fini) struct buf told = {.max = 1 << 16};
    SY_AUTO(buf_fini) struct buf filled = {.max = 1 << 16};
    char note[SY_ERR_MSG_MAX];
    size_t skip = strlen(place_path(p, ""));

    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '@') { /* the place */
            assert_int_equal(buf_add_str(&filled, place_path(p, "")), SY_E_OK);
        } else {
            assert_int_equal(buf_add_char(&filled, *at), SY_E_OK);
        }
    }
    assert_int_equal(infer(p, &list, note, plain_permissions, buf_view(&filled)), SY_E_OK);
    for (size_t i = 0; i < list.n; i++) {
        const char *object = list.v[i].object;

        if (strlen(object) > skip && strncmp(object, place_path(p, ""), skip) == 0) {
            object += skip;
        }
        assert_int_equal(buf_addf(&told, "%s%s %s %s", i > 0 ? "|" : "", list.v[i].operation,
                                  object, denial_layer_name(list.v[i].layer)),
                         SY_E_OK);
    }
    if (strcmp(buf_view(&told), denials) != 0) {
        fail_msg("'%s' gives '%s' instead of '%s'", buf_view(&filled), buf_view(&told), denials);
    }
    if (note_word == NULL ? note[0] != '\0' : strstr(note, note_word) == NULL) {
        fail_msg("'%s' gives the note '%s'", buf_view(&filled), note);
    }
}

static void
of_the_paths_of_a_line_the_one_that_is_refused_is_told(void **state)
{
    static const struct {
        const char *text;
        const char *denials;
    } rows[] = {
        {"fatal: cannot copy '@O/old' to '@W/new': Read-only file system",           ""                      },
        {"fatal: cannot copy '@W/old' to '@O/new': Read-only file system",           "write O/new landlock"  },
        {"cp: cannot create regular file '@O/new': Permission denied",               "write O/new landlock"  },
        {"mv: cannot move '@O/old' to '@W/new': Permission denied",                  "delete O/old landlock" },
        {"mv: cannot move '@O/old' to '@O/new': Permission denied",
         "write O/new landlock|delete O/old landlock"                                                        },
        {"rename @W/a @O/new: permission denied",                                    "write O/new landlock"  },
        {"ln: failed to create symbolic link '@W/l' -> '@O/old': Permission denied", ""                      },
        {"@O/tool: line 3: @W/x: Permission denied",                                 ""                      },
        {"OSError: [Errno 13] Permission denied: '@O/new' -> '@W/x'",                "write O/new landlock"  },
        {"@O/ld: cannot open output file @O/a.out: Permission denied",               "write O/a.out landlock"},
    };
    struct place *p = *state;

    place_file(p, "O/old", "1");
    place_file(p, "O/tool", "1");
    place_ready(p);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_denials(p, rows[i].text, rows[i].denials, NULL);
    }
}

static void
a_protected_name_is_told_as_the_guards(void **state)
{
    struct place *p = *state;

    place_file(p, "W/.envrc", "1");
    place_ready(p);
    expect_denials(p, "bash: line 1: .envrc: Read-only file system", "write W/.envrc guard", NULL);
    expect_denials(p, "mv: cannot move '.envrc' to 'x': Device or resource busy",
                   "delete W/.envrc guard", NULL);
    expect_denials(p, "mkdir: cannot create directory '.envrc': File exists",
                   "create W/.envrc guard", NULL);
    expect_denials(p, "ln: failed to create hard link 'c' => '.envrc': Invalid cross-device link",
                   "write W/.envrc guard", NULL);
    /* Nobody holds these, and the same words about what the policy refuses are no refusal. */
    expect_denials(p, "mv: cannot move 'd' to 'x': Device or resource busy", "", NULL);
    expect_denials(p, "mkdir: cannot create directory '/usr': File exists", "", NULL);
    expect_denials(p, "cat: .envrc: Permission denied", "write W/.envrc guard", NULL);
}

/* The likeliest first; one where it would not be refused is not it. */
static void
a_name_without_a_directory_is_looked_for_where_the_command_was(void **state)
{
    struct place *p = *state;
    char outside[300];
    char inside[300];
    char *where[] = {outside, inside, NULL};

    place_file(p, "O/f", "1");
    place_mkdir(p, "W/in");
    place_file(p, "W/in/.envrc", "1");
    place_ready(p);
    (void)snprintf(outside, sizeof(outside), "%s", place_path(p, "O"));
    (void)snprintf(inside, sizeof(inside), "%s", place_path(p, "W/in"));
    expect_denials(p, "tee: f: Permission denied", "", NULL);
    dirs = where;
    expect_denials(p, "tee: f: Permission denied", "write O/f landlock", NULL);
    expect_denials(p, "rm: cannot remove '.envrc': Device or resource busy",
                   "delete W/in/.envrc guard", NULL);
    expect_denials(p, "tee: @W/f: Permission denied", "", NULL);
    where[0] = inside;
    where[1] = NULL;
    expect_denials(p, "tee: f: Permission denied", "", NULL);
    dirs = NULL;
}

static void
modes_and_owners_are_told_as_not_ours(void **state)
{
    struct place *p = *state;
    char file[300];

    place_file(p, "W/sealed", "1");
    place_ready(p);
    (void)snprintf(file, sizeof(file), "%s", place_path(p, "W/sealed"));
    assert_int_equal(chmod(file, 0), 0);
    if (geteuid() != 0) { /* root may, and then the words are about nothing */
        expect_denials(p, "bash: line 1: sealed: Permission denied", "", "not the sandbox: ");
        expect_denials(p, "chmod: changing permissions of '/usr': Operation not permitted", "",
                       "not the sandbox: /usr ");
    }
    expect_denials(p, "bash: line 1: other: Permission denied", "", NULL);
}

static void
what_was_seen_is_not_inferred_again(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct place *p = *state;
    char note[SY_ERR_MSG_MAX];
    char text[1024];
    char object[300];

    place_ready(p);
    (void)snprintf(object, sizeof(object), "%s", place_path(p, "O/d"));
    (void)snprintf(text, sizeof(text), "mkdir: cannot create '%s': Permission denied\n", object);

    const struct denial seen = {
        .confidence = DENIAL_EXACT, .operation = "create", .object = object};

    assert_int_equal(denial_add(&list, &seen), SY_E_OK);
    assert_int_equal(infer(p, &list, note, plain_permissions, text), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].operation, "create");
}

static enum sy_code
infer_one(void *arg)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    char note[SY_ERR_MSG_MAX];

    return infer(arg, &list, note, plain_permissions,
                 "touch: cannot touch '/usr/x': Permission denied\n");
}

static void
each_failing_allocation_is_told_or_finds_less(void **state)
{
    struct place *p = *state;

    place_ready(p);
    fault_run_lenient(infer_one, p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_found_in_the_complaints_of_common_programs),
        cmocka_unit_test(hosts_are_found_in_the_complaints_of_common_programs),
        cmocka_unit_test(what_is_no_complaint_about_an_object_gives_no_name),
        cmocka_unit_test(the_number_of_names_and_the_length_of_lines_are_bounded),
        cmocka_unit_test_setup_teardown(a_path_that_only_the_policy_refuses_is_a_denial,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_anyway_is_told_as_not_ours, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_is_no_denial, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_removal_is_judged_by_the_directory, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_host_is_refused_while_the_network_is_off_and_only_then,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(of_the_paths_of_a_line_the_one_that_is_refused_is_told,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_protected_name_is_told_as_the_guards, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(
            a_name_without_a_directory_is_looked_for_where_the_command_was, place_setup,
            place_teardown),
        cmocka_unit_test_setup_teardown(modes_and_owners_are_told_as_not_ours, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(what_was_seen_is_not_inferred_again, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(each_failing_allocation_is_told_or_finds_less, place_setup,
                                        place_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
