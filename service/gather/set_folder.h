/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SET_FOLDER_H
#define PB_SET_FOLDER_H
/* A set of loose files in a folder of its own, in which it is kept from its claim on. Thread: any.
 */
#include "config/config.h"

/* The first pipeline whose input.group takes a file of the folder for one of this scene; NULL:
 * none does, or the folder cannot be read. */
const struct pb_pipeline_config *pb_set_folder_pipeline(const struct pb_config *config,
                                                        const char *path, const char *scene);
#endif
