// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic/guest.hpp on a GPU: grids and frames of many shapes, every element compared; guests that fill
// the GPU before a frame is there; each way in which a wait ends.
//
//   check_guest [--stopped]        exit 0, or 1 if a result is wrong; --stopped: this process is
//                                  stopped for 6 s while guests wait
#include "wic/guest.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <unistd.h>
#include <vector>

static int failures;

static void check(bool good, const char *what, const std::string &words)
{
    failures += !good;
    printf("  %s %s%s%s\n", good ? "ok  " : "FAIL", what, words.empty() ? "" : ": ", words.c_str());
    fflush(stdout);
}

static uint32_t noise(uint64_t at)
{
    at *= 0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(at >> 29 ^ at >> 47);
}

template <size_t bytes> struct unit {
    uint8_t b[bytes];
};

template <class In, class Out> __host__ __device__ Out mixed(const In &in, uint64_t place)
{
    Out out;
    for (size_t i = 0; i < sizeof(Out); i++) {
        out.b[i] =
            static_cast<uint8_t>(in.b[i % sizeof(In)] + in.b[(i * 5 + 3) % sizeof(In)] + place);
    }
    return out;
}

// seen: how many blocks ended for each reason.
template <class In, class Out> __global__ void mixing_kernel(wic::guest<In, Out> g, unsigned *seen)
{
    while (g.wait()) {
        for (auto i : g) {
            g.out[i] = mixed<In, Out>(g.in[i], i + g.frame);
        }
        g.done();
    }
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        atomicAdd(&seen[g.reason], 1);
    }
}

// Leaves no room for another block on a multiprocessor if each block has 1024 threads.
using plain = wic::guests<unit<4>, unit<4>>;
static const auto plain_kernel = mixing_kernel<unit<4>, unit<4>>;

static unsigned *seen; // pinned: by reason

static void forget()
{
    for (int i = 0; i < 8; i++) {
        __atomic_store_n(&seen[i], 0, __ATOMIC_RELAXED);
    }
}

static cudaStream_t stream;

static bool guests_leave(double seconds)
{
    const auto begin = std::chrono::steady_clock::now();
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
            seconds) {
            return false;
        }
        usleep(100);
    }
    return cudaStreamQuery(stream) == cudaSuccess;
}

struct shape {
    dim3 blocks, threads;
    size_t units;
    uint32_t slots;
    bool copies, each_frame;
};

template <size_t in_bytes, size_t out_bytes> static void check_frames(const shape &of)
{
    using In = unit<in_bytes>;
    using Out = unit<out_bytes>;
    const uint32_t blocks = of.blocks.x * of.blocks.y, threads = of.threads.x * of.threads.y;
    const uint64_t frames = 100;
    wic::guest_options o;
    o.slots = of.slots;
    o.copies = of.copies;
    const auto kernel = mixing_kernel<In, Out>;
    wic::guests<In, Out> s(of.units, kernel, {blocks, threads}, o);
    const auto size_of = [&](uint64_t n) {
        return n % 3 == 0 ? of.units : static_cast<size_t>(noise(n)) % (of.units + 1);
    };
    uint64_t done = 0, wrong = 0;
    const auto verify = [&](const wic::frame<const Out> &r) {
        const uint64_t n = done++;
        wrong += r.number() != n || r.size() != size_of(n);
        for (size_t i = 0; i < r.size(); i++) {
            In in;
            for (size_t k = 0; k < in_bytes; k++) {
                in.b[k] = static_cast<uint8_t>(noise(n * 7919 + i * in_bytes + k));
            }
            const Out want = mixed<In, Out>(in, i + n);
            wrong += memcmp(&want, &r[i], sizeof want) != 0;
        }
    };
    forget();
    if (!of.each_frame) {
        if (auto g = s.for_all()) {
            kernel<<<of.blocks, of.threads, 0, stream>>>(*g, seen);
        }
    }
    for (uint64_t n = 0; s && n < frames; n++) {
        if (of.each_frame) {
            if (auto g = s.for_frame(n)) {
                kernel<<<of.blocks, of.threads, 0, stream>>>(*g, seen);
            }
        }
        auto frame = s.acquire();
        if (!frame) {
            break;
        }
        for (size_t i = 0; i < size_of(n) * in_bytes; i++) {
            reinterpret_cast<uint8_t *>(frame->data())[i] =
                static_cast<uint8_t>(noise(n * 7919 + i));
        }
        s.publish(*frame, size_of(n));
        while (auto r = s.try_pop()) {
            verify(*r);
        }
    }
    s.close();
    while (auto r = s.pop()) {
        verify(*r);
    }
    const bool left = guests_leave(10);
    const unsigned reason = of.each_frame ? WIC_GUEST_HERE : WIC_GUEST_OVER;
    const bool reasons = seen[reason] == blocks * (of.each_frame ? frames : 1);
    char what[120];
    snprintf(what, sizeof what, "%u blocks of %u, %s, %zu units of %zu to %zu bytes, %u slots%s",
             blocks, threads, of.each_frame ? "a launch a frame" : "one launch", of.units, in_bytes,
             out_bytes, of.slots, of.copies ? ", copies" : "");
    check(s && left && reasons && done == frames && wrong == 0, what, s.error());
}

