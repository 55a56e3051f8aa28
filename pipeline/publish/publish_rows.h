/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_ROWS_H
#define PB_PUBLISH_ROWS_H
/* Rows of series and the extent of collection.json: the part of a publication in files that
 * scenes share. These files are written completely before the products are visible, so that
 * errors are detected in time, and renamed after: a publication that fails leaves them
 * unchanged. A record in the temporary directory survives a process that dies in between;
 * the process that fences the run or sweeps its directory, on any machine, adds the missing rows.
 * A late writer cannot make a wrong row: its files are in the directory of its lock, which another
 * writer removes first, so that the rename of the late writer fails (publish_lock.h). It then
 * writes again from the present files, and only while its own products are in place. Therefore the
 * files are not rebuilt from the rows of the job store. Thread: any; one thread per object. */
#include "config/base/err.h"
#include "config/output/output_path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_PUBLISH_ROWS_FILE ".rows" /* the record */

struct pb_publish_lock;

struct pb_publish_series {
    char table[256]; /* file of the products */
    char name[256];  /* name of the series in the directory of products */
};

struct pb_publish_rows {
    struct pb_publish_series *series; /* n_series; pb_publish_rows_fini frees */
    size_t n_series;
    char (*item)[256]; /* n_items: files of the products; freed by fini too */
    size_t n_items;
    /* Path of the published files, below the directory of products. */
    char directory[PB_OUTPUT_PATH_BYTES + 520];
    char scene[256];      /* scene of the rows */
    char collection[256]; /* id; "" = no collection */
    unsigned mode;        /* see struct pb_publish_options */
};

bool pb_publish_rows_are_none(const struct pb_publish_rows *rows);
/* Adds an item of the products. 0 or -ENOMEM. */
int pb_publish_rows_add_item(struct pb_publish_rows *rows, const char *file);
void pb_publish_rows_fini(struct pb_publish_rows *rows); /* a zeroed one is fine */

enum pb_publish_rows_collection {
    PB_ROWS_COLLECTION_FINE,
    PB_ROWS_COLLECTION_FOREIGN, /* another file has its name, or an item has another id */
    PB_ROWS_COLLECTION_FAILED   /* may succeed later */
};

/* Takes the lock of the directory of products (shown in messages) and writes the files, from the
 * products in the open directory `leaf`. Returns 0 and *out_lock: place and drop it. A problem
 * of the collection is not a failure: *out_state, and a text of 400 bytes for users. */
int pb_publish_rows_stage(const struct pb_publish_rows *rows, int products_fd, const char *shown,
                          int leaf, int64_t wait_ms, struct pb_err *err,
                          struct pb_publish_lock **out_lock,
                          enum pb_publish_rows_collection *out_state, char why[400]);

/* Writes the record into the open temporary directory. leaf: the products. *out_fd, the
 * caller's, has to be synced. Returns 0 or a negative errno. */
int pb_publish_rows_record(const struct pb_publish_rows *rows, int temp_fd, int leaf, int *out_fd);
/* Returns true if the open directory `leaf` is the published one of these rows. */
bool pb_publish_rows_are_of(const struct pb_publish_rows *rows, int products_fd, int leaf);
/* Completes a run that is over: if its products are in place, adds the rows of its record. Products
 * are known by their inode, and on machines that see other ones by job and epoch (0 = unknown).
 * Returns true if nothing remains to be done. */
bool pb_publish_rows_recover(int products_fd, int temp_fd, const char *job, uint64_t epoch);
#endif
