/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_YAML_WORDS_H
#define PB_YAML_WORDS_H
/* libyaml's messages in words for users of YAML. */
#include <stdbool.h>
#include <stddef.h>

/* Static text for a problem (and its context, or NULL); the problem itself when it is not known. */
const char *pb_yaml_problem(const char *problem, const char *context);
/* Whether the place of the context (the bracket or quote that was opened) helps more than the place
 * where the parser stopped. */
bool pb_yaml_blames_context(const char *problem, const char *context);
/* Whether a decoded scalar (valid UTF-8) holds no NUL, control or invisible line-break characters;
 * tabs and line feeds are fine. */
bool pb_yaml_printable(const char *text, size_t bytes);
#endif
