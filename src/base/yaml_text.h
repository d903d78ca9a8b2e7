#ifndef SY_BASE_YAML_TEXT_H
#define SY_BASE_YAML_TEXT_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Appends s in double quotes as YAML has them, with what could deceive a reader escaped. A byte
 * that is no UTF-8 stands there as the character of its number: YAML can't name it.
 */
enum sy_code yaml_text_quote(struct buf *b, const char *s) SY_NODISCARD;

#endif
