/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/asked.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum state { WANTED, SENT, ANSWERED };

/* Entry of the cache. An answer is written once, before the state; readers on the pool keep a
 * pointer to it. */
struct entry {
    uint64_t digest, ticket;
    enum state state;
    bool seen; /* found by this scan */
    char *name, *pipeline;
    struct pb_described answer;
};

struct pb_asked {
    pthread_mutex_t lock; /* protects all below */
    struct entry **entry; /* the first n_sorted sorted by name, then those of this scan */
    size_t n, n_sorted, room;
    size_t next; /* no entry before it is WANTED */
    uint64_t last_ticket;
    unsigned long config_number;
};

static void free_entry(struct entry *entry)
{
    free(entry->name);
    free(entry->pipeline);
    free(entry);
}

struct pb_asked *pb_asked_create(void)
{
    struct pb_asked *asked = calloc(1, sizeof *asked);
    if (asked != NULL)
        (void)pthread_mutex_init(&asked->lock, NULL);
    return asked;
}

void pb_asked_destroy(struct pb_asked *asked)
{
    if (asked == NULL)
        return;
    for (size_t i = 0; i < asked->n; i++)
        free_entry(asked->entry[i]);
    free(asked->entry);
    (void)pthread_mutex_destroy(&asked->lock);
    free(asked);
}

/* --- scans ------------------------------------------------------------------------------------*/

static int by_name(const void *a, const void *b)
{
    const struct entry *left = *(struct entry *const *)a, *right = *(struct entry *const *)b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->digest > right->digest) - (left->digest < right->digest);
}

static struct entry *find(const struct pb_asked *asked, const char *name, uint64_t digest)
{
    char *const borrowed = strdup(name);
    struct entry key = {.name = borrowed, .digest = digest};
    struct entry *wanted = &key, **found = NULL;
    if (borrowed != NULL && asked->n_sorted > 0)
        found = bsearch(&wanted, asked->entry, asked->n_sorted, sizeof *found, by_name);
    free(borrowed);
    return found != NULL ? *found : NULL;
}

/* Deletes the entries that the scan did not find. */
static void keep_seen(struct pb_asked *asked)
{
    size_t kept = 0;
    for (size_t i = 0; i < asked->n; i++) {
        if (asked->entry[i]->seen)
            asked->entry[kept++] = asked->entry[i];
        else
            free_entry(asked->entry[i]);
    }
    asked->n = kept;
    if (kept > 0)
        qsort(asked->entry, kept, sizeof *asked->entry, by_name);
    asked->n_sorted = kept;
    asked->next = 0;
}

void pb_asked_begin(struct pb_asked *asked, unsigned long config_number)
{
    (void)pthread_mutex_lock(&asked->lock);
    for (size_t i = 0; i < asked->n; i++)
        asked->entry[i]->seen = false;
    if (asked->config_number != config_number)
        keep_seen(asked); /* keeps no entry */
    asked->config_number = config_number;
    (void)pthread_mutex_unlock(&asked->lock);
}

const struct pb_described *pb_asked_find(struct pb_asked *asked, const char *name, uint64_t digest)
{
    const struct pb_described *answer = NULL;
    (void)pthread_mutex_lock(&asked->lock);
    struct entry *entry = find(asked, name, digest);
    if (entry != NULL)
        entry->seen = true;
    if (entry != NULL && entry->state == ANSWERED)
        answer = &entry->answer;
    (void)pthread_mutex_unlock(&asked->lock);
    return answer;
}

static int add(struct pb_asked *asked, const char *name, uint64_t digest, const char *pipeline)
{
    if (asked->n == asked->room) {
        size_t room = asked->room ? 2 * asked->room : 64;
        struct entry **more = realloc(asked->entry, room * sizeof(struct entry *));
        if (more == NULL)
            return -ENOMEM;
        asked->entry = more;
        asked->room = room;
    }
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return -ENOMEM;
    entry->name = strdup(name);
    entry->pipeline = strdup(pipeline);
    entry->digest = digest;
    entry->ticket = ++asked->last_ticket;
    entry->seen = true;
    if (entry->name == NULL || entry->pipeline == NULL) {
        free_entry(entry);
        return -ENOMEM;
    }
    asked->entry[asked->n++] = entry;
    return 0;
}

int pb_asked_want(struct pb_asked *asked, const char *name, uint64_t digest, const char *pipeline)
{
    (void)pthread_mutex_lock(&asked->lock);
    int rc = find(asked, name, digest) == NULL ? add(asked, name, digest, pipeline) : 0;
    (void)pthread_mutex_unlock(&asked->lock);
    return rc;
}

void pb_asked_end(struct pb_asked *asked)
{
    (void)pthread_mutex_lock(&asked->lock);
    keep_seen(asked);
    (void)pthread_mutex_unlock(&asked->lock);
}

/* --- queries ---------------------------------------------------------------------------------- */

bool pb_asked_next(struct pb_asked *asked, struct pb_asked_question *out)
{
    bool is = false;
    (void)pthread_mutex_lock(&asked->lock);
    for (; asked->next < asked->n && !is; asked->next++) {
        struct entry *entry = asked->entry[asked->next];
        if (entry->state != WANTED)
            continue;
        *out =
            (struct pb_asked_question){entry->ticket, strdup(entry->name), strdup(entry->pipeline)};
        is = out->name != NULL && out->pipeline != NULL;
        if (!is) {
            free(out->name);
            free(out->pipeline);
            break;
        }
        entry->state = SENT;
    }
    (void)pthread_mutex_unlock(&asked->lock);
    return is;
}

static struct entry *of_ticket(const struct pb_asked *asked, uint64_t ticket)
{
    for (size_t i = 0; i < asked->n; i++)
        if (asked->entry[i]->ticket == ticket && asked->entry[i]->state == SENT)
            return asked->entry[i];
    return NULL;
}

void pb_asked_drop(struct pb_asked *asked, uint64_t ticket)
{
    (void)pthread_mutex_lock(&asked->lock);
    struct entry *entry = of_ticket(asked, ticket);
    if (entry != NULL)
        entry->state = WANTED;
    asked->next = 0;
    (void)pthread_mutex_unlock(&asked->lock);
}

bool pb_asked_answer(struct pb_asked *asked, uint64_t ticket, const struct pb_described *answer)
{
    (void)pthread_mutex_lock(&asked->lock);
    struct entry *entry = of_ticket(asked, ticket);
    if (entry != NULL) {
        entry->answer = *answer;
        entry->state = ANSWERED;
    }
    (void)pthread_mutex_unlock(&asked->lock);
    return entry != NULL;
}
