/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/meta_reader.h"
#include "config/base/base_name.h"

#include "config/units.h"
#include "pipeline/metadata/meta_time.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define RADIAN 0.017453292519943295

static void fail(struct pb_meta_reader *r, enum pb_code code, const char *format, va_list args)
{
    char text[400];
    if (r->rc < 0)
        return;
    (void)vsnprintf(text, sizeof text, format, args);
    r->rc = pb_fail_at(r->err, code, r->name, 0, 0, "%s", text);
}

void pb_meta_wrong(struct pb_meta_reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(r, PB_E_INPUT_METADATA_VALUE, format, args);
    va_end(args);
}

void pb_meta_conflict(struct pb_meta_reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(r, PB_E_INPUT_METADATA_CONFLICT, format, args);
    va_end(args);
}

/* --- values ----------------------------------------------------------------------------------- */

const char *pb_meta_need_text(struct pb_meta_reader *r, const struct pb_meta_node *node,
                              const char *path)
{
    const char *text = pb_meta_text(node, path);
    if (text == NULL || text[0] == '\0') {
        pb_meta_wrong(r, "it has no %s", path);
        return NULL;
    }
    return text;
}

double pb_meta_number_of(struct pb_meta_reader *r, const char *text, const char *what, double low,
                         double high)
{
    double value = NAN;
    if (pb_units_number(text, false, &value) != 0 || !isfinite(value)) {
        pb_meta_wrong(r, "%s is '%.40s', which is no number", what, text);
        return NAN;
    }
    if (value < low || value > high) {
        pb_meta_wrong(r, "%s is %.40s, which cannot be: %g to %g is possible", what, text, low,
                      high);
        return NAN;
    }
    return value;
}

double pb_meta_number(struct pb_meta_reader *r, const struct pb_meta_node *node, const char *path,
                      double low, double high)
{
    const char *text = pb_meta_text(node, path);
    return text != NULL && text[0] != '\0' ? pb_meta_number_of(r, text, path, low, high) : NAN;
}

double pb_meta_need_number(struct pb_meta_reader *r, const struct pb_meta_node *node,
                           const char *path, double low, double high)
{
    const char *text = pb_meta_need_text(r, node, path);
    return text != NULL ? pb_meta_number_of(r, text, path, low, high) : NAN;
}

static void note(struct pb_meta_reader *r, const void *fact)
{
    if (r->n_told < PB_META_TOLD_MAX) {
        r->told[r->n_told].fact = fact;
        r->told[r->n_told++].name = r->name;
    }
}

/* Returns the file that set the fact, without its folders. */
static const char *told_by(const struct pb_meta_reader *r, const void *fact)
{
    for (size_t i = r->n_told; i-- > 0;)
        if (r->told[i].fact == fact)
            return pb_base_name(r->told[i].name);
    return "another of the scene's metadata";
}

void pb_meta_set_text(struct pb_meta_reader *r, char *fact, size_t bytes, const char *text,
                      const char *what)
{
    if (text == NULL || text[0] == '\0')
        return;
    if (fact[0] != '\0' && strcmp(fact, text) != 0)
        pb_meta_conflict(r, "%s is '%.80s' here, but '%.80s' by %.120s", what, text, fact,
                         told_by(r, fact));
    else if (strlen(text) >= bytes)
        pb_meta_wrong(r, "%s is longer than %zu bytes", what, bytes - 1);
    else if (fact[0] == '\0') {
        (void)snprintf(fact, bytes, "%s", text);
        note(r, fact);
    }
}

void pb_meta_set_number(struct pb_meta_reader *r, double *fact, double number, const char *what)
{
    double off = fabs(number - *fact);
    if (isnan(number))
        return;
    if (isnan(*fact)) {
        *fact = number;
        note(r, fact);
    } else if (off > 1 && fabs(off - 360) > 1) {
        pb_meta_conflict(r, "%s is %g here, but %g by %.120s", what, number, *fact,
                         told_by(r, fact));
    }
}

