/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNING_H
#define PB_TUNING_H
/* Measurements of a GPU: rows from which transfer plans are made instead of the built-in table
 * (wic/device/transfer_plan.h). Plain data. Thread: any. */
#include "config/base/err.h"
#include "wic/device/transfer_plan.h"

#include <stddef.h>
#include <stdint.h>

enum { PB_TUNING_ROWS_MAX = 16, PB_TUNING_DATE_BYTES = 24, PB_TUNING_WHY_BYTES = 160 };

/* Fastest plan for full tiles of this input and these results. */
struct pb_tuning_row {
    uint64_t in_bytes, out_bytes;
    struct wic_transfer_row plan;
    uint64_t rate;   /* measured, bytes of input a second */
    uint64_t copies; /* rate of copies of these tiles alone, both directions; 0: not measured */
};

struct pb_tuning {
    uint32_t n_rows;                 /* 0: no measurements */
    char date[PB_TUNING_DATE_BYTES]; /* "2026-11-21T08:15Z"; "" = no measurements */
    char why[PB_TUNING_WHY_BYTES];   /* reason why a file of measurements was ignored; "" = not
                                        ignored */
    struct pb_tuning_row rows[PB_TUNING_ROWS_MAX];
};

/* Finds the row measured with the most similar tile: first by the ratio of input to results,
 * then by size. NULL: no measurements. */
const struct pb_tuning_row *pb_tuning_find(const struct pb_tuning *tuning, uint64_t in_bytes,
                                           uint64_t out_bytes);

/* File with measurements of GPUs, by model and driver. $PUSHBROOM_TUNING names it; else it is
 * pushbroom/tuning.json in $XDG_CACHE_HOME (or ~/.cache) for users, for whom root's file is read
 * too, and /var/cache/pushbroom/tuning.json for root. JSON:
 *
 *   {"pushbroom_tuning": 1, "gpus": [{"name", "driver", "measured", "rows": [...]}]}
 *
 * Thread: any, one at a time. */
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
