/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFINE_H
#define PB_CONFINE_H
/* Removes from the calling process, permanently, all rights that computing a job does not need: a
 * decoder that a hostile file takes over must not reach other files, other processes, the network
 * or a shell. Three independent layers: a user that owns nothing (worker_user.h, where the service
 * may change users), Landlock (paths, TCP, signals and abstract sockets outside), seccomp (system
 * calls); and limits of resources. Called in a process with one thread, before any foreign data is
 * read; threads made later inherit it. */
#include "config/base/err.h"
#include "service/confine/worker_user.h"

#include <stdbool.h>
#include <stdint.h>

#define PB_CONFINE_TEXT_BYTES 400

struct pb_confine {
    /* the only directory to write to: plain files, no links, no directories */
    const char *directory;
    uint64_t address_bytes; /* RLIMIT_AS; 0 = no limit */
    /* user of the process from now on; NULL = the service's user */
    const struct pb_worker_user *user;
};

/* Returns 0, or a negative errno with *err; then the process must end. A kernel without Landlock
 * or seccomp is not a failure: text names the active layers. */
int pb_confine_apply(const struct pb_confine *confine, struct pb_err *err,
                     char text[PB_CONFINE_TEXT_BYTES]);
/* Prevents other processes of the same user, including a hijacked child, from attaching to the
 * calling process and reading its memory, and prevents a core dump. */
void pb_confine_hide(void);
/* Describes the layers that apply would activate on this kernel, in one line; changes nothing. */
void pb_confine_describe(const struct pb_confine *confine, char text[PB_CONFINE_TEXT_BYTES]);
/* Describes the layers of the children of workers under that configuration. */
struct pb_config;
void pb_confine_config(const struct pb_config *config, char text[PB_CONFINE_TEXT_BYTES]);

/* --- the parts --- */
/* Version of Landlock, or a negative errno: -ENOSYS if it is absent or a filter of system calls
 * hides it, -EPERM if a filter forbids it, -EOPNOTSUPP if it is off since the boot. */
int pb_landlock_abi(void);
/* Why pb_landlock_abi returned a number below 1. Static. */
const char *pb_landlock_reason(int abi);
int pb_landlock_apply(const struct pb_confine *confine, struct pb_err *err);
/* Restricts a program that serves files, not one that computes: the calling thread, and those that
 * it starts later, may from now on open files below n directories for reading only, and neither
 * bind TCP ports nor connect by TCP. Paths that are NULL or absent are skipped. Returns 1 = active,
 * 0 = the kernel has no Landlock, negative with *err. */
struct pb_landlock_directory {
    const char *path;
    bool removes; /* files in it may be removed, not read */
};
int pb_landlock_readers(const struct pb_landlock_directory *directories, size_t n,
                        struct pb_err *err);
/* Compiles the filter in a process that will fork confined ones, so that these need not compile
 * it. */
void pb_seccomp_prepare(void);
/* Returns 1 = active, 0 = the kernel has no seccomp filters. Requires no_new_privs. */
int pb_seccomp_apply(struct pb_err *err);
/* Do the same for a process that checks a file with the rights of a client: it may change its
 * user, open files for reading and answer. apply allocates nothing, and uses the filter that
 * prepare has compiled; -ENOSYS without that, or if the kernel has no filters. */
void pb_seccomp_prepare_look(void);
int pb_seccomp_apply_look(void);
/* Installs the handler that answers stat and access of this process, which the filter of
 * pb_seccomp_apply refuses. Returns 0 or a negative errno. */
int pb_confine_paths_answer(void);
#endif
