/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two arrays sorted by name, one of the last scan and one of this scan: a scan takes O(n log n),
 * and the memory grows and shrinks with the inbox. */
#include "service/inbox/settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Note, and the file when the note was made. */
struct noted {
    struct pb_settle_note note;
    struct pb_settle_file file; /* without its name */
};

struct entry {
    struct pb_settle_file file; /* first: pb_settle_index */
    struct noted *noted;        /* the entry's own; NULL if absent */
    int64_t still_since_ms;     /* monotonic time after the first scan that saw its present state */
    int64_t still_ms;           /* still_since_ms + settle */
    /* monotonic time at which its mtime, at first sight, was old enough, or time of the scan that
     * saw it renamed in */
    int64_t aged_ms;
    int64_t due_ms; /* monotonic time at which it is complete */
    bool complete, held, aside, is_taken;
    bool has_left; /* the next scan must not count how long this file has been unchanged: it was
                      taken, and a file of its name is another one, or it must settle again */
};

struct table {
    struct entry *entry;
    size_t n, room;
};

struct pb_settle {
    struct table now, before;
    size_t next;        /* cursor of pb_settle_next */
    int64_t scanned_ms; /* monotonic; begin of the last scan that ended */
    bool clocked;
    int64_t ahead_ms;          /* wall clock minus monotonic clock */
    int64_t distrust_until_ms; /* monotonic; mtimes are not used before */
};

struct pb_settle *pb_settle_create(void)
{
    return calloc(1, sizeof(struct pb_settle));
}

/* Frees the names, which the table owns. */
static void clear(struct table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        free((char *)table->entry[i].file.name);
        free(table->entry[i].noted);
    }
    table->n = 0;
}

void pb_settle_destroy(struct pb_settle *settle)
{
    if (settle == NULL)
        return;
    clear(&settle->now);
    clear(&settle->before);
    free(settle->now.entry);
    free(settle->before.entry);
    free(settle);
}

void pb_settle_begin(struct pb_settle *settle)
{
    struct table last = settle->now;
    settle->now = settle->before;
    settle->before = last;
    clear(&settle->now);
    settle->next = 0;
}

