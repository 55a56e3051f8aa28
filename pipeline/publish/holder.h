/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HOLDER_H
#define PB_HOLDER_H
/* Process that holds a temporary directory or a lock in a directory of products, in the form
 * used in names there: <node>.<pid>-<start>-<n>. Machines that share the directory have
 * different nodes, and a process removes only entries of its own machine: the locks of a network
 * file system may be local to each machine, therefore a free lock proves nothing about processes
 * elsewhere. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

#define PB_HOLDER_NODE_BYTES 13
#define PB_HOLDER_BYTES      80

struct pb_holder {
    char node[PB_HOLDER_NODE_BYTES]; /* 12 hex digits, of /etc/machine-id and the host name */
    long pid;
    uint64_t start; /* start time of the process in clock ticks since boot; 0 = unknown */
    unsigned n;     /* serial number in the process */
};

/* Writes the node of this machine; "000000000000" if out of memory. */
void pb_holder_node(char out[PB_HOLDER_NODE_BYTES]);
/* Describes this process, with the next serial number. */
void pb_holder_make(struct pb_holder *out);
void pb_holder_print(const struct pb_holder *holder, char out[PB_HOLDER_BYTES]);
/* Parses a holder's text; returns false for any other text, *out is untouched then. */
bool pb_holder_parse(const char *text, struct pb_holder *out);
/* Reads the start time of a process. Returns false if no process of that number is visible, or
 * if it has ended and its parent has not waited for it yet. */
bool pb_holder_start(long pid, uint64_t *out_start);
/* Returns true if the holder is of this node and no process with its number and start time runs.
 * The calling process counts as dead too: only its locks show if it still uses something. */
bool pb_holder_is_dead_here(const struct pb_holder *holder);
bool pb_holder_is_here(const struct pb_holder *holder); /* true if it is of this node */
/* Returns true if both are of one process, whatever their serial numbers. */
bool pb_holder_is_same_process(const struct pb_holder *a, const struct pb_holder *b);

/* Locks an open file until its open file description is closed. Network file systems that
 * support locks forward it to the server. Returns 0; -EAGAIN: another process has the lock;
 * another negative errno: the file system does not support it. */
int pb_holder_lock_file(int fd);
#endif
