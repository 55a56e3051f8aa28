/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/gathering.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "service/base/log.h"
#include "service/gather/belonging.h"
#include "service/inbox/earlier.h"
#include "service/inbox/inbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb_gathering {
    const struct pb_inbox *inbox; /* valid during a sort */
    struct pb_sets *sets;
    struct pb_settle_file *as_file; /* one for each set: the set as an input, for the intake */
    size_t next;                    /* index of the next set that pb_gathering_next checks */
    size_t n_offered;               /* files of the sets that were offered */
    struct pb_belonging *belonging; /* places of the files of the last scan */
    struct pb_asked *asked;
    size_t n_lone; /* sidecars without a scene */
    struct pb_inbox_told said;
    struct pb_gathering_told lone;
    struct pb_gathering_told shown;
};

struct pb_gathering *pb_gathering_create(void)
{
    struct pb_gathering *gathering = calloc(1, sizeof *gathering);
    if (gathering == NULL)
        return NULL;
    gathering->sets = pb_sets_create();
    gathering->asked = pb_asked_create();
    if (gathering->sets != NULL && gathering->asked != NULL)
        return gathering;
    pb_gathering_destroy(gathering);
    return NULL;
}

void pb_gathering_destroy(struct pb_gathering *gathering)
{
    if (gathering == NULL)
        return;
    pb_sets_destroy(gathering->sets);
    pb_asked_destroy(gathering->asked);
    pb_inbox_told_fini(&gathering->said);
    free(gathering->belonging);
    free(gathering->as_file);
    free(gathering);
}

/* Reports a file that waits for its scene; the file is not offered. */
static void wait_for_scene(struct pb_gathering *gathering, const char *name, const char *pipeline,
                           const char *missing, int64_t expires_ms)
{
    struct pb_gathering_told *told = &gathering->lone;
    told->n_all++;
    if (told->n == PB_GATHERING_TOLD_MAX)
        return;
    struct pb_gathering_set *one = &told->set[told->n++];
    *one = (struct pb_gathering_set){.files = 1, .expires_ms = expires_ms};
    (void)snprintf(one->scene, sizeof one->scene, "%s", name);
    (void)snprintf(one->pipeline, sizeof one->pipeline, "%s", pipeline);
    (void)snprintf(one->missing, sizeof one->missing, "%s", missing);
}

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

static int add(struct pb_gathering *gathering, const struct pb_config *config,
               struct pb_settle *settle, size_t i, size_t main)
{
    const struct pb_belonging *of = &gathering->belonging[main];
    const struct pb_settle_file *file = pb_settle_at(settle, i);
    bool is_beside = of->belongs == PB_BELONGS_MAIN, is_still = pb_settle_hold(settle, i);
    if (is_beside)
        is_still = has_waited(gathering, settle, i, of->name, is_still);
    const struct pb_set_file of_set = {.name = file->name,
                                       .size = file->size,
                                       .inode = file->inode,
                                       .mtime_ns = file->mtime_ns,
                                       .ctime_ns = file->ctime_ns,
                                       .is_still = is_still,
                                       .number = i};
    return pb_sets_add(gathering->sets, (size_t)(of->pipeline - config->pipelines),
                       is_beside ? pb_base_name(of->name) : of->scene, is_beside, &of_set);
}

/* Metadata that arrive before their scene wait for as long as the scene would wait for them. */
static void await_scene(struct pb_gathering *gathering, struct pb_settle *settle, size_t i,
                        const struct pb_sets_now *now)
{
    const struct pb_settle_file *file = pb_settle_at(settle, i);
    const struct pb_pipeline_config *pipeline = gathering->belonging[i].pipeline;
    int64_t expires_ms = file->ctime_ns / 1000000 + pipeline->input.complete.expire_ms;
    if (now->wall_is_trusted && now->wall_ms >= expires_ms)
        return; /* becomes a job, which reports the missing scene */
    (void)pb_settle_hold(settle, i);
    wait_for_scene(gathering, file->name, pipeline->name,
                   "the file that it is metadata of is missing", expires_ms);
}

