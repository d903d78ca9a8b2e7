"""The lint catches a planted violation of each kind, and lets clean code be.

Every check gets a small tree of its own in a temporary directory; what would
look like a violation to the lint of this very tree is put together at run time.
"""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tools"))
# pylint: disable=wrong-import-position
import lint  # noqa: E402
from lintlib.common import CheckFailed, Tree, strip_c  # noqa: E402

GOOD_C = """#include "base/thing.h"

int
thing_twice(int n)
{
    return 2 * n;
}
"""
GOOD_H = """#ifndef SY_BASE_THING_H
#define SY_BASE_THING_H

#include <stddef.h>

/* The double of n. */
int thing_twice(int n);

#endif
"""


class PlantedTree(unittest.TestCase):
    """A tree in a temporary directory; subclasses plant files and run one check."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = os.path.realpath(self.folder.name)
        for name in (".clang-format", ".clang-tidy"):
            with open(os.path.join(TOP, name), encoding="utf-8") as file:
                self.plant(name, file.read())

    def plant(self, name, text, mode=0o644):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode()
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)

    def plant_clean(self):
        self.plant("src/base/thing.c", GOOD_C)
        self.plant("src/base/thing.h", GOOD_H)

    def findings(self, check, only=None):
        return lint.CHECKS[check](Tree(self.root, only=only))

    def assert_clean(self, check):
        self.assertEqual([str(f) for f in self.findings(check)], [])

    def assert_caught(self, check, *words, warning=False):
        found = self.findings(check)
        for finding in found:
            text = str(finding)
            if all(word in text for word in words) and finding.is_warning == warning:
                return
        self.fail(f"{check} did not find {words}: {[str(f) for f in found]}")

    def build(self, *sources, flags=()):
        """What a build leaves: objects, archives by room, compile commands."""
        os.makedirs(os.path.join(self.root, "build"), exist_ok=True)
        entries = []
        for source in sources:
            folder = os.path.join(self.root, "build", os.path.dirname(source))
            os.makedirs(folder, exist_ok=True)
            target = os.path.join(folder, os.path.basename(source) + ".o")
            command = ["cc", "-std=c17", "-Isrc", *flags, "-c", "-o", target, source]
            subprocess.run(command, cwd=self.root, check=True)
            subprocess.run(["ar", "rcs", os.path.join(folder, "libroom.a"), target], check=True)
            entries.append({"directory": self.root, "file": source, "command": " ".join(command)})
        with open(os.path.join(self.root, "build", "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump(entries, file)


class Counts(unittest.TestCase):
    def test_planted_faults_do_not_count_as_failures(self):
        """The lint below appends what it finds to this file where it is named."""
        self.assertNotIn("TESTS_COUNTS_FILE", os.environ)


class Text(PlantedTree):
    def test_clean_text_passes(self):
        self.plant_clean()
        self.plant("Makefile", "all:\n\techo\n")
        self.assert_clean("text")

    def test_trailing_space_is_caught(self):
        self.plant("a.md", "one \ntwo\n")
        self.assert_caught("text", "a.md:1", "trailing space")

    def test_a_tab_is_caught(self):
        self.plant("src/base/a.c", "\tint a;\n")
        self.assert_caught("text", "a.c:1", "tab")

    def test_a_carriage_return_is_caught(self):
        self.plant("a.md", "one\r\n")
        self.assert_caught("text", "a.md:1", "carriage return")

    def test_a_missing_line_end_is_caught(self):
        self.plant("a.md", "one")
        self.assert_caught("text", "a.md:1", "no line end")


class Size(PlantedTree):
    def test_small_files_pass(self):
        self.plant_clean()
        self.plant("src/base/long.c", "int\nf(void)\n{\n" + "    g();\n" * 80 + "}\n")
        self.assert_clean("size")

    def test_a_file_over_1_mib_is_caught(self):
        self.plant("big.txt", "x" * (1024 * 1024 + 1))
        self.assert_caught("size", "big.txt", "1 MiB")

    def test_a_binary_is_caught(self):
        self.plant("tool", b"\x7fELF\0\0")
        self.assert_caught("size", "tool", "binary")

    def test_a_long_file_is_warned_about(self):
        self.plant("src/base/long.c", "int a;\n" * 601)
        self.assert_caught("size", "long.c", "601 lines", warning=True)

    def test_a_long_function_is_warned_about(self):
        self.plant("src/base/long.c", "int\nf(void)\n{\n" + "    g();\n" * 81 + "}\n")
        self.assert_caught("size", "long.c:3", "f has 81 lines", warning=True)


class Secrets(PlantedTree):
    def test_clean_text_passes(self):
        self.plant_clean()
        self.plant("a.md", "AKIA and sk-short and https://example.org/a:b@c\n")
        self.assert_clean("secrets")

    def test_each_kind_of_secret_is_caught(self):
        kinds = {
            "AWS": "AKIA" + "ABCDEFGHIJKLMNOP",
            "GitHub": "ghp_" + "a1B2" * 9,
            "Slack": "xoxb-" + "123456789012-abc",
            "API key": "sk-" + "ant-" + "a1B2c3D4" * 4,
            "npm": "npm_" + "a1B2" * 9,
            "private key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
            "web token": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.c2lnbmF0dXJl",
            "password": "https://user:" + "hunter2@example.org",
        }
        for kind, secret in kinds.items():
            with self.subTest(kind):
                self.plant("a.txt", f"first\nkey: {secret}\n")
                self.assert_caught("secrets", "a.txt:2", kind)

    def test_a_marked_line_is_let_be(self):
        self.plant("a.txt", "AKIA" + "ABCDEFGHIJKLMNOP  lint: allow " + "secret\n")
        self.assert_clean("secrets")


class Paths(PlantedTree):
    def test_other_paths_pass(self):
        self.plant("a.md", "~/work/x, $HOME/root/x, /usr/bin and src/work/x\n")
        self.assert_clean("paths")

    def test_a_path_of_one_machine_is_caught(self):
        for path in ("/wo" + "rk/main", "/ro" + "ot/.ssh"):
            with self.subTest(path):
                self.plant("a.sh", f"cd {path}\n")
                self.assert_caught("paths", "a.sh:1", "path of one machine")

    def test_a_registry_address_is_caught(self):
        self.plant("package-lock.json", '{"resol' + 'ved": "x"}\n')
        self.assert_caught("paths", "package-lock.json:1", "registry")


class Banned(PlantedTree):
    def test_comments_strings_and_longer_names_pass(self):
        self.plant("src/cli/a.c", "/* strcpy(a, b) */\nconst char *s = \"strtok(x)\"; // gets(s)\n"
                   "int my_strcpy(int);\nint b = orch_signal(1);\nint c = o->free(2);\nint d = o.close(3);\n")
        self.assert_clean("banned")

    def test_a_banned_call_is_caught_with_its_replacement(self):
        for call, instead in (("strcpy", "buf_add_str"), ("strtol", "str_to_i64"), ("signal", "sigaction"),
                              ("localtime", "localtime_r"), ("system", "process room")):
            with self.subTest(call):
                self.plant("src/base/a.c", f"int a;\nint b = {call} (x);\n")
                self.assert_caught("banned", "a.c:2", call, instead)

    def test_bare_heap_and_descriptors_are_caught_outside_base_only(self):
        for call in ("malloc", "free", "close"):
            with self.subTest(call):
                self.plant("src/base/a.c", f"int b = {call}(x);\n")
                self.plant("src/tools/a.c", f"int b = {call}(x);\n")
                found = [str(f) for f in self.findings("banned")]
                self.assertEqual(len(found), 1, found)
                self.assertIn(f"src/tools/a.c:1: {call} is banned", found[0])

    def test_standard_output_is_caught_outside_its_places(self):
        for name in ("src/cli/a.c", "src/transport/stdio.c"):
            self.plant(name, "int b = printf(\"x\") + fputs(\"y\", stdout);\n")
        self.assert_clean("banned")
        self.plant("src/transport/http.c", "int b = printf(\"x\");\n")
        self.assert_caught("banned", "http.c:1", "printf")
        self.plant("src/transport/http.c", "int b = fputs(\"y\", stdout);\n")
        self.assert_caught("banned", "http.c:1", "stdout")

    def test_an_open_that_children_inherit_is_caught(self):
        self.plant("src/base/a.c", "int a = open(p,\n    O_RDONLY | O_CLOEXEC);\n")
        self.assert_clean("banned")
        self.plant("src/base/a.c", "int a = openat(d, p, O_RDONLY);\n")
        self.assert_caught("banned", "a.c:1", "O_CLOEXEC")

    def test_a_marked_line_is_let_be(self):
        self.plant("src/base/a.c", "int b = strtol(x); /* lint: allow strtol */\n"
                   "/* They must be inherited. lint: allow open */\nint c = open(p, 0);\n")
        self.assert_clean("banned")

    def test_it_runs_by_itself(self):
        self.plant("a.c", "int b = atoi(x);\n")
        done = subprocess.run([os.path.join(TOP, "tools", "check_banned.py"),
                               os.path.join(TOP, "src", "base", "limits.h")], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


class Includes(PlantedTree):
    def test_arrows_down_the_house_pass(self):
        self.plant("src/orchestrator/a.c", '#include "orchestrator/orchestrator.h"\n#include <uv.h>\n'
                   '#include "base/buf.h"\n#include "sandbox/sandbox.h"\n#include "orchestrator/call_internal.h"\n')
        self.plant("src/base/json.c", "#include <jansson.h>\n")
        self.plant("src/embed/a.c", '#include "shellyard/shellyard.h"\n#include "transport/stdio.h"\n')
        self.plant("src/cli/a.c", '#include "embed/embed.h"\n#include "audit/audit.h"\n')
        self.plant("src/events/a.c", '/*\n#include "tools/tools.h"\n*/\n')
        self.assert_clean("includes")

    def test_what_a_listed_room_may_include_passes_too(self):
        # tools lists orchestrator, which lists process, which lists sandbox.
        self.plant("src/tools/a.c", '#include "sandbox/sandbox.h"\n')
        self.assert_clean("includes")

    def test_an_arrow_up_is_caught(self):
        for room, other in (("base", "events"), ("sandbox", "process"), ("output", "sandbox"),
                            ("config", "tools"), ("embed", "cli"), ("orchestrator", "tools")):
            with self.subTest(room):
                name = f"src/{room}/planted.c"
                self.plant(name, f'int a;\n#include "{other}/{other}.h"\n')
                self.assert_caught("includes", f"{name}:2", f"room {room} may not include room {other}")
                os.unlink(os.path.join(self.root, name))

    def test_the_inside_of_another_room_is_caught(self):
        self.plant("src/tools/a.c", '#include "process/process_internal.h"\n')
        self.assert_caught("includes", "a.c:1", "process_internal.h belongs to room process alone")

    def test_a_library_outside_its_room_is_caught(self):
        self.plant("src/tools/a.c", "#include <jansson.h>\n")
        self.assert_caught("includes", "a.c:1", "behind src/base/json.c")

    def test_an_include_without_its_room_is_caught(self):
        self.plant("src/tools/a.c", '#include "tools.h"\n')
        self.assert_caught("includes", "a.c:1", "names no room")
        self.plant("src/tools/a.c", '#include "../base/buf.h"\n')
        self.assert_caught("includes", "a.c:1", '".."')

    def test_an_unknown_room_is_caught(self):
        self.plant("src/cellar/a.c", "int a;\n")
        self.assert_caught("includes", "unknown room cellar")


class Symbols(PlantedTree):
    def test_names_of_the_room_pass(self):
        self.plant("src/process/keeper_internal.h", "struct watch;\n")
        self.plant("src/process/keeper.c", "int process_a;\nint env_b;\nint keeper_c;\nint watch_d;\n"
                   "static int e;\nint *process_e(void);\nint *\nprocess_e(void)\n{\n    return &e;\n}\n")
        self.build("src/process/keeper.c")
        self.assert_clean("symbols")

    def test_a_name_without_its_room_is_caught(self):
        self.plant("src/process/a.c", "int process_a;\nint helper(void);\nint\nhelper(void)\n{\n    return 1;\n}\n")
        self.build("src/process/a.c")
        self.assert_caught("symbols", "src/process", "symbol helper should be static")

    def test_a_library_that_exports_more_than_sy_is_caught(self):
        self.plant("src/embed/a.c", "int sy_a;\nint leak;\n")
        self.build("src/embed/a.c", flags=["-fPIC"])
        subprocess.run(["cc", "-shared", "-o", os.path.join(self.root, "build", "libshellyard.so.0"),
                        os.path.join(self.root, "build", "src", "embed", "a.c.o")], check=True)
        self.assert_caught("symbols", "libshellyard.so.0", "exports leak")

    def test_no_build_is_told(self):
        with self.assertRaisesRegex(CheckFailed, "run make first"):
            self.findings("symbols")


class Compilers(PlantedTree):
    def test_clean_code_passes_format_headers_clang_and_tidy(self):
        self.plant_clean()
        self.build("src/base/thing.c")
        for check in ("format", "headers", "clang", "tidy"):
            with self.subTest(check):
                self.assertEqual([str(f) for f in self.findings(check) if not f.is_warning], [])

    def test_bad_format_is_caught(self):
        self.plant("src/base/a.c", "int f( void ) { return 1; }\n")
        found = self.findings("format")
        self.assertTrue(any("src/base/a.c" in str(f) and "make fmt" in str(f) for f in found), found)

    def test_a_header_that_needs_another_is_caught_with_both_compilers(self):
        self.plant("src/base/a.h", "size_t a_size(void);\n")
        self.assert_caught("headers", "src/base/a.h", "gcc")
        self.assert_caught("headers", "src/base/a.h", "clang")

    def test_a_warning_of_clang_is_caught(self):
        # gcc does not warn of this one.
        self.plant("src/base/a.c", "int f(int a);\nint\nf(int a)\n{\n    return ((a == 1)) ? 1 : (a = a);\n}\n")
        self.build("src/base/a.c", flags=["-Wall", "-Werror"])
        self.assert_caught("clang", "src/base/a.c:5")

    def test_a_finding_of_clang_tidy_is_caught(self):
        self.plant("src/base/a.c", "int f(int a);\nint\nf(int a)\n{\n    if (a > 1)\n        return 1;\n    return 0;\n}\n")
        self.build("src/base/a.c")
        found = [str(f) for f in self.findings("tidy")]
        self.assertTrue(any("src/base/a.c:5" in f and "braces" in f for f in found), found)

    def test_a_function_too_complex_is_caught_by_clang_tidy(self):
        body = "".join(f"    if (a > {i}) {{\n        if (a < {2 * i}) {{\n            a++;\n        }}\n    }}\n"
                       for i in range(12))
        self.plant("src/base/a.c", f"int f(int a);\nint\nf(int a)\n{{\n{body}    return a;\n}}\n")
        self.build("src/base/a.c")
        found = [str(f) for f in self.findings("tidy")]
        self.assertTrue(any("cognitive complexity" in f for f in found), found)

    def test_a_source_in_no_build_is_warned_about(self):
        self.plant_clean()
        self.plant("src/base/lost.c", "int lost;\n")
        self.build("src/base/thing.c")
        self.assert_caught("tidy", "src/base/lost.c", "compiled by no build", warning=True)

    def test_no_build_is_told(self):
        self.plant_clean()
        for check in ("tidy", "clang"):
            with self.subTest(check), self.assertRaisesRegex(CheckFailed, "run make first"):
                self.findings(check)


class Scripts(PlantedTree):
    def test_clean_scripts_pass(self):
        self.plant("a.sh", '#!/bin/sh\nset -eu\necho "$1"\n')
        self.plant("a.py", "print(1)\n")
        self.plant("a.mjs", "export const a = 1;\n")
        for check in ("shell", "python", "node"):
            with self.subTest(check):
                self.assert_clean(check)

    def test_a_shell_script_without_suffix_is_checked(self):
        self.plant("hook", "#!/bin/bash\nrm $1/x\n")
        self.assert_caught("shell", "hook:2", "SC2086")

    def test_python_that_does_not_compile_is_caught(self):
        self.plant("a.py", "def f(:\n")
        self.assert_caught("python", "a.py:1")

    def test_javascript_that_does_not_parse_is_caught(self):
        self.plant("a.mjs", "const a = ;\n")
        self.assert_caught("node", "a.mjs:1", "SyntaxError")


FAKE_PROGRAM = """#!/bin/sh
case "$1 $2" in
"help --json")
    echo '{"program_options":[],"common_options":[{"name":"help"}],"verbs":[{"name":"exec","page":"shellyard-exec.1",'
    echo '"options":[{"name":"timeout","letter":"t"}]}]}' ;;
