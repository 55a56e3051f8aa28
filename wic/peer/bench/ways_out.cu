// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way in which the kernels of a wic_peer leave, and a start that is refused. A kernel that
// takes all multiprocessors checks that the GPUs are free. Trials that end or stop a process have a
// child, which is this program with one of the parts "trap" and "silent".
#include "wic/device/link.h"
#include "wic/peer/bench/run.cuh"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{
constexpr uint64_t endless = uint64_t{1} << 40;
constexpr uint64_t limit_ns = 300000000;
constexpr double leave_ms = 100; // within which kernels leave after a stop

enum way_mistake : uint32_t { WAY_NONE, WAY_ABSENT, WAY_TRAP };

struct argument {
    way_mistake mistake;
    uint64_t at; // chunk
};

__global__ void __launch_bounds__(peer_threads_most, 1)
    way_kernel(const __grid_constant__ wic_peer_view view, const __grid_constant__ argument a)
{
    if (a.mistake == WAY_ABSENT) {
        if (threadIdx.x == 0 && wic_peer_count(view.started) == gridDim.x) {
            wic_peer_post(&view.report->started, 1, WIC_PEER_SYSTEM);
        }
        return;
    }
    wic_peer_run(
        view,
        [&](const wic_peer_piece &p) {
            if (a.mistake == WAY_TRAP && p.chunk >= a.at) {
                asm volatile("trap;");
            }
            uint4 *to = static_cast<uint4 *>(p.data);
            for (uint32_t i = p.thread; i < p.bytes / 16; i += p.threads) {
                to[i] = peer_element(p.chunk, i);
            }
        },
        [&](const wic_peer_piece &) {});
}

__global__ void hog_kernel(uint64_t ns)
{
    const uint64_t since = wic_now();
    while (wic_now() - since < ns) {
        __nanosleep(1000);
    }
}

double ms_since(std::chrono::steady_clock::time_point since)
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
        .count();
}

void sleep_ms(int ms)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Takes all shared memory of all multiprocessors of a GPU.
class hog
{
  public:
    explicit hog(int device) : device_(device)
    {
        PEER_MUST(cudaSetDevice(device));
        PEER_MUST(cudaDeviceGetAttribute(&blocks_, cudaDevAttrMultiProcessorCount, device));
        PEER_MUST(cudaDeviceGetAttribute(&bytes_, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        PEER_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        PEER_MUST(
            cudaFuncSetAttribute(hog_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_));
    }
    ~hog()
    {
        cudaStreamDestroy(stream_);
    }
    void take(uint64_t ns)
    {
        PEER_MUST(cudaSetDevice(device_));
        hog_kernel<<<blocks_, 32, bytes_, stream_>>>(ns);
        PEER_MUST(cudaGetLastError());
    }
    // Milliseconds until the GPU was free for it; 2000: it was not.
    double wait()
    {
        const auto since = std::chrono::steady_clock::now();
        while (cudaStreamQuery(stream_) == cudaErrorNotReady && ms_since(since) < 2000) {
        }
        return ms_since(since);
    }

  private:
    const int device_;
    int blocks_ = 0, bytes_ = 0;
    cudaStream_t stream_ = nullptr;
};

// Two parties, one of which makes a mistake.
class couple
{
  public:
    couple(const peer_options &o, uint32_t transport, uint64_t limit, uint32_t wrong_party,
           way_mistake mistake)
    {
        wic_peer_options options = {};
        wic_step step = {};
        for (uint32_t i = 0; i < 2; i++) {
            arguments_[i] = {i == wrong_party ? mistake : WAY_NONE, 5000};
            options.party[i] = {i == 0 ? o.from : o.to, reinterpret_cast<const void *>(way_kernel),
                                &arguments_[i]};
        }
        step.to = 1;
        step.count = endless;
        step.chunk_bytes = 16384;
        options.parties = 2;
        options.steps = &step;
        options.step_count = 1;
        options.limit_ns = limit;
        rc = wic_peer_plan_choose(o.from, o.is_loopback() ? 2 : 1, 16384,
                                  static_cast<wic_peer_transport>(transport), &options.plan);
        plan = options.plan;
        rc = rc != 0 ? rc : wic_peer_create(&options, &peer);
        rc = rc != 0 ? rc : wic_peer_start(peer);
    }
    ~couple()
    {
        if (wic_peer_destroy(peer) != 0) {
            printf("FAIL a kernel did not leave\n");
            fflush(stdout);
            _exit(1);
        }
    }
    // Milliseconds until all kernels have left.
    double join(int *out_rc)
    {
        const auto since = std::chrono::steady_clock::now();
        *out_rc = wic_peer_join(peer, 20000000000);
        return ms_since(since);
    }
    wic_peer_end left(uint32_t party) const
    {
        return wic_peer_left(peer, party);
    }

    wic_peer *peer = nullptr;
    wic_peer_plan plan = {};
    int rc = 0;

  private:
    argument arguments_[2];
};

double free_ms(const peer_options &o)
{
    hog one(o.from), other(o.to);
    one.take(0);
    other.take(0);
    return one.wait() + other.wait();
}

void stop_all(const peer_options &o, uint32_t transport, peer_report *report)
{
    int rc = 0;
    double ms = 0;
    {
        couple c(o, transport, 0, 2, WAY_NONE);
        sleep_ms(20);
        wic_peer_stop(c.peer);
        ms = c.join(&rc);
        rc = c.rc != 0 ? c.rc : rc;
    }
    const double free = free_ms(o);
    report->line(rc == -ECANCELED && ms < leave_ms && free < leave_ms,
                 "%s: the host stops both: left after %.2f ms, GPUs free after %.2f ms more",
                 wic_peer_transport_name(static_cast<wic_peer_transport>(transport)), ms, free);
}

void without_peer(const peer_options &o, uint32_t transport, uint32_t absent, peer_report *report)
{
    int rc = 0;
    couple c(o, transport, limit_ns, absent, WAY_ABSENT);
    const double ms = c.join(&rc);
    const wic_peer_end end = c.left(1 - absent);
    report->line(c.rc == 0 && rc == -ECANCELED && ms < limit_ns * 1e-6 + 500 &&
                     (end == WIC_PEER_LATE || end == WIC_PEER_DESERTED),
                 "%s: party %u ended at once: the other one left after %.0f ms (limit %.0f): %s",
                 wic_peer_transport_name(c.plan.transport), absent, ms, limit_ns * 1e-6,
                 wic_peer_end_text(end));
}

void too_many(const peer_options &o, peer_report *report)
{
    wic_peer_options options = {};
    wic_peer *peer = nullptr;
    wic_step step = {};
    argument none = {WAY_NONE, 0};
    step.to = 1;
    step.count = 10;
    step.chunk_bytes = 16384;
    options.parties = 2;
    options.steps = &step;
    options.step_count = 1;
    for (uint32_t i = 0; i < 2; i++) {
        options.party[i] = {i == 0 ? o.from : o.to, reinterpret_cast<const void *>(way_kernel),
                            &none};
    }
    int rc =
        wic_peer_plan_choose(o.from, o.is_loopback() ? 2 : 1, 16384, WIC_PEER_PULL, &options.plan);
    options.plan.lanes++;
    rc = rc != 0 ? rc : wic_peer_create(&options, &peer);
    report->line(rc == -ENOSPC, "more blocks than can be resident are refused: %s", wic_link_why());
    wic_peer_destroy(peer);
}

void no_room(const peer_options &o, peer_report *report)
{
    int rc = 0;
    double ms = 0;
    {
        hog h(o.to);
        h.take(2000000000);
        couple c(o, WIC_PEER_PULL, 0, 2, WAY_NONE);
        rc = c.rc;
        int joined = 0;
        ms = c.join(&joined);
    }
    report->line(rc == -EBUSY && ms < 2500,
                 "a GPU that is full: start says %d, all left %.0f ms later", rc, ms);
}

// Runs this program with a part; the child's exit code. stop_ms: it is stopped for so long.
int child(const peer_options &o, const char *part, int stop_ms)
{
    const std::string gpus = std::to_string(o.from) + "," + std::to_string(o.to);
    const char *arguments[] = {"wic-peer", "--gpus", gpus.c_str(), "--part", part, nullptr};
    pid_t pid = 0;
    int status = 0;
    fflush(stdout);
    if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, const_cast<char **>(arguments),
                    environ) != 0) {
        return -1;
    }
    if (stop_ms > 0) {
        sleep_ms(4000); // it has started its kernels
        kill(pid, SIGSTOP);
        sleep_ms(stop_ms);
        kill(pid, SIGCONT);
    }
    const auto since = std::chrono::steady_clock::now();
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (ms_since(since) > 30000) {
            kill(pid, SIGKILL);
        }
        sleep_ms(10);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
} // namespace