/* Lets a file whose set depends on its metadata wait until these are read. Absent metadata are
 * waited for as long as the set would wait for them. */
static int ask(struct pb_gathering *gathering, const struct pb_config *config,
               struct pb_settle *settle, size_t i, const struct pb_sets_now *now)
{
    const struct pb_belonging *file = &gathering->belonging[i];
    const struct pb_input_config *input = &file->pipeline->input;
    const int64_t expires_ms =
        pb_settle_at(settle, i)->ctime_ns / 1000000 + input->complete.expire_ms;
    (void)pb_settle_hold(settle, i);
    if (file->lacks_metadata && !(now->wall_is_trusted && now->wall_ms >= expires_ms)) {
        char missing[200];
        (void)snprintf(missing, sizeof missing,
                       "its metadata (%.120s) are missing, which determine its scene (input.by)",
                       input->metadata[0]);
        wait_for_scene(gathering, file->name, file->pipeline->name, missing, expires_ms);
        return 0;
    }
    wait_for_scene(gathering, file->name, file->pipeline->name,
                   "its metadata are read first, which determine its scene (input.by)", 0);
    int rc = pb_sets_await(gathering->sets, (size_t)(file->pipeline - config->pipelines),
                           pb_settle_at(settle, i)->ctime_ns);
    if (rc == 0 && file->may_be_asked)
        rc = pb_asked_want(gathering->asked, file->name, file->digest, file->pipeline->name);
    return rc;
}

static bool has_note(const struct pb_settle *settle, size_t i, enum pb_settle_reason reason)
{
    const struct pb_settle_note *note = pb_settle_note(settle, i);
    return note != NULL && note->reason == reason;
}

/* A file that no pipeline matches stays if service.unmatched has `files: leave`. */
static void place_alone(struct pb_gathering *gathering, const struct pb_config *config,
                        struct pb_settle *settle, size_t i)
{
    static const struct pb_settle_note foreign = {
        .reason = PB_SETTLE_FOREIGN,
        .code = PB_E_INPUT_NO_PIPELINE,
        .text = "no pipeline's input.match fits the name of this file"};
    const struct pb_settle_file *file = pb_settle_at(settle, i);
    bool stays = config->service.unmatched.files == PB_UNMATCHED_FILES_LEAVE && !file->is_folder &&
                 pb_config_match(config, file->name) == NULL;
    if (!stays && has_note(settle, i, PB_SETTLE_FOREIGN))
        pb_settle_set_note(settle, i, NULL);
    if (!stays)
        return;
    (void)pb_settle_decide(settle, i, PB_SETTLE_ASIDE);
    pb_settle_set_note(settle, i, &foreign);
    if (pb_inbox_is_news(&gathering->said, file->name))
        pb_log(PB_LOG_NOTICE, "inbox: %s stays: %s", file->name, foreign.text);
}

static int place(struct pb_gathering *gathering, const struct pb_config *config,
                 struct pb_settle *settle, size_t i, const struct pb_sets_now *now)
{
    const struct pb_belonging *file = &gathering->belonging[i];
    char input[PB_FILES_PATH_BYTES];
    if (pb_companion_input(&gathering->inbox->companion, file->name, input))
        return 0; /* handled by pairing.c */
    switch (file->belongs) {
    case PB_BELONGS_ALONE:
        place_alone(gathering, config, settle, i);
        return 0;
    case PB_BELONGS_MAIN:
    case PB_BELONGS_SET:
        return add(gathering, config, settle, i, i);
    case PB_BELONGS_ASKED:
        return ask(gathering, config, settle, i, now);
    case PB_BELONGS_BESIDE:
        if (gathering->belonging[file->main].belongs == PB_BELONGS_ASKED) {
            (void)pb_settle_hold(settle, i);
            return 0;
        }
        return add(gathering, config, settle, i, file->main);
    case PB_BELONGS_NOWHERE:
        if (pb_settle_hold(settle, i) && pb_inbox_is_news(&gathering->said, file->name))
            pb_log(PB_LOG_NOTICE,
                   "inbox: %s stays: the file that it belongs to is not here; both are moved when "
                   "that arrives",
                   file->name);
        gathering->n_lone++;
        wait_for_scene(gathering, file->name, "", "the file that it belongs to is missing", 0);
        return 0;
    case PB_BELONGS_AWAITS:
        await_scene(gathering, settle, i, now);
        return 0;
    }
    return 0;
}

