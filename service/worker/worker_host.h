/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_HOST_H
#define PB_WORKER_HOST_H
/* The worker of the node that has the input, when another node computes the run (worker_away.h has
 * the lines between both). It opens input and directory as for a run of its own, and sends the
 * files; the other node's worker is in the place of the child, and its lines are checked like those
 * of a child. Products arrive before "done", and are written into the directory that is published.
 * One thread. */
#include "service/worker/transfer.h"
#include "service/worker/worker_publish.h"

struct pb_host_file {
    char name[256];
    char sum[PB_CHECKSUM_TEXT_BYTES];
};

struct pb_worker_host {
    int fd; /* connection to the other node; -1 = this node computes the run. Owned */
    struct pb_host_file *files; /* products that arrived */
    size_t n_files;
    struct pb_transfer_wait wait; /* called when the connection moves */
    /* moved: bytes and signs of life that passed the connection. file: bytes of the present file.
     * checked: checked bytes of the input. */
    uint64_t moved, file, checked;
};

/* Answers the first line of the other worker: sends the files of the open job if it requests them,
 * then the place. reader: of fd. -EPIPE or another negative errno and *err. */
int pb_worker_host_send(struct pb_worker_host *host, const struct pb_worker_job *job,
                        struct pb_line_reader *reader, struct pb_err *err);
/* Returns true if the line is a sign of life of the other node, and counts it. */
bool pb_worker_host_is_alive(struct pb_worker_host *host, const char *line, size_t bytes);
/* Receives the product that the line describes. Returns 1: the line describes none; 0; negative and
 * *err. */
int pb_worker_host_receive(struct pb_worker_host *host, const struct pb_worker_job *job,
                           const char *line, size_t bytes, struct pb_line_reader *reader,
                           struct pb_err *err);
/* Compares the announced products ("products" of "done") with those that arrived. */
int pb_worker_host_check(const struct pb_worker_host *host, const struct pb_json_value *products,
                         struct pb_err *err);
/* Closes the connection. Does nothing for a run of this node. */
void pb_worker_host_close(struct pb_worker_host *host);
#endif
