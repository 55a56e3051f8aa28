/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAGING_H
#define PB_STAGING_H
/* How the files of a set become one folder, so that whoever looks sees all of them or none:
 * work/<job id>.gather/ is made, with a link `.from` to the directory they come from and an
 * empty folder; the files are renamed into that folder one by one; then the folder is renamed to
 * its place. A process that dies in between leaves work/<job id>.gather/, and pb_staging_recover
 * gives the files back. Thread: pool, one at a time. */
#include "config/base/err.h"
#include "service/base/files.h"

#include <stdbool.h>

struct pb_staging {
    char path[PB_FILES_PATH_BYTES]; /* work/<id>.gather; "" = there is none */
    char link[PB_FILES_PATH_BYTES], folder[PB_FILES_PATH_BYTES];
    char from[PB_FILES_PATH_BYTES];
};

/* id: of the job. name: of the folder, not hidden. from: absolute path of a directory, reached by
 * the path `via` until the staging is closed. On failure *err, and nothing is left. */
int pb_staging_open(struct pb_staging *staging, const char *work, const char *id, const char *name,
                    const char *from, const char *via, struct pb_err *err);
/* Renames one file of `from` into the folder: 0 or a negative errno. */
int pb_staging_take(const struct pb_staging *staging, const char *name);
/* Renames the folder to `to`, in a directory that nobody else writes in: 0 or a negative errno. */
int pb_staging_commit(const struct pb_staging *staging, const char *to);
/* Removes what is left of it, which must be empty. */
void pb_staging_close(struct pb_staging *staging);
/* Gives the files back, after a commit those of the folder at `to` (NULL: there was none), and
 * closes it. False: some could not go back, as their names are taken in `from` or it is gone; they
 * stay for pb_staging_recover. */
bool pb_staging_undo(struct pb_staging *staging, const char *to);

/* Whether a name in work/ is that of a staging directory. */
bool pb_staging_is(const char *name);
/* Ends one that a dead process left: its files go back to where they came from. What cannot, as a
 * file of its name is there again or the directory is gone or a link now, becomes
 * work/<id>/<folder>/, the input of a job. 0, or *err: it stays as it is. */
int pb_staging_recover(const char *work, const char *name, struct pb_err *err);
#endif
