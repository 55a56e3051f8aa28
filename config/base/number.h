/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NUMBER_H
#define PB_NUMBER_H
/* Numbers as text: the fewest digits that read back the same, without an exponent where a person
 * would not write one. Finite numbers only. Always a point, whatever the locale. Any thread. */
#include <stddef.h>

#define PB_NUMBER_TEXT 40

/* Writes the NUL-terminated text and returns its length. */
size_t pb_number_text(double value, char out[PB_NUMBER_TEXT]);
size_t pb_number_text_float(float value, char out[PB_NUMBER_TEXT]); /* shortest for a float32 */
#endif
