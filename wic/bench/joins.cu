// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A chain of stages of equal tasks, each a thread block that writes a word a thread; the next stage
// needs all of them. Workers read back what the stage before wrote, launches do so as well. The
// time of the chain over its stages is what a join costs, tasks included: these take a microsecond.
#include "wic/bench/joins.cuh"

#include "wic/bench/base/bench.cuh"
#include "wic/depend/ready.cuh"

#include <algorithm>
#include <vector>

namespace
{
constexpr uint32_t THREADS = 256, STAGES = 2000, TURNS = 7, STREAMS = 4;
constexpr uint64_t LIMIT_NS = 2000000000, SHORT_LIMIT_NS = 20000000;

struct chain {
    wic_ready ready;
    uint32_t *counter; // of each stage
    uint32_t *word;    // of each task and thread, two stages in turn
    uint32_t *wrong;
    uint32_t tasks, stages;
};

struct whole_block {
    uint32_t thread, threads;
    __device__ void sync() const
    {
        __syncthreads();
    }
};

// Reads a word of every task of the stage before, writes its own.
__device__ void do_task(const chain &c, uint32_t stage, uint32_t task)
{
    const uint32_t *const before = c.word + (stage + 1) % 2 * c.tasks * THREADS;
    uint32_t bad = 0;
    for (uint32_t i = threadIdx.x % 32; i < c.tasks && stage > 0; i += 32) {
        bad |= before[i * THREADS + threadIdx.x] != stage - 1;
    }
    c.word[(stage % 2 * c.tasks + task) * THREADS + threadIdx.x] = stage;
    if (bad) {
        atomicAdd(c.wrong, 1u);
    }
}

__global__ void __launch_bounds__(THREADS, 4) stay(const __grid_constant__ chain c)
{
    __shared__ wic_seats seats;
    __shared__ uint32_t flag;
    const whole_block group = {threadIdx.x, blockDim.x};
    wic_task task;
    for (uint32_t turn = 0; wic_take(c.ready, seats, turn, group, &task); turn++) {
        const uint32_t stage = task.task / c.tasks;
        do_task(c, stage, task.task % c.tasks);
        if (wic_arrive_all(&c.counter[stage], c.tasks, &flag, group) && threadIdx.x == 0) {
            if (stage + 1 < c.stages) {
                wic_push(c.ready, 0, (stage + 1) * c.tasks, c.tasks);
            } else {
                wic_stop(c.ready, WIC_READY_DONE);
            }
        }
    }
}

__global__ void __launch_bounds__(THREADS) launched(chain c, uint32_t stage, uint32_t first)
{
    do_task(c, stage, first + blockIdx.x);
}

struct bench {
    chain c;
    std::vector<unsigned char> image;
    uint32_t most[WIC_READY_RINGS] = {};
    void *memory;
    unsigned blocks;
    cudaStream_t stream[STREAMS];
    cudaEvent_t begin, end, joined, done[STREAMS];
};

void make(bench *b, uint32_t tasks)
{
    int per = 0, processors = 0;
    b->c.tasks = tasks;
    b->c.stages = STAGES;
    b->most[0] = 2 * tasks;
    b->most[1] = tasks; // the first stage, listed by the host
    b->image.resize(wic_ready_bytes(b->most));
    CUDA_MUST(cudaMalloc(&b->memory, b->image.size()));
    CUDA_MUST(cudaMalloc(&b->c.counter, STAGES * sizeof(uint32_t)));
    CUDA_MUST(cudaMemset(b->c.counter, 0, STAGES * sizeof(uint32_t)));
    CUDA_MUST(cudaMalloc(&b->c.word, 2 * tasks * THREADS * sizeof(uint32_t)));
    CUDA_MUST(cudaMalloc(&b->c.wrong, sizeof(uint32_t)));
    CUDA_MUST(cudaMemset(b->c.wrong, 0, sizeof(uint32_t)));
    CUDA_MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CUDA_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, stay, THREADS, 0));
    b->blocks = static_cast<unsigned>(std::min(per, 4) * processors);
    for (uint32_t i = 0; i < STREAMS; i++) {
        CUDA_MUST(cudaStreamCreateWithFlags(&b->stream[i], cudaStreamNonBlocking));
        CUDA_MUST(cudaEventCreateWithFlags(&b->done[i], cudaEventDisableTiming));
    }
    CUDA_MUST(cudaEventCreate(&b->begin));
    CUDA_MUST(cudaEventCreate(&b->end));
    CUDA_MUST(cudaEventCreateWithFlags(&b->joined, cudaEventDisableTiming));
}

