#ifndef SY_SESSIONS_SESSIONS_H
#define SY_SESSIONS_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "orchestrator/orchestrator.h"

/*
 * Commands that outlive the call that started them (the specification: ProcessStore with its
 * entries): what they write is kept, they can be written to, and calls wait for what they do. Here
 * a session is one such command: a `struct live`. It is an orchestrator's call that goes on in its
 * run (orchestrator.h), so approval, sandbox, limits and evidence are those of any command.
 *
 * Everything is on the thread of the loop.
 */
struct live;
struct live_store;
struct terminal;
struct pattern_scan;
struct uv_loop_s;

struct live_store_options {
    struct uv_loop_s *loop;
    size_t max;        /* sessions at once, with those that have ended and are still known */
    size_t keep_bytes; /* of what each writes */
};

enum sy_code live_store_new(struct live_store **ret, const struct live_store_options *options,
                            struct sy_error *err) SY_NODISCARD;
/* Ends all of them. Run the loop then: until they have ended, they keep it. */
void live_store_end(struct live_store *s);
/* After live_store_end: have all of them ended? For a loop that goes on. */
bool live_store_is_over(const struct live_store *s);
/*
 * Whoever used them has gone, and what goes on is to be kept: the others end. With `keeps_pipes`
 * commands without a terminal go on as well.
 */
void live_store_keep(struct live_store *s, bool keeps_pipes);
/* Have those ended that were removed? */
bool live_store_has_settled(const struct live_store *s);
/* Those of them that `who` would have found? */
bool live_has_settled_within(const struct live_store *s, const struct session *who);
/*
 * All that `from` knows is known by `to` now, as if `who` (of to's engine) had begun it; what is
 * typed is judged as it was. What would make two of one id, or too many, stays. Both stores live
 * on the same loop. `from` is over only once what it has lent has ended.
 */
void live_store_lend(struct live_store *to, struct session *who, struct live_store *from);
/* Then, or after the loop's end. */
void live_store_free(struct live_store *s);
/* How many run; of at most how many that are known. */
size_t live_store_running(const struct live_store *s);
size_t live_store_max(const struct live_store *s);

/*
 * What happens to the sessions of a store, for whoever shows them: from whatever causes it, so that
 * `changed` may take note and no more. In the watcher's memory until live_store_unwatch, which is
 * not for inside of `changed`.
 */
enum live_change {
    LIVE_BEGAN,
    LIVE_CHANGED, /* it wrote something, or has another size */
    LIVE_ENDED,   /* its command; it is still known */
    LIVE_GONE     /* it will be known no more */
};
struct live_watch {
    void (*changed)(void *arg, const struct live *l, enum live_change change); /* may be NULL */
    /* One has ended, or one that was forgotten has; also where it began, if another store lent it.
     * From the loop; nothing may be freed there. May be NULL. */
    void (*settled)(void *arg);
    void *arg;
    struct live_watch *next; /* ours */
};
void live_store_watch(struct live_store *s, struct live_watch *w);
void live_store_unwatch(struct live_store *s, struct live_watch *w);

/* 1 to LIMIT_SESSION_ID letters, digits, '.', '_' and '-'; neither "." nor "..". */
bool live_id_is_valid(const char *id);
/*
 * Whoever asks (`who`) finds what was begun in its session (orchestrator.h) or one below it; of
 * others it is not told that they are there. SY_E_NOTFOUND with a sentence that says what became of
 * it, as far as that is known. A session whose command never ran is none.
 */
enum sy_code live_find(struct live **ret, struct live_store *s, const struct session *who,
                       const char *id, struct sy_error *err) SY_NODISCARD;
/* Would `who` find it? */
bool live_is_of(const struct live *l, const struct session *who);
/* Those of them in the order in which they began; `l` NULL: the first. NULL: no more. */
struct live *live_next(struct live_store *s, const struct session *who, const struct live *l);
/* Ends all of them. */
void live_end_within(struct live_store *s, const struct session *who);

/* What a session tells who started it, until live_detach. From the loop. */
typedef void live_fn(void *arg, struct live *l);
struct live_options {
    const char *id; /* NULL: a new number */
    live_fn *begun; /* the command runs */
    live_fn *over;  /* the call has ended; live_submit may be called again, once more */
    void *arg;
};

/*
 * A place in the store, with its id. Where there is no room another one goes: of those that were
 * not among the LIMIT_SESSIONS_PROTECTED used last, one that has ended before one that runs, the
 * one used least recently first (the specification's pruning). SY_E_ARG: the id is bad or in use.
 * SY_E_LIMIT: none can go.
 */
