// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a resident kernel leaves the GPU, and a launch on a full GPU: each is tried
// and measured. A kernel that takes all shared memory of every multiprocessor, and so cannot run
// beside another, checks that the GPU is free.
#include "wic/bench/base/channel.cuh"
#include "wic/bench/hard_links.cuh"
#include "wic/device/wic_device.cuh"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <ctime>
#include <thread>

namespace
{
constexpr uint32_t slots = 32;
constexpr size_t tile_bytes = 65536;
constexpr double free_ms = 50; // within which the GPU must be free
constexpr uint64_t silent_ns = 300000000, hog_ns = 3000000000, trap_tile = 20;

// Takes all of the GPU for so long. Ends by itself.
__global__ void hog(uint64_t ns)
{
    const uint64_t start = wic_now();
    while (wic_now() - start < ns) {
        __nanosleep(1000);
    }
}

__global__ void __launch_bounds__(1024) trapping(const __grid_constant__ wic_view view, uint64_t at)
{
    wic_resident(view, [&](const wic_piece &piece) {
        if (piece.tile >= at) {
            asm volatile("trap;");
        }
    });
}

bool all_good;

__attribute__((format(printf, 2, 3))) void report(bool good, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%-4s ", good ? "ok" : "FAIL");
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
    all_good = all_good && good;
}

void sleep_ms(long ms)
{
    const timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, nullptr);
}

double ms_since(double start)
{
    return 1e3 * (bench_seconds() - start);
}

class whole_gpu
{
  public:
    explicit whole_gpu(const wic_gpu &gpu) : gpu_(gpu)
    {
        CUDA_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_MUST(cudaFuncSetAttribute(hog, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(gpu.shared_block_bytes)));
        take(0);
        CUDA_MUST(cudaStreamSynchronize(stream_)); // loaded from here on
    }

    ~whole_gpu()
    {
        cudaStreamDestroy(stream_);
    }

    void take(uint64_t ns)
    {
        void *arguments[] = {&ns};
        CUDA_MUST(cudaLaunchKernel(reinterpret_cast<const void *>(hog), dim3(gpu_.multiprocessors),
                                   dim3(32), arguments, gpu_.shared_block_bytes, stream_));
    }

    // Milliseconds until it was had, and given back; 5000: not to be had.
    double wait(double start)
    {
        while (cudaStreamQuery(stream_) == cudaErrorNotReady && ms_since(start) < 5000) {
        }
        return ms_since(start);
    }

    double taken_after(double start)
    {
        take(0);
        return wait(start);
    }

  private:
    const wic_gpu gpu_;
    cudaStream_t stream_;
};

wic_transfer_plan make_plan(const wic_gpu &gpu)
{
    const wic_tile_shape shape = {tile_bytes, in_unit, out_unit};
    wic_transfer_plan plan;
    if (wic_transfer_plan_choose(&gpu, &shape, nullptr, &plan) != 0) {
        bench_fail("no transfer plan for this GPU", __LINE__);
    }
    plan.blocks = gpu.multiprocessors; // so that a kernel that fills the GPU waits for its end
    return plan;
}

// Channels, the device proxy on a thread, a producer, a consumer.
class stream
{
  public:
    stream(const wic_gpu &gpu, const void *kernel, const void *argument)
        : in(slots, tile_bytes, BENCH_PINNED), out(slots, tile_bytes / 2, BENCH_PINNED)
    {
        wic_device_options options = {};
        options.in = in.get();
        options.out = out.get();
        options.plan = make_plan(gpu);
        options.kernel = kernel;
        options.argument = argument;
        if (wic_device_open(&options, &device) != 0) {
            bench_fail("the device cannot be opened", __LINE__);
        }
        proxy = std::thread([this] { rc = wic_device_run(device); });
        consumer = std::thread([this] { consume(); });
    }

    // As many tiles as that, or until the channel says no.
    void send(uint64_t tiles)
    {
        wic_slot slot;
        while (tiles-- > 0 && wic_acquire(in.get(), WIC_FOREVER, &slot) == 0 &&
               wic_publish(in.get(), &slot, tile_bytes) == 0) {
        }
    }

    // The result of the n-th tile has come, or will not; when it came.
    double result(uint64_t n)
    {
        const double limit = bench_seconds() + 10;
        while (seen < n && bench_seconds() < limit) {
        }
        return bench_seconds();
    }