/* Hash of the state of a file; it differs after a change of the file. */
static uint64_t state_of(const struct pb_settle_file *file)
{
    const uint64_t parts[] = {file->inode, file->size, (uint64_t)file->mtime_ns,
                              (uint64_t)file->ctime_ns};
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (int shift = 0; shift < 64; shift += 8)
            hash = (hash ^ (parts[i] >> shift & 0xff)) * UINT64_C(1099511628211);
    return hash;
}

static const struct pb_described *find_answer(void *user, const char *name, uint64_t digest)
{
    return pb_asked_find(user, name, digest);
}

static int place_all(struct pb_gathering *gathering, const struct pb_config *config,
                     struct pb_settle *settle, const struct pb_sets_now *now)
{
    const struct pb_belonging_answers answers = {find_answer, gathering->asked};
    size_t n = pb_settle_count(settle);
    free(gathering->belonging);
    gathering->belonging = calloc(n + 1, sizeof *gathering->belonging);
    int rc = gathering->belonging != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct pb_settle_file *file = pb_settle_at(settle, i);
        gathering->belonging[i] = (struct pb_belonging){.name = file->name,
                                                        .is_folder = file->is_folder,
                                                        .is_still = !file->by_age,
                                                        .state = state_of(file)};
    }
    rc = rc ? rc : pb_belonging_sort(gathering->belonging, n, config, &answers);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = place(gathering, config, settle, i, now);
    return rc ? rc : pb_sets_end(gathering->sets, config);
}

/* Finds the earlier jobs of the sets. The store may wait for its disk. */
static int look_back(struct pb_gathering *gathering, struct pb_intake *intake)
{
    struct pb_err err = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pb_sets_count(gathering->sets); i++) {
        const struct pb_set *set = pb_sets_at(gathering->sets, i);
        struct pb_set_earlier earlier;
        if (set->reopen_ms == 0)
            continue;
        rc = pb_earlier_of_set(intake, gathering->inbox, set, &err, &earlier);
        if (rc == 0)
            pb_sets_know(gathering->sets, i, &earlier);
    }
    if (rc != 0 && pb_inbox_is_news(&gathering->said, err.msg))
        pb_log(PB_LOG_WARNING, "inbox: files that may join an earlier scene wait: %s", err.msg);
    return rc;
}

/* The configuration is not locked while the store is read; after a reload in that time the next
 * scan sorts again. */
static int sort(struct pb_gathering *gathering, struct pb_intake *intake, struct pb_settle *settle,
                const struct pb_sets_now *now)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    unsigned long number = intake->config_number;
    pb_asked_begin(gathering->asked, number);
    int rc = place_all(gathering, intake->config, settle, now);
    pb_asked_end(gathering->asked);
    (void)pthread_rwlock_unlock(&intake->lock);
    if (rc != 0) {
        pb_log(PB_LOG_WARNING, "inbox: no memory to gather files");
        return rc;
    }
    rc = look_back(gathering, intake);
    (void)pthread_rwlock_rdlock(&intake->lock);
    if (rc == 0 && number != intake->config_number)
        rc = -EAGAIN;
    if (rc == 0)
        pb_sets_judge(gathering->sets, intake->config, now);
    (void)pthread_rwlock_unlock(&intake->lock);
    return rc;
}

