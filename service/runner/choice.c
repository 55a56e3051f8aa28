/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/choice.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/publish/publish_root.h"
#include "service/inbox/dirs.h"
#include "service/jobs/nodes.h"
#include "service/runner/job_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool pb_choice_has_products(void *user)
{
    struct pb_choice *choice = user;
    const char *root = choice->root;
    return root[0] == '\0' || pb_publish_root_look(choice->products, root, &choice->unrooted) == 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool is_of_this(const struct pb_choice *choice, const struct pb_job *job)
{
    return strcmp(job->node, choice->node) == 0;
}

/* Returns true for jobs of this node, which fail at the start without a pipeline, and for jobs of
 * other nodes whose pipeline has the same text here. */
static bool has_pipeline(struct pb_choice *choice, const struct pb_job *job)
{
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(choice->config, job->pipeline);
    if (is_of_this(choice, job) || job->node[0] == '\0')
        return true;
    if (!pb_job_start_knows(choice->config, job))
        (void)snprintf(choice->left, sizeof choice->left,
                       "no pipeline of this node takes %.200s, a job of another node, which is "
                       "left to nodes that have its pipeline; give all nodes the same pipelines",
                       job->name);
    else if (pipeline != NULL && job->needs[0] != '\0' && strcmp(pipeline->digest, job->needs) != 0)
        (void)snprintf(choice->left, sizeof choice->left,
                       "pipeline '%.80s' has another text here than on node %s, which has job "
                       "%s (%.120s); the job is left to nodes with the same text. Give all nodes "
                       "the same pipelines, and reload them (SIGHUP)",
                       job->pipeline, job->node, job->id, job->name);
    else
        return true;
    return false;
}

/* Notes a job that no node can run. */
static void note_unmet(struct pb_choice *choice, const struct pb_job *job)
{
    const int64_t most = (int64_t)choice->config->compute.memory_bytes > choice->others_memory
                             ? (int64_t)choice->config->compute.memory_bytes
                             : choice->others_memory;
    if (job->needs_gpu && !choice->has_gpu && !choice->others_have_gpu) {
        choice->unmet = PB_E_DEVICE_MISSING;
        (void)snprintf(
            choice->unmet_why, sizeof choice->unmet_why,
            "job %s (%.200s) waits: no node with a GPU; compute.device of node %s, which "
            "has it, requires one",
            job->id, job->name, job->node);
    } else if (job->error.memory_bytes > most) {
        choice->unmet = PB_E_PLAN_MEMORY;
        (void)snprintf(
            choice->unmet_why, sizeof choice->unmet_why,
            "job %s (%.200s) waits: it needs compute.memory of %lld MiB at least, and no "
            "node has more than %lld MiB",
            job->id, job->name, (long long)(job->error.memory_bytes >> 20),
            (long long)(most >> 20));
    }
}

/* Returns false if the job needs a GPU or memory that this node lacks; other nodes may run it. With
 * compute.device: cuda this node tries again if no other node has a GPU. */
static bool meets_needs(struct pb_choice *choice, const struct pb_job *job)
{
    const struct pb_compute_config *compute = &choice->config->compute;
    const bool tries_gpu = compute->device == PB_DEVICE_CUDA && !choice->others_have_gpu;
    if (choice->node[0] == '\0' || ((!job->needs_gpu || choice->has_gpu || tries_gpu) &&
                                    job->error.memory_bytes <= (int64_t)compute->memory_bytes))
        return true;
    note_unmet(choice, job);
    return false;
}

/* Returns true if a run of the job failed here, not by its input, and another node shall run it:
 * one on which no run failed, or on which the failure is older. This holds for shun_ms. A negative
 * age, caused by the clock of another node, is ignored. */
static bool is_shunned(const struct pb_choice *choice, const struct pb_job *job)
{
    const int64_t age_ms = choice->wall_ms - job->updated_ms;
    const int own = pb_job_shunned_at(job, choice->node);
    if (own < 0 || age_ms < 0 || age_ms >= choice->shun_ms)
        return false;
    for (size_t i = 0; i < choice->n_peers; i++) {
        const struct pb_choice_peer *peer = &choice->peers[i];
        if ((peer->has_gpu || !job->needs_gpu) && peer->memory >= job->error.memory_bytes &&
            pb_job_shunned_at(job, peer->name) < own)
            return true;
    }
    return false;
}

/* Returns true if the path is in one of the directories. */
static bool is_in_any(const char *path, const char *directories)
{
    for (const char *at = directories; path != NULL && *at != '\0'; at += strlen(at) + 1) {
        const size_t n = strlen(at);
        if (strncmp(path, at, n) == 0 && path[n] == '/')
            return true;
    }
    return false;
}

/* Returns true if the input is on this node and needs no copy. Files outside the directories of all
 * nodes were submitted; they are on the node of their job. */
static bool is_own_input(const struct pb_choice *choice, const struct pb_job *job)
{
    return choice->own == NULL || job->manifest.input == NULL ||
           is_in_any(job->manifest.input, choice->own) ||
           (choice->knows_nodes && !is_in_any(job->manifest.input, choice->others) &&
            is_of_this(choice, job));
}

/* Returns true if only the job's own node may take it, because only that node sees whether the last
 * run has published: the run crashed, and that node ends the job after the last attempt; or a
 * client cancelled it, and that node ends the job. */
static bool is_for_home(const struct pb_job *job)
{
    const enum pb_code code = pb_code_find(job->error.code);
    return code == PB_E_JOB_CRASHED || code == PB_E_JOB_DISMISSED;
}

/* Returns true if the input is here or can be fetched. Jobs of other nodes are fetched only after a
 * wait (may_fetch), because their own node needs no copy. */
static bool has_input(struct pb_choice *choice, const struct pb_job *job)
{
    if (is_own_input(choice, job))
        return true;
    if (!is_in_any(job->manifest.input, choice->fetched) || is_for_home(job))
        return false;
    choice->has_foreign = true;
    return choice->may_fetch;
}

static bool may_start_any(void *user, const struct pb_job *job)
{
    struct pb_choice *choice = user;
    for (size_t i = 0; i < choice->n_blocks; i++)
        if (strcmp(choice->blocks[i].id, job->id) == 0 ||
            (choice->blocks[i].scene[0] != '\0' &&
             strcmp(choice->blocks[i].scene, job->scene) == 0))
            return false;
    return pb_hold_may_try(&choice->hold, job->seq, choice->mono_ms) &&
           (choice->n_waits == 0 || bsearch(&job->seq, choice->waits, choice->n_waits,
                                            sizeof *choice->waits, compare_numbers) == NULL) &&
           !is_shunned(choice, job) && has_pipeline(choice, job) && meets_needs(choice, job) &&
           has_input(choice, job);
}

/* A file that is not seen here may still grow on its own node. */
bool pb_choice_may_start(void *user, const struct pb_job *job)
{
    const struct pb_choice *choice = user;
    return may_start_any(user, job) && !pb_live_is_growing(choice->config, job) &&
           (!pb_live_is_of_stream(choice->config, job) || is_of_this(choice, job) ||
            access(job->manifest.input, F_OK) == 0);
}

bool pb_choice_may_start_live(void *user, const struct pb_job *job)
{
    const struct pb_choice *choice = user;
    return is_of_this(choice, job) && pb_live_is_growing(choice->config, job) &&
           pb_live_may_try(&choice->live, job->id) && may_start_any(user, job);
}

bool pb_choice_may_start_short(void *user, const struct pb_job *job)
{
    return !job->is_long && pb_choice_may_start(user, job);
}

int64_t pb_choice_probe_rank(void *user, const struct pb_job *job)
{
    const struct pb_choice *choice = user;
    return pb_hold_rank(&choice->hold, job->seq);
}

int64_t pb_choice_priority_rank(void *user, const struct pb_job *job)
{
    const struct pb_choice *choice = user;
    return 2 * pb_job_start_rank(choice->config, job) + !is_own_input(choice, job);
}

void pb_choice_match(void *user, struct pb_taken *taken)
{
    const struct pb_choice *choice = user;
    pb_job_start_match(choice->config, taken);
}

/* --- make and free --------------------------------------------------------------------------*/

/* Copies the nodes that can take jobs, as the last report of this node has read them. Returns false
 * if out of memory. */
static bool see_peers(const struct pb_runner_env *env, struct pb_choice *choice)
{
    const size_t n = env->nodes != NULL ? env->nodes->n : 0;
    choice->peers = n > 0 ? calloc(n, sizeof *choice->peers) : NULL;
    for (size_t i = 0; choice->peers != NULL && i < n; i++) {
        const struct pb_node *node = &env->nodes->at[i];
        if (!node->is_alive || node->drains || strcmp(node->name, env->node) == 0)
            continue;
        struct pb_choice_peer *peer = &choice->peers[choice->n_peers++];
        (void)snprintf(peer->name, sizeof peer->name, "%s", node->name);
        peer->has_gpu = node->has_gpu != 0;
        peer->memory = node->memory > 0 ? node->memory : INT64_MAX;
        choice->others_have_gpu = choice->others_have_gpu || peer->has_gpu;
        choice->others_memory =
            peer->memory > choice->others_memory ? peer->memory : choice->others_memory;
    }
    return n == 0 || choice->peers != NULL;
}

/* Copies directories of inputs. Returns false if out of memory. */
static bool list_directories(const struct pb_choice_source *source, struct pb_choice *choice)
{
    const struct pb_runner_env *env = source->env;
    const struct pb_dirs *dirs = source->dirs;
    const char *own[] = {dirs->work, dirs->archive, dirs->quarantine};
    size_t n_own = 0, n_fetched = 0, n_others = 0;
    FILE *to_own = open_memstream(&choice->own, &n_own),
         *to_fetched = open_memstream(&choice->fetched, &n_fetched),
         *to_others = open_memstream(&choice->others, &n_others);
    for (size_t i = 0; to_own != NULL && i < sizeof own / sizeof own[0]; i++)
        (void)fwrite(own[i], strlen(own[i]) + 1, 1, to_own);
    for (size_t i = 0; to_fetched != NULL && env->nodes != NULL && i < env->nodes->n; i++) {
        const struct pb_node *node = &env->nodes->at[i];
        const char *texts[] = {node->work, node->archive, node->quarantine};
        for (int k = 0; k < 3 && node->is_alive && node->address[0] != '\0' &&
                        strcmp(node->name, env->node) != 0;
             k++)
            (void)fwrite(texts[k], strlen(texts[k]) + 1, 1, to_fetched);
        for (int k = 0; k < 3 && to_others != NULL && strcmp(node->name, env->node) != 0; k++)
            if (texts[k][0] != '\0')
                (void)fwrite(texts[k], strlen(texts[k]) + 1, 1, to_others);
    }
    choice->knows_nodes = env->nodes != NULL && env->nodes->n > 0;
    const bool good = to_own != NULL && to_fetched != NULL && to_others != NULL;
    if (to_own != NULL)
        (void)fclose(to_own);
    if (to_fetched != NULL)
        (void)fclose(to_fetched);
    if (to_others != NULL)
        (void)fclose(to_others);
    return good && choice->own != NULL && choice->fetched != NULL && choice->others != NULL;
}

void pb_choice_free(struct pb_choice *choice)
{
    if (choice == NULL)
        return;
    pb_config_destroy(choice->config);
    free(choice->own);
    free(choice->fetched);
    free(choice->others);
    free(choice->peers);
    free(choice->waits);
    free(choice);
}

struct pb_choice *pb_choice_make(const struct pb_choice_source *source, void *user)
{
    const size_t n = (size_t)source->pending->n;
    const struct pb_faults *faults = source->faults;
    struct pb_choice *choice = calloc(1, sizeof *choice + n * sizeof choice->blocks[0]);
    if (choice == NULL)
        return NULL;
    choice->user = user;
    choice->node = source->env->node;
    choice->root = source->env->root;
    choice->shun_ms = source->shun_ms;
    choice->n_waits = faults->waits.n;
    choice->waits = pb_config_waits_copy(&faults->waits);
    if ((choice->waits == NULL && choice->n_waits > 0) || !see_peers(source->env, choice) ||
        (source->env->config->service.has_fetch && !list_directories(source, choice))) {
        pb_choice_free(choice);
        return NULL;
    }
    choice->may_fetch = source->may_fetch;
    choice->config = pb_config_hold(source->env->config);
    choice->hold = faults->hold;
    choice->live = *source->live;
    choice->mono_ms = pb_clock_mono_ms();
    choice->wall_ms = pb_clock_wall_ms();
    choice->has_gpu = strncmp(source->device, "cuda", 4) == 0;
    (void)snprintf(choice->products, sizeof choice->products, "%s", source->dirs->products);
    choice->n_blocks = n;
    pb_pending_list_blocks(source->pending, choice->blocks);
    return choice;
}
