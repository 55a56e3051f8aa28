/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/joined.h"

#include "config/base/base_name.h"
#include "config/base/json_writer.h"
#include "pipeline/publish/manifest.h"
#include "service/base/log.h"
#include "service/jobs/file_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- in the service ---------------------------------------------------------------------------*/

/* Parts of a set, except that of a job: their folders and files, and the newest part. */
struct parts {
    const char *self;
    const char *input; /* the job's own part if it makes products again, else NULL */
    /* the job's folder and files, and those of the parts; NULL: not collected */
    struct pb_scene_manifest *manifest;
    /* ids of their jobs, a space after each; NULL: no ids, or out of memory */
    char *jobs;
    size_t n;
    struct pb_set_part newest;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the paths of the root, or (root -1) the base names of all files. Returns an array of
 * borrowed strings, malloc'd; NULL if out of memory. */
static const char **sort_names(const struct pb_scene_manifest *manifest, int root, size_t *out_n)
{
    const char **name = malloc((manifest->n_entries + 1) * sizeof *name);
    *out_n = 0;
    for (size_t i = 0; name != NULL && i < manifest->n_entries; i++) {
        const struct pb_manifest_entry *entry = &manifest->entry[i];
        if (root < 0)
            name[(*out_n)++] = pb_base_name(entry->path);
        else if (entry->root == root)
            name[(*out_n)++] = entry->path;
    }
    if (name != NULL)
        qsort(name, *out_n, sizeof *name, by_name);
    return name;
}

/* Adds the files that the folder of a part had when its job ended. */
static int add_listed(struct pb_scene_manifest *manifest, int root, const struct pb_set_part *part)
{
    struct pb_file_list list = {NULL, 0};
    int rc = part->files != NULL ? pb_file_list_unpack(part->files, part->files_bytes, &list) : 0;
    for (size_t i = 0; i < list.n && rc >= 0; i++) {
        const struct pb_listed_file *file = &list.file[i];
        const struct pb_manifest_entry entry = {.path = file->path,
                                                .root = (uint16_t)root,
                                                .bytes = file->bytes,
                                                .inode = file->inode,
                                                .mtime_ns = file->mtime_ns,
                                                .ctime_ns = file->ctime_ns};
        if (file->kind == 'f' && file->path[0] != '\0')
            rc = pb_scene_manifest_add(manifest, &entry);
    }
    pb_file_list_fini(&list);
    return rc == -EINVAL ? 0 : rc; /* a damaged list: the names at delivery remain */
}

/* Adds the names of delivered files that the root does not have. */
static int add_names(struct pb_scene_manifest *manifest, int root,
                     const struct pb_scene_manifest *delivered)
{
    size_t n_own, n, at = 0;
    const char **own = sort_names(manifest, root, &n_own), **name = sort_names(delivered, -1, &n);
    int rc = own != NULL && name != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc >= 0 && i < n; i++) {
        const struct pb_manifest_entry entry = {
            .path = (char *)name[i], .root = (uint16_t)root, .bytes = -1};
        while (at < n_own && strcmp(own[at], name[i]) < 0)
            at++;
        const bool has = (at < n_own && strcmp(own[at], name[i]) == 0) ||
                         (i > 0 && strcmp(name[i - 1], name[i]) == 0);
        if (!has)
            rc = pb_scene_manifest_add(manifest, &entry);
    }
    free(own);
    free(name);
    return rc < 0 ? rc : 0;
}

static int add_files(struct pb_scene_manifest *manifest, const struct pb_set_part *part)
{
    struct pb_scene_manifest delivered = {.n_roots = 0};
    int root = pb_scene_manifest_root(manifest, part->path);
    int rc = root < 0 ? root : add_listed(manifest, root, part);
    if (rc >= 0 && part->manifest != NULL) {
        rc = pb_scene_manifest_parse(part->manifest, &delivered);
        rc = rc == -EINVAL ? 0 : rc ? rc : add_names(manifest, root, &delivered);
    }
    pb_scene_manifest_fini(&delivered);
    return rc < 0 ? rc : 0;
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
        parts->newest.manifest = NULL; /* borrowed */
        parts->newest.files = NULL;
    }
    int rc = add_job(parts, part->job);
    if (rc == 0 && strcmp(part->maker, part->job) != 0)
        rc = add_job(parts, part->maker);
    if (rc != 0 || (parts->input != NULL && strcmp(part->path, parts->input) == 0))
        return rc;
    parts->n++;
    return parts->manifest != NULL ? add_files(parts->manifest, part) : 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp((*(const struct pb_manifest_entry *const *)a)->path,
                  (*(const struct pb_manifest_entry *const *)b)->path);
}