/* Describes each set as one input. */
static int describe(struct pb_gathering *gathering)
{
    size_t n = pb_sets_count(gathering->sets);
    free(gathering->as_file);
    gathering->as_file = calloc(n + 1, sizeof *gathering->as_file);
    for (size_t i = 0; gathering->as_file != NULL && i < n; i++) {
        const struct pb_set *set = pb_sets_at(gathering->sets, i);
        struct pb_settle_file *file = &gathering->as_file[i];
        file->name = set->scene;
        file->size = set->bytes;
        file->mtime_ns = set->youngest_ns;
        file->is_folder = !set->is_beside;
    }
    return gathering->as_file != NULL ? 0 : -1;
}

void pb_gathering_sort(struct pb_gathering *gathering, const struct pb_inbox *inbox,
                       struct pb_intake *intake, struct pb_settle *settle, int64_t mono_ms,
                       int64_t wall_ms)
{
    gathering->inbox = inbox;
    const struct pb_sets_now now = {wall_ms, pb_settle_trusts_wall(settle, mono_ms)};
    pb_sets_begin(gathering->sets);
    gathering->next = gathering->n_offered = gathering->n_lone = 0;
    gathering->lone.n = gathering->lone.n_all = 0;
    int rc = sort(gathering, intake, settle, &now);
    rc = rc ? rc : describe(gathering);
    if (rc == 0)
        return;
    /* The files wait for the next scan, because each might belong to a set. */
    pb_sets_begin(gathering->sets);
    for (size_t i = 0; i < pb_settle_count(settle); i++)
        (void)pb_settle_hold(settle, i);
}

/* Error of the metadata that should determine the set of the file; NULL if there is no error. */
static const struct pb_job_error *error_of(const struct pb_gathering *gathering,
                                           const struct pb_settle *settle,
                                           const struct pb_settle_file *file)
{
    size_t i;
    if (gathering->belonging == NULL || !pb_settle_find(settle, file->name, &i) ||
        gathering->belonging[i].answer == NULL ||
        gathering->belonging[i].answer->error.code[0] == '\0')
        return NULL;
    return &gathering->belonging[i].answer->error;
}

bool pb_gathering_next(struct pb_gathering *gathering, struct pb_settle *settle,
                       struct pb_claimed *out)
{
    const struct pb_settle_file *file = pb_settle_next(settle);
    *out = (struct pb_claimed){.file = file};
    if (file != NULL) {
        out->error = error_of(gathering, settle, file);
        return true;
    }
    while (gathering->next < pb_sets_count(gathering->sets)) {
        size_t i = gathering->next++;
        const struct pb_set *set = pb_sets_at(gathering->sets, i);
        if (!set->is_due)
            continue;
        gathering->n_offered += set->n;
        *out = (struct pb_claimed){.file = &gathering->as_file[i], .set = set};
        if (set->is_beside && set->n == 1) /* a single file without sidecars */
            *out = (struct pb_claimed){.file = pb_settle_at(settle, set->file[0].number)};
        for (size_t k = 0; k < set->n && set->is_beside && out->error == NULL; k++)
            out->error = error_of(gathering, settle, pb_settle_at(settle, set->file[k].number));
        return true;
    }
    return false;
}

/* Stores the reason of a failed claim as a note. */
static void note_claim(struct pb_intake *intake, struct pb_settle *settle,
                       const struct pb_claimed *claimed)
{
    bool lacks = claimed->set == NULL && claimed->rc == -EAGAIN &&
                 claimed->err.code == PB_E_INPUT_INCOMPLETE;
    bool refused = claimed->rc != -EAGAIN && pb_code_class(claimed->err.code) == PB_CLASS_INPUT;
    if (!lacks && !refused)
        return;
    struct pb_settle_note note = {.reason = lacks ? PB_SETTLE_LACKS : PB_SETTLE_REFUSED,
                                  .code = claimed->err.code};
    (void)snprintf(note.text, sizeof note.text, "%s", claimed->err.msg);
    if (lacks) {
        (void)pthread_rwlock_rdlock(&intake->lock);
        const struct pb_pipeline_config *pipeline =
            pb_config_match_folder(intake->config, claimed->file->name);
        if (pipeline != NULL) {
            (void)snprintf(note.pipeline, sizeof note.pipeline, "%s", pipeline->name);
            note.expires_ms =
                claimed->file->mtime_ns / 1000000 + pipeline->input.complete.expire_ms;
        }
        (void)pthread_rwlock_unlock(&intake->lock);
    }
    pb_settle_set_note(settle,
                       claimed->set != NULL ? claimed->set->file[0].number
                                            : pb_settle_index(settle, claimed->file),
                       &note);
}

