/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/chain/chain_curves.h"
#include "kernels/vm/curve_pixel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Instructions whose bytes hold the knots of a curve. */
enum { ROOM = PB_CURVE_KNOTS_MAX * 2 * sizeof(float) / sizeof(struct pb_instr) };

/* Where the knots are that an instruction before this one takes as well; -1: there is none. */
static int32_t find_knots(const struct pb_stage *stage, uint32_t before)
{
    for (uint32_t i = 0; i < before; i++)
        if (stage->code[i].code == PB_CODE_CURVE &&
            stage->code[i].index == stage->code[before].index)
            return stage->code[i].curve.at;
    return -1;
}

static int add_place(struct pb_chain *chain, uint32_t stage, uint32_t instr)
{
    struct pb_chain_curve_place *const more =
        realloc(chain->curve_places, (chain->n_curve_places + 1) * sizeof *more);

    if (!more)
        return -ENOMEM;
    chain->curve_places = more;
    more[chain->n_curve_places++] = (struct pb_chain_curve_place){stage, instr};
    return 0;
}

static int add_room(struct pb_stage *stage)
{
    const size_t n = stage->n_code + stage->n_knots;
    struct pb_instr *const more = realloc(stage->code, (n + ROOM) * sizeof *more);

    if (!more)
        return -ENOMEM;
    memset(more + n, 0, ROOM * sizeof *more);
    stage->code = more;
    stage->n_knots += ROOM;
    return 0;
}

int pb_chain_curves_lay(struct pb_chain *chain, uint32_t number)
{
    struct pb_stage *const stage = &chain->stages[number];

    for (uint32_t i = 0; i < stage->n_code; i++) {
        if (stage->code[i].code != PB_CODE_CURVE)
            continue;
        const int32_t known = find_knots(stage, i);
        const int32_t at = known >= 0 ? known : (int32_t)(stage->n_code + stage->n_knots);
        int rc = known >= 0 ? 0 : add_room(stage);

        rc = rc ? rc : add_place(chain, number, i);
        if (rc < 0)
            return rc;
        stage->code[i].curve.at = at;
        stage->code[i].curve.n = 0;
    }
    return 0;
}

int pb_chain_curves_define(const struct pb_graph *graph, struct pb_chain *chain)
{
    chain->curves = calloc(graph->n_curves + 1, sizeof *chain->curves);
    if (!chain->curves)
        return -ENOMEM;
    chain->n_curves = graph->n_curves;
    for (size_t i = 0; i < graph->n_curves; i++) {
        chain->curves[i].reduction[0] = graph->curves[i].from;
        chain->curves[i].reduction[1] = graph->curves[i].to;
    }
    return 0;
}

void pb_chain_curves_fini(struct pb_chain *chain)
{
    for (size_t i = 0; i < chain->n_curves; i++) {
        pb_counts_fini(&chain->curves[i].counts[0]);
        pb_counts_fini(&chain->curves[i].counts[1]);
    }
    free(chain->curves);
    free(chain->curve_places);
}

/* --- what a run asks ------------------------------------------------------------------------- */

size_t pb_chain_curve_bytes(const struct pb_chain *chain)
{
    size_t bytes = chain->n_curves * 2 * pb_counts_bytes();

    for (size_t k = 0; k < chain->n_stages; k++)
        bytes += chain->stages[k].n_knots * sizeof(struct pb_instr);
    return bytes;
}

/* The instruction of a place, if it takes the curve; else NULL. */
static struct pb_instr *taker(const struct pb_chain *pass, size_t place, uint32_t number)
{
    const struct pb_chain_curve_place *const at = &pass->curve_places[place];
    struct pb_instr *const instr = &pass->stages[at->stage].code[at->instr];

    return instr->index == number ? instr : NULL;
}

static float *knots_of(const struct pb_chain *pass, size_t place)
{
    const struct pb_chain_curve_place *const at = &pass->curve_places[place];
    struct pb_instr *const code = pass->stages[at->stage].code;

    return (float *)(void *)(code + code[at->instr].curve.at);
}

/* Puts the curve into the programs of a pass. */
static void set_knots(struct pb_chain *pass, uint32_t number, const struct pb_chain_curve *curve)
{
    for (size_t i = 0; i < pass->n_curve_places; i++) {
        struct pb_instr *const instr = taker(pass, i, number);

        if (instr != NULL)
            instr->curve.n =
                (int32_t)pb_counts_match(&curve->counts[0], &curve->counts[1], knots_of(pass, i));
    }
}

uint32_t pb_chain_curve_knots(const struct pb_chain *pass, uint32_t number, const float **out_knots)
{
    for (size_t i = 0; i < pass->n_curve_places; i++) {
        const struct pb_instr *const instr = taker(pass, i, number);

        if (instr != NULL) {
            *out_knots = knots_of(pass, i);
            return (uint32_t)instr->curve.n;
        }
    }
    *out_knots = NULL;
    return 0;
}

void pb_chain_set_knots(struct pb_chain *pass, uint32_t number, const float *knots, uint32_t n)
{
    for (size_t i = 0; i < pass->n_curve_places; i++) {
        struct pb_instr *const instr = taker(pass, i, number);

        if (instr == NULL)
            continue;
        memcpy(knots_of(pass, i), knots, n * 2 * sizeof *knots);
        instr->curve.n = (int32_t)n;
    }
}

size_t pb_chain_curves(const struct pb_chain *chain)
{
    return chain->n_curves;
}

int pb_chain_set_counts(struct pb_chain *chain, const struct pb_chain_reduction *reduction,
                        const void *state)
{
    for (uint32_t i = 0; i < chain->n_curves; i++) {
        struct pb_chain_curve *const curve = &chain->curves[i];

        for (int side = 0; side < 2; side++) {
            const bool of = curve->reduction[side] == reduction->number;
            const int rc = of ? pb_counts_of(state, &curve->counts[side]) : 0;

            if (rc < 0)
                return rc;
            curve->known[side] = curve->known[side] || of;
        }
        if (!curve->known[0] || !curve->known[1])
            continue;
        set_knots(chain, i, curve);
        for (size_t k = 0; k < chain->n_earlier; k++)
            set_knots(chain->earlier[k], i, curve);
    }
    return 0;
}
