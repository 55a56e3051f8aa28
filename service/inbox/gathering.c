/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/gathering.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "service/base/log.h"
#include "service/inbox/inbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb_gathering {
    const struct pb_inbox *inbox; /* valid during a sort */
    struct pb_config *config;     /* held, because the assembly remembers the last scan */
    struct pb_assembly *assembly;
    struct pb_entry *entry;         /* the files of the last scan, as the assembly reads them */
    struct pb_settle_file *as_file; /* one for each scene: a set as an input, for the intake */
    size_t next;                    /* index of the next scene that pb_gathering_next checks */
    struct pb_asked *asked;
    size_t n_lone; /* sidecars without a scene */
    struct pb_inbox_told said;
};

/* Clocks at the start of the scan. */
struct now {
    int64_t wall_ms;
    bool wall_is_trusted; /* the wall clock may be compared with ctimes */
};

struct pb_gathering *pb_gathering_create(void)
{
    struct pb_gathering *gathering = calloc(1, sizeof *gathering);
    if (gathering == NULL)
        return NULL;
    gathering->assembly = pb_assembly_create();
    gathering->asked = pb_asked_create();
    if (gathering->assembly != NULL && gathering->asked != NULL)
        return gathering;
    pb_gathering_destroy(gathering);
    return NULL;
}

void pb_gathering_destroy(struct pb_gathering *gathering)
{
    if (gathering == NULL)
        return;
    pb_assembly_destroy(gathering->assembly);
    pb_config_destroy(gathering->config);
    pb_asked_destroy(gathering->asked);
    pb_inbox_told_fini(&gathering->said);
    free(gathering->entry);
    free(gathering->as_file);
    free(gathering);
}

/* --- the scenes of a scan --------------------------------------------------------------------- */

/* Returns true if a file of `main` and of the files next to it has waited for long enough. With a
 * companion rule the companion of main counts as well; a marker alone decides. */
static bool has_waited(const struct pb_gathering *gathering, struct pb_settle *settle, size_t i,
                       const char *main, bool is_still)
{
    const struct pb_companion_rule *rule = &gathering->inbox->companion;
    char companion[PB_FILES_PATH_BYTES];
    size_t k;
    if (rule->kind == PB_COMPANION_NONE)
        return is_still;
    if (!pb_companion_of(rule, main, companion) || !pb_settle_find(settle, companion, &k) ||
        pb_settle_at(settle, k)->is_folder)
        return false;
    if (rule->kind == PB_COMPANION_CHECKSUM)
        return is_still && !pb_settle_at(settle, k)->by_age;
    (void)pb_settle_decide(settle, i, PB_SETTLE_TAKE);
    return true;
}

/* Takes the files of a set out of pb_settle_next. */
static void hold_set(struct pb_gathering *gathering, struct pb_settle *settle,
                     const struct pb_assembled *set)
{
    const bool is_beside = set->form == PB_FORM_COMPOUND;
    const char *main = is_beside ? pb_assembled_main(set)->path : NULL;
    for (size_t k = 0; k < set->n; k++) {
        const size_t i = set->member[k].entry;
        bool is_still = pb_settle_hold(settle, i);
        gathering->entry[i].is_settled =
            is_beside ? has_waited(gathering, settle, i, main, is_still) : is_still;
    }
}

/* Holds a sidecar or metadata without their file, unless it has waited for long enough. */
static void place_orphan(struct pb_gathering *gathering, struct pb_settle *settle,
                         const struct pb_assembled *scene)
{
    if (scene->state == PB_SCENE_READY)
        return; /* becomes a job, which reports the missing scene */
    const bool is_still = pb_settle_hold(settle, scene->member[0].entry);
    if (scene->due_ms != 0)
        return;
    gathering->n_lone++;
    if (is_still && pb_inbox_is_news(&gathering->said, scene->name))
        pb_log(PB_LOG_NOTICE,
               "inbox: %s stays: the file that it belongs to is not here; both are moved when that "
               "arrives",
               scene->name);
}

static int place_asked(struct pb_gathering *gathering, struct pb_settle *settle,
                       const struct pb_assembled *scene)
{
    for (size_t k = 0; k < scene->n; k++)
        (void)pb_settle_hold(settle, scene->member[k].entry);
    if (scene->state != PB_SCENE_NEEDS_FACTS || !scene->may_be_asked)
        return 0;
    return pb_asked_want(gathering->asked, scene->name, scene->digest, scene->pipeline);
}

