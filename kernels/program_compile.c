/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two passes.
 *
 * Order: depth first from each root, the operand that needs more registers first (Sethi and
 * Ullman), and the store of a root right behind its value. Leaves (samples, stencil planes) are no
 * steps of their own: they are loaded where they are first used.
 *
 * Registers: a walk along the order with the next use of every value known. When the soft limit is
 * reached, a loaded leaf with the farthest next use is dropped and loaded again later, which is
 * cheap; computed values are never dropped and may go up to the hard limit. Spilling to memory is
 * not needed beyond that, because registers are memory to both interpreters. */
#include "kernels/program_compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_REGISTER (-1)

struct step {
    pb_value node;
    int32_t store; /* output plane, or -1: compute node */
};

struct compiler {
    const struct pb_program_spec *spec;
    const struct pb_graph *graph;
    struct step *steps;
    size_t n_steps;
    /* Uses of each node as an operand in a register: positions in `steps`, ascending. */
    uint32_t *use_at,
        *uses; /* use_at[id] .. use_at[id + 1] in uses; use_at moves on while walking */
    uint32_t *use_end;
    int16_t *reg;                            /* by node */
    pb_value held[PB_PROGRAM_REGISTERS_MAX]; /* by register; -1 = free */
    struct pb_program *program;
    size_t room;
};

static const struct pb_node *node_of(const struct compiler *c, pb_value v)
{
    return &c->graph->nodes[v];
}

static bool is_leaf(const struct compiler *c, pb_value v)
{
    const int kind = node_of(c, v)->kind;

    return kind == PB_NODE_CONST || kind == PB_NODE_INPUT || kind == PB_NODE_STENCIL;
}

/* Whether operand k of a step may be an immediate. A ternary operation's first may not. */
static bool is_immediate(const struct compiler *c, const struct pb_node *node, int k)
{
    return node_of(c, node->arg[k])->kind == PB_NODE_CONST && !(node->arity == 3 && k == 0);
}

/* --- order ----------------------------------------------------------------------------------- */

/* Registers that computing each node takes when nothing is shared. */
static void measure(const struct pb_graph *graph, uint16_t *need)
{
    for (size_t i = 0; i < graph->n; i++) {
        const struct pb_node *const node = &graph->nodes[i];
        uint16_t most = 1;

        for (int k = 0; k < node->arity && node->kind != PB_NODE_STENCIL; k++) {
            uint16_t rank = 0; /* operands evaluated before this one: results that are held */

            for (int j = 0; j < node->arity; j++)
                rank = (uint16_t)(rank + (need[node->arg[j]] > need[node->arg[k]] ||
                                          (need[node->arg[j]] == need[node->arg[k]] && j < k)));
            if (need[node->arg[k]] + rank > most)
                most = (uint16_t)(need[node->arg[k]] + rank);
        }
        /* More than any register file is as good as infinite. */
        need[i] = node->kind == PB_NODE_CONST ? 0 : most > 1000 ? 1000 : most;
    }
}

/* Pushes the operands so that the neediest is popped first. */
static size_t push_operands(const struct compiler *c, pb_value v, const uint16_t *need,
                            pb_value *stack, size_t n)
{
    const struct pb_node *const node = node_of(c, v);
    const size_t base = n;

    for (int k = 0; k < node->arity; k++) {
        size_t at = n++;

        for (; at > base && need[stack[at - 1]] >= need[node->arg[k]]; at--)
            stack[at] = stack[at - 1];
        stack[at] = node->arg[k];
    }
    return n;
}

/* done: 0 unseen, 1 operands pushed, 2 in the order. */
static void order_root(struct compiler *c, pb_value root, const uint16_t *need, uint8_t *done,
                       pb_value *stack)
{
    size_t n = 0;

    stack[n++] = root;
    while (n > 0) {
        const pb_value v = stack[n - 1];

        if (is_leaf(c, v) || done[v] == 2) {
            n--;
        } else if (done[v] == 1) {
            done[v] = 2;
            c->steps[c->n_steps++] = (struct step){v, -1};
            n--;
        } else {
            done[v] = 1;
            n = push_operands(c, v, need, stack, n);
        }
    }
}

static int make_order(struct compiler *c)
{
    const size_t n = c->graph->n, n_roots = c->spec->n_roots;
    uint16_t *const need = calloc(n, sizeof *need);
    uint8_t *const done = calloc(n, 1);
    pb_value *const stack = malloc((3 * n + 1) * sizeof *stack);
    int rc = -ENOMEM;

    c->steps = malloc((n + n_roots) * sizeof *c->steps);
    if (!need || !done || !stack || !c->steps)
        goto out;
    measure(c->graph, need);
    for (size_t i = 0; i < n_roots; i++) {
        order_root(c, c->spec->roots[i], need, done, stack);
        c->steps[c->n_steps++] = (struct step){c->spec->roots[i], c->spec->store[i]};
    }
    rc = 0;
out:
    free(need);
    free(done);
    free(stack);
    return rc;
}

