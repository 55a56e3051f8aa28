/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAIRING_H
#define PB_PAIRING_H
/* Pairs the files of a scan with their companions (companion.h): finds the files that wait for
 * companions, and the companions without inputs. With a marker an input is taken immediately; with
 * a checksum when both have settled. Files of an input.group have no companions; a file with other
 * files next to it waits in gathering.c. Pure. Thread: pool. */
#include "service/inbox/inbox.h"

/* All-zero: empty. */
struct pb_pairing {
    size_t n_alone;   /* settled companions without an input */
    char first[1024]; /* path of the first one, below the inbox */
};

/* Call after pb_settle_end and the gathering of loose files. */
void pb_pairing_sort(const struct pb_inbox *inbox, struct pb_settle *settle,
                     struct pb_pairing *out);
#endif
