#ifndef SY_SESSIONS_SESSIONS_INTERNAL_H
#define SY_SESSIONS_SESSIONS_INTERNAL_H

#include <uv.h>

#include "base/limits.h"
#include "sessions/sessions.h"
#include "sessions/transcript.h"
#include "terminal/state.h"
#include "terminal/terminal.h"

/* What is left of a session that was forgotten. */
struct live_memory {
    char id[LIMIT_SESSION_ID + 1];
    char text[SY_ERR_MSG_MAX];
};

struct live_store {
    struct live_store_options options;
    struct live *first; /* all that are known, in order of their beginning */
    size_t n;
    size_t running;
    struct live *leaving;         /* forgotten, but not ended yet */
    size_t lent;                  /* begun here, known by another store now */
    struct live_memory *memories; /* a ring of LIMIT_SESSION_MEMORIES; NULL: none so far */
    size_t next_memory;
    bool is_ending;
    struct live_watch *watches;
};

/* Ctrl-C. Without a terminal the session makes a signal of it, and its command never reads it. */
#define TYPED_INTERRUPT '\003'

/* What an escape sequence takes with it, where programs differ, and who takes no sequences. */
enum typed_kind {
    TYPED_KEYS,    /* an editor of lines that knows sequences; the first of all */
    TYPED_PASTES,  /* and pastes */
    TYPED_BYTES,   /* no editor but the terminal's own: all but its characters is text */
    TYPED_NONE,    /* the sequence is ESC alone, */
    TYPED_ONE,     /* or has one byte behind it, */
    TYPED_TWO,     /* two, */
    TYPED_THREE,   /* three, */
    TYPED_NUMBERS, /* what introduces it and its numbers, */
    TYPED_COUNTED, /* or is a number of times, and the key that it is for */
    TYPED_LOST,    /* as the first, but it loses the byte behind a Ctrl-C */
    TYPED_SHARED,  /* as the first, and what the terminal takes for itself does the same to it */
    TYPED_KINDS,
};

/* The line that is being typed, as one who reads it takes the bytes. */
struct typed_reading {
    enum typed_kind kind;
    struct buf line;
    struct buf block;  /* the lines before it, where they are no whole command yet */
    size_t here_at;    /* where in the block the word stands that ends its here-document, */
    size_t here_len;   /* and how long it is; 0: nothing else is known to be missing */
    struct buf starts; /* of size_t: where in the line something may begin that is one by itself */
    struct buf killed; /* what was erased of it last, and a key may bring back */
    size_t given;      /* so much of the line has been read, and can't be taken back */
    uint64_t spent_ns; /* work at judging what is not whole */
    bool is_pipe;      /* nobody edits: each byte is itself, and lines end by newlines alone */
    bool is_cut;       /* some of the line had no room */
    bool is_loose;     /* some of the block had none: what ends it can't be known */
    bool is_quoted;    /* Ctrl-V came: the next byte is itself */
    bool has_moved;    /* the cursor may be anywhere in the line: what erases may erase nothing */
    unsigned char escape; /* inside of an escape sequence: which kind; 0: none */
    unsigned param;       /* its number, as far as it is one */
    unsigned escaped;     /* how many bytes of it have come behind ESC */
    bool is_paste;        /* between the brackets of a paste: each byte is itself */
    size_t closing;       /* so many of the bracket that closes it have come */
    bool loses_next;      /* Ctrl-C came, and this way loses the byte behind it */
    size_t judged;        /* so many of the starts of the line that is judged */
    bool is_open;         /* what that is as a whole (judge_line) */
    bool is_later;        /* judging it is to go on, with the same byte */
};

/* All ways to take it (typed.c). They differ only where certain bytes were typed. */
struct typed {
    struct typed_reading v[TYPED_KINDS]; /* TYPED_KEYS is always there */
    size_t n;
};