enum sy_code live_new(struct live **ret, struct live_store *s, const struct live_options *options,
                      struct sy_error *err) SY_NODISCARD;
/* Takes the request, as orch_submit does; its on_raw and on_begun are ours. After an error the
 * session is only good for live_remove. */
enum sy_code live_submit(struct live *l, struct session *session, const struct turn_context *turn,
                         struct exec_request *request, struct sy_error *err) SY_NODISCARD;
/* Who started it wants to hear no more; others of its session need not wait for it either. */
void live_detach(struct live *l);
/* Ends it, if it runs, and forgets it; `why` (NULL: nothing) is what its id answers then. */
void live_remove(struct live *l, const char *why);

const char *live_id(const struct live *l);
/* The orchestrator's call; NULL once what became of it was told (live_forget_call). */
struct orch_call *live_call(const struct live *l);
/* To go on with live_submit: the call that is over becomes the caller's. */
struct orch_call *live_take_call(struct live *l);
void live_forget_call(struct live *l);

/* How it stands. `command`, `cwd` and `tool` are borrowed. */
struct live_state {
    bool is_running;
    bool has_terminal;
    enum exec_status status; /* once it has ended */
    int exit_code;
    int signal; /* 0: none */
    uint64_t began_ns;
    uint64_t ended_ns;
    uint64_t used_ns;    /* when a call last had to do with it */
    size_t unread;       /* bytes that no call has been given yet */
    size_t unwritten;    /* bytes of input that it has not taken yet */
    size_t dropped;      /* of those, what the last input has dropped: an interrupt */
    const char *command; /* as text */
    const char *cwd;
    const struct sy_error *error; /* EXEC_FAILED: why */
};
void live_get_state(const struct live *l, struct live_state *ret);
/* "exited with code 0", "running", ... */
#define LIVE_STATE_TEXT (SY_ERR_MSG_MAX + 16)
void live_state_text(char ret[LIVE_STATE_TEXT], const struct live *l);

/* What its terminal is like. */
struct live_terminal {
    bool has_unread;       /* something typed is not read yet; looked at before all else here, */
    bool is_waiting;       /* it waits for input, as far as the kernel tells */
    bool is_at_prompt;     /* a shell or another reader of lines waits at its prompt */
    bool echo_off;         /* what is typed is not shown: a password */
    bool hides_line;       /* a line is waited for that the terminal does not show */
    char name[32];         /* /dev/pts/N; "": not known */
    pid_t leader;          /* its session's first process; 0: not known */
    pid_t foreground;      /* process group in the foreground; 0: not known */
    bool is_shell;         /* a shell is what waits */
    pid_t key_reader;      /* process group in the foreground that reads keys; 0: lines are read */
    bool draws;            /* it uses the whole screen */
    bool leads;            /* its first program is in the foreground, and what is typed is shown */
    bool reads;            /* lines are read, and the foreground is in a read of it, */
    bool reads_alone;      /* and waits for nothing else, */
    bool reads_for_others; /* of a shell, and no command: its `read`, */
    bool may_read;         /* or the kernel does not tell */
};
/* False: it has none, or has ended. */
bool live_get_terminal(const struct live *l, struct live_terminal *ret);
/* Its screen (terminal/terminal.h); NULL: it has none. */
struct terminal *live_screen(struct live *l);
/* The number of the look (terminal_screen.seq) that an answer was made of last; 0: none. */
uint64_t live_seen(const struct live *l);
void live_set_seen(struct live *l, uint64_t seq);
/* Did its program use the whole screen when the last answer was made? */
bool live_was_drawing(const struct live *l);
void live_set_drawing(struct live *l, bool is_drawing);
/* Was what it wrote last a drawing, on whichever screen? While nothing follows, its screen is what
 * there is to see. */
bool live_has_drawn(const struct live *l);
void live_set_drawn(struct live *l, bool has_drawn);

struct transcript;
/* What it wrote (transcript.h). */
struct transcript *live_transcript(struct live *l);

/*
 * Input, as orch_write and the like; `is_last`: and its end behind it, which hands over what stands
 * in the line. What it would run is judged before any of it is given, for LIMIT_TYPED_SLICE_MS;
 * then *ret_later is true, and the same call goes on with the same bytes and `typing`, which is one
 * call's own. SY_E_ARG: it has ended, or reads nothing.
 */
struct live_typing;
struct live_typing *live_typing_new(bool is_last) SY_NODISCARD; /* NULL: no memory */
void live_typing_free(struct live_typing *typing);              /* accepts NULL */
enum sy_code live_write(struct live *l, struct live_typing *typing, const void *bytes, size_t n,
                        bool *ret_later, struct sy_error *err) SY_NODISCARD;
