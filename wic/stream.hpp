// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_STREAM_HPP
#define WIC_STREAM_HPP
// A stream of frames through the current GPU, whole: transfer plan, channels, the thread of the
// device proxy and the resident kernel are inside. For nvcc -std=c++17 --extended-lambda.
//
//   wic::stream<ushort2, short> s(pixels, {}, [] __device__(auto piece) {
//       for (auto i : piece)
//           piece.out[i] = ndvi(piece.in[i]);
//   });
//   while (camera.read(frame) && s.push(frame.data())) // copies into a pinned slot
//       while (auto r = s.try_pop())
//           show(r->data(), r->size());
//   s.close(); // then the rest
//   while (auto r = s.pop())
//       show(r->data(), r->size());
//   if (!s.error().empty())
//       puts(s.error().c_str());
//
// A frame has up to `units` units, each an In that becomes an Out. There is one result per frame,
// in the order of the frames. The stream holds up to 2 * slots frames; push fails if it is full and
// results are not popped.
//
// The work is called for each piece of a frame by all threads of its working warps, of which there
// are `Warps` in a block: the kernel is compiled for that many, whatever its registers. The piece
// and its results are in shared memory; piece.in, piece.out and the numbers of `for (auto i :
// piece)` begin at 0 with each piece, which begins with unit piece.first of its frame. (piece.tile
// is not the number of the frame; piece.user can have it.) The top of wic/device/wic_device.cuh
// lists what the work must not do: piece.sync() is its barrier, never __syncthreads().
//
// Without the copy: acquire() gives the slot itself, publish() sends it. Frames may be pushed by
// one thread and results popped by another; several threads of a side get frames in any order.
//
// With options.one_thread it has no thread of its own: one CPU works where else up to three do.
//
// A call that fails returns false or nothing, and error() has the reason as a sentence. A stream
// ends for good when the GPU or the work fails: each call fails from then on. wic/device/link.h
// lists CUDA calls to avoid while frames pass (cudaFree among them), wic/device/pause.h has the
// remedy.
#include "wic/device/wic_device.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <string>
#include <utility>
#include <vector>

#ifdef __CUDACC__
#include "wic/device/wic_device.cuh"
#define WIC_BOTH __host__ __device__ __forceinline__
#else
#define WIC_BOTH inline
#endif

namespace wic
{
struct options {
    uint32_t slots = 8;            // frames that wait or are worked on, and as many results
    int64_t push_ns = 10000000000; // push and acquire wait this long for a slot; WIC_FOREVER
    int64_t hang_ns = 0;           // these two as in struct wic_device_options
    int64_t idle_ns = 0;
    uint32_t nap_ns = 0;     // sleep between looks, as in struct wic_options
    uint32_t user_bytes = 0; // size of the part of frame::user() in piece.user; multiple of 16
    wic_share share = {};    // next to other kernels (wic/device/share.h)
    // The thread that pushes and pops serves the GPU as well, in these calls: one CPU in place of
    // up to three. Frames and results pass only while it calls; all calls are from one thread.
    bool one_thread = false;
};

class flow;

// A slot of the stream: one to be filled, or a result. The destructor gives it back; an acquired
// frame that was not published is sent without units then.
template <class T> class frame
{
  public:
    frame(frame &&other) noexcept
        : flow_(std::exchange(other.flow_, nullptr)), slot_(other.slot_),
          is_result_(other.is_result_)
    {
    }
    frame &operator=(frame &&) = delete;
    ~frame();

    T *data() const
    {
        return static_cast<T *>(slot_.data);
    }
    size_t size() const // count in a result; else the most that fit
    {
        return slot_.bytes / sizeof(T);
    }
    T &operator[](size_t i) const
    {
        return data()[i];
    }
    T *begin() const
    {
        return data();
    }
    T *end() const
    {
        return data() + size();
    }
    uint64_t number() const // count of frames before it; a result has that of its frame
    {
        return slot_.ticket;
    }
    void *user() const // WIC_USER_BYTES, copied from the frame to its result
    {
        return slot_.user;
    }

  private:
    friend class flow;
    frame(class flow *flow, const wic_slot &slot, bool is_result)
        : flow_(flow), slot_(slot), is_result_(is_result)
    {
    }
    class flow *flow_; // NULL: moved from, published
    wic_slot slot_;
    bool is_result_;
};

// Base of streams of all types; no CUDA.
class flow
{
  public:
    flow(const flow &) = delete;
    flow &operator=(const flow &) = delete;

