/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* number_length() finds where a decimal number ends; what follows is a unit out of a table. Values
 * pass through double, which is exact up to 2^53 and more than any key here may hold. */
#include "config/units.h"

#include "config/base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

struct unit {
    const char *name;
    double factor;
};

static const struct unit sizes[] = {
    {"", 1},      {"B", 1},      {"kB", 1e3},      {"MB", 1e6},         {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776},
};

static const struct unit durations[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000},
};

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Length of the decimal number at the start of text, 0 = there is none. */
static size_t number_length(const char *text)
{
    size_t at = text[0] == '-' || text[0] == '+';
    size_t whole = digits(text + at), part = 0;
    at += whole;
    if (text[at] == '.') {
        part = digits(text + at + 1);
        at += part + 1;
    }
    if (whole + part == 0)
        return 0;
    if (text[at] == 'e' || text[at] == 'E') {
        size_t sign = text[at + 1] == '-' || text[at + 1] == '+';
        size_t exponent = digits(text + at + 1 + sign);
        if (exponent)
            at += 1 + sign + exponent;
    }
    return at;
}

/* Reads a number and leaves *rest behind it. */
static int leading_number(const char *text, double *out_value, const char **out_rest)
{
    size_t length = number_length(text);
    if (length == 0)
        return -EINVAL;
    double value = strtod(text, NULL);
    if (!isfinite(value))
        return -ERANGE;
    *out_value = value;
    *out_rest = text + length;
    return 0;
}

int pb_units_number(const char *text, bool allow_nan, double *out_value)
{
    if (allow_nan && (strcasecmp(text, "nan") == 0 || strcasecmp(text, ".nan") == 0)) {
        *out_value = (double)NAN;
        return 0;
    }
    double value = 0;
    const char *rest = text;
    int rc = leading_number(text, &value, &rest);
    if (rc == 0 && *rest)
        rc = -EINVAL;
    if (rc == 0)
        *out_value = value;
    return rc;
}

int pb_units_int(const char *text, int64_t *out_value)
{
    double value = 0;
    int rc = pb_units_number(text, false, &value);
    if (rc)
        return rc;
    if (value != floor(value))
        return -EINVAL;
    if (fabs(value) > EXACT_MAX)
        return -ERANGE;
    *out_value = (int64_t)value;
    return 0;
}

static const struct unit *find_unit(const struct unit *units, size_t n, const char *text,
                                    size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(units[i].name) == length && strncasecmp(units[i].name, text, length) == 0)
            return &units[i];
    return NULL;
}

int pb_units_size(const char *text, uint64_t *out_bytes)
{
    double value = 0;
    const char *rest = text;
    int rc = leading_number(text, &value, &rest);
    if (rc)
        return rc;
    rest += *rest == ' ';
    const struct unit *unit = find_unit(sizes, sizeof sizes / sizeof *sizes, rest, strlen(rest));
    if (unit == NULL || signbit(value))
        return -EINVAL;
    double bytes = value * unit->factor;
    if (unit->factor == 1 && bytes != floor(bytes))
        return -EINVAL;
    if (bytes > EXACT_MAX)
        return -ERANGE;
    *out_bytes = (uint64_t)(bytes + 0.5);
    return 0;
}

int pb_units_duration(const char *text, int64_t *out_ms)
{
    double sum = 0;
    if (strcmp(text, "0") == 0) {
        *out_ms = 0;
        return 0;
    }
    do {
        double value = 0;
        int rc = leading_number(text, &value, &text);
        if (rc)
            return rc;
        text += *text == ' ';
        size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        const struct unit *unit =
            find_unit(durations, sizeof durations / sizeof *durations, text, length);
        if (unit == NULL || signbit(value))
            return -EINVAL;
        sum += value * unit->factor;
        text += length;
        text += *text == ' ' && text[1];
    } while (*text);
    if (sum > EXACT_MAX)
        return -ERANGE;
    *out_ms = (int64_t)(sum + 0.5);
    return 0;
}

const char *pb_units_size_text(uint64_t bytes, char out[PB_UNITS_TEXT])
{
    static const char *const names[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes && bytes % 1024 == 0 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(out, PB_UNITS_TEXT, "%" PRIu64 "%s", bytes, names[unit]);
    return out;
}

const char *pb_units_duration_text(int64_t ms, char out[PB_UNITS_TEXT])
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t i = 0;
    while (ms % units[i].ms != 0 || (ms == 0 && i < 3))
        i++;
    (void)snprintf(out, PB_UNITS_TEXT, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
    return out;
}

const char *pb_units_number_text(double value, char out[PB_UNITS_TEXT])
{
    if (isnan(value))
        (void)snprintf(out, PB_UNITS_TEXT, ".nan");
    else
        (void)pb_number_text(value, out);
    return out;
}
