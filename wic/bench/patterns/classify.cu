// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The pattern `alternating`: k-means of pixels that stay on the device. Each round the centres go
// down, exact sums of each class come up, and the host makes the next centres of them, until none
// changes or for `rounds_most` rounds. An item is a round.
#include "wic/bench/patterns/classify.cuh"
#include "wic/bench/patterns/exchange.cuh"
#include "wic/device/wic_device.cuh"

namespace kmeans
{
image scene;

uint32_t next_centres(const sums &s, centres *c)
{
    uint32_t others = 0;
    for (uint32_t k = 0; k < classes; k++) {
        const centres before = *c;
        for (uint32_t band = 0; band < 3 && s.of[k][3] > 0; band++) {
            c->at[k][band] = static_cast<int16_t>(s.of[k][band] / s.of[k][3]);
        }
        others += !std::equal(c->at[k], c->at[k] + 3, before.at[k]);
    }
    return others;
}

} // namespace kmeans

namespace
{
using namespace kmeans;

// A tile down is there to be noticed by each block; the centres travel beside it.
constexpr uint32_t slots_each_way = 4, in_bytes = 16;
unsigned char *slots_down;
sums *slots_up;

void set_up(size_t kilopixels)
{
    scene.count = kilopixels * 1024;
    std::vector<ushort4> pixels(scene.count);
    uint64_t random = 88172645463325252u;
    for (ushort4 &p : pixels) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const auto value = [&](int shift) {
            return static_cast<uint16_t>(random >> shift & ((1u << value_bits) - 1));
        };
        p = make_ushort4(value(3), value(18), value(33), 0);
    }
    centres c = {};
    for (uint32_t k = 0; k < classes; k++) {
        c.at[k][0] = static_cast<int16_t>(pixels[k].x);
        c.at[k][1] = static_cast<int16_t>(pixels[k].y);
        c.at[k][2] = static_cast<int16_t>(pixels[k].z);
    }
    scene.trace = {c};
    for (uint32_t others = 1; others > 0 && scene.trace.size() <= rounds_most;) {
        sums s = {};
        for (const ushort4 &p : pixels) {
            unsigned long long *of = s.of[nearest(c, p.x, p.y, p.z)];
            of[0] += p.x;
            of[1] += p.y;
            of[2] += p.z;
            of[3]++;
        }
        others = next_centres(s, &c);
        scene.trace.push_back(c);
    }
    CUDA_MUST(cudaMalloc(&scene.pixels, scene.count * sizeof(ushort4)));
    CUDA_MUST(cudaMemcpy(scene.pixels, pixels.data(), scene.count * sizeof(ushort4),
                         cudaMemcpyHostToDevice));
    cudaDeviceProp device;
    CUDA_MUST(cudaGetDeviceProperties(&device, 0));
    scene.multiprocessors = static_cast<uint32_t>(device.multiProcessorCount);
    CUDA_MUST(cudaMalloc(&scene.sum, sizeof(total)));
    CUDA_MUST(cudaMemset(scene.sum, 0, sizeof(total)));
    CUDA_MUST(cudaHostAlloc(&slots_down, slots_each_way * scene.multiprocessors * in_bytes,
                            cudaHostAllocMapped));
    CUDA_MUST(cudaHostAlloc(&slots_up, slots_each_way * sizeof(sums), cudaHostAllocMapped));
}

void take_down()
{
    cudaFree(scene.sum);
    cudaFreeHost(slots_down);
    cudaFreeHost(slots_up);
    cudaFree(scene.pixels);
}

// --- by the pattern, with a resident kernel ---

// Travels beside a tile: all that goes down.
struct note {
    exchange_place place;
    centres now;
};

struct arguments {
    share image;
    total *sum;
};

struct block_memory {
    sums own;
    bool is_last;
};

__global__ void __launch_bounds__(threads + 32 * WIC_SERVICE_WARPS, 1)
    classify_resident(const __grid_constant__ wic_view view, arguments all)
{
    wic_resident(view, [&](const wic_piece &piece) {
        block_memory *memory = static_cast<block_memory *>(piece.work);
        clear(&memory->own, piece.thread);
        piece.sync();
        add_pixels(all.image.pixels,
                   static_cast<uint64_t>(piece.piece) * piece.threads + piece.thread,
                   all.image.count, view.plan.pieces * piece.threads,
                   static_cast<const note *>(piece.user)->now, &memory->own);
        piece.sync();
        add_to_total(memory->own, all.sum, view.plan.pieces, static_cast<sums *>(piece.tile_out),
                     piece.thread, &memory->is_last, [&] { piece.sync(); });
    });
}

class classify_wic : public exchange_way
{
  public:
    classify_wic() : exchange_way(wic_pattern_alternating, {rounds_most, 1}, 1, options())
    {
    }

    uint64_t wrong() override
    {
        return rounds_.wrong;
    }

  protected:
    void send(const exchange_place &place, uint64_t, wic_link_tile *tile) override
    {
        note_ = {place, rounds_.now};
        tile->user = &note_;
        tile->units = scene.multiprocessors;
        tile->bytes = scene.multiprocessors * in_bytes;
        tile->out_bytes = sizeof(sums);
    }

    uint64_t receive(const exchange_place &, uint64_t slot) override
    {
        return rounds_.end(slots_up[slot]);
    }

    bool ends_item(uint64_t) const override
    {
        return true;
    }

  private:
    static wic_link_options options()
    {
        static arguments all;
        all = {{scene.pixels, scene.count}, scene.sum};
        wic_link_options o = {};
        wic_gpu gpu;
        const wic_tile_shape shape = {scene.multiprocessors * in_bytes, in_bytes, 0};
        if (wic_gpu_read(0, &gpu) != 0 ||
            wic_transfer_plan_choose(&gpu, &shape, nullptr, &o.plan) != 0) {
            bench_fail("no transfer plan", __LINE__);
        }
        o.plan.results = WIC_PUSH_STORES;
        o.plan.piece_units = 1;
        o.plan.in_piece = in_bytes;
        o.plan.pieces = o.plan.blocks = o.plan.pulls = scene.multiprocessors;
        o.plan.depth = 1;
        o.plan.warps = threads / 32;
        o.plan.work_bytes = (sizeof(block_memory) + 15) / 16 * 16;
        o.plan.engine_backlog = 0;
        o.plan.user_bytes = sizeof(note);
        o.in = slots_down;
        o.out = slots_up;
        o.in_stride = scene.multiprocessors * in_bytes;
        o.out_stride = sizeof(sums);
        o.in_slots = o.out_slots = slots_each_way;
        o.kernel = reinterpret_cast<const void *>(classify_resident);
        o.argument = &all;
        return o;
    }

    rounds rounds_;
    note note_;
};

double bytes_of(size_t kilopixels)
{
    return 1024.0 * static_cast<double>(kilopixels) * sizeof(ushort4);
}

std::unique_ptr<pattern_way> make_wic(const pattern_shape &)
{
    return std::make_unique<classify_wic>();
}
} // namespace

pattern_use classify_use()
{
    return {"classify",
            {64, 1024, 8192},
            "Kpx",
            bytes_of,
            set_up,
            take_down,
            {{"wic", make_wic, {{1, 0}}},
             {"stream", make_stream, {{1, 0}}},
             {"graph", make_graph, {{1, 0}}},
             {"zero-copy", make_zero_copy, {{1, 0}}}}};
}
