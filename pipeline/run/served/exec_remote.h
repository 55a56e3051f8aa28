/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXEC_REMOTE_H
#define PB_EXEC_REMOTE_H
#include "pipeline/run/base/remote.h"
#include "pipeline/run/stream/stream.h"

/* Executor of a pass whose tiles another process computes: its thread waits for the end of
 * stream->session of stream->remote. */
extern const struct pb_exec_type pb_exec_remote;
#endif
