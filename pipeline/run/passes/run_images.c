/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Sizes of areas are computed while tiles arrive, from the planes in memory; the two rounds after
 * that (kernels/areas/areas.h) read cells again. */
#include "pipeline/run/passes/run_images.h"
#include "pipeline/images/image_store.h"
#include "pipeline/io/thread.h"
#include "pipeline/plan/work.h"
#include "pipeline/profile/work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct image {
    struct pb_image_store *store; /* NULL: no pass has made it yet */
    struct pb_areas *areas;       /* while it is made */
    uint32_t output;              /* output of the pass that makes it */
    uint32_t file;                /* number of the source */
};

/* Buffers of a thread. */
struct scratch {
    float *pixels; /* pixels of a cell */
    void *areas;
};

struct pb_run_images {
    const struct pb_plan *plan;
    const char *directory;
    const struct pb_raster *raster[PB_FILES_MAX];
    struct pb_raster *own[PB_FILES_MAX]; /* rasters of images, by source */
    struct image *image;
    size_t n;
    const struct pb_plan *pass;  /* current pass that makes images; NULL if absent */
    const struct pb_plan *ended; /* last pass that has made images */
    uint32_t workers;
    struct scratch *scratch; /* one for each worker */
    _Atomic uint64_t done;   /* cells, in each round */
};

/* --- before a pass ---------------------------------------------------------------------------- */

/* Earlier pass that makes image k, and the output that it is made from; NULL if no pass does. */
static const struct pb_plan *pass_of(const struct pb_plan *plan, size_t k, uint32_t *out_output)
{
    for (size_t i = 0; i < plan->n_earlier; i++) {
        const struct pb_chain_image *made;
        size_t n = pb_chain_images(plan->earlier[i]->work.chain, &made);
        for (size_t m = 0; m < n; m++)
            if (made[m].number == k) {
                *out_output = made[m].output;
                return plan->earlier[i];
            }
    }
    return NULL;
}

static int make_image(struct pb_run_images *s, size_t k, struct pb_err *err)
{
    struct image *image = &s->image[k];
    const struct pb_plan *pass = pass_of(s->plan, k, &image->output);
    image->file = s->plan->work.first_image + (uint32_t)k;
    const struct pb_raster_info *info = &s->plan->work.info[image->file];
    if (pass == NULL)
        return 0; /* no step depends on it */
    const int32_t side = pb_areas_side(pass->layout.grid.side_px);
    int rc =
        pb_image_store_create(s->directory, info->width, info->height, side, err, &image->store);
    if (rc < 0)
        return rc;
    const struct pb_raster_made made = {.width = info->width,
                                        .height = info->height,
                                        .n_bands = 1,
                                        .type = PB_F32,
                                        .fill = pb_image_store_get,
                                        .of = image->store};
    rc = pb_raster_make(&made, err, &s->own[image->file]);
    s->raster[image->file] = s->own[image->file];
    return rc;
}

