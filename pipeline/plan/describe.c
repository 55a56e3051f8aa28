/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Describes a plan in text: for `run --dry-run` and check-config. */
#include "pipeline/plan/describe.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/memory.h"
#include "pipeline/plan/pages.h"
#include "pipeline/plan/staged.h"
#include "config/product_words.h"
#include "pipeline/plan/values.h"

#include <stdio.h>

/* Count of files that are read; those that are read straight into tiles; the cells of the first
 * other one. */
struct decoded {
    size_t files, direct;
    const struct pb_plan_cells *cells;
};

static struct decoded decoded_of(const struct pb_plan *plan)
{
    struct decoded d = {0, 0, NULL};
    for (size_t i = 0; i < plan->work.n_sources; i++) {
        const struct pb_plan_cells *cells = &plan->layout.decoding.cells[i];
        bool is_read = plan->work.source[i].n_bands > 0;
        d.files += is_read;
        d.direct += is_read && cells->count == 0;
        d.cells = d.cells == NULL && is_read && cells->count > 0 ? cells : d.cells;
    }
    return d;
}

static int describe_cells(const struct pb_plan *plan, char *text, size_t bytes)
{
    const struct decoded d = decoded_of(plan);
    char direct[80] = "";
    if (plan->engine.whole.used) /* reported in the line of codecs */
        return snprintf(text, bytes, "%s", "");
    if (d.cells == NULL)
        return snprintf(text, bytes, "decoding   every block once, straight into its tile\n");
    if (d.direct > 0)
        (void)snprintf(direct, sizeof direct, "%zu of %zu files straight into tiles, else ",
                       d.direct, d.files);
    return snprintf(text, bytes,
                    "decoding   every block %.2f times, %s%u cells of %d x %d px shared by "
                    "readers, stripes of %d of %d tiles\n",
                    plan->layout.decoding.decodes, direct, d.cells->count,
                    d.cells->shape.w + 2 * d.cells->shape.overlap, d.cells->shape.h,
                    pb_grid_stripe_cols(&plan->layout.grid), plan->layout.grid.cols);
}

void pb_plan_reason(const char *why, uint64_t would_do, char *text, size_t bytes)
{
    if (would_do == 0)
        (void)snprintf(text, bytes, "%s", why);
    else
        (void)snprintf(text, bytes, "%s: %llu MiB would do", why,
                       (unsigned long long)pb_plan_mib(would_do));
}

static void describe_device(const struct pb_plan *plan, char *text, size_t bytes)
{
    char chunks[200], made[100] = "", why[200];
    text[0] = '\0';
    if (!plan->engine.cuda)
        return;
    if (plan->engine.out.n > 0)
        (void)snprintf(made, sizeof made,
                       "           %u product%s made there of the decoded pixels, in %llu MiB\n",
                       plan->engine.out.n, plan->engine.out.n == 1 ? " is" : "s are",
                       (unsigned long long)pb_plan_mib(plan->engine.out.device_bytes));
    if (plan->engine.whole.used) {
        (void)snprintf(
            text, bytes,
            "kernel     one a tile, by streams and events\n"
            "codecs     blocks are decoded on the %s, in at most %llu MiB of the GPU's "
            "memory%s%s%s\n%s",
            plan->engine.whole.all_by_host ? "host and sent to the GPU" : "GPU",
            (unsigned long long)(plan->engine.whole.device_bytes >> 20),
            plan->engine.whole.shares ? ", and by cores of the host if these finish earlier" : "",
            plan->engine.whole.host_why == NULL ? ""
            : plan->engine.whole.all_by_host    ? ": "
                                                : "; the host decodes a part of it: ",
            plan->engine.whole.host_why != NULL ? plan->engine.whole.host_why : "", made);
        return;
    }
    pb_plan_reason(plan->engine.whole.why_not, plan->engine.whole.why_bytes, why, sizeof why);
    if (plan->engine.resident.used)
        (void)wic_transfer_plan_print(&plan->engine.resident.chunks, chunks, sizeof chunks);
    (void)snprintf(
        text, bytes, "kernel     %s: %s\ncodecs     blocks are decoded on the host: %s\n",
        plan->engine.resident.used ? "stays on the GPU" : "one a tile, by streams and events",
        plan->engine.resident.used ? chunks : plan->engine.resident.why_not, why);
}

