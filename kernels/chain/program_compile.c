/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The second of two passes: registers for the steps that program_order.c made.
 *
 * A walk along the steps with the next use of every value known. Beyond the soft limit the loaded
 * leaf with the farthest next use is dropped and loaded again later; beyond the firm limit so are
 * values of a few operations, which are computed again. Everything else holds on up to the hard
 * limit. Spilling to memory would gain nothing: registers are memory to both interpreters. */
#include "kernels/chain/program_compile.h"
#include "kernels/chain/program_order.h"
#include "kernels/pixel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_REGISTER (-1)
#define SMALL       8  /* loads and operations of a value that may be computed again */
#define PINS_MAX    64 /* operands on the way down a small value: far fewer */

struct compiler {
    const struct pb_program_spec *spec;
    const struct pb_graph *graph;
    struct pb_step *steps;
    size_t n_steps;
    /* The steps that read a node from a register: uses[use_at[id]] .. uses[use_end[id] - 1],
     * ascending; use_at moves on during the walk. */
    uint32_t *uses, *use_at, *use_end;
    int16_t *reg;   /* by node */
    uint16_t *cost; /* by node: loads and operations, nothing being shared; capped */
    pb_value held[PB_PROGRAM_REGISTERS_MAX]; /* by register; -1 = free */
    pb_value pins[PINS_MAX];                 /* values that must keep their registers now */
    int n_pins;
    struct pb_program *program;
    size_t room;
};

static const struct pb_node *node_of(const struct compiler *c, pb_value v)
{
    return &c->graph->nodes[v];
}

static bool is_leaf(const struct compiler *c, pb_value v)
{
    return pb_node_is_leaf(node_of(c, v));
}

/* Whether operand k of a step may be an immediate. A ternary operation's first may not. */
static bool is_immediate(const struct compiler *c, const struct pb_node *node, int k)
{
    return pb_node_is_number(node_of(c, node->arg[k])) && !(node->arity == 3 && k == 0);
}

/* --- registers ------------------------------------------------------------------------------- */

/* The operands of a step that live in registers; returns how many. */
static int register_operands(const struct compiler *c, const struct pb_step *step, pb_value out[3])
{
    const struct pb_node *const node = node_of(c, step->node);
    int n = 0;

    if (step->store >= 0) {
        out[0] = step->node;
        return pb_node_is_number(node) ? 0 : 1;
    }
    for (int k = 0; k < node->arity; k++)
        if (!is_immediate(c, node, k))
            out[n++] = node->arg[k];
    return n;
}

static void measure_costs(struct compiler *c)
{
    for (size_t i = 0; i < c->graph->n; i++) {
        const struct pb_node *const node = &c->graph->nodes[i];
        uint32_t cost = !pb_node_is_number(node);

        for (int k = 0; k < node->arity && !pb_node_is_leaf(node); k++)
            cost += c->cost[node->arg[k]];
        c->cost[i] = (uint16_t)(cost > SMALL ? SMALL + 1 : cost);
    }
}

static int list_uses(struct compiler *c)
{
    const size_t n = c->graph->n;
    pb_value operand[3];
    uint32_t total = 0;

    c->use_at = calloc(n, sizeof *c->use_at);
    c->use_end = calloc(n, sizeof *c->use_end);
    c->uses = calloc(3 * c->n_steps + 1, sizeof *c->uses);
    c->reg = malloc(n * sizeof *c->reg);
    c->cost = calloc(n, sizeof *c->cost);
    if (!c->use_at || !c->use_end || !c->uses || !c->reg || !c->cost)
        return -ENOMEM;
    measure_costs(c);
    for (size_t s = 0; s < c->n_steps; s++)
        for (int k = register_operands(c, &c->steps[s], operand); k-- > 0;)
            c->use_end[operand[k]]++;
    for (size_t i = 0; i < n; i++) {
        const uint32_t count = c->use_end[i];

        c->use_at[i] = c->use_end[i] = total;
        total += count;
        c->reg[i] = NO_REGISTER;
    }
    for (size_t s = 0; s < c->n_steps; s++)
        for (int k = register_operands(c, &c->steps[s], operand); k-- > 0;)
            c->uses[c->use_end[operand[k]]++] = (uint32_t)s;
    return 0;
}

