/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/vector_placer.h"

#include <errno.h>
#include <math.h>

int pb_vector_placer_init(struct pb_vector_placer *p, OGRSpatialReferenceH file,
                          OGRSpatialReferenceH to, const struct pb_raster_info *scene,
                          double tolerance)
{
    const struct pb_gdal_words words = p->words; /* places outside a projection are no damage */
    const int rc = pb_vector_way_init(&p->way, file, to, scene, tolerance);
    if (rc == 0)
        p->words = words;
    return rc;
}

void pb_vector_placer_fini(struct pb_vector_placer *p)
{
    pb_vector_make_free(&p->make);
    pb_vector_way_fini(&p->way);
    pb_vector_wrap_free(&p->wrap);
}

/* Removes the rings of the current polygon beyond n_rings. */
static void take_rings_back(struct pb_vector_make *make, size_t n_rings)
{
    if (make->n_rings > n_rings)
        make->n_vertices = make->ring[n_rings].first;
    make->n_rings = n_rings;
    make->polygon[make->n - 1].n_rings = n_rings - make->polygon[make->n - 1].first_ring;
}

/* Adds ring i of a part, or traces it. Omits the ring, or the whole part, if it is outside the
 * scene's system. */
static int add_ring(struct pb_vector_placer *p, OGRGeometryH part, int i, bool wraps, bool *out_end)
{
    const struct pb_gdal_words words = p->words;
    OGRGeometryH ring = OGR_G_GetGeometryRef(part, i);
    const size_t n_rings = p->make.n_rings, n_traces = p->wrap.n;
    int rc = wraps ? pb_vector_wrap_ring(&p->wrap, ring, &p->way)
                   : pb_vector_place_ring(&p->make, ring, &p->way);
    const bool beyond = rc == -ERANGE && pb_vector_reach_is_beyond(&p->reach, ring, p->way.to);
    const double circle = p->way.planar ? p->way.circle / p->way.ratio : 0;
    if (beyond ||
        ((rc == -ERANGE || rc == -EXDEV) && pb_vector_reach_is_far(&p->reach, part, circle))) {
        *out_end = i == 0 || !beyond;
        p->make.polygon[p->make.n - 1].is_beyond = true;
        take_rings_back(&p->make, n_rings);
        pb_vector_wrap_reset(&p->wrap, n_traces);
        rc = 0;
    }
    if (rc == 0)
        p->words = words;
    return rc;
}

/* Adds a polygon, or a part of a MultiPolygon. A part that crosses the seam of the scene's
 * system is traced. */
static int add_part(struct pb_vector_placer *p, OGRGeometryH part, bool wraps)
{
    const size_t before = p->make.n_rings;
    bool end = false;
    int rc = 0;
    p->make.part++;
    pb_vector_wrap_reset(&p->wrap, 0);
    for (int i = 0; rc == 0 && !end && i < OGR_G_GetGeometryCount(part); i++)
        rc = add_ring(p, part, i, wraps, &end);
    if (rc == 0 && wraps && !end)
        rc = pb_vector_wrap_add(&p->wrap, &p->way, &p->make);
    if (end || rc == -EXDEV)
        take_rings_back(&p->make, before);
    if (rc == -EXDEV && !wraps) {
        const struct pb_gdal_words words = p->words;
        const bool can = pb_vector_wrap_has_seam(&p->way);
        p->words = words;
        return can ? add_part(p, part, true) : rc;
    }
    return rc;
}

/* Returns true if a part of a geographic file is wider than the Earth and cannot be traced. */
static bool is_wider(struct pb_vector_placer *p, OGRGeometryH part)
{
    const struct pb_vector_way *way = &p->way;
    OGREnvelope e;
    if (!way->planar || way->geographic)
        return false;
    OGR_G_GetEnvelope(part, &e);
    return isfinite(e.MaxX - e.MinX) && e.MaxX - e.MinX > way->circle / way->ratio * (1 + 1e-6) &&
           !pb_vector_wrap_has_seam(&p->way);
}

static bool is_finite(OGRGeometryH part)
{
    for (int i = 0; i < OGR_G_GetGeometryCount(part); i++) {
        OGRGeometryH ring = OGR_G_GetGeometryRef(part, i);
        for (int k = 0; k < OGR_G_GetPointCount(ring); k++)
            if (!isfinite(OGR_G_GetX(ring, k)) || !isfinite(OGR_G_GetY(ring, k)))
                return false;
    }
    return true;
}

/* Adds the part of a polygon around the scene if other edges have no place in the scene's
 * system. -ERANGE: the rectangle around the scene is unknown. */
static int add_cut(struct pb_vector_placer *p, OGRGeometryH part)
{
    const double circle = p->way.planar ? p->way.circle / p->way.ratio : 0;
    int rc = p->reach.has_near && is_finite(part) ? 0 : -ERANGE;
    for (int turn = circle > 0 ? -1 : 0; rc == 0 && turn <= (circle > 0); turn++) {
        OGRGeometryH cut = pb_vector_reach_cut(&p->reach, part, turn * circle);
        if (cut == NULL)
            continue;
        rc = add_part(p, cut, false);
        OGR_G_DestroyGeometry(cut);
    }
    p->make.polygon[p->make.n - 1].is_beyond = true;
    return rc;
}

int pb_vector_placer_polygon(struct pb_vector_placer *p, OGRGeometryH part)
{
    const struct pb_gdal_words words = p->words; /* the search transforms invalid places too */
    const bool wider = is_wider(p, part);
    const bool wraps = p->way.geographic || pb_vector_wrap_is_beyond(&p->way, part);
    p->words = words;
    const size_t before = p->make.n_rings;
    const int rc = wider ? -EDOM : add_part(p, part, wraps);
    if (wraps || (rc != -ERANGE && rc != -EXDEV && rc != -EDOM))
        return rc;
    take_rings_back(&p->make, before);
    p->words = words;
    const int cut = add_cut(p, part);
    if (cut != -ERANGE && cut != -EXDEV)
        return cut;
    take_rings_back(&p->make, before);
    return rc;
}

int pb_vector_placer_add(struct pb_vector_placer *p, OGRGeometryH geometry)
{
    const OGRwkbGeometryType type = wkbFlatten(OGR_G_GetGeometryType(geometry));
    int rc = 0;
    if (type == wkbPolygon)
        return pb_vector_placer_polygon(p, geometry);
    if (type != wkbMultiPolygon)
        return -EINVAL;
    for (int i = 0; rc == 0 && i < OGR_G_GetGeometryCount(geometry); i++)
        rc = pb_vector_placer_add(p, OGR_G_GetGeometryRef(geometry, i));
    return rc;
}