/* Count of passes, with the rounds of each, that find their pixels on the GPU, including the last
 * pass. */
static size_t count_held(const struct pb_plan *plan)
{
    size_t held = 0;
    for (size_t i = 0; i < plan->n_earlier; i++) {
        const struct pb_plan *pass = plan->earlier[i];
        const bool stays =
            pass->engine.whole.keeps || (pass->engine.whole.used && pass->layout.sums.chain.n > 0);
        held += stays ? (size_t)pb_chain_rounds(pass->work.chain) - 1 : 0;
        held += pb_plan_whole_holds(pass, pass->next);
    }
    return held;
}

/* Purpose of the passes before the last: "2 reductions, 1 of them found on the GPU, and 1 sieved
 * image". */
static void describe_purpose(size_t reductions, size_t on_device, size_t images, char *text,
                             size_t bytes)
{
    char found[60] = "", numbers[120] = "", sieved[40] = "";
    if (on_device > 0)
        (void)snprintf(found, sizeof found, ", %zu of them found on the GPU", on_device);
    if (reductions > 0)
        (void)snprintf(numbers, sizeof numbers, "%zu reduction%s%s", reductions,
                       reductions == 1 ? "" : "s", found);
    if (images > 0)
        (void)snprintf(sieved, sizeof sieved, "%s%zu sieved image%s", reductions > 0 ? " and " : "",
                       images, images == 1 ? "" : "s");
    (void)snprintf(text, bytes, "%s%s", numbers, sieved);
}

static void describe_passes(const struct pb_plan *plan, char *text, size_t bytes)
{
    const struct pb_chain_reduction *reductions;
    const struct pb_chain_image *made;
    size_t passes = 0, again = 0, n = 0, there = 0, images = 0;
    char kept[60] = "", held[120] = "", purpose[160] = "";
    text[0] = '\0';
    for (size_t i = 0; i < plan->n_earlier; i++) {
        const struct pb_plan *pass = plan->earlier[i];
        size_t rounds = (size_t)pb_chain_rounds(pass->work.chain);
        passes += rounds;
        again += pass->memory.kept_bytes > 0 ? rounds - 1 : 0;
        const size_t own = pb_chain_reductions(pass->work.chain, &reductions);
        for (size_t k = 0; k < own; k++)
            there += pb_plan_out_reduces(pass, k);
        n += own;
        images += pb_chain_images(pass->work.chain, &made);
    }
    if (again > 0)
        (void)snprintf(kept, sizeof kept, ", %zu of them from memory", again);
    describe_purpose(n, there, images, purpose, sizeof purpose);
    const size_t on_device = count_held(plan);
    if (on_device > 0)
        (void)snprintf(
            held, sizeof held,
            "; %s%zu of the %zu passes in all take%s the pixels that are on the GPU already",
            passes > plan->n_earlier ? "up to " : "", on_device, passes + 1,
            on_device == 1 ? "s" : "");
    if (plan->n_earlier > 0)
        (void)snprintf(text, bytes, "before     %s%zu pass%s over the scene for %s%s%s\n",
                       passes > plan->n_earlier ? "up to " : "", passes, passes == 1 ? "" : "es",
                       purpose, kept, held);
}

static void describe_gate(const struct pb_plan *plan, char *text, size_t bytes)
{
    const char *why = pb_chain_gate_why(plan->work.chain);
    text[0] = '\0';
    if (plan->layout.gate.chain != NULL)
        (void)snprintf(text, bytes,
                       "gate       looked at first, tiles without a pixel that passes (%g %%) are "
                       "not read further\n",
                       100.0 * pb_chain_gate_minimum(plan->work.chain));
    else if (why[0] != '\0')
        (void)snprintf(text, bytes, "gate       leaves no tile out: %s\n", why);
}

/* Count of tiles in compute threads, streams or the resident kernel at a time. */
static uint32_t tiles_computed(const struct pb_plan *plan)
{
    uint32_t least = plan->layout.in_slots < plan->layout.out_slots ? plan->layout.in_slots
                                                                    : plan->layout.out_slots;
    return plan->engine.resident.used ? least : plan->layout.workers;
}

