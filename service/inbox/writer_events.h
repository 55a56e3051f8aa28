/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WRITER_EVENTS_H
#define PB_WRITER_EVENTS_H
/* Which files of the inbox were written to and not closed since, as inotify tells: for files of
 * which no lease is given. It needs no rights over the writer; writers on other machines and
 * writes to mappings are not told. Thread: one at a time. */
#include <stdbool.h>
#include <stdint.h>

/* A file that nobody closes is not waited for any longer: truncate(2) changes a file without having
 * it open. */
#define PB_WRITER_EVENTS_PATIENCE_MS ((int64_t)3600 * 1000)

struct pb_writer_events;

/* directory: copied. NULL when there is no memory or no inotify. */
struct pb_writer_events *pb_writer_events_create(const char *directory);
void pb_writer_events_destroy(struct pb_writer_events *events); /* NULL is fine */
/* Whether the file of that name was written to and not closed since, as far as it is known. NULL
 * knows nothing. mono_ms: now. */
bool pb_writer_events_is_open(struct pb_writer_events *events, const char *name, int64_t mono_ms);
#endif
