/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISHED_H
#define PB_PUBLISHED_H
/* Products of a successful job as the events product.published describe them: the products of the
 * job, and for a STAC item its content and its path below the directory of products, so that a
 * receiver needs no access to the files. Thread: pool, because files are read. */
#include "service/jobs/job.h"

#define PB_PUBLISHED_ITEM_MAX (128 * 1024)  /* maximum size of an item in its event */
#define PB_PUBLISHED_ALL_MAX  (1024 * 1024) /* maximum size of all items of a job */

/* Sets job->published. root: the directory of products. files: directory with the same files by
 * their names, if root is on another node; NULL: they are read at their places. An item that is too
 * large, or cannot be read, is left out. If out of memory, job->published stays NULL. */
void pb_published_describe(struct pb_job *job, const char *root, const char *files);
#endif
