/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A table is a list of vectors, each with its line, and lists of numbers as text. Later code
 * relies on ascending lines and pixels, and on finite numbers: both are checked here. */
#include "pipeline/metadata/sentinel1_tables.h"

#include "pipeline/metadata/meta_reader.h"
#include "pipeline/metadata/sentinel1_lists.h"
#include "pipeline/sar/sar_tables.h"

#include <math.h>

#define LINE_MAX_ 1e8 /* more than any image has */

static struct pb_sar_vector vector_of(struct pb_meta_reader *r, const struct pb_meta_node *node,
                                      struct pb_sentinel1_list at, const char *name, double low)
{
    const struct pb_sentinel1_list value = pb_sentinel1_read_list(r, node, name, low, 1e30, false);
    if (r->rc == 0 && value.n != at.n)
        pb_meta_wrong(r, "%s has %zu numbers for %zu places", name, value.n, at.n);
    return (struct pb_sar_vector){.n = at.n, .pixel = at.number, .value = value.number};
}

/* Reads vectors of one list: a table for each of `names`. */
static void read_tables(struct pb_meta_reader *r, const struct pb_meta_node *vectors,
                        const char *const *names, size_t n_names, double low,
                        struct pb_sar_table *out)
{
    for (size_t k = 0; k < n_names; k++)
        out[k] = (struct pb_sar_table){
            .vector = pb_sentinel1_room(r, vectors->n + 1, sizeof *out[k].vector)};
    for (const struct pb_meta_node *v = vectors->first; v != NULL && r->rc == 0; v = v->next) {
        if (v->name[0] == '@')
            continue;
        const double line = pb_meta_need_number(r, v, "line", -LINE_MAX_, LINE_MAX_);
        const struct pb_sentinel1_list at =
            pb_sentinel1_read_list(r, v, "pixel", 0, LINE_MAX_, true);
        for (size_t k = 0; k < n_names && r->rc == 0; k++) {
            struct pb_sar_vector vector = vector_of(r, v, at, names[k], low);
            if (r->rc < 0 || out[k].vector == NULL)
                return;
            vector.line = (int32_t)line;
            if (out[k].n > 0 && out[k].vector[out[k].n - 1].line >= vector.line)
                pb_meta_wrong(r, "lines of %s do not ascend at %d", names[k], vector.line);
            out[k].vector[out[k].n++] = vector;
        }
    }
    if (r->rc == 0 && out[0].n == 0)
        pb_meta_wrong(r, "%s is empty", vectors->name);
}

struct pb_sar_channel *pb_sentinel1_channel(struct pb_meta_reader *r, const char *polarisation)
{
    if (r->rc < 0 || polarisation == NULL)
        return NULL;
    if (r->out->sar == NULL)
        r->out->sar = pb_sar_create();
    if (r->out->sar == NULL) {
        pb_sentinel1_no_memory(r);
        return NULL;
    }
    struct pb_sar_channel *channel = pb_sar_channel(r->out->sar, polarisation);
    if (channel == NULL)
        pb_meta_wrong(r, "the metadata have more than %d polarisations", PB_SAR_CHANNELS_MAX);
    return channel;
}

void pb_sentinel1_calibration(struct pb_meta_reader *r, const struct pb_meta_node *root,
                              struct pb_sar_channel *out)
{
    static const char *const names[PB_SAR_AREAS] = {"sigmaNought", "betaNought", "gamma"};
    const struct pb_meta_node *vectors = pb_meta_below(root, "calibrationVectorList", NULL);
    if (vectors == NULL)
        pb_meta_wrong(r, "it has no calibrationVectorList");
    else if (out->area[0].n > 0)
        pb_meta_conflict(r, "polarisation %s has a second calibration", out->id);
    else
        read_tables(r, vectors, names, PB_SAR_AREAS, 1e-9, out->area);
}

/* A block without bounds covers the whole image. */
static void read_block(struct pb_meta_reader *r, const struct pb_meta_node *v,
                       struct pb_sar_block *out)
{
    static const char *const names[4] = {"firstAzimuthLine", "lastAzimuthLine", "firstRangeSample",
                                         "lastRangeSample"};
    int32_t bound[4] = {0, (int32_t)LINE_MAX_, 0, (int32_t)LINE_MAX_};
    for (int i = 0; i < 4; i++) {
        const double number = pb_meta_number(r, v, names[i], 0, LINE_MAX_);
        bound[i] = isnan(number) ? bound[i] : (int32_t)number;
    }
    *out = (struct pb_sar_block){bound[0], bound[1], bound[2], bound[3], {0}};
    const struct pb_sentinel1_list lines =
        pb_sentinel1_read_list(r, v, "line", -LINE_MAX_, LINE_MAX_, true);
    out->along = vector_of(r, v, lines, "noiseAzimuthLut", 0);
}

void pb_sentinel1_noise(struct pb_meta_reader *r, const struct pb_meta_node *root,
                        struct pb_sar_channel *out)
{
    static const char *const names[] = {"noiseRangeLut", "noiseLut"};
    const struct pb_meta_node *range = pb_meta_below(root, "noiseRangeVectorList", NULL);
    const struct pb_meta_node *azimuth = pb_meta_below(root, "noiseAzimuthVectorList", NULL);
    const struct pb_meta_node *old = pb_meta_below(root, "noiseVectorList", NULL);
    if (range == NULL && old == NULL)
        pb_meta_wrong(r, "it has neither a noiseRangeVectorList nor a noiseVectorList");
    else if (out->noise.n > 0)
        pb_meta_conflict(r, "polarisation %s has a second noise annotation", out->id);
    else
        read_tables(r, range != NULL ? range : old, &names[range == NULL], 1, 0, &out->noise);
    if (r->rc < 0 || azimuth == NULL)
        return;
    out->block = pb_sentinel1_room(r, azimuth->n + 1, sizeof *out->block);
    for (const struct pb_meta_node *v = azimuth->first; v != NULL && r->rc == 0; v = v->next)
        if (v->name[0] != '@')
            read_block(r, v, &out->block[out->n_blocks++]);
}
