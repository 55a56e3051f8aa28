/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INBOX_H
#define PB_INBOX_H
/* An inbox of the service: its settings, which its scan (scan.h) and the claim of its files share,
 * the companions of its inputs, and the names that were logged. Thread: any, one at a time for an
 * inbox.
 *
 * A companion is a file that a sender puts next to an input: a marker, which declares the input
 * complete, or its checksum. Its name is made from the input's name by a pattern with {name}. It
 * belongs to the input: both are moved to work/<id>/, the companion into `.with` there, and on to
 * the archive or to quarantine. */
#include "service/base/files.h"
#include "service/inbox/settle.h"

#include <stdbool.h>
#include <sys/stat.h>

#define PB_COMPANION_PATTERN_BYTES 128

enum pb_companion_kind { PB_COMPANION_NONE, PB_COMPANION_MARKER, PB_COMPANION_CHECKSUM };

/* Companion that an inbox expects for each input. */
struct pb_companion_rule {
    enum pb_companion_kind kind;
    char pattern[PB_COMPANION_PATTERN_BYTES]; /* "{name}.done" */
};

#define PB_INBOX_TOLD_MAX   256
#define PB_INBOX_DEPTH_MAX  32   /* levels of sub-folders */
#define PB_INBOX_FOLDER_MAX 1024 /* bytes of the path of a folder below the inbox */

struct pb_writers_events;

/* Inbox of the service, for the code that takes files from it. */
struct pb_inbox {
    const char *path;                 /* real path */
    size_t number;                    /* in pb_dirs */
    struct pb_writers_events *events; /* NULL if inotify is not available */
    bool recurse;
    int priority; /* priority of its jobs */
    struct pb_companion_rule companion;
};

/* Ring of names that were logged already. All-zero: empty. */
struct pb_inbox_told {
    char *name[PB_INBOX_TOLD_MAX];
    size_t n;
};

/* Describes a folder as a file that must settle: its bytes; as its mtime the youngest ctime of its
 * content (an mtime may be older than the arrival); as its ctime a digest. */
struct pb_scene_walk;
void pb_inbox_folder_facts(const struct pb_scene_walk *walk, struct pb_settle_file *out);
/* Returns true if the name was not logged before; remembers it. */
bool pb_inbox_is_news(struct pb_inbox_told *told, const char *name);
void pb_inbox_told_fini(struct pb_inbox_told *told);

/* Makes the path of the companion of the input `path`; false if its name would be too long. */
bool pb_companion_of(const struct pb_companion_rule *rule, const char *path,
                     char out[PB_FILES_PATH_BYTES]);
/* Makes the path of the input that has the companion `path`; false if that is not a companion's
 * name. */
bool pb_companion_input(const struct pb_companion_rule *rule, const char *path,
                        char out[PB_FILES_PATH_BYTES]);

/* Moves the companion from the directory into claim (work/<id>). Returns 0 and its new path;
 * -ENOENT if it is absent or not a plain file; negative errno. */
int pb_companion_take(const char *directory, const char *name, const char *claim,
                      char out_path[PB_FILES_PATH_BYTES]);
/* Moves the companion back. */
int pb_companion_give_back(const char *path, const char *directory);
/* Finds the companion in claim; false if absent. */
bool pb_companion_find(const char *claim, char out_path[PB_FILES_PATH_BYTES]);
/* Removes the empty directory of the companion. */
void pb_companion_end(const char *claim);
/* Directory in claim for a companion that is restored from quarantine; created if absent. */
int pb_companion_room(const char *claim, char out[PB_FILES_PATH_BYTES]);

/* Pairs the files of a scan with their companions: finds the files that wait for companions, and
 * the companions without inputs. With a marker an input is taken immediately; with a checksum when
 * both have settled. Files of an input.group have no companions; a file with other files next to it
 * waits in gathering.c. Pure. Thread: pool. */
/* All-zero: empty. */
struct pb_pairing {
    size_t n_alone;   /* settled companions without an input */
    char first[1024]; /* path of the first one, below the inbox */
};

/* Call after pb_settle_end and the gathering of loose files. */
void pb_pairing_sort(const struct pb_inbox *inbox, struct pb_settle *settle,
                     struct pb_pairing *out);
#endif