    // Milliseconds until the device proxy was back.
    double join(double start)
    {
        proxy.join();
        const double ms = ms_since(start);
        consumer.join();
        return ms;
    }

    wic_device_stats close()
    {
        wic_device_stats stats;
        wic_device_close(device, &stats);
        return stats;
    }

    bool both_aborted() const
    {
        wic_slot slot;
        return wic_acquire(in.get(), 0, &slot) == -ECANCELED &&
               wic_wait(out.get(), 0, &slot) == -ECANCELED;
    }

    bench_channel in, out;
    std::atomic<uint64_t> seen{0};
    int rc = 0;

  private:
    void consume()
    {
        wic_slot slot;
        while (wic_wait(out.get(), WIC_FOREVER, &slot) == 0) {
            seen++;
            wic_release(out.get(), &slot);
        }
    }

    wic_device *device;
    std::thread proxy, consumer;
};

// --- with channels ---

void try_abort(const wic_gpu &gpu, whole_gpu &whole, bool of_in)
{
    stream s(gpu, resident_kernel(WAIT_PARKED), nullptr);
    std::thread producer([&] { s.send(UINT64_MAX); });
    sleep_ms(100);
    const double start = bench_seconds();
    wic_abort(of_in ? s.in.get() : s.out.get());
    const double back = s.join(start), taken = whole.taken_after(start);
    producer.join();
    const bool good = s.rc == -ECANCELED && s.both_aborted() && s.seen > 0 && taken < free_ms;
    report(good, "abort of %s after %llu tiles: run returned %d after %.2f ms, GPU free after %.2f",
           of_in ? "in" : "out", static_cast<unsigned long long>(s.seen), s.rc, back, taken);
    s.close();
}

void try_idle_and_end(const wic_gpu &gpu, whole_gpu &whole)
{
    stream s(gpu, resident_kernel(WAIT_PARKED), nullptr);
    constexpr uint64_t tiles = 1000;
    s.send(tiles);
    const double last = s.result(tiles);
    const double taken = whole.taken_after(last);
    report(s.seen == tiles && taken < free_ms,
           "no more tiles for now: GPU free %.2f ms after the last result", taken);
    s.send(tiles);
    const double start = s.result(2 * tiles);
    wic_close(s.in.get());
    const double back = s.join(start), free_after = whole.taken_after(start);
    const wic_device_stats stats = s.close();
    const double left = 1e-6 * static_cast<double>(stats.leave_ns);
    report(s.rc == 0 && s.seen == 2 * tiles && stats.launches > 1 && stats.timeouts == 0,
           "it came back: %llu tiles in %u launches, run returned %d",
           static_cast<unsigned long long>(stats.tiles), stats.launches, s.rc);
    report(left < free_ms && free_after < free_ms,
           "end of the stream: kernel gone in %.2f ms; %.2f ms after the last result run was back, "
           "after %.2f the GPU free",
           left, back, free_after);
}

// Last of all: the process loses its device.
void try_trap(const wic_gpu &gpu)
{
    const uint64_t at = trap_tile;
    stream s(gpu, reinterpret_cast<const void *>(trapping), &at);
    std::thread producer([&] { s.send(UINT64_MAX); });
    const double back = s.join(bench_seconds());
    producer.join();
    report(s.rc == -EIO && s.both_aborted() && back < 5000,
           "trap in tile %llu: %llu results, run returned %d after %.2f ms, channels aborted: %s",
           static_cast<unsigned long long>(at), static_cast<unsigned long long>(s.seen), s.rc, back,
           s.both_aborted() ? "yes" : "no");
    s.close();
}

// --- the link alone ---

class bare_link
{
  public:
    bare_link(const wic_transfer_plan &plan, uint64_t beat_ns)
        : in(slots, tile_bytes, BENCH_PINNED), out(slots, tile_bytes / 2, BENCH_PINNED)
    {
        wic_slot first_in, first_out; // where the slots begin
        if (wic_acquire(in.get(), 0, &first_in) != 0 ||
            wic_acquire(out.get(), 0, &first_out) != 0) {
            bench_fail("an empty channel has no slot", __LINE__);
        }
        wic_link_options options = {};
        options.in = first_in.data;
        options.out = first_out.data;
        options.in_stride = wic_slot_stride(tile_bytes);
        options.out_stride = wic_slot_stride(tile_bytes / 2);
        options.in_slots = options.out_slots = slots;
        options.plan = plan;
        options.kernel = resident_kernel(WAIT_PARKED);
        options.beat_ns = beat_ns;
        rc = wic_link_create(&options, &link);
    }

