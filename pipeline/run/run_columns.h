/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_COLUMNS_H
#define PB_RUN_COLUMNS_H
/* Tables of `calibrate: {columns: FILE}`: dark signal and gain of each detector column of a
 * pushbroom sensor, as CSV with the header `column,band,dark,gain`. One thread an object. */
#include <stddef.h>
#include <stdint.h>

struct pb_config;
struct pb_err;
struct pb_pipeline_config;
struct pb_run_columns;

/* Reads the files that the steps name, for a process that is about to lose the right to open files;
 * pb_run_columns_read uses their content. Thread: init. */
void pb_run_columns_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline);
/* Reads and checks the tables of all steps for a scene of `width` columns. *out_columns is NULL if
 * no step has one. Errors: pipeline.table with file and line, pipeline.grid for another number of
 * columns, memory. */
int pb_run_columns_read(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                        int32_t width, struct pb_err *err, struct pb_run_columns **out_columns);
void pb_run_columns_destroy(struct pb_run_columns *columns); /* NULL is allowed */
/* Values of entry `entry` of the bands of step `step`: `width` gains, or darks. Owned by the
 * object. */
const float *pb_run_columns_gain(const struct pb_run_columns *columns, size_t step, size_t entry);
const float *pb_run_columns_dark(const struct pb_run_columns *columns, size_t step, size_t entry);
#endif
