/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_META_TIME_H
#define PB_META_TIME_H
/* Times of acquisitions: as producers write them, as STAC wants them, and in names of files. Pure;
 * any thread. */
#include <stddef.h>

/* An ISO 8601 time with day and time of day, with or without fraction and zone (none = UTC), as
 * RFC 3339 in UTC: "2020-10-31T14:31:47.808399Z". 0 or -EINVAL: no such time, or no room. */
int pb_meta_time(const char *text, char *out, size_t bytes);
/* Of a time that pb_meta_time made; NaN of another text. */
double pb_meta_julian_day(const char *when);
/* Seconds from one ISO 8601 time to another, of which a fraction keeps all digits of a double; NaN:
 * one of them is no time. */
double pb_meta_seconds(const char *since, const char *when);

/* A time in a name. pattern: text with %Y (4 digits), %m %d %H %M %S (2), %j (day of the year, 3),
 * %y (2: 1970 to 2069) and %%, where * stands for any text and ? for one character. It may lie
 * anywhere in the name. Writes the first and the last moment that it says: a day without time of
 * day begins and ends. 1; 0: the pattern is not in the name, or what it finds is no time; 2: it
 * finds different times; -EINVAL: a pattern without a date, or with an unknown %. */
int pb_meta_name_time(const char *pattern, const char *name, char start[32], char end[32]);
#endif
