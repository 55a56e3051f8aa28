/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A worker on the host (device/emulator.h) makes a whole product of stored blocks: the bytes are
 * those of the CPU, for all codecs, levels and halos; the host decodes blocks that it cannot
 * decode; it leaves on request, and when nothing arrives. */
#include "tests/device/emulate_ready.h"
#include "tests/device/emulate_work.h"
#include "tests/work_expect.h"

#include "run_suite.h"

#include <check.h>

#define LIMIT_NS UINT64_C(20000) /* ns of the emulator's clock, which advances with each look */

static const struct work_case cases[] = {
    {"deflate, float", 150, 130, 64, 64, 4, 2, PB_DEVICE_DEFLATE, false, false, PB_F32,
     PB_ENCODE_RUNS},
    {"every codec, halo", 150, 100, 48, 64, 2, 1, PB_DEVICE_CODECS, true, true, PB_F32,
     PB_ENCODE_RUNS},
    {"LZW, integers", 200, 140, 64, 128, 2, 2, PB_DEVICE_LZW, false, true, PB_I16,
     PB_ENCODE_INTEGERS},
    {"stored, raw", 100, 70, 32, 64, 3, 2, PB_DEVICE_STORED, false, false, PB_U8, PB_ENCODE_RAW},
};

struct place {
    struct work_scene scene;
    void *rings;
    uint8_t *out;
    void *taken[64];
};

static struct place place;
static size_t n_taken;

static void *take(size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 511) / 256 * 256);
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_lt(n_taken, sizeof place.taken / sizeof *place.taken);
    return place.taken[n_taken++] = memset(memory, 0xa5, (bytes + 511) / 256 * 256);
}

static void run_part(const struct pb_chain *chain, const struct pb_tile_in *in,
                     const struct pb_rect *part, float *out, size_t out_px)
{
    const size_t bytes = (pb_chain_scratch_bytes(chain, part->w, part->h) + 64) / 64 * 64;
    void *scratch = aligned_alloc(64, bytes);
    struct pb_tile_in of_part = *in;
    of_part.core = *part; /* rows have the width of the tile */
    const struct pb_tile_out to = {out + (size_t)(part->y - in->core.y) * (size_t)in->core.w,
                                   out_px};
    ck_assert_ptr_nonnull(scratch);
    ck_assert_int_eq(pb_chain_run_cpu(chain, &of_part, &to, scratch), 0);
    free(scratch);
}

