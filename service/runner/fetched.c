/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/fetched.h"

#include "config/config.h"
#include "service/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME ".fetched"

void pb_fetched_room(const char *work, const struct pb_job *job, char out[PB_FILES_PATH_BYTES])
{
    (void)snprintf(out, PB_FILES_PATH_BYTES, "%.4000s/" NAME "/%s.%lld", work, job->id,
                   (long long)job->epoch);
}

void pb_fetched_products(const char *work, const struct pb_job *job, char out[PB_FILES_PATH_BYTES])
{
    char room[PB_FILES_PATH_BYTES];
    pb_fetched_room(work, job, room);
    (void)snprintf(out, PB_FILES_PATH_BYTES, "%.4080s/products", room);
}

const struct pb_node *pb_fetched_home(const struct pb_runner_env *env, const struct pb_job *job)
{
    if (!env->config->service.has_fetch || env->nodes == NULL)
        return NULL;
    const struct pb_node *home = pb_nodes_home(env->nodes, job->manifest.input);
    return home != NULL && home->address[0] != '\0' && strcmp(home->name, env->node) != 0 ? home
                                                                                          : NULL;
}

int pb_fetched_begin(struct pb_job *job, const struct pb_node *home)
{
    const int rc = pb_job_set(&job->home, home != NULL ? home->name : NULL);
    return rc ? rc : pb_job_set(&job->home_products, home != NULL ? home->products : NULL);
}

static void fail_parts(struct pb_job *job, const char *node, const char *root)
{
    char text[900];
    (void)snprintf(text, sizeof text,
                   "it joins a scene whose earlier files are on node %s, in %.600s; files of one "
                   "scene are not fetched from several nodes",
                   node, root);
    pb_job_fail_words(job, pb_code_id(PB_E_INPUT_GONE), text,
                      "move its files from the quarantine to an inbox of that node");
}

int pb_fetched_check_parts(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    struct pb_nodes nodes;
    int rc = job->earlier != NULL ? pb_nodes_list(store, err, &nodes) : 1;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    const struct pb_node *home = pb_nodes_home(&nodes, job->manifest.input);
    for (size_t i = 0; rc == 0 && home != NULL && i < job->joined.n_roots; i++) {
        const struct pb_node *other = pb_nodes_home(&nodes, job->joined.root[i]);
        if (other == NULL || other == home)
            continue;
        fail_parts(job, other->name, job->joined.root[i]);
        rc = 1;
    }
    pb_nodes_fini(&nodes);
    return rc;
}

/* Reads a name that pb_fetched_room makes. */
static bool parse(const char *name, char out_job[PB_JOB_ID_BYTES], long long *out_epoch)
{
    char made[PB_JOB_ID_BYTES + 24];
    const char *dot = strchr(name, '.');
    if (dot == NULL || dot - name >= PB_JOB_ID_BYTES)
        return false;
    (void)snprintf(out_job, PB_JOB_ID_BYTES, "%.*s", (int)(dot - name), name);
    *out_epoch = strtoll(dot + 1, NULL, 10);
    (void)snprintf(made, sizeof made, "%s.%lld", out_job, *out_epoch);
    return pb_job_is_id(out_job) && strcmp(made, name) == 0;
}

/* Removes the directories of the job up to its epoch; NULL: of all jobs. */
static void remove_rooms(const char *work, const struct pb_job *job)
{
    char parent[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES], id[PB_JOB_ID_BYTES];
    long long epoch;
    if (pb_files_join(parent, work, NAME) != 0)
        return;
    DIR *dir = opendir(parent);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        if (!parse(e->d_name, id, &epoch) ||
            (job != NULL && (strcmp(id, job->id) != 0 || epoch > job->epoch)) ||
            pb_files_join(path, parent, e->d_name) != 0)
            continue;
        const int rc = pb_files_remove(path);
        if (rc != 0 && rc != -ENOENT)
            pb_log(PB_LOG_WARNING, "cannot remove the copies in %s: %s", path, strerror(-rc));
    }
    if (dir != NULL)
        (void)closedir(dir);
}

void pb_fetched_remove(const char *work, const struct pb_job *job)
{
    remove_rooms(work, job);
}

void pb_fetched_sweep(const char *work)
{
    remove_rooms(work, NULL);
}
