#include "base/utf8.h"

#include <string.h>

/* Length announced by a lead byte, and the range of the second byte. */
static size_t
lead_length(unsigned char c, unsigned char *ret_low, unsigned char *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xBF;
    if (c >= 0xC2 && c <= 0xDF) {
        return 2;
    }
    if (c >= 0xE0 && c <= 0xEF) {
        if (c == 0xE0) {
            *ret_low = 0xA0;
        } else if (c == 0xED) {
            *ret_high = 0x9F;
        }
        return 3;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        if (c == 0xF0) {
            *ret_low = 0x90;
        } else if (c == 0xF4) {
            *ret_high = 0x8F;
        }
        return 4;
    }
    return 0;
}

/* How many of the n bytes at s agree with one multi-byte character; *ret_want
 * is its full length, 0 if s starts none. */
static size_t
match_multibyte(const unsigned char *s, size_t n, size_t *ret_want)
{
    unsigned char low = 0;
    unsigned char high = 0;
    size_t want = lead_length(s[0], &low, &high);
    size_t i = 1;

    *ret_want = want;
    if (want == 0) {
        return 0;
    }
    while (i < want && i < n && s[i] >= low && s[i] <= high) {
        low = 0x80;
        high = 0xBF;
        i++;
    }
    return i;
}

size_t
utf8_decode(uint32_t *ret, const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t want = 0;

    if (n == 0) {
        return 0;
    }
    if (u[0] < 0x80) {
        *ret = u[0];
        return 1;
    }
    if (match_multibyte(u, n, &want) < want || want == 0) {
        return 0;
    }

    uint32_t c = u[0] & (0xFFU >> (want + 1));

    for (size_t i = 1; i < want; i++) {
        c = (c << 6) | (u[i] & 0x3FU);
    }
    *ret = c;
    return want;
}

/* Number of leading ASCII bytes. */
static size_t
ascii_run(const char *s, size_t n)
{
    size_t i = 0;

    for (; i + 32 <= n; i += 32) {
        uint64_t w[4];

        memcpy(w, s + i, sizeof(w));
        if (((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080ULL) != 0) {
            break;
        }
    }
    while (i < n && (unsigned char)s[i] < 0x80) {
        i++;
    }
    return i;
}

static bool
is_tail(unsigned char c)
{
    return (c & 0xC0U) == 0x80U;
}

/* Length of the character that begins at s with a lead byte, 0 if there is
 * none. The same as match_multibyte, laid out for speed: text in scripts other
 * than Latin comes through here whole. */
static size_t
multibyte_length(const unsigned char *s, size_t n)
{
    unsigned char c = s[0];

    if (c < 0xE0) {
        return c >= 0xC2 && n >= 2 && is_tail(s[1]) ? 2 : 0;
    }
    if (c < 0xF0) {
        return n >= 3 && is_tail(s[1]) && is_tail(s[2]) && !(c == 0xE0 && s[1] < 0xA0) &&
                       !(c == 0xED && s[1] > 0x9F)
                   ? 3
                   : 0;
    }
    return c <= 0xF4 && n >= 4 && is_tail(s[1]) && is_tail(s[2]) && is_tail(s[3]) &&
                   !(c == 0xF0 && s[1] < 0x90) && !(c == 0xF4 && s[1] > 0x8F)
               ? 4
               : 0;
}

size_t
utf8_put(char bytes[UTF8_MAX], uint32_t c)
{
    size_t n = 0;

    if (c < 0x80U) {
        bytes[n++] = (char)c;
        return n;
    }
    if (c < 0x800U) {
        bytes[n++] = (char)(0xC0U | (c >> 6));
    } else if (c < 0x10000U) {
        bytes[n++] = (char)(0xE0U | (c >> 12));
        bytes[n++] = (char)(0x80U | ((c >> 6) & 0x3FU));
    } else {
        bytes[n++] = (char)(0xF0U | (c >> 18));
        bytes[n++] = (char)(0x80U | ((c >> 12) & 0x3FU));
        bytes[n++] = (char)(0x80U | ((c >> 6) & 0x3FU));
    }
    bytes[n++] = (char)(0x80U | (c & 0x3FU));
    return n;
}

size_t
utf8_valid_prefix(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t i = 0;

    while (i < n) {
        if (u[i] < 0x80) {
            i += ascii_run(s + i, n - i);
            continue;
        }

        size_t m = multibyte_length(u + i, n - i);

        if (m == 0) {
            return i;
        }
        i += m;
    }
    return n;
}

bool
utf8_is_valid(const char *s, size_t n)
{
    return utf8_valid_prefix(s, n) == n;
}

size_t
utf8_incomplete_tail(const char *s, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char *u = (const unsigned char *)s + n - back;
        size_t want = 0;

        if ((u[0] & 0xC0U) == 0x80U) {
            continue;
        }
        if (match_multibyte(u, back, &want) == back && want > back) {
            return back;
        }
        return 0;
    }
    return 0;
}

size_t
utf8_cut(const char *s, size_t len, size_t n)
{
    if (n >= len) {
        return len;
    }
    for (size_t back = 0; back <= 3 && back <= n; back++) {
        const unsigned char *u = (const unsigned char *)s + n - back;
        size_t want = 0;

        if ((u[0] & 0xC0U) != 0x80U) {
            /* A character, or the part of one that is here so far, goes on
             * beyond n: a cut before it is clean. */
            return back == 0 || match_multibyte(u, len - n + back, &want) > back ? n - back : n;
        }
    }
    return n;
}

int
utf8_room(const char *text, size_t n)
{
    return (int)utf8_cut(text, strlen(text), n);
}

bool
utf8_is_unseen(uint32_t c)
{
    static const struct {
        uint32_t from;
        uint32_t to;
    } ranges[] = {
        {0x00,    0x1F    },
        {0x7F,    0xA0    },
        {0xAD,    0xAD    },
        {0x34F,   0x34F   },
        {0x61C,   0x61C   },
        {0x115F,  0x1160  }, /* fillers of Hangul */
        {0x1680,  0x1680  },
        {0x17B4,  0x17B5  },
        {0x180B,  0x180F  },
        {0x2000,  0x200F  }, /* spaces, zero-width, directions */
        {0x2028,  0x202F  },
        {0x205F,  0x206F  },
        {0x2800,  0x2800  }, /* Braille without a dot */
        {0x3000,  0x3000  },
        {0x3164,  0x3164  },
        {0xFE00,  0xFE0F  }, /* variation selectors */
        {0xFEFF,  0xFEFF  },
        {0xFFA0,  0xFFA0  },
        {0xFFF0,  0xFFFB  },
        {0x1BCA0, 0x1BCA3 },
        {0x1D173, 0x1D17A },
        {0xE0000, 0x10FFFF}, /* tags, more selectors, private use */
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (c <= ranges[i].to) {
            return c >= ranges[i].from;
        }
    }
    return true;
}