int pb_settle_add(struct pb_settle *settle, const struct pb_settle_file *file)
{
    struct table *now = &settle->now;
    if (now->n == now->room) {
        size_t room = now->room ? now->room * 2 : 64;
        struct entry *more = realloc(now->entry, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        now->entry = more;
        now->room = room;
    }
    struct entry *entry = &now->entry[now->n];
    *entry = (struct entry){.file = *file};
    entry->file.name = strdup(file->name);
    now->n += entry->file.name != NULL;
    return entry->file.name != NULL ? 0 : -ENOMEM;
}

const struct pb_settle_file *pb_settle_last(const struct pb_settle *settle, size_t i,
                                            bool *out_is_still)
{
    if (i >= settle->before.n)
        return NULL;
    const struct entry *entry = &settle->before.entry[i];
    *out_is_still =
        entry->still_ms <= settle->scanned_ms && !entry->has_left && !entry->file.is_folder;
    return &entry->file;
}

static int by_name(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return strcmp(left->file.name, right->file.name);
}

static bool same(const struct pb_settle_file *a, const struct pb_settle_file *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
           a->inode == b->inode;
}

/* Returns true if the wall clock may be compared with mtimes. A step of the wall clock changes its
 * distance from the monotonic clock. */
static bool trusts_wall(struct pb_settle *settle, int64_t mono_ms, int64_t wall_ms)
{
    int64_t ahead_ms = wall_ms - mono_ms;
    if (settle->clocked && llabs(ahead_ms - settle->ahead_ms) > PB_SETTLE_STEP_MS)
        settle->distrust_until_ms = mono_ms + PB_SETTLE_DISTRUST_MS;
    settle->clocked = true;
    settle->ahead_ms = ahead_ms;
    return mono_ms >= settle->distrust_until_ms;
}

/* Returns the time at which a file that the last scan did not see is old enough; never if the
 * clock is wrong. */
static int64_t aged_at(const struct pb_settle_file *file, int64_t settle_ms, int64_t mono_ms,
                       int64_t wall_ms)
{
    int64_t age_ms = wall_ms - file->mtime_ns / 1000000;
    return age_ms >= 0 ? mono_ms + settle_ms - age_ms : INT64_MAX;
}

/* Most scans add the files in their order. */
static void sort(struct table *table)
{
    bool is_sorted = true;
    for (size_t i = 1; i < table->n && is_sorted; i++)
        is_sorted = by_name(&table->entry[i - 1], &table->entry[i]) <= 0;
    if (!is_sorted)
        qsort(table->entry, table->n, sizeof table->entry[0], by_name);
}

/* Finds the entry of the last scan with the same name; NULL if absent. *at: where the search
 * begins; the calls have growing names. */
static struct entry *find_old(struct table *before, const struct entry *entry, size_t *at)
{
    int order = 1;
    while (*at < before->n && (order = by_name(&before->entry[*at], entry)) < 0)
        (*at)++;
    return order == 0 ? &before->entry[*at] : NULL;
}

void pb_settle_end(struct pb_settle *settle, int64_t settle_ms, int64_t mono_ms, int64_t wall_ms,
                   int64_t end_ms)
{
    struct table *now = &settle->now, *before = &settle->before;
    bool trusted = trusts_wall(settle, mono_ms, wall_ms);
    size_t at = 0;
    settle->scanned_ms = mono_ms;
    sort(now);
    for (size_t i = 0; i < now->n; i++) {
        struct entry *entry = &now->entry[i];
        struct entry *old = find_old(before, entry, &at);
        bool is_new = old == NULL || old->file.inode != entry->file.inode;
        entry->still_since_ms = end_ms;
        entry->aged_ms = INT64_MAX;
        if (old != NULL && old->noted != NULL && same(&old->noted->file, &entry->file)) {
            entry->noted = old->noted;
            old->noted = NULL;
        }
        if (is_new && trusted)
            entry->aged_ms = aged_at(&entry->file, settle_ms, mono_ms, wall_ms);
        if (old != NULL && !old->has_left && same(&old->file, &entry->file)) {
            entry->still_since_ms = old->still_since_ms;
            entry->aged_ms = trusted ? old->aged_ms : INT64_MAX;
        }
        entry->still_ms = entry->still_since_ms + settle_ms;
        entry->due_ms = entry->aged_ms < entry->still_ms ? entry->aged_ms : entry->still_ms;
        entry->file.by_age = mono_ms < entry->still_ms;
        entry->complete = mono_ms >= entry->due_ms;
    }
}

void pb_settle_arrived(struct pb_settle *settle, size_t i, int64_t mono_ms)
{
    struct entry *entry = &settle->now.entry[i];
    if (entry->complete)
        return;
    entry->aged_ms = entry->due_ms = mono_ms;
    entry->file.by_age = entry->complete = true;
}

size_t pb_settle_count(const struct pb_settle *settle)
{
    return settle->now.n;
}

const struct pb_settle_file *pb_settle_at(const struct pb_settle *settle, size_t i)
{
    return &settle->now.entry[i].file;
}

bool pb_settle_hold(struct pb_settle *settle, size_t i)
{
    struct entry *entry = &settle->now.entry[i];
    bool is_still = !entry->file.by_age;
    entry->held = true;
    entry->complete = is_still;
    entry->due_ms = entry->still_ms;
    return is_still;
}

bool pb_settle_is_held(const struct pb_settle *settle, size_t i)
{
    return settle->now.entry[i].held;
}

bool pb_settle_find(const struct pb_settle *settle, const char *name, size_t *out_i)
{
    const struct table *now = &settle->now;
    const struct entry wanted = {.file.name = name};
    const struct entry *found =
        now->n > 0 ? bsearch(&wanted, now->entry, now->n, sizeof wanted, by_name) : NULL;
    if (found != NULL)
        *out_i = (size_t)(found - now->entry);
    return found != NULL;
}

bool pb_settle_decide(struct pb_settle *settle, size_t i, enum pb_settle_decision decision)
{
    struct entry *entry = &settle->now.entry[i];
    bool is_still = !entry->file.by_age;
    if (decision != PB_SETTLE_TAKE) {
        entry->aside = decision == PB_SETTLE_ASIDE;
        return pb_settle_hold(settle, i);
    }
    entry->complete = true;
    entry->file.by_age = false;
    return is_still;
}

void pb_settle_wait_for(struct pb_settle *settle, size_t i, size_t other)
{
    struct entry *entry = &settle->now.entry[i];
    const struct entry *second = &settle->now.entry[other];
    if (second->due_ms > entry->due_ms)
        entry->due_ms = second->due_ms;
    entry->complete = entry->complete && second->complete;
    entry->file.by_age = entry->file.by_age || second->file.by_age;
}

bool pb_settle_trusts_wall(const struct pb_settle *settle, int64_t mono_ms)
{
    return settle->clocked && mono_ms >= settle->distrust_until_ms;
}

const struct pb_settle_file *pb_settle_next(struct pb_settle *settle)
{
    while (settle->next < settle->now.n) {
        const struct entry *entry = &settle->now.entry[settle->next++];
        if (entry->complete && !entry->held)
            return &entry->file;
    }
    return NULL;
}

void pb_settle_set_note(struct pb_settle *settle, size_t i, const struct pb_settle_note *note)
{
    struct entry *entry = &settle->now.entry[i];
    free(entry->noted);
    entry->noted = note != NULL ? malloc(sizeof *entry->noted) : NULL;
    if (entry->noted == NULL)
        return;
    *entry->noted = (struct noted){.note = *note, .file = entry->file};
    entry->noted->file.name = NULL;
}

const struct pb_settle_note *pb_settle_note(const struct pb_settle *settle, size_t i)
{
    const struct noted *noted = settle->now.entry[i].noted;
    return noted != NULL ? &noted->note : NULL;
}

size_t pb_settle_index(const struct pb_settle *settle, const struct pb_settle_file *file)
{
    return (size_t)((const struct entry *)(const void *)file - settle->now.entry);
}

void pb_settle_again(struct pb_settle *settle, const struct pb_settle_file *file)
{
    size_t i = pb_settle_index(settle, file);
    if (i < settle->now.n)
        settle->now.entry[i].has_left = true;
}

void pb_settle_taken(struct pb_settle *settle, size_t i)
{
    settle->now.entry[i].has_left = settle->now.entry[i].is_taken = true;
}

int64_t pb_settle_due_ms(const struct pb_settle *settle, int64_t mono_ms)
{
    int64_t due = -1;
    for (size_t i = 0; i < settle->now.n; i++) {
        const struct entry *entry = &settle->now.entry[i];
        int64_t left = entry->due_ms > mono_ms ? entry->due_ms - mono_ms : 0;
        if (!entry->complete && (due < 0 || left < due))
            due = left;
    }
    return due;
}

size_t pb_settle_waiting(const struct pb_settle *settle)
{
    size_t n = 0;
    for (size_t i = 0; i < settle->now.n; i++) {
        const struct entry *entry = &settle->now.entry[i];
        const bool is_offered = entry->complete && !entry->held && i >= settle->next;
        n += !entry->aside && !entry->is_taken &&
             (!entry->complete || entry->held || (is_offered && entry->noted == NULL));
    }
    return n;
}

size_t pb_settle_settling(const struct pb_settle *settle, int64_t *out_due_ms)
{
    size_t n = 0;
    int64_t due = 0;
    for (size_t i = 0; i < settle->now.n; i++) {
        const struct entry *entry = &settle->now.entry[i];
        if (entry->complete || entry->aside || entry->noted != NULL)
            continue;
        n++;
        due = entry->due_ms > due ? entry->due_ms : due;
    }
    *out_due_ms = due;
    return n;
}

bool pb_settle_is_left_alone(const char *name)
{
    static const char *const suffixes[] = {".tmp", ".part", ".inprogress", ".filepart"};
    size_t n = strlen(name);
    if (n == 0 || name[0] == '.')
        return true;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t m = strlen(suffixes[i]);
        if (n >= m && strcasecmp(name + n - m, suffixes[i]) == 0)
            return true;
    }
    return false;
}