void destroy(bench *b)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        CUDA_MUST(cudaStreamDestroy(b->stream[i]));
        CUDA_MUST(cudaEventDestroy(b->done[i]));
    }
    CUDA_MUST(cudaEventDestroy(b->begin));
    CUDA_MUST(cudaEventDestroy(b->end));
    CUDA_MUST(cudaEventDestroy(b->joined));
    CUDA_MUST(cudaFree(b->memory));
    CUDA_MUST(cudaFree(b->c.counter));
    CUDA_MUST(cudaFree(b->c.word));
    CUDA_MUST(cudaFree(b->c.wrong));
}

// Nanoseconds a stage; queue(): all stages into stream 0, or joined to it.
template <class Queue> double time_of(bench *b, const Queue &queue)
{
    float ms = 0;
    CUDA_MUST(cudaEventRecord(b->begin, b->stream[0]));
    queue();
    CUDA_MUST(cudaEventRecord(b->end, b->stream[0]));
    CUDA_MUST(cudaEventSynchronize(b->end));
    CUDA_MUST(cudaEventElapsedTime(&ms, b->begin, b->end));
    return static_cast<double>(ms) * 1e6 / STAGES;
}

// Lays out the rings; `ready` tasks of the first stage are ready.
void lay_out(bench *b, uint64_t limit_ns, uint32_t ready)
{
    wic_ready_init(b->most, limit_ns, b->image.data(), b->memory, &b->c.ready);
    std::vector<uint32_t> first(b->c.tasks);
    for (uint32_t i = 0; i < b->c.tasks; i++) {
        first[i] = i;
    }
    wic_ready_list(b->image.data(), &b->c.ready, 1, first.data(), b->c.tasks);
    reinterpret_cast<wic_ready_line *>(b->image.data())->brought[1] = ready;
    CUDA_MUST(cudaMemcpy(b->memory, b->image.data(), b->image.size(), cudaMemcpyHostToDevice));
    CUDA_MUST(cudaDeviceSynchronize());
}

uint32_t stop_word(const bench *b)
{
    uint32_t stop = 0;
    CUDA_MUST(cudaMemcpy(&stop, b->c.ready.stop, sizeof stop, cudaMemcpyDeviceToHost));
    return stop;
}

double by_workers(bench *b)
{
    lay_out(b, LIMIT_NS, b->c.tasks);
    const double ns = time_of(b, [&] { stay<<<b->blocks, THREADS, 0, b->stream[0]>>>(b->c); });
    if (stop_word(b) != WIC_READY_DONE) {
        bench_fail("the workers did not end the chain", __LINE__);
    }
    return ns;
}

// Workers that have no task leave: after the last one if a stream pushes the first stage, at the
// host's request, and when they have waited for the limit.
bool leave_because(bench *b, wic_ready_stop why)
{
    static const char *const names[] = {"", "done", "aborted", "late"};
    lay_out(b, why == WIC_READY_LATE ? SHORT_LIMIT_NS : LIMIT_NS, 0);
    stay<<<b->blocks, THREADS, 0, b->stream[0]>>>(b->c);
    int rc = 0;
    if (why == WIC_READY_DONE) {
        rc = wic_ready_push_behind(&b->c.ready, 1, b->c.tasks, b->stream[1]);
    } else if (why == WIC_READY_ABORTED) {
        rc = wic_ready_stop_behind(&b->c.ready, why, b->stream[1]);
    }
    CUDA_MUST(cudaStreamSynchronize(b->stream[0]));
    const uint32_t stop = stop_word(b);
    const bool good = rc == 0 && stop == static_cast<uint32_t>(why);
    printf("  workers leave, %s: %s\n", names[why], good ? "good" : "WRONG");
    return good;
}

