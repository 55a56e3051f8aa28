/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Runs whose tiles are computed by another process through shared memory, and the effect on that
 * process of a client that fills the memory with anything. */
#include "run_fixture.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/engine.h"

#include "config/yaml/report.h"
#include "pipeline/plan/served.h"
#include "wic/channel.h"

#include "run_suite.h"
#include "served_session.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SIDE = 64, COLS = 8, ROWS = 5, LEAST_TILES = 30, SECOND_MS = 1000 };

/* --- the other side, in this process --------------------------------------------------------- */

static int sessions;
static struct pb_served_job kept; /* memory of the side that computes, between two passes */
static int rooms;

static int open_session(void *user, const struct pb_plan *pass,
                        const struct pb_served_request *request, const struct pb_served_tail *tail,
                        struct pb_err *err, struct pb_remote_session *out)
{
    const void *before = kept.room.slots;
    int rc = served_session_open(user, pass, request, tail, &kept, err, out);
    rooms += kept.room.slots != before;
    sessions += rc == 0;
    return rc;
}

static struct pb_plan_request base_request(void)
{
    return (struct pb_plan_request){
        .config = config, .pipeline = pb_config_pipeline(config, "p"), .device_index = -1};
}

/* --- whole runs ------------------------------------------------------------------------------ */

static void run_into(const char *directory, const struct pb_remote *remote)
{
    struct pb_run_result result;
    struct pb_run *run = run_published(directory, remote, &result);
    ck_assert_str_eq(result.report.device, "cpu");
    ck_assert_str_eq(result.report.sync, "wic");
    ck_assert_uint_ge(result.report.stage[1].tiles, LEAST_TILES);
    pb_run_destroy(run);
}

