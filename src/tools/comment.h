#ifndef SY_TOOLS_COMMENT_H
#define SY_TOOLS_COMMENT_H

#include "approval/review.h"
#include "config/config.h"

/*
 * Asks a model for a comment on each request for approval, where assessment.url names one
 * (approval/risk.h). Without an answer in LIMIT_COMMENT_MS, or with one that is none, there is
 * no comment; why is logged.
 */
struct commenter;
struct uv_loop_s;

/* Borrowed, all of it, until commenter_free; the paths are copied. */
struct commenter_options {
    const struct config *config;
    struct review *review;
    struct uv_loop_s *loop;
    const char *http_path; /* of shellyard-http; NULL: none */
    char *const *environ_list;
};

/* *ret stays NULL where no URL is configured. The review is told. */
enum sy_code commenter_new(struct commenter **ret, const struct commenter_options *options,
                           struct sy_error *err) SY_NODISCARD;
/* Before the review's. Ends what goes on; the loop has to run once more. Accepts NULL. */
void commenter_free(struct commenter *c);

/* The key in assessment.key_file, to be wiped (mem_free_secret); SY_E_CONFIG for a file that
 * others may read, that holds none, or that is not there. */
enum sy_code commenter_read_key(struct buf *ret, const char *path,
                                struct sy_error *err) SY_NODISCARD;

#endif
