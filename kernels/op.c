/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The registry is ops.def read three times: as declarations, as a table, and as the group of each.
 */
#include "kernels/op.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PB_OP(group, name) extern const struct pb_op pb_op_##name;
#include "kernels/ops.def"
#undef PB_OP

enum group {
#define PB_OP_GROUP(name, text) GROUP_##name,
#include "kernels/ops_groups.def"
#undef PB_OP_GROUP
};

static const char *const groups[] = {
#define PB_OP_GROUP(name, text) text,
#include "kernels/ops_groups.def"
#undef PB_OP_GROUP
};

static const struct pb_op *const ops[] = {
#define PB_OP(group, name) &pb_op_##name,
#include "kernels/ops.def"
#undef PB_OP
};

static const enum group op_group[] = {
#define PB_OP(group, name) GROUP_##group,
#include "kernels/ops.def"
#undef PB_OP
};

size_t pb_op_count(void)
{
    return sizeof ops / sizeof ops[0];
}

const struct pb_op *pb_op_at(size_t i)
{
    return ops[i];
}

const char *pb_op_group(size_t i)
{
    return groups[op_group[i]];
}

const struct pb_op *pb_op_find(const char *name)
{
    for (size_t i = 0; i < pb_op_count(); i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    return NULL;
}

struct pb_section pb_op_section(const struct pb_op *op)
{
    return (struct pb_section){op->name, op->doc.summary, op->keys, op->n_keys};
}

const struct pb_items *pb_op_outputs(const struct pb_op *op, const void *params)
{
    static const struct pb_items none = {.n = 0};

    for (size_t i = 0; i < op->n_keys; i++)
        if (op->keys[i].makes_bands)
            return (const struct pb_items *)(const void *)((const char *)params +
                                                           op->keys[i].offset);
    return &none;
}

const char *pb_op_one_more(const struct pb_op *op, const void *params)
{
    for (size_t i = 0; i < op->n_keys; i++)
        if (op->keys[i].makes_one) {
            const struct pb_items *const items =
                (const struct pb_items *)(const void *)((const char *)params + op->keys[i].offset);

            return items->n > 0 ? pb_item_band(&items->items[0]) : NULL;
        }
    return NULL;
}

bool pb_op_keeps(const void *params)
{
    (void)params;
    return true;
}

bool pb_op_makes(const struct pb_op *op, const void *params, const char *band)
{
    const struct pb_items *const outputs = pb_op_outputs(op, params);
    const char *const more = pb_op_one_more(op, params);
    bool found = outputs->n == 0 || (more && strcmp(more, band) == 0);

    for (size_t i = 0; i < outputs->n && !found; i++)
        found = strcmp(pb_item_band(&outputs->items[i]), band) == 0;
    return found;
}

int pb_diag_set(struct pb_diag *diag, enum pb_diag_kind kind, const struct pb_item *item, int col,
                const char *format, ...)
{
    va_list list;

    diag->kind = kind;
    diag->item = item;
    diag->col = col;
    va_start(list, format);
    (void)vsnprintf(diag->msg, sizeof diag->msg, format, list);
    va_end(list);
    return -EINVAL;
}
