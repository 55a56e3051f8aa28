/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench_parts SCENE.tif OUT: CPU seconds of the parts of "NDVI to a float32 deflate COG", each on
 * one thread, with no channels, slots or other threads around them: blocks are decoded, computed
 * and encoded one after the other, with their overviews. In addition to these three, the seconds of
 * BLAKE3 for the encoded bytes, and those of the system for writing them to OUT. Red is band 3,
 * near infrared band 4. One JSON object. */
#include "config/limits_config.h"
#include "pipeline/cog/block_encoder.h"
#include "pipeline/cog/pyramid.h"
#include "pipeline/io/checksum.h"
#include "pipeline/raster/raster.h"
#include "tests/op_cases.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 512, PX = SIDE * SIDE };

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(200000000000),
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};

enum part { DECODE, COMPUTE, ENCODE, CHECKSUM, WRITE, PARTS };
static const char *const part_names[PARTS] = {"decode", "compute", "encode", "checksum", "write"};

static struct {
    double seconds[PARTS], since;
    struct pb_block_encoder *encoder;
    struct pb_sum *sum;
    uint64_t bytes;
    int fd;
} run;

/* Adds the time since the last call to `part`. */
static void count(enum part part)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    run.seconds[part] += now - run.since;
    run.since = now;
}

static void must(bool good, const char *what, const struct pb_err *err)
{
    if (good)
        return;
    (void)fprintf(stderr, "bench_parts: %s: %s\n", what, err ? err->msg : "failed");
    exit(EXIT_FAILURE);
}

/* Encodes, hashes and writes a block. */
static void encode(const struct pb_block_pixels *px)
{
    struct pb_err err = {0};
    const void *data;
    size_t bytes;

    must(pb_block_encode(run.encoder, px, &err, &data, &bytes) == 0, "encode", &err);
    count(ENCODE);
    pb_sum_add(run.sum, data, bytes);
    count(CHECKSUM);
    must(write(run.fd, data, bytes) == (ssize_t)bytes, "write", NULL);
    run.bytes += bytes;
    count(WRITE);
}

static int take_overview(void *user, uint32_t level, uint32_t col, uint32_t row, int32_t w,
                         int32_t h, const float *const *half, uint32_t worker, struct pb_err *err)
{
    (void)user, (void)level, (void)col, (void)row, (void)worker, (void)err;
    count(ENCODE); /* halving */
    encode(&(struct pb_block_pixels){&half[0], &half[1], SIDE / 2, SIDE, w, h});
    return 0;
}

static struct pb_chain *make_chain(void)
{
    const struct pb_op *const op = pb_op_find("index");
    struct pb_chain *chain = NULL;
    struct pb_diag diag;

    must(op_case_chain(op, &op->cases[0], PB_U16, false, 0, 1, 0, SIDE, &diag, &chain) == 0, "NDVI",
         NULL);
    return chain;
}

static void make_encoder(struct pb_block_format *format)
{
    struct pb_err err = {0};

    *format = (struct pb_block_format){.block_px = SIDE,
                                       .n_planes = 1,
                                       .n_bands = 1,
                                       .predictor = 3,
                                       .codec = &pb_codec_deflate,
                                       .level = pb_codec_deflate.default_float_level};
    (void)pb_quantizer_init(&format->quantizer, PB_F32, (double)NAN);
    must(pb_block_encoder_create(format, &err, &run.encoder) == 0, "encoder", &err);
    must((run.sum = pb_sum_create(PB_CHECKSUM_BLAKE3)) != NULL, "checksum", NULL);
}

