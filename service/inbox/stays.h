/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAYS_H
#define PB_STAYS_H
/* Summary of the entries of one inbox that are not taken: those that still settle, those that the
 * service cannot take, and those that no pipeline fits. Plain memory. Thread: any, one at a time.
 */
#include "service/inbox/left.h"
#include "service/inbox/settle.h"

#define PB_STAYS_MAX 100 /* entries with a name */

struct pb_stay {
    char name[256];               /* end of its path below the inbox */
    enum pb_settle_reason reason; /* refused or foreign */
    enum pb_code code;
    char text[512];
};

struct pb_stays {
    size_t n_refused, n_foreign, n_settling; /* total counts */
    /* wall clock: time at which the last entry settles if no file changes; 0 = no entry settles */
    int64_t settled_ms;
    size_t n; /* entries in `at`; refused entries before foreign ones */
    struct pb_stay at[PB_STAYS_MAX];
};

/* Collects the summary from the entries that stay and the notes of the files of the last scan. */
void pb_stays_collect(struct pb_left *left, const struct pb_settle *settle, struct pb_stays *out);
#endif
