/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LIMITS_CONFIG_H
#define PB_LIMITS_CONFIG_H
/* The section `limits` of a configuration. Its owner is struct pb_config. Read-only; any thread. */
#include <stdint.h>

/* Checked before the first read of pixels. */
struct pb_limits {
    uint64_t max_pixels;      /* width x height, of files and of grids that steps make */
    uint64_t max_block_bytes; /* one decoded block, all bands it holds */
    uint64_t max_ratio;       /* decoded bytes for each stored one; 0 = any */
    uint64_t max_growth;      /* pixels of a grid that steps make, for each one of the scene */
    uint64_t output_bytes;    /* of the products of one run */
    int32_t max_side_px;
    int32_t max_bands;
    int32_t max_directories;
    int32_t archive_members, archive_depth; /* of an archive: members, folders below one another */
    uint64_t archive_bytes;                 /* of all its members together */
    uint64_t archive_ratio;                 /* of them for each byte that it has itself */
    int64_t job_time_ms;                    /* of one run of a job in the service; 0 = no limit */
};
#endif
