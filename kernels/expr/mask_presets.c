/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The list is read twice: once for its presets, once for their meanings, which lie in one array in
 * the order of the presets. */
#include "kernels/expr/mask_presets.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Quality bands as producers call them: Sentinel-2 L2A and L1C, Landsat Collection 2 and 1, HLS. */
static const char *const quality_bands[] = {
    "SCL",      "QA60",      "QA_PIXEL", "QA_RADSAT", "SR_QA_AEROSOL",
    "PIXEL_QA", "RADSAT_QA", "BQA",      "FMASK",     "SR_CLOUD_QA",
};

static const struct {
    const char *name;
    size_t n;
    bool is_bits;
    const char *about;
} presets[] = {
#define PB_MASK_PRESET(name, n, is_bits, about) {name, n, is_bits, about},
#define PB_MASK_MEANING(word, from, n, value, drops)
#include "kernels/expr/mask_presets.def"
};

static const struct pb_mask_meaning meanings[] = {
#define PB_MASK_PRESET(name, n, is_bits, about)
#define PB_MASK_MEANING(word, from, n, value, drops) {word, from, n, value, drops},
#include "kernels/expr/mask_presets.def"
};

size_t pb_mask_preset_count(void)
{
    return sizeof presets / sizeof presets[0];
}

struct pb_mask_preset pb_mask_preset_at(size_t i)
{
    size_t first = 0;

    for (size_t k = 0; k < i; k++)
        first += presets[k].n;
    return (struct pb_mask_preset){presets[i].name, presets[i].is_bits, presets[i].about,
                                   &meanings[first], presets[i].n};
}

bool pb_mask_preset_find(const char *name, struct pb_mask_preset *out)
{
    size_t i = 0;

    while (i < pb_mask_preset_count() && strcmp(presets[i].name, name) != 0)
        i++;
    if (i < pb_mask_preset_count())
        *out = pb_mask_preset_at(i);
    return i < pb_mask_preset_count();
}

bool pb_mask_is_quality_band(const char *name)
{
    bool found = false;

    for (size_t i = 0; i < sizeof quality_bands / sizeof quality_bands[0] && !found; i++)
        found = strcasecmp(quality_bands[i], name) == 0;
    return found;
}

/* The word is a part of the name between other characters than letters and digits. */
static bool has_word(const char *name, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = name; *at != '\0'; at++) {
        const bool begins = at == name || !isalnum((unsigned char)at[-1]);

        if (begins && strncasecmp(at, word, n) == 0 && !isalnum((unsigned char)at[n]))
            return true;
    }
    return false;
}

bool pb_mask_is_quality_file(const char *name)
{
    bool found = false;

    for (size_t i = 0; i < sizeof quality_bands / sizeof quality_bands[0] && !found; i++)
        found = has_word(name, quality_bands[i]);
    return found;
}

const struct pb_mask_meaning *pb_mask_meaning_find(const struct pb_mask_preset *preset,
                                                   const char *word)
{
    for (size_t i = 0; i < preset->n; i++)
        if (strcmp(preset->meaning[i].word, word) == 0)
            return &preset->meaning[i];
    return NULL;
}

void pb_mask_preset_usual(const struct pb_mask_preset *preset, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < preset->n && at < bytes; i++)
        if (preset->meaning[i].drops)
            at += (size_t)snprintf(out + at, bytes - at, "%s%s", at ? ", " : "drops ",
                                   preset->meaning[i].word);
}
