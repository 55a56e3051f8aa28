// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Transfer plans of tiles with a halo (wic/device/tune.h): sums of 3 x 3 pixels of a frame in
// pinned memory. The producer is the copy. Where an engine copies the frame in batches of tiles,
// the host lists the tiles in the order in which the policy `neighbours` makes them ready, and the
// stream pushes them after the copies (wic/depend/ready.h). Where workers load tiles themselves,
// all are ready at the start. The rival: streams, a copy, an event and a launch for each batch.
//
// All plans are measured, then the search by halving chooses one, then both are measured in turn.
#include "wic/stages/measure.cuh"

#include "wic/depend/ready.cuh"
#include "wic/device/tune.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace
{
constexpr uint32_t SIDE = 128, THREADS = 256, STRIP = 8; // pixels; rows that a thread sums up
constexpr uint32_t PART = 8;                             // pixels of 16 bytes
constexpr uint32_t PULLED = SIDE + 2 * PART;             // columns of a tile in shared memory
constexpr uint32_t PULLED_BYTES = (SIDE + 2) * PULLED * sizeof(uint16_t);
constexpr uint64_t BUDGET_NS = 400000000, LATE_NS = 300000000;
constexpr double GOOD = 0.98; // part of the best plan's rate

struct frame_work {
    wic_ready ready;
    const uint16_t *in; // device memory, or pinned
    uint16_t *out;
    const uint32_t *list; // tiles in their order, for launches
    uint32_t *done;       // counter of tiles
    wic_tile_grid grid;
    stage_mistake mistake;
    bool pulled;
    const uint4 *fresh; // rings for the next run, two sets take turns
    uint4 *next;
    uint32_t fresh_parts;
};

struct whole_block {
    uint32_t thread, threads;
    __device__ void sync() const
    {
        __syncthreads();
    }
};

// Sums of 3 x 3 of a tile; at(row, col): the frame's pixel there, 0 outside of it.
template <class At> __device__ void sum_tile(const frame_work &w, wic_tile tile, At at)
{
    const int cols = static_cast<int>(w.grid.cols * SIDE);
    const int col = static_cast<int>(tile.col * SIDE + threadIdx.x % SIDE);
    for (uint32_t s = threadIdx.x / SIDE; s < SIDE / STRIP; s += THREADS / SIDE) {
        const int row = static_cast<int>(tile.row * SIDE + s * STRIP);
        uint32_t line[STRIP + 2];
#pragma unroll
        for (int i = 0; i < static_cast<int>(STRIP) + 2; i++) {
            const int r = row + i - 1;
            line[i] = at(r, col - 1) + at(r, col) + at(r, col + 1);
        }
#pragma unroll
        for (int i = 0; i < static_cast<int>(STRIP); i++) {
            w.out[static_cast<size_t>(row + i) * cols + col] =
                static_cast<uint16_t>(line[i] + line[i + 1] + line[i + 2]);
        }
    }
}

// A tile and its halo, by 16 bytes; pixels outside of the frame are 0.
__device__ void pull_tile(const frame_work &w, wic_tile tile, uint16_t *shared)
{
    const int rows = static_cast<int>(w.grid.rows * SIDE);
    const int cols = static_cast<int>(w.grid.cols * SIDE);
    constexpr uint32_t parts = PULLED / PART, n = (SIDE + 2) * parts;
#pragma unroll 5
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        const int row = static_cast<int>(tile.row * SIDE + i / parts) - 1;
        const int col =
            static_cast<int>(tile.col * SIDE + i % parts * PART) - static_cast<int>(PART);
        const bool inside = row >= 0 && row < rows && col >= 0 && col < cols;
        uint4 value = {0, 0, 0, 0};
        if (inside) {
            value = *reinterpret_cast<const uint4 *>(w.in + static_cast<size_t>(row) * cols + col);
        }
        *reinterpret_cast<uint4 *>(shared + i * PART) = value;
    }
    __syncthreads();
}

