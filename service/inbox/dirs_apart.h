/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DIRS_APART_H
#define PB_DIRS_APART_H
/* No directory of the service is, contains or lies inside another: products would come back as
 * scenes, or a scene's directory would be another's. The one exception is the archive's default
 * place, work/done. */
#include "config/base/err.h"
#include "service/inbox/dirs.h"

/* Paths as realpath gives them; parts that do not exist yet may follow. socket: as configured, NULL
 * = none; its directory may hold the others, but not lie in them. Two ways to one place count as
 * well: besides their paths, what /proc/self/mountinfo says of where they lie on their file system
 * is compared, which sees through bind mounts. */
int pb_dirs_check_apart(const struct pb_dirs *dirs, const char *socket, struct pb_err *err);
#endif
