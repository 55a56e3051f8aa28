/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NOTES_H
#define PB_NOTES_H
/* Notes of a successful run for users, one sentence each: for its report and the items of its
 * products. Plain data; one thread at a time. */
#include <stddef.h>

#define PB_NOTES_MAX  24
#define PB_NOTE_BYTES 240

struct pb_notes {
    char text[PB_NOTES_MAX][PB_NOTE_BYTES];
    size_t n;
};

/* Adds a sentence unless it is in the list or the list has PB_NOTES_MAX. */
void pb_notes_add(struct pb_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#endif
