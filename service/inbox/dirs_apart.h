/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DIRS_APART_H
#define PB_DIRS_APART_H
/* Checks that no directory of the service equals, contains or is inside another; otherwise
 * products would be taken as scenes, or a directory would belong to two owners. The one exception
 * is the default archive, work/done. Thread: any. */
#include "config/base/err.h"
#include "service/inbox/dirs.h"

/* Paths are as realpath returns them; parts that do not exist yet may follow. socket: as
 * configured, NULL if absent; its directory may contain the others, but must not be inside them.
 * Two paths to one place are found as well: not only the paths but also their places in the file
 * system according to /proc/self/mountinfo are compared, which detects bind mounts. */
int pb_dirs_check_apart(const struct pb_dirs *dirs, const char *socket, struct pb_err *err);
#endif
