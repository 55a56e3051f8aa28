/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NODES_H
#define PB_NODES_H
/* Nodes: the services that share one job store. Each has a row with its present session and the
 * time at which it reported last, on the server's clock. A session whose lease is over is ended by
 * any node, and its running jobs wait again (pb_store_reap in store.h). A store in a file has no
 * nodes; the calls then do nothing. Thread: pool. */
#include "service/jobs/request_kind.h"
#include "service/jobs/store.h"

/* A node as the others see it. The strings are owned by its list. */
struct pb_node {
    char *name;
    /* machine and state directory: another service with the same name has another place */
    char *place;
    char *work, *archive, *quarantine; /* real paths */
    char *products;
    /* host and port of its pushbroom-fetch (service.fetch); "": others see its directories */
    char *address;
    int64_t lease_ms;
    bool is_alive;      /* its session is not over */
    bool drains;        /* it takes no job and no file, because a client requested that */
    int has_gpu;        /* 1: it uses a GPU; 0; negative: unknown */
    int64_t memory;     /* its compute.memory; 0 = unknown */
    int64_t started_ms; /* wall clock of the server: begin of the last session */
    int64_t silent_ms;  /* time since its last report */
    int64_t running;    /* number of its jobs that run now */
};

struct pb_nodes {
    struct pb_node *at; /* sorted by name */
    size_t n;
};

/* A request of a client about a job that another node has. */
struct pb_node_request {
    enum pb_request_kind kind;
    char job[PB_JOB_ID_BYTES];
    char identity[PB_JOB_IDENTITY_BYTES];
};
#define PB_NODE_REQUESTS_MAX 64

/* A connection over which the server notifies this node of changes of others: a hint that it is
 * worth to look now. It may be lost; look from time to time anyway. */
struct pb_nodes_listener;

/* Changes since the last look. */
struct pb_nodes_news {
    struct pb_job *jobs; /* jobs that other nodes have, by their last events */
    size_t n;
    bool has_requests; /* requests wait for this node */
    bool has_more;     /* the next look has the rest */
};

bool pb_store_is_shared(const struct pb_job_store *store);
/* Name of this node; "" for a store in a file. Constant after create. */
const char *pb_store_node(const struct pb_job_store *store);

/* Begins a session of this node. Its earlier session is over: the jobs that ran in it wait again
 * after the next pb_store_reap. service.state: another service has the name of this node. node is
 * borrowed for the call. */
int pb_nodes_join(struct pb_job_store *store, const struct pb_node *node, struct pb_err *err);
/* Id of the directory of products that the nodes share (pipeline/publish/publish_root.h), which the
 * database has made; "" for a store in a file. Constant after the first join. */
const char *pb_nodes_root(const struct pb_job_store *store);
/* Makes the token in this directory if no node has made one; no other node makes one at the same
 * time. Afterwards it does nothing. output.root: the directory has a token of another id. */
int pb_nodes_make_root(struct pb_job_store *store, const char *products, struct pb_err *err);
/* Ends the session, in which no job runs any more. */
void pb_nodes_leave(struct pb_job_store *store);
/* Renews the lease, and stores drains, has_gpu and memory of this node. -ESTALE (no *err): the
 * session is over; its jobs belong to other nodes, and a new session must begin. */
int pb_nodes_alive(struct pb_job_store *store, const struct pb_node *node, struct pb_err *err);
/* Reads the changes of other nodes: one query, if nothing changed. Returns 1 if jobs were changed
 * since the last call, else 0, or a negative errno; *out needs fini. Afterwards pb_store_counts and
 * pb_store_changes have the present values. The first call has no jobs. all: false: *out has only
 * jobs of sets, because with many nodes the jobs of all cost the server most of its time; the next
 * call with true has the jobs of the last call as well. */
int pb_nodes_look(struct pb_job_store *store, bool all, struct pb_err *err,
                  struct pb_nodes_news *out);
void pb_nodes_news_fini(struct pb_nodes_news *news);
/* Number of nodes that report, at the last pb_nodes_list; 0: before the first. Thread: any. */
size_t pb_nodes_reporting(const struct pb_job_store *store);
#define PB_NODES_FEW 4 /* nodes that need not save messages and locks of the server */
/* Least time between two looks, so that a stream of changes costs the server a bounded number of
 * looks of all nodes. Thread: any. */
int64_t pb_nodes_pause_ms(const struct pb_job_store *store);
/* Connects a listener. Only for a store that several nodes share. */
int pb_nodes_listen(const struct pb_job_store *store, struct pb_err *err,
                    struct pb_nodes_listener **out);
/* The next three do not wait. Thread: any, one at a time. */
int pb_nodes_listener_fd(const struct pb_nodes_listener *listener);
/* Call when the descriptor is readable: 1 if another node made changes, 0, or negative: the
 * connection is lost; stop to poll the descriptor, and close the listener. */
int pb_nodes_listener_read(struct pb_nodes_listener *listener);
void pb_nodes_listener_close(struct pb_nodes_listener *listener); /* NULL is allowed */
/* Lists all nodes that ever had a session; the caller must fini *out. */
int pb_nodes_list(struct pb_job_store *store, struct pb_err *err, struct pb_nodes *out);
void pb_nodes_fini(struct pb_nodes *nodes);
/* Finds the node whose work, archive or quarantine has that path; NULL if absent. */
const struct pb_node *pb_nodes_home(const struct pb_nodes *nodes, const char *path);

/* The same as pb_store_permit (store.h) for a run of another node. */
int pb_nodes_permit(struct pb_job_store *store, const char *id, int64_t epoch, const char *node,
                    struct pb_err *err);

/* An inbox that one node at a time watches: its owner while that one reports and does not drain,
 * otherwise another. */
struct pb_node_inbox {
    const char *path;  /* real path */
    const char *owner; /* name of the node; NULL: this node */
    bool is_busy;      /* this node still takes files from it, and keeps it */
    /* ---- results ---- */
    bool is_held;                   /* this session watches it */
    bool is_wanted;                 /* this session watches it, and has to give it back */
    char holder[PB_JOB_NODE_BYTES]; /* node that watched it before the call; "" if absent */
};
/* Takes the inbox if no session watches it; gives it back if its owner watches it again, or this
 * node drains. A session that is over watches no inbox. Without nodes the inbox is held. */
int pb_nodes_hold(struct pb_job_store *store, struct pb_node_inbox *inbox, struct pb_err *err);

/* Stores a request for the node, which takes it with its next report. job.state: it does not
 * report. */
int pb_nodes_ask(struct pb_job_store *store, const char *node,
                 const struct pb_node_request *request, struct pb_err *err);
/* Takes the requests for this node, and cancels that are for a node whose session is over and whose
 * jobs wait again: their number, at most PB_NODE_REQUESTS_MAX. */
int pb_nodes_requests(struct pb_job_store *store, struct pb_err *err,
                      struct pb_node_request out[PB_NODE_REQUESTS_MAX]);
#endif