/* What a terminal takes for itself while it reads lines (termios(3)); 0: nothing. */
struct typed_modes {
    unsigned char erase;
    unsigned char kill;
    unsigned char word_erase;
    unsigned char next_literal;
    unsigned char end;
    unsigned char ends_line[2];
    unsigned char signals[3];
    unsigned char gone[3]; /* stop, start and reprint: none of them arrives */
    bool drops_returns;
    bool erases_bytes;  /* of a character, one at once */
    bool strips;        /* the eighth bit */
    bool lowers;        /* capital letters */
    bool keeps_returns; /* Enter is no newline */
    bool is_common;     /* as terminals are before somebody sets them */
};

/* Who reads what is typed. */
struct typed_reader {
    struct orch_call *call; /* for whom it is judged; NULL: it is not */
    bool knows_paste;       /* it has asked for brackets around pastes, in which a control
                               character edits nothing, so that it must hide nothing */
    bool draws;             /* it uses the whole screen, so that no line of it stands */
    bool takes_long;        /* no shell: a line, or all, may be too long to be judged */
    bool is_over;           /* the input ends behind it */
    uint64_t until_ns; /* of our thread's work: then it takes too long; typed_follow sets it, */
    uint64_t slice_ns; /* and by the clock: then others are served */
    struct typed_modes modes; /* of its terminal */
};

/* What is being typed, and followed as far as it has come. Zeroed but for its reader at first. */
struct typed_work {
    struct typed_reader reader;
    struct typed now; /* what comes of it */
    bool has_begun;
    bool has_parted;  /* the next byte is being followed */
    size_t at;        /* so many bytes have been */
    size_t way;       /* by so many of the ways the next has, or the end */
    uint64_t left_ns; /* of our thread's work that it may still take */
    bool is_later;    /* it is to go on */
};

/* One call's input to a session (live_write). */
struct live_typing {
    bool is_last;   /* the input ends behind it */
    bool is_person; /* it is not judged */
    struct typed_work work;
    struct typed_work hidden_work; /* of a line that is followed apart */
    bool is_apart;
    bool is_later;
    size_t skipped;    /* so much of it is that line's alone */
    uint64_t typed_at; /* l->typings when it began: where others have typed since, it begins anew */
    bool is_hidden;
};

/* A program whose terminal is set as if it waited, and which shows no prompt or does not read, may
 * still be at work, as Node.js and scripts are; it waits once it has written nothing for so long.
 */
#define LIVE_BLANK_MS 1000U

/* A number of a session that nobody can guess, in hexadecimal digits. */
#define MARKS_NONCE 33

/* How a shell is brought to mark its prompt. */
enum marks_shell {
    MARKS_NONE,
    MARKS_BASH,
    MARKS_PLAIN_BASH, /* without its line editor */
    MARKS_ZSH,
    MARKS_SH
};

struct live {
    struct live_store *store;
    struct live_store *home; /* where it began, if that is another one */
    struct live *next;
    struct session *session; /* a reference; NULL: nothing was submitted */
    struct session *heir;    /* a reference: whose it is now, if no more that one's */
    char id[LIMIT_SESSION_ID + 1];
    struct live_options starter; /* zeroed: detached */
    struct orch_call *call;
    struct orch_driver *driver; /* NULL: the call is over, or there is none */
    struct transcript *transcript;
    char *command;
    char *cwd;
    bool has_terminal;
    bool has_begun;
    bool is_over; /* status and the like are final */
    bool is_removed;
    enum exec_status status;
    int exit_code;
    int signal;
    struct sy_error error; /* EXEC_FAILED: why */
    uint64_t began_ns;
    uint64_t ended_ns;
    uint64_t used_ns;
    uint64_t heard_ns;       /* when it last wrote something */
    struct typed *typed;     /* NULL: nothing was typed that counts yet */
    struct typed *hidden;    /* the same of lines that are hidden, and no command by what is seen */
    char nonce[MARKS_NONCE]; /* of the marks that count; "": none do */
    enum marks_shell shell;
    uint64_t prompted_ns;    /* when the last mark of a new prompt came; 0: none yet */
    size_t owed;             /* lines that were typed, without a mark of a prompt behind them */
    uint64_t prompt_pastes;  /* terminal_state.pastes at that mark */
    size_t dropped;          /* of what was typed, by the interrupt that came last, if one did */
    uint64_t typed_ns;       /* when something was typed last */
    uint64_t typings;        /* how often something was followed to its end */
    size_t line;             /* bytes of the line that its terminal is being given */
    bool has_lost_input;     /* of what was typed last: live_has_lost_input */
    bool is_copy;            /* live_is_copy of its command */
    uint64_t seen;           /* live_seen */
    bool was_drawing;        /* live_was_drawing */
    bool has_drawn;          /* live_has_drawn */
    struct terminal *screen; /* NULL: it has no terminal */
    struct live_wait *waits; /* the first one's turn it is */
    bool is_looking;         /* inside of look() */
    bool is_put_off;         /* the look that is due, since something is to be read first */
    struct live_tap *taps;
    uv_timer_t timer;
};