/* Describes the memory of the pass that needs the most. */
static void describe_memory(const struct pb_plan *plan, char *text, size_t bytes)
{
    static const char *const mem[] = {"host", "pinned"};
    const double mib = 1024.0 * 1024.0;
    char reductions[60] = "", kept[60] = "", rests[40] = "", room[60] = "", areas[60] = "";
    char planes[60] = "";
    if (plan->engine.whole.managed)
        (void)snprintf(planes, sizeof planes, ", planes %.0f (managed)",
                       (double)plan->engine.whole.planes_bytes / mib);
    if (plan->memory.image_bytes > 0)
        (void)snprintf(areas, sizeof areas, ", sieved areas %.0f (the pass before)",
                       (double)plan->memory.image_bytes / mib);
    if (plan->engine.out.room_bytes > 0)
        (void)snprintf(room, sizeof room, ", finished blocks %.0f",
                       (double)plan->engine.out.room_bytes / mib);
    if (pb_plan_rest_bytes(plan) > 0)
        (void)snprintf(rests, sizeof rests, ", digits %.0f",
                       (double)pb_plan_rest_bytes(plan) / mib);
    if (plan->memory.kept_bytes > 0)
        (void)snprintf(kept, sizeof kept, ", tiles for its rounds %.0f",
                       (double)plan->memory.kept_bytes / mib);
    if (plan->memory.reduce_bytes > 0)
        (void)snprintf(reductions, sizeof reductions, ", reductions %.0f (the pass before)",
                       (double)plan->memory.reduce_bytes / mib);
    (void)snprintf(
        text, bytes,
        "memory     %llu MiB: slots %u x %.1f in, %u x %.1f out (%s), decoded blocks "
        "%.0f, open files %.0f, products %.0f%s%s%s%s%s%s\n",
        (unsigned long long)pb_plan_mib(plan->memory.total_bytes), plan->layout.in_slots,
        (double)plan->layout.in_slot_bytes / mib, plan->layout.out_slots,
        (double)plan->layout.out_slot_bytes / mib, mem[plan->engine.mem],
        (double)plan->layout.decoding.cells_bytes / mib,
        (double)(plan->layout.decoding.cache_bytes + plan->layout.decoding.reader_bytes) / mib,
        (double)plan->memory.product_bytes / mib, planes, room, reductions, areas, kept, rests);
}

/* Describes bands of more digits than float32: those that keep them, and the pixels to be counted.
 */
static void describe_digits(const struct pb_plan *plan, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < plan->work.n_wide && used < bytes; i++) {
        const struct pb_plan_wide *band = &plan->work.wide[i];
        bool kept = false;
        for (size_t k = 0; k < plan->work.outputs.n; k++)
            kept = kept || (plan->work.outputs.rest[k].n > 0 && plan->work.outputs.rest_of[k] == i);
        used += (size_t)snprintf(text + used, bytes - used, "%-10s %s (%s): %s%s%s\n",
                                 i == 0 ? "digits" : "", band->name, pb_type_name(band->type),
                                 kept ? "all kept where it is stored as it is" : "",
                                 kept && band->count == PB_WIDE_ROUNDED ? "; " : "",
                                 band->count != PB_WIDE_ROUNDED ? ""
                                 : band->type == PB_F64
                                     ? "float32 where it is resampled"
                                     : "whole numbers up to 16777216 where it is computed with");
    }
}

/* Describes the cores that are idle for lack of memory. */
static void describe_idle(const struct pb_plan *plan, char *text, size_t bytes)
{
    const uint64_t wanted = pb_plan_wanted_bytes(plan);
    const struct pb_plan *least = plan;
    for (size_t i = 0; i < plan->n_earlier; i++)
        least = plan->earlier[i]->layout.writers < least->layout.writers ? plan->earlier[i] : least;
    text[0] = '\0';
    if (wanted > 0)
        (void)snprintf(text, bytes,
                       "idle       %u of %u cores, as compute.memory allows no more threads; with "
                       "%llu MiB none would be\n",
                       least->layout.threads_wanted - least->layout.writers,
                       least->layout.threads_wanted, (unsigned long long)pb_plan_mib(wanted));
}

/* Describes the part of the GPU that kernels may use. */
static void describe_share(const struct pb_plan *plan, char *text, size_t bytes)
{
    const struct pb_plan_engine *engine = &plan->engine;
    const bool is_kept = engine->share_why[0] == '\0';
    text[0] = '\0';
    if (engine->cuda && engine->share > 0)
        (void)snprintf(
            text, bytes, "share      %u of the GPU's %u multiprocessors%s%s\n", engine->share,
            engine->share_of,
            is_kept ? "" : "; kernels that do not stay may use all: ", engine->share_why);
}

