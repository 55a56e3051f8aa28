/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFINE_H
#define PB_CONFINE_H
/* Takes from the calling process, for ever, what computing a job does not need: a decoder that a
 * hostile file takes over must not reach other files, other processes, the network or a shell.
 * Two layers, each on its own: Landlock (paths, TCP, signals and abstract sockets outside), seccomp
 * (system calls); and limits of resources. The user stays the service's. Called in a process with
 * one thread, before anything foreign is read; threads made later inherit it. */
#include "config/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PB_CONFINE_TEXT_BYTES 256

struct pb_confine {
    const char *directory;  /* the only place to write in: plain files, no links, no directories */
    const char *own_tree;   /* GPU: a place where directories may be made and renamed; else NULL */
    bool gpu;               /* what the CUDA driver needs stays open */
    uint64_t address_bytes; /* RLIMIT_AS; 0 = none */
};

/* 0, or a negative errno with *err; then the process must not go on. A kernel that lacks Landlock
 * or seccomp is no failure: text says what is in force. */
int pb_confine_apply(const struct pb_confine *confine, struct pb_err *err,
                     char text[PB_CONFINE_TEXT_BYTES]);
/* What apply would put in force on this kernel, in a line; changes nothing. */
void pb_confine_describe(const struct pb_confine *confine, char text[PB_CONFINE_TEXT_BYTES]);

/* --- the parts --- */
/* Version of Landlock in this kernel, 0 = none. */
int pb_landlock_abi(void);
int pb_landlock_apply(const struct pb_confine *confine, struct pb_err *err);
/* 1 = in force, 0 = the kernel has no seccomp filters. Wants no_new_privs. */
int pb_seccomp_apply(const struct pb_confine *confine, struct pb_err *err);
#endif
