/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNING_FILE_H
#define PB_TUNING_FILE_H
/* The file that keeps what was measured of GPUs, by model and driver. $PUSHBROOM_TUNING names it;
 * else it is pushbroom/tuning.json in $XDG_CACHE_HOME (or ~/.cache) for users, who also read
 * root's, and /var/cache/pushbroom/tuning.json for root. JSON:
 *
 *   {"pushbroom_tuning": 1, "gpus": [{"name", "driver", "measured", "rows": [...]}]}
 *
 * Thread: any, one at a time. */
#include "config/base/err.h"
#include "pipeline/device/tuning.h"

#include <stdbool.h>

#define PB_TUNING_PATH_BYTES 4096

/* Where this user's measurements are written; "" = nowhere, as there is no home. */
void pb_tuning_path(char out[PB_TUNING_PATH_BYTES]);

/* What this user's or root's file has of a GPU. A file that is not there, and one without this GPU,
 * is nothing; one that cannot be used is nothing, and out_tuning->why says so. */
void pb_tuning_load(const char *gpu, const char *driver, struct pb_tuning *out_tuning);
/* The same of one file. -ENOENT: there is none, or nothing of this GPU and driver in it; another
 * negative errno with *err: it is damaged, of another version, or cannot be read. */
int pb_tuning_read(const char *path, const char *gpu, const char *driver, struct pb_err *err,
                   struct pb_tuning *out_tuning);

/* The text of the file at `path` with the measurements of this GPU put in or replaced; those of
 * other GPUs stay, unless the file is damaged or of another version. The caller frees it. NULL with
 * *err: something lies there that pushbroom did not write; or out of memory. */
char *pb_tuning_text(const char *path, const char *gpu, const char *driver,
                     const struct pb_tuning *tuning, struct pb_err *err);
#endif
