/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ADOPT_H
#define PB_ADOPT_H
/* Sweeps work/ for inputs that a dead service left, or that could not be moved then. */
#include "service/base/troubles.h"
#include "service/inbox/intake.h"

struct pb_adopted {
    int adopted;         /* files that became jobs */
    int left;            /* entries that stay */
    struct pb_err first; /* reason of the first entry that stays */
};
/* Makes jobs again of the files in work/ that belong to no job, unless a process still writes
 * them, and archives or quarantines inputs of finished jobs. At the start (at_start: no job runs
 * yet) the stored paths of the other jobs are corrected as well. An entry that cannot be
 * handled now stays, is a trouble ("work", for pb_adopt_report) and is handled by a later call;
 * files that a running job may read (set_parts.h) stay without a trouble. Thread: pool, one at a
 * time. */
void pb_adopt_work(struct pb_intake *intake, bool at_start, struct pb_adopted *out);
/* Makes jobs of the files that another node claimed in its work/, and died before it stored their
 * jobs; those of scenes that it gathered are moved back to their inbox. Only files of inboxes that
 * this node watches now, and that its pipelines match; other entries stay for that node. inbox:
 * number of the inbox that files without an origin are from; n_inboxes: not known. */
void pb_adopt_claims(struct pb_intake *intake, const char *work, size_t inbox,
                     struct pb_adopted *out);
/* Archives or quarantines the inputs in work/ of jobs that other nodes of the store ended. */
void pb_adopt_finished(struct pb_intake *intake, struct pb_adopted *out);
/* Raises or clears the trouble. Thread: loop. */
void pb_adopt_report(const struct pb_adopted *adopted, struct pb_troubles *troubles);
/* Returns true if an entry stays in work/ that another pb_adopt_work may handle. Thread: loop. */
bool pb_adopt_has_left(const struct pb_intake *intake, const struct pb_troubles *troubles);
#endif