static int place(struct pb_gathering *gathering, struct pb_settle *settle,
                 const struct pb_assembled *scene)
{
    switch (scene->form) {
    case PB_FORM_ALONE:
    case PB_FORM_CONTENT: /* not in a listing of loose files */
        return 0;
    case PB_FORM_COMPOUND:
    case PB_FORM_GROUP:
        hold_set(gathering, settle, scene);
        return 0;
    case PB_FORM_UNASSIGNED:
        return place_asked(gathering, settle, scene);
    case PB_FORM_ORPHAN:
        place_orphan(gathering, settle, scene);
        return 0;
    }
    return 0;
}

static const struct pb_described *find_answer(void *user, const char *name, uint64_t digest)
{
    return pb_asked_find(user, name, digest);
}

static int list_entries(struct pb_gathering *gathering, const struct pb_settle *settle)
{
    const size_t n = pb_settle_count(settle);
    char input[PB_FILES_PATH_BYTES];
    free(gathering->entry);
    gathering->entry = calloc(n + 1, sizeof *gathering->entry);
    for (size_t i = 0; gathering->entry != NULL && i < n; i++) {
        const struct pb_settle_file *file = pb_settle_at(settle, i);
        gathering->entry[i] = (struct pb_entry){
            .path = file->name,
            .bytes = file->size,
            .inode = file->inode,
            .mtime_ns = file->mtime_ns,
            .ctime_ns = file->ctime_ns,
            .is_folder = file->is_folder,
            .is_settled = !file->by_age,
            /* handled by pb_pairing_sort */
            .is_companion = pb_companion_input(&gathering->inbox->companion, file->name, input)};
    }
    return gathering->entry != NULL ? 0 : -ENOMEM;
}

static int place_all(struct pb_gathering *gathering, struct pb_settle *settle,
                     const struct now *now)
{
    const struct pb_entry_facts facts = {find_answer, gathering->asked};
    int rc = list_entries(gathering, settle);
    const struct pb_assembly_input input = {.config = gathering->config,
                                            .entry = gathering->entry,
                                            .n = pb_settle_count(settle),
                                            .facts = &facts,
                                            .wall_ms = now->wall_ms,
                                            .wall_is_trusted = now->wall_is_trusted};
    rc = rc ? rc : pb_assembly_group(gathering->assembly, &input);
    for (size_t i = 0; rc == 0 && i < pb_assembly_count(gathering->assembly); i++)
        rc = place(gathering, settle, pb_assembly_at(gathering->assembly, i));
    return rc;
}

/* Finds the earlier jobs of the sets. The store may wait for its disk. */
static int look_back(struct pb_gathering *gathering, struct pb_intake *intake)
{
    struct pb_err err = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pb_assembly_count(gathering->assembly); i++) {
        const struct pb_assembled *set = pb_assembly_at(gathering->assembly, i);
        struct pb_scene_earlier earlier;
        if (set->reopen_ms == 0)
            continue;
        rc = pb_intake_find_earlier(intake, gathering->inbox, set, &err, &earlier);
        if (rc == 0)
            pb_assembly_know(gathering->assembly, i, &earlier);
    }
    if (rc != 0 && pb_inbox_is_news(&gathering->said, err.msg))
        pb_log(PB_LOG_WARNING, "inbox: files that may join an earlier scene wait: %s", err.msg);
    return rc;
}

/* Holds the configuration in use in place of the former one. */
static unsigned long hold_config(struct pb_gathering *gathering, struct pb_intake *intake)
{
    unsigned long number;
    struct pb_config *config = pb_intake_hold_config(intake, &number);
    if (config != gathering->config)
        pb_assembly_clear(gathering->assembly);
    pb_config_destroy(gathering->config);
    gathering->config = config;
    return number;
}

/* No lock is held for the time of an assembly; after a reload in that time the next scan sorts
 * again. */
static int sort(struct pb_gathering *gathering, struct pb_intake *intake, struct pb_settle *settle,
                const struct now *now)
{
    const unsigned long number = hold_config(gathering, intake);
    pb_asked_begin(gathering->asked, number);
    int rc = place_all(gathering, settle, now);
    pb_asked_end(gathering->asked);
    if (rc != 0) {
        pb_log(PB_LOG_WARNING, "inbox: no memory to gather files");
        return rc;
    }
    rc = look_back(gathering, intake);
    if (rc == 0 && number != pb_intake_config_number(intake))
        rc = -EAGAIN;
    return rc ? rc : pb_assembly_judge(gathering->assembly, gathering->config);
}

