/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/intake.h"

#include "config/base/archive_name.h"
#include "config/base/base_name.h"
#include "config/base/clock.h"
#include "config/base/glob.h"
#include "config/config.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/io/path.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/single.h"
#include "service/base/log.h"
#include "service/inbox/inbox.h"
#include "service/jobs/nodes.h"
#include "service/jobs/service_time.h"
#include "service/jobs/set_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_TRIES 64

int pb_intake_check_space(struct pb_intake *intake, struct pb_err *err)
{
    if (atomic_load(&intake->paused))
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "the job store cannot be reached; files stay in the inbox until it can");
    (void)pthread_rwlock_rdlock(&intake->lock);
    uint64_t least = intake->config->service.retention.min_free_bytes;
    (void)pthread_rwlock_unlock(&intake->lock);
    int rc = pb_files_check_space(intake->dirs->work, least, err);
    return rc ? rc : pb_files_check_space(intake->dirs->products, least, err);
}

void pb_intake_make_id(char out[PB_JOB_ID_BYTES])
{
    uint32_t random = (uint32_t)getpid() ^ (uint32_t)pb_clock_mono_ms();
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random *= 2654435761u;
    pb_job_make_id(pb_clock_wall_ms(), random, out);
}

static const struct pb_inbox_config *find_inbox(const struct pb_service_config *service,
                                                const char *path)
{
    for (size_t i = 0; path != NULL && i < service->n_inboxes; i++)
        if (strcmp(service->inboxes[i].path, path) == 0)
            return &service->inboxes[i];
    return NULL;
}

static struct pb_inbox_rule rule_of(const struct pb_inbox_config *config)
{
    struct pb_inbox_rule rule = {.recurse = config->recurse != 0, .priority = config->priority};
    const char *marker = config->complete.marker, *checksum = config->complete.checksum;
    const char *pattern = marker ? marker : checksum ? checksum : "";
    rule.companion.kind = marker     ? PB_COMPANION_MARKER
                          : checksum ? PB_COMPANION_CHECKSUM
                                     : PB_COMPANION_NONE;
    (void)snprintf(rule.companion.pattern, sizeof rule.companion.pattern, "%s", pattern);
    return rule;
}

void pb_intake_init(struct pb_intake *intake, const struct pb_config *config)
{
    pthread_rwlockattr_t fair; /* prefers writers; otherwise a stream of claims would block
                                  pb_adopt_work for ever */
    (void)pthread_rwlockattr_init(&fair);
    (void)pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    (void)pthread_rwlock_init(&intake->moves, &fair);
    (void)pthread_rwlockattr_destroy(&fair);
    (void)pthread_rwlock_init(&intake->lock, NULL);
    /* NULL if out of memory: the inbox does not follow reloads */
    for (size_t i = 0; i < config->service.n_inboxes; i++)
        intake->inbox_path[i] = strdup(config->service.inboxes[i].path);
    intake->n_inboxes = config->service.n_inboxes;
    for (size_t i = 0; i < intake->n_inboxes; i++)
        pb_intake_allow(intake, i, INT64_MAX);
    pb_intake_set_config(intake, config);
}

void pb_intake_fini(struct pb_intake *intake)
{
    for (size_t i = 0; i < intake->n_inboxes; i++)
        free(intake->inbox_path[i]);
    (void)pthread_rwlock_destroy(&intake->moves);
    (void)pthread_rwlock_destroy(&intake->lock);
}

void pb_intake_set_config(struct pb_intake *intake, const struct pb_config *config)
{
    (void)pthread_rwlock_wrlock(&intake->lock);
    intake->config = config;
    intake->config_number++;
    for (size_t i = 0; i < intake->n_inboxes; i++) {
        const struct pb_inbox_config *now = find_inbox(&config->service, intake->inbox_path[i]);
        if (now != NULL)
            intake->inbox_rule[i] = rule_of(now);
    }
    (void)pthread_rwlock_unlock(&intake->lock);
}

