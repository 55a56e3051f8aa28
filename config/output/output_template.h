/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTPUT_TEMPLATE_H
#define PB_OUTPUT_TEMPLATE_H
/* Taking the templates of output.path and output.name apart (output_path.h). Pure; any thread. */
#include "config/output/output_path.h"

#include <stdbool.h>
#include <stddef.h>

#define PB_TEMPLATE_PART_BYTES 256

/* A template split at '/'; a FORMAT with '/' becomes a placeholder in each component. */
struct pb_template_parts {
    char text[PB_OUTPUT_PARTS_MAX][PB_TEMPLATE_PART_BYTES];
    size_t n;
};

struct pb_template_placeholder {
    char key[32], format[64];
};

/* One piece of a component: a placeholder, or a letter that stands for itself. */
struct pb_template_piece {
    bool is_placeholder;
    struct pb_template_placeholder placeholder;
    char letter;
};

/* False: it has too many components, or one that is too long. */
bool pb_template_split(const char *text, struct pb_template_parts *p);
/* The piece at *at, which moves behind it. False: a brace that belongs to no placeholder. */
bool pb_template_next(const char **at, struct pb_template_piece *out);
#endif
