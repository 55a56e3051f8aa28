/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GROUP_ADVICE_H
#define PB_GROUP_ADVICE_H
/* Error messages for a user who lacks the group of a file of the service. Reads the databases of
 * users and groups. Thread: one. */
#include "config/base/err.h"

#include <sys/stat.h>

/* Fails with service.group, for a file that this process may not use: the message names the group
 * to join, or reports that the login is older than the membership. *st: attributes of the file.
 * Returns the code's negative errno. */
int pb_group_advice(struct pb_err *err, const char *path, const struct stat *st);
#endif
