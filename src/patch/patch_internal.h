#ifndef SY_PATCH_PATCH_INTERNAL_H
#define SY_PATCH_PATCH_INTERNAL_H

#include "patch/patch.h"

static inline bool
patch_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
