/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_DESCRIBE_H
#define PB_WORKER_DESCRIBE_H
/* The worker's command "describe": reads the metadata of one loose file for input.by. The worker
 * opens the file, its metadata and its sidecars; a confined child of its own reads them. One
 * thread. */
#include "service/worker/worker_child.h"
#include "service/worker/worker_parts.h"

/* Answers the command, with worker->config read before. Waits for the child; if the child dies,
 * ends in the same way. */
void pb_worker_describe(struct worker *worker, const struct pb_json_value *command);
/* Answers a command whose configuration cannot be read. */
void pb_worker_describe_fail(struct worker *worker, const struct pb_err *err);
#endif
