/*
 * Runs a fuzz target over all files of the given directories, in an ordinary
 * build: replay_NAME DIRECTORY... A finding aborts, as it does under libFuzzer;
 * the file that was running is named before.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/fd.h"
#include "fuzz_check.h"

#define FILE_MAX ((size_t)16 * 1024 * 1024)

static enum sy_code
replay_file(const char *path, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf input = {.max = FILE_MAX};
    enum sy_code rc = fd_read_file(path, &input, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    /* Unbuffered, hence written even if the target aborts. */
    fprintf(stderr, "%s (%zu bytes)\n", path, input.len);
    (void)LLVMFuzzerTestOneInput((const uint8_t *)buf_view(&input), input.len);
    return SY_E_OK;
}

static enum sy_code
replay_directory(const char *path, size_t *count, struct sy_error *err)
{
    DIR *dir = opendir(path);
    enum sy_code rc = SY_E_OK;

    if (dir == NULL) {
        return sy_err_set(err, SY_E_NOTFOUND, "no directory '%s'", path);
    }
    for (const struct dirent *e = readdir(dir); e != NULL && rc == SY_E_OK; e = readdir(dir)) {
        SY_AUTO(buf_fini) struct buf file = {.max = FILE_MAX};

        if (e->d_name[0] == '.') {
            continue;
        }
        rc = buf_addf(&file, "%s/%s", path, e->d_name);
        if (rc == SY_E_OK) {
            rc = replay_file(file.data, err);
            (*count)++;
        }
    }
    (void)closedir(dir);
    return rc;
}

int
main(int argc, char **argv)
{
    struct sy_error err = {.code = SY_E_OK};
    size_t count = 0;

    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        if (replay_directory(argv[i], &count, &err) != SY_E_OK) {
            fprintf(stderr, "%s: %s\n", argv[0], err.msg);
            return 1;
        }
    }
    if (count == 0) {
        fprintf(stderr, "%s: no input files: give directories with some\n", argv[0]);
        return 1;
    }
    return 0;
}
