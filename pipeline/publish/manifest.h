/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MANIFEST_H
#define PB_MANIFEST_H
/* Record that pushbroom writes into its directories: the file .pushbroom.json in
 *
 *   products/<scene>/              input of the scene directory (pipeline is "")
 *   products/<scene>/<pipeline>/   job, input, and every product file with size and checksum
 *
 * or in the directories of output.path; if {scene} is its last component only the second one
 * exists.
 *
 * It is written last and synced before the directory is renamed into place; therefore a
 * directory with a readable manifest was complete. A directory without one was not made by
 * pushbroom, and is never replaced or removed. Plain functions without state. Thread: any. */
#include "config/base/err.h"
#include "config/output/output_path.h"
#include "pipeline/io/checksum.h"
#include "pipeline/scene/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_MANIFEST_FILE      ".pushbroom.json"
#define PB_MANIFEST_NEW_FILE  ".pushbroom.json.new" /* name until it is complete */
#define PB_MANIFEST_BYTES_MAX (4u << 20)

/* The identity of an input. */
struct pb_input_id {
    char name[800]; /* file name as delivered, without its directory; UTF-8 (pb_input_id_set) */
    uint64_t bytes;
    int64_t mtime_ns;
    char checksum[PB_CHECKSUM_KINDS][PB_CHECKSUM_TEXT_BYTES]; /* content; "" = unknown */
};

struct pb_manifest_file {
    char type[16]; /* type of the product: "cog", ... */
    char name[64]; /* name of the product in the configuration, "" = no name */
    char file[256];
    char media_type[96];
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    int64_t mtime_ns; /* time of publication; 0 = unknown */
};

struct pb_manifest {
    char job[64];                          /* id of the job, "" = made by `pushbroom run` */
    char scene[256];                       /* name of the scene directory: "a", "a~2" */
    char pipeline[256];                    /* "" = manifest of a scene directory */
    char path[PB_OUTPUT_PATH_BYTES + 520]; /* path of a directory of products, below products/ */
    char version[32];                      /* version of pushbroom that wrote it; filled by read */
    uint64_t epoch; /* number of the run among those of the job; 0 = unknown */
    struct pb_input_id input;
    /* Files that were read. Written unless the only one is the image that is the input. Read: by
     * their names inside the input below the root "/", with the role BAND if they have pixels;
     * an input of one file is an image. */
    struct pb_scene_manifest inputs;
    struct pb_manifest_file *file; /* n_files */
    size_t n_files;
};

/* Sets the id from the base name of path; bytes that are not UTF-8 are written %XX after
 * "bytes:". The checksum is then unknown. */
void pb_input_id_set(struct pb_input_id *id, const char *path, uint64_t bytes, int64_t mtime_ns);
/* Returns true if the content is equal: size and checksum, of a kind that is known of both. Name
 * and mtime are ignored. */
bool pb_input_id_equal(const struct pb_input_id *a, const struct pb_input_id *b);
/* Returns true if the sizes are equal, so that the contents may be. */
bool pb_input_id_alike(const struct pb_input_id *a, const struct pb_input_id *b);
/* Returns true if a kind of checksum is known of both, so that pb_input_id_equal is conclusive. */
bool pb_input_id_comparable(const struct pb_input_id *a, const struct pb_input_id *b);

/* Writes (or overwrites) and syncs the manifest of the open directory, with permissions `mode`.
 * shown: the directory's path, for messages. */
int pb_manifest_write(int directory, const struct pb_manifest *manifest, unsigned mode,
                      const char *shown, struct pb_err *err);
/* The same without a sync: for a directory that is not visible before *out_fd, the caller's, is
 * synced. */
int pb_manifest_put(int directory, const struct pb_manifest *manifest, unsigned mode,
                    const char *shown, struct pb_err *err, int *out_fd);
/* Reads the manifest of the open directory. Returns 0 and *out (pb_manifest_fini it); -ENOENT
 * absent; -EINVAL not a manifest of pushbroom (no plain file, too long, unexpected members);
 * other negative errno: it could not be read. *out is untouched on failure. */
int pb_manifest_read(int directory, struct pb_manifest *out);
/* Frees inputs and file. A zeroed manifest is fine. */
void pb_manifest_fini(struct pb_manifest *manifest);

/* Checks that every file of the manifest is in the open directory as a plain file of its size.
 * Returns 0, or a negative errno (-ENOENT missing, -ESTALE another size or kind). */
int pb_manifest_check(int directory, const struct pb_manifest *manifest);

/* Returns true if the file in the open directory differs from the published one: another size or
 * kind, or other bytes. The bytes are read only if its times do not prove that it was not
 * written since. An unreadable file counts as changed; a missing one does not. */
bool pb_manifest_is_changed(int directory, const struct pb_manifest_file *file);

struct pb_manifest_job {
    const char *id, *scene, *pipeline; /* scene: without a version */
    const char *path;                  /* output.path of the pipeline */
};
/* Finds the products of a job in the way of a reader of products/: a complete directory that
 * matches the path, with any metadata of the scene, with the job's id in its manifest. Returns
 * 0, its real path in out_directory (PATH_MAX bytes) and *out_manifest (the caller's to fini;
 * NULL = not needed); -ENOENT not found; another negative errno: products could not be read, the
 * outcome is unknown. Call pb_publish_fence first if the job ran: it restores products that an
 * interrupted exchange had set aside. */
int pb_manifest_find(const char *products, const struct pb_manifest_job *job, char *out_directory,
                     struct pb_manifest *out_manifest);
#endif
