/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the metadata of a scene: MTL, IMD, XML or JSON of any family. They are refused with
 * a code of their own and clean words, or every fact is consistent. */
#include "fuzz_check.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/metadata/metadata.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_code(const struct pb_err *err)
{
    require(err->code == PB_E_INPUT_METADATA_INVALID || err->code == PB_E_INPUT_METADATA_UNKNOWN ||
                err->code == PB_E_INPUT_METADATA_VALUE || err->code == PB_E_INPUT_METADATA_CONFLICT,
            "another code");
    check_err(err);
}

static void check_band(const struct pb_meta_band *band)
{
    require(band->id[0] != '\0', "a band without a name");
    require(memchr(band->file, '\0', sizeof band->file) != NULL, "a file's name without an end");
    for (int to = 0; to < PB_QUANTITIES; to++)
        require(!band->to[to].known || (band->to[to].gain > 0 && isfinite(band->to[to].gain) &&
                                        isfinite(band->to[to].offset)),
                "a scale that is none");
    require(isnan(band->k1) || band->k1 > 0, "K1");
}

static void check_facts(const struct pb_metadata *facts)
{
    require(facts->family != NULL, "no family");
    require(facts->n_bands <= PB_METADATA_BANDS_MAX, "bands");
    require(facts->datetime[0] == '\0' || !isnan(pb_meta_julian_day(facts->datetime)), "the time");
    require(!(fabs(facts->sun_elevation) > 90), "the sun's elevation");
    require(!(facts->gsd <= 0), "the size of pixels");
    for (size_t i = 0; i < facts->n_bands; i++)
        check_band(&facts->band[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct pb_metadata facts;
    struct pb_err err = {0};
    /* A copy of the exact size, so that a read past its end is found. */
    char *text = malloc(bytes + (bytes == 0));
    require(text != NULL, "no memory");
    memcpy(text, data, bytes);
    const struct pb_metadata_text one = {"a", text, bytes};
    if (pb_metadata_parse(&one, 1, &facts, &err) == 0)
        check_facts(&facts);
    else
        check_code(&err);
    pb_metadata_fini(&facts);
    free(text);
    return 0;
}