/* Sets the checksums that files of the earlier jobs had when the products were made of them. */
static int set_checksums(struct pb_scene_manifest *manifest,
                         const struct pb_scene_manifest *products)
{
    const struct pb_manifest_entry **read = malloc((products->n_entries + 1) * sizeof *read);
    size_t n = 0;
    int rc = read != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < products->n_entries; i++)
        if (products->entry[i].checksum != NULL &&
            pb_role_is_pixels(pb_scene_manifest_role(products, i)))
            read[n++] = &products->entry[i];
    if (n > 1)
        qsort(read, n, sizeof *read, by_path);
    for (size_t i = 0; n > 0 && rc == 0 && i < manifest->n_entries; i++) {
        struct pb_manifest_entry *entry = &manifest->entry[i];
        const struct pb_manifest_entry *key = entry, **found;
        if (entry->root == 0 || entry->checksum != NULL ||
            (found = bsearch(&key, read, n, sizeof *read, by_path)) == NULL)
            continue;
        entry->checksum = strdup((*found)->checksum);
        rc = entry->checksum != NULL ? 0 : -ENOMEM;
    }
    free(read);
    return rc;
}

/* Describes the earlier jobs, and completes the files by the products of the newest part, if these
 * exist. */
static int describe_earlier(struct pb_job *job, const struct parts *parts)
{
    struct pb_manifest products = {0};
    struct pb_json *json = pb_json_create(false);
    const bool has_products =
        parts->newest.job[0] != '\0' &&
        pb_duplicates_products(parts->newest.directory, parts->newest.maker, &products) == 0;
    int rc = 0;
    pb_json_object(json, NULL);
    pb_json_string(json, "by", parts->newest.job[0] ? parts->newest.job : job->replaces);
    pb_json_string(json, "jobs", parts->jobs ? parts->jobs : "");
    if (has_products && !job->anyway)
        pb_scene_manifest_print(&products.inputs, json, "known");
    pb_json_end(json);
    if (has_products)
        rc = set_checksums(&job->joined, &products.inputs);
    const char *text = pb_json_text(json, NULL);
    if (rc == 0)
        rc = text != NULL ? pb_job_set(&job->earlier, text) : -ENOMEM;
    pb_json_destroy(json);
    pb_manifest_fini(&products);
    return rc;
}

static int collect(struct pb_job_store *store, struct pb_job *job, struct parts *parts,
                   struct pb_err *err)
{
    const bool again = job->again[0] != '\0';
    parts->self = job->id;
    parts->input = again ? job->manifest.input : NULL;
    parts->manifest = &job->joined;
    int root = job->manifest.input != NULL
                   ? pb_scene_manifest_root(&job->joined, job->manifest.input)
                   : -EINVAL;
    int rc = root < 0 ? root : pb_scene_manifest_set_input(&job->joined, job->manifest.input);
    rc = rc ? rc : add_names(&job->joined, root, &job->manifest);
    if (rc == 0)
        rc = again ? pb_set_parts_list_jobs(store, job->set_id, add_part, parts, err)
                   : pb_set_parts_list(store, job->set_id, add_part, parts, err);
    if (rc == 0 && (parts->n > 0 || job->replaces[0] != '\0'))
        rc = describe_earlier(job, parts);
    return rc;
}

/* Sets the error of a job whose files cannot be listed with those of the earlier jobs. */
static void fail_to_join(struct pb_job *job, int rc)
{
    char text[400];
    if (rc == -E2BIG)
        (void)snprintf(
            text, sizeof text,
            "with it, its scene has more than %d files, too long paths of these, or more than "
            "%d deliveries",
            PB_SCENE_MANIFEST_ENTRIES_MAX, PB_SCENE_MANIFEST_ROOTS_MAX);
    else
        (void)snprintf(text, sizeof text,
                       "it joins a scene whose files are unknown: the job store has no valid list "
                       "of the files of one of its earlier jobs (%s)",
                       strerror(-rc));
    pb_job_fail_words(job, pb_code_id(rc == -E2BIG ? PB_E_INPUT_LIMIT : PB_E_INPUT_GONE), text,
                      "when input.complete.reopen is over, deliver the files of the scene again, "
                      "in fewer deliveries");
}

/* Returns true for an errno of pb_scene_manifest_*, which concerns this job alone. */
static bool is_own_fault(int rc)
{
    return rc == -E2BIG || rc == -EINVAL || rc == -EFBIG;
}

int pb_joined_describe(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    struct parts *parts = calloc(1, sizeof *parts);
    pb_scene_manifest_fini(&job->joined);
    (void)pb_job_set(&job->earlier, NULL);
    if (parts == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc = collect(store, job, parts, err);
    if (rc == -ENOMEM)
        (void)pb_fail(err, PB_E_MEMORY, "out of memory");
    else if (is_own_fault(rc))
        fail_to_join(job, rc);
    if (rc != 0 || job->earlier == NULL)
        pb_scene_manifest_fini(&job->joined);
    free(parts->jobs);
    free(parts);
    return is_own_fault(rc) ? 1 : rc;
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

int pb_joined_compare(const struct pb_json_value *earlier, const struct pb_duplicates_input *input,
                      struct pb_err *err)
{
    struct pb_scene_manifest products;
    const struct pb_json_value *known = pb_json_get(earlier, "known", NULL);
    if (known == NULL)
        return 0;
    int rc = pb_scene_manifest_read(known, &products);
    if (rc != 0)
        return rc == -ENOMEM ? pb_fail(err, PB_E_MEMORY, "out of memory for the files of products")
                             : pb_fail(err, PB_E_SERVICE_PROTOCOL,
                                       "a run command with broken files of earlier products");
    rc = pb_duplicates_compare_files(input, &products, err);
    pb_scene_manifest_fini(&products);
    return rc;
}
