// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The pattern `probabilistic`, by data: the first quarter of a chunk, its mask, goes down; how many
// bytes of it are not 0 comes up, and decides whether a whole chunk follows, whose NDVI comes up.
// Six of ten masks say no. An item is a mask and what it leads to. As a slot serves as mask or as
// chunk, in the order of what is sent, all ways have the same share of both.
#include "wic/bench/patterns/exchange.cuh"
#include "wic/bench/base/ndvi.cuh"
#include "wic/bench/strategies/strategies.cuh"
#include "wic/device/wic_device.cuh"

#include <algorithm>
#include <cstring>

namespace
{
constexpr uint32_t threads = 256, mask_share = 4, cloudy_of_ten = 6;
constexpr size_t pool_bytes = 128 << 20, mask_piece = 4096; // bytes that a block counts
enum content : uint8_t { NONE, MASK, CHUNK };

bench_pool *pool;
std::vector<uint32_t> clear; // bytes of the mask in each slot
std::vector<int16_t> wanted;

size_t mask_bytes()
{
    return pool->chunk / mask_share;
}

void set_up(size_t kib)
{
    pool = new bench_pool(pool_bytes, false);
    pool->lay_out(kib * 1024);
    clear.assign(pool->slots, 0);
    const size_t units = pool->chunk / in_unit;
    wanted.resize(units * pool->slots);
    for (uint32_t slot = 0; slot < pool->slots; slot++) {
        unsigned char *in = pool->in + slot * pool->in_stride;
        if (slot * 7 % 10 < cloudy_of_ten) {
            memset(in, 0, mask_bytes());
        }
        clear[slot] = static_cast<uint32_t>(
            std::count_if(in, in + mask_bytes(), [](unsigned char v) { return v != 0; }));
        for (size_t i = 0; i < units; i++) {
            const uint16_t *red = reinterpret_cast<const uint16_t *>(in) +
                                  i / line_units * 2 * line_units + i % line_units;
            wanted[slot * units + i] = ndvi_pixel(red[0], red[line_units]);
        }
    }
}

void take_down()
{
    delete pool;
}

// The mean, with four of ten chunks after their mask.
double bytes_of(size_t kib)
{
    return 1024.0 * static_cast<double>(kib) * (1.0 / mask_share + 0.1 * (10 - cloudy_of_ten));
}

// What was sent, in the slots' order, and the check of it.
struct record {
    std::vector<uint8_t> last = std::vector<uint8_t>(pool->slots, NONE); // that a slot served as
    uint64_t wrong = 0;

    // Whether the chunk is to follow, by the count that came up.
    bool verdict(uint32_t slot, uint64_t count)
    {
        wrong += count != clear[slot];
        return count > 0;
    }

    uint64_t all_wrong()
    {
        uint64_t sum = wrong;
        for (uint32_t slot = 0; slot < pool->slots; slot++) {
            if (last[slot] == CHUNK) {
                sum +=
                    memcmp(pool->out + slot * pool->out_stride,
                           wanted.data() + slot * (pool->chunk / in_unit), pool->out_stride) != 0;
            }
        }
        std::fill(last.begin(), last.end(), static_cast<uint8_t>(NONE));
        pool->poison();
        wrong = 0;
        return sum;
    }
};

// Bytes that are not 0.
__device__ __forceinline__ uint32_t count_bytes(const void *in, uint32_t bytes, uint32_t thread,
                                                uint32_t step)
{
    uint32_t count = 0;
    for (uint32_t i = thread; i < bytes / 16; i += step) {
        const uint4 v = static_cast<const uint4 *>(in)[i];
        count += __popc(__vcmpne4(v.x, 0)) + __popc(__vcmpne4(v.y, 0)) + __popc(__vcmpne4(v.z, 0)) +
                 __popc(__vcmpne4(v.w, 0));
    }
    return count / 8;
}

// --- by the pattern, with a resident kernel ---

__device__ __forceinline__ void count_piece(const wic_piece &piece, uint32_t bytes)
{
    uint32_t *sum = static_cast<uint32_t *>(piece.work);
    if (piece.thread == 0) {
        *sum = 0;
    }
    piece.sync();
    const uint32_t count = count_bytes(piece.in, bytes, piece.thread, piece.threads);
    if (count > 0) {
        atomicAdd_block(sum, count);
    }
    piece.sync();
    if (piece.thread == 0) {
        reinterpret_cast<uint32_t *>(piece.tile_out)[piece.piece] = *sum;
    }
}

__global__ void __launch_bounds__(1024) gate_resident(const __grid_constant__ wic_view view)
{
    wic_resident(view, [&](const wic_piece &piece) {
        const exchange_place &place = *static_cast<const exchange_place *>(piece.user);
        if (place.turn == 0) {
            count_piece(piece, piece.units * in_unit);
        } else {
            ndvi_lines(piece.in, piece.out, piece.units, piece.thread, piece.threads);
        }
    });
}

class gate_wic : public exchange_way
{
  public:
    explicit gate_wic(const pattern_shape &shape)
        : exchange_way(wic_pattern_probabilistic, {1, 1, 1, 0}, shape.lanes, options()),
          pieces_of_mask_((mask_bytes() + options().plan.in_piece - 1) / options().plan.in_piece)
    {
    }

