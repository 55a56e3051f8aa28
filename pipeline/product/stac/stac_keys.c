/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/pipeline_config.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/product/stac/stac.h"

#include "config/product_check.h"
#include "pipeline/metadata/meta_time.h"

#include <string.h>

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_stac_config, "item"),
    {.name = "datetime",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, datetime),
     .sample = "file-time",
     .doc = "Time at which the scene was taken. metadata: from its metadata (input.metadata), "
            "which is also the default; name:PATTERN: in the scene's name, as in "
            "name:%Y%m%dT%H%M%S, in UTC, where * and ? stand for other text; tag: the TIFF tag "
            "DateTime, which has no zone and is taken as UTC; file-time: when the file was last "
            "changed; or a time, RFC 3339. Of a scene of many files tag and file-time are those of "
            "the file with the grid. A time that is not known fails the job before a pixel is "
            "read."},
    {.name = "platform",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, platform),
     .example = "sentinel-2a",
     .doc = "Satellite."},
    {.name = "constellation",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, constellation),
     .example = "sentinel-2",
     .doc = "Group of satellites."},
    {.name = "collection",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, collection),
     .example = "sentinel-2-indices",
     .doc = "STAC collection the item belongs to. collection.json in the directory of products is "
            "made if it is missing; its extent grows with the items, and it links a page for each "
            "month of acquisition (collection-2020-02.json), which links the items. catalog.json "
            "is the root of this tree. All else in collection.json stays."},
    {.name = "checksum",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_stac_config, checksum),
     .choices = "output|blake3|sha2-256|none",
     .def = "output",
     .doc =
         "Checksum of the files of the pipeline's products, in file:checksum of the item, in "
         ".pushbroom.json and in a job's report; output: that of output.checksum. It is computed "
         "while a file is written, or from the page cache when it is complete; sha2-256 takes "
         "several times as long as blake3; with none, files cannot be verified later. Inputs have "
         "that of output.checksum in any case."},
    {.name = "derived_from",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, derived_from),
     .example = "\"https://data.example.org/raw/{file}\"",
     .doc =
         "Address of the files that were read, for the item's links derived_from and via, which "
         "have their sizes and checksums. {file} is a file's name, with the folder's of a scene "
         "that is one. Without this key the address is the checksum: ni:///sha-256;... (RFC "
         "6920) with output.checksum: sha2-256. There is no such address for BLAKE3, the default: "
         "the item then lists the files in its property pushbroom:inputs instead."},
};

/* Returns the pattern without the quotes; NULL = out of memory. */
static const char *pattern_of(const char *text, const struct pb_product_check *check)
{
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
        text++;
        n -= 2;
    }
    char *pattern = pb_product_key_alloc(check, n + 1, 1);
    if (pattern != NULL)
        memcpy(pattern, text, n);
    return pattern;
}

/* Requires a zone, like RFC 3339. */
static bool is_time(const char *text)
{
    char when[40];
    size_t n = strlen(text);
    bool zoned = n > 6 && (text[n - 1] == 'Z' || text[n - 6] == '+' || text[n - 6] == '-');
    return zoned && pb_meta_time(text, when, sizeof when) == 0;
}

static void take_pattern(struct pb_stac_config *stac, const char *text,
                         const struct pb_product_check *check)
{
    char start[32], end[32];
    stac->time = PB_STAC_TIME_NAME;
    stac->pattern = pattern_of(text, check);
    if (stac->pattern != NULL && pb_meta_name_time(stac->pattern, "", start, end) < 0)
        pb_product_key_wrong(check, "datetime",
                             "stac.datetime: '%.80s' is no pattern of a date; it has %%Y, %%m and "
                             "%%d or %%Y and %%j, may have %%H %%M %%S, and * and ? for other text",
                             stac->pattern);
}

static void check_keys(struct pb_product_config *product, const struct pb_product_check *check)
{
    static const struct {
        const char *word;
        enum pb_stac_time time;
    } words[] = {{"metadata", PB_STAC_TIME_METADATA},
                 {"tag", PB_STAC_TIME_TAG},
                 {"file-time", PB_STAC_TIME_FILE}};
    struct pb_stac_config *stac = (struct pb_stac_config *)product;
    if (stac->derived_from != NULL && strstr(stac->derived_from, "{file}") == NULL)
        pb_product_key_wrong(check, "derived_from",
                             "stac.derived_from: '%.80s' has no {file}, so all files would have "
                             "one address",
                             stac->derived_from);
    if (stac->datetime == NULL || !pb_product_key_is_sound(check, "datetime"))
        return;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(stac->datetime, words[i].word) == 0) {
            stac->time = words[i].time;
            return;
        }
    stac->time = PB_STAC_TIME_GIVEN;
    if (strncmp(stac->datetime, "name:", 5) == 0)
        take_pattern(stac, stac->datetime + 5, check);
    else if (!is_time(stac->datetime))
        pb_product_key_wrong(check, "datetime",
                             "stac.datetime: '%.80s' is none of metadata, tag, file-time and "
                             "name:PATTERN, nor a time such as 2026-05-04T10:30:00Z",
                             stac->datetime);
}

static const char *never(const struct pb_product_config *product,
                         const struct pb_pipeline_config *pipeline)
{
    const struct pb_stac_config *stac = (const struct pb_stac_config *)product;
    if (pipeline->input.n_metadata > 0 || pipeline->input.stream != NULL ||
        (stac->time != PB_STAC_TIME_AUTO && stac->time != PB_STAC_TIME_METADATA))
        return NULL;
    return "the STAC item needs the time at which the scene was taken, and neither input.metadata "
           "nor stac.datetime (name:PATTERN, tag, file-time or a time) gives it";
}

const struct pb_product_kind pb_kind_stac = {
    .section = {"stac", "A STAC item that describes the other products.", keys,
                sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_stac_config),
    .describes_others = true,
    .check = check_keys,
    .never = never,
};
