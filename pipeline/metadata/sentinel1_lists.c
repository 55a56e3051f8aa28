/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/sentinel1_lists.h"

#include "config/base/arena.h"
#include "pipeline/metadata/meta_reader.h"
#include "pipeline/sar/sar_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPACE " \t\r\n"

void pb_sentinel1_no_memory(struct pb_meta_reader *r)
{
    if (r->rc == 0)
        r->rc = pb_fail(r->err, PB_E_MEMORY, "no memory for the scene's metadata");
}

void *pb_sentinel1_room(struct pb_meta_reader *r, size_t n, size_t size)
{
    void *out = r->rc == 0 ? pb_arena_alloc(r->out->sar->arena, n, size) : NULL;
    if (out == NULL)
        pb_sentinel1_no_memory(r);
    return out;
}

static size_t count_words(const char *text)
{
    size_t n = 0;
    for (text += strspn(text, SPACE); *text != '\0'; text += strspn(text, SPACE), n++)
        text += strcspn(text, SPACE);
    return n;
}

struct pb_sentinel1_list pb_sentinel1_read_list(struct pb_meta_reader *r,
                                                const struct pb_meta_node *node, const char *name,
                                                double low, double high, bool ascend)
{
    const char *text = pb_meta_need_text(r, node, name);
    struct pb_sentinel1_list out = {NULL, text != NULL ? count_words(text) : 0};
    if (text != NULL && out.n == 0)
        pb_meta_wrong(r, "%s has no numbers", name);
    out.number = r->rc == 0 ? pb_sentinel1_room(r, out.n, sizeof *out.number) : NULL;
    for (size_t i = 0; r->rc == 0 && i < out.n; i++) {
        char *end = NULL;
        out.number[i] = strtod(text, &end);
        if (end == text || strchr(SPACE, *end) == NULL || !isfinite(out.number[i]) ||
            out.number[i] < low || out.number[i] > high)
            pb_meta_wrong(r, "number %zu of %s is '%.*s', which cannot be: %g to %g is possible",
                          i + 1, name, (int)strcspn(text + strspn(text, SPACE), SPACE),
                          text + strspn(text, SPACE), low, high);
        else if (ascend && i > 0 && out.number[i] <= out.number[i - 1])
            pb_meta_wrong(r, "%s does not ascend at number %zu", name, i + 1);
        text = end;
    }
    return out;
}