    uint64_t wrong() override
    {
        return record_.all_wrong();
    }

  protected:
    void send(const exchange_place &place, uint64_t slot, wic_link_tile *tile) override
    {
        const bool is_mask = place.turn == 0;
        record_.last[slot] = is_mask ? MASK : CHUNK;
        tile->bytes = is_mask ? mask_bytes() : pool->chunk;
        tile->units = static_cast<uint32_t>(tile->bytes / in_unit);
        tile->out_bytes = is_mask ? pieces_of_mask_ * sizeof(uint32_t) : pool->out_stride;
    }

    uint64_t receive(const exchange_place &place, uint64_t slot) override
    {
        if (place.turn > 0) {
            return 0;
        }
        const uint32_t *counts =
            reinterpret_cast<const uint32_t *>(pool->out + slot * pool->out_stride);
        uint64_t count = 0;
        for (size_t i = 0; i < pieces_of_mask_; i++) {
            count += counts[i];
        }
        return record_.verdict(static_cast<uint32_t>(slot), count) ? chunk_down : 0;
    }

  private:
    static constexpr uint64_t chunk_down = 2;

    static wic_link_options options()
    {
        wic_link_options o = {};
        wic_gpu gpu;
        const wic_tile_shape shape = {pool->chunk, in_unit, out_unit};
        if (wic_gpu_read(0, &gpu) != 0 ||
            wic_transfer_plan_choose(&gpu, &shape, nullptr, &o.plan) != 0) {
            bench_fail("no transfer plan", __LINE__);
        }
        o.plan.results = WIC_PUSH_STORES;
        o.plan.work_bytes = 16;
        o.plan.engine_backlog = 0;
        o.plan.user_bytes = sizeof(exchange_place);
        o.in = pool->in;
        o.out = pool->out;
        o.in_stride = pool->in_stride;
        o.out_stride = pool->out_stride;
        o.in_slots = o.out_slots = pool->slots;
        o.kernel = reinterpret_cast<const void *>(gate_resident);
        return o;
    }

    size_t pieces_of_mask_;
    record record_;
};

// --- by streams ---

// A count for each block, with the number of the mask that it is of.
__global__ void __launch_bounds__(threads)
    gate_count(const unsigned char *mask, uint32_t bytes, uint64_t *counts, uint32_t number)
{
    __shared__ uint32_t sum;
    if (threadIdx.x == 0) {
        sum = 0;
    }
    __syncthreads();
    const uint32_t first = blockIdx.x * mask_piece;
    const uint32_t count =
        count_bytes(mask + first, min(uint32_t{mask_piece}, bytes - first), threadIdx.x, threads);
    if (count > 0) {
        atomicAdd(&sum, count);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        wic_store_system(&counts[blockIdx.x], static_cast<uint64_t>(number) << 32 | sum);
    }
}

// A stream a lane: the mask up, a kernel that stores counts to pinned memory, where the host looks
// for them; then, if the host decides so, the chunk up, a kernel, the result down.
class gate_stream : public pattern_way
{
  public:
    explicit gate_stream(const pattern_shape &shape)
        : pattern_way(shape.lanes), blocks_((mask_bytes() + mask_piece - 1) / mask_piece),
          lanes_(shape.lanes)
    {
        for (lane &l : lanes_) {
            CUDA_MUST(cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking));
            CUDA_MUST(cudaEventCreateWithFlags(&l.done, cudaEventDisableTiming));
            CUDA_MUST(cudaMalloc(&l.in, pool->chunk));
            CUDA_MUST(cudaMalloc(&l.out, pool->out_stride));
            CUDA_MUST(cudaHostAlloc(&l.counts, blocks_ * sizeof *l.counts, cudaHostAllocMapped));
            memset(l.counts, 0, blocks_ * sizeof *l.counts);
            l.serves = NONE;
        }
    }

