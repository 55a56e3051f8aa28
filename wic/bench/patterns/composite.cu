// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The pattern `multiple`: the highest NDVI of each pixel over several observations, which lie apart
// in pinned memory. They go down one by one, one result comes up. With wic the highest so far stays
// in the shared memory of the block that works on these pixels; streams upload all observations and
// run one kernel. An item is a composite.
#include "wic/bench/patterns/exchange.cuh"
#include "wic/bench/base/ndvi.cuh"
#include "wic/bench/strategies/strategies.cuh"
#include "wic/device/wic_device.cuh"

#include <algorithm>
#include <cstring>

namespace
{
constexpr uint32_t observations = 8, threads = 256, blocks_most = 64;
constexpr size_t pool_bytes = 128 << 20;
constexpr int16_t nothing = -32768;

bench_pool *pool;
uint32_t used_slots; // a multiple of `observations`
std::vector<int16_t> wanted;

// Observation k of item i lies in slot (i * observations + k) % used_slots of the pool; its result
// in that of the last one.
uint32_t slot_of(uint64_t item, uint32_t k)
{
    return static_cast<uint32_t>((item * observations + k) % used_slots);
}

void set_up(size_t kib)
{
    pool = new bench_pool(pool_bytes, false);
    pool->lay_out(kib * 1024);
    used_slots = pool->slots / observations * observations;
    const size_t units = pool->chunk / in_unit;
    wanted.assign(units * (used_slots / observations), nothing);
    for (uint32_t slot = 0; slot < used_slots; slot++) {
        const unsigned char *line = pool->in + slot * pool->in_stride;
        int16_t *to = wanted.data() + slot / observations * units;
        for (size_t i = 0; i < units; i++) {
            const uint16_t *red = reinterpret_cast<const uint16_t *>(line) +
                                  i / line_units * 2 * line_units + i % line_units;
            to[i] = std::max(to[i], ndvi_pixel(red[0], red[line_units]));
        }
    }
}

void take_down()
{
    delete pool;
}

double bytes_of(size_t kib)
{
    return 1024.0 * static_cast<double>(kib) * observations;
}

// Wrong results of items from *checked to `items`, as far as they are still there; they count as
// checked then, and results are poisoned.
uint64_t wrong_results(uint64_t items, uint64_t *checked)
{
    const size_t units = pool->chunk / in_unit;
    const uint64_t kept = used_slots / observations;
    uint64_t wrong = 0;
    for (uint64_t item = std::max(*checked, items - std::min(items, kept)); item < items; item++) {
        const uint32_t slot = slot_of(item, observations - 1);
        wrong += memcmp(pool->out + slot * pool->out_stride,
                        wanted.data() + slot / observations * units, pool->out_stride) != 0;
    }
    *checked = items;
    pool->poison();
    return wrong;
}

__device__ __forceinline__ uint4 highest(uint4 a, uint4 b)
{
    return make_uint4(__vmaxs2(a.x, b.x), __vmaxs2(a.y, b.y), __vmaxs2(a.z, b.z),
                      __vmaxs2(a.w, b.w));
}

// 16 bytes of the NDVI of a piece.
__device__ __forceinline__ uint4 ndvi_eight(const void *in, uint32_t i)
{
    constexpr uint32_t line = line_units / 8;
    const uint4 *red = static_cast<const uint4 *>(in) + (i / line * 2 * line + i % line);
    const uint4 r = red[0], n = red[line];
    return make_uint4(ndvi_two(r.x, n.x), ndvi_two(r.y, n.y), ndvi_two(r.z, n.z),
                      ndvi_two(r.w, n.w));
}

// --- by the pattern, with a resident kernel ---

// Each block has one piece, the same of every tile, so what it keeps is its own.
__global__ void __launch_bounds__(1024) composite_resident(const __grid_constant__ wic_view view)
{
    wic_resident(view, [&](const wic_piece &piece) {
        const exchange_place &place = *static_cast<const exchange_place *>(piece.user);
        uint4 *kept = static_cast<uint4 *>(piece.work) + place.lane * (view.plan.piece_units / 8);
        const bool is_first = place.k == 0, is_last = place.k + 1 == place.count;
        for (uint32_t i = piece.thread; i < piece.units / 8; i += piece.threads) {
            uint4 now = ndvi_eight(piece.in, i);
            now = is_first ? now : highest(now, kept[i]);
            (is_last ? static_cast<uint4 *>(piece.out) : kept)[i] = now;
        }
    });
}

class composite_wic : public exchange_way
{
  public:
    explicit composite_wic(const pattern_shape &shape)
        : exchange_way(wic_pattern_multiple, {observations, 1}, shape.lanes, options(shape))
    {
    }

    uint64_t wrong() override
    {
        return wrong_results(items_, &checked_);
    }

  protected:
    void send(const exchange_place &, uint64_t, wic_link_tile *tile) override
    {
        tile->units = static_cast<uint32_t>(pool->chunk / in_unit);
        tile->bytes = pool->chunk;
        tile->out_bytes = pool->out_stride;
    }

