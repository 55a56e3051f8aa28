// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_CREW_CUH
#define PB_CREW_CUH
// A crew: the threads of one block that work together on something, perhaps not all of the block.
// Device code that needs its neighbours' results is a template over the crew and knows of it only
//
//   uint32_t thread, threads;   this thread among the crew's; the crew is whole warps, in order
//   void sync() const;          barrier of the crew's threads, and of what they wrote to memory
//
// so that a kernel in which other warps do other things passes a named barrier, and a plain kernel
// the whole block.
#include <cstdint>

struct pb_block_crew {
    uint32_t thread, threads;
    __device__ void sync() const
    {
        __syncthreads();
    }
};
#endif
