/* How a terminal is set that reads lines by itself. */
#include <string.h>
#include <termios.h>

#include "sessions/sessions_internal.h"

static unsigned char
character(const struct termios *modes, size_t kind)
{
    return modes->c_cc[kind] == _POSIX_VDISABLE ? 0 : modes->c_cc[kind];
}

/* A letter that somebody has made one of them. */
static bool
is_letter(unsigned char c)
{
    return c >= ' ' && c != 0x7F;
}

/* Of what reads keys: those that it has no use for stand as they were, or are off. */
static bool
is_common_for_keys(const struct typed_modes *m)
{
    return !m->drops_returns && !m->lowers && !m->strips && !m->erases_bytes &&
           !is_letter(m->erase) && !is_letter(m->kill) && !is_letter(m->word_erase) &&
           !is_letter(m->next_literal) && !is_letter(m->signals[0]) && !is_letter(m->gone[0]) &&
           !is_letter(m->gone[1]) && !is_letter(m->gone[2]);
}

void
typed_modes(struct typed_modes *ret, int terminal_fd)
{
    const struct typed_modes common = {
        .erase = 0x7F,
        .kill = 0x15,
        .word_erase = 0x17,
        .next_literal = 0x16,
        .end = 0x04,
        .signals = {TYPED_INTERRUPT, 0x1C, 0x1A},
        .gone = {0x13,            0x11, 0x12},
        .is_common = true
    };
    struct termios modes;

    *ret = common;
    if (terminal_fd < 0 || tcgetattr(terminal_fd, &modes) != 0) {
        return;
    }

    const bool extends = (modes.c_lflag & IEXTEN) != 0;
    const bool stops = (modes.c_iflag & IXON) != 0;

    *ret = (struct typed_modes){
        .erase = character(&modes, VERASE),
        .kill = character(&modes, VKILL),
        .word_erase = character(&modes, VWERASE),
        .next_literal = character(&modes, VLNEXT),
        .end = character(&modes, VEOF),
        .ends_line = {character(&modes,          VEOL),       character(&modes, VEOL2)},
        .signals = { character(&modes,         VINTR),              character(&modes, VQUIT), character(&modes, VSUSP)},
        .gone = { stops ? character(&modes, VSTOP) : 0, stops ? character(&modes,                               VSTART) : 0,
                      extends ? character(&modes, VREPRINT) : 0},
        .strips = (modes.c_iflag & ISTRIP) != 0,
        .lowers = extends && (modes.c_iflag & IUCLC) != 0,
        .drops_returns = (modes.c_iflag & IGNCR) != 0,
        .erases_bytes = (modes.c_iflag & IUTF8) == 0,
    };
    ret->keeps_returns = (modes.c_iflag & (ICRNL | IGNCR)) == 0;
    if ((modes.c_lflag & ICANON) == 0) {
        ret->is_common = is_common_for_keys(ret);
        *ret = ret->is_common ? common : *ret;
        return;
    }
    ret->is_common =
        is_common_for_keys(ret) && ret->erase == common.erase && ret->kill == common.kill &&
        ret->word_erase == common.word_erase && ret->next_literal == common.next_literal &&
        ret->end == common.end && ret->ends_line[0] == 0 && ret->ends_line[1] == 0 &&
        memcmp(ret->signals, common.signals, sizeof(common.signals)) == 0 && !ret->keeps_returns;
}
