/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLAIM_PLACE_H
#define PB_CLAIM_PLACE_H
/* Directory that files are claimed from. A sub-folder of an inbox may belong to a sender, who
 * could put a link in its place while a file is claimed; therefore it is opened without following
 * links and used by its descriptor. Thread: pool. */
#include "service/base/files.h"
#include "service/inbox/inbox.h"

struct pb_claim_place {
    int fd;                         /* descriptor of a sub-folder; -1 = the inbox itself */
    char path[PB_FILES_PATH_BYTES]; /* path for access to its entries */
    char real[PB_FILES_PATH_BYTES]; /* path for messages and for the job store */
};

/* Opens the directory that has the entry `name`, a path below the inbox. Returns 0, or -EAGAIN if
 * it is absent now. */
int pb_claim_place_open(struct pb_claim_place *place, const struct pb_inbox *inbox,
                        const char *name);
void pb_claim_place_close(struct pb_claim_place *place);
#endif