/* Describes each set as one input. */
static int describe(struct pb_gathering *gathering)
{
    size_t n = pb_assembly_count(gathering->assembly);
    free(gathering->as_file);
    gathering->as_file = calloc(n + 1, sizeof *gathering->as_file);
    for (size_t i = 0; gathering->as_file != NULL && i < n; i++) {
        const struct pb_assembled *set = pb_assembly_at(gathering->assembly, i);
        struct pb_settle_file *file = &gathering->as_file[i];
        file->name = set->name;
        file->size = set->bytes;
        file->mtime_ns = set->youngest_ns;
        file->is_folder = set->form == PB_FORM_GROUP;
    }
    return gathering->as_file != NULL ? 0 : -1;
}

void pb_gathering_sort(struct pb_gathering *gathering, const struct pb_inbox *inbox,
                       struct pb_intake *intake, struct pb_settle *settle, int64_t mono_ms,
                       int64_t wall_ms)
{
    gathering->inbox = inbox;
    const struct now now = {wall_ms, pb_settle_trusts_wall(settle, mono_ms)};
    gathering->next = gathering->n_lone = 0;
    int rc = sort(gathering, intake, settle, &now);
    rc = rc ? rc : describe(gathering);
    if (rc == 0)
        return;
    /* The files wait for the next scan, because each might belong to a set. */
    pb_assembly_clear(gathering->assembly);
    gathering->n_lone = 0;
    for (size_t i = 0; i < pb_settle_count(settle); i++)
        (void)pb_settle_hold(settle, i);
}

/* --- claims ----------------------------------------------------------------------------------- */

bool pb_gathering_next(struct pb_gathering *gathering, struct pb_settle *settle,
                       struct pb_claimed *out)
{
    const struct pb_settle_file *file = pb_settle_next(settle);
    *out = (struct pb_claimed){.file = file};
    if (file != NULL) {
        const struct pb_assembled *scene =
            pb_assembly_of(gathering->assembly, pb_settle_index(settle, file));
        out->error = scene != NULL ? scene->answer : NULL;
        return true;
    }
    while (gathering->next < pb_assembly_count(gathering->assembly)) {
        size_t i = gathering->next++;
        const struct pb_assembled *set = pb_assembly_at(gathering->assembly, i);
        if (!pb_assembled_is_set(set) || set->state != PB_SCENE_READY)
            continue;
        *out = (struct pb_claimed){.file = &gathering->as_file[i], .set = set};
        if (set->form == PB_FORM_COMPOUND && set->n == 1) /* a single file without sidecars */
            *out = (struct pb_claimed){.file = pb_settle_at(settle, set->member[0].entry)};
        if (set->form == PB_FORM_COMPOUND)
            out->error = set->answer;
        return true;
    }
    return false;
}

/* Stores the reason of a failed claim as a note. */
static void note_claim(struct pb_settle *settle, const struct pb_claimed *claimed)
{
    bool lacks = claimed->set == NULL && claimed->rc == -EAGAIN &&
                 claimed->err.code == PB_E_INPUT_INCOMPLETE;
    bool refused = claimed->rc != -EAGAIN && pb_code_class(claimed->err.code) == PB_CLASS_INPUT;
    if (!lacks && !refused)
        return;
    struct pb_settle_note note = {.reason = lacks ? PB_SETTLE_LACKS : PB_SETTLE_REFUSED,
                                  .code = claimed->err.code,
                                  .expires_ms = claimed->due_ms};
    (void)snprintf(note.text, sizeof note.text, "%s", claimed->err.msg);
    (void)snprintf(note.pipeline, sizeof note.pipeline, "%s", claimed->pipeline);
    pb_settle_set_note(settle,
                       claimed->set != NULL ? claimed->set->member[0].entry
                                            : pb_settle_index(settle, claimed->file),
                       &note);
}

void pb_gathering_claimed(struct pb_settle *settle, const struct pb_claimed *file)
{
    const struct pb_assembled *set = file->set;
    const size_t n = set != NULL ? set->n : 1;
    if (file->rc != 0)
        note_claim(settle, file);
    for (size_t i = 0; i < n; i++) {
        size_t entry = set != NULL ? set->member[i].entry : pb_settle_index(settle, file->file);
        if (file->rc == 0)
            pb_settle_taken(settle, entry);
        else
            pb_settle_again(settle, pb_settle_at(settle, entry));
    }
}

size_t pb_gathering_waiting(const struct pb_gathering *gathering, const struct pb_settle *settle)
{
    return pb_settle_waiting(settle) - gathering->n_lone;
}

int64_t pb_gathering_due_ms(const struct pb_gathering *gathering, int64_t wall_ms)
{
    return pb_assembly_due_ms(gathering->assembly, wall_ms);
}

/* --- report ----------------------------------------------------------------------------------- */

