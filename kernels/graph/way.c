/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/graph/way.h"
#include "kernels/graph/relief.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool fits(const struct pb_way_ask *ask, const struct pb_way *way)
{
    return ask->fits == NULL || ask->fits(ask->fits_of, way->w, way->h);
}

static int make_plain(const struct pb_ground_finder *finder, const struct pb_way_ask *ask,
                      char *why, size_t why_bytes, struct pb_way *out)
{
    struct pb_ground_way way = {0};
    int rc = finder->open(finder->of, ask->ask, why, why_bytes, &way);

    if (rc < 0)
        return rc;
    out->w = way.w;
    out->h = way.h;
    out->ground = way.ground;
    const struct pb_warp_want want = {.w = way.w,
                                      .h = way.h,
                                      .source_w = ask->ask->source_w,
                                      .source_h = ask->ask->source_h,
                                      .error_px = way.error_px,
                                      .has_areas = ask->ask->has_areas};
    rc = fits(ask, out) ? pb_warp_create(&want, finder->points, way.transform, &out->warp)
                        : -ECANCELED;
    finder->close(way.transform);
    return rc;
}

int pb_way_make(void *of, const struct pb_way_ask *ask, char *why, size_t why_bytes,
                struct pb_way *out)
{
    const struct pb_way_maker *const maker = of;
    const struct pb_relief_ask relief = {.finder = maker->ground,
                                         .heights = maker->heights,
                                         .ask = ask->ask,
                                         .input = ask->input,
                                         .w = ask->w,
                                         .h = ask->h};

    *out = (struct pb_way){.warp = NULL};
    if (!ask->on_relief)
        return make_plain(maker->ground, ask, why, why_bytes, out);
    if (maker->heights == NULL) {
        (void)snprintf(why, why_bytes, "no input has a place, which heights need");
        return -EINVAL;
    }
    const int rc = pb_relief_open(&relief, why, why_bytes, out);
    return rc == 0 && !fits(ask, out) ? -ECANCELED : rc;
}

void pb_way_release(struct pb_way *way)
{
    pb_warp_put(way->warp);
    pb_warp_put(way->heights_warp);
    free(way->ground.crs);
    free(way->heights_ground.crs);
    *way = (struct pb_way){.warp = NULL};
}
