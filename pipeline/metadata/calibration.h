/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METADATA_CALIBRATION_H
#define PB_METADATA_CALIBRATION_H
/* Which band of the product a band of a file is, and the rule by which it becomes what is asked
 * for. Nothing is guessed: a band that cannot be told is an error. Pure; any thread. */
#include "kernels/calibration.h"
#include "pipeline/metadata/metadata.h"

#include <stdint.h>

/* A band as a pipeline reads it. */
struct pb_calibration_input {
    const char *name;      /* that the pipeline calls it */
    const char *file;      /* path or name of its file, as it was delivered */
    int32_t number;        /* in that file, from 1 */
    int32_t n_bands;       /* of that file */
    double irradiance;     /* of the sun in it at 1 AU, W/(m2 um), that the user gives; 0 = none */
    bool noise;            /* thermal noise is to be taken off; of radar */
    int32_t width, height; /* of the image; of radar */
    const char *as; /* what the user calls it among the product's bands; NULL = nothing is said */
};

/* How a step calibrates one entry of its bands. */
struct pb_calibrated {
    size_t step, entry;
    struct pb_calibration_rule rule;
    enum pb_quantity to;
    char band[64];     /* that the step makes */
    char of[16];       /* which band of the product it is: pb_meta_band.id */
    double irradiance; /* that the user gave; 0 = none */
};

/* The rule, and the band of facts->band that it is of. input.metadata_value: the metadata do not
 * say; input.metadata_conflict: they are of another product than the file; pipeline.band: which
 * band it is cannot be told. */
int pb_calibration_of(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                      enum pb_quantity to, struct pb_calibration_rule *out,
                      const struct pb_meta_band **out_band, struct pb_err *err);
/* The same of backscatter, for a band that is known: the tables are there, and of this image. The
 * numbers of the rule's inputs are the caller's to say. */
int pb_calibration_radar(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                         const struct pb_meta_band *band, enum pb_quantity to,
                         struct pb_calibration_rule *out, struct pb_err *err);
/* Where its numbers come from, in words: a rule of the metadata, or the user's irradiance. Returns
 * out, or a text of facts. */
const char *pb_calibrated_source(const struct pb_calibrated *c, const struct pb_metadata *facts,
                                 char *out, size_t bytes);
/* The band of facts->band that it is, without asking what it becomes; NULL: it cannot be told. */
const struct pb_meta_band *pb_calibration_band(const struct pb_metadata *facts,
                                               const struct pb_calibration_input *input);
/* "DN * 2e-05 - 0.1" or "1321.0789 / ln(774.8853 / (DN * 0.0003342 + 0.1) + 1)". Returns out. */
char *pb_calibration_text(const struct pb_calibration_rule *rule, char *out, size_t bytes);
#endif