    ~bare_link()
    {
        wic_link_destroy(link);
    }

    // Starts, gets one tile through and ends. 0 or what went wrong.
    int serve_one()
    {
        int result = wic_link_start(link, 0, 0);
        if (result != 0) {
            return result;
        }
        const wic_link_tile tile = {0, tile_bytes / in_unit, tile_bytes, 0, nullptr, 0};
        result = wic_link_post(link, &tile);
        const double limit = bench_seconds() + 1;
        while (result == 0 && !wic_link_done(link, 0)) {
            result = bench_seconds() < limit ? 0 : -ETIMEDOUT;
        }
        wic_link_close(link, 1);
        const int left = wic_link_join(link, WIC_LINK_BEAT_NS);
        return result ? result : left;
    }

    bench_channel in, out;
    wic_link *link = nullptr;
    int rc;
};

void try_silence(const wic_gpu &gpu)
{
    bare_link l(make_plan(gpu), silent_ns);
    int rc = l.rc ? l.rc : wic_link_start(l.link, 0, 0);
    const double start = bench_seconds();
    rc = rc ? rc : wic_link_join(l.link, WIC_LINK_BEAT_NS);
    const double left = ms_since(start), silent = 1e-6 * static_cast<double>(silent_ns);
    const int again = rc ? rc : l.serve_one();
    report(rc == 0 && again == 0 && left > 0.9 * silent && left < silent + 100,
           "silent host, limit %.0f ms: kernel left after %.2f ms (%d); next start, a tile and the "
           "end: %d",
           silent, left, rc, again);
}

void try_residency(const wic_gpu &gpu)
{
    wic_transfer_plan plan = make_plan(gpu);
    plan.blocks *= 100;
    const int many = bare_link(plan, 0).rc;
    report(many == -ENOSPC, "a plan of %u blocks is refused with %d", plan.blocks, many);
    plan = make_plan(gpu);
    plan.work_bytes = gpu.shared_block_bytes;
    const int big = bare_link(plan, 0).rc;
    report(big == -E2BIG, "a plan with %u bytes of shared memory a block is refused with %d",
           wic_transfer_plan_shared_bytes(&plan), big);
}

void try_full_device(const wic_gpu &gpu, whole_gpu &whole)
{
    bare_link l(make_plan(gpu), 0);
    const double start = bench_seconds();
    whole.take(hog_ns);
    sleep_ms(50); // it is there
    const int rc = l.rc ? l.rc : wic_link_start(l.link, 0, 0);
    const double busy = ms_since(start);
    const double gone = whole.wait(start);
    const int again = l.rc ? l.rc : l.serve_one();
    constexpr double limit = 1e-6 * WIC_LINK_START_NS;
    report(rc == -EBUSY && busy >= limit && busy < limit + 500 && again == 0,
           "a device that somebody fills for %.0f ms: start returned %d after %.0f ms; next start, "
           "a tile and the end: %d",
           gone, rc, busy, again);
}
} // namespace

bool ways_out()
{
    wic_gpu gpu;
    if (wic_gpu_read(0, &gpu) != 0) {
        bench_fail("the GPU does not answer", __LINE__);
    }
    all_good = true;
    {
        whole_gpu whole(gpu);
        try_abort(gpu, whole, true);
        try_abort(gpu, whole, false);
        try_idle_and_end(gpu, whole);
        try_silence(gpu);
        try_residency(gpu);
        try_full_device(gpu, whole);
        const wic_transfer_plan plan = make_plan(gpu);
        std::string text;
        for (const bool rounds : {true, false}) {
            const bool wrapped = counters_wrap(plan, rounds, &text);
            report(wrapped, "%s", text.c_str());
        }
        const bool refused = too_long_is_refused(plan, &text);
        report(refused, "%s", text.c_str());
        const bool behind = deaf_kernel_is_left_behind(plan, &text);
        report(behind, "%s", text.c_str());
    }
    try_trap(gpu);
    return all_good;
}