/* Counts a set. Returns its place in the report; NULL if that is full. */
static struct pb_gathering_set *add_shown(struct pb_gathering_told *out)
{
    out->n_all++;
    return out->n < PB_GATHERING_TOLD_MAX ? &out->set[out->n++] : NULL;
}

static void show(struct pb_gathering_set *one, const char *scene, const char *pipeline,
                 const char *missing)
{
    (void)snprintf(one->scene, sizeof one->scene, "%s", scene);
    (void)snprintf(one->pipeline, sizeof one->pipeline, "%s", pipeline);
    (void)snprintf(one->missing, sizeof one->missing, "%s", missing);
}

/* Shows folders that lack files, and inputs that lack their marker or checksum file. */
static void show_noted(struct pb_gathering_told *out, const struct pb_settle *settle)
{
    for (size_t i = 0; i < pb_settle_count(settle); i++) {
        const struct pb_settle_file *file = pb_settle_at(settle, i);
        const struct pb_settle_note *note = pb_settle_note(settle, i);
        if (note == NULL || note->reason != PB_SETTLE_LACKS)
            continue;
        struct pb_gathering_set *one = add_shown(out);
        if (one == NULL)
            continue;
        one->files = file->is_folder ? file->n_files : 1;
        one->expires_ms = note->expires_ms;
        show(one, file->name, note->pipeline, note->text);
    }
}

void pb_gathering_show(const struct pb_gathering *gathering, const struct pb_settle *settle,
                       struct pb_gathering_told *out)
{
    out->n = out->n_all = 0;
    show_noted(out, settle);
    for (size_t i = 0; i < pb_assembly_count(gathering->assembly); i++) {
        const struct pb_assembled *scene = pb_assembly_at(gathering->assembly, i);
        if (scene->state != PB_SCENE_INCOMPLETE && scene->state != PB_SCENE_NEEDS_FACTS)
            continue;
        struct pb_gathering_set *one = add_shown(out);
        if (one == NULL)
            continue;
        one->files = scene->n;
        one->expires_ms = scene->due_ms;
        show(one, scene->name, scene->pipeline, scene->missing);
    }
}

struct pb_asked *pb_gathering_asked(const struct pb_gathering *gathering)
{
    return gathering->asked;
}

/* --- metadata queries ------------------------------------------------------------------------- */

enum state { WANTED, SENT, ANSWERED };

/* Entry of the cache. An answer is written once, before the state; readers on the pool keep a
 * pointer to it. */
struct query {
    uint64_t digest, ticket;
    char *name, *pipeline;
    bool seen;        /* found by this scan; used by scans only */
    enum state state; /* protected by the lock, like the answer before it is ANSWERED */
    struct pb_described answer;
};

/* Only a scan adds, sorts and removes entries, therefore it reads the list without the lock. */
struct pb_asked {
    pthread_mutex_t lock; /* protects entry, n, next and found; held for short changes only */
    struct query **entry; /* the first n_sorted sorted by name, then those of this scan */
    size_t n;
    size_t next;  /* no entry before it is WANTED */
    size_t found; /* index at which the next search for a ticket begins */
    /* used by scans only */
    struct query **spare; /* room for as many entries: the sorted list is made there */
    size_t n_sorted, room;
    uint64_t last_ticket;
    unsigned long config_number;
};

static void free_query(struct query *entry)
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
        free_query(asked->entry[i]);
    free(asked->entry);
    free(asked->spare);
    (void)pthread_mutex_destroy(&asked->lock);
    free(asked);
}

/* --- scans ------------------------------------------------------------------------------------*/

static int by_query(const void *a, const void *b)
{
    const struct query *left = *(struct query *const *)a, *right = *(struct query *const *)b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->digest > right->digest) - (left->digest < right->digest);
}

static struct query *find_query(const struct pb_asked *asked, const char *name, uint64_t digest)
{
    char *const borrowed = strdup(name);
    struct query key = {.name = borrowed, .digest = digest};
    struct query *wanted = &key, **found = NULL;
    if (borrowed != NULL && asked->n_sorted > 0)
        found = bsearch(&wanted, asked->entry, asked->n_sorted, sizeof *found, by_query);
    free(borrowed);
    return found != NULL ? *found : NULL;
}

/* Deletes the entries that the scan did not find, and sorts the others. */
static void keep_seen(struct pb_asked *asked)
{
    struct query **before = asked->entry;
    const size_t n_before = asked->n;
    size_t n = 0;
    for (size_t i = 0; i < n_before; i++)
        if (before[i]->seen)
            asked->spare[n++] = before[i];
    if (n == n_before && n == asked->n_sorted)
        return;
    if (n > 0)
        qsort(asked->spare, n, sizeof *asked->spare, by_query);
    (void)pthread_mutex_lock(&asked->lock);
    asked->entry = asked->spare;
    asked->n = n;
    asked->next = asked->found = 0;
    (void)pthread_mutex_unlock(&asked->lock);
    for (size_t i = 0; i < n_before; i++)
        if (!before[i]->seen)
            free_query(before[i]);
    asked->spare = before;
    asked->n_sorted = n;
}