/* Describes managed planes of the scene. */
static void describe_planes(const struct pb_plan *plan, char *text, size_t bytes)
{
    const struct pb_plan *pass = pb_plan_buffers_pass(plan);
    text[0] = '\0';
    if (!pass->engine.whole.managed)
        return;
    const struct pb_plan_pages pages = pb_plan_pages(pass);
    const uint64_t all = pass->engine.whole.planes_bytes;
    const uint64_t most = pages.chunk_bytes * ((uint64_t)pages.decoding + pages.computing);
    (void)snprintf(text, bytes,
                   "buffers    managed: %.0f MiB of planes, of which the GPU has at most %.0f at a "
                   "time\n",
                   (double)all / (1 << 20), (double)(most < all ? most : all) / (1 << 20));
}

static void describe_threads(const struct pb_plan *plan, char *text, size_t bytes)
{
    char reading[60] = "";
    if (plan->layout.lines > 0) {
        (void)snprintf(text, bytes,
                       "threads    lines are computed when they arrive, by %u thread%s; %u write "
                       "tiles\n",
                       plan->layout.strip_cols, plan->layout.strip_cols > 1 ? "s" : "",
                       plan->layout.writers);
        return;
    }
    if (plan->layout.readers < plan->layout.workers)
        (void)snprintf(reading, sizeof reading, ", %u of them reading at a time",
                       plan->layout.readers);
    if (plan->layout.by_workers)
        (void)snprintf(text, bytes,
                       "threads    %u, each with a tile from its file to the products%s\n",
                       plan->layout.workers, reading);
    else
        (void)snprintf(text, bytes, "threads    %u reading, %u %s, %u writing\n",
                       plan->layout.readers, tiles_computed(plan),
                       plan->engine.cuda ? "tiles on the GPU at a time" : "computing",
                       plan->layout.writers);
}

static size_t bands_in(const struct pb_plan *plan)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        n += plan->work.source[i].n_bands;
    return n;
}

int pb_plan_describe(const struct pb_plan *plan, char *text, size_t bytes)
{
    char decoding[200], device[700], passes[440], memory[440], gate[240], digits[400], idle[160];
    char kind[80] = "", threads[160], planes[300], share[260];
    const struct pb_plan_valid *valid = &plan->work.valid;
    (void)describe_cells(plan, decoding, sizeof decoding);
    describe_device(plan, device, sizeof device);
    describe_share(plan, share, sizeof share);
    describe_passes(plan, passes, sizeof passes);
    describe_gate(plan, gate, sizeof gate);
    describe_digits(plan, digits, sizeof digits);
    describe_memory(pb_plan_largest(plan), memory, sizeof memory);
    describe_idle(plan, idle, sizeof idle);
    describe_planes(plan, planes, sizeof planes);
    describe_threads(plan, threads, sizeof threads);
    if (plan->work.complex.kind != PB_COMPLEX_NONE)
        (void)snprintf(kind, sizeof kind, "pixels     %s, read as %s\n",
                       pb_complex_name(plan->work.complex.kind),
                       plan->work.complex.power ? "power, re^2 + im^2"
                                                : "amplitude, sqrt(re^2 + im^2)");
    return snprintf(text, bytes,
                    "tiles      %u of %d x %d px, halo %d, visited %s\n"
                    "%s"
                    "%s"
                    "valid      %s%s%s\n"
                    "%s"
                    "chain      %zu band%s in, %zu out, %zu instructions\n"
                    "%s%s%s%s%s%s%s%s",
                    pb_grid_count(&plan->layout.grid), plan->layout.grid.side_px,
                    plan->layout.grid.side_px, plan->work.halo,
                    plan->layout.order == PB_ORDER_Z ? "along a Z curve" : "by rows", decoding,
                    kind, valid->by, valid->notes[0] != '\0' ? "; " : "", valid->notes, digits,
                    bands_in(plan), bands_in(plan) == 1 ? "" : "s", plan->work.outputs.n,
                    pb_chain_instruction_count(plan->work.chain), gate, passes, threads, share,
                    device, planes, memory, idle);
}
