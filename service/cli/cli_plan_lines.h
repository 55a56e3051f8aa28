/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_PLAN_LINES_H
#define PB_CLI_PLAN_LINES_H
/* Prints the lines "key  words" of a plan, and reads their values from its JSON. One thread. */
#include "config/base/json_reader.h"

#include <stdbool.h>
#include <stddef.h>

/* Prints a line. Words beyond the width of the terminal are continued in the next line, below the
 * words. */
void cli_line(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends to a text of n bytes, as far as there is room. */
void cli_add(char *text, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Appends "349 x 352 px of 28.5 m" for an object with width, height and pixel_metres. */
void cli_add_size(const struct pb_json_value *of, char *text, size_t n);
/* Appends "; value = stored * 0.0001" for an object with scale and offset, if they change any
 * value. */
void cli_add_scale(const struct pb_json_value *of, char *text, size_t n);

/* Members of an object: "" for an absent text and NaN for an absent number. */
const char *cli_json_text(const struct pb_json_value *object, const char *key);
double cli_json_number(const struct pb_json_value *object, const char *key);
bool cli_json_is_true(const struct pb_json_value *object, const char *key);
/* Number i of an array; NaN if absent. */
double cli_json_at(const struct pb_json_value *array, size_t i);

/* --- cli_plan_input.c --- */
/* Prints the acquisition time of the scene, its metadata, the file of each band, and the unused
 * files. */
void cli_plan_input(const struct pb_json_value *plan);
#endif
