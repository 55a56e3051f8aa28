/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A hash table of pointers with linear probing; a removal closes the gap in the entries that
 * follow, so that the table has no marks of removed entries. The first entries of each reason, for
 * the status, are kept until a change may concern them: otherwise each scan would compare all
 * names. */
#include "service/inbox/left.h"

#include "config/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define REASONS (PB_SETTLE_IGNORED + 1)

struct entry {
    struct pb_left_entry public; /* its name and text are in `room` */
    unsigned long scan;          /* number of the last scan that found it */
    uint64_t hash;
    LIST_ENTRY(entry) next_open; /* if it is not final */
    char room[];
};

struct first {
    bool is_known; /* false: to be searched */
    size_t n;
    const struct pb_left_entry *entry[PB_LEFT_FIRST_MAX]; /* sorted by name */
};

LIST_HEAD(entries, entry);

struct pb_left {
    struct entry **slot; /* `room` slots, a power of two, a third of which is free at least */
    size_t n, room;
    unsigned long scan;
    struct entries open; /* entries that are not final */
    size_t count[REASONS];
    struct first first[REASONS];
};

struct pb_left *pb_left_create(void)
{
    return calloc(1, sizeof(struct pb_left));
}

void pb_left_destroy(struct pb_left *left)
{
    if (left == NULL)
        return;
    for (size_t i = 0; i < left->room; i++)
        free(left->slot[i]);
    free(left->slot);
    free(left);
}

void pb_left_reopen(struct pb_left *left)
{
    for (size_t i = 0; i < left->room; i++) {
        struct entry *entry = left->slot[i];
        if (entry == NULL || !entry->public.is_final)
            continue;
        entry->public.is_final = false;
        LIST_INSERT_HEAD(&left->open, entry, next_open);
    }
}

void pb_left_begin(struct pb_left *left)
{
    left->scan++;
}

static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const unsigned char *s = (const unsigned char *)name; *s != '\0'; s++)
        hash = (hash ^ *s) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

/* Finds the slot of the name, or the free one at which it would be added. The table has a free
 * slot. */
static size_t find(const struct pb_left *left, const char *name, uint64_t hash)
{
    size_t i = hash & (left->room - 1);
    while (left->slot[i] != NULL &&
           (left->slot[i]->hash != hash || strcmp(left->slot[i]->public.name, name) != 0))
        i = (i + 1) & (left->room - 1);
    return i;
}

static struct entry *get(const struct pb_left *left, const char *name)
{
    return left->n > 0 ? left->slot[find(left, name, hash_of(name))] : NULL;
}

static int grow(struct pb_left *left)
{
    if ((left->n + 1) * 3 <= left->room * 2)
        return 0;
    struct pb_left larger = *left;
    larger.room = left->room > 0 ? 2 * left->room : 64;
    larger.slot = calloc(larger.room, sizeof(struct entry *));
    if (larger.slot == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < left->room; i++)
        if (left->slot[i] != NULL)
            larger.slot[find(&larger, left->slot[i]->public.name, left->slot[i]->hash)] =
                left->slot[i];
    free(left->slot);
    left->slot = larger.slot;
    left->room = larger.room;
    return 0;
}

/* Call before an entry is added or removed. */
static void forget_first(struct pb_left *left, const struct pb_left_entry *entry)
{
    struct first *first = &left->first[entry->reason];
    if (!first->is_known)
        return; /* its pointers may be those of removed entries */
    if (first->n < PB_LEFT_FIRST_MAX || strcmp(entry->name, first->entry[first->n - 1]->name) <= 0)
        first->is_known = false;
}

static void remove_at(struct pb_left *left, size_t i)
{
    const size_t mask = left->room - 1;
    forget_first(left, &left->slot[i]->public);
    left->count[left->slot[i]->public.reason]--;
    if (!left->slot[i]->public.is_final)
        LIST_REMOVE(left->slot[i], next_open);
    left->n--;
    free(left->slot[i]);
    left->slot[i] = NULL;
    for (size_t k = (i + 1) & mask; left->slot[k] != NULL; k = (k + 1) & mask) {
        const size_t home = left->slot[k]->hash & mask;
        if (((k - home) & mask) < ((k - i) & mask))
            continue; /* its home follows the free slot */
        left->slot[i] = left->slot[k];
        left->slot[k] = NULL;
        i = k;
    }
}

bool pb_left_confirm(struct pb_left *left, const char *name, unsigned char type, uint64_t inode)
{
    struct entry *entry = get(left, name);
    if (entry == NULL || !entry->public.is_final || entry->public.type != type ||
        entry->public.inode != inode)
        return false;
    entry->scan = left->scan;
    return true;
}