"mcp "*) cat >/dev/null
    echo '{"jsonrpc":"2.0","id":1,"result":{}}'
    echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"shell","inputSchema":{"properties":{"workdir":{}}}}]}}' ;;
*) exit 2 ;;
esac
"""


class Docs(PlantedTree):
    def setUp(self):
        super().setUp()
        self.plant("src/base/err.h", '#define SY_CODES(X) \\\n    X(SY_E_OK, "ok", 0, 0) \\\n'
                   '    X(SY_E_ARG, "invalid", -32602, 2)\n')
        self.plant("src/base/limits.h", "/* Why. */\n#define LIMIT_A (2U * 1024)\n#define LIMIT_B 7\n")
        self.plant("src/config/config.h", "struct config {\n    struct {\n        const char *mode; /* a; b */\n"
                   "        struct strv roots;\n    } sandbox;\n    struct impl *impl;\n};\n")
        self.plant("docs/errors.md", "| code | text | JSON-RPC | exit |\n|---|---|---|---|\n"
                   "| `SY_E_OK` | ok | 0 | 0 |\n| `SY_E_ARG` | invalid | -32602 | 2 |\n")
        self.plant("docs/limits.md", "| name | value | why |\n|---|---|---|\n"
                   "| `LIMIT_A` | 2,048 (2 KiB) | x |\n| `LIMIT_B` | 7 | x |\n")
        self.plant("docs/use.md", "`exec -t MS`, `--timeout`, `--help`; tool `shell` with `workdir`; `sandbox.mode`, "
                   "`sandbox.roots`\n")
        self.plant("build/shellyard", FAKE_PROGRAM, mode=0o755)

    def replace(self, name, old, new):
        path = os.path.join(self.root, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        self.plant(name, text.replace(old, new), mode=stat.S_IMODE(os.stat(path).st_mode))

    def test_a_program_in_step_passes(self):
        self.assert_clean("docs")

    def test_an_error_code_that_is_not_explained_is_caught(self):
        self.replace("docs/errors.md", "SY_E_ARG", "SY_E_OTHER")
        self.assert_caught("docs", "docs/errors.md", "SY_E_ARG", "not explained")
        self.assert_caught("docs", "docs/errors.md", "SY_E_OTHER", "not in src/base/err.h")

    def test_an_error_code_with_other_numbers_is_caught(self):
        self.replace("src/base/err.h", "-32602", "-32603")
        self.assert_caught("docs", "SY_E_ARG", "-32603")

    def test_a_limit_that_is_not_explained_is_caught(self):
        self.replace("docs/limits.md", "LIMIT_B", "LIMIT_C")
        self.assert_caught("docs", "docs/limits.md", "LIMIT_B", "not explained")
        self.assert_caught("docs", "docs/limits.md", "LIMIT_C", "not in src/base/limits.h")

    def test_a_limit_with_another_value_is_caught(self):
        self.replace("src/base/limits.h", "2U * 1024", "4U * 1024")
        self.assert_caught("docs", "LIMIT_A", "4,096")

    def test_a_configuration_key_that_is_not_explained_is_caught(self):
        self.replace("docs/use.md", "sandbox.roots", "sandbox.roots_dir")
        self.assert_caught("docs", "configuration key sandbox.roots")

    def test_a_flag_that_is_not_explained_is_caught(self):
        self.replace("docs/use.md", "--timeout", "--timeouts")
        self.assert_caught("docs", "shellyard exec --timeout")

    def test_a_flag_must_be_in_the_page_of_its_verb(self):
        self.plant("docs/man/shellyard-exec.1", ".B exec\n\\fB\\-t\\fR, \\fB\\-\\-timeout\\fR\n")
        self.assert_clean("docs")
        self.plant("docs/man/shellyard-exec.1", ".B exec\n\\fB\\-\\-timeout\\fR\n")
        self.assert_caught("docs", "docs/man/shellyard-exec.1", "shellyard exec -t")

    def test_a_program_that_does_not_tell_its_flags_is_caught(self):
        self.plant("build/shellyard", "#!/bin/sh\nexit 2\n", mode=0o755)
        with self.assertRaisesRegex(CheckFailed, "help --json"):
            self.findings("docs")

    def test_a_verb_that_is_not_explained_is_caught(self):
        self.replace("docs/use.md", "`exec -t", "`run -t")
        self.assert_caught("docs", "`shellyard exec` is not explained")

    def test_a_tool_that_is_not_explained_is_caught(self):
        self.replace("docs/use.md", "`shell`", "`other`")
        self.assert_caught("docs", "tool shell is not explained")

    def test_a_parameter_that_is_not_explained_is_caught(self):
        self.replace("docs/use.md", "`workdir`", "`dir`")
        self.assert_caught("docs", "parameter workdir of tool shell")

    def test_a_program_that_is_not_built_is_told(self):
        os.unlink(os.path.join(self.root, "build", "shellyard"))
        self.assert_caught("docs", "run make first")


class Links(PlantedTree):
    def test_links_that_lead_somewhere_pass(self):
        self.plant("docs/a.md", "[b](b.md#x) [c](https://example.org) [d](#d)\n```\n[x](nowhere.md)\n```\n")
        self.plant("docs/b.md", "b\n")
        self.assert_clean("links")

    def test_a_dead_link_is_caught(self):
        self.plant("docs/a.md", "text\n[b](b.md)\n")
        self.assert_caught("links", "docs/a.md:2", "b.md")


class Driver(PlantedTree):
    def run_lint(self, *arguments):
        return subprocess.run([os.path.join(TOP, "tools", "lint.py"), "--root", self.root, *arguments],
                              capture_output=True, text=True, check=False)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
                       cwd=self.root, check=True, capture_output=True)

    def test_a_finding_ends_with_status_1_and_its_place(self):
        self.plant("a.md", "one \n")
        done = self.run_lint("text")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a.md:1: trailing space [text]", done.stdout)

    def test_warnings_alone_end_with_status_0(self):
        self.plant("src/base/long.c", "int a;\n" * 601)
        self.assertEqual(self.run_lint("size").returncode, 0)

    def test_a_check_that_cannot_be_made_fails(self):
        done = self.run_lint("symbols")
        self.assertEqual(done.returncode, 1)
        self.assertIn("run make first", done.stdout)

    def test_an_unknown_check_is_refused(self):
        self.assertEqual(self.run_lint("nonsense").returncode, 2)

    def test_staged_looks_at_staged_files_only(self):
        self.git("init", "-q")
        self.plant("old.md", "old \n")
        self.plant("new.md", "new \n")
        self.git("add", "new.md")
        done = self.run_lint("--staged", "text")
        self.assertIn("new.md", done.stdout)
        self.assertNotIn("old.md", done.stdout)

    def test_changed_looks_at_what_differs_from_the_last_commit(self):
        self.git("init", "-q")
        self.plant("old.md", "old \n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        self.plant("new.md", "new \n")
        done = self.run_lint("--changed", "--", "text")
        self.assertIn("new.md", done.stdout)
        self.assertNotIn("old.md", done.stdout)

    def test_every_check_has_a_planted_violation_here(self):
        with open(os.path.abspath(__file__), encoding="utf-8") as file:
            text = file.read()
        for check in lint.CHECKS:
            with self.subTest(check):
                self.assertRegex(text, rf'(assert_caught|self\.findings)\("{check}"')

    def test_blanking_keeps_lines_in_place(self):
        self.assertEqual(strip_c('a /* x\ny */ b "c\\"d" e').split("\n"), ["a     ", '     b "    " e'])


if __name__ == "__main__":
    unittest.main()
