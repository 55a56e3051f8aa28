/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXEC_REMOTE_H
#define PB_EXEC_REMOTE_H
#include "pipeline/run/base/remote.h"
#include "pipeline/run/stream/stream.h"

/* The executor of a pass whose tiles another process computes: its thread waits for the end of the
 * session, which stream->remote and stream->session are. */
extern const struct pb_exec_type pb_exec_remote;
#endif
