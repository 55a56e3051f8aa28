/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DIR_LOCK_H
#define PB_DIR_LOCK_H
/* Allows one service per directory: two services on one state, work or quarantine directory would
 * run each other's jobs. The lock is on a file in it that only the service's user can open, so
 * that no other user can prevent a start by holding the lock. Products and archive may be shared:
 * no file there is ever overwritten. The inbox may be shared as well: each file is taken by one of
 * the services. Thread: loop. */
#include "config/base/err.h"

#include <stdbool.h>

#define PB_DIR_LOCK_FILE       ".pushbroomd.lock"
#define PB_DIR_LOCK_STATE_FILE "lock"
#define PB_DIRS_PATIENCE_MS    1000 /* see pb_clock_retry */

/* Takes the lock, held until *out_fd is closed. service.state: another service holds it; the
 * message names that service. On a disk that accepts no new file the directory itself is locked
 * instead. */
int pb_dir_lock(const char *directory, const char *file, struct pb_err *err, int *out_fd);
/* Returns false if another process holds a lock on the directory itself. Otherwise the lock is
 * held until *out_fd is closed (-1: the directory could not be opened). For directories that
 * others can open: only good for a warning. */
bool pb_dir_lock_try(const char *directory, int *out_fd);
#endif
