/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_H
#define PB_PUBLISH_H
/* Publication of a directory of products in one step: files are written into
 * <products>/.<scene>. ... .tmp/scene/<pipeline> (publish_temp.h), which becomes
 * <products>/<scene>/<pipeline> by one rename after everything is on disk, its manifest
 * (manifest.h) last. output.path may add other directories above <scene>, which are made without
 * following links, and omit <pipeline>. Names and locks distinguish temporary directories of
 * running processes from those of dead ones, and those of this machine from those of others.
 *
 * <products>/<scene> belongs to one input, which its own manifest names. The same content (size
 * and checksum) replaces its older products in one exchange. An input of several files also
 * counts as the same if the files of the older products that are read now, at least one, have
 * unchanged checksums, because a pipeline may be changed to read more or fewer files. Another
 * input is refused, replaces the products too, or gets the next free place <scene>~2, <scene>~3,
 * ... Files that pushbroom did not make are never replaced or removed: no directory without a
 * manifest, none with a file that its manifest does not name or that was changed since, none
 * that contains the input.
 *
 * Outcome rule: publishing has succeeded if a reader finds the directory in its place, else it
 * has failed. If the rename cannot be synced it is reverted, and that is a failure; if it cannot
 * be reverted either, the products are visible: a success with a warning. Rows of series and the
 * extent of collection.json are published after the products (publish_rows.h).
 *
 * One thread per object; any number of processes may publish into one directory. */
#include "config/base/err.h"
#include "config/output/output_path.h"
#include "config/output_config.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/raster/input_sum.h"

#include <stddef.h>

struct pb_publish;
struct pb_scene_files;

struct pb_publish_options {
    const char *products; /* directory, created with its parents when missing */
    /* id that the token of products must have (publish_root.h), which is then not created; NULL =
     * no token is needed */
    const char *root;
    const char *scene; /* name of the scene, without a version */
    const char *pipeline;
    const char *path;   /* output.path; NULL = its default */
    bool late;          /* pb_publish_locate sets the path's values from the metadata */
    const char *sensor; /* sensor in the scene's metadata, for the path; NULL = unknown */
    bool has_time;
    const char *collection; /* collection whose collection.json is updated in products; NULL = no
                               collection */
    int64_t time_s;         /* since 1970-01-01 UTC */
    const char *job;        /* id for the manifest; NULL = no job */
    uint64_t epoch; /* number of this run of the job; 0 = unknown: no run is earlier or later */
    struct pb_input_id input;
    /* Computes the checksums that `input` lacks: its own kind before open returns if there is a
     * directory of a similar input, else by commit; another kind if such a directory has that
     * kind. Taken, also if open fails; NULL = `input` has it, or no input ever counts as the
     * same. */
    struct pb_input_sum *sum;
    struct pb_scene_manifest files; /* the files of sum (scene_inputs.h); taken like sum */
    bool is_folder;                 /* the input is a folder that is a scene */
    /* the input is these loose files: products of files that it lacks are not replaced; borrowed
     * until close; NULL = others */
    const struct pb_scene_files *set;
    bool is_open; /* and products of a part of these files are replaced, by any rule */
    /* only products of these jobs: ids, each followed by a space, borrowed; NULL: products of a
     * command, not of a job, from files with the content of these */
    const char *earlier;
    /* a directory that contains this file is not replaced; NULL = no file */
    const char *input_path;
    enum pb_existing existing;
    unsigned mode; /* permissions of the files, and with search for readers of the directories; 0 =
                      0644 and 0755 without the umask's bits */
    /* Called by commit, request_permit before the files are synced, and permit after that, before
     * anything becomes visible; it may wait. permit returns 0, or negative and *err: commit returns
     * that, and nothing becomes visible. NULL = not called. */
    void (*request_permit)(void *user);
    int (*permit)(void *user, struct pb_err *err);
    void *permit_user;
};

#define PB_PUBLISH_MOVED 1 /* result of commit */

/* Chooses the place and creates the temporary directory. Strings are copied. A scene name that
 * is empty, begins with a dot or contains a slash is refused: it would be hidden, or in another
 * directory. */
