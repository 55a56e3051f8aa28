/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/vector_workers.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/vector.h"
#include "pipeline/io/thread.h"

#include <errno.h>
#include <stdlib.h>

/* Least count of shapes of a thread; most threads. */
enum { LEAST = 256, WORKERS_MAX = 64 };

struct worker {
    const struct pb_vector_work *work;
    size_t from, end; /* its entries */
    struct pb_vector_placer place;
    struct pb_vector_shape_reader reader;
    /* Copies, because an object of PROJ's is used by one thread at a time; NULL: no systems. */
    OGRSpatialReferenceH file, scene;
    pthread_t thread;
    bool is_started;
    int rc;
    size_t failed;
};

static int add_polygon(void *user, OGRGeometryH polygon)
{
    return pb_vector_placer_polygon(user, polygon);
}

static void *run(void *user)
{
    struct worker *w = user;
    struct pb_vector_make *make = &w->place.make;
    pb_gdal_listen(&w->place.words, NULL);
    for (size_t i = w->from; w->rc == 0 && i < w->end; i++) {
        w->failed = i;
        w->rc = pb_vector_make_polygon(make, 0);
        if (w->rc == 0)
            w->rc = pb_vector_shape_read(&w->reader, w->work->shapes, w->work->later[i].shape,
                                         add_polygon, &w->place);
    }
    pb_gdal_unlisten();
    return NULL;
}

/* Prepares a worker for its part of the entries. */
static int init(struct worker *w, const struct pb_vector_work *work, size_t number, size_t n)
{
    const struct pb_vector_way *way = &work->place->way;
    w->work = work;
    w->from = work->n * number / n;
    w->end = work->n * (number + 1) / n;
    w->file = way->file != NULL ? OSRClone(way->file) : NULL;
    w->scene = way->scene != NULL ? OSRClone(way->scene) : NULL;
    w->place.reach = work->place->reach;
    return pb_vector_placer_init(&w->place, w->file, w->scene, &work->scene->info, way->tolerance);
}

static void fini(struct worker *w)
{
    pb_vector_placer_fini(&w->place);
    pb_vector_shape_reader_free(&w->reader);
    if (w->file != NULL)
        OSRDestroySpatialReference(w->file);
    if (w->scene != NULL)
        OSRDestroySpatialReference(w->scene);
}

/* Joins the results of the workers in their order. */
static int join(struct pb_vector_work *work, struct worker *worker, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = worker[i].rc;
        work->failed = worker[i].failed;
        work->wkb_bytes += worker[i].reader.wkb_bytes;
    }
    if (rc < 0)
        return rc;
    pb_vector_shapes_free(work->shapes);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct pb_vector_make *from = &worker[i].place.make;
        work->place->wrap.split |= worker[i].place.wrap.split;
        work->failed = worker[i].from;
        for (size_t k = 0; k < from->n; k++)
            from->polygon[k].fid = (int64_t)work->later[worker[i].from + k].polygon;
        rc = work->place->make.n_vertices + from->n_vertices > PB_VECTOR_VERTICES_MAX
                 ? -E2BIG
                 : pb_vector_make_append(&work->place->make, from);
    }
    return rc;
}

int pb_vector_workers_run(struct pb_vector_work *work)
{
    size_t n = work->n / LEAST + 1;
    n = n < work->threads ? n : work->threads;
    n = n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : n;
    struct worker *worker = calloc(n, sizeof *worker);
    int rc = worker != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = init(&worker[i], work, i, n);
    for (size_t i = 1; rc == 0 && i < n; i++)
        worker[i].is_started = pb_thread_start(&worker[i].thread, run, &worker[i]) == 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!worker[i].is_started)
            (void)run(&worker[i]);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (worker[i].is_started)
            (void)pthread_join(worker[i].thread, NULL);
    if (rc == 0)
        rc = join(work, worker, n);
    for (size_t i = 0; worker != NULL && i < n; i++)
        fini(&worker[i]);
    free(worker);
    return rc;
}
