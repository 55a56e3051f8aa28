// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_FINEPACK_CUH
#define WIC_APP_PAIR_FINEPACK_CUH
// finepack: the stores of a piece are gathered by line in shared memory and cross the link as one
// bulk store. An application-level copy of the hardware of FinePack (HPCA '23), which joins the
// stores that leave a multiprocessor.
//
// A block has two buffers in turn: when it writes to one again, it has met since its thread 0 saw
// the end of the bulk store from there.
#include "wic/apps/pair/pair.cuh"

constexpr uint32_t pair_lines_bytes = 2 * resident_piece_most; // shared memory of a block

struct pair_finepack {
    template <class Write> static __device__ void make(unsigned char *lines, Write write)
    {
        write(lines);
#ifdef __CUDA_ARCH__
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // for the bulk store
#endif
    }
    // Thread 0.
    static __device__ void send(const pair_sending &sending, const unsigned char *lines)
    {
#ifdef __CUDA_ARCH__
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                     "cp.async.bulk.commit_group;\n"
                     "cp.async.bulk.wait_group 0;\n"
                     "fence.proxy.async;" ::"l"(sending.data()),
                     "r"(static_cast<uint32_t>(__cvta_generic_to_shared(lines))),
                     "r"(sending.whole())
                     : "memory");
#else
        memcpy(sending.data(), lines, sending.whole());
#endif
    }
};
#endif
