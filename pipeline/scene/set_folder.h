/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SET_FOLDER_H
#define PB_SET_FOLDER_H
/* Folder of a set of loose files, which contains the set from its claim on. Thread: any. */

struct pb_config;
struct pb_pipeline_config;

/* Finds the first pipeline whose input.group assigns a file of the folder to this scene; NULL if
 * absent, or if the folder cannot be read. */
const struct pb_pipeline_config *pb_set_folder_pipeline(const struct pb_config *config,
                                                        const char *path, const char *scene);
#endif