    explicit operator bool() const // it was opened and has not failed
    {
        return device_ && wic_strerror(device_)[0] == '\0';
    }
    // The words of the last call that failed; "" before that.
    std::string error() const
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return error_;
    }
    // The share of the kernel of an opened stream.
    wic_shaped shaped() const
    {
        wic_shaped found = {};
        if (device_) {
            wic_device_shaped(device_, &found);
        }
        return found;
    }
    // Refuses frames from now on; the results of those before can still be popped.
    void close()
    {
        if (device_) {
            wic_close(in_.channel);
        }
    }
    // Ends at once; frames under way are lost.
    void cancel()
    {
        if (device_) {
            wic_abort(in_.channel);
            wic_abort(out_.channel);
        }
    }
    // Ends at once and frees everything; frames of the stream must be gone. False: the kernel does
    // not leave the GPU, the memory that it may use is kept, and the process can only end by _exit.
    bool stop()
    {
        cancel();
        if (!device_) {
            return true;
        }
        if (steps_) {
            while (goes_on_) {
                step();
            }
        } else {
            pthread_join(proxy_, nullptr);
        }
        const bool good = wic_device_close(device_, nullptr) == 0;
        if (!good) {
            keep({in_.memory, out_.memory, argument_});
            fail("stop: a kernel or a copy is still on the GPU, and its memory is kept");
        }
        device_ = nullptr;
        return good;
    }

  protected:
    flow() = default;
    ~flow()
    {
        stop();
    }

