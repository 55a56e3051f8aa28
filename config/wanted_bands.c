/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/wanted_bands.h"
#include "config/pipeline_config.h"
#include "config/product_config.h"
#include "kernels/key.h"
#include "kernels/op.h"

#include <errno.h>
#include <string.h>

static int add(struct pb_wanted_bands *wanted, const char *name)
{
    for (size_t i = 0; i < wanted->n; i++)
        if (strcmp(wanted->name[i], name) == 0)
            return 0;
    if (wanted->n == PB_WANTED_BANDS_MAX)
        return -E2BIG;
    wanted->name[wanted->n++] = name;
    return 0;
}

static int add_default(const struct pb_pipeline_config *pipeline, const char *const *inputs,
                       size_t n_inputs, struct pb_wanted_bands *wanted)
{
    int rc = 0;
    for (size_t s = 0; s < pipeline->n_steps && rc == 0; s++) {
        const struct pb_step_config *step = &pipeline->steps[s];
        if (step->product != NULL)
            continue;
        const struct pb_items *outputs = pb_op_outputs(step->op, step->params);
        for (size_t i = 0; i < outputs->n && rc == 0; i++)
            rc = add(wanted, pb_item_band(&outputs->items[i]));
    }
    if (wanted->n == 0)
        for (size_t i = 0; i < n_inputs && rc == 0; i++)
            rc = add(wanted, inputs[i]);
    wanted->n_default = wanted->n;
    return rc;
}

int pb_wanted_bands(const struct pb_pipeline_config *pipeline, const char *const *inputs,
                    size_t n_inputs, struct pb_wanted_bands *out)
{
    bool any_default = pipeline->n_products == 0, any_named = false;
    int rc = 0;
    out->n = out->n_default = 0;
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *product = pipeline->products[i];
        any_named = any_named || product->n_bands > 0;
        any_default = any_default || (product->n_bands == 0 && !product->kind->describes_others);
    }
    if (any_default || !any_named)
        rc = add_default(pipeline, inputs, n_inputs, out);
    for (size_t i = 0; i < pipeline->n_products && rc == 0; i++) {
        const struct pb_product_config *product = pipeline->products[i];
        for (size_t b = 0; b < product->n_bands + product->n_more && rc == 0; b++)
            rc = add(out, product->planes != NULL ? product->planes[b] : product->bands[b]);
    }
    return rc;
}

size_t pb_class_bands(const struct pb_pipeline_config *pipeline, const char *out[PB_BANDS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < pipeline->n_products && n < PB_BANDS_MAX; i++) {
        const struct pb_product_config *product = pipeline->products[i];
        const char *band = product->kind->class_band ? product->kind->class_band(product) : NULL;
        if (band != NULL)
            out[n++] = band;
    }
    return n;
}
