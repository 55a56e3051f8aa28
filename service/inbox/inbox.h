/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INBOX_H
#define PB_INBOX_H
/* An inbox of the service, and what its scan (scan.h) and the claim of its files share. Thread:
 * any, one at a time for an inbox. */
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

/* Call after pb_settle_end of a scan: files that were renamed into the inbox and not touched
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