static void fill(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void make(const struct work_case *of)
{
    memset(&place, 0, sizeof place);
    n_taken = 0;
    struct work_scene *s = &place.scene;
    work_scene_make(of, (struct work_memory){take, fill}, 1 << 20, s);
    place.rings = take(wic_ready_bytes(s->most));
    place.out = take(s->needs.out_bytes);
    s->view.out_host = place.out;
    s->view.records = take(s->view.n_records * sizeof *s->view.records);
}

static void begin(void)
{
    struct work_scene *s = &place.scene;
    work_reset(s, place.rings, LIMIT_NS);
    memset(s->view.records, 0, s->view.n_records * sizeof *s->view.records);
}

/* Pushes like the copy engine: bytes, then the number of pieces that arrived. */
static void bring(uint32_t pieces)
{
    struct work_scene *s = &place.scene;
    for (uint32_t i = 0; i < pieces; i++)
        memcpy((uint8_t *)(uintptr_t)s->piece[i].stream.in, s->stored[work_kind(s, i)].bytes,
               s->piece[i].stream.in_bytes);
    s->view.ready.line->brought[PB_WORK_DECODE] = pieces;
}

static void unmake(void)
{
    work_scene_free(&place.scene);
    while (n_taken > 0)
        free(place.taken[--n_taken]);
}

static uint32_t stop_word(void)
{
    return *place.scene.view.ready.stop;
}

/* All blocks were reported, each once, and are the CPU's. */
static void check_product(void)
{
    struct work_scene *s = &place.scene;
    const uint32_t n = s->view.encode.batch.n_blocks;
    bool *told = work_host(n, sizeof *told);
    struct work_expect expect;
    work_expect_make(s, &expect);
    for (uint32_t i = 0, k = 0; k < n; i++) {
        const struct pb_work_record *r = &s->view.records[i];
        struct encode_reference want;
        ck_assert_msg(r->event != 0, "%s: %u of %u blocks were told", s->of->name, k, n);
        if (r->event != PB_WORK_BLOCK)
            continue;
        k++;
        ck_assert(!told[r->number]);
        told[r->number] = true;
        ck_assert(work_expect_block(s, &expect, r->number, &want));
        const char *differs = work_differs(s, &want, &r->encoded, place.out);
        ck_assert_msg(differs == NULL, "%s, block %u: %s differs", s->of->name, r->number, differs);
        encode_reference_free(&want);
    }
    work_expect_free(&expect);
    free(told);
}

START_TEST(a_worker_makes_what_the_cpu_makes)
{
    make(&cases[_i]);
    for (unsigned run = 0; run < 2; run++) { /* counters continue */
        begin();
        bring(place.scene.n_pieces);
        emulate_work(&place.scene.view, place.scene.chain, run_part, (unsigned)_i + 3 * run);
        ck_assert_uint_eq(stop_word(), WIC_READY_DONE);
        check_product();
    }
    unmake();
}
END_TEST

/* Pieces that have not arrived are waited for, but not longer than the limit; no part of them is
 * made. */
START_TEST(a_worker_leaves_when_nothing_comes)
{
    make(&cases[0]);
    begin();
    bring(place.scene.n_pieces - 1);
    emulate_work(&place.scene.view, place.scene.chain, run_part, 1);
    ck_assert_uint_eq(stop_word(), WIC_READY_LATE);
    const struct pb_work_record *r = place.scene.view.records;
    while (r->event != 0)
        ck_assert_uint_ne((r++)->number, place.scene.n_tiles - 1);
    ck_assert_uint_gt((size_t)(r - place.scene.view.records), 0);
    unmake();
}
END_TEST

START_TEST(a_worker_leaves_when_it_is_told_to)
{
    make(&cases[0]);
    begin();
    bring(place.scene.n_pieces);
    *place.scene.view.ready.stop = WIC_READY_ABORTED;
    emulate_work(&place.scene.view, place.scene.chain, run_part, 0);
    ck_assert_uint_eq(stop_word(), WIC_READY_ABORTED);
    ck_assert_uint_eq(place.scene.view.records[0].event, 0);
    unmake();
}
END_TEST

/* A piece that the device refuses is reported; the host brings its bytes and has it opened. */
START_TEST(refused_piece_is_opened_with_bytes_from_the_host)
{
    enum { BAD = 2 };
    struct work_scene *s = &place.scene;
    make(&cases[0]);
    begin();
    bring(s->n_pieces);
    ((uint8_t *)(uintptr_t)s->piece[BAD].stream.in)[0] ^= 0x40;
    emulate_work(&s->view, s->chain, run_part, 2);
    ck_assert_uint_eq(stop_word(), WIC_READY_LATE);
    uint32_t refused = 0, events = 0;
    for (; s->view.records[events].event != 0; events++)
        if (s->view.records[events].event == PB_WORK_REFUSED) {
            ck_assert_uint_eq(s->view.records[events].number, BAD);
            ck_assert_uint_eq(s->view.records[events].status, PB_DECODE_BAD);
            refused++;
        }
    ck_assert_uint_eq(refused, 1);

    const struct work_case *of = s->of;
    const size_t row = (size_t)of->side * of->bands, px = row * (size_t)of->side / of->bands;
    uint16_t *line = work_host(row, 2), *to = (uint16_t *)(void *)s->piece[BAD].stream.out;
    for (size_t y = 0; y < (size_t)of->side; y++) {
        for (size_t i = 0; i < row; i++)
            line[i] = s->kind[work_kind(s, BAD)]
                             [i % of->bands * px + y * (size_t)of->side + i / of->bands];
        pb_predict_row(of->predictor, PB_U16, line, (size_t)of->side, of->bands, to + y * row);
    }
    free(line);
    *s->view.ready.stop = WIC_READY_GOES_ON;
    emulate_push(&s->view.ready, PB_WORK_OPEN, BAD, 1);
    emulate_work(&s->view, s->chain, run_part, 1);
    ck_assert_uint_eq(stop_word(), WIC_READY_DONE);
    check_product();
    unmake();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("work");
    TCase *all = tcase_create("work");
    tcase_add_loop_test(all, a_worker_makes_what_the_cpu_makes, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_test(all, a_worker_leaves_when_nothing_comes);
    tcase_add_test(all, a_worker_leaves_when_it_is_told_to);
    tcase_add_test(all, refused_piece_is_opened_with_bytes_from_the_host);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
