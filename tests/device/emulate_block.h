// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_EMULATE_BLOCK_H
#define PB_EMULATE_BLOCK_H
// Blocks of a resident kernel whose threads are threads of the host, for the frames of wic/apps.
#include "wic/apps/app.cuh"

#include <pthread.h>
#include <vector>

// Memory that the threads of a block share; a frame adds its own.
struct emulate_block_memory {
    pthread_barrier_t barrier;
    uint64_t shared[2];
};

// The blocks of a kernel, each with its Memory.
template <class Memory> class emulate_blocks
{
  public:
    emulate_blocks(uint32_t blocks, uint32_t threads) : memory_(blocks)
    {
        for (Memory &block : memory_) {
            pthread_barrier_init(&block.barrier, nullptr, threads);
        }
    }
    ~emulate_blocks()
    {
        for (Memory &block : memory_) {
            pthread_barrier_destroy(&block.barrier);
        }
    }
    emulate_blocks(const emulate_blocks &) = delete;
    emulate_blocks &operator=(const emulate_blocks &) = delete;

    Memory *of(uint32_t block)
    {
        return &memory_[block];
    }

  private:
    std::vector<Memory> memory_;
};

// The part of a way that all ways have.
template <class Memory> struct emulate_thread {
    uint32_t block, blocks;
    app_part own;
    Memory *memory;
    uint32_t turn = 0;

    emulate_thread(uint32_t block, uint32_t blocks, app_part own, Memory *memory)
        : block(block), blocks(blocks), own(own), memory(memory)
    {
    }
    app_part part() const
    {
        return own;
    }
    uint64_t share(uint64_t value)
    {
        uint64_t *of = &memory->shared[turn++ % 2];
        if (own.thread == 0) {
            *of = value;
        }
        pthread_barrier_wait(&memory->barrier);
        return *of;
    }
};

// The places of a ring: a power of two.
inline uint32_t emulate_ring(uint32_t chunks, uint32_t least)
{
    uint32_t places = least;
    while (places < chunks) {
        places *= 2;
    }
    return places;
}
#endif