__device__ void do_tile(const frame_work &w, uint32_t number, uint16_t *shared)
{
    const wic_tile tile = {number / w.grid.cols, number % w.grid.cols};
    const int rows = static_cast<int>(w.grid.rows * SIDE);
    const int cols = static_cast<int>(w.grid.cols * SIDE);
    if (w.pulled) {
        const int top = static_cast<int>(tile.row * SIDE) - 1;
        const int left = static_cast<int>(tile.col * SIDE) - static_cast<int>(PART);
        pull_tile(w, tile, shared);
        sum_tile(w, tile, [&](int r, int c) -> uint32_t {
            return shared[(r - top) * static_cast<int>(PULLED) + c - left];
        });
    } else {
        sum_tile(w, tile, [&](int r, int c) -> uint32_t {
            const bool inside = r >= 0 && r < rows && c >= 0 && c < cols;
            return inside ? w.in[static_cast<size_t>(r) * cols + c] : 0u;
        });
    }
    if (w.mistake == STAGE_ELEMENT && number == 0 && threadIdx.x == 0) {
        w.out[0] = static_cast<uint16_t>(w.out[0] + 1); // its own store
    }
}

__global__ void __launch_bounds__(THREADS, 2) workers(const __grid_constant__ frame_work w)
{
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ wic_seats seats;
    const whole_block group = {threadIdx.x, blockDim.x};
    const uint32_t tiles = w.grid.rows * w.grid.cols;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < w.fresh_parts;
         i += gridDim.x * THREADS) {
        w.next[i] = w.fresh[i];
    }
    wic_task task;
    for (uint32_t turn = 0; wic_take(w.ready, seats, turn, group, &task); turn++) {
        if (w.mistake != STAGE_LOST || !w.pulled || task.task != tiles - 1) {
            do_tile(w, task.task, reinterpret_cast<uint16_t *>(memory));
        }
        if (threadIdx.x == 0 && wic_arrive(w.done, tiles)) {
            wic_stop(w.ready, WIC_READY_DONE);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    launched(const __grid_constant__ frame_work w, uint32_t first)
{
    do_tile(w, w.list[first + blockIdx.x], nullptr);
}

// A rectangle of a batch, in pixels.
struct run {
    size_t row, col, rows, cols;
};

struct batch {
    std::vector<run> runs;
    uint32_t ready; // tiles that are ready after it
};

class frames
{
  public:
    explicit frames(uint32_t side);
    ~frames();
    frames(const frames &) = delete;
    frames &operator=(const frames &) = delete;

    void fill(uint64_t seed);
    void prepare(const wic_transfer_plan &plan);
    // Nanoseconds of a frame by the prepared plan.
    double by_workers(stage_mistake mistake);
    double by_streams(stage_mistake mistake);
    uint64_t wrong();
    bool stopped() const; // true if a time limit ended it
    void poison();

    const wic_tile_grid grid;
    const uint32_t side;

  private:
    void list_batches(const wic_transfer_plan &plan);
    void copy(const batch &b);
    wic_transfer_plan plan_ = {};
    std::vector<batch> batches_;
    std::vector<uint32_t> list_;
    std::vector<uint16_t> wanted_, got_;
    uint16_t *host_, *in_, *out_;
    uint32_t *device_list_, *done_;
    unsigned char *rings_;
    size_t ring_bytes_;
    wic_ready ready_[2] = {};
    uint32_t turn_ = 0;
    cudaStream_t work_, copy_;
    cudaEvent_t brought_;
};

double now_ns()
{
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

frames::frames(uint32_t of_side) : grid{of_side / SIDE, of_side / SIDE}, side(of_side)
{
    const size_t px = static_cast<size_t>(side) * side;
    const uint32_t most[WIC_READY_RINGS] = {grid.rows * grid.cols};
    ring_bytes_ = wic_ready_bytes(most);
    wanted_.resize(px);
    got_.resize(px);
    CUDA_MUST(cudaMallocHost(&host_, px * sizeof(uint16_t)));
    CUDA_MUST(cudaMalloc(&in_, px * sizeof(uint16_t)));
    CUDA_MUST(cudaMalloc(&out_, px * sizeof(uint16_t)));
    CUDA_MUST(cudaMalloc(&device_list_, most[0] * sizeof(uint32_t)));
    CUDA_MUST(cudaMalloc(&done_, sizeof(uint32_t)));
    CUDA_MUST(cudaMalloc(&rings_, 3 * ring_bytes_));
    CUDA_MUST(cudaStreamCreateWithFlags(&work_, cudaStreamNonBlocking));
    CUDA_MUST(cudaStreamCreateWithFlags(&copy_, cudaStreamNonBlocking));
    CUDA_MUST(cudaEventCreateWithFlags(&brought_, cudaEventDisableTiming));
    CUDA_MUST(
        cudaFuncSetAttribute(workers, cudaFuncAttributeMaxDynamicSharedMemorySize, PULLED_BYTES));
    hold_stream(work_, 1); // loads it: no kernel may be resident then
    CUDA_MUST(cudaDeviceSynchronize());
}

frames::~frames()
{
    (void)cudaFreeHost(host_);
    (void)cudaFree(in_);
    (void)cudaFree(out_);
    (void)cudaFree(device_list_);
    (void)cudaFree(done_);
    (void)cudaFree(rings_);
    (void)cudaStreamDestroy(work_);
    (void)cudaStreamDestroy(copy_);
    (void)cudaEventDestroy(brought_);
}

void frames::fill(uint64_t seed)
{
    const size_t n = side;
    std::vector<uint16_t> line(n * n);
    for (size_t i = 0; i < n * n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        host_[i] = static_cast<uint16_t>(seed >> 40);
    }
    for (size_t i = 0; i < n * n; i++) {
        const uint32_t left = i % n > 0 ? host_[i - 1] : 0u;
        const uint32_t right = i % n + 1 < n ? host_[i + 1] : 0u;
        line[i] = static_cast<uint16_t>(left + host_[i] + right);
    }
    for (size_t i = 0; i < n * n; i++) {
        const uint32_t above = i >= n ? line[i - n] : 0u;
        const uint32_t below = i + n < n * n ? line[i + n] : 0u;
        wanted_[i] = static_cast<uint16_t>(above + line[i] + below);
    }
}

// Extends the last run by a tile next to it, or begins another one.
void add_tile(std::vector<run> *runs, wic_tile tile)
{
    const size_t row = static_cast<size_t>(tile.row) * SIDE,
                 col = static_cast<size_t>(tile.col) * SIDE;
    if (!runs->empty()) {
        run &last = runs->back();
        const bool flat = last.rows == SIDE && last.row == row;
        const bool high = last.cols == SIDE && last.col == col;
        if (flat && (last.col + last.cols == col || col + SIDE == last.col)) {
            last.col = std::min(last.col, col);
            last.cols += SIDE;
            return;
        }
        if (high && last.row + last.rows == row) {
            last.rows += SIDE;
            return;
        }
    }
    runs->push_back({row, col, SIDE, SIDE});
}

// Runs of the same columns, one below the other, become one.
void join_runs(std::vector<run> *runs)
{
    std::vector<run> joined;
    for (const run &r : *runs) {
        run *const last = joined.empty() ? nullptr : &joined.back();
        if (last && last->col == r.col && last->cols == r.cols && last->row + last->rows == r.row) {
            last->rows += r.rows;
        } else if (last && last->row == r.row && last->rows == r.rows &&
                   last->col + last->cols == r.col) {
            last->cols += r.cols;
        } else {
            joined.push_back(r);
        }
    }
    *runs = joined;
}

void frames::list_batches(const wic_transfer_plan &plan)
{
    const uint32_t tiles = grid.rows * grid.cols;
    const wic_tile_stages stages = {grid, grid, wic_policy_neighbours(), plan.order};
    std::vector<uint32_t> counters(tiles), ready(tiles + 1);
    batches_.clear();
    list_.assign(tiles, 0);
    if (plan.batch == 0) {
        for (uint32_t i = 0; i < tiles; i++) {
            const wic_tile tile = wic_tile_at(plan.order, grid, i);
            list_[i] = tile.row * grid.cols + tile.col;
        }
        return;
    }
    (void)wic_tiles_unlock(&stages, counters.data(), list_.data(), ready.data());
    for (uint32_t i = 0; i < tiles; i += plan.batch) {
        const uint32_t end = std::min(tiles, i + plan.batch);
        batch b = {{}, ready[end]};
        for (uint32_t k = i; k < end; k++) {
            add_tile(&b.runs, wic_tile_at(plan.order, grid, k));
        }
        join_runs(&b.runs);
        batches_.push_back(b);
    }
}

void frames::prepare(const wic_transfer_plan &plan)
{
    const uint32_t tiles = grid.rows * grid.cols, most[WIC_READY_RINGS] = {tiles};
    std::vector<unsigned char> image(ring_bytes_);
    plan_ = plan;
    list_batches(plan);
    wic_ready_init(most, LATE_NS, image.data(), rings_, &ready_[0]);
    wic_ready_init(most, LATE_NS, image.data(), rings_ + ring_bytes_, &ready_[1]);
    wic_ready_list(image.data(), &ready_[1], 0, list_.data(), tiles);
    reinterpret_cast<wic_ready_line *>(image.data())->brought[0] = plan.batch == 0 ? tiles : 0;
    for (uint32_t i = 0; i < 3; i++) {
        CUDA_MUST(cudaMemcpy(rings_ + i * ring_bytes_, image.data(), ring_bytes_,
                             cudaMemcpyHostToDevice));
    }
    CUDA_MUST(
        cudaMemcpy(device_list_, list_.data(), tiles * sizeof(uint32_t), cudaMemcpyHostToDevice));
    CUDA_MUST(cudaMemset(done_, 0, sizeof *done_));
    CUDA_MUST(cudaDeviceSynchronize());
}

void frames::copy(const batch &b)
{
    for (const run &r : b.runs) {
        const size_t at = r.row * side + r.col, pitch = side * sizeof(uint16_t);
        CUDA_MUST(r.cols == side ? cudaMemcpyAsync(in_ + at, host_ + at, r.rows * pitch,
                                                   cudaMemcpyHostToDevice, copy_)
                                 : cudaMemcpy2DAsync(in_ + at, pitch, host_ + at, pitch,
                                                     r.cols * sizeof(uint16_t), r.rows,
                                                     cudaMemcpyHostToDevice, copy_));
    }
}

double frames::by_workers(stage_mistake mistake)
{
    const double begin = now_ns();
    const bool pulled = plan_.transport == WIC_PULL_LOADS;
    const uint16_t *const in = plan_.transport == WIC_COPY ? in_ : host_;
    turn_ = 1 - turn_;
    const wic_ready &ready = ready_[turn_];
    const frame_work w = {ready,
                          in,
                          out_,
                          device_list_,
                          done_,
                          grid,
                          mistake,
                          pulled,
                          reinterpret_cast<const uint4 *>(rings_ + 2 * ring_bytes_),
                          reinterpret_cast<uint4 *>(rings_ + (1 - turn_) * ring_bytes_),
                          static_cast<uint32_t>(ring_bytes_ / sizeof(uint4))};
    const uint32_t tiles = grid.rows * grid.cols;
    workers<<<plan_.blocks, THREADS, PULLED_BYTES, work_>>>(w);
    CUDA_MUST(cudaGetLastError());
    for (size_t i = 0; i < batches_.size(); i++) {
        const bool last = i + 1 == batches_.size();
        if (last && mistake == STAGE_EARLY) {
            (void)wic_ready_push_behind(&ready, 0, tiles, copy_);
            hold_stream(copy_, STAGE_LATE_NS);
        }
        if (!last || mistake != STAGE_LOST) {
            copy(batches_[i]);
        }
        if (!last || (mistake != STAGE_EARLY && mistake != STAGE_SILENT)) {
            const int rc = wic_ready_push_behind(&ready, 0, batches_[i].ready, copy_);
            if (rc != 0) {
                fprintf(stderr, "wic-depend: the driver cannot write words from a stream (%d)\n",
                        rc);
                exit(1);
            }
        }
    }
    CUDA_MUST(cudaStreamSynchronize(work_));
    const double ns = now_ns() - begin;
    CUDA_MUST(cudaStreamSynchronize(copy_));
    return ns;
}

double frames::by_streams(stage_mistake mistake)
{
    const double begin = now_ns();
    const frame_work w = {ready_[0], in_,   out_,    device_list_, done_, grid,
                          mistake,   false, nullptr, nullptr,      0};
    uint32_t first = 0;
    for (const batch &b : batches_) {
        copy(b);
        CUDA_MUST(cudaEventRecord(brought_, copy_));
        CUDA_MUST(cudaStreamWaitEvent(work_, brought_, 0));
        if (b.ready > first) {
            launched<<<b.ready - first, THREADS, 0, work_>>>(w, first);
            CUDA_MUST(cudaGetLastError());
        }
        first = b.ready;
    }
    CUDA_MUST(cudaStreamSynchronize(work_));
    return now_ns() - begin;
}

bool frames::stopped() const
{
    uint32_t stop = 0;
    CUDA_MUST(cudaMemcpy(&stop, ready_[turn_].stop, sizeof stop, cudaMemcpyDeviceToHost));
    return stop != WIC_READY_DONE;
}

void frames::poison()
{
    CUDA_MUST(cudaMemset(in_, 0xa5, wanted_.size() * sizeof(uint16_t)));
    CUDA_MUST(cudaMemset(out_, 0xa5, wanted_.size() * sizeof(uint16_t)));
    CUDA_MUST(cudaDeviceSynchronize());
}

uint64_t frames::wrong()
{
    uint64_t wrong = 0;
    CUDA_MUST(
        cudaMemcpy(got_.data(), out_, got_.size() * sizeof(uint16_t), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got_.size(); i++) {
        wrong += got_[i] != wanted_[i];
    }
    return wrong;
}

double bytes_of(const frames &f)
{
    return static_cast<double>(f.side) * f.side * sizeof(uint16_t);
}

// For wic_tune_halve.
int measure_plan(void *context, const wic_transfer_plan *plan, uint64_t ns, double *out_rate)
{
    frames *const f = static_cast<frames *>(context);
    double taken = 0;
    uint32_t n = 0;
    f->prepare(*plan);
    (void)f->by_workers(STAGE_RIGHT);
    while (n == 0 || taken < static_cast<double>(ns)) {
        taken += f->by_workers(STAGE_RIGHT);
        n++;
    }
    *out_rate = bytes_of(*f) * n * 1e9 / taken;
    return f->stopped() ? -ETIMEDOUT : 0;
}

const char *place_of(const wic_transfer_plan &plan)
{
    return plan.transport == WIC_COPY       ? "engine"
           : plan.transport == WIC_IN_PLACE ? "in place"
                                            : "workers load";
}

wic_gpu this_gpu()
{
    wic_gpu gpu = {};
    const int rc = wic_gpu_read(0, &gpu);
    if (rc != 0) {
        fprintf(stderr, "wic-depend: the GPU cannot be read (%d)\n", rc);
        exit(1);
    }
    return gpu;
}

size_t plans_of(const frames &f, wic_tune_trial *trials)
{
    const wic_gpu gpu = this_gpu();
    const wic_work work = {THREADS / 32, PULLED_BYTES, 0, 2};
    return wic_tune_tiles(&gpu, &f.grid, &work, trials);
}

// One frame by a plan, with or without a mistake.
bool check_plan(frames *f, const wic_transfer_plan &plan, stage_mistake mistake)
{
    const bool engine = plan.transport == WIC_COPY;
    const bool can = mistake == STAGE_ELEMENT || engine ||
                     (mistake == STAGE_LOST && plan.transport == WIC_PULL_LOADS);
    if (mistake != STAGE_RIGHT && !can) {
        return true;
    }
    f->prepare(plan);
    f->poison();
    (void)f->by_workers(mistake);
    const bool stopped = f->stopped();
    const uint64_t wrong = f->wrong();
    const bool good = mistake == STAGE_RIGHT    ? wrong == 0 && !stopped
                      : mistake == STAGE_SILENT ? stopped
                                                : wrong > 0 && !stopped;
    if (!good) {
        printf("  %u x %u, %s, %s, %u a copy: %s, %llu pixels%s\n", f->side, f->side,
               place_of(plan), wic_order_name(plan.order), plan.batch,
               mistake == STAGE_RIGHT ? "WRONG" : "NOT FOUND",
               static_cast<unsigned long long>(wrong), stopped ? ", time limit" : "");
    }
    return good;
}

bool check_streams(frames *f, const wic_transfer_plan &plan)
{
    f->prepare(plan);
    f->poison();
    (void)f->by_streams(STAGE_RIGHT);
    const uint64_t wrong = f->wrong();
    if (wrong > 0) {
        printf("  streams, %s: WRONG, %llu pixels\n", wic_order_name(plan.order),
               static_cast<unsigned long long>(wrong));
    }
    return wrong == 0;
}

bool check_all(const depend_options &options, frames *f)
{
    std::vector<wic_tune_trial> trials(WIC_TUNE_TRIALS_MAX);
    const size_t n = plans_of(*f, trials.data());
    bool good = n > 0;
    for (size_t i = 0; i < n; i++) {
        f->fill(options.seed + i);
        good = check_plan(f, trials[i].plan, options.mistake) && good;
        if (options.mistake == STAGE_RIGHT && trials[i].plan.batch > 0) {
            good = check_streams(f, trials[i].plan) && good;
        }
    }
    if (options.mistake != STAGE_RIGHT) {
        printf("  halo of %zu plans: %s\n", n, good ? "found" : "NOT FOUND");
    }
    return good;
}

struct timed {
    wic_transfer_plan plan;
    double us, streams_us; // medians; streams_us: 0 without an engine
};

double median_us(frames *f, const wic_transfer_plan &plan, uint32_t runs, bool streams)
{
    std::vector<double> us;
    f->prepare(plan);
    for (uint32_t i = 0; i <= runs; i++) {
        const double ns = streams ? f->by_streams(STAGE_RIGHT) : f->by_workers(STAGE_RIGHT);
        if (i > 0) {
            us.push_back(ns / 1000);
        }
    }
    return median_of(us);
}

std::vector<timed> time_all(const depend_options &options, frames *f)
{
    std::vector<wic_tune_trial> trials(WIC_TUNE_TRIALS_MAX);
    const size_t n = plans_of(*f, trials.data());
    const uint32_t runs = options.rounds * options.runs / 2 + 1;
    std::vector<timed> all;
    for (size_t i = 0; i < n; i++) {
        const wic_transfer_plan &plan = trials[i].plan;
        all.push_back({plan, median_us(f, plan, runs, false),
                       plan.batch > 0 ? median_us(f, plan, runs, true) : 0.0});
    }
    std::sort(all.begin(), all.end(), [](const timed &a, const timed &b) { return a.us < b.us; });
    return all;
}

void print_plans(const depend_options &options, const frames &f, const std::vector<timed> &all)
{
    for (const timed &t : all) {
        printf("| %u x %u | %s | %s | %u | %u | %.1f | %.1f |", f.side, f.side, place_of(t.plan),
               wic_order_name(t.plan.order), t.plan.batch, t.plan.blocks, t.us,
               bytes_of(f) / t.us * 1e-3);
        t.streams_us > 0 ? printf(" %.1f |\n", t.streams_us) : printf(" - |\n");
        if (options.json) {
            fprintf(options.json,
                    "{\"frame\": %u, \"place\": \"%s\", \"order\": \"%s\", \"batch\": %u, "
                    "\"blocks\": %u, \"us\": %.2f, \"streams_us\": %.2f}\n",
                    f.side, place_of(t.plan), wic_order_name(t.plan.order), t.plan.batch,
                    t.plan.blocks, t.us, t.streams_us);
        }
    }
}

// The plan of the search and the best of all, in turn.
void print_choice(const depend_options &options, frames *f, const wic_transfer_plan &chosen,
                  const wic_transfer_plan &best)
{
    std::vector<double> us[2];
    char text[160];
    for (uint32_t i = 0; i < options.rounds; i++) {
        us[i % 2].push_back(median_us(f, i % 2 ? best : chosen, options.runs, false));
        us[1 - i % 2].push_back(median_us(f, i % 2 ? chosen : best, options.runs, false));
    }
    const double part = median_of(us[1]) / median_of(us[0]);
    (void)wic_transfer_plan_print(&chosen, text, sizeof text);
    printf("%u x %u: the search chooses %s: %.3f of the best of all%s\n", f->side, f->side, text,
           part, part < GOOD ? " (BELOW 0.98)" : "");
}

bool measure_frame(const depend_options &options, uint32_t side)
{
    frames f(side);
    f.fill(options.seed);
    std::vector<wic_tune_trial> trials(WIC_TUNE_TRIALS_MAX);
    const size_t n = plans_of(f, trials.data());
    const wic_tune_meter meter = {measure_plan, nullptr, &f};
    bool good = check_all(options, &f);
    const std::vector<timed> all = time_all(options, &f);
    print_plans(options, f, all);
    const int rc = wic_tune_halve(trials.data(), n, &meter, BUDGET_NS);
    if (rc != 0) {
        printf("  the search failed (%d)\n", rc);
        return false;
    }
    print_choice(options, &f, trials[0].plan, all[0].plan);
    return good;
}
} // namespace

bool measure_halo(const depend_options &options)
{
    if (options.check || options.mistake != STAGE_RIGHT) {
        frames f(3 * SIDE);
        return check_all(options, &f);
    }
    bool good = true;
    printf("\n| frame | copy by | order | tiles a copy | blocks | us | GB/s | streams, us |\n"
           "|---|---|---|---|---|---|---|---|\n");
    for (const uint32_t side : {1024u, 2048u, 4096u}) {
        good = measure_frame(options, side) && good;
    }
    return good;
}
