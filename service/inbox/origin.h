/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ORIGIN_H
#define PB_ORIGIN_H
/* Origin of an input in work/<id>/: a link `.from` next to it, to the directory that the input was
 * in. The link is made before the input is moved there; therefore the sub-folder and the inbox of
 * an input that a dead service left are known. The link is never followed. Thread: any. */
#include "service/base/files.h"

/* claim: work/<id>, a directory that only the service uses. Returns 0 or a negative errno. */
int pb_origin_write(const char *claim, const char *from);
/* Returns 0 and the directory; negative errno if the origin is unknown. */
int pb_origin_read(const char *claim, char out_from[PB_FILES_PATH_BYTES]);
/* Removes a claim that contains only the link and an empty directory of companions. */
void pb_origin_end(const char *claim);
#endif
