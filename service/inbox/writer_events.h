/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITER_EVENTS_H
#define PB_WRITER_EVENTS_H
/* Inotify events of the files directly in an inbox: finds files that were renamed in and not
 * touched since, and files that were written to and not closed since, for files without a lease.
 * It needs no rights over the writer; inotify does not report writers on other machines or writes
 * to mappings. Thread: one at a time. */
#include <stdbool.h>
#include <stdint.h>

/* Maximum wait for the close event of a file: truncate(2) changes a file without opening it. */
#define PB_WRITER_EVENTS_PATIENCE_MS ((int64_t)3600 * 1000)

struct pb_writer_events;

/* directory: copied. NULL if out of memory or without inotify. */
struct pb_writer_events *pb_writer_events_create(const char *directory);
void pb_writer_events_destroy(struct pb_writer_events *events); /* NULL is allowed */
/* Returns true if the file of that name was written to and not closed since, as far as inotify
 * reported; false for NULL. mono_ms: now. */
bool pb_writer_events_is_open(struct pb_writer_events *events, const char *name, int64_t mono_ms);
/* Returns true if the file of that name was renamed in and neither written nor replaced since;
 * true once for each rename. Call it after pb_writer_events_follow, which reads the events until
 * then. */
bool pb_writer_events_took_in(struct pb_writer_events *events, const char *name);
/* NULL is allowed */
void pb_writer_events_follow(struct pb_writer_events *events, int64_t mono_ms);
#endif
