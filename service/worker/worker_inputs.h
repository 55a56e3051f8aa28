/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_INPUTS_H
#define PB_WORKER_INPUTS_H
/* Files that a job reads, with their checksums. The worker, which computes the checksums, sends
 * them to its child, which writes them into the STAC item:
 *
 * {"cmd":"inputs","manifest"}: pipeline/scene/manifest.h
 *
 * Thread: any. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/scene/manifest.h"

/* owned by the caller */
struct pb_json *pb_worker_inputs_command(const struct pb_scene_manifest *inputs);
/* Returns true and *out, the caller's; false if it is not such a command, or out of memory. */
bool pb_worker_inputs_read(const struct pb_json_value *command, struct pb_scene_manifest *out);
#endif
