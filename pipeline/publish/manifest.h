/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MANIFEST_H
#define PB_MANIFEST_H
/* The record that pushbroom writes into its directories: the file .pushbroom.json in
 *
 *   products/<scene>/              which input the scene directory belongs to (pipeline is "")
 *   products/<scene>/<pipeline>/   job, input, and every product file with size and checksum
 *
 * or where output.path says otherwise; without a component after {scene} there is the second only.
 *
 * It is written last and synced before the directory is renamed into place, so a directory whose
 * manifest can be read was complete. A directory without one was not made by pushbroom, and is
 * never replaced or removed. Plain functions without state. Thread: any. */
#include "config/base/err.h"
#include "config/output/output_path.h"
#include "pipeline/io/checksum.h"

struct pb_input_files;

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_MANIFEST_FILE      ".pushbroom.json"
#define PB_MANIFEST_NEW_FILE  ".pushbroom.json.new" /* while it is written */
#define PB_MANIFEST_BYTES_MAX (4u << 20)

/* The identity of an input. */
struct pb_input_id {
    char name[800]; /* file name as delivered, without its directory; UTF-8 (pb_input_id_set) */
    uint64_t bytes;
    int64_t mtime_ns;
    char checksum[PB_CHECKSUM_KINDS][PB_CHECKSUM_TEXT_BYTES]; /* of its bytes; "" = not known */
};

struct pb_manifest_file {
    char type[16]; /* of product: "cog", ... */
    char name[64]; /* of the product in the config, "" = none */
    char file[256];
    char media_type[96];
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    int64_t mtime_ns; /* when it was published; 0 = not known */
};

/* A file that was read and that identifies the input. */
struct pb_manifest_read {
    char name[800]; /* inside the input */
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES]; /* "" = not known */
};

struct pb_manifest {
    char job[64];                          /* id of the job, "" = made by `pushbroom run` */
    char scene[256];                       /* name of the scene directory: "a", "a~2" */
    char pipeline[256];                    /* "" = this is a scene directory's */
    char path[PB_OUTPUT_PATH_BYTES + 520]; /* of a directory of products, below products/ */
    char version[32];                      /* of the pushbroom that wrote it; filled by read */
    struct pb_input_id input;
    bool has_files; /* filled by read: more than one file was read, or those of a folder */
    struct pb_manifest_read *read; /* filled by read: n_read files of the input, the first
                                      n_pixels of pixels, then metadata and sidecars; none of
                                      an input that is one file */
    size_t n_read, n_pixels;
    const struct pb_input_files *inputs; /* borrowed, for write alone; NULL = not known */
    struct pb_manifest_file *file;       /* n_files; pb_manifest_fini frees them and read */
    size_t n_files;
};

/* path: its base name is taken; bytes that are not UTF-8 are spelled %XX behind "bytes:". The
 * checksum is not known then. */
void pb_input_id_set(struct pb_input_id *id, const char *path, uint64_t bytes, int64_t mtime_ns);
/* The same content: size and checksum, of a kind that is known of both. Name and mtime tell
 * nothing. */
bool pb_input_id_equal(const struct pb_input_id *a, const struct pb_input_id *b);
/* The same as far as it is known without the checksum. */
bool pb_input_id_alike(const struct pb_input_id *a, const struct pb_input_id *b);
/* Whether a kind of checksum is known of both, so that equal or not is the answer. */
bool pb_input_id_comparable(const struct pb_input_id *a, const struct pb_input_id *b);

/* Writes (anew) and syncs the manifest of the open directory, with permissions `mode`. shown: the
 * directory's path, for messages. */
int pb_manifest_write(int directory, const struct pb_manifest *manifest, unsigned mode,
                      const char *shown, struct pb_err *err);
/* The same, not synced: for a directory that nobody sees before *out_fd, the caller's, was synced.
 */
int pb_manifest_put(int directory, const struct pb_manifest *manifest, unsigned mode,
                    const char *shown, struct pb_err *err, int *out_fd);
/* Reads the manifest of the open directory. 0 and *out (pb_manifest_fini it); -ENOENT there is
 * none; -EINVAL it is not one of ours (no plain file, too long, not the expected members); other
 * negative errno: it could not be read. *out is untouched on failure. */
int pb_manifest_read(int directory, struct pb_manifest *out);
void pb_manifest_fini(struct pb_manifest *manifest); /* a zeroed one is fine */

/* Whether every file of the manifest lies in the open directory as a plain file of its size: 0, or
 * a negative errno (-ENOENT missing, -ESTALE another size or kind). */
int pb_manifest_check(int directory, const struct pb_manifest *manifest);

/* Whether the file in the open directory is not the one that was published: another size or kind,
 * or other bytes. The bytes are read only if its times do not prove that nobody wrote to it. What
 * cannot be read counts as changed; a file that is missing does not. */
bool pb_manifest_is_changed(int directory, const struct pb_manifest_file *file);

struct pb_manifest_job {
    const char *id, *scene, *pipeline; /* scene: without a version */
    const char *path;                  /* output.path of the pipeline */
};
/* Whether a reader of products/ finds the products of a job: a complete directory where the path
 * may lead, whatever the scene's metadata, with the job's id in its manifest. 0, its real path in
 * out_directory (PATH_MAX bytes) and *out_manifest (the caller's to fini; NULL = not wanted);
 * -ENOENT there is none; another negative errno: products could not be read, the outcome is not
 * known. Call pb_publish_sweep first when a worker died: it puts back what an interrupted exchange
 * had set aside. */
int pb_manifest_find(const char *products, const struct pb_manifest_job *job, char *out_directory,
                     struct pb_manifest *out_manifest);
#endif