void pb_gathering_again(struct pb_gathering *gathering, struct pb_intake *intake,
                        struct pb_settle *settle, const struct pb_claimed *file)
{
    const struct pb_set *set = file->set;
    note_claim(intake, settle, file);
    if (set == NULL) {
        pb_settle_again(settle, file->file);
        return;
    }
    gathering->n_offered -= set->n;
    for (size_t i = 0; i < set->n; i++)
        pb_settle_again(settle, pb_settle_at(settle, set->file[i].number));
}

size_t pb_gathering_waiting(const struct pb_gathering *gathering, const struct pb_settle *settle)
{
    return pb_settle_waiting(settle) - gathering->n_offered - gathering->n_lone;
}

int64_t pb_gathering_due_ms(const struct pb_gathering *gathering, int64_t wall_ms)
{
    int64_t due = pb_sets_due_ms(gathering->sets, wall_ms);
    for (size_t i = 0; i < gathering->lone.n; i++) {
        int64_t left = gathering->lone.set[i].expires_ms - wall_ms;
        if (left > 0 && (due < 0 || left < due))
            due = left;
    }
    return due;
}

static void show(struct pb_gathering_told *out, const struct pb_gathering_set *one)
{
    out->n_all++;
    if (out->n < PB_GATHERING_TOLD_MAX)
        out->set[out->n++] = *one;
}

/* Shows folders that lack files, and inputs that lack their marker or checksum file. */
static void show_noted(struct pb_gathering_told *out, const struct pb_settle *settle)
{
    for (size_t i = 0; i < pb_settle_count(settle); i++) {
        const struct pb_settle_file *file = pb_settle_at(settle, i);
        const struct pb_settle_note *note = pb_settle_note(settle, i);
        if (note == NULL || note->reason != PB_SETTLE_LACKS)
            continue;
        struct pb_gathering_set one = {.files = file->is_folder ? file->n_files : 1,
                                       .expires_ms = note->expires_ms};
        (void)snprintf(one.scene, sizeof one.scene, "%s", file->name);
        (void)snprintf(one.pipeline, sizeof one.pipeline, "%s", note->pipeline);
        (void)snprintf(one.missing, sizeof one.missing, "%s", note->text);
        show(out, &one);
    }
}

void pb_gathering_show(struct pb_gathering *gathering, const struct pb_settle *settle)
{
    struct pb_gathering_told *out = &gathering->shown;
    *out = gathering->lone;
    show_noted(out, settle);
    for (size_t i = 0; i < pb_sets_count(gathering->sets); i++) {
        const struct pb_set *set = pb_sets_at(gathering->sets, i);
        if (!set->is_incomplete || set->is_due)
            continue;
        struct pb_gathering_set one = {.files = set->n, .expires_ms = set->expires_ms};
        (void)snprintf(one.scene, sizeof one.scene, "%s", set->scene);
        (void)snprintf(one.pipeline, sizeof one.pipeline, "%s", set->pipeline);
        (void)snprintf(one.missing, sizeof one.missing, "%s", set->missing);
        show(out, &one);
    }
}

const struct pb_gathering_told *pb_gathering_shown(const struct pb_gathering *gathering)
{
    return &gathering->shown;
}

struct pb_asked *pb_gathering_asked(const struct pb_gathering *gathering)
{
    return gathering->asked;
}
