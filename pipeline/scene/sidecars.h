/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SIDECARS_H
#define PB_SIDECARS_H
/* Open files next to those of a scene. Metadata of a scene that is one file: those in its directory
 * that match input.metadata; of several for one pattern, the one whose name begins like the scene's
 * (pb_metadata_is_of). Sidecars: files that input.sidecars lists are opened, and GDAL reads them
 * with the file they belong to; others with a known ending are recorded for the report. One thread
 * per object. */
#include "config/input_values.h"
#include "pipeline/raster/raster_file.h"

struct pb_pipeline_config;
struct pb_scene_walk;
struct pb_scene_entry;
struct pb_json;

/* Open files of input.metadata: those of one scene, in the order of its patterns, or those of each
 * of its observations (counted files), in the order of their names. */
struct pb_metadata_files {
    struct pb_raster_file file[PB_METADATA_OPEN_MAX];
    size_t n; /* count of open files; the others have fd -1 */
};

void pb_metadata_files_init(struct pb_metadata_files *files); /* sets it to empty */
void pb_metadata_files_close(struct pb_metadata_files *files);
/* Copies their descriptors to out; returns the count. */
size_t pb_metadata_files_fds(const struct pb_metadata_files *files, int *out);

/* Finds and opens one file with metadata for each pattern. input: path of the scene's file. scene:
 * its name, for {scene}. reader: see scene_walk.h. input.metadata_missing names the pattern and the
 * directory; input.ambiguous: two files match; input.link: it is a symbolic link. *out needs
 * close (pb_metadata_files_close) in any case. */
int pb_sidecar_open(const struct pb_pipeline_config *pipeline, const char *input, const char *scene,
                    int64_t reader, struct pb_metadata_files *out, struct pb_err *err);
/* Opens the metadata of one of several loose files before their scene is known: those in its
 * directory, which may be absent. As above. */
int pb_sidecar_open_own(const struct pb_pipeline_config *pipeline, const char *input,
                        int64_t reader, struct pb_metadata_files *out, struct pb_err *err);
/* Returns true if the file of that name is metadata of any file. */
bool pb_sidecar_is_metadata(const struct pb_pipeline_config *pipeline, const char *name);
/* Writes the path of the main file if `folder` is a folder named after a file that is archived
 * with its sidecars (PATH_MAX bytes); else returns false. */
bool pb_sidecar_main(const char *folder, char *out);

#define PB_SIDECARS_TOLD_MAX 16 /* names of unread ones */

struct pb_sidecars {
    struct pb_raster_file file[PB_SIDECARS_MAX]; /* open */
    size_t n;
    char unused[PB_SIDECARS_TOLD_MAX][256]; /* paths inside the scene */
    size_t n_unused, n_unused_all;          /* count in unused; count of all */
};

/* Opens those of a scene that is one file, in its directory. reader: see scene_walk.h.
 * input.incomplete: one required by input.complete is missing; input.limit: too many;
 * input.link, input.missing; else an error of pb_raster_file_fail. *out needs close in any case. */
int pb_sidecars_open(const struct pb_pipeline_config *pipeline, const char *input, int64_t reader,
                     struct pb_err *err, struct pb_sidecars *out);
/* Finds those of n files of a walked folder or archive, each in that file's directory: the entries
 * of the walk to read, and for each the count of bytes that its name shares with its file's (struct
 * pb_raster_file). main: paths in the walk. Records the others in *out, which is zeroed. Returns 0,
 * or input.limit. */
struct pb_sidecars_found {
    const struct pb_scene_entry *entry[PB_SIDECARS_MAX];
    size_t stem[PB_SIDECARS_MAX], n;
};
int pb_sidecars_find(const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                     const char *folder, const char *const *main, size_t n, struct pb_err *err,
                     struct pb_sidecars *out, struct pb_sidecars_found *found);
/* Opens those of n opened files in a folder with other files. */
int pb_sidecars_take_loose(const struct pb_pipeline_config *pipeline, const char *folder,
                           int64_t reader, const struct pb_raster_file *file, size_t n,
                           struct pb_err *err, struct pb_sidecars *out);
void pb_sidecars_close(struct pb_sidecars *sidecars); /* zero bytes are fine */
/* Writes them as the member "sidecars" of an object: {read, unused}; nothing if empty or NULL. */
void pb_sidecars_print(const struct pb_sidecars *sidecars, struct pb_json *json);
/* Lists the unread ones: "A, B and 3 more", or "". */
void pb_sidecars_text(const struct pb_sidecars *sidecars, char *text, size_t bytes);
#endif
