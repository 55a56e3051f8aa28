/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Later code relies on ascending times and on invertible polynomials: both are checked here.
 * Times are counted from the first line (productFirstLineUtcTime). */
#include "pipeline/metadata/sentinel1_geometry.h"

#include "pipeline/metadata/meta_reader.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/metadata/sentinel1_lists.h"
#include "pipeline/sar/range_doppler.h"
#include "pipeline/sar/sar_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TIME_MOST_S     1e5
#define POSITION_MOST_M 1e8
#define VELOCITY_MOST   1e5
#define HEIGHT_LEAST_M  (-1000)
#define HEIGHT_MOST_M   1e4
/* Tolerance between the numbers of two polarisations: far below a pixel. */
#define SAME_PX 1e-3

struct reading {
    struct pb_meta_reader *r;
    const char *since; /* time of the first line */
    const char *why;   /* unsupported part of the annotation; NULL: all is supported */
};

static double read_time(struct reading *in, const struct pb_meta_node *node, const char *name)
{
    struct pb_meta_reader *r = in->r;
    const char *when = pb_meta_need_text(r, node, name);
    const double seconds = r->rc == 0 ? pb_meta_seconds(in->since, when) : NAN;
    if (r->rc == 0 && !(fabs(seconds) < TIME_MOST_S))
        pb_meta_wrong(r, "%s '%.40s' is no time near that of the first line, %.40s", name, when,
                      in->since);
    return seconds;
}

static void read_vector(struct reading *in, const struct pb_meta_node *node,
                        struct pb_orbit_state *out)
{
    static const char *const names[6] = {"position/x", "position/y", "position/z",
                                         "velocity/x", "velocity/y", "velocity/z"};
    const char *frame = pb_meta_need_text(in->r, node, "frame");
    if (frame != NULL && strcmp(frame, "Earth Fixed") != 0)
        in->why = "the frame of its orbit is not Earth Fixed";
    for (int i = 0; i < 6; i++) {
        const double most = i < 3 ? POSITION_MOST_M : VELOCITY_MOST;
        *(i < 3 ? &out->position[i] : &out->velocity[i - 3]) =
            pb_meta_need_number(in->r, node, names[i], -most, most);
    }
}

/* Returns the next child that is not an attribute; NULL if there are no more. */
static const struct pb_meta_node *entry(const struct pb_meta_node *node)
{
    while (node != NULL && node->name[0] == '@')
        node = node->next;
    return node;
}

static void read_orbit(struct reading *in, const struct pb_meta_node *list, struct pb_orbit *out)
{
    struct pb_meta_reader *r = in->r;
    double *time = pb_sentinel1_room(r, list->n + 1, sizeof *time);
    struct pb_orbit_state *state = pb_sentinel1_room(r, list->n + 1, sizeof *state);
    *out = (struct pb_orbit){0, time, state};
    for (const struct pb_meta_node *v = entry(list->first); v != NULL && r->rc == 0;
         v = entry(v->next)) {
        time[out->n] = read_time(in, v, "time");
        read_vector(in, v, &state[out->n]);
        if (r->rc == 0 && out->n > 0 && time[out->n] <= time[out->n - 1])
            pb_meta_wrong(r, "times of the orbit's state vectors do not ascend at number %zu",
                          out->n + 1);
        out->n++;
    }
    if (out->n < PB_ORBIT_NODES)
        in->why = "its orbit has less than 8 state vectors";
}

static void read_update(struct reading *in, const struct pb_meta_node *node,
                        struct pb_range_update *out)
{
    struct pb_meta_reader *r = in->r;
    const struct pb_sentinel1_list terms =
        pb_sentinel1_read_list(r, node, "grsrCoefficients", -1e9, 1e9, false);
    const double origin = pb_meta_need_number(r, node, "gr0", -1e9, 1e9);
    out->time = read_time(in, node, "azimuthTime");
    if (terms.n > PB_RANGE_TERMS_MAX)
        in->why = "its polynomials for ground range have more than 12 terms";
    else if (origin != 0)
        in->why = "its ground range does not begin with the first pixel (gr0)";
    else if (r->rc == 0)
        memcpy(out->term, terms.number, terms.n * sizeof out->term[0]);
}

static void read_updates(struct reading *in, const struct pb_meta_node *list,
                         struct pb_range_doppler *out)
{
    struct pb_meta_reader *r = in->r;
    struct pb_range_update *update = pb_sentinel1_room(r, list->n + 1, sizeof *update);
    out->update = update;
    for (const struct pb_meta_node *v = entry(list->first); v != NULL && r->rc == 0;
         v = entry(v->next)) {
        read_update(in, v, &update[out->n_updates]);
        if (r->rc == 0 && out->n_updates > 0 &&
            update[out->n_updates].time <= update[out->n_updates - 1].time)
            pb_meta_wrong(r, "times of coordinateConversionList do not ascend at number %zu",
                          out->n_updates + 1);
        out->n_updates++;
    }
}

