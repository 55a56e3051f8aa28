/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_WORK_H
#define PB_EMULATE_WORK_H
/* A worker of kernels/work as host code (emulator.h). Its chain runs on the CPU. Thread: one at a
 * time. */
#include "kernels/work/work.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes part of a tile on the CPU; arguments as of pb_chain_block_run. */
typedef void emulate_part(const struct pb_chain *chain, const struct pb_tile_in *in,
                          const struct pb_rect *part, float *out, size_t out_px);

/* One worker, until it leaves. order: in which its threads run between two barriers. */
void emulate_work(const struct pb_work_view *view, const struct pb_chain *chain,
                  emulate_part *run_part, unsigned order);

#ifdef __cplusplus
}
#endif
#endif
