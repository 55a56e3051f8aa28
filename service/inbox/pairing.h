/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAIRING_H
#define PB_PAIRING_H
/* Which files of a scan wait for their companions (companion.h), and which companions lie there
 * alone. With a marker an input is taken at once; with a checksum when both have settled. Files
 * that an input.group holds together have none; a file with others beside it waits in gathering.c.
 * Pure. Thread: pool. */
#include "service/inbox/inbox.h"

/* Zero bytes: none. */
struct pb_pairing {
    size_t n_alone;   /* companions that settled and have no input */
    char first[1024]; /* the path of one of them, below the inbox */
};

/* After pb_settle_end and the gathering of loose files. */
void pb_pairing_sort(const struct pb_inbox *inbox, struct pb_settle *settle,
                     struct pb_pairing *out);
#endif
