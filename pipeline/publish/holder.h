/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HOLDER_H
#define PB_HOLDER_H
/* The process that holds a temporary directory or a lock in a directory of products, as names there
 * spell it: <node>.<pid>-<start>-<n>. Machines that share the directory have different nodes, and a
 * process removes only what its own machine left: the locks of a network file system may be local
 * to each machine, so a free lock says nothing about processes elsewhere. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

#define PB_HOLDER_NODE_BYTES 13
#define PB_HOLDER_BYTES      80

struct pb_holder {
    char node[PB_HOLDER_NODE_BYTES]; /* 12 hex digits, of /etc/machine-id and the host name */
    long pid;
    uint64_t start; /* when the process started, in clock ticks since boot; 0 = not known */
    unsigned n;     /* serial number in the process */
};

/* Writes the node of this machine; "000000000000" if there is no memory. */
void pb_holder_node(char out[PB_HOLDER_NODE_BYTES]);
/* Describes this process, with the next serial number. */
void pb_holder_make(struct pb_holder *out);
void pb_holder_print(const struct pb_holder *holder, char out[PB_HOLDER_BYTES]);
/* Whether the text is exactly a holder's. *out is untouched if not. */
bool pb_holder_parse(const char *text, struct pb_holder *out);
/* Reads when a process started. Returns false if no process of that number is visible, or if it has
 * ended and its parent did not wait for it yet. */
bool pb_holder_start(long pid, uint64_t *out_start);
/* Returns true if the holder is of this node and no process with its number and start time runs.
 * The calling process counts as dead as well: only its locks say whether it still uses something.
 */
bool pb_holder_is_dead_here(const struct pb_holder *holder);
bool pb_holder_is_here(const struct pb_holder *holder); /* true if it is of this node */

/* Locks an open file until its open file description is closed. Network file systems that support
 * locks send it to the server. 0; -EAGAIN: another process has the lock; another negative errno:
 * the file system cannot tell. */
int pb_holder_lock_file(int fd);
#endif
