/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INBOX_H
#define PB_INBOX_H
/* One scan of an inbox: finds its plain files and the folders that are scenes, and logs other
 * entries. If the inbox recurses, other folders are searched. Thread: any, one at a time. */
#include "service/inbox/companion.h"
#include "service/inbox/settle.h"

#include <sys/stat.h>

#define PB_INBOX_TOLD_MAX   256
#define PB_INBOX_DEPTH_MAX  32   /* levels of sub-folders */
#define PB_INBOX_FOLDER_MAX 1024 /* bytes of the path of a folder below the inbox */

struct pb_writer_events;

/* Inbox of the service, for the code that takes files from it. */
struct pb_inbox {
    const char *path;                /* real path */
    struct pb_writer_events *events; /* NULL if inotify is not available */
    bool recurse;
    int priority; /* priority of its jobs */
    struct pb_companion_rule companion;
};

/* Ring of names that were logged already. All-zero: empty. */
struct pb_inbox_told {
    char *name[PB_INBOX_TOLD_MAX];
    size_t n;
};

/* Rules for the names in the inbox. */
struct pb_inbox_rules {
    bool (*takes)(void *user, const char *name); /* true if a folder of that name is a scene */
    /* true if the path below the inbox is to be ignored */
    bool (*ignores)(void *user, const char *path);
    void *user;
};

struct pb_inbox_folder {
    char *path; /* path below the inbox */
    dev_t device;
    ino_t inode;
};

#define PB_INBOX_LEFT_MAX 100 /* entries of a scan that are recorded with their names */

/* Entry that is neither a file nor a scene that can be taken. */
struct pb_inbox_left {
    char name[256];               /* the end of its path below the inbox */
    enum pb_settle_reason reason; /* refused or foreign */
    enum pb_code code;
    char text[160];
};

/* Statistics of a scan, without its files. All-zero: empty. */
struct pb_inbox_seen {
    struct stat st;                 /* attributes of the inbox itself */
    size_t ignored;                 /* names that the rules ignore */
    struct pb_inbox_folder *folder; /* folders that were searched; "" is the inbox */
    size_t n_folders, folders_room;
    struct pb_inbox_left *left;  /* PB_INBOX_LEFT_MAX entries; NULL if empty or out of memory */
    size_t n_left;               /* entries in `left` */
    size_t n_refused, n_foreign; /* counts of all such entries */
};

/* Adds every plain file with one link, and every folder that the rules take, to settle. Negative
 * errno: the inbox cannot be read (to its end). Such an error of a sub-folder is only logged, and
 * its files are missing from the scan. *out is overwritten. */
int pb_inbox_read(const struct pb_inbox *inbox, const struct pb_inbox_rules *rules,
                  struct pb_settle *settle, struct pb_inbox_told *told, struct pb_inbox_seen *out);
void pb_inbox_seen_fini(struct pb_inbox_seen *seen);
/* Call after pb_settle_end of that scan: files that were renamed into the inbox and not touched
 * since become complete. Files of sub-folders settle, because no events report their renames. */
void pb_inbox_mark_renamed(const struct pb_inbox *inbox, struct pb_settle *settle, int64_t mono_ms);
/* Describes a folder as a file that must settle: its bytes; as its mtime the youngest ctime of its
 * content (an mtime may be older than the arrival); as its ctime a digest. */
struct pb_scene_walk;
void pb_inbox_folder_facts(const struct pb_scene_walk *walk, struct pb_settle_file *out);
/* Returns true if the name was not logged before; remembers it. */
bool pb_inbox_is_news(struct pb_inbox_told *told, const char *name);
void pb_inbox_told_fini(struct pb_inbox_told *told);
#endif
