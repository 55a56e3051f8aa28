/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFINE_H
#define PB_CONFINE_H
/* Takes from the calling process, for ever, what computing a job does not need: a decoder that a
 * hostile file takes over must not reach other files, other processes, the network or a shell.
 * Three layers, each on its own: a user that owns nothing (worker_user.h, where the service may
 * change users), Landlock (paths, TCP, signals and abstract sockets outside), seccomp (system
 * calls); and limits of resources. Called in a process with one thread, before anything foreign is
 * read; threads made later inherit it. */
#include "config/base/err.h"
#include "service/confine/worker_user.h"

#include <stdbool.h>
#include <stdint.h>

#define PB_CONFINE_TEXT_BYTES 400

struct pb_confine {
    const char *directory;  /* the only place to write in: plain files, no links, no directories */
    uint64_t address_bytes; /* RLIMIT_AS; 0 = none */
    const struct pb_worker_user *user; /* to become; NULL = the service's stays */
};

/* 0, or a negative errno with *err; then the process must end. A kernel without Landlock or seccomp
 * is no failure: text names the layers in force. */
int pb_confine_apply(const struct pb_confine *confine, struct pb_err *err,
                     char text[PB_CONFINE_TEXT_BYTES]);
/* Other processes of the same user, a child that was taken over among them, neither attach to the
 * calling process nor read its memory, and it leaves no image of it (no core dump). */
void pb_confine_hide(void);
/* Writes the layers that apply would put in force on this kernel, in a line; changes nothing. */
void pb_confine_describe(const struct pb_confine *confine, char text[PB_CONFINE_TEXT_BYTES]);
/* The same of what the children of workers get under that configuration. */
struct pb_config;
void pb_confine_config(const struct pb_config *config, char text[PB_CONFINE_TEXT_BYTES]);

/* --- the parts --- */
/* Version of Landlock, or a negative errno: -ENOSYS if it is absent or a filter of system calls
 * hides it, -EPERM if a filter forbids it, -EOPNOTSUPP if it is off since the boot. */
int pb_landlock_abi(void);
int pb_landlock_apply(const struct pb_confine *confine, struct pb_err *err);
/* Compiles the filter in a process that will fork confined ones, which then need not. */
void pb_seccomp_prepare(void);
/* 1 = in force, 0 = the kernel has no seccomp filters. Wants no_new_privs. */
int pb_seccomp_apply(struct pb_err *err);
/* The same for a process that looks at a file with the rights of a client: it may change its user,
 * open files to read them and answer. apply allocates nothing, and takes what prepare has compiled;
 * -ENOSYS without that, where the kernel has no filters. */
void pb_seccomp_prepare_look(void);
int pb_seccomp_apply_look(void);
/* Installs the handler that answers stat and access of this process, which the filter of
 * pb_seccomp_apply refuses. 0 or a negative errno. */
int pb_confine_paths_answer(void);
#endif
