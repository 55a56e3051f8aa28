// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_PROGRAM_REGISTERS_CUH
#define PB_PROGRAM_REGISTERS_CUH
// The machine's registers are in shared memory: 16 bytes of a register of a thread beside those of
// the other threads, then the next 16 bytes. So accesses are of 16 bytes and without bank
// conflicts; indexing a local array would send it to memory. No thread reads what another wrote:
// there is no barrier.
#include "kernels/vm/program_place.cuh"

namespace pb_device
{
#ifdef PB_EMULATED
using shared_address = unsigned char *;
inline shared_address find_shared(void *shared)
{
    return static_cast<unsigned char *>(shared);
}
template <int N> void load_shared(shared_address at, float (&out)[N])
{
    memcpy(out, at, sizeof out);
}
template <int N> void store_shared(shared_address at, const float (&v)[N])
{
    memcpy(at, v, sizeof v);
}
#else
// Shared memory by its own 32-bit addresses. A pointer would be made of them anew by every
// instruction of a program.
using shared_address = uint32_t;
inline __device__ shared_address find_shared(void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
inline __device__ void load_shared(shared_address at, float (&out)[4])
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
                 : "r"(at)
                 : "memory");
}
inline __device__ void load_shared(shared_address at, float (&out)[1])
{
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(out[0]) : "r"(at) : "memory");
}
inline __device__ void store_shared(shared_address at, const float (&v)[4])
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(at), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
                 : "memory");
}
inline __device__ void store_shared(shared_address at, const float (&v)[1])
{
    asm volatile("st.shared.f32 [%0], %1;" : : "r"(at), "f"(v[0]) : "memory");
}
#endif

// Those of one thread of THREADS; 0: as many as `me` says.
template <int PX, int THREADS> class register_file
{
    static constexpr int PART = shape<PX>::PART, PARTS = shape<PX>::PARTS;
    struct part {
        float v[PART];
    };

  public:
    __device__ register_file(void *shared, const member &me)
        : mine_(find_shared(shared) + me.thread * static_cast<uint32_t>(sizeof(part))),
          row_((THREADS ? THREADS : me.threads) * static_cast<uint32_t>(sizeof(part)))
    {
    }
    __device__ void set(uint32_t r, const pixels<PX> &value) const
    {
        const shared_address at = mine_ + r * PARTS * row_;
#pragma unroll
        for (int k = 0; k < PARTS; k++) {
            store_shared(at + k * row_, reinterpret_cast<const part *>(&value)[k].v);
        }
    }
    __device__ pixels<PX> get(uint32_t r) const
    {
        const shared_address at = mine_ + r * PARTS * row_;
        pixels<PX> out;
#pragma unroll
        for (int k = 0; k < PARTS; k++) {
            load_shared(at + k * row_, reinterpret_cast<part *>(&out)[k].v);
        }
        return out;
    }

  private:
    shared_address mine_;
    uint32_t row_; // bytes
};
} // namespace pb_device
#endif
