/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ORIGIN_H
#define PB_ORIGIN_H
/* Where an input in work/<id>/ came from: a link `.from` beside it, to the directory that it lay
 * in. It is made before the input is moved there, so that what a dead service left behind is known
 * by its sub-folder and by its inbox. The link is never followed. Thread: any. */
#include "service/base/files.h"

/* claim: work/<id>, of ours alone. 0 or a negative errno. */
int pb_origin_write(const char *claim, const char *from);
/* 0 and the directory; negative errno: nothing is known. */
int pb_origin_read(const char *claim, char out_from[PB_FILES_PATH_BYTES]);
/* Nothing is left of a claim but the link and an empty directory of companions: removes it. */
void pb_origin_end(const char *claim);
#endif
