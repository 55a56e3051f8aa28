// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_THREAD_GROUP_CUH
#define PB_THREAD_GROUP_CUH
// A thread group: the threads of one block that work together on something, perhaps not all of the
// block. Device code that needs its neighbours' results is a template over the thread group and
// knows of it only
//
//   uint32_t thread, threads;   this thread among the thread group's; the thread group is whole
//   warps, in order void sync() const;          barrier of the thread group's threads, and of what
//   they wrote to memory
//
// so that a kernel in which other warps do other things passes a named barrier, and a plain kernel
// the whole block.
#include <cstdint>

struct pb_block_group {
    uint32_t thread, threads;
    __device__ void sync() const
    {
        __syncthreads();
    }
};
#endif