/* The next step after `s` that reads v; UINT32_MAX when none does. */
static uint32_t next_use(struct compiler *c, pb_value v, size_t s)
{
    while (c->use_at[v] < c->use_end[v] && c->uses[c->use_at[v]] <= s)
        c->use_at[v]++;
    return c->use_at[v] < c->use_end[v] ? c->uses[c->use_at[v]] : UINT32_MAX;
}

static void release(struct compiler *c, pb_value v)
{
    c->held[c->reg[v]] = -1;
    c->reg[v] = NO_REGISTER;
}

static bool pinned(const struct compiler *c, int n, pb_value v)
{
    for (int i = 0; i < n; i++)
        if (c->pins[i] == v)
            return true;
    return false;
}

/* The register below r whose value can best be made again: a leaf, beyond the firm limit also a
 * small value; used last. -1 when there is none. */
static int find_victim(struct compiler *c, int r, size_t s)
{
    uint32_t farthest = 0;
    int victim = -1;
    bool leaf = false;

    for (int i = 0; i < r; i++) {
        const pb_value v = c->held[i];

        if (pinned(c, c->n_pins, v) ||
            !(is_leaf(c, v) || (!leaf && r >= PB_PROGRAM_REGISTERS_FIRM && c->cost[v] <= SMALL)))
            continue;
        const uint32_t use = next_use(c, v, s);
        if (use < farthest && leaf == is_leaf(c, v))
            continue;
        leaf = is_leaf(c, v);
        farthest = use;
        victim = i;
    }
    return victim;
}

/* Gives v a register during step s; pinned values keep theirs. */
static int take_register(struct compiler *c, pb_value v, size_t s)
{
    int r = 0;

    while (r < PB_PROGRAM_REGISTERS_MAX && c->held[r] >= 0)
        r++;
    if (r >= PB_PROGRAM_REGISTERS_SOFT) {
        const int victim = find_victim(c, r, s);

        if (victim >= 0) {
            release(c, c->held[victim]);
            r = victim;
        }
    }
    if (r == PB_PROGRAM_REGISTERS_MAX)
        return -E2BIG;
    c->held[r] = v;
    c->reg[v] = (int16_t)r;
    if ((uint32_t)r + 1 > c->program->n_registers)
        c->program->n_registers = (uint32_t)r + 1;
    return 0;
}

/* --- code ------------------------------------------------------------------------------------ */

static int append(struct compiler *c, const struct pb_instr *instr)
{
    struct pb_program *const program = c->program;

    if (program->n == c->room) {
        const size_t room = c->room ? 2 * c->room : 32;
        struct pb_instr *const more = realloc(program->code, room * sizeof *more);

        if (!more)
            return -ENOMEM;
        program->code = more;
        c->room = room;
    }
    program->code[program->n++] = *instr;
    return 0;
}

