/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_VALUES_H
#define PB_INPUT_VALUES_H
/* Words of the section `input`, and the largest numbers of bands and files. Pure; any thread. */
#include <stdbool.h>
#include <stdint.h>

#define PB_BANDS_MAX          64
#define PB_FILES_MAX          16 /* that a pipeline reads: the scene's, and those of input.sources */
#define PB_SPARE_FILES_MAX    32 /* files of one scene to choose from (input.order) */
#define PB_METADATA_FILES_MAX 8  /* files of one scene or observation */
#define PB_METADATA_OPEN_MAX  64 /* of all observations of a scene */
#define PB_SIDECARS_MAX       48 /* sidecars of one scene that are read */

/* What says which pixels of a file are valid, as in input.valid; AUTO: as to GDAL. */
enum pb_valid { PB_VALID_AUTO, PB_VALID_MASK, PB_VALID_NODATA, PB_VALID_BOTH };

/* What complex pixels are read as, as in input.complex. */
enum pb_complex_as { PB_COMPLEX_AMPLITUDE, PB_COMPLEX_POWER };

/* How bands of a file reach the scene's grid; words of the schema, PB_BRING_NO + 1 + an enum
 * pb_resampling. */
enum pb_bring { PB_BRING_NO };

/* In which order `nth` counts files, as in input.order. */
enum pb_file_order {
    PB_FILES_BY_NAME,
    PB_FILES_BY_NAME_DOWN,
    PB_FILES_BY_DATE,
    PB_FILES_BY_DATE_DOWN,
    PB_FILES_BY_CLOUD, /* the least cloudy first, by what the metadata of each file say */
    PB_FILES_BY_LIST   /* as a file of the scene lists them (input.list) */
};

static inline bool pb_files_by_date(int32_t order)
{
    return order == PB_FILES_BY_DATE || order == PB_FILES_BY_DATE_DOWN;
}

/* Whether who decodes the scene counts its files, by what it reads. */
static inline bool pb_files_by_content(int32_t order)
{
    return order == PB_FILES_BY_CLOUD || order == PB_FILES_BY_LIST;
}

static inline bool pb_files_from_the_last(int32_t order)
{
    return order == PB_FILES_BY_NAME_DOWN || order == PB_FILES_BY_DATE_DOWN;
}
#endif
