/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DELIVERED_H
#define PB_DELIVERED_H
/* Files that a sender delivered for a job: members of its manifest, with their places at delivery,
 * independent of the present place of the input. Thread: any. */
#include "service/jobs/job.h"

/* Adds these n names in a directory (absolute path). 0, -EINVAL or -ENOMEM. */
int pb_delivered_add(struct pb_job *job, const char *directory, const char *const *name, size_t n);
/* Does the same for the files of a folder, which were delivered as single files, in the order of
 * their names. */
int pb_delivered_add_folder(struct pb_job *job, const char *directory, const char *folder);
#endif