/*
 * Input of a person who has joined the session (attach.h). No rule judges it. A line that the
 * person leaves half typed and somebody else submits is judged whole all the same; of what the
 * terminal hides nothing is told.
 */
enum sy_code live_type(struct live *l, const void *bytes, size_t n,
                       struct sy_error *err) SY_NODISCARD;
/* Has its terminal no room for some of what it was given last? It reads whole lines, and takes
 * LIMIT_TERMINAL_LINE bytes of one (termios(3), MAX_CANON), in however many pieces it comes. */
bool live_has_lost_input(const struct live *l);
bool live_signal(struct live *l, int signal);
/* 0: stays as it is. False: it has no terminal, or has ended. */
bool live_resize(struct live *l, unsigned rows, unsigned columns);
/* SIGKILL to all of it; its end comes as any other. */
void live_kill(struct live *l);

/*
 * Somebody who looks on, in the caller's memory until live_untap. `fn` is called from the loop, at
 * once, and may untap itself, but no other; after LIVE_ENDED it is untapped and the session is not
 * to be used.
 */
enum live_news {
    LIVE_NEWS_WROTE,   /* its screen may have changed */
    LIVE_NEWS_RESIZED, /* its terminal has another size */
    LIVE_NEWS_ENDED    /* it is over, or is being forgotten: live_state_text has how */
};
struct live_tap {
    void (*fn)(void *arg, struct live *l, enum live_news news);
    void *arg;
    unsigned rows; /* of the looker's own terminal; 0: its size does not count */
    unsigned cols;
    struct live_tap *next; /* ours */
};
void live_tap(struct live *l, struct live_tap *tap);
/* The session keeps its size if nobody else's counts. */
void live_untap(struct live *l, struct live_tap *tap);
/* The size of a tap has changed: the session gets the smallest of those that count. */
void live_fit(struct live *l);

/* Why a wait is over. */
enum live_reason {
    LIVE_EXIT,
    LIVE_DEADLINE,
    LIVE_IDLE,
    LIVE_PATTERN,
    LIVE_PROMPT,
    LIVE_INPUT,
    LIVE_STABLE,
    LIVE_CANCELLED, /* live_wait_cancel, or the session is being forgotten */
    LIVE_REFUSED    /* `begin` said no */
};
const char *live_reason_name(enum live_reason r);

/*
 * A call that waits for something of a session, in the caller's memory until `done`. Calls of one
 * session come one after the other: `begin` is called when it is this one's turn, and only then the
 * clock runs. Neither comes from inside live_wait. False from `begin` ends it.
 */
enum live_turn { LIVE_TURN_TAKEN, LIVE_TURN_LATER, LIVE_TURN_REFUSED };

struct live_wait {
    uint64_t yield_ms; /* LIVE_DEADLINE after that */
    uint64_t idle_ms;  /* LIVE_IDLE when nothing was written for so long; 0: never */
    bool until_prompt; /* LIVE_PROMPT when the shell is back at its prompt */
    bool until_input;  /* LIVE_INPUT when it waits for input of any kind */
    bool until_stable; /* LIVE_STABLE, and never LIVE_IDLE: what its screen shows has been the
                        * same for idle_ms, whatever was written to that end; for a second
                        * where it shows nothing, or what was typed was not read. Without a
                        * terminal: nothing was written */
    struct pattern_scan *scan; /* LIVE_PATTERN when this finds something; NULL: never. Borrowed */
    bool has_since;            /* it is looked for from since_seq on, not behind what was read */
    uint64_t since_seq;
    /* Its turn has come. LIVE_TURN_LATER: it is asked again soon, others are served before. NULL:
     * there is nothing to do. */
    enum live_turn (*begin)(void *arg, struct live *l);
    void (*done)(void *arg, struct live *l, enum live_reason reason);
    void *arg;
    size_t lines; /* how many `begin` has typed */
    /* Ours. */
    struct live_wait *next;
    uint64_t began_ns; /* 0: not its turn yet */
    bool is_beginning; /* it is, and `begin` is to be asked again */
    bool is_cancelled;
    bool saw_running;     /* it was not at its prompt since then */
    bool has_more;        /* a prompt may come before the last line was read */
    bool has_scan_failed; /* the search took too much: it may have missed something */
    uint64_t scanned;     /* up to which number of the transcript */
    uint64_t screen_seq;  /* of the last look at the screen */
    uint64_t looked_ns;   /* when that was; 0: never */
    uint64_t changed_ns;  /* when the screen was last found otherwise */
};
void live_wait(struct live *l, struct live_wait *w);
/* `done` still comes; nothing where it has come. */
void live_wait_cancel(struct live *l, struct live_wait *w);

#endif
