// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_REDUCTION_HPP
#define WIC_REDUCTION_HPP
// Sums, extremes and the like of frames by the current GPU: a stream (wic/stream.hpp) whose result
// has one Out for each piece of a frame. The caller combines these:
//
//   wic::reduction<uint16_t, uint64_t> s(samples, {}, [] __device__(auto piece) {
//       uint64_t sum = 0;
//       for (auto i : piece)
//           sum += piece.in[i];
//       return sum; // of this thread
//   });
//   s.push(frame);
//   auto r = s.pop();
//   uint64_t sum = std::accumulate(r->begin(), r->end(), uint64_t{0});
//
// A last argument combines two Out, wic::plus if it is absent. It is called in the same order each
// time, so that sums of floats are the same bits for the same frame on the same GPU. The rest is as
// in wic/stream.hpp; piece.out does not exist.
#include "wic/stream.hpp"

#include <algorithm>
#include <type_traits>

namespace wic
{
struct plus {
    template <class T> WIC_BOTH T operator()(const T &a, const T &b) const
    {
        return a + b;
    }
};

// Combines the values of threads by a tree, into values[0]. sync: a barrier of the threads, each of
// which calls this.
template <class T, class Combine, class Sync>
WIC_BOTH void combine_all(T *values, uint32_t thread, uint32_t threads, const Combine &combine,
                          const Sync &sync)
{
    sync();
    while (threads > 1) {
        const uint32_t half = (threads + 1) / 2;
        if (thread + half < threads) {
            values[thread] = combine(values[thread], values[thread + half]);
        }
        threads = half;
        sync();
    }
}

// The parts of wic::reduction without CUDA.
template <class In, class Out> class part_flow : public typed<In, Out>
{
    static_assert(std::is_trivially_copyable<Out>::value && sizeof(Out) <= 64,
                  "an Out of each thread is in shared memory");

  protected:
    ~part_flow()
    {
        this->stop(); // before the member that describe reads is gone
    }

    void start(int gpu_index, size_t units, const options &o, uint32_t warps, const void *kernel,
               std::shared_ptr<const void> argument)
    {
        const wic_tile_shape shape = {units * sizeof(In), sizeof(In), 0};
        wic_work work = {};
        wic_gpu gpu;
        wic_device_options device = {};
        this->units_ = units;
        work.warps = warps;
        work.shared_bytes = 32 * warps * static_cast<uint32_t>(sizeof(Out));
        work.user_bytes = o.user_bytes;
        device.kernel = kernel;
        device.describe = describe;
        device.context = this;
        int rc = wic_gpu_read(gpu_index, &gpu);
        rc = rc ? rc : wic_transfer_plan_choose(&gpu, &shape, &work, &device.plan);
        if (rc != 0) {
            this->fail("open", rc);
            return;
        }
        piece_units_ = device.plan.piece_units;
        this->open(o, shape.slot_bytes, device.plan.pieces * sizeof(Out), device,
                   std::move(argument));
    }

  private:
    static int describe(void *context, const wic_slot *in, const wic_slot *, wic_device_tile *out)
    {
        const part_flow *const self = static_cast<const part_flow *>(context);
        const size_t units = in->bytes / sizeof(In);
        const size_t pieces = (units + self->piece_units_ - 1) / self->piece_units_;
        *out = {static_cast<uint32_t>(units), pieces * sizeof(Out), 0};
        return 0;
    }

    size_t piece_units_ = 0;
};

#ifdef __CUDACC__
// The argument of the work, as wic::piece.
template <class In> struct read_piece : wic_piece {
    const In *in;

    __device__ explicit read_piece(const wic_piece &p)
        : wic_piece(p), in(static_cast<const In *>(p.in))
    {
    }
    __device__ strided begin() const
    {
        return {thread, threads};
    }
    __device__ strided end() const
    {
        return {units, threads};
    }
};

template <class Work, class Combine> struct reduction_work {
    Work work;
    Combine combine;
};

template <class In, class Out, uint32_t Warps, class Work>
__global__ void __launch_bounds__(32 * (Warps + WIC_SERVICE_WARPS))
    reduction_kernel(const __grid_constant__ wic_view view, const __grid_constant__ Work w)
{
    wic_resident(view, [&](const wic_piece &p) {
        Out *const values = static_cast<Out *>(p.work);
        values[p.thread] = w.work(read_piece<In>(p));
        combine_all(values, p.thread, p.threads, w.combine, [&] { p.sync(); });
        if (p.thread == 0) {
            static_cast<Out *>(p.tile_out)[p.piece] = values[0];
        }
    });
}

template <class In, class Out, uint32_t Warps = 16> class reduction : public part_flow<In, Out>
{
    static_assert(Warps > 0 && Warps <= 32 - WIC_SERVICE_WARPS, "a block has 32 warps, 3 serve");

  public:
    // On the current GPU. units: count in a full frame. combine: __device__, as the work.
    template <class Work, class Combine = plus>
    reduction(size_t units, const options &o, Work work, Combine combine = {})
    {
        using both = reduction_work<Work, Combine>;
        this->start(current_gpu(), units, o, Warps,
                    reinterpret_cast<const void *>(reduction_kernel<In, Out, Warps, both>),
                    std::make_shared<const both>(both{work, combine}));
    }
};
#endif
} // namespace wic
#endif