/* Puts a number into imm[imm] of an instruction that is appended next. */
static int set_number(struct compiler *c, struct pb_instr *instr, uint32_t imm, pb_value v)
{
    struct pb_program *const program = c->program;

    instr->imm[imm] = pb_pixel_nan();
    if (node_of(c, v)->kind == PB_NODE_CONST) {
        instr->imm[imm] = node_of(c, v)->number;
        return 0;
    }
    struct pb_patch *const more =
        realloc(program->patches, (program->n_patches + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    program->patches = more;
    more[program->n_patches++] = (struct pb_patch){program->n, imm, v};
    return 0;
}

static int load_leaf(struct compiler *c, pb_value v, size_t s)
{
    const pb_value leaf = node_of(c, v)->kind == PB_NODE_VIEW ? node_of(c, v)->arg[0] : v;
    const struct pb_node *const node = node_of(c, leaf);
    struct pb_instr instr = {0};
    int rc = take_register(c, v, s);

    if (rc < 0)
        return rc;
    instr.dst = (uint8_t)c->reg[v];
    instr.src[0] = c->spec->leaf_place[v];
    if (pb_node_is_number(node)) {
        instr.code = PB_CODE_CONST;
        rc = set_number(c, &instr, 0, leaf);
    } else if (node->kind == PB_NODE_INPUT) {
        instr.code = PB_CODE_INPUT;
        instr.index = c->spec->input_plane[node->index];
    } else if (node->kind == PB_NODE_INDEX) {
        instr.code = PB_CODE_INDEX;
        instr.index = (uint16_t)node->index;
    } else {
        instr.code = PB_CODE_PLANE;
        instr.index = c->spec->plane_slot[leaf];
        instr.margin = c->spec->plane_margin[leaf];
    }
    return rc ? rc : append(c, &instr);
}

static int set_operand(struct compiler *c, struct pb_instr *instr, int k, pb_value v,
                       bool immediate)
{
    if (immediate) {
        instr->imm_mask = (uint8_t)(instr->imm_mask | 1u << k);
        return set_number(c, instr, k == 2, v);
    }
    instr->src[k] = (uint8_t)c->reg[v];
    return 0;
}

static int compute(struct compiler *c, const struct pb_step *step, size_t s);

/* Brings the operands of a step into registers and pins them. Those that were dropped are loaded or
 * computed again; the recursion is as deep as a small value. */
static int fetch_operands(struct compiler *c, const struct pb_step *step, size_t s)
{
    pb_value operand[3];
    const int n = register_operands(c, step, operand);

    if (c->n_pins + n > PINS_MAX)
        return -E2BIG;
    for (int k = 0; k < n; k++)
        c->pins[c->n_pins++] = operand[k];
    for (int k = 0; k < n; k++) {
        int rc = 0;

        if (c->reg[operand[k]] != NO_REGISTER)
            continue;
        rc = is_leaf(c, operand[k]) ? load_leaf(c, operand[k], s)
                                    : compute(c, &(struct pb_step){operand[k], -1}, s);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int set_operands(struct compiler *c, const struct pb_step *step, struct pb_instr *instr)
{
    const struct pb_node *const node = node_of(c, step->node);
    int rc = 0;

    if (step->store >= 0) {
        instr->code = PB_CODE_STORE;
        instr->index = (uint16_t)step->store;
        return set_operand(c, instr, 0, step->node, pb_node_is_number(node));
    }
    instr->code = node->kind == PB_NODE_CURVE ? PB_CODE_CURVE : (uint8_t)node->kind;
    if (node->kind == PB_NODE_CURVE)
        instr->index = (uint16_t)node->index;
    for (int k = 0; k < node->arity && rc == 0; k++)
        rc = set_operand(c, instr, k, node->arg[k], is_immediate(c, node, k));
    return rc;
}

/* The instruction of a step, planned for position s or being repeated there. Afterwards an operand
 * is let go when nothing further on reads it, nor an instruction that waits for this one. */
static int compute(struct compiler *c, const struct pb_step *step, size_t s)
{
    const int pins = c->n_pins;
    struct pb_instr instr = {0};
    int rc = fetch_operands(c, step, s);

    rc = rc ? rc : set_operands(c, step, &instr);
    if (rc < 0)
        return rc;
    for (int k = pins; k < c->n_pins; k++) {
        const pb_value v = c->pins[k];

        if (c->reg[v] != NO_REGISTER && !pinned(c, pins, v) && next_use(c, v, s) == UINT32_MAX)
            release(c, v);
    }
    c->n_pins = pins;
    if (step->store < 0) {
        rc = take_register(c, step->node, s);
        if (rc < 0)
            return rc;
        instr.dst = (uint8_t)c->reg[step->node];
    }
    return append(c, &instr);
}

int pb_program_compile(const struct pb_program_spec *spec, struct pb_program *out_program)
{
    struct pb_program program = {0};
    struct compiler c = {.spec = spec, .graph = spec->graph, .program = &program};

    memset(c.held, 0xff, sizeof c.held);
    int rc = pb_program_order(spec, &c.steps, &c.n_steps);
    if (rc == 0)
        rc = list_uses(&c);
    for (size_t s = 0; s < c.n_steps && rc == 0; s++)
        rc = compute(&c, &c.steps[s], s);
    free(c.steps);
    free(c.use_at);
    free(c.use_end);
    free(c.uses);
    free(c.reg);
    free(c.cost);
    if (rc < 0)
        pb_program_fini(&program);
    else
        *out_program = program;
    return rc;
}

void pb_program_fini(struct pb_program *program)
{
    free(program->code);
    free(program->patches);
    memset(program, 0, sizeof *program);
}
