/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INBOX_H
#define PB_INBOX_H
/* One scan of an inbox: the plain files there, and the folders that are scenes; other entries are
 * logged. Thread: any, one at a time. */
#include "service/inbox/settle.h"

#include <sys/stat.h>

#define PB_INBOX_TOLD_MAX 256

struct pb_writer_events;

/* An inbox of the service, as those see it who take files from it. */
struct pb_inbox {
    const char *path;                /* real */
    struct pb_writer_events *events; /* where leases are not given; NULL = not */
};

/* Names that were logged already, a ring. Zero bytes: none. */
struct pb_inbox_told {
    char *name[PB_INBOX_TOLD_MAX];
    size_t n;
};

/* What the names in the inbox mean. */
struct pb_inbox_rules {
    bool (*takes)(void *user, const char *name);   /* whether a folder of that name is a scene */
    bool (*ignores)(void *user, const char *name); /* whether what has that name is left alone */
    void *user;
};

/* Adds every plain file with one name, and every folder that is taken, to settle. Negative errno:
 * it cannot be read (to its end). out_stat: of the directory; out_ignored: names that were left
 * alone by the rules. */
int pb_inbox_read(const char *inbox, const struct pb_inbox_rules *rules, struct pb_settle *settle,
                  struct pb_inbox_told *told, struct stat *out_stat, size_t *out_ignored);
/* A folder as a file that has to settle: its bytes, the youngest ctime of all that lies in it as
 * its mtime (that of a file may be older than its arrival), and a digest as its ctime. */
struct pb_scene_walk;
void pb_inbox_folder_facts(const struct pb_scene_walk *walk, struct pb_settle_file *out);
/* Whether the name was not logged before; remembers it. */
bool pb_inbox_is_news(struct pb_inbox_told *told, const char *name);
void pb_inbox_told_fini(struct pb_inbox_told *told);
#endif