void pb_asked_begin(struct pb_asked *asked, unsigned long config_number)
{
    for (size_t i = 0; i < asked->n; i++)
        asked->entry[i]->seen = false;
    if (asked->config_number != config_number)
        keep_seen(asked); /* keeps no entry */
    asked->config_number = config_number;
}

const struct pb_described *pb_asked_find(struct pb_asked *asked, const char *name, uint64_t digest)
{
    struct query *entry = find_query(asked, name, digest);
    if (entry == NULL)
        return NULL;
    entry->seen = true;
    (void)pthread_mutex_lock(&asked->lock);
    const bool is_answered = entry->state == ANSWERED;
    (void)pthread_mutex_unlock(&asked->lock);
    return is_answered ? &entry->answer : NULL;
}

/* Makes room for an entry in both lists. */
static int make_room(struct pb_asked *asked)
{
    const size_t room = asked->room ? 2 * asked->room : 64;
    if (asked->n < asked->room)
        return 0;
    struct query **list = calloc(room, sizeof(struct query *)), **before = asked->entry;
    struct query **spare = list ? realloc(asked->spare, room * sizeof(struct query *)) : NULL;
    if (spare == NULL) {
        free(list);
        return -ENOMEM;
    }
    asked->spare = spare;
    asked->room = room;
    if (asked->n > 0)
        (void)memcpy(list, before, asked->n * sizeof(struct query *));
    (void)pthread_mutex_lock(&asked->lock);
    asked->entry = list;
    (void)pthread_mutex_unlock(&asked->lock);
    free(before);
    return 0;
}

static int add_query(struct pb_asked *asked, const char *name, uint64_t digest,
                     const char *pipeline)
{
    struct query *entry = make_room(asked) == 0 ? calloc(1, sizeof *entry) : NULL;
    if (entry == NULL)
        return -ENOMEM;
    entry->name = strdup(name);
    entry->pipeline = strdup(pipeline);
    entry->digest = digest;
    entry->ticket = ++asked->last_ticket;
    entry->seen = true;
    if (entry->name == NULL || entry->pipeline == NULL) {
        free_query(entry);
        return -ENOMEM;
    }
    (void)pthread_mutex_lock(&asked->lock);
    asked->entry[asked->n++] = entry;
    (void)pthread_mutex_unlock(&asked->lock);
    return 0;
}

int pb_asked_want(struct pb_asked *asked, const char *name, uint64_t digest, const char *pipeline)
{
    return find_query(asked, name, digest) == NULL ? add_query(asked, name, digest, pipeline) : 0;
}

void pb_asked_end(struct pb_asked *asked)
{
    keep_seen(asked);
}

/* --- queries ---------------------------------------------------------------------------------- */

bool pb_asked_next(struct pb_asked *asked, struct pb_asked_question *out)
{
    bool is = false;
    (void)pthread_mutex_lock(&asked->lock);
    for (; asked->next < asked->n && !is; asked->next++) {
        struct query *entry = asked->entry[asked->next];
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

/* Begins after the entry that was found last: answers arrive in the order of the queries. */
static struct query *of_ticket(struct pb_asked *asked, uint64_t ticket)
{
    for (size_t i = 0; i < asked->n; i++) {
        const size_t at = (asked->found + i) % asked->n;
        if (asked->entry[at]->ticket != ticket || asked->entry[at]->state != SENT)
            continue;
        asked->found = at + 1;
        return asked->entry[at];
    }
    return NULL;
}

void pb_asked_drop(struct pb_asked *asked, uint64_t ticket)
{
    (void)pthread_mutex_lock(&asked->lock);
    struct query *entry = of_ticket(asked, ticket);
    if (entry != NULL)
        entry->state = WANTED;
    asked->next = 0;
    (void)pthread_mutex_unlock(&asked->lock);
}

bool pb_asked_answer(struct pb_asked *asked, uint64_t ticket, const struct pb_described *answer)
{
    (void)pthread_mutex_lock(&asked->lock);
    struct query *entry = of_ticket(asked, ticket);
    if (entry != NULL) {
        entry->answer = *answer;
        entry->state = ANSWERED;
    }
    (void)pthread_mutex_unlock(&asked->lock);
    return entry != NULL;
}
