/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Finds the least number of significant digits that read back the same; 17 (9 for float32) always
 * do. If a decimal of at most 15 digits (6) reads back as the value, the value prints as this
 * decimal and zeros with 15 digits; therefore three attempts find it. Subnormal values have fewer
 * digits, and are tried digit by digit. The form follows from the exponent: 0.0001 .. 1e15 as plain
 * decimals, the rest as d.ddde+xx. */
#include "config/base/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_back(const char *text, double value, int as_float)
{
    return as_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* Count of significant digits of d.ddde+xx without zeros at the end. */
static int digits_of(const char *text)
{
    const char *end = strchr(text, 'e');
    const char *last = end != NULL ? end - 1 : text;
    while (last > text && *last == '0')
        last--;
    int digits = 0;
    for (; last >= text; last--)
        digits += *last >= '0' && *last <= '9';
    return digits > 1 ? digits : 1;
}

static size_t shortest(double value, int digits_max, int as_float, char out[PB_NUMBER_TEXT])
{
    const bool is_normal = fabs(value) >= (as_float ? (double)FLT_MIN : DBL_MIN);
    const int first = !is_normal ? 1 : as_float ? FLT_DIG : DBL_DIG;
    int digits = first;
    for (; digits < digits_max; digits++) {
        (void)snprintf(out, PB_NUMBER_TEXT, "%.*e", digits - 1, value);
        if (read_back(out, value, as_float))
            break;
    }
    if (digits == first)
        digits = digits_of(out);
    (void)snprintf(out, PB_NUMBER_TEXT, "%.*e", digits - 1, value);
    const char *mark = strchr(out, 'e');
    int exponent = mark ? atoi(mark + 1) : 0;
    int length = (int)strlen(out);
    if (exponent >= -5 && exponent <= 15) {
        int decimals = digits - 1 - exponent;
        length = snprintf(out, PB_NUMBER_TEXT, "%.*f", decimals > 0 ? decimals : 0, value);
    }
    char *comma = strchr(out, ',');
    if (comma)
        *comma = '.';
    return (size_t)length;
}

size_t pb_number_text(double value, char out[PB_NUMBER_TEXT])
{
    return shortest(value, 17, 0, out);
}

size_t pb_number_text_float(float value, char out[PB_NUMBER_TEXT])
{
    return shortest((double)value, 9, 1, out);
}