    void fail(const std::string &words)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (device_ || error_.empty()) { // else it has why there is no device
            error_ = words;
        }
    }

    // Sets the words for a call that returned an error.
    void fail(const char *call, int rc)
    {
        const std::string of = std::string(call) + ": ";
        if (rc == -ETIMEDOUT) {
            fail(of + "no slot became free in time: pop results, which hold slots, too, or raise "
                      "options.push_ns");
        } else if (rc == -EPIPE) {
            fail(of + "the stream is closed");
        } else {
            const char *const why = wic_strerror(device_);
            fail(of + (why[0]             ? why
                       : rc == -ECANCELED ? "the stream was cancelled"
                                          : strerror(-rc)));
        }
    }

    // Opens the stream: two channels, a device by these options, whose channels are set here, and
    // its proxy. argument: kept for as long as the kernel may run.
    void open(const options &o, size_t in_bytes, size_t out_bytes, wic_device_options device,
              std::shared_ptr<const void> argument)
    {
        argument_ = std::move(argument);
        push_ns_ = o.push_ns;
        if (!in_.make(o, in_bytes) || !out_.make(o, out_bytes)) {
            fail("open: no memory for " + std::to_string(o.slots) + " slots of " +
                 std::to_string(in_bytes) + " and " + std::to_string(out_bytes) +
                 " bytes, or not 1 to " + std::to_string(WIC_SLOTS_MAX) + " slots");
            return;
        }
        if (o.one_thread && device.stays) {
            fail("open: one_thread is not for guests, which wait for a kernel that is there before "
                 "the first frame");
            return;
        }
        device.in = in_.channel;
        device.out = out_.channel;
        device.argument = argument_.get();
        device.hang_ns = o.hang_ns;
        device.idle_ns = o.idle_ns;
        device.nap_ns = o.nap_ns;
        device.share = o.share;
        steps_ = o.one_thread;
        const int rc = wic_device_open(&device, &device_);
        if (rc != 0) {
            device_ = nullptr;
            fail("open", rc);
        } else if (!steps_ && pthread_create(&proxy_, nullptr, run, device_) != 0) {
            (void)wic_device_close(std::exchange(device_, nullptr), nullptr);
            fail("open: no thread for the device proxy");
        }
    }

    template <class T> std::optional<frame<T>> take_free(const char *call)
    {
        wic_slot slot;
        const int rc = wait(push_ns_, [&](int64_t ns) {
            return device_ ? wic_acquire(in_.channel, ns, &slot) : -EPIPE;
        });
        if (rc == 0) {
            return frame<T>(this, slot, false);
        }
        fail(call, rc);
        return std::nullopt;
    }

    template <class T> std::optional<frame<T>> take_result(int64_t timeout_ns)
    {
        wic_slot slot;
        const int rc = wait(timeout_ns, [&](int64_t ns) {
            return device_ ? wic_wait(out_.channel, ns, &slot) : -EPIPE;
        });
        if (rc != 0) {
            if (rc != -EPIPE && rc != -ETIMEDOUT) {
                fail("pop", rc);
            }
            return std::nullopt;
        }
        return frame<T>(this, slot, true);
    }

    template <class T> bool send(frame<T> &frame, size_t bytes)
    {
        if (!frame.flow_) {
            fail("publish: the frame was published before");
            return false;
        }
        frame.flow_ = nullptr;
        const int rc = wic_publish(in_.channel, &frame.slot_, bytes);
        if (rc != 0) {
            fail("publish", rc);
        }
        step();
        return rc == 0;
    }

  private:
    template <class T> friend class frame;
    struct slots {
        wic_channel *channel = nullptr;
        std::shared_ptr<void> memory;

        bool make(const options &of, size_t bytes)
        {
            wic_options o = {};
            o.slots = of.slots;
            o.nap_ns = of.nap_ns;
            o.slot_bytes = bytes;
            const size_t all = (wic_channel_bytes(&o) + 4095) / 4096 * 4096;
            memory = {all > 0 ? aligned_alloc(4096, all) : nullptr, free};
            return memory && wic_channel_init(memory.get(), &o, &channel) == 0;
        }
    };
    // For the rest of the process.
    static void keep(const std::vector<std::shared_ptr<const void>> &memory)
    {
        static std::mutex mutex;
        static auto *const kept = new std::vector<std::shared_ptr<const void>>;
        const std::lock_guard<std::mutex> lock(mutex);
        kept->insert(kept->end(), memory.begin(), memory.end());
    }
    static void *run(void *device)
    {
        (void)wic_device_run(static_cast<wic_device *>(device)); // wic_strerror has why it ended
        return nullptr;
    }

    // With one_thread: serves the GPU. Without it several threads call this: it writes nothing.
    void step()
    {
        if (steps_) {
            goes_on_ = goes_on_ && device_ && wic_device_step(device_) == 1;
        }
    }
    // Returns call(time limit). With one_thread it serves the GPU between tries without waiting.
    template <class Call> int wait(int64_t timeout_ns, Call call)
    {
        const auto begin = std::chrono::steady_clock::now();
        for (;;) {
            step();
            const int rc = call(steps_ ? 0 : timeout_ns);
            const auto waited = std::chrono::steady_clock::now() - begin;
            const bool is_over =
                timeout_ns != WIC_FOREVER && waited >= std::chrono::nanoseconds(timeout_ns);
            if (!steps_ || rc != -ETIMEDOUT || is_over) {
                return rc;
            }
        }
    }

    slots in_, out_;
    std::shared_ptr<const void> argument_;
    wic_device *device_ = nullptr;
    bool steps_ = false, goes_on_ = true; // one_thread; no step was the last one
    pthread_t proxy_;
    int64_t push_ns_ = 0;
    mutable std::mutex mutex_; // protects error_
    std::string error_;
};

template <class T> frame<T>::~frame()
{
    if (flow_ && is_result_) {
        (void)wic_release(flow_->out_.channel, &slot_);
    } else if (flow_) {
        (void)wic_publish(flow_->in_.channel, &slot_, 0);
    }
}