/* --- registers ------------------------------------------------------------------------------- */

/* The operands of a step that live in registers; returns how many. */
static int register_operands(const struct compiler *c, const struct step *step, pb_value out[3])
{
    const struct pb_node *const node = node_of(c, step->node);
    int n = 0;

    if (step->store >= 0) {
        out[0] = step->node;
        return node->kind == PB_NODE_CONST ? 0 : 1;
    }
    for (int k = 0; k < node->arity; k++)
        if (!is_immediate(c, node, k))
            out[n++] = node->arg[k];
    return n;
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
    if (!c->use_at || !c->use_end || !c->uses || !c->reg)
        return -ENOMEM;
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

static bool contains(const pb_value *list, int n, pb_value v)
{
    for (int i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

/* Gives v a register during step s; the operands of the step keep theirs. */
static int take_register(struct compiler *c, pb_value v, size_t s, const pb_value *pinned,
                         int n_pinned)
{
    uint32_t farthest = 0;
    int r = 0, victim = -1;

    while (r < PB_PROGRAM_REGISTERS_MAX && c->held[r] >= 0)
        r++;
    for (int i = 0; r >= PB_PROGRAM_REGISTERS_SOFT && i < PB_PROGRAM_REGISTERS_SOFT; i++) {
        const pb_value other = c->held[i];

        if (!is_leaf(c, other) || contains(pinned, n_pinned, other))
            continue;
        const uint32_t use = next_use(c, other, s);
        if (use >= farthest) {
            farthest = use;
            victim = i;
        }
    }
    if (victim >= 0) {
        release(c, c->held[victim]);
        r = victim;
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

static int load_leaf(struct compiler *c, pb_value v, size_t s, const pb_value *pinned, int n_pinned)
{
    const struct pb_node *const node = node_of(c, v);
    struct pb_instr instr = {0};
    const int rc = take_register(c, v, s, pinned, n_pinned);

    if (rc < 0)
        return rc;
    instr.dst = (uint8_t)c->reg[v];
    if (node->kind == PB_NODE_CONST) {
        instr.code = PB_CODE_CONST;
        instr.imm[0] = node->number;
    } else if (node->kind == PB_NODE_INPUT) {
        instr.code = PB_CODE_INPUT;
        instr.index = c->spec->input_plane[node->index];
    } else {
        instr.code = PB_CODE_PLANE;
        instr.index = c->spec->stencil_slot[v];
        instr.margin = c->spec->stencil_margin[v];
    }
    return append(c, &instr);
}

static void set_operand(const struct compiler *c, struct pb_instr *instr, int k, pb_value v,
                        bool immediate)
{
    if (immediate) {
        instr->imm_mask = (uint8_t)(instr->imm_mask | 1u << k);
        instr->imm[k == 2] = node_of(c, v)->number;
    } else {
        instr->src[k] = (uint8_t)c->reg[v];
    }
}

static int emit_step(struct compiler *c, size_t s)
{
    const struct step *const step = &c->steps[s];
    const struct pb_node *const node = node_of(c, step->node);
    struct pb_instr instr = {0};
    pb_value operand[3];
    const int n = register_operands(c, step, operand);

    for (int k = 0; k < n; k++)
        if (c->reg[operand[k]] == NO_REGISTER) {
            const int rc = load_leaf(c, operand[k], s, operand, n);

            if (rc < 0)
                return rc;
        }
    if (step->store >= 0) {
        instr.code = PB_CODE_STORE;
        instr.index = (uint16_t)step->store;
        set_operand(c, &instr, 0, step->node, n == 0);
    } else {
        instr.code = (uint8_t)node->kind;
        for (int k = 0; k < node->arity; k++)
            set_operand(c, &instr, k, node->arg[k], is_immediate(c, node, k));
    }
    for (int k = 0; k < n; k++)
        if (c->reg[operand[k]] != NO_REGISTER && next_use(c, operand[k], s) == UINT32_MAX)
            release(c, operand[k]);
    if (step->store < 0) {
        const int rc = take_register(c, step->node, s, NULL, 0);

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
    int rc = make_order(&c);
    if (rc == 0)
        rc = list_uses(&c);
    for (size_t s = 0; s < c.n_steps && rc == 0; s++)
        rc = emit_step(&c, s);
    free(c.steps);
    free(c.use_at);
    free(c.use_end);
    free(c.uses);
    free(c.reg);
    if (rc < 0)
        pb_program_fini(&program);
    else
        *out_program = program;
    return rc;
}

void pb_program_fini(struct pb_program *program)
{
    free(program->code);
    memset(program, 0, sizeof *program);
}
