/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_FACTS_H
#define PB_FILE_FACTS_H
/* When one file of several was taken, on which tile, and how cloudy it is: by its metadata
 * (input.metadata), and by itself as far as they do not say it. The one place that knows where
 * these are looked for (input.order: cloud, {meta.*} of input.by). Only a process that may decode
 * foreign files. One thread. */
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

struct pb_raster_file;

struct pb_file_facts {
    char datetime[40];  /* of the acquisition, RFC 3339 in UTC; "" = nothing says it */
    char tile[16];      /* of the producer's grid: "T33XWJ", "001062"; "" = nothing says it */
    double cloud_cover; /* percent; NaN = nothing says it */
};

/* For which of these the raster is opened. Metadata are read whole in any case. */
struct pb_file_wants {
    bool date, cloud;
};

/* file: open, and handed for its path then (pb_raster_file_hand_open); NULL: there are metadata
 * alone. Errors of pb_metadata_read_files and pb_raster_open; input.metadata_value: the file's own
 * date is none. */
int pb_file_facts_read(struct pb_raster_file *metadata, size_t n_metadata,
                       const struct pb_raster_file *file, const struct pb_limits *limits,
                       const struct pb_file_wants *wants, struct pb_file_facts *out,
                       struct pb_err *err);
#endif
