/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_LOCK_H
#define PB_PUBLISH_LOCK_H
/* Lock of a directory of products for files that scenes share: series and collection.json. It
 * works between machines on any file system with atomic renames, even if that file system does
 * not share the locks of flock and fcntl.
 *
 * The lock is the directory .pushbroom.lock. A process makes its own directory under another
 * name, with a file in it that is named after the process (holder.h), and renames it: a rename
 * onto a directory that is not empty fails. The new content of a file is written inside the
 * directory, and renamed out of it. Breaking a lock removes these files and then the directory
 * itself; therefore the rename of its former holder fails: the file system decides, however long
 * that process was stopped. The former holder then restarts with the content that others have
 * written.
 *
 * A lock is broken at once if its holder is a dead process of this machine or its run is fenced
 * (publish_temp.h), else if it did not change for PB_PUBLISH_LOCK_STALE_MS. Thread: any; one thread
 * per object. */
#include <stdint.h>

#define PB_PUBLISH_LOCK_DIRECTORY ".pushbroom.lock"
#define PB_PUBLISH_LOCK_STALE_MS  60000
#define PB_PUBLISH_LOCK_WAIT_MS   150000 /* for publications: longer than a lock is stale */

struct pb_holder;
struct pb_publish_lock;

/* Takes the lock. Returns 0; -ETIMEDOUT: others had it all the time; -EEXIST: a file that is not
 * a lock has the name; or another negative errno. */
int pb_publish_lock_take(int products_fd, int64_t wait_ms, struct pb_publish_lock **out);
/* Opens a new file that `place` renames to that name in the directory of products, with those
 * permissions without the umask's bits. The caller writes, syncs and closes it. -ESTALE: the
 * lock was broken. */
int pb_publish_lock_file(struct pb_publish_lock *lock, const char *name, unsigned mode,
                         int *out_fd);
/* Renames all files to their names, replacing older ones, and syncs. -ESTALE: the lock was
 * broken; files not yet renamed have their older content. */
int pb_publish_lock_place(struct pb_publish_lock *lock);
void pb_publish_lock_drop(struct pb_publish_lock *lock); /* NULL is fine */
/* Breaks the lock if that process has it, whose run must not publish any more. */
void pb_publish_lock_break(int products_fd, const struct pb_holder *process);
/* Removes the entry of that name if it is a lock of a dead process of this machine. */
void pb_publish_lock_sweep(int products_fd, const char *name);
#endif