// Launches of ten frames, each of more blocks than fit, are queued before a frame is there.
static void check_full_gpu(bool copies)
{
    const size_t units = size_t{1} << 20;
    const wic::grid grid = {4096, 1024};
    wic::guest_options o;
    o.copies = copies;
    plain s(units, plain_kernel, grid, o);
    for (uint64_t n = 0; n < 10; n++) {
        if (auto g = s.for_frame(n)) {
            plain_kernel<<<grid.blocks, grid.threads, 0, stream>>>(*g, seen);
        }
    }
    usleep(200000);
    std::vector<unit<4>> frame(units);
    uint64_t done = 0, wrong = 0;
    for (uint64_t n = 0; n < 10; n++) {
        for (size_t i = 0; i < units; i++) {
            const uint32_t value = noise(n * units + i);
            memcpy(&frame[i], &value, sizeof value);
        }
        if (!s.push(frame.data())) {
            break;
        }
        const auto r = s.pop(20000000000);
        for (size_t i = 0; r && i < r->size(); i++) {
            const unit<4> want = mixed<unit<4>, unit<4>>(frame[i], i + n);
            wrong += memcmp(&want, &(*r)[i], sizeof want) != 0;
        }
        done += r && r->size() == units;
    }
    s.close();
    (void)s.pop();
    check(s && guests_leave(10) && done == 10 && wrong == 0,
          copies ? "guests that fill the GPU before their frames are there, copies"
                 : "guests that fill the GPU before their frames are there",
          s.error());
}

static void check_ends()
{
    {
        plain s(1000, plain_kernel, {1u << 20, 1024});
        const bool refused = !s.for_all();
        check(refused && s, "a grid that is not resident at once is refused", s.error());
    }
    {
        plain s(1000, plain_kernel, {4, 2048});
        check(!s, "a block that does not fit is refused", s.error());
    }
    forget();
    {
        plain s(1000, plain_kernel, {64, 128});
        if (auto g = s.for_all()) {
            plain_kernel<<<64, 128, 0, stream>>>(*g, seen);
        }
        usleep(20000);
        s.cancel();
        const bool left = guests_leave(5);
        check(left && seen[WIC_GUEST_LEFT] == 64, "cancel ends all waits", s.error());
    }
    forget();
    {
        wic::guest_options o;
        o.wait_ns = 50000000;
        plain s(1000, plain_kernel, {64, 128}, o);
        if (auto g = s.for_all()) {
            plain_kernel<<<64, 128, 0, stream>>>(*g, seen);
        }
        const bool left = guests_leave(5);
        check(left && seen[WIC_GUEST_LATE] == 64 && s, "a wait ends after its limit", s.error());
    }
    forget();
    {
        wic::guest_options o;
        o.hang_ns = 300000000;
        plain s(1000, plain_kernel, {64, 128}, o);
        std::vector<unit<4>> frame(1000);
        s.push(frame.data()); // and no guests
        check(!s.pop() && !s, "a frame without guests ends the stream", s.error());
    }
    forget();
    { // the frame is done when its guests are launched again
        plain s(1000, plain_kernel, {8, 128});
        std::vector<unit<4>> frame(1000);
        for (uint64_t n = 0; n < 40; n++) {
            if (auto g = s.for_frame(n)) {
                plain_kernel<<<8, 128, 0, stream>>>(*g, seen);
            }
            s.push(frame.data());
            (void)s.pop();
        }
        if (auto g = s.for_frame(0)) {
            plain_kernel<<<8, 128, 0, stream>>>(*g, seen);
        }
        check(guests_leave(5) && seen[WIC_GUEST_GONE] == 8 && s,
              "a guest of a frame that is gone leaves", s.error());
    }
}

// The parent is stopped for 6 s, longer than the kernel waits for its heartbeat.
static void check_stopped()
{
    const pid_t parent = getpid();
    if (fork() == 0) {
        sleep(2);
        kill(parent, SIGSTOP);
        sleep(6);
        kill(parent, SIGCONT);
        _exit(0);
    }
    cudaHostAlloc(reinterpret_cast<void **>(&seen), 64, cudaHostAllocMapped);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    forget();
    plain s(1000, plain_kernel, {64, 128});
    if (auto g = s.for_all()) {
        plain_kernel<<<64, 128, 0, stream>>>(*g, seen);
    }
    (void)s.pop(20000000000);
    check(!s && guests_leave(5) && seen[WIC_GUEST_LEFT] == 64,
          "a process that was stopped loses the stream, and its guests have left", s.error());
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--stopped") == 0) {
        check_stopped();
        return failures > 0;
    }
    if (cudaHostAlloc(reinterpret_cast<void **>(&seen), 64, cudaHostAllocMapped) != cudaSuccess) {
        fprintf(stderr, "there is no GPU\n");
        return 1;
    }
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    check_frames<4, 4>({1, 32, 1000, 4, false, false});
    check_frames<4, 4>({1, 64, 1, 1, false, false});
    check_frames<1, 1>({7, 96, 100003, 5, false, false});
    check_frames<3, 1>({64, 256, 70001, 8, false, false});
    check_frames<12, 8>({{8, 4}, {16, 16}, 40000, 2, false, false});
    check_frames<5, 24>({131, 1024, 20011, 4, true, false});
    check_frames<4, 16>({64, 128, 1000, 8, true, false});
    check_frames<4, 4>({300, 128, 1000, 40, false, false});
    check_frames<4, 4>({1, 64, 1000, 4, false, true});
    check_frames<4, 4>({2000, 512, 100000, 4, false, true});
    check_frames<4, 4>({2000, 512, 100000, 4, true, true});
    check_full_gpu(false);
    check_full_gpu(true);
    check_ends();
    printf("%d failures\n", failures);
    return failures > 0;
}
