/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATOR_MATH_H
#define PB_EMULATOR_MATH_H
/* CUDA's integer functions on the host: pure functions, as the CUDA C++ manual defines them. Part
 * of emulator.h. */
#include <cstdint>

inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
inline int __clz(int v)
{
    return v != 0 ? __builtin_clz(static_cast<unsigned>(v)) : 32;
}
inline unsigned __brev(unsigned v)
{
    unsigned r = 0;
    for (unsigned i = 0; i < 32; i++) {
        r |= (v >> i & 1) << (31 - i);
    }
    return r;
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift)
{
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift)
{
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned pick = selector >> 4 * i & 15;
        uint32_t byte = static_cast<uint32_t>(both >> 8 * (pick & 7)) & 255;
        if ((pick & 8) != 0) {
            byte = (byte & 128) != 0 ? 255 : 0;
        }
        r |= byte << 8 * i;
    }
    return r;
}
inline uint32_t __dp4a(uint32_t a, uint32_t b, uint32_t c)
{
    for (unsigned i = 0; i < 32; i += 8) {
        c += (a >> i & 255) * (b >> i & 255);
    }
    return c;
}
inline uint32_t __vcmpeq4(uint32_t a, uint32_t b)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 32; i += 8) {
        r |= (a >> i & 255) == (b >> i & 255) ? 255u << i : 0;
    }
    return r;
}
inline uint32_t __vadd4(uint32_t a, uint32_t b)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 32; i += 8) {
        r |= (((a >> i & 255) + (b >> i & 255)) & 255) << i;
    }
    return r;
}
inline uint32_t __vsub4(uint32_t a, uint32_t b)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 32; i += 8) {
        r |= (((a >> i & 255) - (b >> i & 255)) & 255) << i;
    }
    return r;
}
inline uint32_t __vadd2(uint32_t a, uint32_t b)
{
    return ((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16;
}
inline uint32_t __vsub2(uint32_t a, uint32_t b)
{
    return ((a - b) & 0xffff) | ((a >> 16) - (b >> 16)) << 16;
}
inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
    return static_cast<uint32_t>(static_cast<uint64_t>(a) * b >> 32);
}
#endif
