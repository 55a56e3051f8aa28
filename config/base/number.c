/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Tries one significant digit more until the text reads back the same; 17 (9 for float32) always
 * do. The form follows from the exponent: 0.0001 .. 1e15 as plain decimals, the rest as d.ddde+xx.
 */
#include "config/base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_back(const char *text, double value, int as_float)
{
    return as_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

static size_t shortest(double value, int digits_max, int as_float, char out[PB_NUMBER_TEXT])
{
    int digits = 1;
    for (; digits < digits_max; digits++) {
        (void)snprintf(out, PB_NUMBER_TEXT, "%.*e", digits - 1, value);
        if (read_back(out, value, as_float))
            break;
    }
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
