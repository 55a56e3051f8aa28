// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_WORK_CUH
#define PB_WORK_CUH
// A worker: takes tasks until all is done or it is told to stop. A template over its thread group
// (kernels/codec/codec_group.cuh; PB_WORK_THREADS threads) and what makes pixels:
//
//   pixels(in, part, out, out_px, memory)   all threads of the group; part as pb_chain_block_run
#include "kernels/work/work_input.cuh"
#include "kernels/work/work_output.cuh"

namespace pb_work
{
// A worker's clock, of one of its threads.
struct stopwatch {
    pb_work_spent *spent; // or NULL
    uint64_t since;

    __device__ explicit stopwatch(pb_work_spent *to) : spent(to), since(to ? wic_depend_now() : 0)
    {
    }
    __device__ uint64_t lap()
    {
        const uint64_t before = since;
        since = wic_depend_now();
        return since - before;
    }
    __device__ void parked()
    {
        if (spent != nullptr) {
            (void)wic_count_long(&spent->parked_ns, lap());
        }
    }
    __device__ void worked(uint32_t stage)
    {
        if (spent != nullptr) {
            (void)wic_count_long(&spent->ns[stage], lap());
            (void)wic_count_long(&spent->tasks[stage], 1);
        }
    }
};
} // namespace pb_work

template <class Pixels, class Group>
__device__ void pb_work_run(const pb_work_view &view, pb_work::arena &mine, const Pixels &pixels,
                            const Group &group)
{
    using namespace pb_work;
    wic_task task;
    stopwatch watch(group.thread == 0 ? view.spent : nullptr);
    for (uint32_t turn = 0; wic_take(view.ready, mine.seats, turn, group, &task); turn++) {
        watch.parked();
        switch (task.ring) {
        case PB_WORK_PACK:
            pack_chunk(view, mine, task.task, group);
            break;
        case PB_WORK_COUNT:
            count_group(view, mine, task.task, group);
            break;
        case PB_WORK_STRINGS:
            look_for_strings(view, mine, task.task, group);
            break;
        case PB_WORK_ROWS:
            make_rows(view, mine, task.task, group);
            break;
        case PB_WORK_HALVE:
            halve_block(view, task.task, group);
            break;
        case PB_WORK_PIXELS:
            make_pixels(view, mine, task.task, pixels, group);
            break;
        case PB_WORK_OPEN:
            open_piece(view, task.task, group);
            break;
        default:
            decode_piece(view, mine, task.task, group);
            break;
        }
        watch.worked(task.ring);
    }
}
#endif
