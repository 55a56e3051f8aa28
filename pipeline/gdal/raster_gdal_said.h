/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_SAID_H
#define PB_RASTER_GDAL_SAID_H
/* Collector of GDAL's messages. GDAL reports errors by messages, not only by return values: some
 * codecs return garbage with CE_None and an error message. Therefore every call that matters
 * runs with a collector installed for this thread, and one error message fails a read whatever
 * the call returned. Thread: any; each has its own collector. */
#include "pipeline/gdal/raster_gdal_inside.h"

struct pb_gdal_words {
    const char *path; /* GDAL begins many messages with it; ours name the file anyway */
    CPLErr least;     /* least class that is collected: CE_Failure, or CE_Warning */
    unsigned n;       /* count of collected messages */
    CPLErrorNum number;
    char first[240];
};

/* Collects this thread's messages in the caller's *words until pb_gdal_unlisten. raster: file of
 * the messages; NULL = no file. */
void pb_gdal_listen(struct pb_gdal_words *words, const struct pb_raster *raster);
void pb_gdal_unlisten(void);

/* Returns true if the first collected message contains part. */
bool pb_gdal_says(const struct pb_gdal_words *words, const char *part);
/* Returns the first collected message; borrowed from words. */
const char *pb_gdal_said(const struct pb_gdal_words *words);
#endif
