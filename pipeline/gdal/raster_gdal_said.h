/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_SAID_H
#define PB_RASTER_GDAL_SAID_H
/* GDAL's messages. GDAL reports errors by messages, not only by return values: some codecs return
 * garbage with CE_None and an error message. So every call that matters runs with a collector
 * installed for this thread, and one error message fails a read whatever the call returned. Thread:
 * any; each collects its own. */
#include "pipeline/gdal/raster_gdal_inside.h"

struct pb_gdal_words {
    const char *path; /* GDAL begins many messages with it; ours name the file anyway */
    CPLErr least;     /* what counts: CE_Failure, or CE_Warning */
    unsigned n;       /* messages that count */
    CPLErrorNum number;
    char first[240];
};

/* Collects this thread's messages in the caller's *words until pb_gdal_unlisten. raster: whose
 * messages; NULL = of no file. */
void pb_gdal_listen(struct pb_gdal_words *words, const struct pb_raster *raster);
void pb_gdal_unlisten(void);

/* Whether the first message that counts contains part. */
bool pb_gdal_says(const struct pb_gdal_words *words, const char *part);
/* The first message that counts; borrowed from words. */
const char *pb_gdal_said(const struct pb_gdal_words *words);
#endif
