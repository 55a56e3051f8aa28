/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A way is sent as its struct, then its tables: for each height the struct of a warp, the tree and
 * the leaves. The receiver uses numbers of these structs only, and makes all that follows from the
 * tables again (pb_warp_complete), so that no box or size can contradict them. */
#include "pipeline/plan/ways.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan/served_tail.h"
#include "pipeline/sar/sar_sensor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the process with the files --------------------------------------------------------------- */

static int record(struct pb_plan *plan, const struct pb_way *way)
{
    struct pb_way *more = realloc(plan->work.ways, (plan->work.n_ways + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    plan->work.ways = more;
    more += plan->work.n_ways++;
    *more = *way;
    more->ground.crs = more->heights_ground.crs = NULL;
    more->warp = pb_warp_get(way->warp);
    more->heights_warp = way->heights_warp != NULL ? pb_warp_get(way->heights_warp) : NULL;
    return 0;
}

static int make(void *of, const struct pb_way_ask *ask, char *why, size_t why_bytes,
                struct pb_way *out)
{
    struct pb_plan_ways_made *made = of;
    int rc = pb_way_make(&made->maker, ask, why, why_bytes, out);
    return rc ? rc : record(made->plan, out);
}

/* Finds the place of the grid of an input's file. */
static int place(const void *of, uint32_t input, char *why, size_t why_bytes, struct pb_ground *out)
{
    const struct pb_plan_ways_made *made = of;
    const uint32_t file = made->in->file[input];
    const struct pb_raster *raster =
        file == 0 ? made->request->raster : made->request->others[file - 1].raster;
    int rc = raster != NULL ? pb_raster_ground(raster, out) : -ENODATA;
    if (rc == -ENODATA) {
        (void)snprintf(why, why_bytes,
                       "the file of the heights has no geotransform with a coordinate system");
        rc = -EINVAL;
    }
    return rc;
}

static bool is_same(const struct pb_rect *a, const struct pb_rect *b)
{
    return a->x == b->x && a->y == b->y && a->w == b->w && a->h == b->h;
}

static int range(const void *of, uint32_t input, const double box[4], char *why, size_t why_bytes,
                 double out[2])
{
    const struct pb_plan_ways_made *made = of;
    struct pb_plan_heights *heights = made->request->heights;
    const struct pb_rect area = {(int32_t)box[0], (int32_t)box[1], (int32_t)(box[2] - box[0]),
                                 (int32_t)(box[3] - box[1])};
    for (size_t i = 0; heights != NULL && i < heights->n; i++)
        if (heights->known[i].input == input && is_same(&heights->known[i].area, &area)) {
            memcpy(out, heights->known[i].range, sizeof heights->known[i].range);
            return out[0] <= out[1] ? 0 : -ENODATA;
        }
    if (heights != NULL)
        heights->lacks = (struct pb_plan_heights_lack){.input = input,
                                                       .area = area,
                                                       .band = made->in->input[input],
                                                       .number = made->in->number[input],
                                                       .file = made->in->file[input]};
    (void)snprintf(why, why_bytes, "the heights of the ground have not been read");
    return -EIO;
}

struct pb_way_finder pb_plan_ways_make(struct pb_plan_ways_made *of, struct pb_plan *plan,
                                       const struct pb_plan_request *request,
                                       const struct pb_plan_inputs *in)
{
    const struct pb_metadata *metadata = request->metadata;
    *of = (struct pb_plan_ways_made){
        .plan = plan,
        .request = request,
        .in = in,
        .source = {request->raster, pb_sar_sensor(metadata != NULL ? metadata->sar : NULL)},
        .heights = {.of = of, .place = place, .range = range}};
    of->finder = pb_raster_ground_finder(&of->source);
    of->maker = (struct pb_way_maker){&of->finder, &of->heights};
    if (request->heights != NULL)
        request->heights->lacks = (struct pb_plan_heights_lack){.input = 0};
    return (struct pb_way_finder){.of = of, .find = make};
}

static int send_level(const struct pb_warp *warp, struct pb_served_tail *tail, struct pb_err *err)
{
    struct pb_warp numbers = *warp;
    numbers.tree = NULL;
    numbers.leaf = NULL;
    numbers.box = NULL;
    numbers.most = NULL;
    numbers.above = NULL;
    int rc = pb_served_tail_add(tail, &numbers, sizeof numbers, err);
    rc = rc ? rc : pb_served_tail_add(tail, warp->tree, warp->n_tree * sizeof *warp->tree, err);
    return rc ? rc : pb_served_tail_add(tail, warp->leaf, warp->n_leaf * sizeof *warp->leaf, err);
}

static int send_warp(const struct pb_warp *warp, struct pb_served_tail *tail, struct pb_err *err)
{
    int rc = send_level(warp, tail, err);
    for (uint32_t i = 1; i < warp->n_heights && rc == 0; i++)
        rc = send_level(&warp->above[i - 1], tail, err);
    return rc;
}

int pb_plan_ways_send(const struct pb_plan *plan, struct pb_served_tail *tail, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < plan->work.n_ways && rc == 0; i++) {
        const struct pb_way *way = &plan->work.ways[i];
        rc = pb_served_tail_add(tail, way, sizeof *way, err);
        rc = rc ? rc : send_warp(way->warp, tail, err);
        if (rc == 0 && way->heights_warp != NULL)
            rc = send_warp(way->heights_warp, tail, err);
    }
    return rc;
}

static bool is_sound(const struct pb_warp *warp)
{
    bool sound = pb_warp_is_sound(warp);
    for (uint32_t i = 1; i < warp->n_heights && sound; i++)
        sound = pb_warp_is_sound(&warp->above[i - 1]);
    return sound;
}

bool pb_plan_ways_are_sound(const struct pb_plan *plan)
{
    bool sound = true;
    for (size_t i = 0; i < plan->work.n_ways && sound; i++)
        sound = is_sound(plan->work.ways[i].warp) && (plan->work.ways[i].heights_warp == NULL ||
                                                      is_sound(plan->work.ways[i].heights_warp));
    return sound;
}

void pb_plan_ways_free(struct pb_plan *plan)
{
    for (size_t i = 0; i < plan->work.n_ways; i++)
        pb_way_release(&plan->work.ways[i]);
    free(plan->work.ways);
}

/* --- the process that computes ---------------------------------------------------------------- */

/* The grids between which a warp must be. */
struct grids {
    int32_t w, h, source_w, source_h;
};

/* Takes the tables of one height. */
static int take_level(struct pb_served_tail *tail, const struct grids *grids,
                      struct pb_warp **out_level)
{
    const struct pb_warp *said = pb_served_tail_take(tail, 1, sizeof *said);
    if (said == NULL || said->w != grids->w || said->h != grids->h ||
        said->source_w != grids->source_w || said->source_h != grids->source_h)
        return -EPROTO;
    const uint32_t *tree = pb_served_tail_take(tail, said->n_tree, sizeof *tree);
    const struct pb_warp_leaf *leaf =
        tree != NULL ? pb_served_tail_take(tail, said->n_leaf, sizeof *leaf) : NULL;
    struct pb_warp *level = leaf != NULL ? calloc(1, sizeof *level) : NULL;
    if (level == NULL)
        return leaf == NULL ? -EPROTO : -ENOMEM;
    *level = (struct pb_warp){.w = said->w,
                              .h = said->h,
                              .source_w = said->source_w,
                              .source_h = said->source_h,
                              .n_tree = said->n_tree,
                              .n_leaf = said->n_leaf,
                              .n_torn = said->n_torn,
                              .scale_x = said->scale_x,
                              .scale_y = said->scale_y,
                              .n_heights = 1,
                              .users = 1,
                              .tree = malloc(said->n_tree * sizeof *tree + 1),
                              .leaf = malloc(said->n_leaf * sizeof *leaf + 1)};
    int rc = level->tree != NULL && level->leaf != NULL ? 0 : -ENOMEM;
    if (rc == 0) {
        memcpy(level->tree, tree, said->n_tree * sizeof *tree);
        memcpy(level->leaf, leaf, said->n_leaf * sizeof *leaf);
        rc = pb_warp_is_sound(level) ? pb_warp_complete(level) : -EPROTO;
    }
    if (rc == 0)
        *out_level = level;
    else
        pb_warp_put(level);
    return rc;
}

/* Takes a warp, of as many heights as its first struct names. */
static int take_warp(struct pb_served_tail *tail, const struct grids *grids, bool on_relief,
                     struct pb_warp **out_warp)
{
    struct pb_warp *level[PB_WARP_HEIGHTS_MOST] = {NULL};
    struct pb_served_tail ahead = *tail;
    const struct pb_warp *first = pb_served_tail_take(&ahead, 1, sizeof *first);
    const uint32_t n = first != NULL ? first->n_heights : 0;
    const bool counted = on_relief ? n >= 3 && n <= PB_WARP_HEIGHTS_MOST && n % 2 == 1 : n == 1;
    if (!counted || (on_relief && (!pb_served_is_near(first->low) || !(first->step > 0) ||
                                   !pb_served_is_near(first->step))))
        return -EPROTO;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = take_level(tail, grids, &level[i]);
    if (rc == 0 && n > 1)
        return pb_warp_stack(level, n, first->low, first->step, out_warp);
    if (rc == 0) {
        *out_warp = level[0];
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        pb_warp_put(level[i]);
    return rc;
}

/* Takes what steps use of a place; its text stays with the process that writes products. */
static bool take_ground(const struct pb_ground *said, struct pb_ground *out)
{
    bool near = pb_served_is_unit(&said->unit);
    for (int i = 0; i < 6; i++)
        near = near && pb_served_is_near(said->transform[i]);
    *out = (struct pb_ground){.unit = said->unit};
    memcpy(out->transform, said->transform, sizeof out->transform);
    return near;
}

static int take(void *of, const struct pb_way_ask *ask, char *why, size_t why_bytes,
                struct pb_way *out)
{
    struct pb_served_tail *tail = of;
    const struct pb_way *said = pb_served_tail_take(tail, 1, sizeof *said);
    *out = (struct pb_way){.warp = NULL};
    (void)snprintf(why, why_bytes, "the way to the new grid that was sent is not possible");
    if (said == NULL || said->w < 1 || said->h < 1 || !take_ground(&said->ground, &out->ground) ||
        (ask->on_relief && !take_ground(&said->heights_ground, &out->heights_ground)))
        return -EPROTO;
    out->w = said->w;
    out->h = said->h;
    if (!ask->fits(ask->fits_of, out->w, out->h))
        return -ECANCELED;
    const struct grids scene = {out->w, out->h, ask->ask->source_w, ask->ask->source_h};
    const struct grids heights = {out->w, out->h, ask->w, ask->h};
    int rc = take_warp(tail, &scene, ask->on_relief, &out->warp);
    return rc || !ask->on_relief ? rc : take_warp(tail, &heights, false, &out->heights_warp);
}

struct pb_way_finder pb_plan_ways_take(struct pb_served_tail *tail)
{
    return (struct pb_way_finder){.of = tail, .find = take};
}
