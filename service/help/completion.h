/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPLETION_H
#define PB_COMPLETION_H
/* Completion scripts for shells. For pushbroom they call `pushbroom --complete`; for pushbroomd,
 * pushbroom-notify, pushbroom-web and pushbroom-ccsds they are made from the tables of help.h. One
 * thread. */
#include "service/help/help.h"

void pb_completion_bash(FILE *out);
void pb_completion_zsh(FILE *out);
#endif
