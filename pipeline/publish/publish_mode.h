/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_MODE_H
#define PB_PUBLISH_MODE_H
/* Permissions of published files; mode as in struct pb_publish_options. Thread: any. */
#include "pipeline/publish/manifest.h"

/* Mode of the directories: users who may read the files may search them. 0 for 0. */
unsigned pb_publish_search_mode(unsigned mode);
/* Sets the permissions of the open directory of products (its manifest and the files that m
 * names) and of the temporary directory around it, synced. Returns 0 or a negative errno. */
int pb_publish_set_modes(int temp_fd, int fd, const struct pb_manifest *m, unsigned mode);
#endif
