"""Compiles and links a C++ program with the public header, and runs it."""

import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77

PROGRAM = """
#include <shellyard/shellyard.h>

#include <cstring>

int main()
{
    const char *argv[] = {"echo", "hi", nullptr};
    sy_engine_options options = sy_engine_options();
    sy_command command = sy_command();
    sy_engine *engine = nullptr;
    sy_result *result = nullptr;
    options.size = sizeof(options);
    command.size = sizeof(command);
    command.argv = argv;
    if (sy_engine_new(&engine, &options, nullptr, 0) != SY_OK ||
        sy_run(engine, &command, &result, nullptr, 0) != SY_OK) {
        return 1;
    }
    const bool is_good = std::strcmp(sy_result_text(result, SY_STDOUT, nullptr), "hi\\n") == 0;
    sy_result_free(result);
    sy_engine_free(engine);
    return is_good ? 0 : 2;
}
"""


def main():
    header, library = (os.path.abspath(name) for name in sys.argv[1:])
    compiler = next(filter(None, (shutil.which(name) for name in ("c++", "g++", "clang++"))), None)
    if compiler is None:
        print("no C++ compiler")
        return SKIPPED
    with tempfile.TemporaryDirectory(dir="/var/tmp") as workspace:
        source = os.path.join(workspace, "program.cc")
        program = os.path.join(workspace, "program")
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        include = os.path.dirname(os.path.dirname(header))
        subprocess.run([compiler, "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", include, source,
                        library, f"-Wl,-rpath,{os.path.dirname(library)}", "-o", program], check=True, timeout=60)
        return subprocess.run([program], cwd=workspace, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
                              timeout=30, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
