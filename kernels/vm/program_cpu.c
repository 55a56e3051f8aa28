/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter for CPUs: the rectangle is swept in strips of a row; every instruction runs over
 * the whole strip before the next one, so decoding costs nothing per pixel and the inner loops are
 * plain array loops. The registers of a strip are meant to stay in the first-level cache, so more
 * registers make shorter strips. */
#include "kernels/vm/curve_pixel.h"
#include "kernels/vm/program.h"
#include "kernels/pixel.h"
#include "kernels/vm/vm_loops.h"

#define CACHE_PX  (32 * 1024 / (int32_t)sizeof(float)) /* all registers together, about */
#define STRIP_MAX 512
#define STRIP_MIN 128
#define PAD_PX    16 /* keeps registers from falling onto the same cache sets */

static int32_t strip_px(uint32_t n_registers)
{
    const int32_t px = CACHE_PX / (int32_t)(n_registers ? n_registers : 1) / 64 * 64;

    return px < STRIP_MIN ? STRIP_MIN : px > STRIP_MAX ? STRIP_MAX : px;
}

size_t pb_program_cpu_bytes(uint32_t n_registers)
{
    return (size_t)n_registers * (size_t)(strip_px(n_registers) + PAD_PX) * sizeof(float);
}

/* Where one strip is. */
struct strip {
    const struct pb_sweep *sweep;
    float *registers;
    size_t stride; /* px from register to register */
    int32_t x, y;  /* image */
    size_t n;
};

static float *reg(const struct strip *s, uint8_t r)
{
    return s->registers + r * s->stride;
}

static void run_input(const struct strip *s, const struct pb_instr *instr)
{
    const struct pb_sweep *const sweep = s->sweep;
    const struct pb_program_input *const input = &sweep->inputs[instr->index];
    const struct pb_window *const in = &sweep->in.window[input->window];
    const int32_t dx = sweep->places ? sweep->places[instr->src[0]].dx : 0;
    const int32_t dy = sweep->places ? sweep->places[instr->src[0]].dy : 0;
    const size_t row = (size_t)(s->y + dy - in->rect.y), col = (size_t)(s->x + dx - in->rect.x);
    const uint8_t *const px = (const uint8_t *)in->data + input->plane * in->plane_bytes +
                              row * in->row_bytes + col * pb_type_bytes((enum pb_type)input->type);

    pb_vm_loads[input->type](input, px, reg(s, instr->dst), s->n);
    if (in->mask)
        pb_vm_mask(in->mask + row * in->mask_row_bytes + col, reg(s, instr->dst), s->n);
}

/* Address of pixel (x, y) in a plane whose first pixel is the corner of `rect`. */
static size_t plane_offset(int32_t x, int32_t y, const struct pb_rect *rect, size_t row)
{
    return (size_t)(y - rect->y) * row + (size_t)(x - rect->x);
}

static void run_plane(const struct strip *s, const struct pb_instr *instr)
{
    const struct pb_sweep *const sweep = s->sweep;
    const struct pb_tile_in *const in = &sweep->in;
    const struct pb_leaf_place *const at = sweep->places ? &sweep->places[instr->src[0]] : NULL;
    const struct pb_rect rect =
        at && at->apart
            ? pb_rect_grow(&sweep->bases[at->grid], instr->margin, at->grid_w, at->grid_h)
        : at ? pb_rect_on(&at->map, at->grid_w, at->grid_h, &in->core, instr->margin)
             : pb_rect_grow(&in->core, instr->margin, in->image_w, in->image_h);
    const int32_t x = at ? s->x + at->dx : s->x, y = at ? s->y + at->dy : s->y;

    memcpy(reg(s, instr->dst),
           sweep->planes + instr->index * sweep->plane_px +
               plane_offset(x, y, &rect, (size_t)rect.w),
           s->n * sizeof(float));
}

static void run_index(const struct strip *s, const struct pb_instr *instr)
{
    const struct pb_leaf_place *const places = s->sweep->places;
    const int32_t x = s->x + (places ? places[instr->src[0]].dx : 0);
    const int32_t y = s->y + (places ? places[instr->src[0]].dy : 0);
    float *const out = reg(s, instr->dst);

    if (instr->index == 1)
        pb_vm_fill((float)y, out, s->n);
    else
        for (size_t i = 0; i < s->n; i++)
            out[i] = (float)(x + (int32_t)i);
}

static void run_store(const struct strip *s, const struct pb_instr *instr)
{
    const struct pb_sweep *const sweep = s->sweep;
    float *const out = sweep->out + instr->index * sweep->out_px +
                       plane_offset(s->x, s->y, &sweep->rect, sweep->out_row);

    if (instr->imm_mask)
        pb_vm_fill(pb_pixel_result(instr->imm[0]), out, s->n);
    else
        pb_vm_store(reg(s, instr->src[0]), out, s->n);
}

static void run_curve(const struct strip *s, const struct pb_instr *instr)
{
    const float *const knots = (const float *)(const void *)(s->sweep->code + instr->curve.at);
    const float *const x = reg(s, instr->src[0]);
    float *const out = reg(s, instr->dst);

    for (size_t i = 0; i < s->n; i++)
        out[i] = pb_curve_at(knots, instr->curve.n, x[i]);
}

static void run_op(const struct strip *s, const struct pb_instr *instr)
{
    const struct pb_vm_strip strip = {
        .out = reg(s, instr->dst),
        .src = {reg(s, instr->src[0]), reg(s, instr->src[1]), reg(s, instr->src[2])},
        .imm = instr->imm,
        .n = s->n};

    pb_vm_loops[instr->code][instr->imm_mask](&strip);
}

static void run_strip(const struct strip *s)
{
    const struct pb_instr *const end = s->sweep->code + s->sweep->n_code;

    for (const struct pb_instr *instr = s->sweep->code; instr < end; instr++) {
        if (instr->code < PB_CODE_CONST)
            run_op(s, instr);
        else if (instr->code == PB_CODE_INPUT)
            run_input(s, instr);
        else if (instr->code == PB_CODE_PLANE)
            run_plane(s, instr);
        else if (instr->code == PB_CODE_INDEX)
            run_index(s, instr);
        else if (instr->code == PB_CODE_CURVE)
            run_curve(s, instr);
        else if (instr->code == PB_CODE_STORE)
            run_store(s, instr);
        else
            pb_vm_fill(instr->imm[0], reg(s, instr->dst), s->n);
    }
}

void pb_program_run_cpu(const struct pb_sweep *sweep, void *registers)
{
    const struct pb_rect *const rect = &sweep->rect;
    const int32_t px = strip_px(sweep->n_registers);
    struct strip s = {.sweep = sweep, .registers = registers, .stride = (size_t)(px + PAD_PX)};

    for (int32_t y = 0; y < rect->h; y++)
        for (int32_t x = 0; x < rect->w; x += px) {
            s.x = rect->x + x;
            s.y = rect->y + y;
            s.n = (size_t)(rect->w - x < px ? rect->w - x : px);
            run_strip(&s);
        }
}