    uint64_t receive(const exchange_place &, uint64_t) override
    {
        items_++;
        return 0;
    }

  private:
    static wic_link_options options(const pattern_shape &shape)
    {
        wic_link_options o = {};
        wic_gpu gpu;
        const wic_tile_shape tile = {pool->chunk, in_unit, out_unit};
        if (wic_gpu_read(0, &gpu) != 0 ||
            wic_transfer_plan_choose(&gpu, &tile, nullptr, &o.plan) != 0) {
            bench_fail("no transfer plan", __LINE__);
        }
        bench_set_piece(&o.plan,
                        std::max(size_t{1024} * shape.piece_kib, pool->chunk / blocks_most),
                        pool->chunk);
        o.plan.results = WIC_PUSH_STORES;
        o.plan.blocks = o.plan.pieces; // one each, the same of every tile
        o.plan.pulls = std::min(o.plan.pulls, o.plan.blocks);
        o.plan.depth = 4;
        o.plan.warps = 8;
        o.plan.work_bytes = shape.lanes * o.plan.out_piece;
        o.plan.engine_backlog = 0;
        o.plan.user_bytes = sizeof(exchange_place);
        o.in = pool->in;
        o.out = pool->out;
        o.in_stride = pool->in_stride;
        o.out_stride = pool->out_stride;
        o.in_slots = o.out_slots = used_slots;
        o.kernel = reinterpret_cast<const void *>(composite_resident);
        return o;
    }

    uint64_t items_ = 0, checked_ = 0;
};

// --- by streams ---

__global__ void __launch_bounds__(threads)
    composite_launch(const unsigned char *in, size_t stride, uint4 *out, uint32_t units)
{
    const uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i < units / 8) {
        uint4 best = ndvi_eight(in, i);
        for (uint32_t k = 1; k < observations; k++) {
            best = highest(best, ndvi_eight(in + k * stride, i));
        }
        out[i] = best;
    }
}

// A stream an item; items end in their order.
class composite_stream : public pattern_way
{
  public:
    explicit composite_stream(const pattern_shape &shape)
        : pattern_way(shape.lanes), lanes_(shape.lanes)
    {
        for (lane &l : lanes_) {
            CUDA_MUST(cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking));
            CUDA_MUST(cudaEventCreateWithFlags(&l.done, cudaEventDisableTiming));
            CUDA_MUST(cudaMalloc(&l.in, observations * pool->chunk));
            CUDA_MUST(cudaMalloc(&l.out, pool->out_stride));
        }
    }

    ~composite_stream() override
    {
        for (lane &l : lanes_) {
            cudaStreamSynchronize(l.stream);
            cudaStreamDestroy(l.stream);
            cudaEventDestroy(l.done);
            cudaFree(l.in);
            cudaFree(l.out);
        }
    }

    void submit(uint64_t end) override
    {
        const uint32_t units = static_cast<uint32_t>(pool->chunk / in_unit);
        for (; begun_ < end; begun_++) {
            lane &l = lanes_[begun_ % lanes_.size()];
            for (uint32_t k = 0; k < observations; k++) {
                CUDA_MUST(cudaMemcpyAsync(l.in + k * pool->chunk,
                                          pool->in + slot_of(begun_, k) * pool->in_stride,
                                          pool->chunk, cudaMemcpyHostToDevice, l.stream));
            }
            composite_launch<<<(units / 8 + threads - 1) / threads, threads, 0, l.stream>>>(
                l.in, pool->chunk, reinterpret_cast<uint4 *>(l.out), units);
            CUDA_MUST(cudaGetLastError());
            CUDA_MUST(
                cudaMemcpyAsync(pool->out + slot_of(begun_, observations - 1) * pool->out_stride,
                                l.out, pool->out_stride, cudaMemcpyDeviceToHost, l.stream));
            CUDA_MUST(cudaEventRecord(l.done, l.stream));
        }
    }

    uint64_t poll() override
    {
        for (; ended_ < begun_; ended_++) {
            const cudaError_t error = cudaEventQuery(lanes_[ended_ % lanes_.size()].done);
            if (error == cudaErrorNotReady) {
                break;
            }
            CUDA_MUST(error);
        }
        return ended_;
    }

    uint64_t wrong() override
    {
        return wrong_results(ended_, &checked_);
    }

  private:
    struct lane {
        cudaStream_t stream;
        cudaEvent_t done;
        unsigned char *in, *out;
    };

    std::vector<lane> lanes_;
    uint64_t begun_ = 0, ended_ = 0, checked_ = 0;
};
} // namespace

pattern_use composite_use()
{
    return {"composite",
            {64, 256, 1024},
            "KiB",
            bytes_of,
            set_up,
            take_down,
            {{"wic",
              make_pattern_way<composite_wic>,
              {{2, 4}, {2, 8}, {2, 16}, {4, 4}, {4, 8}, {4, 16}, {8, 4}, {8, 8}, {8, 16}}},
             {"stream", make_pattern_way<composite_stream>, {{2, 0}, {4, 0}, {8, 0}, {16, 0}}}}};
}
