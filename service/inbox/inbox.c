/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/inbox.h"

#include "pipeline/scene/scene_walk.h"
#include "service/inbox/writer_events.h"

#include <stdlib.h>
#include <string.h>

bool pb_inbox_is_news(struct pb_inbox_told *told, const char *name)
{
    for (size_t i = 0; i < PB_INBOX_TOLD_MAX && told->name[i] != NULL; i++) {
        if (strcmp(told->name[i], name) == 0)
            return false;
    }
    char **slot = &told->name[told->n++ % PB_INBOX_TOLD_MAX];
    free(*slot);
    *slot = strdup(name);
    return true;
}

void pb_inbox_told_fini(struct pb_inbox_told *told)
{
    for (size_t i = 0; i < PB_INBOX_TOLD_MAX; i++)
        free(told->name[i]);
}

void pb_inbox_folder_facts(const struct pb_scene_walk *walk, struct pb_settle_file *out)
{
    out->is_folder = true;
    out->n_files = walk->n;
    out->size = walk->bytes;
    out->mtime_ns = walk->youngest_ns;
    out->ctime_ns = (int64_t)(walk->digest & INT64_MAX);
}

/* The events are read after the scan has read the files' attributes: a file that was written in
 * between is not marked, and a file that is written later has changed at its claim. */
void pb_inbox_mark_renamed(const struct pb_inbox *inbox, struct pb_settle *settle, int64_t mono_ms)
{
    pb_writer_events_follow(inbox->events, mono_ms);
    for (size_t i = 0; i < pb_settle_count(settle); i++) {
        const struct pb_settle_file *file = pb_settle_at(settle, i);
        if (!file->is_folder && pb_writer_events_took_in(inbox->events, file->name))
            pb_settle_arrived(settle, i, mono_ms);
    }
}
