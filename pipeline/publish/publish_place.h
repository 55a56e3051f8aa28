/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PUBLISH_PLACE_H
#define PB_PUBLISH_PLACE_H
/* Which directory below products/ an input may use, by the rules of publish.h; changes no file.
 * Thread: any. */
#include "pipeline/publish/publish.h"

#include <stdbool.h>
#include <sys/stat.h>

enum pb_place_state {
    PB_PLACE_FREE,   /* there is nothing of that name */
    PB_PLACE_OURS,   /* this input's scene directory, and nothing of the pipeline's name in it */
    PB_PLACE_HOLDS,  /* the same with older products of this input and pipeline: to be exchanged */
    PB_PLACE_ALIKE,  /* an input's of this name, size and mtime; the wanted one's checksum, not
                        known yet, tells whether it is this one */
    PB_PLACE_ANOTHER /* of another input, or foreign */
};

struct pb_place_look {
    enum pb_place_state state;
    int scene_fd;         /* OURS and HOLDS: the scene directory, the caller's to close; else -1 */
    struct stat products; /* HOLDS: the directory of the older products */
    char why[320];        /* ANOTHER: "holds ..." */
    bool same_input;      /* the scene directory is this input's, whatever lies in it */
};

/* Looks at <products>/<place>. 0, or a negative errno when it cannot be looked at. */
int pb_place_look(int products_fd, const char *place, const struct pb_publish_options *wanted,
                  struct pb_place_look *out);
/* The place to use: the scene's own name, else the one of its versions that is this input's, else
 * the first free one; or output.exists when versions are not wanted. 1: that depends on the
 * checksum of the wanted input; call again with it. */
int pb_place_choose(int products_fd, const struct pb_publish_options *wanted, struct pb_err *err,
                    char out_place[256]);
#endif
