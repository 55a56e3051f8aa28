/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHOICE_H
#define PB_CHOICE_H
/* Decides which waiting jobs this node may start. The queue calls it for each job, on a thread of
 * the pool, while the loop continues: it has a copy of the state that it depends on. A job has to
 * wait for its own faults, for another run of its scene, for nodes that have its pipeline, a GPU,
 * memory or its input, and for nodes on which it has not failed. Thread: the loop makes and frees
 * it, and reads its results after the take; the pool uses it in between. */
#include "service/runner/faults.h"
#include "service/runner/job_queue.h"
#include "service/runner/live.h"
#include "service/runner/pending.h"
#include "service/runner/runner_env.h"

struct pb_dirs;

/* Another node that takes jobs. Unknown values of a node of an older version count as enough. */
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
    bool is_live; /* for a job of a scene whose lines arrive; read on the loop alone */
    struct pb_choice_peer *peers; /* other nodes that report and do not drain */
    size_t n_peers;
    char products[PB_FILES_PATH_BYTES];
    struct pb_err unrooted; /* the directory of products is not that of the nodes */
    /* Directories of inputs, each with its NUL, up to an empty one: of this node, and of the others
     * that report and send their files. NULL: the nodes see each other's directories. */
    char *own, *fetched;
    char *others;     /* the same of all other nodes, in reports or not */
    bool knows_nodes; /* the nodes of the store have been read */
    bool may_fetch;   /* jobs of other nodes may start; else they are only noted */
    bool has_foreign; /* result: a job of another node waits, and may start here */
    char left[512];   /* why a job is left to nodes that have its pipeline; "" = none */
    bool has_gpu, others_have_gpu;
    int64_t others_memory; /* the most compute.memory of other nodes that take jobs */
    enum pb_code unmet;    /* code and reason if no node can run a job; PB_OK: none is known */
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
/* Returns false if products are not to be published now. A worker checks the directory again
 * through the descriptor that it publishes with. */
bool pb_choice_has_products(void *user);
/* A job that would wait for lines takes no place of others. */
bool pb_choice_may_start(void *user, const struct pb_job *job);
/* For jobs of scenes whose lines arrive. */
bool pb_choice_may_start_live(void *user, const struct pb_job *job);
/* For jobs that overtake long ones. */
bool pb_choice_may_start_short(void *user, const struct pb_job *job);
/* While the queue is held: the order of probes. */
int64_t pb_choice_probe_rank(void *user, const struct pb_job *job);
int64_t pb_choice_priority_rank(void *user, const struct pb_job *job);
void pb_choice_match(void *user, struct pb_taken *taken);
#endif
