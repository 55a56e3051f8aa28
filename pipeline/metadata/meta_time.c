/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/meta_time.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Reads n digits at *text and advances it; -1 = missing. */
static int digits(const char **text, int n)
{
    int value = 0;
    for (int i = 0; i < n; i++, ++*text) {
        if (!isdigit((unsigned char)**text))
            return -1;
        value = value * 10 + (**text - '0');
    }
    return value;
}

static bool skip(const char **text, char c)
{
    return **text == c && ++*text;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool is_time(const struct tm *t)
{
    return t->tm_year >= 1900 && t->tm_year <= 9999 && t->tm_mon >= 1 && t->tm_mon <= 12 &&
           t->tm_mday >= 1 && t->tm_mday <= days_of(t->tm_year, t->tm_mon) && t->tm_hour >= 0 &&
           t->tm_hour < 24 && t->tm_min >= 0 && t->tm_min < 60 && t->tm_sec >= 0 && t->tm_sec <= 60;
}

/* Reads the minutes east of UTC; returns false without a zone. */
static bool zone(const char *text, int *out_minutes)
{
    *out_minutes = 0;
    if (text[0] == '\0' || strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
        return true;
    int sign = text[0] == '-' ? -1 : 1;
    if (text[0] != '+' && text[0] != '-')
        return false;
    text++;
    int hours = digits(&text, 2);
    (void)skip(&text, ':');
    int minutes = digits(&text, 2);
    *out_minutes = sign * (hours * 60 + minutes);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60 && *text == '\0';
}

static bool read_fields(const char **text, struct tm *t)
{
    t->tm_year = digits(text, 4);
    bool good = t->tm_year >= 0 && skip(text, '-');
    t->tm_mon = good ? digits(text, 2) : -1;
    good = good && t->tm_mon >= 0 && skip(text, '-');
    t->tm_mday = good ? digits(text, 2) : -1;
    good = good && t->tm_mday >= 0 && (skip(text, 'T') || skip(text, ' '));
    t->tm_hour = good ? digits(text, 2) : -1;
    good = good && t->tm_hour >= 0 && skip(text, ':');
    t->tm_min = good ? digits(text, 2) : -1;
    good = good && t->tm_min >= 0 && skip(text, ':');
    t->tm_sec = good ? digits(text, 2) : -1;
    return good && is_time(t);
}

/* Converts calendar fields to UTC by minutes. */
static void shift(struct tm *t, int minutes)
{
    struct tm zero = *t;
    zero.tm_year -= 1900;
    zero.tm_mon -= 1;
    time_t at = timegm(&zero) - (time_t)minutes * 60;
    if (minutes != 0 && gmtime_r(&at, t) != NULL) {
        t->tm_year += 1900;
        t->tm_mon += 1;
    }
}

int pb_meta_time(const char *text, char *out, size_t bytes)
{
    struct tm t = {0};
    char fraction[16] = "";
    int minutes;
    if (!read_fields(&text, &t))
        return -EINVAL;
    if (*text == '.') {
        size_t n = 1 + strspn(text + 1, "0123456789");
        size_t keep = n < 8 ? n : 7; /* microseconds */
        while (keep > 1 && text[keep - 1] == '0')
            keep--;
        (void)snprintf(fraction, sizeof fraction, "%.*s", keep > 1 ? (int)keep : 0, text);
        text += n;
    }
    if (!zone(text, &minutes))
        return -EINVAL;
    shift(&t, minutes);
    int n = snprintf(out, bytes, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", t.tm_year, t.tm_mon, t.tm_mday,
                     t.tm_hour, t.tm_min, t.tm_sec, fraction);
    return n > 0 && (size_t)n < bytes ? 0 : -EINVAL;
}

double pb_meta_julian_day(const char *when)
{
    struct tm t = {0};
    if (!read_fields(&when, &t))
        return NAN;
    double seconds = *when == '.' ? strtod(when, NULL) : 0;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    return ((double)timegm(&t) + seconds) / 86400.0 + 2440587.5;
}

/* Splits an ISO 8601 time into whole seconds since 1970 and the rest. */
static bool split_time(const char *text, time_t *out_whole, double *out_rest)
{
    struct tm t = {0};
    int minutes;
    if (!read_fields(&text, &t))
        return false;
    *out_rest = 0;
    if (*text == '.') {
        const size_t n = 1 + strspn(text + 1, "0123456789");
        *out_rest = n > 1 ? strtod(text, NULL) : 0;
        text += n;
    }
    if (!zone(text, &minutes))
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    *out_whole = timegm(&t) - (time_t)minutes * 60;
    return true;
}

double pb_meta_seconds(const char *since, const char *when)
{
    time_t from, to;
    double from_rest, to_rest;
    if (!split_time(since, &from, &from_rest) || !split_time(when, &to, &to_rest))
        return NAN;
    return (double)(to - from) + (to_rest - from_rest);
}

/* --- in names --------------------------------------------------------------------------------- */

struct found {
    struct tm t;
    int day_of_year;
    bool has_time;
};

/* Reads one field of a pattern. */
static bool take_field(char field, const char **name, struct found *f)
{
    int n = field == 'Y' ? 4 : field == 'j' ? 3 : 2, value = digits(name, n);
    f->has_time = f->has_time || field == 'H';
    switch (field) {
    case 'Y':
        f->t.tm_year = value;
        break;
    case 'y':
        f->t.tm_year = value < 70 ? 2000 + value : 1900 + value;
        break;
    case 'm':
        f->t.tm_mon = value;
        break;
    case 'd':
        f->t.tm_mday = value;
        break;
    case 'j':
        f->day_of_year = value;
        break;
    case 'H':
        f->t.tm_hour = value;
        break;
    case 'M':
        f->t.tm_min = value;
        break;
    default:
        f->t.tm_sec = value;
        break;
    }
    return value >= 0;
}

/* Returns true if the pattern matches at name. A star matches as little as possible. */
static bool fits(const char *pattern, const char *name, struct found *f)
{
    while (*pattern != '\0') {
        if (*pattern == '*') {
            for (; *name != '\0'; name++) {
                struct found trial = *f;
                if (fits(pattern + 1, name, &trial)) {
                    *f = trial;
                    return true;
                }
            }
            return fits(pattern + 1, name, f);
        }
        if (*pattern == '%' && pattern[1] != '%') {
            if (!take_field(pattern[1], &name, f))
                return false;
            pattern += 2;
            continue;
        }
        pattern += *pattern == '%';
        if (*name == '\0' || (*pattern != '?' && *pattern != *name))
            return false;
        pattern++;
        name++;
    }
    return true;
}

static bool settle(struct found *f)
{
    if (f->day_of_year > 0) {
        f->t.tm_mon = 1;
        for (f->t.tm_mday = f->day_of_year;
             f->t.tm_mon < 12 && f->t.tm_mday > days_of(f->t.tm_year, f->t.tm_mon); f->t.tm_mon++)
            f->t.tm_mday -= days_of(f->t.tm_year, f->t.tm_mon);
    }
    return is_time(&f->t);
}

/* Limits the count of stars: each multiplies the search time by the length of the name. */
static bool is_pattern(const char *pattern)
{
    bool year = false, day = false, month = false;
    int stars = 0;
    for (; *pattern != '\0'; pattern++) {
        stars += *pattern == '*';
        if (*pattern != '%')
            continue;
        if (*++pattern == '\0' || strchr("YymdjHMS%", *pattern) == NULL)
            return false;
        year = year || *pattern == 'Y' || *pattern == 'y';
        month = month || *pattern == 'm' || *pattern == 'j';
        day = day || *pattern == 'd' || *pattern == 'j';
    }
    return year && month && day && stars <= 4;
}

int pb_meta_name_time(const char *pattern, const char *name, char start[32], char end[32])
{
    struct tm first = {0};
    bool any = false;
    if (!is_pattern(pattern))
        return -EINVAL;
    for (const char *at = name; *at != '\0'; at++) {
        struct found f = {.t = {.tm_mon = 0}};
        if (!fits(pattern, at, &f) || !settle(&f))
            continue;
        if (any && memcmp(&first, &f.t, sizeof first) != 0)
            return 2;
        any = true;
        first = f.t;
        (void)snprintf(start, 32, "%04d-%02d-%02dT%02d:%02d:%02dZ", f.t.tm_year % 10000,
                       f.t.tm_mon % 100, f.t.tm_mday % 100, f.t.tm_hour % 100, f.t.tm_min % 100,
                       f.t.tm_sec % 100);
        (void)snprintf(end, 32, "%s", start);
        if (!f.has_time)
            (void)snprintf(end + 11, 21, "23:59:59Z");
    }
    return any;
}