static void expect_same_products(void)
{
    sessions = rooms = 0;
    char here[128], there[128], command[1000];
    struct pb_plan_request base = base_request();
    const struct pb_remote remote = {.device = "cpu",
                                     .device_index = -1,
                                     .user = &base,
                                     .open = open_session,
                                     .wait = served_session_wait,
                                     .close = served_session_close};
    snprintf(here, sizeof here, "%s/here", root);
    snprintf(there, sizeof there, "%s/there", root);
    run_into(here, NULL);
    run_into(there, &remote);
    pb_served_job_end(&kept);
    snprintf(command, sizeof command,
             "cd %s/scene/p && ls *.tif > %s/names && while read -r f; do cmp $f %s/scene/p/$f || "
             "exit 1; done < %s/names && rm -r %s %s",
             here, root, there, root, here, there);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(products_are_those_of_one_process)
{
    expect_same_products();
    ck_assert_int_eq(sessions, 1);
}
END_TEST

START_TEST(results_of_earlier_passes_travel)
{
    config_use_steps("", "      - math: {bands: {S: 'A + B', D: 'A - B'}}\n"
                         "      - stretch: {bands: [S, A]}\n"
                         "      - stretch: {bands: [S], method: stddev, beyond: keep}\n");
    expect_same_products();
    ck_assert_int_eq(sessions, 3); /* one a pass, whatever its rounds */
    ck_assert_int_eq(rooms, 1);    /* for all of them */
}
END_TEST

START_TEST(numbers_of_loops_travel)
{
    config_use_steps("", "      - classify: {bands: [A, B], classes: 3, as: S}\n");
    expect_same_products();
    ck_assert_int_ge(sessions, 4);
}
END_TEST

START_TEST(tiles_that_a_gate_leaves_out_are_not_sent)
{
    config_use_steps("", "      - gate: {keep: 'A < 250', bands: [A, B]}\n"
                         "      - math: {bands: {S: 'A + B'}}\n");
    expect_same_products();
}
END_TEST

/* Metadata of the scene are read by one side only. */
START_TEST(rules_of_calibration_travel)
{
    static const char text[] =
        "BEGIN_GROUP = BAND_A\n absCalFactor = 0.5;\n effectiveBandwidth = 2;\n"
        "END_GROUP = BAND_A\nBEGIN_GROUP = BAND_B\n absCalFactor = 3;\n"
        " effectiveBandwidth = 2;\nEND_GROUP = BAND_B\nBEGIN_GROUP = IMAGE_1\n"
        " satId = \"GE01\";\nEND_GROUP = IMAGE_1\nEND;\n";
    static const char yaml[] =
        "compute: {device: cpu, tile: 64}\n"
        "pipelines:\n"
        "  p:\n"
        "    input: {match: ['*.tif'], bands: {A: 1, B: 2}, metadata: '{scene}.IMD'}\n"
        "    steps:\n"
        "      - calibrate: {to: radiance, bands: [A, B]}\n"
        "    products:\n"
        "      - cog: {type: float32, blocksize: 64}\n";
    struct pb_err_list *errors = calloc(1, sizeof *errors);
    char path[160];
    snprintf(path, sizeof path, "%s/scene.IMD", root);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    pb_config_destroy(config);
    config = NULL;
    ck_assert_msg(pb_config_parse(yaml, strlen(yaml), "test", &pb_products, errors, &config) == 0,
                  "%s", errors->err[0].msg);
    free(errors);
    sessions = 0;
    expect_same_products();
    ck_assert_int_eq(sessions, 1);
}
END_TEST

/* The scene of the fixture, on the Earth: 500 x 300 pixels of 10 m of UTM zone 33. */
static void place_scene(void)
{
    enum { TAGS = 14, W = 500, H = 300, EXTRA = 8 + 2 + TAGS * 12 + 4, DATA = EXTRA + 104 };
    static const double scale[3] = {10, 10, 0}, tie[6] = {0, 0, 0, 399960, 5300040, 0};
    static const uint16_t keys[16] = {1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633};
    FILE *f = fopen(input, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite("II*\0\10\0\0\0", 1, 8, f);
    put16(f, TAGS);
    put_tag(f, 256, 4, 1, W);
    put_tag(f, 257, 4, 1, H);
    put_tag(f, 258, 3, 2, 8 * 65537);
    put_tag(f, 259, 3, 1, 1);
    put_tag(f, 262, 3, 1, 1);
    put_tag(f, 273, 4, 1, DATA);
    put_tag(f, 277, 3, 1, 2);
    put_tag(f, 278, 4, 1, H);
    put_tag(f, 279, 4, 1, W * H * 2);
    put_tag(f, 338, 3, 1, 0);
    put_tag(f, 339, 3, 2, 65537);
    put_tag(f, 33550, 12, 3, EXTRA);
    put_tag(f, 33922, 12, 6, EXTRA + 24);
    put_tag(f, 34735, 3, 16, EXTRA + 72);
    put32(f, 0);
    fwrite(scale, sizeof scale, 1, f);
    fwrite(tie, sizeof tie, 1, f);
    fwrite(keys, sizeof keys, 1, f);
    for (unsigned i = 0; i < W * H; i++) { /* smooth, and single pixels for a sieve */
        fputc((int)(i % W / 4 + i / W / 8), f);
        fputc((int)((i * 2654435761u) >> 31) * 7 + (int)(i % W / 100), f);
    }
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(ways_to_other_systems_travel)
{
    static const char *const method[] = {"nearest", "bilinear", "cubic",
                                         "lanczos", "average",  "mode"};
    place_scene();
    for (size_t i = 0; i < sizeof method / sizeof method[0]; i++) {
        char steps[300];
        snprintf(steps, sizeof steps,
                 "      - math: {bands: {S: 'A + B'}}\n"
                 "      - warp: {crs: 'EPSG:3857', pixel: 12, method: %s}\n",
                 method[i]);
        config_use_steps("", steps);
        expect_same_products();
        ck_assert_int_eq(sessions, 1);
    }
}
END_TEST

START_TEST(ways_travel_with_every_pass)
{
    place_scene();
    config_use_steps("", "      - warp: {crs: 'EPSG:4326', method: cubic}\n"
                         "      - stretch: {bands: [A, B]}\n"
                         "      - warp: {crs: 'EPSG:3857', pixel: 12}\n"
                         "      - math: {bands: {S: 'A + B'}}\n");
    expect_same_products();
    ck_assert_int_ge(sessions, 2);
}
END_TEST

START_TEST(curves_travel)
{
    place_scene();
    config_use_steps("", "      - histogram_match: {bands: [A], reference: [B]}\n"
                         "      - math: {bands: {S: 'A + B'}}\n");
    expect_same_products();
    ck_assert_int_ge(sessions, 2);
}
END_TEST

START_TEST(pixels_of_a_sieved_band_travel)
{
    place_scene();
    config_use_steps("", "      - sieve: {bands: [B], size: 9}\n"
                         "      - math: {bands: {S: 'A + B'}}\n");
    expect_same_products();
    ck_assert_int_eq(sessions, 2);
}
END_TEST

START_TEST(tiles_of_a_grid_are_those_of_one_process)
{
    place_scene();
    config_use_steps("", "      - math: {bands: {S: 'A + B'}}\n"
                         "      - warp: {grid: web-mercator, zoom: 13, size: 256}\n");
    expect_same_products();
    ck_assert_int_ge(sessions, 2); /* one a tile */
}
END_TEST

/* Facts that a process that owns a GPU finds in a request for blocks as they are stored. */
struct asked {
    struct pb_plan_request base;
    struct pb_err why;
    int rc;
    uint32_t whole;
    bool spoils; /* `from` is put in place of a value in the colours of the first product */
    float from;
};

static int serve_plan(void *user, const struct pb_plan *pass,
                      const struct pb_served_request *request, const struct pb_served_tail *tail,
                      struct pb_err *err, struct pb_remote_session *out)
{
    struct asked *asked = user;
    struct pb_plan *plan = NULL, *own = NULL;
    (void)out;
    asked->whole = request->whole;
    struct pb_served_tail sent = *tail;
    struct pb_paint_step *step = (void *)(sent.data + (sizeof(struct pb_plan_made) + 7) / 8 * 8);
    if (asked->spoils) {
        ck_assert_uint_gt(pass->engine.out.made[0].blocks.format.paint.n_steps, 2);
        step[2].from = asked->from;
    }
    asked->rc = pb_plan_serve(&asked->base, request, &sent, &asked->why, &plan, &own);
    pb_plan_destroy(plan);
    return pb_fail(err, PB_E_JOB_DISMISSED, "nothing is computed here");
}

/* Lets a process that owns a GPU plan a pipeline, with blocks as they are stored. tail: the end of
 * the configuration, after the sources. */
static void ask_for_blocks(const char *tail, struct asked *asked)
{
    static const struct pb_device_traits gpu = {.gpu = {"NVIDIA H200", 90, 132, 233472, 232448},
                                                .memory_bytes = UINT64_C(150) << 30};
    static const char format[] = "compute: {device: cuda, codecs: device, tile: 64}\n"
                                 "pipelines:\n"
                                 "  p:\n"
                                 "    input:\n"
                                 "      match: ['*.tif']\n"
                                 "      bands: {A: 1, B: 2}\n"
                                 "      sources: {X: {file: %s, bands: {X: 1}}}\n"
                                 "    steps:\n"
                                 "      - math: {bands: {S: 'A + B'}}\n"
                                 "    products:\n"
                                 "      - cog: {bands: [S], blocksize: 64, %s}\n";
    char yaml[sizeof format + sizeof input + 100];
    const struct pb_remote remote = {
        .device = "cuda:0", .traits = &gpu, .user = asked, .open = serve_plan};
    struct pb_err_list *errors = calloc(1, sizeof *errors);
    struct pb_err err = {0};
    struct pb_run *run = NULL;
    (void)snprintf(yaml, sizeof yaml, format, input, tail);
    pb_config_destroy(config);
    config = NULL;
    ck_assert_msg(pb_config_parse(yaml, strlen(yaml), "test", &pb_products, errors, &config) == 0,
                  "%s", errors->err[0].msg);
    free(errors);
    struct pb_run_options options = options_of(input);
    options.remote = &remote;
    asked->base = base_request();
    asked->base.device_index = 0;
    asked->base.traits = &gpu;
    asked->base.cuda = true;
    ck_assert_int_lt(pb_run_create(&options, &err, &run), 0);
    ck_assert_msg(err.code == PB_E_JOB_DISMISSED, "%s", err.msg);
    ck_assert_uint_gt(asked->whole, 0);
}

START_TEST(unread_file_is_accepted_where_blocks_are_as_stored)
{
    struct asked asked = {.rc = 1};
    ask_for_blocks("type: float32", &asked);
    ck_assert_msg(asked.rc == 0, "%s", asked.why.msg);
}
END_TEST

/* Colours follow the products in the tail. */
START_TEST(colours_in_a_tail_are_checked)
{
    static const float wrong[] = {NAN, INFINITY, -1e38F};
    struct asked asked = {.rc = 1};
    ask_for_blocks("range: [0, 500]", &asked);
    ck_assert_msg(asked.rc == 0, "%s", asked.why.msg);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        asked = (struct asked){.rc = 1, .spoils = true, .from = wrong[i]};
        ask_for_blocks("range: [0, 500]", &asked);
        ck_assert_int_eq(asked.why.code, PB_E_SERVICE_PROTOCOL);
    }
}
END_TEST

/* --- requests -------------------------------------------------------------------------------- */

static struct pb_served_request sound(void)
{
    struct pb_served_request r = {.side_px = SIDE,
                                  .in_slots = 4,
                                  .out_slots = 4,
                                  .workers = 2,
                                  .order = PB_ORDER_ROWS,
                                  .window_units = 3,
                                  .has_transform = true,
                                  .transform = {0, 1, 0, 0, 0, -1},
                                  .n_sources = 1};
    r.source[0] = (struct pb_served_source){
        .w = SIDE * COLS, .h = SIDE * ROWS, .n_bands = 2, .placed = true, .map = {1, 1, 0, 0}};
    return r;
}

static int serve(const struct pb_served_request *r, struct pb_served_tail *tail,
                 struct pb_served **out, int *out_fd)
{
    struct pb_plan_request base = base_request();
    struct pb_err err = {0};
    int rc = pb_served_create(&base, r, tail, &kept, &err, out, out_fd);
    pb_served_tail_free(tail);
    return rc;
}

/* tail: n of these structs. */
static void expect_refused_with(const struct pb_served_request *r, const void *tail, size_t bytes)
{
    struct pb_served_tail sent = {.data = NULL};
    struct pb_served *served = NULL;
    struct pb_err err = {0};
    int fd = -1;
    ck_assert_int_eq(pb_served_tail_add(&sent, tail, bytes, &err), 0);
    ck_assert_int_lt(serve(r, &sent, &served, &fd), 0);
    ck_assert_ptr_null(served);
    ck_assert_int_eq(fd, -1);
}

static void expect_refused(const struct pb_served_request *r)
{
    expect_refused_with(r, NULL, 0);
}

START_TEST(requests_that_make_no_sense_are_refused)
{
    struct pb_served_request r;
#define REFUSED(change) (r = sound(), change, expect_refused(&r))
    REFUSED(r.side_px = 0);
    REFUSED(r.side_px = 1 << 20);
    REFUSED(r.in_slots = 0);
    REFUSED(r.out_slots = 1u << 31);
    REFUSED(r.workers = 100000);
    REFUSED(r.order = 2);
    REFUSED(r.window_units = 0);
    REFUSED(r.stripe_cols = -1);
    REFUSED(r.unit_cols = INT32_MIN);
    REFUSED(r.window_units = PB_SERVED_WINDOW_MAX + 1);
    REFUSED(r.n_sources = 2);
    REFUSED(r.n_sources = UINT32_MAX);
    REFUSED(r.source[0].w = 0);
    REFUSED(r.source[0].w = INT32_MAX);
    REFUSED(r.source[0].h = -5);
    REFUSED(r.source[0].n_bands = 100000);
    REFUSED(r.source[0].n_bands = 1); /* the pipeline reads two */
    REFUSED(r.source[0].type = PB_TYPE_COUNT);
    REFUSED(r.source[0].type = -1);
    REFUSED(r.source[0].map.scale_x = 0);
    REFUSED(r.source[0].map.offset_y = NAN);
    REFUSED(r.transform[0] = INFINITY);
    REFUSED(r.unit.metres[1] = -1);
    REFUSED(r.unit.law = 7);
    REFUSED((r.unit.law = PB_GROUND_LATITUDE, r.unit.axis = 0));
    REFUSED((r.unit.law = PB_GROUND_MERCATOR, r.unit.axis = 6e6, r.unit.radians = NAN));
    REFUSED(r.unit.map_square = 1);
    REFUSED(r.n_areas = 1);
    REFUSED(r.n_areas = UINT32_MAX);
    REFUSED(r.pass = 1);
    REFUSED(r.room_bytes = UINT64_MAX);
    REFUSED(r.n_rules = 1);
    REFUSED(r.n_rules = UINT32_MAX);
    REFUSED((r.has_tile = 1, memset(r.tile.id, 'a', sizeof r.tile.id)));
    REFUSED((r.has_tile = 1, r.tile.bounds[3] = NAN));
    REFUSED((r.has_tile = 1, r.tile.pixel = -1));
    r = sound(); /* more than compute.memory */
    r.in_slots = PB_SERVED_SLOTS_MAX;
    r.side_px = 4096;
    r.source[0].w = r.source[0].h = 8192;
    expect_refused(&r);
}
END_TEST

START_TEST(facts_in_a_tail_are_checked)
{
    const struct pb_plan_area area = {.area = {.right = 5, .bottom = 5}};
    const struct pb_calibrated rule = {.rule = {.gain = 1}};
    const unsigned char byte = 2;
    struct pb_served_request r = sound();
#define AREA(change)                                                                               \
    do {                                                                                           \
        struct pb_plan_area a = area;                                                              \
        change;                                                                                    \
        expect_refused_with(&r, &a, sizeof a);                                                     \
    } while (0)
#define RULE(change)                                                                               \
    do {                                                                                           \
        struct pb_calibrated a = rule;                                                             \
        change;                                                                                    \
        expect_refused_with(&r, &a, sizeof a);                                                     \
    } while (0)
    r.n_areas = 1;
    AREA(a.area.right = NAN);
    AREA(a.area.has_cutline = true); /* the pipeline cuts nothing */
    AREA(memcpy(&a.area.none, &byte, 1));
    r.n_areas = 0;
    r.n_rules = 1;
    RULE(a.rule.gain = NAN);
    RULE(memcpy(&a.rule.has_planck, &byte, 1));
    RULE(memset(a.band, 'a', sizeof a.band));
    r.n_rules = 0; /* a fact too many */
    expect_refused_with(&r, &area, sizeof area);
}
END_TEST

/* --- shared words ---------------------------------------------------------------------------- */

struct hostile {
    struct pb_served *served;
    struct pb_tile_room room;
    struct pb_tile_pool pool;
};

static struct hostile hostile_begin(void)
{
    struct hostile h = {0};
    struct pb_err err = {0};
    struct pb_served_request r = sound();
    struct pb_tile_room room;
    int fd = -1;
    struct pb_served_tail none = {.data = NULL};
    ck_assert_int_eq(serve(&r, &none, &h.served, &fd), 0);
    const struct pb_plan *p = pb_served_plan(h.served);
    const struct pb_tile_pool_shape shape = served_session_shape(p);
    struct pb_tile_pool_shape larger = shape, more = shape;
    size_t bytes = pb_tile_pool_room_bytes(&shape);
    larger.in_slot_bytes += 4096;
    more.in_slots += 100;
    more.in_slot_bytes = more.out_slot_bytes = 1;
    ck_assert_int_lt(pb_tile_room_open(kept.room.fd, bytes + 4096, &err, &room), 0);
    ck_assert_int_eq(pb_tile_room_open(kept.room.fd, bytes, &err, &h.room), 0);
    ck_assert_int_lt(pb_tile_pool_open(&larger, &h.room, fd, &err, &h.pool), 0);
    ck_assert_int_lt(pb_tile_pool_open(&more, &h.room, fd, &err, &h.pool), 0);
    ck_assert_int_eq(ftruncate(fd, 4096), -1); /* sealed */
    ck_assert_int_eq(ftruncate(kept.room.fd, 4096), -1);
    ck_assert_int_eq(pb_tile_pool_open(&shape, &h.room, fd, &err, &h.pool), 0);
    close(fd);
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_served_start(h.served, &err), 0);
    return h;
}

static void hostile_end(struct hostile *h)
{
    pb_served_destroy(h->served);
    pb_tile_pool_close(&h->pool);
    pb_tile_room_close(&h->room);
    pb_served_job_end(&kept);
}

static int publish(struct hostile *h, const struct pb_tile *tile, size_t bytes)
{
    struct wic_slot slot;
    int rc = wic_acquire(h->pool.in, SECOND_MS * INT64_C(1000000), &slot);
    if (rc != 0)
        return rc;
    *(struct pb_tile *)slot.user = *tile;
    return wic_publish(h->pool.in, &slot, bytes);
}

START_TEST(of_a_tile_number_and_unit_count_alone)
{
    struct hostile h = hostile_begin();
    struct pb_err err = {0};
    struct wic_slot out;
    const struct pb_tile lie = {.number = 3,
                                .core = {-1000000, 5, INT32_MAX, INT32_MAX},
                                .read = {{INT32_MIN, 0, INT32_MAX, INT32_MAX}}};
    ck_assert_int_eq(publish(&h, &lie, 1), 0);
    ck_assert_int_eq(wic_wait(h.pool.out, WIC_FOREVER, &out), 0);
    const struct pb_tile *tile = out.user;
    ck_assert_uint_eq(tile->number, 3);
    ck_assert_uint_eq(tile->unit, 0);
    ck_assert_int_eq(tile->core.x, 3 * SIDE);
    ck_assert_int_eq(tile->core.w, SIDE);
    ck_assert_uint_eq(out.bytes, pb_plan_out_bytes(pb_served_plan(h.served), tile));
    ck_assert_int_eq(pb_served_wait(h.served, 0, &err), -ETIMEDOUT);
    hostile_end(&h);
}
END_TEST

START_TEST(a_tile_that_is_not_there_ends_the_session)
{
    struct hostile h = hostile_begin();
    struct pb_err err = {0};
    struct wic_slot out;
    ck_assert_int_eq(publish(&h, &(struct pb_tile){.number = COLS * ROWS}, 1), 0);
    ck_assert_int_lt(pb_served_wait(h.served, -1, &err), 0);
    ck_assert_int_eq(wic_wait(h.pool.out, WIC_FOREVER, &out), -ECANCELED);
    hostile_end(&h);
}
END_TEST

/* Sends two tiles; the second must end the session with these words. */
static void expect_out_of_turn(const struct pb_tile *first, const struct pb_tile *second,
                               const char *words)
{
    struct hostile h = hostile_begin();
    struct pb_err err = {0};
    ck_assert_int_eq(publish(&h, first, 1), 0);
    (void)publish(&h, second, 1); /* the first may have ended it */
    ck_assert_int_lt(pb_served_wait(h.served, -1, &err), 0);
    ck_assert_msg(strstr(err.msg, words) != NULL, "%s", err.msg);
    hostile_end(&h);
}

START_TEST(a_tile_out_of_its_turn_ends_the_session)
{
    const struct pb_tile tile = {.number = 3}, beyond = {.number = 3 * COLS, .unit = 3},
                         nowhere = {.number = 4, .unit = 77};
    expect_out_of_turn(&tile, &beyond, "tile 24 of unit 3 is not of a unit that is under way");
    expect_out_of_turn(&tile, &nowhere, "tile 4 of unit 77 is not of a unit that is under way");
}
END_TEST

START_TEST(a_tile_that_comes_twice_ends_the_session)
{
    struct hostile h = hostile_begin();
    struct pb_err err = {0};
    for (uint32_t i = 0; i < COLS; i++) {
        struct wic_slot out;
        ck_assert_int_eq(publish(&h, &(struct pb_tile){.number = i == 5 ? 4 : i}, 1), 0);
        if (i + 1 < COLS) {
            ck_assert_int_eq(wic_wait(h.pool.out, WIC_FOREVER, &out), 0);
            ck_assert_int_eq(wic_release(h.pool.out, &out), 0);
        }
    }
    ck_assert_int_lt(pb_served_wait(h.served, -1, &err), 0);
    ck_assert_msg(strstr(err.msg, "is not of its unit, or another one is not") != NULL, "%s",
                  err.msg);
    hostile_end(&h);
}
END_TEST

/* Overwrites words of both channels without end, with numbers that tend to be troublesome. */
struct scribbler {
    struct hostile *h;
    atomic_bool stop;
};

static uint64_t nasty(unsigned *seed)
{
    static const uint64_t words[] = {0,          1,          2,  3,    UINT32_MAX, UINT64_MAX,
                                     1ull << 63, 1ull << 62, 64, 4096, 1u << 31,   UINT64_MAX / 2};
    return words[(unsigned)rand_r(seed) % (sizeof words / sizeof words[0])];
}

/* Races with everything that reads the words, like a hostile process: the thread sanitizer does not
 * see it. */
__attribute__((no_sanitize_thread)) static void scribble(struct wic_channel *channel,
                                                         unsigned *seed)
{
    unsigned char *from = (unsigned char *)channel + WIC_HEAD_BYTES;
    size_t bytes = sizeof *channel - WIC_HEAD_BYTES + channel->slots * sizeof channel->slot[0];
    size_t at = (size_t)rand_r(seed) % (bytes / 8);
    atomic_store_explicit((_Atomic uint64_t *)(void *)(from + 8 * at), nasty(seed),
                          memory_order_relaxed);
}

static void *scribbling(void *user)
{
    struct scribbler *s = user;
    unsigned seed = 5;
    while (!atomic_load(&s->stop)) {
        scribble(s->h->pool.in, &seed);
        scribble(s->h->pool.out, &seed);
    }
    return NULL;
}

START_TEST(any_words_leave_the_other_side_whole)
{
    for (unsigned i = 0; i < 20; i++) {
        struct hostile h = hostile_begin();
        struct scribbler s = {.h = &h};
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, scribbling, &s), 0);
        for (uint32_t t = 0; t < 20; t++) {
            struct wic_slot slot;
            if (wic_acquire(h.pool.in, 100000, &slot) == 0) {
                *(struct pb_tile *)slot.user = (struct pb_tile){.number = t, .unit = t / COLS};
                (void)wic_publish(h.pool.in, &slot, 64);
            }
            if (wic_wait(h.pool.out, 100000, &slot) == 0)
                (void)wic_release(h.pool.out, &slot);
        }
        pb_served_destroy(h.served); /* ends its threads during the scribbling */
        atomic_store(&s.stop, true);
        pthread_join(thread, NULL);
        pb_tile_pool_close(&h.pool);
        pb_tile_room_close(&h.room);
        pb_served_job_end(&kept);
    }
}
END_TEST

