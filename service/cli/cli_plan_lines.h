/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_PLAN_LINES_H
#define PB_CLI_PLAN_LINES_H
/* Lines "key  words" of a plan, and the values in its JSON that they are made of. One thread. */
#include "config/base/json_reader.h"

#include <stdbool.h>
#include <stddef.h>

/* What a terminal is too narrow for goes on in the next line, below the words. */
void cli_line(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds to a text of n bytes, as far as there is room. */
void cli_add(char *text, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "349 x 352 px of 28.5 m" of an object with width, height and pixel_metres. */
void cli_add_size(const struct pb_json_value *of, char *text, size_t n);
/* "; value = stored * 0.0001" of an object with scale and offset, if they change anything. */
void cli_add_scale(const struct pb_json_value *of, char *text, size_t n);

/* Members: "" of a text and NaN of a number that is not there. */
const char *cli_json_text(const struct pb_json_value *object, const char *key);
double cli_json_number(const struct pb_json_value *object, const char *key);
bool cli_json_is_true(const struct pb_json_value *object, const char *key);
/* The number i of an array; NaN: there is none. */
double cli_json_at(const struct pb_json_value *array, size_t i);

/* --- cli_plan_input.c --- */
/* When the scene was taken, its metadata, the file of each band, and what is left out. */
void cli_plan_input(const struct pb_json_value *plan);
#endif
