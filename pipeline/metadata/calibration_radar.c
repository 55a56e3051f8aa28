/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Backscatter: checks that the required tables exist, and match the image. */
#include "pipeline/metadata/calibration.h"
#include "pipeline/sar/sar_tables.h"

static int lacks(const struct pb_calibration_input *input, const struct pb_meta_band *band,
                 const char *what, struct pb_err *err)
{
    return pb_fail(err, PB_E_INPUT_METADATA_MISSING,
                   "calibrate: the metadata (input.metadata) have no %s of %s, which %.60s needs",
                   what, band->id, input->name);
}

int pb_calibration_radar(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                         const struct pb_meta_band *band, enum pb_quantity to,
                         struct pb_calibration_rule *out, struct pb_err *err)
{
    const struct pb_sar_channel *c = pb_sar_find(facts->sar, band->id);
    if (c == NULL || c->area[to - PB_QUANTITY_SIGMA0].n == 0)
        return lacks(input, band, "calibration (annotation/calibration/calibration-*.xml)", err);
    if (c->width == 0)
        return lacks(input, band, "annotation (annotation/s1*.xml)", err);
    if (input->noise && c->noise_is_off)
        return pb_fail(err, PB_E_INPUT_METADATA_CONFLICT,
                       "calibrate: the noise of %.60s is removed already according to its "
                       "annotation; write noise: false",
                       input->name);
    if (input->noise && c->noise.n == 0)
        return lacks(input, band,
                     "noise (annotation/calibration/noise-*.xml, or noise: false to leave it)",
                     err);
    if (c->width != input->width || c->height != input->height)
        return pb_fail(
            err, PB_E_INPUT_METADATA_CONFLICT,
            "calibrate: %.60s has %d x %d pixels, its annotation %d x %d: tables fit the "
            "whole image only",
            input->name, input->width, input->height, c->width, c->height);
    *out = (struct pb_calibration_rule){
        .gain = 1, .has_tables = true, .area = -1, .noise = input->noise ? 0 : -1};
    return 0;
}
