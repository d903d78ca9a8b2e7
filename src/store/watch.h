#ifndef SY_STORE_WATCH_H
#define SY_STORE_WATCH_H

#include "base/err.h"
#include "store/store.h"

/*
 * Tells that some process may have changed the store. After each commit the writer
 * touches a file beside the database, which it holds open: if it is killed between the
 * two, the kernel's close tells in its stead. So no change is missed, and some wakings
 * are for nothing. Open the watch, then read, then wait.
 */
struct store_watch;

/* At most some 128 for one user (fs.inotify.max_user_instances). */
enum sy_code store_watch_open(struct store_watch **ret, const struct store *st,
                              struct sy_error *err) SY_NODISCARD;
/* Accepts NULL. */
void store_watch_close(struct store_watch *w);

/* For poll(2): readable when something may have changed; until store_watch_drain. */
int store_watch_fd(const struct store_watch *w);
/* Takes the waking back: before the store is read again. SY_E_SYS when the file was
 * moved or removed: open store and watch anew. */
enum sy_code store_watch_drain(struct store_watch *w, struct sy_error *err) SY_NODISCARD;

#endif