void pb_meta_set_time(struct pb_meta_reader *r, const char *text, bool exact)
{
    char when[sizeof r->out->datetime], *fact = r->out->datetime;
    if (text == NULL || text[0] == '\0')
        return;
    if (pb_meta_time(text, when, sizeof when) < 0) {
        pb_meta_wrong(r, "'%.60s' is no time", text);
        return;
    }
    double hours = 24 * fabs(pb_meta_julian_day(when) - pb_meta_julian_day(fact));
    if (fact[0] != '\0' && hours > 1)
        pb_meta_conflict(r, "the scene was taken at %s here, but at %s by %.120s", when, fact,
                         told_by(r, fact));
    else if (fact[0] == '\0' || exact) {
        (void)snprintf(fact, sizeof r->out->datetime, "%s", when);
        note(r, fact);
    }
}

void pb_meta_set_day_time(struct pb_meta_reader *r, const char *day, const char *time)
{
    char text[80];
    if (day == NULL || time == NULL)
        return;
    (void)snprintf(text, sizeof text, "%.20sT%.40s", day, time);
    pb_meta_set_time(r, text, true);
}

void pb_meta_set_orbit(struct pb_meta_reader *r, const char *word)
{
    static const char *const states[] = {"ascending", "descending"};
    for (size_t i = 0; word != NULL && i < sizeof states / sizeof *states; i++)
        if (strcasecmp(word, states[i]) == 0)
            PB_META_SET(r, orbit_state, states[i], "the direction of the orbit");
}

double pb_meta_azimuth(double degrees)
{
    return degrees < 0 ? degrees + 360 : degrees;
}

/* --- bands ------------------------------------------------------------------------------------ */

void pb_meta_band_id(const char *name, char *out, size_t bytes)
{
    const char *at = name;
    if ((at[0] == 'B' || at[0] == 'b') && isdigit((unsigned char)at[1]))
        at++;
    while (at[0] == '0' && isdigit((unsigned char)at[1]))
        at++;
    (void)snprintf(out, bytes, "%s", at);
    for (char *c = out; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
}

struct pb_meta_band *pb_meta_band(struct pb_meta_reader *r, const char *name)
{
    char id[sizeof r->out->band[0].id];
    struct pb_metadata *out = r->out;
    if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof id) {
        pb_meta_wrong(r, "'%.40s' is no band's name", name != NULL ? name : "");
        return NULL;
    }
    pb_meta_band_id(name, id, sizeof id);
    for (size_t i = 0; i < out->n_bands; i++)
        if (strcmp(out->band[i].id, id) == 0)
            return &out->band[i];
    if (out->n_bands == PB_METADATA_BANDS_MAX) {
        pb_meta_wrong(r, "it names more than %d bands", PB_METADATA_BANDS_MAX);
        return NULL;
    }
    struct pb_meta_band *band = &out->band[out->n_bands++];
    *band = (struct pb_meta_band){.k1 = NAN, .k2 = NAN};
    memcpy(band->id, id, sizeof id);
    return band;
}

void pb_meta_set_file(struct pb_meta_band *band, const char *file)
{
    if (band == NULL || file == NULL)
        return;
    const char *base = pb_base_name(file);
    const char *dot = strrchr(base, '.');
    size_t n = dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base);
    if (n < sizeof band->file)
        (void)snprintf(band->file, sizeof band->file, "%.*s", (int)n, base);
}

void pb_meta_set_scale(struct pb_meta_band *band, enum pb_quantity to, double gain, double offset)
{
    if (band == NULL || !isfinite(gain) || !isfinite(offset))
        return;
    band->to[to] = (struct pb_meta_scale){true, gain, offset};
}

/* --- the sun ---------------------------------------------------------------------------------- */

double pb_meta_sun_distance(const struct pb_metadata *facts)
{
    double day = pb_meta_julian_day(facts->datetime);
    double g = (357.529 + 0.98560028 * (day - 2451545.0)) * RADIAN;
    return 1.00014 - 0.01671 * cos(g) - 0.00014 * cos(2 * g);
}

double pb_meta_sun_height(struct pb_meta_reader *r)
{
    double elevation = r->out->sun_elevation;
    if (isnan(elevation))
        pb_meta_wrong(r, "the height of the sun is missing, which reflectance needs");
    else if (elevation <= 0)
        pb_meta_wrong(r, "the sun was %g degrees below the horizon: there is no reflectance",
                      -elevation);
    return sin(elevation * RADIAN);
}
