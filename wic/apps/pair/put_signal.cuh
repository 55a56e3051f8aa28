// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_PUT_SIGNAL_CUH
#define WIC_APP_PAIR_PUT_SIGNAL_CUH
// put-signal: a block makes a piece in its own memory, then all its threads copy it to the receiver
// by stores of 16 bytes, as a put of NVSHMEM by a block does. The word of the chunk is the signal.
#include "wic/apps/pair/pair.cuh"

struct pair_put_signal {
    template <class Write> static __device__ void make(const pair_sending &sending, Write write)
    {
        write(sending.copy());
    }
    // Ends with a barrier, therefore the signal follows the stores of all threads.
    template <class Way> static __device__ void send(const pair_sending &sending, Way &way)
    {
        struct alignas(16) line {
            uint64_t word[2];
        };
        const app_part part = way.part();
        const line *from = reinterpret_cast<const line *>(sending.copy());
        line *to = reinterpret_cast<line *>(sending.data());
        for (uint32_t i = part.thread; i < sending.whole() / sizeof(line); i += part.threads) {
            to[i] = from[i];
        }
        way.share(0);
    }
};
#endif