int pb_publish_open(const struct pb_publish_options *options, struct pb_err *err,
                    struct pb_publish **out_publish);
/* Chooses the place of a `late` publication: call before commit if pb_publish_is_placed returns
 * false. sensor: NULL = unknown, like a time without has_time. */
bool pb_publish_is_placed(const struct pb_publish *publish);
int pb_publish_locate(struct pb_publish *publish, const char *sensor, bool has_time, int64_t time_s,
                      struct pb_err *err);
/* Starts a thread that computes the input's checksum; the caller must not fork afterwards.
 * Without this call commit computes it. Syncs the mark of the temporary directory; therefore
 * start the processes that write its files before. */
int pb_publish_identify(struct pb_publish *publish, struct pb_err *err);
/* Sets the size of the largest product, as known so far: this many bytes of the input may be
 * hashed while that product is finished. Any time before commit. */
void pb_publish_expect(struct pb_publish *publish, uint64_t bytes);
/* Returns the files that were read, with their checksums; waits for these. Borrowed until close;
 * empty if `sum` was NULL. */
int pb_publish_inputs(struct pb_publish *publish, struct pb_err *err,
                      const struct pb_scene_manifest **out);
/* Does the part of the commit that depends only on the input: for a caller that waits for other
 * work. Waits for the checksum. */
int pb_publish_prepare(struct pb_publish *publish, struct pb_err *err);
/* Makes commit add the rows of the CSV file `table`, one of the products, to <products>/<series>
 * (series.h). If the series cannot take them, commit fails before anything is visible. */
int pb_publish_append(struct pb_publish *publish, const char *table, const char *series,
                      struct pb_err *err);
/* Makes commit leave the temporary directory, empty and locked, for the next publication of this
 * process into the same directory of products, which renames it. It saves making and removing a
 * directory and a lock, and the search for directories of runs that were killed. */
void pb_publish_leave_temp(struct pb_publish *publish);
/* Removes the directory that a publication of this process has left and no other one has taken. */
void pb_publish_drop_temp(void);
const char *pb_publish_directory(const struct pb_publish *publish); /* directory to write into */
/* The scene directory below products: "a", "a~2", "2026/a". Borrowed; commit may change it. */
const char *pb_publish_place(const struct pb_publish *publish);
/* Makes the files, all written and synced, visible. Returns 0: *out_path (PATH_MAX bytes) is the
 * final directory, and only close remains. PB_PUBLISH_MOVED: another input took the place since
 * open; nothing is visible and pb_publish_place returns the next one: rewrite the files that
 * contain that name, and call again. */
int pb_publish_commit(struct pb_publish *publish, const struct pb_manifest_file *file,
                      size_t n_files, struct pb_err *err, char *out_path);
/* Returns a warning after a commit that returned 0, "" = no warning. Valid until close. */
const char *pb_publish_warning(const struct pb_publish *publish);
/* Removes uncommitted files. NULL is fine. */
void pb_publish_close(struct pb_publish *publish);
/* Handles the temporary directories below products of dead processes of this machine: adds
 * missing rows, restores products that an interrupted exchange had set aside, and removes the
 * directories. It only touches directories with our form of name, this machine's node, no lock,
 * and our manifest or no content. Directories of other machines are left to their own sweeps.
 * Returns the count of removed directories. pb_publish_open calls it too. */
int pb_publish_sweep(const char *products);
/* Does the same also for runs of other machines that is_over knows to be over: the machine may be
 * gone for ever. Such a run cannot publish afterwards. */
typedef bool pb_publish_is_over(void *user, const char *job, uint64_t epoch);
int pb_publish_sweep_runs(const char *products, pb_publish_is_over *is_over, void *user);
/* Sweeps, and before that takes the files of the job's runs up to that epoch away from them
 * (publish_temp.h), so that none of them can publish any more; rows of one that has published are
 * added. Call it before a look for the
 * products of a job whose runs are over (manifest.h): the result of the look then stays true until
 * the job runs again. Negative errno: a run was not fenced, and may still publish. */
int pb_publish_fence(const char *products, const char *job, uint64_t epoch);
#endif
