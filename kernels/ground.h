/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GROUND_H
#define PB_GROUND_H
/* Where pixels lie on the ground, and the way from one such place to another, which the layers
 * above find for steps that change the coordinate system. Plain data. */
#include "kernels/ground_unit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What says where the pixels of a scene lie. */
enum pb_ground_model {
    PB_GROUND_AUTO,      /* the first that the scene has: transform, sensor, GCPs, RPCs */
    PB_GROUND_TRANSFORM, /* its geotransform */
    PB_GROUND_GCPS,      /* a polynomial that fits its ground control points */
    PB_GROUND_TPS,       /* a thin-plate spline through these */
    PB_GROUND_RPC,       /* its rational polynomial coefficients */
    PB_GROUND_SENSOR     /* a model of its sensor: range-Doppler, of radar */
};
/* The words, in the same order. */
#define PB_GROUND_MODELS "auto|transform|gcps|tps|rpc|range-doppler"

/* The place of a grid whose coordinate system is not the scene's. */
struct pb_ground {
    double transform[6];        /* GDAL's order */
    struct pb_ground_unit unit; /* of x and y */
    char *crs;                  /* WKT; owned by who owns the struct */
    char code[64];              /* "EPSG:32633" or "" */
    char by[128];               /* what places the scene's pixels, for people: "the geotransform" */
    enum pb_ground_model model; /* the same; AUTO: nothing has */
    bool on_relief;             /* by the height of the ground at each pixel */
};

/* What people call a model that places pixels by the height of their ground; NULL: it is none. */
static inline const char *pb_ground_of_height(enum pb_ground_model model)
{
    return model == PB_GROUND_RPC ? "RPCs" : model == PB_GROUND_SENSOR ? "range-Doppler" : NULL;
}

/* What a step asks for: a grid in another coordinate system. */
struct pb_ground_ask {
    const char *crs;              /* as GDAL's -t_srs takes it */
    double pixel;                 /* side of pixels in units of the CRS; 0: as suggested */
    bool has_bounds, align;       /* align: edges at multiples of the pixel */
    double bounds[4];             /* west, south, east, north */
    int32_t source_w, source_h;   /* of the grid that it is made from */
    double part[4];               /* left, top, right, bottom of what bands have of that grid, in
                                     its pixels; the extent is that of this part */
    const struct pb_ground *from; /* the place of that; NULL: the scene's own */
    enum pb_ground_model model;   /* of the scene; not looked at where from is given */
    int32_t order;                /* of the polynomial; 0: as GDAL chooses it */
    bool has_height;              /* else the mean height that the model names */
    double height;                /* of all pixels, in metres above the ellipsoid; for RPCs and
                                     sensors */
    const struct pb_ground *to;   /* the place of the new grid, which has to_w x to_h pixels; NULL:
                                     it is to be found */
    int32_t to_w, to_h;
    bool has_areas; /* bands are made by AVERAGE or MODE: see struct pb_warp_want */
};

/* An open way: from pixels of the new grid to those of the one it is made from. */
struct pb_ground_way {
    int32_t w, h;            /* of the new grid */
    struct pb_ground ground; /* zero where the ask has the place */
    double error_px; /* by which positions may be off, in pixels of the old grid, where points would
                        be many; 0: as little as memory allows */
    void *transform;
};

/* How the scene's pixels are placed elsewhere. open: 0; with words in why: -EINVAL, -EDOM: it is
 * the scene that cannot be brought there, whatever the step says; -ENOMEM. points: x, y of the new
 * grid become those of the old one, NaN where there is none. close frees the transform, the ground
 * stays. Thread: that of the plan. */
struct pb_ground_finder {
    void *of;
    int (*open)(void *of, const struct pb_ground_ask *ask, char *why, size_t why_bytes,
                struct pb_ground_way *out_way);
    void (*points)(void *transform, size_t n, double *x, double *y);
    void (*close)(void *transform);
};

/* What is known of inputs that may be heights of the ground. place: of an input's grid; *out's text
 * is the caller's. range: the least and the greatest value of its pixels in a rectangle of its grid
 * (left, top, right, bottom), as steps see them. Both: 0; -EINVAL with words in why; -ENOMEM;
 * range also -ENODATA, no pixel is valid, and -EIO, they cannot be read. Thread: that of the plan.
 */
struct pb_ground_heights {
    const void *of;
    int (*place)(const void *of, uint32_t input, char *why, size_t why_bytes,
                 struct pb_ground *out);
    int (*range)(const void *of, uint32_t input, const double box[4], char *why, size_t why_bytes,
                 double out[2]);
};
#endif
