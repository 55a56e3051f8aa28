/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_INPUTS_H
#define PB_WORKER_INPUTS_H
/* Files that a job reads, with their checksums. The worker, which computes the checksums, sends
 * them to its child, which writes them into the STAC item:
 *
 * {"cmd":"inputs","folder","files":[{"role","name","bytes","checksum"}]}
 *
 * Thread: any. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/raster/input_files.h"

/* owned by the caller */
struct pb_json *pb_worker_inputs_command(const struct pb_input_files *inputs);
/* Returns false if it is not such a command; *out is not set then. */
bool pb_worker_inputs_read(const struct pb_json_value *command, struct pb_input_files *out);
#endif
