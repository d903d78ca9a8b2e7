#ifndef SY_APPROVAL_RULES_H
#define SY_APPROVAL_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/place.h"

/*
 * Rules: what a person has decided once and for all about commands that begin
 * with certain words. Plain data and pure functions over it; rules_read.h
 * makes it out of files. Names that reach a sentence are made harmless.
 */

/* From the weakest to the strictest; the strictest of all that match wins. */
enum rule_decision { RULE_NONE, RULE_ALLOW, RULE_ASK, RULE_FORBID };

/* "none", "allow", "ask", "forbid". */
const char *rule_decision_name(enum rule_decision d);

/* A command that a rule has to match, or must not. */
struct rule_example {
    struct place at;
    struct strv argv; /* leading NAME=value words are assignments */
    bool is_match;
};

/* The word in a steered command that stands for what followed the prefix. */
#define RULE_REST "{rest}"

struct rule {
    struct place at; /* its name is of struct rules */
    enum rule_decision decision;
    struct strv programs; /* names, absolute paths, or (with cwds) relative ones */
    struct strv *args;    /* the words that may stand at each position after the program */
    size_t args_n;
    struct strv cwds;   /* absolute; there and below; empty: everywhere */
    struct strv env;    /* "NAME" or "NAME=value" */
    int64_t expires;    /* seconds since 1970; 0: never */
    bool lifts_sandbox; /* RULE_ALLOW only */
    bool steer_runs;    /* the better command is run, else only told */
    struct strv steer;  /* RULE_FORBID only: the better command; empty: none */
    char *reason;       /* NULL: none given */
    struct rule_example *examples;
    size_t examples_n;
};

/* Which absolute paths are the program of that name, for rules that allow. */
struct rule_program {
    struct place at;
    char *name;
    struct strv paths;
};

enum rule_protocol {
    RULE_PROTOCOL_HTTP,
    RULE_PROTOCOL_HTTPS,
    RULE_PROTOCOL_SOCKS5_TCP,
    RULE_PROTOCOL_SOCKS5_UDP
};

/* "http", "https", "socks5_tcp", "socks5_udp". */
const char *rule_protocol_name(enum rule_protocol p);

struct rule_network {
    struct place at;
    char *host; /* lower case, no port, no trailing dot */
    enum rule_protocol protocol;
    enum rule_decision decision;
    char *reason;
};

/* Owns all of it. Zeroed: no rules. */
struct rules {
    struct rule *rules;
    size_t n;
    struct rule_program *programs;
    size_t programs_n;
    struct rule_network *network;
    size_t network_n;
    struct strv files; /* names of the files they stand in, for places */
};

void rule_fini(struct rule *r);
void rule_program_fini(struct rule_program *p);
void rule_network_fini(struct rule_network *n);
void rules_fini(struct rules *r);
/* Each moves *take behind the others; it is zeroed then, and on failure untouched.
 * SY_E_LIMIT beyond LIMIT_RULES of a kind. */
enum sy_code rules_add(struct rules *r, struct rule *take) SY_NODISCARD;
enum sy_code rules_add_program(struct rules *r, struct rule_program *take) SY_NODISCARD;
enum sy_code rules_add_network(struct rules *r, struct rule_network *take) SY_NODISCARD;

/* What will run, as lists of words. Borrowed. */
struct rule_script {
    const struct strv *commands; /* in the order of the script */
    size_t n;
    bool is_whole;             /* nothing else will run; else no rule allows */
    bool has_assignments;      /* leading NAME=value words are assignments, as in a shell */
    const struct strv *hidden; /* commands seen inside others: rules ask and forbid by them */
    size_t hidden_n;
    const bool *is_trusted; /* by command: no sandboxed command can have put its program
                               there; NULL: not known, then no rule lifts the sandbox */
    const char *cwd;        /* absolute, links resolved; NULL: not known */
    int64_t now;            /* seconds since 1970 */
};

struct rule_verdict {
    enum rule_decision decision; /* RULE_NONE: the rules leave it open */
    bool lifts_sandbox;          /* RULE_ALLOW, and each command's rules say so */
    const struct rule *by;       /* what decided; NULL with RULE_NONE */
    size_t command;              /* the command it decided on; from n on: of the hidden ones */
    bool steers;                 /* `by` knows a better command, rule_steer makes it */
    bool steer_runs;             /* and it may be run instead of this script */
    char reason[SY_ERR_MSG_MAX]; /* a sentence that names rule and place; "" with RULE_NONE */
};

/*
 * The strictest rule of all that match any command. RULE_ALLOW only if each
 * command of a whole script matches a rule that allows it. A directory change
 * makes the rest of the script's directory unknown, where rules with a cwd
 * don't allow but ask and forbid.
 */
void rules_decide(struct rule_verdict *ret, const struct rules *r, const struct rule_script *s);

/* Of each command of the script: do the rules allow it? What they leave open as a
 * whole is then a question of the other commands alone. */
void rules_allowed(bool *ret, const struct rules *r, const struct rule_script *s);

/* Does the rule match that command? All but its expiry counts. */
bool rules_fits(const struct rules *all, const struct rule *r, const struct strv *argv,
                const struct rule_script *s);
bool rule_has_expired(const struct rule *r, int64_t now);

/* The better command for argv, which the rule matches. It has to be judged as
 * if it had been sent. */
enum sy_code rule_steer(struct strv *ret, const struct rule *r, const struct strv *argv,
                        bool has_assignments) SY_NODISCARD;

/* What rules say about reaching a host; *ret_by (may be NULL) is the strictest. */
enum rule_decision rules_decide_network(const struct rules *r, const char *host,
                                        enum rule_protocol protocol,
                                        const struct rule_network **ret_by);

/* "git {status|log}" with the program's first name, cut to fit. */
struct rule_title {
    char text[96];
};
const char *rule_title(struct rule_title *ret, const struct rule *r);

/* How many leading words are NAME=value. */
size_t rule_assignments(const struct strv *argv);

/*
 * May a rule that allows this prefix be offered to a person? Never for shells,
 * interpreters without a script, and wrappers, which run anything; nor for words that are not
 * UTF-8.
 */
bool rule_may_propose(const struct strv *prefix);
/*
 * The exact prefix to offer for a command: `wanted` (may be NULL) if it is a
 * prefix of argv that may be offered, else program and subcommand where such a
 * pair is well known and harmless, else all of argv. *ret stays empty when
 * nothing may be offered.
 */
enum sy_code rule_propose(struct strv *ret, const struct strv *argv,
                          const struct strv *wanted) SY_NODISCARD;

#endif
