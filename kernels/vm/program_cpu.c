/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter for CPUs: the rectangle is swept in strips of a row; every instruction runs over
 * the whole strip before the next one, so decoding costs nothing per pixel and the inner loops are
 * plain array loops. The registers of a strip are meant to stay in the first-level cache, so more
 * registers make shorter strips. What is done to each strip is found once for a sweep
 * (program_steps.h). */
#include "kernels/pixel.h"
#include "kernels/vm/curve_pixel.h"
#include "kernels/vm/program_steps.h"

#define CACHE_PX  (32 * 1024 / (int32_t)sizeof(float)) /* all registers together, about */
#define STRIP_MAX 512
#define STRIP_MIN 128
#define PAD_PX    48 /* keeps registers from falling onto the same cache sets */

static int32_t strip_px(uint32_t n_registers)
{
    const int32_t px = CACHE_PX / (int32_t)(n_registers ? n_registers : 1) / 64 * 64;

    return px < STRIP_MIN ? STRIP_MIN : px > STRIP_MAX ? STRIP_MAX : px;
}

static size_t register_bytes(uint32_t n_registers)
{
    return (size_t)n_registers * (size_t)(strip_px(n_registers) + PAD_PX) * sizeof(float);
}

size_t pb_program_cpu_bytes(uint32_t n_registers, uint32_t n_code)
{
    return register_bytes(n_registers) + n_code * sizeof(struct pb_strip_step);
}

static void run_input(struct pb_strip *s, const struct pb_strip_step *step)
{
    const struct pb_instr *const instr = step->instr;
    const struct pb_sweep *const sweep = s->sweep;
    const struct pb_program_input *const input = &sweep->inputs[instr->index];
    const struct pb_window *const in = &sweep->in.window[input->window];
    const int32_t dx = sweep->places ? sweep->places[instr->src[0]].dx : 0;
    const int32_t dy = sweep->places ? sweep->places[instr->src[0]].dy : 0;
    const size_t row = (size_t)(s->y + dy - in->rect.y), col = (size_t)(s->x + dx - in->rect.x);
    const uint8_t *const px = (const uint8_t *)in->data + input->plane * in->plane_bytes +
                              row * in->row_bytes + col * pb_type_bytes((enum pb_type)input->type);

    pb_vm_loads[input->type](input, px, pb_strip_register(s, instr->dst), s->n);
    if (in->mask)
        pb_vm_mask(in->mask + row * in->mask_row_bytes + col, pb_strip_register(s, instr->dst),
                   s->n);
}

/* Address of pixel (x, y) in a plane whose first pixel is the corner of `rect`. */
static size_t plane_offset(int32_t x, int32_t y, const struct pb_rect *rect, size_t row)
{
    return (size_t)(y - rect->y) * row + (size_t)(x - rect->x);
}

/* Where the plane of a step has the strip. */
static const float *plane_of(const struct pb_strip *s, const struct pb_strip_step *step)
{
    const struct pb_instr *const instr = step->instr;
    const struct pb_sweep *const sweep = s->sweep;
    const struct pb_tile_in *const in = &sweep->in;
    const struct pb_leaf_place *const at = sweep->places ? &sweep->places[instr->src[0]] : NULL;
    const struct pb_rect rect =
        at && at->apart
            ? pb_rect_grow(&sweep->bases[at->grid], instr->margin, at->grid_w, at->grid_h)
        : at ? pb_rect_on(&at->map, at->grid_w, at->grid_h, &in->core, instr->margin)
             : pb_rect_grow(&in->core, instr->margin, in->image_w, in->image_h);
    const int32_t x = at ? s->x + at->dx : s->x, y = at ? s->y + at->dy : s->y;

    return sweep->planes + instr->index * sweep->plane_px +
           plane_offset(x, y, &rect, (size_t)rect.w);
}

static void run_plane(struct pb_strip *s, const struct pb_strip_step *step)
{
    s->plane[step->dst] = plane_of(s, step);
}

static void run_plane_copied(struct pb_strip *s, const struct pb_strip_step *step)
{
    memcpy(pb_strip_register(s, step->dst), plane_of(s, step), s->n * sizeof(float));
}

static void run_column(struct pb_strip *s, const struct pb_strip_step *step)
{
    const struct pb_leaf_place *const places = s->sweep->places;
    const int32_t x = s->x + (places ? places[step->src[0]].dx : 0);

    pb_vm_count(x, pb_strip_register(s, step->dst), s->n);
}

static void run_row(struct pb_strip *s, const struct pb_strip_step *step)
{
    const struct pb_leaf_place *const places = s->sweep->places;

    s->even[step->dst] = (float)(s->y + (places ? places[step->src[0]].dy : 0));
}

static void run_number(struct pb_strip *s, const struct pb_strip_step *step)
{
    s->even[step->dst] = *step->imm[0];
}

float *pb_strip_output(const struct pb_strip *s, uint16_t index)
{
    const struct pb_sweep *const sweep = s->sweep;

    return sweep->out + index * sweep->out_px +
           plane_offset(s->x, s->y, &sweep->rect, sweep->out_row);
}

static void run_store(struct pb_strip *s, const struct pb_strip_step *step)
{
    pb_vm_store(pb_strip_source(s, step, 0), pb_strip_output(s, step->instr->index), s->n);
}

static void run_store_one(struct pb_strip *s, const struct pb_strip_step *step)
{
    pb_vm_fill(pb_pixel_result(*step->imm[0]), pb_strip_output(s, step->instr->index), s->n);
}

static const float *knots_of(const struct pb_strip *s, const struct pb_strip_step *step)
{
    return (const float *)(const void *)(s->sweep->code + step->instr->curve.at);
}

static void run_curve(struct pb_strip *s, const struct pb_strip_step *step)
{
    pb_vm_curve(knots_of(s, step), step->instr->curve.n, pb_strip_source(s, step, 0),
                pb_strip_register(s, step->dst), s->n);
}

static void run_curve_one(struct pb_strip *s, const struct pb_strip_step *step)
{
    s->even[step->dst] = pb_curve_at(knots_of(s, step), step->instr->curve.n, *step->imm[0]);
}

pb_strip_run *const pb_strip_others[PB_CODE_COUNT][2] = {
    [PB_CODE_CONST] = {NULL, run_number},
    [PB_CODE_INPUT] = {run_input, NULL},
    [PB_CODE_PLANE] = {run_plane_copied, run_plane},
    [PB_CODE_INDEX] = {run_column, run_row},
    [PB_CODE_CURVE] = {run_curve, run_curve_one},
    [PB_CODE_STORE] = {run_store, run_store_one}};

void pb_program_run_cpu(const struct pb_sweep *sweep, void *memory)
{
    const struct pb_rect *const rect = &sweep->rect;
    const int32_t px = strip_px(sweep->n_registers);
    struct pb_strip s = {.sweep = sweep, .registers = memory, .stride = (size_t)(px + PAD_PX)};
    struct pb_strip_step *const steps =
        (void *)((uint8_t *)memory + register_bytes(sweep->n_registers));
    const struct pb_strip_step *const end = steps + pb_strip_plan(&s, steps);

    for (int32_t y = 0; y < rect->h; y++)
        for (int32_t x = 0; x < rect->w; x += px) {
            s.x = rect->x + x;
            s.y = rect->y + y;
            s.n = (size_t)(rect->w - x < px ? rect->w - x : px);
            for (const struct pb_strip_step *step = steps; step < end; step++)
                step->run(&s, step);
        }
}