    ~gate_stream() override
    {
        for (lane &l : lanes_) {
            cudaStreamSynchronize(l.stream);
            cudaStreamDestroy(l.stream);
            cudaEventDestroy(l.done);
            cudaFree(l.in);
            cudaFree(l.out);
            cudaFreeHost(l.counts);
        }
    }

    void submit(uint64_t end) override
    {
        wanted_ = end;
        for (lane &l : lanes_) {
            if (l.serves == NONE && started_ < wanted_) {
                started_++;
                send_mask(&l);
            }
        }
    }

    uint64_t poll() override
    {
        for (lane &l : lanes_) {
            if (l.serves == MASK) {
                look_at_mask(&l);
            } else if (l.serves == CHUNK) {
                look_at_chunk(&l);
            }
        }
        return items_;
    }

    uint64_t wrong() override
    {
        return record_.all_wrong();
    }

  private:
    struct lane {
        cudaStream_t stream;
        cudaEvent_t done;
        unsigned char *in, *out;
        uint64_t *counts;
        content serves;
        uint32_t slot, number;
    };

    void take_slot(lane *l, content what)
    {
        l->slot = static_cast<uint32_t>(next_++ % pool->slots);
        l->serves = what;
        record_.last[l->slot] = what;
    }

    void send_mask(lane *l)
    {
        take_slot(l, MASK);
        CUDA_MUST(cudaMemcpyAsync(l->in, pool->in + l->slot * pool->in_stride, mask_bytes(),
                                  cudaMemcpyHostToDevice, l->stream));
        gate_count<<<static_cast<unsigned>(blocks_), threads, 0, l->stream>>>(
            l->in, static_cast<uint32_t>(mask_bytes()), l->counts, ++l->number);
        CUDA_MUST(cudaGetLastError());
    }

    void send_chunk(lane *l)
    {
        take_slot(l, CHUNK);
        CUDA_MUST(cudaMemcpyAsync(l->in, pool->in + l->slot * pool->in_stride, pool->chunk,
                                  cudaMemcpyHostToDevice, l->stream));
        launch_ndvi(l->in, l->out, pool->chunk / in_unit, l->stream);
        CUDA_MUST(cudaMemcpyAsync(pool->out + l->slot * pool->out_stride, l->out, pool->out_stride,
                                  cudaMemcpyDeviceToHost, l->stream));
        CUDA_MUST(cudaEventRecord(l->done, l->stream));
    }

    void look_at_mask(lane *l)
    {
        uint64_t count = 0;
        for (size_t i = 0; i < blocks_; i++) {
            const uint64_t word = __atomic_load_n(&l->counts[i], __ATOMIC_ACQUIRE);
            if (word >> 32 != l->number) {
                return;
            }
            count += static_cast<uint32_t>(word);
        }
        if (record_.verdict(l->slot, count)) {
            send_chunk(l);
        } else {
            end_item(l);
        }
    }

    void look_at_chunk(lane *l)
    {
        const cudaError_t error = cudaEventQuery(l->done);
        if (error != cudaErrorNotReady) {
            CUDA_MUST(error);
            end_item(l);
        }
    }

    void end_item(lane *l)
    {
        items_++;
        l->serves = NONE;
        if (started_ < wanted_) {
            started_++;
            send_mask(l);
        }
    }

    size_t blocks_; // of a mask
    std::vector<lane> lanes_;
    record record_;
    uint64_t wanted_ = 0, started_ = 0, items_ = 0, next_ = 0;
};
} // namespace

pattern_use gate_use()
{
    return {"gate",
            {64, 256, 1024},
            "KiB",
            bytes_of,
            set_up,
            take_down,
            {{"wic", make_pattern_way<gate_wic>, {{4, 0}, {8, 0}, {16, 0}, {32, 0}}},
             {"stream", make_pattern_way<gate_stream>, {{4, 0}, {8, 0}, {16, 0}, {32, 0}}}}};
}
