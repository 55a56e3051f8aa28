/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SENTINEL1_LISTS_H
#define PB_SENTINEL1_LISTS_H
/* Lists of numbers in Sentinel-1's annotations, and memory for their values, owned by the
 * reader's facts (pb_metadata.sar). One thread. */
#include <stdbool.h>
#include <stddef.h>

struct pb_meta_node;
struct pb_meta_reader;

struct pb_sentinel1_list {
    double *number;
    size_t n;
};

/* Allocates zeroed memory; NULL after any failure, which is in the reader. */
void *pb_sentinel1_room(struct pb_meta_reader *r, size_t n, size_t size);
/* Reads the numbers of the text at `name`, at least one, within low .. high; ascend: strictly
 * ascending. Returns an empty list after an error, which is in the reader. */
struct pb_sentinel1_list pb_sentinel1_read_list(struct pb_meta_reader *r,
                                                const struct pb_meta_node *node, const char *name,
                                                double low, double high, bool ascend);
/* Sets the reader's error: out of memory. */
void pb_sentinel1_no_memory(struct pb_meta_reader *r);
#endif
