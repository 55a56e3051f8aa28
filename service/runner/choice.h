/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHOICE_H
#define PB_CHOICE_H
/* Decides which waiting jobs this node may start. The queue calls it for each job on a thread of
 * the pool while the loop continues; therefore a choice is a copy of the state that it depends on.
 * A job is not started during the pause after its own faults, during another run of its scene, on a
 * node without its pipeline, its input, or the GPU and memory that it needs, nor, for a while, on a
 * node where it failed. Thread: the loop makes and frees a choice, and reads its results after the
 * take; the pool uses it in between. */
#include "service/runner/faults.h"
#include "service/runner/job_queue.h"
#include "service/runner/live.h"
#include "service/runner/pending.h"
#include "service/runner/runner_env.h"

struct pb_dirs;

/* Another node that takes jobs. Values that an older version does not report count as enough. */
struct pb_choice_peer {
    char name[PB_JOB_NODE_BYTES];
    bool has_gpu;
    int64_t memory;
};

/* Copy of the state on the loop that the choice depends on. */
struct pb_choice {
    void *user;              /* caller's, for its handlers */
    const char *node, *root; /* see struct pb_runner_env */
    int64_t shun_ms;
    struct pb_config *config; /* held */
    struct pb_hold hold;
    struct pb_live live;
    int64_t *waits; /* numbers of jobs that wait for another configuration, ascending */
    size_t n_waits;
    int64_t mono_ms, wall_ms;
    bool is_live; /* the take is for a scene whose lines arrive; only the loop reads this */
    struct pb_choice_peer *peers; /* other nodes that report and do not drain */
    size_t n_peers;
    char products[PB_FILES_PATH_BYTES];
    struct pb_err unrooted; /* set if the directory of products is not that of the nodes */
    /* Lists of directories of inputs; each text ends with NUL, an empty text ends the list. own: of
     * this node. fetched: of other nodes that report and send their files. NULL: the nodes see each
     * other's directories. */
    char *own, *fetched;
    char *others;     /* the same for all other nodes, also for those that do not report */
    bool knows_nodes; /* the nodes of the store have been read */
    bool may_fetch;   /* jobs of other nodes may start; else only has_foreign is set */
    bool has_foreign; /* result: a job of another node waits, and may start here */
    char left[512];   /* why a job is left to nodes that have its pipeline; "" = none */
    bool has_gpu, others_have_gpu;
    int64_t others_memory; /* largest compute.memory of the other nodes that take jobs */
    enum pb_code unmet;    /* code and reason if no node can run a job; PB_OK: no such job */
    char unmet_why[512];
    size_t n_blocks;
    struct pb_pending_block blocks[];
};

/* State to copy; all borrowed. */
struct pb_choice_source {
    const struct pb_runner_env *env;
    const struct pb_dirs *dirs;
    const struct pb_faults *faults;
    const struct pb_pending_list *pending;
    const struct pb_live *live;
    const char *device; /* name that the workers report */
    bool may_fetch;     /* see struct pb_choice */
    int64_t shun_ms;    /* a job that failed here is left to other nodes for this long */
};

/* Copies the state. NULL: out of memory. Thread: loop. */
struct pb_choice *pb_choice_make(const struct pb_choice_source *source, void *user);
void pb_choice_free(struct pb_choice *choice); /* NULL is allowed */

/* Handlers of struct pb_job_ask; user: the choice. Thread: pool. */
/* Returns false if no product may be published now. A worker checks the directory again through the
 * descriptor that it publishes with. */
bool pb_choice_has_products(void *user);
/* Returns false for a job whose lines still arrive, because it would occupy an ordinary slot. */
bool pb_choice_may_start(void *user, const struct pb_job *job);
/* Returns true only for jobs of scenes whose lines arrive. */
bool pb_choice_may_start_live(void *user, const struct pb_job *job);
/* Returns true only for short jobs, which may overtake long ones (express.h). */
bool pb_choice_may_start_short(void *user, const struct pb_job *job);
/* Rank of a probe while the queue is held (hold.h). */
int64_t pb_choice_probe_rank(void *user, const struct pb_job *job);
int64_t pb_choice_priority_rank(void *user, const struct pb_job *job);
void pb_choice_match(void *user, struct pb_taken *taken);
#endif
