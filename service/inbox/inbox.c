/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/inbox.h"

#include "config/base/base_name.h"
#include "pipeline/io/path.h"
#include "pipeline/scene/scene_walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- companions ------------------------------------------------------------------------------- */

static const char NAME[] = "{name}";
static const char ROOM[] = ".with";

bool pb_companion_of(const struct pb_companion_rule *rule, const char *path,
                     char out[PB_FILES_PATH_BYTES])
{
    const char *base = pb_base_name(path), *at = strstr(rule->pattern, NAME);
    if (rule->kind == PB_COMPANION_NONE || at == NULL)
        return false;
    size_t bytes = strlen(rule->pattern) - (sizeof NAME - 1) + strlen(base);
    int n = snprintf(out, PB_FILES_PATH_BYTES, "%.*s%.*s%s%s", (int)(base - path), path,
                     (int)(at - rule->pattern), rule->pattern, base, at + sizeof NAME - 1);
    return bytes < 256 && n < PB_FILES_PATH_BYTES;
}

bool pb_companion_input(const struct pb_companion_rule *rule, const char *path,
                        char out[PB_FILES_PATH_BYTES])
{
    if (rule->kind == PB_COMPANION_NONE)
        return false;
    const char *base = pb_base_name(path), *at = strstr(rule->pattern, NAME);
    if (at == NULL)
        return false;
    size_t before = (size_t)(at - rule->pattern), n = strlen(base);
    const char *behind = at + sizeof NAME - 1;
    size_t after = strlen(behind);
    if (n <= before + after || strncmp(base, rule->pattern, before) != 0 ||
        strcmp(base + n - after, behind) != 0)
        return false;
    (void)snprintf(out, PB_FILES_PATH_BYTES, "%.*s%.*s", (int)(base - path), path,
                   (int)(n - before - after), base + before);
    return true;
}

int pb_companion_room(const char *claim, char out[PB_FILES_PATH_BYTES])
{
    if (pb_files_join(out, claim, ROOM) != 0)
        return -ENAMETOOLONG;
    return mkdir(out, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

int pb_companion_take(const char *directory, const char *name, const char *claim,
                      char out_path[PB_FILES_PATH_BYTES])
{
    char from[PB_FILES_PATH_BYTES], room[PB_FILES_PATH_BYTES];
    struct stat st;
    int rc = pb_files_join(from, directory, name);
    if (rc == 0 && (lstat(from, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1))
        return -ENOENT;
    rc = rc ? rc : pb_companion_room(claim, room);
    rc = rc ? rc : pb_files_join(out_path, room, name);
    if (rc == 0 && rename(from, out_path) != 0)
        rc = -errno;
    if (rc == 0)
        (void)pb_path_sync(room);
    return rc;
}

int pb_companion_give_back(const char *path, const char *directory)
{
    char to[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(to, directory, pb_base_name(path));
    return rc ? rc : pb_files_rename_new(path, to, PB_FILES_LINK_ONLY);
}

static bool find_in(const char *room, char out_path[PB_FILES_PATH_BYTES])
{
    struct stat st;
    bool found = false;
    DIR *directory = opendir(room);
    if (directory == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(directory)) != NULL;)
        found = pb_files_join(out_path, room, e->d_name) == 0 && lstat(out_path, &st) == 0 &&
                S_ISREG(st.st_mode);
    (void)closedir(directory);
    return found;
}

bool pb_companion_find(const char *claim, char out_path[PB_FILES_PATH_BYTES])
{
    char room[PB_FILES_PATH_BYTES];
    return pb_files_join(room, claim, ROOM) == 0 && find_in(room, out_path);
}

void pb_companion_end(const char *claim)
{
    char room[PB_FILES_PATH_BYTES];
    if (pb_files_join(room, claim, ROOM) == 0)
        (void)rmdir(room);
}

/* --- companions of a scan --------------------------------------------------------------------- */

/* Notes that the input waits for its marker or checksum file. */
static void note_missing(struct pb_settle *settle, size_t i, const char *companion)
{
    struct pb_settle_note note = {.reason = PB_SETTLE_LACKS, .code = PB_E_INPUT_INCOMPLETE};
    (void)snprintf(note.text, sizeof note.text, "%.400s is missing", companion);
    pb_settle_set_note(settle, i, &note);
}

static void sort_one(const struct pb_inbox *inbox, struct pb_settle *settle, size_t i,
                     struct pb_pairing *out)
{
    char other[PB_FILES_PATH_BYTES] = "";
    size_t k;
    const struct pb_settle_file *file = pb_settle_at(settle, i);
    if (!file->is_folder && pb_companion_input(&inbox->companion, file->name, other)) {
        bool is_still = pb_settle_decide(settle, i, PB_SETTLE_ASIDE);
        if (pb_settle_find(settle, other, &k) || !is_still)
            return;
        if (out->n_alone++ == 0)
            (void)snprintf(out->first, sizeof out->first, "%s", file->name);
        return;
    }
    bool has = pb_companion_of(&inbox->companion, file->name, other) &&
               pb_settle_find(settle, other, &k) && !pb_settle_at(settle, k)->is_folder;
    const struct pb_settle_note *note = pb_settle_note(settle, i);
    if (note != NULL && note->reason == PB_SETTLE_LACKS)
        pb_settle_set_note(settle, i, NULL);
    if (!has && pb_settle_decide(settle, i, PB_SETTLE_WAIT))
        note_missing(settle, i, other);
    else if (!has)
        return;
    else if (inbox->companion.kind == PB_COMPANION_MARKER)
        (void)pb_settle_decide(settle, i, PB_SETTLE_TAKE);
    else
        pb_settle_wait_for(settle, i, k);
}

void pb_pairing_sort(const struct pb_inbox *inbox, struct pb_settle *settle, struct pb_pairing *out)
{
    *out = (struct pb_pairing){0};
    if (inbox->companion.kind == PB_COMPANION_NONE)
        return;
    for (size_t i = 0; i < pb_settle_count(settle); i++)
        if (!pb_settle_is_held(settle, i))
            sort_one(inbox, settle, i, out);
}

/* --- an inbox --------------------------------------------------------------------------------- */

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
