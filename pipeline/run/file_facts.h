/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_FACTS_H
#define PB_FILE_FACTS_H
/* Acquisition time, tile and cloud cover of one file among several: from its metadata
 * (input.metadata), and from the file itself where the metadata lack them. The only place that
 * knows where these facts are found (input.order: cloud, {meta.*} of input.by). Only for a process
 * that may decode foreign files. One thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_err;
struct pb_limits;
struct pb_raster_file;

struct pb_file_facts {
    char datetime[40];  /* time of the acquisition, RFC 3339 in UTC; "" if unknown */
    char tile[16];      /* tile of the producer's grid: "T33XWJ", "001062"; "" if unknown */
    double cloud_cover; /* percent; NaN if unknown */
};

/* Facts for which the raster is opened. Metadata are read as a whole in any case. */
struct pb_file_wants {
    bool date, cloud;
    int32_t page; /* number of the page that is read, as for pb_raster_open_page */
};

/* file: open, and registered for its path during the call (pb_raster_file_hand_open); NULL:
 * metadata only. Errors of pb_metadata_read_files and pb_raster_open_page; input.metadata_value:
 * the file's own date is not a valid date. */
int pb_file_facts_read(struct pb_raster_file *metadata, size_t n_metadata,
                       const struct pb_raster_file *file, const struct pb_limits *limits,
                       const struct pb_file_wants *wants, struct pb_file_facts *out,
                       struct pb_err *err);
#endif