/*
 * Follows what is typed, and has each line judged that is submitted (orch_judge_typed), by its end,
 * that of the input or Ctrl-D. w->is_later: LIMIT_TYPED_SLICE_MS are over; the same call goes on
 * with the same bytes, and `t` is as it was.
 * SY_E_DENIED: none of it may be typed, and what was typed before stands as it was.
 */
enum sy_code typed_follow(struct typed *t, struct typed_work *w, const char *bytes, size_t n,
                          struct sy_error *err) SY_NODISCARD;
void typed_work_fini(struct typed_work *w);
/* Is it as before anything was typed? */
bool typed_is_idle(const struct typed *t);
/* A shell is at its prompt anew: what came before the line that stands there is over. */
void typed_begin_anew(struct typed *t);
/* How long the line is that stands there. */
size_t typed_length(const struct typed *t);
/* Before anything is typed. `is_pipe`: it has no terminal. */
void typed_init(struct typed *t, bool is_pipe);
void typed_fini(struct typed *t);
/* How the terminal is set; zeroed modes where it does not tell. */
void typed_modes(struct typed_modes *ret, int terminal_fd);

/* For typed_ways.c: one byte, in one of the ways to take it. A write begins where the line is. */
enum sy_code typed_follow_byte(struct typed_reading *t, const struct typed_reader *r, char c,
                               struct sy_error *err) SY_NODISCARD;
enum sy_code typed_add_start(struct typed_reading *t) SY_NODISCARD; /* SY_E_NOMEM */
void typed_reading_fini(struct typed_reading *t);
/* The places in `starts`. */
const size_t *typed_starts(const struct typed_reading *t, size_t *ret_n);

/*
 * For typed.c. Line: Enter came, and what stands there is whole; t->is_later: it is not judged to
 * the end yet. End: it is handed over as it stands, and goes on.
 */
enum sy_code typed_judge_line(struct typed_reading *t, const struct typed_reader *r,
                              struct sy_error *err) SY_NODISCARD;
void typed_drop_block(struct typed_reading *t);
/* Where the word of a here-document stands that begins in a line; false: it has none, or several,
 * or one whose word is not plain. (typed_words.c) */
bool typed_find_here(const char *line, size_t n, size_t *ret_at, size_t *ret_len);
/* The word before the cursor, as who reads so has it. */
void typed_erase_word(struct typed_reading *t);
enum sy_code typed_judge_end(struct typed_reading *t, const struct typed_reader *r,
                             struct sy_error *err) SY_NODISCARD;

/*
 * Marks of a prompt (marks.c). Shell: which one is it, if it reads what is typed and no script?
 * Split: the words of a script that consists of nothing but a name and options (an `exec` before
 * it left out); else none. Prepare: for such a shell, what its screen needs, and who adds to its
 * environment. Environment: that addition, with the directory of the shells' files (NULL: there is
 * none).
 */
