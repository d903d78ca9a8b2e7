#include "process/keeper_spec.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/mem.h"
#include "process/keeper_internal.h"
#include "sandbox/linux/raw_syscall.h"

static size_t
count(char *const *list)
{
    size_t n = 0;

    while (list[n] != NULL) {
        n++;
    }
    return n;
}

/* Where the next list and the next string go. */
struct layout {
    char *at;
    uint64_t list;
    uint64_t text;
};

static uint64_t
put_text(struct layout *l, const char *text)
{
    uint64_t where = l->text;
    size_t n = strlen(text) + 1;

    memcpy(l->at + where, text, n);
    l->text += n;
    return where;
}

static uint64_t
put_list(struct layout *l, char *const *list)
{
    uint64_t where = l->list;

    for (size_t i = 0; list[i] != NULL; i++) {
        uint64_t text = put_text(l, list[i]);

        memcpy(l->at + l->list, &text, sizeof(text));
        l->list += sizeof(text);
    }
    l->list += sizeof(uint64_t); /* the end: zero already */
    return where;
}

static size_t
bytes_of(char *const *list)
{
    size_t n = 0;

    for (size_t i = 0; list[i] != NULL; i++) {
        n += strlen(list[i]) + 1;
    }
    return n;
}

enum sy_code
keeper_spec_new(int *ret_fd, const struct keeper_job *job, struct sy_error *err)
{
    char *const *lists[] = {job->argv, job->script_argv, job->envp};
    size_t slots = 0;
    size_t text = strlen(job->program) + strlen(job->cwd) + 2;

    for (size_t i = 0; i < 3; i++) {
        slots += count(lists[i]) + 1;
        text += bytes_of(lists[i]);
    }

    size_t size = sizeof(struct keeper_spec) + slots * sizeof(uint64_t) + text;
    SY_AUTO(mem_free_charp) char *bytes = mem_alloc_zero(1, size);

    if (bytes == NULL) {
        return sy_err_nomem(err);
    }

    struct layout l = {.at = bytes,
                       .list = sizeof(struct keeper_spec),
                       .text = sizeof(struct keeper_spec) + slots * sizeof(uint64_t)};
    struct keeper_spec spec = {
        .size = size,
        .program = put_text(&l, job->program),
        .cwd = put_text(&l, job->cwd),
        .argv = put_list(&l, job->argv),
        .script_argv = put_list(&l, job->script_argv),
        .envp = put_list(&l, job->envp),
        .has_terminal = job->has_terminal ? 1 : 0,
        .n_rlimits = job->n_rlimits,
    };

    memcpy(spec.rlimits, job->rlimits, sizeof(spec.rlimits));
    memcpy(bytes, &spec, sizeof(spec));

    return fd_memory_file(ret_fd, "sy-command", bytes, size, err);
}

/* An offset to a string, or 0: is it inside? The last byte of the file is the end of one. */
RAW_CODE static bool
is_inside(const struct keeper_spec *s, uint64_t offset)
{
    return offset >= sizeof(*s) && offset < s->size;
}

/* Turns a list of offsets into pointers where it stands. NULL: not inside. */
RAW_CODE static char **
point(const struct keeper_spec *s, uint64_t list)
{
    char *base = (char *)(uintptr_t)s; /* NOLINT(performance-no-int-to-ptr) */
    uint64_t at = list;

    while (at % sizeof(uint64_t) == 0 && at >= sizeof(*s) && at + sizeof(uint64_t) <= s->size) {
        uint64_t *slot = (uint64_t *)(void *)(base + at);

        if (*slot == 0) {
            return (char **)(void *)(base + list);
        }
        if (!is_inside(s, *slot)) {
            return NULL;
        }
        *slot += (uint64_t)(uintptr_t)base;
        at += sizeof(uint64_t);
    }
    return NULL;
}

_Static_assert(sizeof(char *) == sizeof(uint64_t), "lists are turned into pointers in place");

RAW_CODE int
keeper_spec_load(struct keeper_job *job, int fd)
{
    long size = sy_raw3(SYS_lseek, fd, 0, 2 /* SEEK_END */);

    if (size < (long)sizeof(struct keeper_spec)) {
        return EPROTO;
    }

    long at = sy_raw6(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

    if (at < 0 && at > -4096) {
        return (int)-at;
    }

    struct keeper_spec *s = (struct keeper_spec *)at; /* NOLINT(performance-no-int-to-ptr) */
    const char *base = (const char *)s;

    if (s->size != (uint64_t)size || base[size - 1] != '\0' || !is_inside(s, s->program) ||
        !is_inside(s, s->cwd) || s->n_rlimits > KEEPER_RLIMITS) {
        return EPROTO;
    }
    job->program = base + s->program;
    job->cwd = base + s->cwd;
    job->argv = point(s, s->argv);
    job->script_argv = point(s, s->script_argv);
    job->envp = point(s, s->envp);
    job->has_terminal = s->has_terminal != 0;
    job->n_rlimits = s->n_rlimits;
    for (size_t i = 0; i < KEEPER_RLIMITS; i++) {
        job->rlimits[i] = s->rlimits[i];
    }
    return job->argv != NULL && job->script_argv != NULL && job->envp != NULL ? 0 : EPROTO;
}
