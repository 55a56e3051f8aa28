/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/chain/chain_leaves.h"

#include "kernels/nodata.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Nodata in the band's own type, in which it is compared (pb_pixel_from_u8 and others); a value
 * that the type cannot hold marks nothing. */
static void set_nodata(struct pb_program_input *out, double nodata)
{
    if (!isfinite(nodata))
        return; /* such samples are invalid anyway */
    if (out->type == PB_F32 || out->type == PB_F64) {
        out->nodata_float = out->type == PB_F32 ? (double)(float)nodata : nodata;
        out->has_nodata = isfinite(out->nodata_float);
    } else if (pb_nodata_fits((enum pb_type)out->type, nodata)) {
        out->nodata_int = (int64_t)nodata;
        out->has_nodata = true;
    }
}

struct pb_program_input pb_program_input_of(const struct pb_chain_input *input, uint16_t plane)
{
    struct pb_program_input out = {.type = (int32_t)input->type,
                                   .scaled = input->scale != 1.0 || input->offset != 0.0,
                                   .window = (uint16_t)input->source,
                                   .plane = plane,
                                   .scale = (float)input->scale,
                                   .offset = (float)input->offset};

    if (input->has_nodata)
        set_nodata(&out, input->nodata);
    return out;
}

int pb_chain_place(struct pb_chain *chain, const struct pb_leaf_place *place)
{
    for (size_t i = 0; i < chain->n_leaf_places; i++)
        if (memcmp(&chain->leaf_places[i], place, sizeof *place) == 0)
            return (int)i;
    if (chain->n_leaf_places == UINT8_MAX)
        return -E2BIG;
    struct pb_leaf_place *const more =
        realloc(chain->leaf_places, (chain->n_leaf_places + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    chain->leaf_places = more;
    more[chain->n_leaf_places] = *place;
    return (int)chain->n_leaf_places++;
}