int pb_run_images_create(const struct pb_plan *plan, const struct pb_raster *const *raster,
                         const char *directory, struct pb_err *err,
                         struct pb_run_images **out_images)
{
    struct pb_run_images *s = calloc(1, sizeof *s);
    if (s == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the images of a step that sieves");
    s->plan = plan;
    s->directory = directory;
    s->n = plan->work.n_images;
    memcpy(s->raster, raster,
           (plan->work.n_sources - plan->work.n_images) * sizeof(struct pb_raster *));
    s->image = calloc(s->n, sizeof *s->image);
    int rc = s->image != NULL
                 ? 0
                 : pb_fail(err, PB_E_MEMORY, "out of memory for the images of a step that sieves");
    for (size_t k = 0; k < s->n && s->image != NULL && rc == 0; k++)
        rc = make_image(s, k, err);
    if (rc < 0) {
        pb_run_images_destroy(s);
        return rc;
    }
    *out_images = s;
    return 0;
}

const struct pb_raster *const *pb_run_images_rasters(const struct pb_run_images *images)
{
    return images->raster;
}

/* Frees the memory of a pass. */
static void forget_pass(struct pb_run_images *s)
{
    for (size_t k = 0; k < s->n && s->image != NULL; k++) {
        pb_areas_destroy(s->image[k].areas);
        s->image[k].areas = NULL;
    }
    for (uint32_t i = 0; i < s->workers && s->scratch != NULL; i++) {
        free(s->scratch[i].pixels);
        free(s->scratch[i].areas);
    }
    free(s->scratch);
    s->scratch = NULL;
    s->pass = NULL;
}

void pb_run_images_destroy(struct pb_run_images *s)
{
    if (s == NULL)
        return;
    forget_pass(s);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        pb_raster_close(s->own[i]);
    for (size_t k = 0; k < s->n && s->image != NULL; k++)
        pb_image_store_destroy(s->image[k].store);
    free(s->image);
    free(s);
}

static int make_scratch(struct pb_run_images *s, const struct pb_plan *pass, struct pb_err *err)
{
    const struct pb_grid *g = &pass->layout.grid;
    const int32_t side = pb_areas_side(g->side_px);
    bool all = true;
    s->workers = pb_plan_sink_workers(pass);
    s->scratch = calloc(s->workers, sizeof *s->scratch);
    for (uint32_t i = 0; i < s->workers && s->scratch != NULL; i++) {
        s->scratch[i].pixels = malloc((size_t)side * (size_t)side * sizeof(float));
        s->scratch[i].areas = malloc(pb_areas_scratch_bytes(g->image_w, g->image_h, side));
        all = all && s->scratch[i].pixels != NULL && s->scratch[i].areas != NULL;
    }
    return s->scratch != NULL && all ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory for sieving");
}

int pb_run_images_begin(struct pb_run_images *s, const struct pb_plan *pass, struct pb_err *err)
{
    const struct pb_grid *g = &pass->layout.grid;
    const struct pb_chain_image *made;
    size_t n = pb_chain_images(pass->work.chain, &made);
    int rc = 0;
    if (!pass->is_earlier || n == 0 || s->ended == pass) /* its later rounds make no image */
        return 0;
    s->pass = pass;
    rc = make_scratch(s, pass, err);
    for (size_t m = 0; m < n && rc == 0; m++)
        if (pb_areas_create(&made[m].sieve, g->image_w, g->image_h, pb_areas_side(g->side_px),
                            &s->image[made[m].number].areas) < 0)
            rc = pb_fail(err, PB_E_MEMORY, "out of memory for the areas of an image of %d x %d",
                         (int)g->image_w, (int)g->image_h);
    return rc;
}

/* --- tiles ------------------------------------------------------------------------------------ */

/* Stores a cell of a tile and finds its areas. */
static int take_cell(const struct pb_run_images *s, struct image *image, uint32_t cell,
                     const struct pb_tile *tile, const float *plane, uint32_t worker,
                     struct pb_err *err)
{
    const struct pb_rect rect = pb_areas_cell(image->areas, cell);
    const size_t stride = (size_t)tile->core.w, w = (size_t)rect.w;
    const float *from =
        plane + (size_t)(rect.y - tile->core.y) * stride + (size_t)(rect.x - tile->core.x);
    float *pixels = s->scratch[worker].pixels;
    for (int32_t y = 0; y < rect.h; y++)
        memcpy(pixels + (size_t)y * w, from + (size_t)y * stride, w * sizeof *pixels);
    pb_areas_add(image->areas, cell, pixels, w, s->scratch[worker].areas);
    return pb_image_store_put(image->store, cell, pixels, err);
}

static int take_tile(void *object, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                     uint32_t worker, struct pb_err *err)
{
    struct pb_run_images *s = object;
    if (s->pass == NULL || pixels->plane_px == 0)
        return 0;
    const struct pb_grid *g = &s->pass->layout.grid;
    const int32_t side = pb_areas_side(g->side_px), cols = (g->image_w + side - 1) / side;
    const struct pb_rect *core = &tile->core;
    int rc = 0;
    for (size_t k = 0; k < s->n; k++)
        for (int32_t y = core->y; y < core->y + core->h && s->image[k].areas != NULL; y += side)
            for (int32_t x = core->x; x < core->x + core->w && rc == 0; x += side)
                rc = take_cell(s, &s->image[k], (uint32_t)(y / side * cols + x / side), tile,
                               pixels->data + s->image[k].output * pixels->plane_px, worker, err);
    return rc;
}

bool pb_run_images_sink(struct pb_run_images *s, struct pb_sink *out_sink)
{
    *out_sink = (struct pb_sink){.tile = take_tile, .object = s};
    return s->pass != NULL;
}

/* --- sieving ---------------------------------------------------------------------------------- */

/* One round over all cells of an image. */
struct round {
    struct pb_run_images *images;
    struct image *image;
    const atomic_bool *stop;
    bool replace;
    _Atomic uint32_t next, workers;
    atomic_bool failed;
    pthread_mutex_t lock;
    struct pb_err err; /* the first failure; under the lock */
};

static int do_cell(const struct round *r, uint32_t cell, const struct scratch *scratch,
                   struct pb_err *err)
{
    struct image *image = r->image;
    const struct pb_rect rect = pb_areas_cell(image->areas, cell);
    const size_t w = (size_t)rect.w;
    if (!pb_image_store_has(image->store, cell))
        return 0;
    int rc = pb_image_store_get(image->store, 1, &rect, scratch->pixels, w * sizeof(float), err);
    if (rc < 0)
        return rc;
    if (!r->replace)
        pb_areas_look(image->areas, cell, scratch->pixels, w, scratch->areas);
    else if (pb_areas_replace(image->areas, cell, scratch->pixels, w, scratch->areas))
        rc = pb_image_store_put(image->store, cell, scratch->pixels, err);
    return rc;
}

static void *work(void *arg)
{
    struct round *r = arg;
    const uint32_t cells = pb_areas_cells(r->image->areas);
    const struct scratch *scratch = &r->images->scratch[atomic_fetch_add(&r->workers, 1)];
    struct pb_err err = {0};
    int rc = 0;
    for (uint32_t cell; rc == 0 && (cell = atomic_fetch_add(&r->next, 1)) < cells;) {
        if (atomic_load(&r->failed) || atomic_load(r->stop))
            break;
        pb_work_begin(PB_WORK_COMPUTE, cell);
        rc = do_cell(r, cell, scratch, &err);
        pb_work_end();
        atomic_fetch_add(&r->images->done, 1);
    }
    if (rc < 0) {
        pthread_mutex_lock(&r->lock);
        if (!atomic_exchange(&r->failed, true))
            r->err = err;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

/* The calling thread is one of the workers; with fewer threads it takes longer, with equal results.
 */
static int run_round(struct pb_run_images *s, struct image *image, bool replace,
                     const atomic_bool *stop, struct pb_err *err)
{
    struct round r = {.images = s, .image = image, .stop = stop, .replace = replace};
    pthread_t *threads = calloc(s->workers, sizeof *threads);
    uint32_t n = 0;
    pthread_mutex_init(&r.lock, NULL);
    while (threads != NULL && n + 1 < s->workers && pb_thread_start(&threads[n], work, &r) == 0)
        n++;
    (void)work(&r);
    for (uint32_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
    pthread_mutex_destroy(&r.lock);
    if (!atomic_load(&r.failed))
        return 0;
    if (err != NULL && err->code == PB_OK)
        *err = r.err;
    return pb_code_errno(r.err.code);
}

static bool is_stopped(const void *stop)
{
    return atomic_load((const atomic_bool *)stop);
}

/* Ends early when `stop` is set, which is not a failure: the image is not used then. */
static int sieve_image(struct pb_run_images *s, struct image *image, const atomic_bool *stop,
                       struct pb_err *err)
{
    if (!pb_areas_connect(image->areas, is_stopped, stop))
        return 0;
    const int rc = run_round(s, image, false, stop, err);
    if (rc < 0 || !pb_areas_resolve(image->areas, is_stopped, stop))
        return rc;
    return run_round(s, image, true, stop, err);
}

int pb_run_images_end(struct pb_run_images *s, const atomic_bool *stop, struct pb_err *err)
{
    int rc = 0;
    if (s->pass == NULL)
        return 0;
    for (size_t k = 0; k < s->n && rc == 0; k++)
        if (s->image[k].areas != NULL)
            rc = sieve_image(s, &s->image[k], stop, err);
    s->ended = s->pass;
    forget_pass(s);
    return rc;
}

void pb_run_images_progress(const struct pb_run_images *s, uint64_t *out_done, uint64_t *out_total)
{
    *out_done = atomic_load(&s->done);
    *out_total = pb_plan_image_steps(s->plan);
}
