#ifndef SY_TESTS_UNIT_SANDBOX_GOLDEN_TEXT_H
#define SY_TESTS_UNIT_SANDBOX_GOLDEN_TEXT_H

#include "base/buf.h"

/*
 * Fails the test unless the file `dir`/`name` holds exactly `is`. With
 * SHELLYARD_UPDATE_GOLDEN=1 in the environment the file is written instead;
 * where CI is set, that is a failure.
 */
void golden_check(const char *dir, const char *name, const struct buf *is);

/* Appends JSON with one member or element a line, for a golden file that can
 * be read and compared by people. */
void golden_lay_out(struct buf *out, const char *json, size_t len);

#endif
