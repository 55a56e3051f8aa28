/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Names of colours and their levels, as in gdaldem (from GRASS). */
#include "pipeline/paint/colour_file.h"

#include "config/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SEPARATORS " \t,:\r"
#define FIELDS_MAX 5
#define FIELD_MAX  63
#define LINE_MAX   1023

struct line {
    char field[FIELDS_MAX + 1][FIELD_MAX + 1];
    size_t n;
    char *mistake;
    size_t mistake_bytes;
};

static const struct {
    const char *name;
    uint8_t rgb[3];
} colours[] = {
    {"white", {255, 255, 255}}, {"black", {0, 0, 0}},      {"red", {255, 0, 0}},
    {"green", {0, 255, 0}},     {"blue", {0, 0, 255}},     {"yellow", {255, 255, 0}},
    {"magenta", {255, 0, 255}}, {"cyan", {0, 255, 255}},   {"aqua", {0, 191, 191}},
    {"grey", {191, 191, 191}},  {"gray", {191, 191, 191}}, {"orange", {255, 127, 0}},
    {"brown", {191, 127, 63}},  {"purple", {127, 0, 255}}, {"violet", {127, 0, 255}},
    {"indigo", {0, 127, 191}},
};

static bool wrong(const struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool wrong(const struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line->mistake, line->mistake_bytes, format, args);
    va_end(args);
    return false;
}

static bool split(const char *text, size_t bytes, struct line *line)
{
    char copy[LINE_MAX + 1], *rest = copy;
    if (bytes > LINE_MAX || memchr(text, '\0', bytes) != NULL)
        return wrong(line, "this is no line of a colour file");
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    copy[strcspn(copy, "#")] = '\0';
    line->n = 0;
    for (char *field; (field = strtok_r(rest, SEPARATORS, &rest)) != NULL; line->n++) {
        if (line->n == FIELDS_MAX)
            return wrong(line, "more than a value, red, green, blue and alpha");
        if (strlen(field) > FIELD_MAX)
            return wrong(line, "'%.40s...' is too long", field);
        memcpy(line->field[line->n], field, strlen(field) + 1);
    }
    return true;
}

static bool read_level(const struct line *line, size_t field, uint8_t *out)
{
    double level;
    if (pb_units_number(line->field[field], false, &level) != 0 || level < 0 || level > 255 ||
        level != (double)(int)level)
        return wrong(line, "'%s' is no level; write red, green, blue and alpha from 0 to 255",
                     line->field[field]);
    *out = (uint8_t)level;
    return true;
}

static bool read_name(const struct line *line, uint8_t rgba[4])
{
    for (size_t i = 0; i < sizeof colours / sizeof colours[0]; i++)
        if (strcasecmp(line->field[1], colours[i].name) == 0) {
            memcpy(rgba, colours[i].rgb, 3);
            return line->n == 2 || read_level(line, 2, &rgba[3]);
        }
    return wrong(line,
                 "'%s' is no colour; write red, green and blue from 0 to 255, or one of the names "
                 "white, black, red, green, blue, yellow, magenta, cyan, aqua, grey, orange, "
                 "brown, purple, violet, indigo",
                 line->n > 1 ? line->field[1] : "");
}

static bool read_colour(const struct line *line, uint8_t rgba[4])
{
    bool good = true;
    rgba[3] = 255;
    if (line->n < 4)
        return read_name(line, rgba);
    for (size_t i = 1; i < line->n && good; i++)
        good = read_level(line, i, &rgba[i - 1]);
    return good;
}

static bool read_value(struct line *line, struct pb_ramp_stop *out)
{
    char *text = line->field[0];
    size_t length = strlen(text);
    out->is_share = text[length - 1] == '%';
    if (out->is_share)
        text[length - 1] = '\0';
    if (pb_units_number(text, false, &out->at) != 0)
        return wrong(line, "'%s' is no value; write a number, a percentage, nv or default", text);
    if (out->is_share && (out->at < 0 || out->at > 100))
        return wrong(line, "%s%% is not from 0%% to 100%%", text);
    out->at = out->is_share ? out->at / 100 : out->at;
    return true;
}

static bool read_line(struct line *line, struct pb_ramp_stop *stops, struct pb_ramp *out)
{
    uint8_t rgba[4];
    if (line->n == 0)
        return true;
    if (!read_colour(line, rgba))
        return false;
    if (strcasecmp(line->field[0], "nv") == 0) {
        memcpy(out->invalid, rgba, sizeof rgba);
        return true;
    }
    if (strcasecmp(line->field[0], "default") == 0) {
        memcpy(out->other, rgba, sizeof rgba);
        return true;
    }
    if (out->n == PB_RAMP_STOPS_MAX)
        return wrong(line, "more than %d values", PB_RAMP_STOPS_MAX);
    memcpy(stops[out->n].rgba, rgba, sizeof rgba);
    return read_value(line, &stops[out->n++]);
}

size_t pb_colour_file_lines(const char *text, size_t bytes)
{
    size_t n = 1;
    for (size_t i = 0; i < bytes; i++)
        n += text[i] == '\n';
    return n;
}

int pb_colour_file_parse(const char *text, size_t bytes, struct pb_ramp_stop *stops,
                         struct pb_ramp *out, char *mistake, size_t mistake_bytes)
{
    struct line line = {.mistake = mistake, .mistake_bytes = mistake_bytes};
    int number = 1;
    *out = (struct pb_ramp){.stop = stops};
    for (size_t at = 0; at < bytes; number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : bytes - at;
        if (!split(text + at, length, &line) || !read_line(&line, stops, out))
            return number;
        at += length + 1;
    }
    if (out->n > 0)
        return 0;
    (void)snprintf(mistake, mistake_bytes, "no line gives a value a colour");
    return number;
}