/* Mean height of the tie points; NaN without tie points. */
static double read_height(struct pb_meta_reader *r, const struct pb_meta_node *list)
{
    double sum = 0;
    size_t n = 0;
    for (const struct pb_meta_node *v = list != NULL ? entry(list->first) : NULL;
         v != NULL && r->rc == 0; v = entry(v->next), n++)
        sum += pb_meta_need_number(r, v, "height", HEIGHT_LEAST_M, HEIGHT_MOST_M);
    return n > 0 ? sum / (double)n : NAN;
}

/* Returns the reason why the annotation has no geometry of this kind; NULL if it has one. */
static const char *why_none(const struct pb_meta_node *root, const struct pb_sar_channel *channel)
{
    const struct pb_meta_node *orbit = pb_meta_below(root, "orbitList", NULL);
    const struct pb_meta_node *updates = pb_meta_below(root, "coordinateConversionList", NULL);
    const char *projection = pb_meta_text_below(root, "projection");
    const char *corrected = pb_meta_text_below(root, "bistaticDelayCorrectionApplied");
    if (projection != NULL && strcmp(projection, "Ground Range") != 0)
        return "its projection is not Ground Range: of Sentinel-1, GRD products have that";
    if (orbit == NULL || entry(orbit->first) == NULL)
        return "it has no state vectors of the orbit (orbitList)";
    if (updates == NULL || entry(updates->first) == NULL)
        return "it has no polynomials for ground range (coordinateConversionList)";
    if (corrected == NULL || strcmp(corrected, "true") != 0)
        return "its times are not marked as corrected for the bistatic delay "
               "(bistaticDelayCorrectionApplied)";
    return channel->width > 0 ? NULL : "the size of the image is missing";
}

static bool is_same(const struct pb_range_doppler *a, const struct pb_range_doppler *b)
{
    const double xs[2] = {0, a->width}, ys[2] = {0, a->height};
    if (a->width != b->width || a->height != b->height)
        return false;
    for (int i = 0; i < 4; i++) {
        double lon, lat, x, y;
        if (!pb_range_doppler_ground(a, xs[i & 1], ys[i >> 1], 0, &lon, &lat) ||
            !pb_range_doppler_pixel(b, lon, lat, 0, &x, &y) ||
            !(fabs(x - xs[i & 1]) < SAME_PX && fabs(y - ys[i >> 1]) < SAME_PX))
            return false;
    }
    return true;
}

/* Reads the complete model. */
static void read_model(struct reading *in, const struct pb_meta_node *root,
                       const struct pb_sar_channel *channel, struct pb_range_doppler *m)
{
    const struct pb_meta_node *image = pb_meta_below(root, "imageInformation", NULL);
    m->width = channel->width;
    m->height = channel->height;
    m->line_seconds = pb_meta_need_number(in->r, image, "azimuthTimeInterval", 1e-6, 1);
    m->pixel_metres = pb_meta_need_number(in->r, image, "rangePixelSpacing", 0.1, 1000);
    in->since = pb_meta_need_text(in->r, image, "productFirstLineUtcTime");
    if (in->r->rc == 0)
        read_orbit(in, pb_meta_below(root, "orbitList", NULL), &m->orbit);
    if (in->r->rc == 0)
        read_updates(in, pb_meta_below(root, "coordinateConversionList", NULL), m);
    m->mean_height = read_height(in->r, pb_meta_below(root, "geolocationGridPointList", NULL));
    if (in->r->rc == 0 && in->why == NULL && !pb_range_doppler_finish(m))
        pb_meta_wrong(in->r, "grsrCoefficients are no distances that ascend over the image");
}

void pb_sentinel1_geometry(struct pb_meta_reader *r, const struct pb_meta_node *root,
                           const struct pb_sar_channel *channel)
{
    struct reading in = {r, NULL, why_none(root, channel)};
    struct pb_range_doppler *m = pb_sentinel1_room(r, 1, sizeof *m);
    if (m != NULL && in.why == NULL)
        read_model(&in, root, channel, m);
    if (r->rc < 0)
        return;
    struct pb_sar *sar = r->out->sar;
    if (in.why != NULL)
        (void)snprintf(sar->why_no_geometry, sizeof sar->why_no_geometry,
                       "the annotation does not place the image's pixels: %s", in.why);
    else if (sar->geometry != NULL && !is_same(sar->geometry, m))
        pb_meta_conflict(r, "polarisation %s has another geometry than the one before",
                         channel->id);
    else
        sar->geometry = m;
}
