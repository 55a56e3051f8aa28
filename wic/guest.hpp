// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_GUEST_HPP
#define WIC_GUEST_HPP
// A stream (wic/stream.hpp) whose work is done by an ordinary kernel of any grid: its blocks are
// guests, which wait for frames of the stream, read them and write their results.
//
//   __global__ void ndvi_kernel(wic::guest<ushort2, short> g)
//   {
//       while (g.wait()) { // all threads of a block
//           for (auto i : g)
//               g.out[i] = ndvi(g.in[i]);
//           g.done();
//       }
//   }
//   wic::guests<ushort2, short> s(pixels, ndvi_kernel, {blocks, 256});
//   if (auto g = s.for_all())
//       ndvi_kernel<<<blocks, 256, 0, stream>>>(*g);
//   s.push(frame); // and the rest as in wic/stream.hpp
//
// The range of g has each unit of the frame once among the threads of the grid. g.wait() waits for
// the next frame; when it is false no frame follows, and g.reason has why. Between wait and
// done of a frame blocks may use __syncthreads() and whatever else a kernel may use. A frame's
// result is there when all blocks of the grid have called done().
//
// Two ways to launch:
//
//   for_all()     one launch, whose blocks wait for frame after frame. They need each other, so all
//                 must be resident at once: refused if the grid is larger than the GPU.
//   for_frame(n)  a launch for each frame, whose wait() is true once. Any grid. To be launched in
//                 the order of the frames, in one stream; they may be launched before the frames
//                 are pushed.
//
// A guest never waits for an event that needs its room on the GPU: the stream's own kernel, one
// block of four warps, is resident before for_all() or for_frame() return, and stays until the end
// of the stream. If it must leave before, because the process was stopped for 5 s, it ends the
// stream, and with it all waits. The producer is the host. Do not make it wait for other kernels of
// the same GPU that are launched after guests: these may find no room.
//
// The kernel is a parameter of the constructor, which loads and examines it, because a kernel that
// is loaded at its first launch may wait for others. Guests must have left before the stream is
// destroyed; they leave after close() and the last frame, or after cancel(). While the stream is
// open wic_gpu_pause() runs out of time: other streams of the process wait for that, up to 90 s,
// when they are destroyed. A wait of a guest ends after options.wait_ns.
//
// Units are read where the frame is: in pinned memory, over the link, or, with options.copies, in
// device memory, where copy engines bring frames, and from where they take the results.
#include "wic/stream.hpp"

#ifdef __CUDACC__
#include "wic/depend/guest.cuh"

#include <ctime>
#endif