void pb_intake_set_up(struct pb_intake *intake, size_t number, struct pb_inbox *inbox)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    inbox->number = number;
    inbox->recurse = intake->inbox_rule[number].recurse;
    inbox->priority = intake->inbox_rule[number].priority;
    inbox->companion = intake->inbox_rule[number].companion;
    (void)pthread_rwlock_unlock(&intake->lock);
}

void pb_intake_allow(struct pb_intake *intake, size_t number, int64_t until_ms)
{
    atomic_store(&intake->take_until_ms[number], until_ms);
}

bool pb_intake_may_take(const struct pb_intake *intake, size_t number)
{
    return pb_clock_boot_ms() < atomic_load(&intake->take_until_ms[number]);
}

/* The count rises before the time is read, so that pb_intake_is_taking sees this take, or the take
 * sees the end of its time. */
bool pb_intake_begin_take(struct pb_intake *intake, size_t number)
{
    atomic_fetch_add(&intake->takes[number], 1);
    if (pb_intake_may_take(intake, number))
        return true;
    pb_intake_end_take(intake, number);
    return false;
}

void pb_intake_end_take(struct pb_intake *intake, size_t number)
{
    atomic_fetch_sub(&intake->takes[number], 1);
}

bool pb_intake_is_taking(const struct pb_intake *intake, size_t number)
{
    return pb_intake_may_take(intake, number) || atomic_load(&intake->takes[number]) > 0;
}

/* Returns true if the inbox belongs to another node: its pipelines and its service.unmatched decide
 * about entries that no pipeline of this one matches. */
static bool is_of_another(const struct pb_intake *intake, size_t number)
{
    const char *owner = intake->dirs->inbox_node[number];
    return pb_store_is_shared(intake->store) && owner[0] != '\0' &&
           strcmp(owner, pb_store_node(intake->store)) != 0;
}

bool pb_intake_takes_folder(struct pb_intake *intake, size_t number, const char *name, bool recurse)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    bool takes = pb_config_match_folder(intake->config, name) != NULL ||
                 (!recurse && !is_of_another(intake, number) &&
                  intake->config->service.unmatched.folders == PB_UNMATCHED_FOLDERS_QUARANTINE);
    (void)pthread_rwlock_unlock(&intake->lock);
    return takes;
}

bool pb_intake_ignores(struct pb_intake *intake, const char *path)
{
    bool ignores = false;
    (void)pthread_rwlock_rdlock(&intake->lock);
    const struct pb_service_config *service = &intake->config->service;
    for (size_t i = 0; i < service->n_ignore && !ignores; i++) {
        const char *pattern = service->ignore[i];
        const char *name = strchr(pattern, '/') != NULL ? path : pb_base_name(path);
        ignores = pb_glob_fits(pattern, name, PB_GLOB_ANY_CASE);
    }
    (void)pthread_rwlock_unlock(&intake->lock);
    return ignores;
}

bool pb_intake_leaves(struct pb_intake *intake, size_t number, const char *path)
{
    struct pb_single single = {.kind = PB_SINGLE_INPUT};
    (void)pthread_rwlock_rdlock(&intake->lock);
    if (intake->config->service.unmatched.files == PB_UNMATCHED_FILES_LEAVE ||
        is_of_another(intake, number))
        pb_single_find(intake->config, path, false, &single);
    (void)pthread_rwlock_unlock(&intake->lock);
    return single.kind == PB_SINGLE_FOREIGN;
}

unsigned long pb_intake_config_number(struct pb_intake *intake)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    unsigned long number = intake->config_number;
    (void)pthread_rwlock_unlock(&intake->lock);
    return number;
}

struct pb_config *pb_intake_hold_config(struct pb_intake *intake, unsigned long *out_number)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    struct pb_config *config = pb_config_hold(intake->config);
    if (out_number != NULL)
        *out_number = intake->config_number;
    (void)pthread_rwlock_unlock(&intake->lock);
    return config;
}