enum marks_shell marks_shell(const struct strv *words);
enum sy_code marks_split(struct strv *ret, const char *script) SY_NODISCARD;
enum sy_code marks_prepare(struct live *l, struct exec_request *request,
                           struct terminal_options *options) SY_NODISCARD;
enum sy_code marks_environment(struct strv *env, enum marks_shell shell, const char *nonce,
                               const char *dir) SY_NODISCARD;

/* What is typed, followed and judged by who reads it (input.c). SY_E_DENIED as of typed_follow;
 * typing->is_later: it is to go on, with the same bytes. */
enum sy_code live_follow_input(struct live *l, const struct live_terminal *t,
                               struct live_typing *typing, const char *bytes, size_t n,
                               struct sy_error *err) SY_NODISCARD;
void live_typing_fini(struct live_typing *typing);
/* Is it nothing but a `cat > FILE` on a pipe, whose input no shell can read? */
bool live_is_copy(const struct exec_request *request);
/* All that stands in a line. */
void live_forget_input(struct live *l);

/* Its terminal (tty.c). Begin: before its command is submitted. Feed: what it wrote. */
enum sy_code live_tty_begin(struct live *l, struct exec_request *request,
                            struct sy_error *err) SY_NODISCARD;
void live_tty_feed(struct live *l, const char *bytes, size_t n);
/* How long the line is that stands in its terminal once it has these bytes, as far as it is set
 * now; 0 where it reads no whole lines. Lost: some of them have no room (LIMIT_TERMINAL_LINE). */
size_t live_tty_line(const struct live *l, const char *bytes, size_t n, bool *ret_is_lost);
/* Is what is typed now a password, or may it be one by what stands before the cursor? It is told to
 * nobody then. */
bool live_tty_hides(const struct live *l, const struct live_terminal *t);
/* The wait looks for its pattern in what comes from there on; the line before it counts as what
 * stands before. */
void live_tty_scan_from(struct live *l, struct live_wait *w, uint64_t seq);
/* Has anything been written since the last look that the wait looks for? */
bool live_tty_matches(struct live *l, struct live_wait *w);
/* Is something that was typed not read yet? True in doubt. */
bool live_has_typed_ahead(const struct live *l);
/* Its own shell has answered all lines with a prompt, so that it is what waits. */
bool live_is_at_own_prompt(const struct live *l);
/* Of one that reads keys: is it in a read of its terminal, and waits for nothing else? */
enum state_answer live_reads_keys(const struct live_terminal *t, bool *ret_alone);
/* Is something that it wrote not read yet? */
bool live_has_unheard(const struct live *l);

/* To all watches of its store, while it can be found; LIVE_GONE is the last. */
void live_tell(const struct live *l, enum live_change change);
void live_tell_settled(const struct live_store *s);
/* Each tap is told; the end unties them. (tap.c) */
void live_tell_taps(struct live *l, enum live_news news);

/* Something has happened that a wait may be for: looked at from the loop. */
void live_look_soon(struct live *l);
/* For uv_timer_start. */
void live_on_timer(uv_timer_t *timer);
/* Each is done, as cancelled. */
void live_end_waits(struct live *l);

/* Room for one more, and its id: the wanted one, or (NULL) a new number. */
enum sy_code live_store_place(struct live_store *s, char ret[LIMIT_SESSION_ID + 1],
                              const char *wanted, struct sy_error *err) SY_NODISCARD;
void live_store_add(struct live_store *s, struct live *l);
/* Out of the list of those that are known; */
void live_store_forget(struct live_store *s, struct live *l);
/* and into that of those that leave. */
void live_store_drop(struct live_store *s, struct live *l);
/* Its memory may go: it is in no list any more. */
void live_store_gone(struct live_store *s, struct live *l);
/* NULL: it knows none of that id. */
struct live *live_store_find(const struct live_store *s, const char *id);
void live_store_remember(struct live_store *s, const char *id, const char *why);

#endif
