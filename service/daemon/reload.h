/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RELOAD_H
#define PB_RELOAD_H
/* Applies a reload of the config while jobs run: all keys can change except the paths that files
 * of unfinished jobs depend on. Thread: loop. */
#include "service/inbox/dirs.h"

struct pb_config;

/* Logs each path that differs and needs a restart; uses a new products directory. Fails, with
 * *dirs unchanged, if that cannot be made. */
int pb_reload_dirs(const struct pb_config *old, const struct pb_config *new_config,
                   struct pb_dirs *dirs, struct pb_err *err);
/* Logs the warnings of a configuration that was loaded. */
/* Sets the digests of its pipelines. */
void pb_reload_digests(struct pb_config *config);
void pb_reload_warn(struct pb_config *config);
#endif
