#ifndef SY_BASE_SECRET_FILE_H
#define SY_BASE_SECRET_FILE_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Reads a file that holds a secret, b->max bytes at most: only its owner, who is the effective user
 * or root, may read it. Memory for all of it is there from the beginning, so that no copy is left
 * behind when it grows; the caller wipes it (mem_free_secret), on failure too. `key` is that of the
 * configuration that names the file, for errors: none of them holds a byte of the file.
 */
enum sy_code secret_file_read(struct buf *b, const char *key, const char *path,
                              struct sy_error *err) SY_NODISCARD;

#endif
