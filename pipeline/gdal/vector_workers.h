/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VECTOR_WORKERS_H
#define PB_VECTOR_WORKERS_H
/* Places shapes (vector_shapes.h) in a scene's system on several threads. The result is the same
 * whatever their count. */
#include "pipeline/gdal/vector_placer.h"
#include "pipeline/gdal/vector_shapes.h"

/* A polygon of `make` that has no rings yet, and its shape. */
struct pb_vector_later {
    size_t polygon, shape;
};

struct pb_vector_work {
    struct pb_vector_placer *place; /* gets the rings; workers have the same way */
    struct pb_vector_shapes *shapes;
    const struct pb_vector_later *later; /* n, ascending */
    size_t n;
    const struct pb_raster *scene;
    uint32_t threads;

    uint64_t wkb_bytes; /* result: size of the shapes as WKB */
    size_t failed;      /* result: number of the first entry with an error */
};

/* Places all entries, and frees the shapes before the rings are joined. Returns 0; -ENOMEM; the
 * errors of pb_vector_placer_polygon and pb_vector_shape_read. */
int pb_vector_workers_run(struct pb_vector_work *work);
#endif
