/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/joined.h"

#include "config/base/base_name.h"
#include "config/base/json_writer.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/raster/input_sum.h"
#include "pipeline/scene/scene_joined.h"
#include "service/base/log.h"
#include "service/jobs/file_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DELIVERED_MAX (1 << 20)

/* --- in the service ---------------------------------------------------------------------------*/

/* Parts of a set, except that of a job: their folders, the names of their files, and the newest
 * part. */
struct parts {
    const char *self;
    const char *input; /* the job's own part if it makes products again, else NULL */
    struct pb_json *folders, *files;
    struct pb_json *came; /* files at their delivery: [folder, path, facts] */
    /* ids of their jobs, a space after each; NULL: no ids, or out of memory */
    char *jobs;
    size_t n;
    struct pb_set_part newest;
};

static void add_names(struct pb_json *files, const char *delivered)
{
    struct pb_json_value *list = NULL;
    if (delivered == NULL)
        return;
    if (pb_json_parse(delivered, strlen(delivered), DELIVERED_MAX, &list) == -ENOMEM)
        pb_json_raw(files, NULL, NULL); /* the record is not written in part */
    for (size_t i = 0; i < pb_json_count(list); i++)
        if (pb_json_text_of(pb_json_at(list, i)) != NULL)
            pb_json_string(files, NULL, pb_base_name(pb_json_text_of(pb_json_at(list, i))));
    pb_json_release(list);
}

/* Adds the delivered files of a part. index: index of the part's folder. */
static int add_came(struct pb_json *json, size_t index, const struct pb_set_part *part)
{
    char facts[PB_SCENE_FACTS_BYTES], number[24];
    struct pb_file_list list = {NULL, 0};
    int rc = part->files != NULL ? pb_file_list_unpack(part->files, part->files_bytes, &list) : 0;
    for (size_t i = 0; i < list.n; i++) {
        const struct pb_listed_file *file = &list.file[i];
        if (file->kind != 'f')
            continue;
        pb_scene_joined_facts(file->bytes, file->mtime_ns, file->ctime_ns, facts);
        (void)snprintf(number, sizeof number, "%zu", index);
        pb_json_array(json, NULL);
        pb_json_string(json, NULL, number);
        pb_json_string(json, NULL, file->path);
        pb_json_string(json, NULL, facts);
        pb_json_end(json);
    }
    pb_file_list_fini(&list);
    return rc == -ENOMEM ? rc : 0;
}

static int add_job(struct parts *parts, const char *id)
{
    char *more = NULL;
    if (asprintf(&more, "%s%s ", parts->jobs ? parts->jobs : "", id) < 0)
        return -ENOMEM;
    free(parts->jobs);
    parts->jobs = more;
    return 0;
}

static int add_part(void *user, const struct pb_set_part *part)
{
    struct parts *parts = user;
    if (strcmp(part->job, parts->self) == 0)
        return 0;
    if (parts->newest.job[0] == '\0') {
        parts->newest = *part;
        parts->newest.delivered = NULL; /* borrowed */
        parts->newest.files = NULL;
    }
    int rc = add_job(parts, part->job);
    if (rc == 0 && strcmp(part->maker, part->job) != 0)
        rc = add_job(parts, part->maker);
    if (rc != 0 || (parts->input != NULL && strcmp(part->path, parts->input) == 0))
        return rc;
    if (parts->came != NULL && add_came(parts->came, parts->n, part) != 0)
        return -ENOMEM;
    parts->n++;
    if (parts->folders != NULL)
        pb_json_string(parts->folders, NULL, part->path);
    if (parts->files != NULL)
        add_names(parts->files, part->delivered);
    return 0;
}

/* Prints the identity of the files that were the input of the products of the newest part, if the
 * products exist. */
static void print_products(struct pb_json *json, const struct pb_set_part *part)
{
    struct pb_manifest manifest = {0};
    char known[PB_CHECKSUM_KINDS * (PB_CHECKSUM_TEXT_BYTES + 1)] = "";
    if (pb_duplicates_products(part->directory, part->maker, &manifest) == 0) {
        for (int k = 0; k < PB_CHECKSUM_KINDS; k++) {
            const char *checksum = manifest.input.checksum[k];
            size_t n = strlen(known);
            if (checksum[0] != '\0')
                (void)snprintf(known + n, sizeof known - n, "%s ", checksum);
        }
        pb_json_string(json, "known", known);
        pb_json_int(json, "pixels", (int64_t)manifest.n_pixels);
    }
    pb_manifest_fini(&manifest);
}