int pb_left_add(struct pb_left *left, const struct pb_left_entry *entry)
{
    size_t name_bytes = strlen(entry->name) + 1, text_bytes = strlen(entry->text) + 1;
    struct entry *copy = malloc(sizeof *copy + name_bytes + text_bytes);
    if (copy == NULL || grow(left) != 0) {
        free(copy);
        return -ENOMEM;
    }
    copy->public = *entry;
    copy->public.name = memcpy(copy->room, entry->name, name_bytes);
    copy->public.text = memcpy(copy->room + name_bytes, entry->text, text_bytes);
    copy->scan = left->scan;
    copy->hash = hash_of(entry->name);
    size_t i = find(left, entry->name, copy->hash);
    const struct entry *old = left->slot[i];
    bool is_new =
        old == NULL || old->public.reason != entry->reason || old->public.code != entry->code;
    if (old != NULL) {
        remove_at(left, i);
        i = find(left, entry->name, copy->hash);
    }
    forget_first(left, &copy->public);
    left->slot[i] = copy;
    left->n++;
    if (!entry->is_final)
        LIST_INSERT_HEAD(&left->open, copy, next_open);
    left->count[entry->reason]++;
    return is_new;
}

void pb_left_drop_old(struct pb_left *left, const char *name)
{
    const struct entry *entry = get(left, name);
    if (entry != NULL && entry->scan != left->scan)
        remove_at(left, find(left, name, entry->hash));
}

void pb_left_drop_all_old(struct pb_left *left, bool (*covers)(const void *user, const char *name),
                          const void *user)
{
    for (size_t i = 0; i < left->room;) {
        const struct entry *entry = left->slot[i];
        if (entry != NULL && entry->scan != left->scan &&
            (covers == NULL || covers(user, entry->public.name)))
            remove_at(left, i); /* another entry may be in the slot now */
        else
            i++;
    }
}

size_t pb_left_open(const struct pb_left *left, const char **out_names, size_t most)
{
    const struct entry *entry;
    size_t n = 0;
    LIST_FOREACH(entry, &left->open, next_open)
    {
        if (n == most)
            break;
        out_names[n++] = entry->public.name;
    }
    return n;
}

size_t pb_left_count(const struct pb_left *left, enum pb_settle_reason reason)
{
    return left->count[reason];
}

/* Inserts the entry into the sorted list, from which the last one is dropped if it is full. */
static void insert(struct first *first, const struct pb_left_entry *entry)
{
    size_t at = first->n;
    while (at > 0 && strcmp(entry->name, first->entry[at - 1]->name) < 0)
        at--;
    if (at == PB_LEFT_FIRST_MAX)
        return;
    size_t last = first->n < PB_LEFT_FIRST_MAX ? first->n++ : PB_LEFT_FIRST_MAX - 1;
    (void)memmove(&first->entry[at + 1], &first->entry[at], (last - at) * sizeof first->entry[0]);
    first->entry[at] = entry;
}

size_t pb_left_first(struct pb_left *left, enum pb_settle_reason reason,
                     const struct pb_left_entry *out[PB_LEFT_FIRST_MAX])
{
    struct first *first = &left->first[reason];
    if (!first->is_known) {
        first->n = 0;
        for (size_t i = 0; i < left->room; i++)
            if (left->slot[i] != NULL && left->slot[i]->public.reason == reason)
                insert(first, &left->slot[i]->public);
        first->is_known = true;
    }
    (void)memcpy(out, first->entry, first->n * sizeof first->entry[0]);
    return first->n;
}

/* --- summary ---------------------------------------------------------------------------------- */

static void add(struct pb_stays *out, const char *name, enum pb_settle_reason reason,
                enum pb_code code, const char *text)
{
    if (out->n == PB_STAYS_MAX)
        return;
    struct pb_stay *stay = &out->at[out->n++];
    size_t n = strlen(name), room = sizeof stay->name - 1;
    (void)snprintf(stay->name, sizeof stay->name, "%s", n <= room ? name : name + n - room);
    (void)snprintf(stay->text, sizeof stay->text, "%s", text);
    stay->reason = reason;
    stay->code = code;
}

static void collect_left(struct pb_left *left, enum pb_settle_reason reason, struct pb_stays *out)
{
    const struct pb_left_entry *first[PB_LEFT_FIRST_MAX];
    size_t n = pb_left_first(left, reason, first);
    for (size_t i = 0; i < n; i++)
        add(out, first[i]->name, reason, first[i]->code, first[i]->text);
}

/* Collects the files whose claims were refused. */
static void collect_refused(const struct pb_settle *settle, struct pb_stays *out)
{
    for (size_t i = 0; i < pb_settle_count(settle); i++) {
        const struct pb_settle_note *note = pb_settle_note(settle, i);
        if (note == NULL || note->reason != PB_SETTLE_REFUSED)
            continue;
        out->n_refused++;
        add(out, pb_settle_at(settle, i)->name, note->reason, note->code, note->text);
    }
}

void pb_stays_collect(struct pb_left *left, const struct pb_settle *settle, struct pb_stays *out)
{
    int64_t due_ms;
    out->n = 0;
    out->n_refused = pb_left_count(left, PB_SETTLE_REFUSED);
    out->n_foreign = pb_left_count(left, PB_SETTLE_FOREIGN);
    out->n_settling = pb_settle_settling(settle, &due_ms);
    out->settled_ms = out->n_settling > 0 ? pb_clock_wall_ms() + due_ms - pb_clock_mono_ms() : 0;
    collect_left(left, PB_SETTLE_REFUSED, out);
    collect_refused(settle, out);
    collect_left(left, PB_SETTLE_FOREIGN, out);
}
