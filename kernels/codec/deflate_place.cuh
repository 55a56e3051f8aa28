// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_PLACE_CUH
#define PB_DEFLATE_PLACE_CUH
// Where blocks and their chunks go in the output: sizes first, a thread a block, then the sum over
// blocks. Words that two chunks share, or a chunk and nothing, are cleared here, so that the stage
// that packs can add its bits to them.
#include "kernels/codec/encode_view.cuh"

namespace pb_device
{
constexpr uint32_t PLACE_ALIGN = 16, FRAME_BEFORE = 16, FRAME_BEHIND = 4;
constexpr uint32_t ZLIB_HEADER = 0x0178, ZLIB_HEADER_BITS = 16, ADLER_BYTES = 4;

// The bit behind a chunk that begins at bit `at`.
inline __device__ uint64_t chunk_end(const pb_deflate_code &code, uint32_t bytes, uint64_t at)
{
    const uint64_t head = (at + 3 + 7) / 8 * 8; // of a stored one: 3 bits, up to a whole byte
    return code.stored != 0 ? head + 32 + UINT64_C(8) * bytes : at + code.bits;
}

inline __device__ uint32_t taken_by(uint32_t bytes)
{
    return bytes == 0 ? 0
                      : (FRAME_BEFORE + bytes + FRAME_BEHIND + PLACE_ALIGN - 1) / PLACE_ALIGN *
                            PLACE_ALIGN;
}

// Blocks that do not fit are left out, and with them all that follow.
inline __device__ void place_block(const pb_encode_view &view, uint32_t block, uint64_t before)
{
    pb_encoded &encoded = view.batch.encoded[block];
    if (encoded.state != PB_ENCODED) {
        return;
    }
    if (before + taken_by(encoded.bytes) > view.batch.out_bytes) {
        encoded.state = PB_ENCODED_NO_ROOM;
        encoded.bytes = 0;
        return;
    }
    encoded.at = before + FRAME_BEFORE;
    auto *const words = reinterpret_cast<uint32_t *>(view.batch.out);
    const uint32_t chunks = is_planes(view, block) ? 0 : view.chunks; // rows of planes: later
    for (uint32_t k = 0; k < chunks; k++) {
        pb_deflate_code &code = view.code[block * view.chunks + k];
        code.at += 8 * encoded.at;
        words[code.at / 32] = k == 0 ? ZLIB_HEADER : 0;
    }
    if (encoded.bytes % 4 != 0) {
        words[(encoded.at + encoded.bytes) / 4] = 0;
    }
}
} // namespace pb_device

// The state and size of a block, and its chunks' places within it.
inline __device__ void pb_deflate_size(const pb_encode_view &view, uint32_t block)
{
    using namespace pb_device;
    pb_encoded &encoded = view.batch.encoded[block];
    if (view.chunks == 0 || has_strings(view, block)) {
        encoded.state = view.chunks == 0 ? PB_ENCODED_RAW : PB_ENCODED_STRINGS;
        return;
    }
    if (is_planes(view, block)) {
        encoded.bytes = view.planes[block].bytes;
        encoded.adler = view.planes[block].adler;
        return;
    }
    constexpr uint32_t MODULO = 65521;
    uint64_t bit = ZLIB_HEADER_BITS;
    uint32_t a = 1, b = 0;
    for (uint32_t i = block * view.chunks, k = 0; k < view.chunks; k++, i++) {
        const uint32_t bytes = chunk_of(view, i).bytes;
        const pb_deflate_sums &sums = view.sums[i];
        view.code[i].at = bit;
        bit = chunk_end(view.code[i], bytes, bit);
        b = static_cast<uint32_t>((b + static_cast<uint64_t>(bytes) * a + sums.s2) % MODULO);
        a = (a + sums.s1) % MODULO;
    }
    encoded.bytes = static_cast<uint32_t>((bit + 7) / 8) + ADLER_BYTES;
    encoded.adler = b << 16 | a;
}

// All blocks, by one thread group; `sums`: as many words of shared memory as it has warps.
template <class Group>
__device__ void pb_deflate_place(const pb_encode_view &view, uint64_t *sums, const Group &group)
{
    using namespace pb_device;
    const uint32_t lane = group.thread % 32, warp = group.thread / 32, n = view.batch.n_blocks;
    uint64_t base = 0, used = 0;
    for (uint32_t first = 0; first < n; first += group.threads) {
        const uint32_t i = first + group.thread;
        const uint64_t own = i < n ? taken_by(view.batch.encoded[i].bytes) : 0;
        uint64_t sum = own;
        for (uint32_t d = 1; d < 32; d *= 2) {
            const uint64_t up = __shfl_up_sync(0xffffffffu, sum, d);
            sum += lane >= d ? up : 0;
        }
        group.sync();
        if (lane == 31) {
            sums[warp] = sum;
        }
        group.sync();
        uint64_t all = 0;
        for (uint32_t k = 0; k < group.threads / 32; k++) {
            sum += k < warp ? sums[k] : 0;
            all += sums[k];
        }
        if (i < n && base + sum <= view.batch.out_bytes) {
            used = base + sum;
        }
        if (i < n) {
            place_block(view, i, base + sum - own);
        }
        base += all;
    }
    if (used > 0) {
        atomicMax(reinterpret_cast<unsigned long long *>(view.batch.used),
                  static_cast<unsigned long long>(used));
    }
}
#endif
