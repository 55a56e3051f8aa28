/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITERS_H
#define PB_WRITERS_H
/* Detects whether a process has a file open for writing. The kernel grants a read lease (fcntl(2))
 * only if no process has, shared writable mappings included; while the lease is held, a process
 * that opens the file for writing waits until it is released. A lease needs a file of the
 * service's own user or CAP_LEASE, and a filesystem that supports leases (some network filesystems
 * do not). Where no lease is granted, /proc and inotify report the writers that are
 * visible. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

/* Takes the lease through fd, which must be open for reading only; closing fd releases it. Returns
 * 0: no writer; -EBUSY: a process has the file open for writing. Without a lease /proc is searched;
 * if no writer is found there, but there may be one: -EPERM for the file of another user without
 * CAP_LEASE, or -ENOTSUP for a filesystem without leases. /proc covers the processes of this user,
 * with CAP_SYS_PTRACE those of all users, on this machine; mappings of closed files are not found.
 */
int pb_writers_look(int fd);
/* Call after pb_writers_look returned 0: returns true if no process has tried to open the file for
 * writing since. */
bool pb_writers_still_none(int fd);
/* Finds the result of pb_writers_look for files of other users in the directory: 0, -EPERM or
 * -ENOTSUP; 0 also if it cannot be tried there. Makes an unnamed file for a moment. */
int pb_writers_probe(const char *directory);
/* One line about a result of pb_writers_probe or pb_writers_look. Static. */
const char *pb_writers_word(int rc);

/* Inotify events of the files directly in an inbox: they find files that were renamed in and not
 * touched since, and files that were written to and not closed since, for files without a lease.
 * They need no rights over the writer; inotify does not report writers on other machines or writes
 * to mappings. Thread of the functions below: one at a time. */

/* Maximum wait for the close event of a file: truncate(2) changes a file without opening it. */
#define PB_WRITERS_EVENTS_PATIENCE_MS ((int64_t)3600 * 1000)

struct pb_writers_events;

/* directory: copied. NULL if out of memory or without inotify. */
struct pb_writers_events *pb_writers_events_create(const char *directory);
void pb_writers_events_destroy(struct pb_writers_events *events); /* NULL is allowed */
/* Returns true if the file of that name was written to and not closed since, as far as inotify
 * reported; false for NULL. mono_ms: now. */
bool pb_writers_events_is_open(struct pb_writers_events *events, const char *name, int64_t mono_ms);
/* Returns true if the file of that name was renamed in and neither written nor replaced since;
 * true once for each rename. Call it after pb_writers_events_follow, which reads the events until
 * then. */
bool pb_writers_events_took_in(struct pb_writers_events *events, const char *name);
/* NULL is allowed */
void pb_writers_events_follow(struct pb_writers_events *events, int64_t mono_ms);
#endif
