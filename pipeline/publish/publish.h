/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_H
#define PB_PUBLISH_H
/* A directory of products that appears all at once: files are written into
 * <products>/.<scene>. ... .tmp/scene/<pipeline> (publish_temp.h), which becomes
 * <products>/<scene>/<pipeline> by one rename when everything is on disk, its manifest (manifest.h)
 * last. output.path may put other directories above <scene>, which are made without following
 * links, and leave out <pipeline>. Names and locks distinguish temporary directories of processes
 * that run from those of dead ones, and those of this machine from those of others.
 *
 * <products>/<scene> belongs to one input, which its own manifest names. The same content (size and
 * checksum) replaces its older products in one exchange. Of an input of several files it is the
 * same as well when the files of the older products that are read now, one at least, have the
 * checksums that they had: a pipeline may come to read more or fewer files. Another input is
 * refused, replaces the products as well, or gets the next free place <scene>~2, <scene>~3, ...
 * Files that pushbroom did not make are never replaced or removed: no directory without a manifest,
 * none that holds a file its manifest does not name or one that was changed since, none that the
 * input lies in.
 *
 * The outcome rule: publishing has succeeded when a reader finds the directory in its place, and
 * failed when not. When the rename cannot be synced it is taken back, and that is a failure; when
 * it cannot be taken back either, the products are there: a success with a warning. Rows of series
 * and the extent of collection.json follow the products (publish_rows.h).
 *
 * One thread an object; any number of processes may publish into one directory. */
#include "config/base/err.h"
#include "config/config.h"
#include "config/output/output_path.h"
#include "pipeline/raster/input_sum.h"
#include "pipeline/publish/manifest.h"

#include <stddef.h>

struct pb_publish;

struct pb_publish_options {
    const char *products; /* directory, created with its parents when missing */
    const char *scene;    /* name of the scene, without a version */
    const char *pipeline;
    const char *path;   /* output.path; NULL = its default */
    bool late;          /* what the path needs of the metadata is told by pb_publish_locate */
    const char *sensor; /* of the scene's metadata, for the path; NULL = not known */
    bool has_time;
    const char *collection; /* whose collection.json is to be in products; NULL = none */
    int64_t time_s;         /* since 1970-01-01 UTC */
    const char *job;        /* id, for the manifest; NULL = none */
    struct pb_input_id input;
    /* Tells the checksums that `input` lacks: its own kind before open returns, when a directory of
     * an input alike is there, else by commit; another kind where such a directory has that one.
     * Taken, also when open fails; NULL = `input` has it, or no input will ever be taken for the
     * same. */
    struct pb_input_sum *sum;
    bool is_folder;      /* the input is a folder that is a scene: files are named inside it */
    bool is_set;         /* the input is loose files: products of files that it lacks stay */
    bool is_open;        /* and products of a part of these files are replaced, by whatever rule */
    const char *earlier; /* only those of these jobs: ids, a space behind each, borrowed; NULL:
                            those of a command, which no job made, of files with the content of
                            these */
    const char *input_path; /* a directory that this file lies in is not replaced; NULL = no file */
    enum pb_existing existing;
    unsigned mode; /* permissions of the files, and with search for readers of the directories; 0 =
                      0644 and 0755 without the umask's bits */
};

#define PB_PUBLISH_MOVED 1 /* of commit, see there */

/* Chooses the place and creates the temporary directory. Strings are copied. A name that is none,
 * begins with a dot or holds a slash is refused: it would hide, or land elsewhere. */
int pb_publish_open(const struct pb_publish_options *options, struct pb_err *err,
                    struct pb_publish **out_publish);
/* Chooses the place of a `late` one: before commit, when pb_publish_is_placed tells that it has
 * none. sensor: NULL = not known, like a time without has_time. */
bool pb_publish_is_placed(const struct pb_publish *publish);
int pb_publish_locate(struct pb_publish *publish, const char *sensor, bool has_time, int64_t time_s,
                      struct pb_err *err);
/* Starts a thread that computes the input's checksum; the caller must not fork afterwards. Without
 * this call commit computes it. Syncs what makes the temporary directory known as ours, so the
 * processes that write its files are best started before. */
int pb_publish_identify(struct pb_publish *publish, struct pb_err *err);
/* How many bytes the largest product will have, as far as is known now: so much of the input may
 * be hashed while that product is. Any time before commit. */
void pb_publish_expect(struct pb_publish *publish, uint64_t bytes);
/* The files that were read, with their checksums; waits for these. Borrowed until close; n 0 when
 * `sum` was NULL. */
int pb_publish_inputs(struct pb_publish *publish, struct pb_err *err,
                      const struct pb_input_files **out);
/* Does what of the commit depends on the input only: for a caller that waits for others to end.
 * Waits for the checksum. */
int pb_publish_prepare(struct pb_publish *publish, struct pb_err *err);
/* The rows of the CSV file `table`, one of the products, will be put into <products>/<series>
 * (series.h) by commit. A series that cannot take them fails it before anything is visible. */
int pb_publish_append(struct pb_publish *publish, const char *table, const char *series,
                      struct pb_err *err);
const char *pb_publish_directory(const struct pb_publish *publish); /* where to write */
/* The scene directory below products: "a", "a~2", "2026/a". Borrowed; commit may change it. */
const char *pb_publish_place(const struct pb_publish *publish);
/* Makes the files, all written and synced, visible. 0: *out_path (PATH_MAX bytes) gets the final
 * directory, and only close is left. PB_PUBLISH_MOVED: another input took the place since open;
 * nothing is visible and pb_publish_place names the next one: write anew what holds that name, and
 * call again. */
int pb_publish_commit(struct pb_publish *publish, const struct pb_manifest_file *file,
                      size_t n_files, struct pb_err *err, char *out_path);
/* After a commit that returned 0: a warning, "" = none. Valid until close. */
const char *pb_publish_warning(const struct pb_publish *publish);
/* Removes what was not committed. NULL is fine. */
void pb_publish_close(struct pb_publish *publish);
/* Handles the temporary directories below products that dead processes of this machine left: puts
 * in rows that are missing, puts back products that an interrupted exchange had set aside, and
 * removes them. Only what carries our kind of name, this machine's node, no lock, and our manifest
 * or nothing at all is touched. Those of other machines stay: these sweep them. Returns how many
 * are removed. pb_publish_open does it too. */
int pb_publish_sweep(const char *products);
#endif
