/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITER_EVENTS_H
#define PB_WRITER_EVENTS_H
/* What inotify reports of the files that lie directly in an inbox: which were renamed in, and were
 * not touched since; and which were written to and not closed since, for files without a lease. It
 * needs no rights over the writer; inotify does not report writers on other machines and writes to
 * mappings. Thread: one at a time. */
#include <stdbool.h>
#include <stdint.h>

/* A file without a close event is waited for no longer than this: truncate(2) changes a file
 * without opening it. */
#define PB_WRITER_EVENTS_PATIENCE_MS ((int64_t)3600 * 1000)

struct pb_writer_events;

/* directory: copied. NULL when there is no memory or no inotify. */
struct pb_writer_events *pb_writer_events_create(const char *directory);
void pb_writer_events_destroy(struct pb_writer_events *events); /* NULL is fine */
/* Whether the file of that name was written to and not closed since, as far as inotify reported;
 * false for NULL. mono_ms: now. */
bool pb_writer_events_is_open(struct pb_writer_events *events, const char *name, int64_t mono_ms);
/* Whether the file of that name was renamed in and neither written nor replaced since; true once
 * for each rename. After pb_writer_events_follow, which takes what was reported until then. */
bool pb_writer_events_took_in(struct pb_writer_events *events, const char *name);
void pb_writer_events_follow(struct pb_writer_events *events, int64_t mono_ms); /* NULL is fine */
#endif
