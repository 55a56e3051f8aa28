/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_META_TIME_H
#define PB_META_TIME_H
/* Times of acquisitions: in the forms of producers, of STAC, and of file names. Pure; any
 * thread. */
#include <stddef.h>

/* Converts an ISO 8601 time with day and time of day, with or without fraction and zone
 * (without: UTC), to RFC 3339 in UTC: "2020-10-31T14:31:47.808399Z". Returns 0 or -EINVAL: not
 * such a time, or too long. */
int pb_meta_time(const char *text, char *out, size_t bytes);
/* Julian day of a time made by pb_meta_time; NaN for another text. */
double pb_meta_julian_day(const char *when);
/* Seconds from one ISO 8601 time to another; the fraction has all digits of a double; NaN: one
 * of them is not a time. */
double pb_meta_seconds(const char *since, const char *when);

/* Finds a time in a name. pattern: text with %Y (4 digits), %m %d %H %M %S (2), %j (day of the
 * year, 3), %y (2: 1970 to 2069) and %%; * matches any text and ? one character. It matches
 * anywhere in the name. Writes the first and the last moment of the time: beginning and end for
 * a day without time of day. Returns 1; 0: the pattern does not match, or matches no valid time;
 * 2: it matches different times; -EINVAL: a pattern without a date, or with an unknown %. */
int pb_meta_name_time(const char *pattern, const char *name, char start[32], char end[32]);
#endif
