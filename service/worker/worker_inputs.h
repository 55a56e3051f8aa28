/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_INPUTS_H
#define PB_WORKER_INPUTS_H
/* The files that a job reads, with their checksums, from the worker that computes these to its
 * child that writes them into the STAC item:
 *   {"cmd":"inputs","folder","files":[{"role","name","bytes","checksum"}]}
 * Thread: any. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/raster/input_files.h"

struct pb_json *pb_worker_inputs_command(const struct pb_input_files *inputs); /* the caller's */
/* False: no such command; *out is not set then. */
bool pb_worker_inputs_read(const struct pb_json_value *command, struct pb_input_files *out);
#endif
