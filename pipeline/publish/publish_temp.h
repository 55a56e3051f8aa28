/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_TEMP_H
#define PB_PUBLISH_TEMP_H
/* The temporary directory of a run, products/.<scene>.<pid>-<n>.tmp, from its making to its removal
 * by the run or, after a crash, by a sweep. It may be removed when three conditions hold: its name,
 * the manifest of a scene directory in it, and a lock that no other process holds.
 *
 *   .pushbroom.json   written first
 *   <leaf>/           what is being written; after an exchange the older products
 *   .old/             older products set aside, on file systems that cannot exchange two
 * directories
 *
 * Older products are removed file by file as their manifest names them: what else lies there
 * stays. */
#include "config/base/err.h"

#include <stdbool.h>

#define PB_PUBLISH_OLD ".old"

/* Makes and locks one in the open directory (shown in messages). *out_fd: the locked directory. */
int pb_publish_temp_make(int products_fd, const char *shown, const char *scene, struct pb_err *err,
                         char out_name[256], int *out_fd);
/* Puts set aside products back where they are missing, then removes the directory. False: not all
 * of it is gone. The caller holds its lock. */
bool pb_publish_temp_discard(int products_fd, const char *name);
#endif