// Frames of In, results of Out: push and pop.
template <class In, class Out> class typed : public flow
{
    static_assert(alignof(In) <= 16 && alignof(Out) <= 16, "a slot is aligned to 16 bytes");

  public:
    // Copies n units and sends them; waits for a slot, at most options.push_ns.
    bool push(const In *units, size_t n)
    {
        if (!is_size("push", n)) {
            return false;
        }
        std::optional<frame<In>> to = take_free<In>("push");
        if (to) {
            memcpy(static_cast<void *>(to->data()), units, n * sizeof(In));
        }
        return to && send(*to, n * sizeof(In));
    }
    bool push(const In *units)
    {
        return push(units, units_);
    }
    // A slot to be filled in place, which waits as push does; then publish.
    std::optional<frame<In>> acquire()
    {
        return take_free<In>("acquire");
    }
    bool publish(frame<In> &filled, size_t n)
    {
        return is_size("publish", n) && send(filled, n * sizeof(In));
    }
    bool publish(frame<In> &filled)
    {
        return publish(filled, units_);
    }
    // The next result; nothing: it is not there, the stream has ended, or it failed.
    std::optional<frame<const Out>> try_pop()
    {
        return take_result<const Out>(0);
    }
    // Waits for it; nothing: timeout_ns passed, all results of a closed stream are popped, or it
    // failed.
    std::optional<frame<const Out>> pop(int64_t timeout_ns = WIC_FOREVER)
    {
        return take_result<const Out>(timeout_ns);
    }
    size_t units() const // count in a full frame
    {
        return units_;
    }

  protected:
    size_t units_ = 0;
    bool is_whole_ = false; // frames have all their units, or none

  private:
    bool is_size(const char *call, size_t n)
    {
        const bool good = n <= units_ && (!is_whole_ || n == units_);
        if (!good) {
            fail(std::string(call) + ": " + std::to_string(n) + " units, and a frame has " +
                 (is_whole_ ? "" : "up to ") + std::to_string(units_));
        }
        return good;
    }
};

// Independent units: the parts of wic::stream without CUDA.
template <class In, class Out> class unit_flow : public typed<In, Out>
{
  protected:
    void start(int gpu_index, size_t units, const options &o, uint32_t warps, const void *kernel,
               std::shared_ptr<const void> argument)
    {
        const wic_tile_shape shape = {units * sizeof(In), sizeof(In), sizeof(Out)};
        wic_work work = {};
        wic_gpu gpu;
        wic_transfer_row row;
        wic_device_options device = {};
        this->units_ = units;
        work.warps = warps;
        work.user_bytes = o.user_bytes;
        device.kernel = kernel;
        int rc = wic_gpu_read(gpu_index, &gpu);
        rc = rc ? rc : wic_transfer_plan_choose(&gpu, &shape, &work, &device.plan);
        rc = rc ? rc : wic_transfer_row_find(&gpu, shape.slot_bytes, &row);
        if (rc == 0) {
            // Results are in shared memory first: the work may write them in any order and width.
            row.results = WIC_PUSH_BULK;
            rc = wic_transfer_plan_by(&gpu, &shape, &work, &row, &device.plan);
        }
        if (rc != 0) {
            this->fail("open", rc);
        } else {
            this->open(o, shape.slot_bytes, units * sizeof(Out), device, std::move(argument));
        }
    }
};

#ifdef __CUDACC__
// Iterates over a thread's part of the units of a piece.
struct strided {
    uint32_t i, step;

    WIC_BOTH uint32_t operator*() const
    {
        return i;
    }
    WIC_BOTH void operator++()
    {
        i += step;
    }
    WIC_BOTH bool operator!=(const strided &end) const
    {
        return i < end.i;
    }
};

// The argument of the work: units, first, tile, user, thread, threads and sync() of wic_piece.
template <class In, class Out> struct piece : wic_piece {
    const In *in;
    Out *out;

    __device__ explicit piece(const wic_piece &p)
        : wic_piece(p), in(static_cast<const In *>(p.in)), out(static_cast<Out *>(p.out))
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

template <class In, class Out, uint32_t Warps, class Work>
__global__ void __launch_bounds__(32 * (Warps + WIC_SERVICE_WARPS))
    stream_kernel(const __grid_constant__ wic_view view, const __grid_constant__ Work work)
{
    wic_resident(view, [&](const wic_piece &p) { work(piece<In, Out>(p)); });
}

inline int current_gpu()
{
    int gpu = 0;
    return cudaGetDevice(&gpu) == cudaSuccess ? gpu : 0; // wic_gpu_read has the reason
}

template <class In, class Out, uint32_t Warps = 16> class stream : public unit_flow<In, Out>
{
    static_assert(Warps > 0 && Warps <= 32 - WIC_SERVICE_WARPS, "a block has 32 warps, 3 serve");

  public:
    // On the current GPU. units: count in a full frame. The captures of the work are copied.
    template <class Work> stream(size_t units, const options &o, Work work)
    {
        this->start(current_gpu(), units, o, Warps,
                    reinterpret_cast<const void *>(stream_kernel<In, Out, Warps, Work>),
                    std::make_shared<const Work>(work));
    }
};
#endif
} // namespace wic
#endif
