/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BATCH_STREAM_H
#define PB_BATCH_STREAM_H
/* A rival of the executors: streams that batch. All tiles that are ready and adjacent, up to
 * BATCH_BYTES of input, make one copy in, their kernels and one copy back on the next stream; while
 * all streams are busy, tiles gather. plan->workers streams; pinned slots only. CUDA builds only.
 */
#include "pipeline/run/stream/stream.h"

extern const struct pb_exec_type batch_stream;
#endif
