/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PROGRAM_H
#define PB_PROGRAM_H
/* A program: pixel-wise bytecode that makes some planes in one sweep over a rectangle. Plain data
 * without pointers inside the code, so that it is copied to a device as it is. The interpreters
 * (program_cpu.c, program.cu) run one instruction over many pixels. C11 and C++17. */
#include "kernels/geometry.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PB_PROGRAM_REGISTERS_MAX 255
/* Where a program starts to load samples again rather than hold them, and to compute small values
 * again. Up to the first a GPU runs full blocks; up to the second the CPU's registers stay in its
 * first-level cache. */
#define PB_PROGRAM_REGISTERS_SOFT 24
#define PB_PROGRAM_REGISTERS_FIRM 64

/* Bits of pb_instr.imm_mask that GPUs are told (program_marks.h): what need not go through the
 * machine's registers, and what can be loaded at once. */
enum pb_instr_mark {
    PB_MARK_X = 1 << 3,     /* operand 0 is the result of the instruction before */
    PB_MARK_Y = 1 << 4,     /* operand 1 is */
    PB_MARK_LOCAL = 1 << 5, /* nothing reads the result's register */
    PB_MARK_PAIR = 1 << 6,  /* an INPUT before another of the same type */
    PB_MARKS = PB_MARK_X | PB_MARK_Y | PB_MARK_LOCAL | PB_MARK_PAIR
};

/* What an instruction does. The operations of vm_ops.def first, with the numbers of enum pb_vm_op.
 */
enum pb_code {
#define PB_VM_OP(name, arity) PB_CODE_##name,
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
    PB_CODE_CONST, /* dst = imm[0] */
    /* Loads; src[0]: where the pixels lie, an index into struct pb_sweep's places. */
    PB_CODE_INPUT, /* dst = sample of input `index` as float32, scaled, NaN when invalid */
    PB_CODE_PLANE, /* dst = pixel of scratch plane `index`, which covers the core grown by margin */
    PB_CODE_INDEX, /* dst = column (index 0) or row (1) of the pixel on its grid */
    PB_CODE_CURVE, /* dst = src[0] along the curve whose knots begin at code[curve.at], by their
                      bytes; index: which of the chain's curves it is */
    PB_CODE_STORE, /* output plane `index` = src[0]: finite or NaN */
    PB_CODE_COUNT
};

struct pb_instr {
    uint8_t code;
    uint8_t dst;
    uint8_t src[3];
    uint8_t imm_mask; /* bit k: operand k is imm[k == 2] instead of a register; never all of them,
                         never operand 0 of a ternary operation; enum pb_instr_mark */
    uint16_t index;
    union {
        float imm[2];
        int32_t margin; /* PLANE */
        struct {
            int32_t at, n; /* n: knots, 0 until they are known */
        } curve;           /* CURVE */
    };
};

/* Where a load finds the pixel (x, y) of the sweep: at (x + dx, y + dy) of a grid. Place 0 is the
 * sweep's own grid. */
struct pb_leaf_place {
    int32_t dx, dy;
    int32_t grid_w, grid_h;
    struct pb_map map; /* from the grid of the tile's core */
    int32_t grid;
    bool apart; /* in another coordinate system than the outputs: planes are a base rect, grown */
};

/* How samples of one band become float32. */
struct pb_program_input {
    int32_t type;           /* enum pb_type */
    uint16_t window, plane; /* of the tile */
    bool has_nodata;
    bool scaled; /* v * scale + offset, rounded twice */
    int64_t nodata_int;
    double nodata_float; /* exact in the band's type */
    float scale, offset;
};

/* One sweep: where the pixels come from and go to. */
struct pb_sweep {
    const struct pb_instr *code; /* CUDA: there is memory for one more, which is read */
    uint32_t n_code, n_registers;
    const struct pb_program_input *inputs; /* as many as `in` has planes */
    struct pb_tile_in in;
    struct pb_rect rect; /* pixels to make: the core, perhaps grown */
    float *out;          /* plane p at out + p * out_px, rows out_row floats apart */
    size_t out_px, out_row;
    const float *planes; /* scratch plane p at planes + p * plane_px */
    size_t plane_px;
    const struct pb_leaf_place *places; /* NULL: one grid, of the tile's size */
    const struct pb_rect *bases;        /* by grid, of places that are apart; NULL: none */
};

/* Memory of one CPU sweep in bytes, for registers and steps; 64-byte aligned. */
size_t pb_program_cpu_bytes(uint32_t n_registers, uint32_t n_code);
/* Runs on the calling thread. Allocates nothing. */
void pb_program_run_cpu(const struct pb_sweep *sweep, void *memory);
/* CUDA builds only. Queues on stream (cudaStream_t); all addresses are device-readable. 0 or
 * -EIO. */
int pb_program_run_cuda(const struct pb_sweep *sweep, void *stream);
#ifdef __cplusplus
}
#endif
#endif
