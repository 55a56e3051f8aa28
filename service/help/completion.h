/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPLETION_H
#define PB_COMPLETION_H
/* Completions for shells, made of the tables of help.h: of pushbroom and its commands, pushbroomd
 * and pushbroom-notify. One thread. */
#include "service/help/help.h"

void pb_completion_bash(const struct pb_help_page *const *commands, size_t n, FILE *out);
void pb_completion_zsh(const struct pb_help_page *const *commands, size_t n, FILE *out);
#endif
