/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISHED_H
#define PB_PUBLISHED_H
/* Products of a successful job as the events product.published describe them: those of the job,
 * and of a STAC item its content and its path below the directory of products, so that a receiver
 * needs no access to the files. Thread: pool, because files are read. */
#include "service/jobs/job.h"

#define PB_PUBLISHED_ITEM_MAX (128 * 1024)  /* bytes of an item that its event holds */
#define PB_PUBLISHED_ALL_MAX  (1024 * 1024) /* bytes of all items of a job */

/* Sets job->published. root: the directory of products. An item that is too large, or cannot be
 * read, is left out. Without memory job->published stays NULL. */
void pb_published_describe(struct pb_job *job, const char *root);
#endif
