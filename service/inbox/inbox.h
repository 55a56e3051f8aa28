/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INBOX_H
#define PB_INBOX_H
/* One scan of an inbox: the plain files there, and the folders that are scenes; other entries are
 * logged. Where it recurses, other folders are looked into. Thread: any, one at a time. */
#include "service/inbox/companion.h"
#include "service/inbox/settle.h"

#include <sys/stat.h>

#define PB_INBOX_TOLD_MAX   256
#define PB_INBOX_DEPTH_MAX  32   /* of sub-folders */
#define PB_INBOX_FOLDER_MAX 1024 /* bytes of the path of one, below the inbox */

struct pb_writer_events;

/* An inbox of the service, as those see it who take files from it. */
struct pb_inbox {
    const char *path;                /* real */
    struct pb_writer_events *events; /* NULL: there is no inotify */
    bool recurse;
    int priority; /* of its jobs */
    struct pb_companion_rule companion;
};

/* Names that were logged already, a ring. Zero bytes: none. */
struct pb_inbox_told {
    char *name[PB_INBOX_TOLD_MAX];
    size_t n;
};

/* What the names in the inbox mean. */
struct pb_inbox_rules {
    bool (*takes)(void *user, const char *name);   /* whether a folder of that name is a scene */
    bool (*ignores)(void *user, const char *path); /* whether what has that path below the inbox is
                                                      left alone */
    void *user;
};

struct pb_inbox_folder {
    char *path; /* below the inbox */
    dev_t device;
    ino_t inode;
};

#define PB_INBOX_LEFT_MAX 100 /* entries that a scan names */

/* An entry that is neither a file nor a scene that can be taken. */
struct pb_inbox_left {
    char name[256];               /* the end of its path below the inbox */
    enum pb_settle_reason reason; /* refused or foreign */
    enum pb_code code;
    char text[160];
};

/* What a scan saw beside files. Zero bytes: nothing. */
struct pb_inbox_seen {
    struct stat st;                 /* of the inbox */
    size_t ignored;                 /* names that were left alone by the rules */
    struct pb_inbox_folder *folder; /* that were looked into; "" is the inbox */
    size_t n_folders, folders_room;
    struct pb_inbox_left *left;  /* PB_INBOX_LEFT_MAX; NULL = none, or out of memory */
    size_t n_left;               /* in left */
    size_t n_refused, n_foreign; /* all of them */
};

/* Adds every plain file with one name, and every folder that is taken, to settle. Negative errno:
 * the inbox cannot be read (to its end); of a sub-folder that is logged, and its files are not
 * seen. *out is set anew. */
int pb_inbox_read(const struct pb_inbox *inbox, const struct pb_inbox_rules *rules,
                  struct pb_settle *settle, struct pb_inbox_told *told, struct pb_inbox_seen *out);
void pb_inbox_seen_fini(struct pb_inbox_seen *seen);
/* After pb_settle_end of that scan: its files that were renamed into the inbox, and not touched
 * since, are complete. Those of sub-folders settle: nothing tells of their renames. */
void pb_inbox_mark_renamed(const struct pb_inbox *inbox, struct pb_settle *settle, int64_t mono_ms);
/* A folder as a file that has to settle: its bytes, the youngest ctime of all that lies in it as
 * its mtime (that of a file may be older than its arrival), and a digest as its ctime. */
struct pb_scene_walk;
void pb_inbox_folder_facts(const struct pb_scene_walk *walk, struct pb_settle_file *out);
/* Whether the name was not logged before; remembers it. */
bool pb_inbox_is_news(struct pb_inbox_told *told, const char *name);
void pb_inbox_told_fini(struct pb_inbox_told *told);
#endif
