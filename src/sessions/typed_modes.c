/* How a terminal is set that reads lines by itself. */
#include <termios.h>

#include "sessions/sessions_internal.h"

static unsigned char
character(const struct termios *modes, size_t kind)
{
    return modes->c_cc[kind] == _POSIX_VDISABLE ? 0 : modes->c_cc[kind];
}

void
typed_modes(struct typed_modes *ret, int terminal_fd)
{
    struct termios modes;

    *ret = (struct typed_modes){
        .erase = 0x7F,
        .kill = 0x15,
        .word_erase = 0x17,
        .next_literal = 0x16,
        .end = 0x04,
        .signals = {TYPED_INTERRUPT, 0x1C, 0x1A},
        .is_common = true
    };
    /* What reads keys does without them. */
    if (terminal_fd < 0 || tcgetattr(terminal_fd, &modes) != 0 || (modes.c_lflag & ICANON) == 0) {
        return;
    }

    const struct typed_modes common = *ret;
    const bool extends = (modes.c_lflag & IEXTEN) != 0;

    *ret = (struct typed_modes){
        .erase = character(&modes, VERASE),
        .kill = character(&modes, VKILL),
        .word_erase = character(&modes, VWERASE),
        .next_literal = character(&modes, VLNEXT),
        .end = character(&modes, VEOF),
        .ends_line = {character(&modes,  VEOL),  character(&modes, VEOL2)},
        .signals = { character(&modes, VINTR), character(&modes, VQUIT), character(&modes, VSUSP)},
        .strips = (modes.c_iflag & ISTRIP) != 0,
        .lowers = extends && (modes.c_iflag & IUCLC) != 0,
    };
    ret->keeps_returns = (modes.c_iflag & (ICRNL | IGNCR)) == 0;
    ret->is_common =
        ret->erase == common.erase && ret->kill == common.kill &&
        ret->word_erase == common.word_erase && ret->next_literal == common.next_literal &&
        ret->end == common.end && ret->ends_line[0] == 0 && ret->ends_line[1] == 0 &&
        ret->signals[0] == common.signals[0] && ret->signals[1] == common.signals[1] &&
        ret->signals[2] == common.signals[2] && !ret->strips && !ret->lowers && !ret->keeps_returns;
}
