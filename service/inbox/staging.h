/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAGING_H
#define PB_STAGING_H
/* Entries of work/ for inputs that are no jobs yet.
 *
 * Staging makes one folder of the files of a set, so that every reader sees either all of them or
 * no file: work/<job id>.gather/ is made, with a link `.from` to the directory of their origin and
 * an empty folder; the files are renamed into that folder one by one; then the folder is renamed to
 * its place. A process that dies in between leaves work/<job id>.gather/, and pb_staging_recover
 * moves the files back.
 *
 * Origin of an input in work/<id>/: a link `.from` next to it, to the directory that the input was
 * in. The link is made before the input is moved there; therefore the sub-folder and the inbox of
 * an input that a dead service left are known. The link is never followed. Thread: that of
 * pb_claim_files or pb_adopt_work; pb_origin_end: any. */
#include "config/base/err.h"
#include "service/base/files.h"

#include <stdbool.h>

struct pb_staging {
    char path[PB_FILES_PATH_BYTES]; /* work/<id>.gather; "" if absent */
    char link[PB_FILES_PATH_BYTES], folder[PB_FILES_PATH_BYTES];
    char from[PB_FILES_PATH_BYTES];
};

/* Makes the staging directory. id: id of the job. name: name of the folder, not hidden. from:
 * absolute path of a directory, reached by the path `via` until the staging is closed. On failure
 * *err, and no directory is left. */
int pb_staging_open(struct pb_staging *staging, const char *work, const char *id, const char *name,
                    const char *from, const char *via, struct pb_err *err);
/* Renames one file of `from` into the folder: 0 or a negative errno. */
int pb_staging_take(const struct pb_staging *staging, const char *name);
/* Renames the folder to `to`, in a directory to which only the service writes: 0 or a negative
 * errno. */
int pb_staging_commit(const struct pb_staging *staging, const char *to);
/* Removes the rest of the staging directory, which must be empty. */
void pb_staging_close(struct pb_staging *staging);
/* Moves the files back, after a commit those of the folder at `to` (NULL: no commit), and closes
 * the staging. Returns false if some could not be moved back, because their names exist in `from`
 * or it was removed; they stay for pb_staging_recover. */
bool pb_staging_undo(struct pb_staging *staging, const char *to);

/* Returns true if a name in work/ is that of a staging directory. */
bool pb_staging_is(const char *name);
/* Ends the staging of a dead process: moves its files back to their origin. Files that cannot be
 * moved, because a file has their name again or the directory was removed or is a link now, become
 * work/<id>/<folder>/, the input of a job. Returns 0, or *err: it stays unchanged. */
int pb_staging_recover(const char *work, const char *name, struct pb_err *err);

/* Begin of the origin of a scene of a stream, with the stream's name in place of a directory. */
#define PB_ORIGIN_STREAM "stream:"
/* Returns the stream's name in an origin; NULL: the origin is a directory. */
const char *pb_origin_stream(const char *from);
/* Makes the link. claim: work/<id>, a directory that only the service uses. Returns 0 or a negative
 * errno. */
int pb_origin_write(const char *claim, const char *from);
/* Returns 0 and the directory; negative errno if the origin is unknown. */
int pb_origin_read(const char *claim, char out_from[PB_FILES_PATH_BYTES]);
/* Removes a claim that contains only the link and an empty directory of companions. */
void pb_origin_end(const char *claim);
#endif
