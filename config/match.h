/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MATCH_H
#define PB_MATCH_H
/* The choice of a pipeline for an input, by its name. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct pb_config;
struct pb_pipeline_config;

/* First pipeline one of whose patterns fits the base name of path, upper and lower case being
 * alike; NULL = none. An archive (base/archive_name.h) fits an input.archives, and an input.scene
 * by its name without the suffix, or with .SAFE in its place, and an input.group when a name that
 * fits that may begin so. */
const struct pb_pipeline_config *pb_config_match(const struct pb_config *config, const char *path);
/* The same for a folder, by input.scene. A slash at the end of path counts for nothing. */
const struct pb_pipeline_config *pb_config_match_folder(const struct pb_config *config,
                                                        const char *path);
/* Whether the pipeline's input.scene fits the name. */
bool pb_config_takes_folder(const struct pb_pipeline_config *pipeline, const char *path);
/* The same for a loose file of a scene of many, by input.group; out_scene (256 bytes): the scene
 * that it belongs to, "" if the metadata decides (pb_group_pattern_asks) and facts, its
 * content, is NULL or lacks it. Such a file is no scene of its own, whatever input.match fits. */
struct pb_group_facts;
const struct pb_pipeline_config *pb_config_match_group(const struct pb_config *config,
                                                       const char *path,
                                                       const struct pb_group_facts *facts,
                                                       char *out_scene);

/* Kind of an input that has the name. */
enum pb_config_kind { PB_INPUT_FILE, PB_INPUT_FOLDER, PB_INPUT_GROUP };
/* Why the pipeline takes the input, in words ("its name fits '*.tif' of input.match"); false: its
 * name does not fit. */
bool pb_config_match_why(const struct pb_pipeline_config *pipeline, const char *path,
                         enum pb_config_kind kind, char *out, size_t bytes);
/* Which names of files, or of folders, pipelines take: "vegetation takes *.tif *.tiff; dem takes
 * dem*", cut with "...". */
void pb_config_takes(const struct pb_config *config, bool folders, char *out, size_t bytes);
#endif
