/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNING_FILE_H
#define PB_TUNING_FILE_H
/* File with measurements of GPUs, by model and driver. $PUSHBROOM_TUNING names it; else it is
 * pushbroom/tuning.json in $XDG_CACHE_HOME (or ~/.cache) for users, for whom root's file is read
 * too, and /var/cache/pushbroom/tuning.json for root. JSON:
 *
 *   {"pushbroom_tuning": 1, "gpus": [{"name", "driver", "measured", "rows": [...]}]}
 *
 * Thread: any, one at a time. */
#include "config/base/err.h"
#include "pipeline/device/tuning.h"

#include <stdbool.h>

#define PB_TUNING_PATH_BYTES 4096

/* Path of this user's measurements; "" = no home directory. */
void pb_tuning_path(char out[PB_TUNING_PATH_BYTES]);

/* Loads the rows of a GPU from this user's or root's file. Without a file, or without this GPU
 * in it, the result is empty; for an unusable file it is empty, with the reason in
 * out_tuning->why. */
void pb_tuning_load(const char *gpu, const char *driver, struct pb_tuning *out_tuning);
/* The same for one file. -ENOENT: no file, or nothing for this GPU and driver in it; another
 * negative errno with *err: it is damaged, of another version, or cannot be read. */
int pb_tuning_read(const char *path, const char *gpu, const char *driver, struct pb_err *err,
                   struct pb_tuning *out_tuning);

/* Makes the text of the file at `path` with the measurements of this GPU added or replaced;
 * those of other GPUs are preserved, unless the file is damaged or of another version. The
 * caller frees it. NULL with *err: the path is a file that pushbroom did not write; or out of
 * memory. */
char *pb_tuning_text(const char *path, const char *gpu, const char *driver,
                     const struct pb_tuning *tuning, struct pb_err *err);
#endif
