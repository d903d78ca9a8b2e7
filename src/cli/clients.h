#ifndef SY_CLI_CLIENTS_H
#define SY_CLI_CLIENTS_H

#include <stdbool.h>

#include "cli/edit.h"

/*
 * The MCP clients that `setup` knows: one row each in clients.c
 * (docs/clients.md tells what is written and why).
 */
/* JSONC: the client reads comments and trailing commas. JSONC_NAMED: and the file also by
 * the name "....jsonc", which is taken where that one is there and the other is not. */
enum client_format { CLIENT_JSON, CLIENT_JSONC, CLIENT_JSONC_NAMED, CLIENT_TOML, CLIENT_YAML };

struct client {
    const char *name;  /* "claude-code" */
    const char *title; /* "Claude Code" */
    enum client_format format;
    const char *dir_env;   /* variable that names the directory, or NULL */
    const char *env_file;  /* file below it */
    const char *home_file; /* file below the home directory otherwise */
    const char *section;
    const struct edit_field *fields; /* "@PROGRAM" in a value is our program's path */
    const char *note;                /* what else a person should know; ends with a newline */
};

/* The name of our entry in every client. */
#define CLIENT_ENTRY "shellyard"

/* All, ended by a row without name. */
extern const struct client clients[];
const struct client *client_find(const char *name);

/* The client's fields with the program's path filled in. */
#define CLIENT_FIELDS_MAX 12
struct client_fields {
    struct edit_field fields[CLIENT_FIELDS_MAX];
    struct buf values[CLIENT_FIELDS_MAX];
};

void client_fields_fini(struct client_fields *f);
enum sy_code client_fields_make(struct client_fields *ret, const struct client *c,
                                const char *program) SY_NODISCARD;

/* The user's home: HOME, or where that is no absolute path the one of passwd(5). SY_E_ARG
 * if there is none. */
enum sy_code client_home(struct buf *ret, char *const *environ_list,
                         struct sy_error *err) SY_NODISCARD;
/* Its configuration file; SY_E_ARG if it lies in the home directory and `home` is "". */
enum sy_code client_path(struct buf *ret, const struct client *c, char *const *environ_list,
                         const char *home, struct sy_error *err) SY_NODISCARD;
/* Our entry alone, as a person would paste it. */
enum sy_code client_snippet(struct buf *out, const struct client *c,
                            const struct edit_field *fields) SY_NODISCARD;
/* The edit of its format. */
enum sy_code client_edit(struct buf *out, const struct client *c, const struct buf *text,
                         const struct edit_field *fields, enum edit_outcome *ret_outcome,
                         struct sy_error *err) SY_NODISCARD;

/* For doctor: does the file `path` exist, and is our entry in it as we want it? */
enum client_state {
    CLIENT_NO_FILE,
    CLIENT_NOT_SET,
    CLIENT_SET,
    CLIENT_DIFFERS,   /* an entry of another program path or older form */
    CLIENT_UNREADABLE /* err tells */
};
enum client_state client_look(const struct client *c, const char *program, const char *path,
                              struct sy_error *err);

#endif