static void one_tile(struct pb_raster *raster, const struct pb_chain *chain, void *scratch,
                     struct pb_pyramid *pyramid, const struct pb_rect *core)
{
    static uint16_t stored[2 * PX];
    static float made[PX];
    static const int32_t bands[] = {3, 4};
    const struct pb_raster_info *const info = pb_raster_info(raster);
    const struct pb_window to = {.data = stored,
                                 .row_bytes = (size_t)core->w * sizeof *stored,
                                 .plane_bytes = PX * sizeof *stored,
                                 .rect = *core};
    const struct pb_tile_in in = {
        .window[0] = to, .core = *core, .image_w = info->width, .image_h = info->height};
    const struct pb_tile_out out = {made, PX};
    const float *const plane = made;
    struct pb_err err = {0};

    must(pb_raster_read(raster, bands, 2, &to, &err) == 0, "decode", &err);
    count(DECODE);
    must(pb_chain_run_cpu(chain, &in, &out, scratch) == 0, "compute", NULL);
    count(COMPUTE);
    encode(&(struct pb_block_pixels){&plane, NULL, SIDE, (size_t)core->w, core->w, core->h});
    must(pb_pyramid_add(pyramid, core, &plane, (size_t)core->w, 0, &err) == 0, "overviews", &err);
    count(ENCODE);
}

static void all_tiles(struct pb_raster *raster, const struct pb_chain *chain)
{
    const struct pb_raster_info *const info = pb_raster_info(raster);
    struct pb_pyramid_options options = {.order = PB_ORDER_ROWS,
                                         .tiles_in_flight = 1,
                                         .workers = 1,
                                         .block_px = SIDE,
                                         .levels =
                                             pb_pyramid_levels(info->width, info->height, SIDE),
                                         .n_bands = 1,
                                         .sink = take_overview};
    struct pb_grid grid;
    struct pb_pyramid *pyramid = NULL;
    struct pb_err err = {0};
    void *const scratch =
        aligned_alloc(64, (pb_chain_scratch_bytes(chain, SIDE, SIDE) + 63) / 64 * 64 + 64);

    must(pb_grid_init(&grid, info->width, info->height, SIDE) == 0 && scratch, "tiles", NULL);
    options.grid = &grid;
    must(pb_pyramid_create(&options, &err, &pyramid) == 0, "overviews", &err);
    count(DECODE);
    memset(run.seconds, 0, sizeof run.seconds);
    for (uint32_t i = 0; i < pb_grid_count(&grid); i++) {
        const struct pb_rect core = pb_grid_core(&grid, i);
        if (i + 1 <
            pb_grid_count(&grid)) { /* its block is decoded together with this one's, as in a run */
            const struct pb_rect next = pb_grid_core(&grid, i + 1);
            pb_raster_expect(raster, &next);
        }
        one_tile(raster, chain, scratch, pyramid, &core);
    }
    pb_pyramid_destroy(pyramid);
    free(scratch);
}

int main(int argc, char **argv)
{
    struct pb_block_format format;
    struct pb_raster *raster = NULL;
    struct pb_err err = {0};
    char checksum[PB_CHECKSUM_TEXT_BYTES];

    if (argc != 3) {
        (void)fprintf(stderr, "usage: bench_parts SCENE.tif OUT\n");
        return 2;
    }
    pb_raster_init();
    must(pb_raster_open(argv[1], &limits, &err, &raster) == 0, argv[1], &err);
    run.fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    must(run.fd >= 0, argv[2], NULL);
    struct pb_chain *const chain = make_chain();
    make_encoder(&format);
    all_tiles(raster, chain);
    must(pb_sum_text(run.sum, checksum) == 0, "checksum", NULL);
    must(fsync(run.fd) == 0 && close(run.fd) == 0, argv[2], NULL);
    count(WRITE);
    printf("{");
    for (int i = 0; i < PARTS; i++)
        printf("\"%s\": %.3f, ", part_names[i], run.seconds[i]);
    printf("\"bytes\": %llu}\n", (unsigned long long)run.bytes);
    pb_sum_destroy(run.sum);
    pb_block_encoder_destroy(run.encoder);
    pb_chain_destroy(chain);
    pb_raster_close(raster);
    return EXIT_SUCCESS;
}