START_TEST(an_abort_here_ends_waits_whatever_the_words_say)
{
    struct hostile h = hostile_begin();
    struct pb_err err = {0};
    usleep(20000); /* its threads are parked */
    for (int role = WIC_PRODUCER; role <= WIC_CONSUMER; role++)
        atomic_store(&h.pool.in->side[role].waiters, 0);
    pb_served_abort(h.served);
    atomic_store(&h.pool.in->aborted, 0);
    atomic_store(&h.pool.out->aborted, 0);
    ck_assert_int_eq(pb_served_wait(h.served, 20 * SECOND_MS, &err), 0);
    hostile_end(&h);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("served");
    TCase *tc = tcase_create("served");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_add_test(tc, products_are_those_of_one_process);
    tcase_add_test(tc, results_of_earlier_passes_travel);
    tcase_add_test(tc, numbers_of_loops_travel);
    tcase_add_test(tc, rules_of_calibration_travel);
    tcase_add_test(tc, ways_to_other_systems_travel);
    tcase_add_test(tc, ways_travel_with_every_pass);
    tcase_add_test(tc, curves_travel);
    tcase_add_test(tc, pixels_of_a_sieved_band_travel);
    tcase_add_test(tc, tiles_of_a_grid_are_those_of_one_process);
    tcase_add_test(tc, tiles_that_a_gate_leaves_out_are_not_sent);
    tcase_add_test(tc, unread_file_is_accepted_where_blocks_are_as_stored);
    tcase_add_test(tc, colours_in_a_tail_are_checked);
    tcase_add_test(tc, requests_that_make_no_sense_are_refused);
    tcase_add_test(tc, facts_in_a_tail_are_checked);
    tcase_add_test(tc, of_a_tile_number_and_unit_count_alone);
    tcase_add_test(tc, a_tile_out_of_its_turn_ends_the_session);
    tcase_add_test(tc, a_tile_that_is_not_there_ends_the_session);
    tcase_add_test(tc, a_tile_that_comes_twice_ends_the_session);
    tcase_add_test(tc, any_words_leave_the_other_side_whole);
    tcase_add_test(tc, an_abort_here_ends_waits_whatever_the_words_say);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
