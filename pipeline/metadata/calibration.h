/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METADATA_CALIBRATION_H
#define PB_METADATA_CALIBRATION_H
/* Identifies the product's band for a band of a file, and the rule that converts it to the
 * requested quantity. Nothing is guessed: a band that cannot be identified is an error. Pure;
 * any thread. */
#include "kernels/calibration.h"
#include "pipeline/metadata/metadata.h"

#include <stdint.h>

/* Band that a pipeline reads. */
struct pb_calibration_input {
    const char *name;  /* name in the pipeline */
    const char *file;  /* path or name of its file, as delivered */
    int32_t number;    /* in that file, from 1 */
    int32_t n_bands;   /* count of bands of that file */
    double irradiance; /* irradiance of the sun in it at 1 AU, W/(m2 um), given by the user; 0 = not
                          given */
    bool noise;        /* thermal noise is subtracted; for radar */
    int32_t width, height; /* size of the image; for radar */
    const char *as;        /* user's name for it among the product's bands; NULL = not given */
};

/* Calibration of one entry of a step's bands. */
struct pb_calibrated {
    size_t step, entry;
    struct pb_calibration_rule rule;
    enum pb_quantity to;
    char band[64];     /* name of the band that the step makes */
    char of[64];       /* band of the product (pb_meta_band.id), or of the table */
    bool has_columns;  /* a table for columns has its numbers; the rule has only its inputs */
    double irradiance; /* given by the user; 0 = not given */
};

/* Finds the rule, and its band of facts->band. input.metadata_value: the metadata lack a value;
 * input.metadata_conflict: they belong to another product than the file; pipeline.band: the band
 * cannot be identified. */
int pb_calibration_of(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                      enum pb_quantity to, struct pb_calibration_rule *out,
                      const struct pb_meta_band **out_band, struct pb_err *err);
/* The same for backscatter, for an identified band: checks that the tables exist and match this
 * image. The caller sets the numbers of the rule's inputs. */
int pb_calibration_radar(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                         const struct pb_meta_band *band, enum pb_quantity to,
                         struct pb_calibration_rule *out, struct pb_err *err);
/* Word of what the band becomes: "toa", ..., or "columns". Static. */
const char *pb_calibrated_quantity(const struct pb_calibrated *c);
/* Describes the source of its numbers: a rule of the metadata, the user's irradiance, or the table
 * for columns. Returns
 * out, or a text of facts. */
const char *pb_calibrated_source(const struct pb_calibrated *c, const struct pb_metadata *facts,
                                 char *out, size_t bytes);
/* Finds the band of facts->band, whatever the requested quantity; NULL: it cannot be identified. */
const struct pb_meta_band *pb_calibration_band(const struct pb_metadata *facts,
                                               const struct pb_calibration_input *input);
/* Writes "DN * 2e-05 - 0.1" or "1321.0789 / ln(774.8853 / (DN * 0.0003342 + 0.1) + 1)". Returns
 * out. */
char *pb_calibration_text(const struct pb_calibrated *c, char *out, size_t bytes);
#endif