// One party waits for one that is absent, with a limit that is longer than the stop.
void peer_silent(const peer_options &o, peer_report *report)
{
    int rc = 0;
    couple c(o, WIC_PEER_PULL, 60000000000, 0, WAY_ABSENT);
    const auto since = std::chrono::steady_clock::now();
    do {
        rc = wic_peer_join(c.peer, 10000000);
    } while (rc == -ETIMEDOUT && ms_since(since) < 20000);
    report->line(c.rc == 0 && rc == -ECANCELED && c.left(1) == WIC_PEER_SILENT,
                 "the process was stopped for 6 s: %s", wic_peer_end_text(c.left(1)));
}

void peer_trap(const peer_options &o, peer_report *report)
{
    int rc = 0;
    auto *c = new couple(o, WIC_PEER_STORES, limit_ns, 0, WAY_TRAP); // its GPU is lost
    const double ms = c->join(&rc);
    int again = rc;
    if (!o.is_loopback()) { // the other kernel leaves, too
        const auto since = std::chrono::steady_clock::now();
        PEER_MUST(cudaSetDevice(o.to));
        while (c->left(1) == WIC_PEER_STAYS && ms_since(since) < 2000) {
            sleep_ms(1);
        }
        again = c->left(1) != WIC_PEER_STAYS ? 0 : -ETIMEDOUT;
    }
    report->line((c->rc == 0 || c->rc == -EIO) && rc == -EIO && (o.is_loopback() || again == 0),
                 "a kernel traps: join says %d after %.1f ms: %s; the other one: %s", rc, ms,
                 wic_link_why(), o.is_loopback() ? "lost with it" : wic_peer_end_text(c->left(1)));
    fflush(stdout);
    _exit(report->is_good ? 0 : 1);
}

void peer_ways_out(const peer_options &o, peer_report *report)
{
    for (uint32_t transport = 0; transport < WIC_PEER_TRANSPORTS; transport++) {
        stop_all(o, transport, report);
        without_peer(o, transport, 0, report);
        without_peer(o, transport, 1, report);
    }
    too_many(o, report);
    no_room(o, report);
    report->line(child(o, "trap", 0) == 0, "the child with a kernel that traps ended");
    report->line(child(o, "silent", 6000) == 0, "the child that was stopped ended");
    const double free = free_ms(o);
    report->line(free < leave_ms, "GPUs free after %.2f ms", free);
}
