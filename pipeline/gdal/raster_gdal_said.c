/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * GDAL's messages; see the header. */
#include "pipeline/gdal/raster_gdal_said.h"
#include "config/base/text_clean.h"

#include <string.h>

/* Returns true for a harmless warning while pixels are read: a last strip that was encoded at
 * full height. */
static bool is_harmless(const char *text)
{
    return strstr(text, "JPEG strip size exceeds expected dimensions") != NULL;
}

static void CPL_STDCALL hear(CPLErr severity, CPLErrorNum number, const char *text)
{
    struct pb_gdal_words *words = CPLGetErrorHandlerUserData();
    if (severity < words->least || (severity == CE_Warning && is_harmless(text)) || words->n++ > 0)
        return;
    words->number = number;
    size_t n = strlen(words->path);
    while (n > 0 && strncmp(text, words->path, n) == 0 && text[n] == ':')
        text += n + 1 + (text[n + 1] == ' ');
    (void)pb_text_clean(text, words->first, sizeof words->first);
}

void pb_gdal_listen(struct pb_gdal_words *words, const struct pb_raster *raster)
{
    *words =
        (struct pb_gdal_words){.path = raster != NULL ? raster->vsi_name : "", .least = CE_Failure};
    CPLErrorReset();
    CPLPushErrorHandlerEx(hear, words);
}

void pb_gdal_unlisten(void)
{
    CPLPopErrorHandler();
    CPLErrorReset();
}

bool pb_gdal_says(const struct pb_gdal_words *words, const char *part)
{
    return strstr(words->first, part) != NULL;
}

const char *pb_gdal_said(const struct pb_gdal_words *words)
{
    return words->first[0] ? words->first : "no reason given";
}