namespace wic
{
// A launch of guests: each frame is read by all of its blocks.
struct grid {
    uint32_t blocks, threads; // threads of a block
    size_t shared_bytes = 0;  // dynamic
};

struct guest_options : options {
    bool copies = false;           // frames are in device memory
    int64_t wait_ns = 60000000000; // longest wait of a guest, > 0
};

// The parts of wic::guests without CUDA.
template <class In, class Out> class guest_flow : public typed<In, Out>
{
  protected:
    // kernel: the Monitor's
    void start(int gpu_index, size_t units, const guest_options &o, const void *kernel,
               std::shared_ptr<const void> argument)
    {
        wic_work work = {};
        wic_gpu gpu;
        wic_device_options device = {};
        this->units_ = units;
        work.warps = 1;
        device.kernel = kernel;
        device.stays = true;
        device.describe = describe;
        if (units == 0 || units > WIC_LINK_UNITS_MAX) {
            this->fail("open: a frame has 1 to " + std::to_string(WIC_LINK_UNITS_MAX) + " units");
            return;
        }
        int rc = wic_gpu_read(gpu_index, &gpu);
        rc = rc ? rc
                : wic_transfer_plan_whole(&gpu, o.copies ? WIC_COPY : WIC_IN_PLACE,
                                          static_cast<uint32_t>(units), &work, &device.plan);
        if (rc != 0) {
            this->fail("open", rc);
            return;
        }
        device.plan.blocks = device.plan.pulls = 1;
        this->open(o, units * sizeof(In), units * sizeof(Out), device, std::move(argument));
    }

  private:
    static int describe(void *, const wic_slot *in, const wic_slot *, wic_device_tile *out)
    {
        const size_t units = in->bytes / sizeof(In);
        *out = {static_cast<uint32_t>(units), units * sizeof(Out), 0};
        return 0;
    }
};

#ifdef __CUDACC__
// The argument of a guest's kernel, by value.
template <class In, class Out> class guest
{
  public:
    const In *in = nullptr; // units of the frame
    Out *out = nullptr;     // their results
    uint32_t units = 0;
    uint64_t frame = 0;                    // number
    wic_guest_end reason = WIC_GUEST_HERE; // reason why wait() is false; HERE after the last frame

    __host__ guest(const wic_guest_view &view, uint64_t first, uint64_t frames)
        : view_(view), next_(first), left_(frames)
    {
    }

    // Waits for the next frame. False: no frame follows. All threads of the block.
    __device__ bool wait()
    {
        __shared__ uint64_t shared;
        if (left_ == 0 || reason != WIC_GUEST_HERE) {
            return false;
        }
        if (rank() == 0) {
            uint32_t low = 0;
            const wic_guest_end seen = wic_guest_await(view_, next_, &low);
            shared = uint64_t{seen} << 32 | low;
        }
        __syncthreads();
        const uint64_t seen = shared;
        __syncthreads();
        reason = static_cast<wic_guest_end>(seen >> 32);
        const wic_guest_tile tile = wic_guest_find(view_, next_, static_cast<uint32_t>(seen));
        in = static_cast<const In *>(tile.in);
        out = static_cast<Out *>(tile.out);
        units = tile.units;
        frame = next_++;
        left_--;
        return reason == WIC_GUEST_HERE;
    }
    // The block is done with the frame. All threads of the block, once after each wait.
    __device__ void done()
    {
        __syncthreads();
        if (rank() == 0) {
            wic_guest_finish(view_, frame);
        }
    }

    __device__ strided begin() const
    {
        const uint32_t threads = blockDim.x * blockDim.y * blockDim.z;
        return {block() * threads + rank(), blocks() * threads};
    }
    __device__ strided end() const
    {
        return {units, 0};
    }

  private:
    __device__ static uint32_t rank()
    {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    __device__ static uint32_t block()
    {
        return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    __device__ static uint32_t blocks()
    {
        return gridDim.x * gridDim.y * gridDim.z;
    }

    wic_guest_view view_;
    uint64_t next_, left_; // next frame, count of frames from there
};

static __global__ void guest_monitor(const __grid_constant__ wic_view view, wic_guest_desk *desk)
{
    wic_guest_host(view, desk);
}

template <class In, class Out> class guests : public guest_flow<In, Out>
{
  public:
    // On the current GPU. units: count in a full frame. kernel: launched with this grid.
    template <class... Arguments>
    guests(size_t units, void (*kernel)(Arguments...), const grid &g, const guest_options &o = {})
        : grid_(g), wait_ns_(static_cast<uint64_t>(o.wait_ns))
    {
        if (examine(reinterpret_cast<const void *>(kernel)) && make_desk()) {
            this->start(current_gpu(), units, o, reinterpret_cast<const void *>(guest_monitor),
                        std::make_shared<const desk_holder>(desk_holder{desk_.get(), desk_}));
        }
    }
    ~guests()
    {
        this->stop();
    }

    // The argument for one launch, whose blocks wait for all frames. Nothing: error() has why.
    std::optional<guest<In, Out>> for_all()
    {
        if (grid_.blocks > resident_) {
            this->fail("for_all: of " + std::to_string(grid_.blocks) + " blocks " +
                       std::to_string(resident_) +
                       " can be resident at once, and blocks that wait for frame after frame need "
                       "each other: use fewer blocks, or for_frame");
            return std::nullopt;
        }
        return enter("for_all", 0, UINT64_MAX);
    }
    // The argument for the launch that reads this frame.
    std::optional<guest<In, Out>> for_frame(uint64_t number)
    {
        return enter("for_frame", number, 1);
    }

  private:
    // The kernel's argument, and the memory that it points to.
    struct desk_holder {
        wic_guest_desk *argument;
        std::shared_ptr<wic_guest_desk> owner;
    };

    bool refuse(const char *what, cudaError_t error)
    {
        if (error != cudaSuccess) {
            (void)cudaGetLastError();
            this->fail(std::string("open: ") + what + ": " + cudaGetErrorString(error));
        }
        return error == cudaSuccess;
    }
    // Loads the kernel, too.
    bool examine(const void *kernel)
    {
        int each = 0, processors = 0;
        const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, kernel, static_cast<int>(grid_.threads), grid_.shared_bytes);
        if (!refuse("the guests' kernel cannot be examined", error) ||
            !refuse("the GPU cannot be read",
                    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                           current_gpu()))) {
            return false;
        }
        if (each == 0 || grid_.blocks == 0 || wait_ns_ - 1 > INT64_MAX - 1) {
            this->fail("open: no block of the guests' kernel fits on a multiprocessor, or the grid "
                       "or wait_ns is 0");
            return false;
        }
        // The Monitor's block may keep one multiprocessor from having any.
        resident_ = static_cast<uint64_t>(each) * static_cast<uint64_t>(processors - 1);
        return true;
    }
    bool make_desk()
    {
        void *memory = nullptr;
        const cudaError_t error = cudaHostAlloc(&memory, sizeof(wic_guest_desk),
                                                cudaHostAllocMapped | cudaHostAllocPortable);
        if (refuse("no pinned memory", error)) {
            memset(memory, 0, sizeof(wic_guest_desk));
            desk_ = {static_cast<wic_guest_desk *>(memory), cudaFreeHost};
        }
        return desk_ != nullptr;
    }
    std::optional<guest<In, Out>> enter(const char *call, uint64_t first, uint64_t frames)
    {
        const timespec nap = {0, 20000};
        while (*this && __atomic_load_n(&desk_->is_open, __ATOMIC_ACQUIRE) == 0) {
            nanosleep(&nap, nullptr);
        }
        if (!*this) {
            this->fail(call, -EPIPE);
            return std::nullopt;
        }
        return guest<In, Out>(wic_guest_view_of(desk_->view, grid_.blocks, wait_ns_), first,
                              frames);
    }

    const grid grid_;
    const uint64_t wait_ns_;
    uint64_t resident_ = 0; // the most blocks of the guests' kernel
    std::shared_ptr<wic_guest_desk> desk_;
};
#endif
} // namespace wic
#endif