bool ways_out_work(bench *b)
{
    bool good = leave_because(b, WIC_READY_DONE);
    good = leave_because(b, WIC_READY_ABORTED) && good;
    return leave_because(b, WIC_READY_LATE) && good;
}

void queue_launches(bench *b)
{
    for (uint32_t s = 0; s < STAGES; s++) {
        launched<<<b->c.tasks, THREADS, 0, b->stream[0]>>>(b->c, s, 0);
    }
}

double by_graph(bench *b)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_MUST(cudaStreamBeginCapture(b->stream[0], cudaStreamCaptureModeThreadLocal));
    queue_launches(b);
    CUDA_MUST(cudaStreamEndCapture(b->stream[0], &graph));
    CUDA_MUST(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_MUST(cudaGraphUpload(exec, b->stream[0]));
    CUDA_MUST(cudaStreamSynchronize(b->stream[0]));
    const double ns = time_of(b, [&] { CUDA_MUST(cudaGraphLaunch(exec, b->stream[0])); });
    CUDA_MUST(cudaGraphExecDestroy(exec));
    CUDA_MUST(cudaGraphDestroy(graph));
    return ns;
}

// A quarter of a stage in each of four streams, which all wait for each other.
void queue_joined(bench *b)
{
    const uint32_t each = b->c.tasks / STREAMS;
    for (uint32_t s = 0; s < STAGES; s++) {
        CUDA_MUST(cudaEventRecord(b->joined, b->stream[0]));
        for (uint32_t i = 0; i < STREAMS; i++) {
            if (i > 0) {
                CUDA_MUST(cudaStreamWaitEvent(b->stream[i], b->joined, 0));
            }
            launched<<<each, THREADS, 0, b->stream[i]>>>(b->c, s, i * each);
            CUDA_MUST(cudaEventRecord(b->done[i], b->stream[i]));
        }
        for (uint32_t i = 1; i < STREAMS; i++) {
            CUDA_MUST(cudaStreamWaitEvent(b->stream[0], b->done[i], 0));
        }
    }
}

double median(std::vector<double> ns)
{
    std::sort(ns.begin(), ns.end());
    return ns[ns.size() / 2];
}
} // namespace

bool measure_joins()
{
    bool good = true;
    printf("a join of all tasks of a stage, nanoseconds (medians of %u chains of %u stages)\n",
           TURNS, STAGES);
    printf("%8s %12s %12s %12s %20s\n", "tasks", "workers", "graph", "launches",
           "4 streams, events");
    for (const uint32_t tasks : {4u, 32u, 128u, 512u}) {
        bench b;
        std::vector<double> ns[4];
        make(&b, tasks);
        for (uint32_t i = 0; i <= TURNS; i++) { // the first one loads the kernels
            const double one[4] = {by_workers(&b), by_graph(&b),
                                   time_of(&b, [&] { queue_launches(&b); }),
                                   time_of(&b, [&] { queue_joined(&b); })};
            for (uint32_t k = 0; k < 4 && i > 0; k++) {
                ns[k].push_back(one[k]);
            }
        }
        uint32_t wrong = 0;
        CUDA_MUST(cudaMemcpy(&wrong, b.c.wrong, sizeof wrong, cudaMemcpyDeviceToHost));
        printf("%8u %12.0f %12.0f %12.0f %20.0f%s\n", tasks, median(ns[0]), median(ns[1]),
               median(ns[2]), median(ns[3]), wrong ? "   WRONG" : "");
        good = good && wrong == 0;
        good = (tasks != 32 || ways_out_work(&b)) && good;
        destroy(&b);
    }
    return good;
}