void pb_intake_describe(struct pb_intake *intake, struct pb_job *job, const char *name,
                        bool is_folder)
{
    pb_file_name_clean(name, job->name);
    if (is_folder)
        pb_scene_files_name(job->name, job->scene, sizeof job->scene);
    else
        pb_file_name_scene(job->name, job->scene, sizeof job->scene);
    (void)pthread_rwlock_rdlock(&intake->lock);
    struct pb_single single;
    pb_single_find(intake->config, name, is_folder, &single);
    if (single.kind == PB_SINGLE_INPUT)
        (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", single.pipeline->name);
    (void)pthread_rwlock_unlock(&intake->lock);
    if (job->created_ms == 0)
        job->created_ms = job->updated_ms = pb_clock_wall_ms();
}

int pb_intake_describe_lines(struct pb_intake *intake, struct pb_job *job, const char *stream,
                             const char *path, bool is_complete)
{
    char directory[PB_FILES_PATH_BYTES];
    struct stat st = {.st_size = -1};
    if (is_complete && stat(path, &st) != 0)
        st.st_size = -1;
    const struct pb_manifest_entry entry = {.path = (char *)pb_base_name(path),
                                            .bytes = (int64_t)st.st_size};
    pb_intake_describe(intake, job, pb_base_name(path), false);
    (void)pthread_rwlock_rdlock(&intake->lock);
    const struct pb_pipeline_config *pipeline = pb_config_stream(intake->config, stream);
    (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", pipeline ? pipeline->name : "");
    (void)pthread_rwlock_unlock(&intake->lock);
    pb_path_parent(path, directory);
    const int rc = pb_scene_manifest_set_input(&job->manifest, path);
    return rc ? rc : pb_job_add_delivered(job, directory, &entry, NULL);
}

void pb_intake_describe_set(struct pb_job *job, const char *scene, const char *pipeline)
{
    pb_file_name_clean(scene, job->name);
    pb_scene_files_name(job->name, job->scene, sizeof job->scene);
    (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", pipeline);
    if (job->created_ms == 0)
        job->created_ms = job->updated_ms = pb_clock_wall_ms();
}

/* Cleans each part of a path: "a\x01/b" -> "a_-0123456789ab/b". "" stays "", and a path longer
 * than a scan allows becomes "". */
static void clean_folder(const char *below, char out[PB_FILES_PATH_BYTES])
{
    char part[256], clean[256];
    size_t at = 0;
    out[0] = '\0';
    while (*below != '\0' && at + sizeof clean + 1 < PB_FILES_PATH_BYTES) {
        size_t n = strcspn(below, "/");
        (void)snprintf(part, sizeof part, "%.*s", (int)n, below);
        pb_file_name_clean(part, clean);
        at += (size_t)snprintf(out + at, PB_FILES_PATH_BYTES - at, "%s%s", at ? "/" : "", clean);
        below += n + (below[n] == '/');
    }
}

int pb_intake_describe_place(struct pb_intake *intake, struct pb_job *job, const char *directory,
                             struct pb_companion_rule *out_companion)
{
    *out_companion = (struct pb_companion_rule){.kind = PB_COMPANION_NONE};
    char folder[PB_FILES_PATH_BYTES] = "";
    const char *inbox = NULL;
    const size_t i = pb_dirs_inbox_of(intake->dirs, directory);
    if (i < intake->dirs->n_inboxes) {
        inbox = intake->dirs->inbox[i];
        const size_t n = strlen(inbox);
        clean_folder(directory + n + (directory[n] == '/'), folder);
        (void)pthread_rwlock_rdlock(&intake->lock);
        job->priority = intake->inbox_rule[i].priority;
        *out_companion = intake->inbox_rule[i].companion;
        (void)pthread_rwlock_unlock(&intake->lock);
    }
    int rc = pb_job_set(&job->inbox, inbox);
    return rc ? rc : pb_job_set(&job->folder, folder[0] ? folder : NULL);
}

static int check_submitted(const struct pb_intake *intake, const char *path, bool is_folder,
                           const char *pipeline, struct pb_err *err)
{
    const struct pb_pipeline_config *named =
        pipeline != NULL ? pb_config_pipeline(intake->config, pipeline) : NULL;
    if (pipeline != NULL && named == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s' in %s", pipeline,
                       intake->config->path);
    if (is_folder && named != NULL && named->input.scene == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE,
                       "%s is a folder, and pipeline '%s' takes no folders: it has no input.scene",
                       pb_base_name(path), pipeline);
    if (is_folder && pipeline == NULL && pb_config_match_folder(intake->config, path) == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE, "no pipeline's input.scene fits the folder %s",
                       pb_base_name(path));
    if (!is_folder && pipeline == NULL && pb_config_match(intake->config, path) == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE, "no pipeline's input.match fits %s%s",
                       pb_base_name(path),
                       pb_archive_name_stem(path) > 0
                           ? ", nor an input.scene; an archive is to have the name of the folder "
                             "in it, or a pipeline is named with -p"
                           : "");
    return 0;
}

/* Adds the input to the manifest. A path that ends in "..", which is no name, is left out. */
static int note_submitted(struct pb_job *job, const char *path, bool is_folder)
{
    char directory[PATH_MAX], name[NAME_MAX + 1];
    size_t n = 0;
    const char *base = pb_base_name_folder(path, &n);
    const struct pb_manifest_entry entry = {.path = name, .is_folder = is_folder, .bytes = -1};
    (void)snprintf(name, sizeof name, "%.*s", (int)n, base);
    (void)snprintf(directory, sizeof directory, "%.*s",
                   base - path > 1 ? (int)(base - path - 1) : 1, path);
    int rc = pb_job_add_delivered(job, directory, &entry, NULL);
    return rc == -EINVAL ? 0 : rc;
}

int pb_intake_describe_submitted(struct pb_intake *intake, const char *path, bool is_folder,
                                 const char *pipeline, int64_t uid, const char *identity,
                                 struct pb_err *err, struct pb_job *out_job)
{
    int rc = check_submitted(intake, path, is_folder, pipeline, err);
    if (rc != 0)
        return rc;
    pb_job_init(out_job);
    out_job->uid = uid;
    (void)snprintf(out_job->identity, sizeof out_job->identity, "%s", identity);
    pb_intake_describe(intake, out_job, pb_base_name(path), is_folder);
    if (pipeline != NULL)
        (void)snprintf(out_job->pipeline, sizeof out_job->pipeline, "%s", pipeline);
    if (pb_scene_manifest_set_input(&out_job->manifest, path) == 0 &&
        note_submitted(out_job, path, is_folder) == 0)
        return 0;
    return pb_fail(err, PB_E_MEMORY, "out of memory");
}

int pb_intake_store(struct pb_intake *intake, struct pb_job *job, struct pb_err *err)
{
    int rc = -EEXIST;
    for (int i = 0; i < ID_TRIES && rc == -EEXIST; i++) {
        pb_intake_make_id(job->id);
        rc = pb_store_offer(intake->store, job, err);
    }
    return rc;
}

/* --- earlier jobs of a set -------------------------------------------------------------------- */

static int no_memory(struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the files of a set");
}

/* Describes the job that the set would become. */
static int describe_candidate(struct pb_intake *intake, const struct pb_inbox *inbox,
                              const struct pb_assembled *set, struct pb_job *job)
{
    char directory[PB_FILES_PATH_BYTES];
    struct pb_companion_rule none;
    const char *name = pb_assembled_entry(set, 0)->path;
    size_t n = (size_t)(pb_base_name(name) - name);
    pb_job_init(job);
    pb_intake_describe_set(job, set->name, set->pipeline);
    (void)snprintf(directory, sizeof directory, "%s%s%.*s", inbox->path, n ? "/" : "",
                   n ? (int)(n - 1) : 0, name);
    return pb_intake_describe_place(intake, job, directory, &none);
}

/* Manifests of the parts of a set in their JSON form. They are parsed after the list, because the
 * store is locked during it. */
struct texts {
    char **text;
    size_t n;
};

static int add_text(void *user, const struct pb_set_part *part)
{
    struct texts *texts = user;
    if (part->manifest == NULL)
        return 0;
    char **more = realloc(texts->text, (texts->n + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    texts->text = more;
    more[texts->n] = strdup(part->manifest);
    if (more[texts->n] == NULL)
        return -ENOMEM;
    texts->n++;
    return 0;
}

/* Adds the part's files by their names at delivery; the job checks whether they still exist. */
static int add_names(struct pb_scene_earlier *out, const char *text)
{
    struct pb_scene_manifest manifest = {.n_roots = 0};
    int rc = pb_scene_manifest_parse(text, &manifest);
    if (rc != 0)
        return rc == -ENOMEM ? rc : 0;
    char **more = realloc(out->name, (out->n + manifest.n_entries + 1) * sizeof *more);
    rc = more != NULL ? 0 : -ENOMEM;
    if (more != NULL)
        out->name = more;
    for (size_t i = 0; rc == 0 && i < manifest.n_entries; i++) {
        char *copy = strdup(pb_base_name(manifest.entry[i].path));
        if (copy != NULL)
            out->name[out->n++] = copy;
        else
            rc = -ENOMEM;
    }
    pb_scene_manifest_fini(&manifest);
    return rc;
}

static int list_names(struct pb_intake *intake, const char *set_id, struct pb_err *err,
                      struct pb_scene_earlier *out)
{
    struct texts texts = {NULL, 0};
    int rc = pb_set_parts_list(intake->store, set_id, add_text, &texts, err);
    for (size_t i = 0; i < texts.n; i++) {
        rc = rc ? rc : add_names(out, texts.text[i]);
        free(texts.text[i]);
    }
    free(texts.text);
    return rc == -ENOMEM ? no_memory(err) : rc;
}

int pb_intake_find_earlier(struct pb_intake *intake, const struct pb_inbox *inbox,
                           const struct pb_assembled *set, struct pb_err *err,
                           struct pb_scene_earlier *out)
{
    struct pb_job job;
    struct pb_set_last last;
    *out = (struct pb_scene_earlier){.n = 0};
    int rc = describe_candidate(intake, inbox, set, &job) ? no_memory(err) : 0;
    const struct pb_set_key key = {job.pipeline, job.scene, job.inbox, job.folder};
    if (rc == 0)
        rc = pb_set_parts_last(intake->store, &key,
                               pb_job_store_time_ms(intake->store) - set->reopen_ms, err, &last);
    if (rc >= 0)
        (void)snprintf(out->busy, sizeof out->busy, "%s", last.busy);
    if (rc == 1 && out->busy[0] == '\0')
        rc = list_names(intake, last.set_id, err, out);
    pb_job_fini(&job);
    if (rc < 0)
        pb_scene_earlier_fini(out);
    return rc < 0 ? rc : 0;
}

/* Returns -1 if the pipeline does not exist. */
static int64_t reopen_of(struct pb_intake *intake, const char *name)
{
    (void)pthread_rwlock_rdlock(&intake->lock);
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(intake->config, name);
    int64_t reopen_ms = pipeline ? pipeline->input.complete.reopen_ms : -1;
    (void)pthread_rwlock_unlock(&intake->lock);
    return reopen_ms;
}

int pb_intake_join_set(struct pb_intake *intake, struct pb_job *job, struct pb_err *err)
{
    return pb_set_parts_join(intake->store, job, reopen_of(intake, job->pipeline), err);
}

int pb_intake_trim_sets(struct pb_intake *intake, struct pb_err *err)
{
    char name[PB_JOB_NAME_BYTES], after[PB_JOB_NAME_BYTES] = "";
    int rc;
    while ((rc = pb_set_parts_pipeline(intake->store, after, err, name)) == 1) {
        const int64_t reopen_ms = reopen_of(intake, name);
        const int64_t now_ms = reopen_ms == 0 ? INT64_MAX : pb_job_store_time_ms(intake->store);
        rc = pb_set_parts_trim(intake->store, name, reopen_ms, now_ms, err);
        if (rc < 0)
            return rc;
        (void)snprintf(after, sizeof after, "%s", name);
    }
    return rc;
}