/* Prints the checksums of the files that were the input of the products of the newest part. */
static void print_checksums(struct pb_json *json, const struct pb_set_part *part)
{
    struct pb_manifest manifest = {0};
    if (pb_duplicates_products(part->directory, part->maker, &manifest) != 0)
        return;
    pb_json_array(json, "checksums");
    for (size_t i = 0; i < manifest.n_pixels; i++) {
        pb_json_array(json, NULL);
        pb_json_string(json, NULL, manifest.read[i].name);
        pb_json_string(json, NULL, manifest.read[i].checksum);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_manifest_fini(&manifest);
}

static char *print(const struct pb_job *job, const struct parts *parts)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "by", parts->newest.job[0] ? parts->newest.job : job->replaces);
    pb_json_string(json, "jobs", parts->jobs ? parts->jobs : "");
    pb_json_raw(json, "folders", pb_json_text(parts->folders, NULL));
    pb_json_raw(json, "files", pb_json_text(parts->files, NULL));
    pb_json_raw(json, "came", pb_json_text(parts->came, NULL));
    if (parts->newest.job[0] != '\0')
        print_checksums(json, &parts->newest);
    if (parts->newest.job[0] != '\0' && !job->anyway)
        print_products(json, &parts->newest);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

int pb_joined_describe(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    struct parts *parts = calloc(1, sizeof *parts);
    if (parts == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    const bool again = job->again[0] != '\0';
    parts->self = job->id;
    parts->input = again ? job->input : NULL;
    parts->folders = pb_json_create(false);
    parts->files = pb_json_create(false);
    parts->came = pb_json_create(false);
    pb_json_array(parts->came, NULL);
    pb_json_array(parts->folders, NULL);
    pb_json_array(parts->files, NULL);
    int rc = again ? pb_set_parts_list_jobs(store, job->set_id, add_part, parts, err)
                   : pb_set_parts_list(store, job->set_id, add_part, parts, err);
    if (rc == -ENOMEM)
        (void)pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_json_end(parts->folders);
    pb_json_end(parts->files);
    pb_json_end(parts->came);
    free(job->joined);
    job->joined = NULL;
    if (rc == 0 && (parts->n > 0 || job->replaces[0] != '\0') &&
        (job->joined = print(job, parts)) == NULL)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_json_destroy(parts->folders);
    pb_json_destroy(parts->files);
    pb_json_destroy(parts->came);
    free(parts->jobs);
    free(parts);
    return rc;
}

static bool has_checksum(const struct pb_manifest *manifest, const char *checksum)
{
    bool has = false;
    for (int k = 0; k < PB_CHECKSUM_KINDS && !has; k++)
        has = checksum[0] != '\0' && strcmp(manifest->input.checksum[k], checksum) == 0;
    return has;
}

enum pb_duplicates_verdict pb_joined_judge(struct pb_job_store *store, struct pb_job *job)
{
    struct pb_manifest manifest = {0};
    struct pb_err err = {0};
    enum pb_duplicates_verdict verdict = PB_DUPLICATES_GONE;
    char sum[PB_CHECKSUM_TEXT_BYTES];
    struct parts *parts = calloc(1, sizeof *parts);
    (void)snprintf(sum, sizeof sum, "%.*s", PB_CHECKSUM_TEXT_BYTES - 1, job->error.message);
    if (parts == NULL)
        return PB_DUPLICATES_GONE;
    parts->self = job->id;
    int rc = pb_set_parts_list(store, job->set_id, add_part, parts, &err);
    const struct pb_set_part *part = &parts->newest;
    if (rc == 0 && parts->n == 0)
        verdict = PB_DUPLICATES_FALSE;
    else if (rc == 0 && pb_duplicates_products(part->directory, part->maker, &manifest) == 0 &&
             has_checksum(&manifest, sum))
        verdict = PB_DUPLICATES_SAME;
    if (verdict == PB_DUPLICATES_SAME)
        pb_job_fail(job, PB_E_INPUT_DUPLICATE,
                    "the scene has no other content with its files: job %s made it of the same "
                    "(%.19s...) through %s; the products are in %.700s",
                    part->job, sum, job->pipeline, part->directory);
    pb_manifest_fini(&manifest);
    free(parts->jobs);
    free(parts);
    return verdict;
}

/* --- in the worker ----------------------------------------------------------------------------*/

/* Makes an array of the texts of a list, borrowed from it; NULL = out of memory. */
static const char **texts(const struct pb_json_value *list, size_t *out_n)
{
    const size_t n = pb_json_count(list);
    const char **text = calloc(n + 1, sizeof *text);
    *out_n = 0;
    for (size_t i = 0; text != NULL && i < n; i++)
        if (pb_json_text_of(pb_json_at(list, i)) != NULL)
            text[(*out_n)++] = pb_json_text_of(pb_json_at(list, i));
    return text;
}

/* Finds the checksum of a file of the scene; NULL = unknown. */
static const char *checksum_of(const struct pb_json_value *joined, const char *path)
{
    const struct pb_json_value *list = pb_json_get(joined, "checksums", NULL);
    const char *found = NULL;
    for (size_t i = 0; i < pb_json_count(list) && found == NULL; i++) {
        const struct pb_json_value *one = pb_json_at(list, i);
        const char *name = pb_json_text_of(pb_json_at(one, 0));
        if (name != NULL && strcmp(name, path) == 0)
            found = pb_json_text_of(pb_json_at(one, 1));
    }
    return found != NULL && found[0] != '\0' ? found : NULL;
}

/* Reads the files delivered to the joined folders: borrowed from joined. Returns false if out of
 * memory. */
static bool read_came(const struct pb_json_value *joined, struct pb_scene_joined *all)
{
    const struct pb_json_value *list = pb_json_get(joined, "came", NULL);
    const size_t n = pb_json_count(list);
    struct pb_scene_joined_file *file = calloc(n + 1, sizeof *file);
    for (size_t i = 0; file != NULL && i < n; i++) {
        const struct pb_json_value *one = pb_json_at(list, i);
        const char *folder = pb_json_text_of(pb_json_at(one, 0)),
                   *path = pb_json_text_of(pb_json_at(one, 1)),
                   *facts = pb_json_text_of(pb_json_at(one, 2));
        if (folder == NULL || path == NULL || facts == NULL)
            continue;
        file[all->n_came++] = (struct pb_scene_joined_file){(size_t)strtoull(folder, NULL, 10),
                                                            path, facts, checksum_of(joined, path)};
    }
    all->came = file;
    return file != NULL;
}

int pb_joined_open(const struct pb_json_value *joined, const struct pb_pipeline_config *pipeline,
                   const char *folder, const char *scene, struct pb_err *err,
                   struct pb_scene_files *out)
{
    struct pb_scene_joined all = {.by = pb_json_get_text(joined, "by")};
    const char **folders = texts(pb_json_get(joined, "folders", NULL), &all.n_folders);
    const char **files = texts(pb_json_get(joined, "files", NULL), &all.n_files);
    all.folder = folders;
    all.file = files;
    int rc = 0;
    if (folders == NULL || files == NULL || all.by == NULL || !read_came(joined, &all))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
    else if (all.n_folders == 0)
        rc = pb_fail_at(err, PB_E_INPUT_GONE, folder, 0, 0,
                        "it was to join the scene that job %s made, and the service keeps the "
                        "files of that no more: input.complete.reopen is over",
                        all.by);
    else
        rc = pb_scene_files_open_joined(pipeline, folder, scene, &all, err, out);
    free(folders);
    free(files);
    free((void *)all.came);
    return rc;
}

int pb_joined_compare(const struct pb_json_value *joined, struct pb_input_sum *sum,
                      struct pb_err *err)
{
    int64_t pixels = -1;
    const char *known = joined ? pb_json_get_text(joined, "known") : NULL;
    if (known == NULL || pb_json_get_int(joined, "pixels", &pixels) != 0 ||
        pixels != (int64_t)pb_input_sum_pixels(sum))
        return 0;
    return pb_duplicates_find(sum, known, err);
}
