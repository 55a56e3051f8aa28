// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The neighbours are launches one after the other: products of matrices by tensor cores, with
// shared memory and two blocks a multiprocessor, or passes over 1 GiB. The resident kernel starts
// while they run, which in practice happens after each pause of the chunks, and is placed among
// their blocks. In each round the stream runs alone, then in each way next to each neighbour; the
// chunks' results are all checked.
#include "wic/bench/shares.cuh"
#include "wic/bench/measure/report.cuh"

#include <algorithm>
#include <cerrno>
#include <cuda_pipeline.h>
#include <mma.h>

namespace
{
constexpr size_t chunk = 65536;
constexpr unsigned side = 4096, tile = 128, step = 32, deep = 3; // sides in the product
constexpr unsigned gemm_threads = 256, pass_threads = 256;
constexpr unsigned a_row = step + 8, b_row = tile + 8; // in shared memory, without bank conflicts
constexpr size_t gemm_shared = deep * (tile * a_row + step * b_row) * sizeof(half);
constexpr size_t gemm_padded = 120 * 1024; // one block a multiprocessor, in place of two
constexpr size_t pass_bytes = size_t{1} << 30, pass_vectors = 8192;
constexpr unsigned most_queued = 900; // launches: a queue of the driver has 1,024

struct neighbour_view {
    const half *a, *b; // side x side, row by row
    float *c;
    const float4 *memory;
    unsigned long long *done; // blocks
    const uint64_t *stop;     // not 0: later blocks do nothing
};

__device__ bool is_over(const neighbour_view &view)
{
    return *static_cast<const volatile uint64_t *>(view.stop) != 0;
}

__device__ void count(const neighbour_view &view)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(view.done, 1ull);
    }
}

// Fetches the slices of both matrices for the k-th step.
__device__ void fetch(const neighbour_view &v, half *a, half *b, unsigned k)
{
    const unsigned row = blockIdx.y * tile, column = blockIdx.x * tile;
    for (unsigned i = threadIdx.x; i < tile * step / 8; i += gemm_threads) {
        const unsigned y = i / (step / 8), x = i % (step / 8) * 8;
        __pipeline_memcpy_async(a + y * a_row + x, v.a + size_t{row + y} * side + k * step + x, 16);
    }
    for (unsigned i = threadIdx.x; i < step * tile / 8; i += gemm_threads) {
        const unsigned y = i / (tile / 8), x = i % (tile / 8) * 8;
        __pipeline_memcpy_async(b + y * b_row + x, v.b + size_t{k * step + y} * side + column + x,
                                16);
    }
}

// A block makes a tile of 128 x 128, each of its 8 warps 64 x 32 of them.
__global__ void __launch_bounds__(gemm_threads, 2) multiply(const neighbour_view view)
{
    using namespace nvcuda::wmma;
    extern __shared__ __align__(16) half shared[];
    half *const a = shared, *const b = shared + deep * tile * a_row;
    const unsigned warp = threadIdx.x / 32, y = warp / 4 * 64, x = warp % 4 * 32;
    if (is_over(view)) {
        return;
    }
    fragment<accumulator, 16, 16, 16, float> sum[4][2];
    for (auto &row : sum) {
        fill_fragment(row[0], 0.0f);
        fill_fragment(row[1], 0.0f);
    }
    for (unsigned k = 0; k < deep - 1; k++) {
        fetch(view, a + k * tile * a_row, b + k * step * b_row, k);
        __pipeline_commit();
    }
    for (unsigned k = 0; k < side / step; k++) {
        __pipeline_wait_prior(deep - 2);
        __syncthreads();
        const unsigned next = k + deep - 1;
        if (next < side / step) {
            fetch(view, a + next % deep * tile * a_row, b + next % deep * step * b_row, next);
        }
        __pipeline_commit();
        const half *const from_a = a + k % deep * tile * a_row, *const from_b =
                                                                    b + k % deep * step * b_row;
#pragma unroll
        for (unsigned part = 0; part < step; part += 16) {
            fragment<matrix_a, 16, 16, 16, half, row_major> left[4];
            fragment<matrix_b, 16, 16, 16, half, row_major> right[2];
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                load_matrix_sync(left[i], from_a + (y + 16 * i) * a_row + part, a_row);
            }
#pragma unroll
            for (unsigned i = 0; i < 2; i++) {
                load_matrix_sync(right[i], from_b + part * b_row + x + 16 * i, b_row);
            }
#pragma unroll
            for (unsigned i = 0; i < 8; i++) {
                mma_sync(sum[i / 2][i % 2], left[i / 2], right[i % 2], sum[i / 2][i % 2]);
            }
        }
    }
    float *const c = view.c + size_t{blockIdx.y * tile + y} * side + blockIdx.x * tile + x;
    for (unsigned i = 0; i < 8; i++) {
        store_matrix_sync(c + size_t{i / 2 * 16} * side + i % 2 * 16, sum[i / 2][i % 2], side,
                          mem_row_major);
    }
    count(view);
}

__global__ void __launch_bounds__(pass_threads) pass(const neighbour_view view)
{
    if (is_over(view)) {
        return;
    }
    const float4 *const from =
        view.memory + blockIdx.x % (pass_bytes / sizeof(float4) / pass_vectors) * pass_vectors;
    float sum = 0;
#pragma unroll 8
    for (size_t i = threadIdx.x; i < pass_vectors; i += pass_threads) {
        const float4 v = __ldcs(from + i);
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 0.12345f) { // never: the loads must not be optimised away
        view.c[0] = sum;
    }
    count(view);
}

__global__ void fill(half *a, half *b)
{
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    a[size_t{y} * side + x] = __int2half_rn(static_cast<int>((x + y) % 5) - 2);
    b[size_t{y} * side + x] = __int2half_rn(static_cast<int>((x + 3 * y) % 7) - 3);
}

enum work_kind { WORK_GEMM, WORK_PASSES, WORK_KINDS };
const char *const work_names[WORK_KINDS] = {"GEMM", "memory"};
const char *const work_units[WORK_KINDS] = {"TFLOP/s", "GB/s"};

struct lanes {
    cudaStream_t stream[2];
};

// Kernels that fill the GPU, for as long as a measurement takes.
class work
{
  public:
    work()
    {
        half *a = nullptr, *b = nullptr;
        CUDA_MUST(cudaMalloc(&a, size_t{side} * side * sizeof(half)));
        CUDA_MUST(cudaMalloc(&b, size_t{side} * side * sizeof(half)));
        CUDA_MUST(cudaMalloc(&view_.c, size_t{side} * side * sizeof(float)));
        CUDA_MUST(cudaMalloc(&memory_, pass_bytes));
        CUDA_MUST(cudaMemset(memory_, 0, pass_bytes));
        CUDA_MUST(cudaMalloc(&device_words_, 2 * sizeof *device_words_));
        CUDA_MUST(cudaMemset(device_words_, 0, 2 * sizeof *device_words_));
        CUDA_MUST(cudaHostAlloc(&words_, 2 * sizeof *words_, cudaHostAllocDefault));
        for (cudaStream_t *stream : {&copies_, &anywhere_.stream[0], &anywhere_.stream[1]}) {
            CUDA_MUST(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
        }
        CUDA_MUST(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(gemm_padded)));
        fill<<<dim3(side / 256, side), 256>>>(a, b);
        CUDA_MUST(cudaDeviceSynchronize());
        view_.a = a;
        view_.b = b;
        view_.memory = static_cast<const float4 *>(memory_);
        view_.done = reinterpret_cast<unsigned long long *>(device_words_);
        view_.stop = device_words_ + 1;
    }

    ~work()
    {
        cudaFree(const_cast<half *>(view_.a));
        cudaFree(const_cast<half *>(view_.b));
        cudaFree(view_.c);
        cudaFree(memory_);
        cudaFree(device_words_);
        cudaFreeHost(words_);
        for (cudaStream_t stream : {copies_, anywhere_.stream[0], anywhere_.stream[1]}) {
            cudaStreamDestroy(stream);
        }
    }

    work(const work &) = delete;

    // Queues launches in two streams, so that the last blocks of one run next to the first ones of
    // the next. rest: these streams; NULL: streams for any multiprocessor.
    void start(work_kind kind, const lanes *rest, bool padded, unsigned launches)
    {
        kind_ = kind;
        lanes_ = rest ? *rest : anywhere_;
        words_[1] = 0;
        CUDA_MUST(cudaMemcpyAsync(device_words_ + 1, words_ + 1, sizeof *words_,
                                  cudaMemcpyHostToDevice, copies_));
        CUDA_MUST(cudaStreamSynchronize(copies_));
        for (unsigned i = 0; i < std::min(launches, most_queued); i++) {
            const cudaStream_t stream = lanes_.stream[i % 2];
            if (kind == WORK_GEMM) {
                multiply<<<dim3(side / tile, side / tile), gemm_threads,
                           padded ? gemm_padded : gemm_shared, stream>>>(view_);
            } else {
                pass<<<4 * pass_bytes / sizeof(float4) / pass_vectors, pass_threads, 0, stream>>>(
                    view_);
            }
            CUDA_MUST(cudaGetLastError());
        }
    }

    // Done so far, in 10^12 operations or 10^9 bytes; a copy engine brings the count.
    double done()
    {
        CUDA_MUST(cudaMemcpyAsync(words_, device_words_, sizeof *words_, cudaMemcpyDeviceToHost,
                                  copies_));
        CUDA_MUST(cudaStreamSynchronize(copies_));
        const double each =
            kind_ == WORK_GEMM ? 2e-12 * tile * tile * side : 1e-9 * pass_vectors * sizeof(float4);
        return each * static_cast<double>(words_[0]);
    }

    bool is_running() const
    {
        const cudaError_t error = cudaStreamQuery(lanes_.stream[0]);
        if (error != cudaErrorNotReady) {
            CUDA_MUST(error);
        }
        return error == cudaErrorNotReady;
    }

    void stop()
    {
        words_[1] = 1;
        CUDA_MUST(cudaMemcpyAsync(device_words_ + 1, words_ + 1, sizeof *words_,
                                  cudaMemcpyHostToDevice, copies_));
        CUDA_MUST(cudaStreamSynchronize(copies_));
        CUDA_MUST(cudaStreamSynchronize(lanes_.stream[0]));
        CUDA_MUST(cudaStreamSynchronize(lanes_.stream[1]));
    }

    // Wrong elements of one product, of a sample.
    unsigned wrong()
    {
        unsigned bad = 0;
        start(WORK_GEMM, nullptr, false, 1);
        CUDA_MUST(cudaStreamSynchronize(lanes_.stream[0]));
        for (unsigned i = 0; i < 64; i++) {
            const unsigned y = i * 2654435761u % side, x = i * 40503u * 7 % side;
            int sum = 0;
            for (unsigned k = 0; k < side; k++) {
                sum +=
                    (static_cast<int>((k + y) % 5) - 2) * (static_cast<int>((x + 3 * k) % 7) - 3);
            }
            float found = 0;
            CUDA_MUST(cudaMemcpy(&found, view_.c + size_t{y} * side + x, sizeof found,
                                 cudaMemcpyDeviceToHost));
            bad += found != static_cast<float>(sum);
        }
        return bad;
    }

  private:
    neighbour_view view_ = {};
    void *memory_ = nullptr;
    uint64_t *device_words_ = nullptr, *words_ = nullptr; // done and stop, and the same pinned
    cudaStream_t copies_ = nullptr;
    lanes anywhere_ = {}, lanes_ = {};
    work_kind kind_ = WORK_GEMM;
};

struct manner {
    const char *name;
    wic_share_way way;
    bool few;    // it has a place of its own, else the plan of the library
    bool rest;   // the neighbour runs on the rest of the GPU only
    bool padded; // a GEMM's blocks have so much shared memory that one is on a multiprocessor
};

const manner manners[] = {
    {"unshaped", WIC_SHARE_UNSHAPED, false, false, false},
    {"priority", WIC_SHARE_PRIORITY, false, false, false},
    {"few blocks", WIC_SHARE_UNSHAPED, true, false, false},
    {"padded", WIC_SHARE_PADDED, true, false, false},
    {"green", WIC_SHARE_GREEN, true, false, false},
    {"green, both", WIC_SHARE_GREEN, true, true, false},
    {"padded GEMM", WIC_SHARE_PRIORITY, false, false, true},
};

// Blocks of a plan for few multiprocessors.
struct shape {
    uint32_t warps, blocks_each, piece, depth;
};
const shape shapes[] = {{16, 1, 16384, 2}, {8, 2, 16384, 2}, {4, 4, 8192, 3}};
const shape padded_shapes[] = {{16, 1, 16384, 2}, {28, 1, 16384, 4}};

// A count of multiprocessors with a plan for them.
struct place {
    uint32_t processors;
    wic_transfer_plan plan;
    wic_part *part; // NULL: none
};

// Figures of all rounds of a case.
struct figures {
    wic_shaped shaped;
    std::vector<double> start_ms, gbs, p50, p99, speed; // speed: of the neighbour
};

double middle(const std::vector<double> &values)
{
    return values.empty() ? 0 : bench_quartiles(values).middle;
}

class shares
{
  public:
    explicit shares(const bench_options &opt)
        : opt_(opt), pool_(size_t{64} << 20, opt.huge), of_(bench_case_of(opt, chunk))
    {
        pool_.lay_out(chunk);
    }

    bool measure();

  private:
    place place_of(const shape &s, uint32_t processors, bool green) const;
    place find(const manner &m, double gbs, int kind, double p99, double alone);
    void run(const manner &m, const place &at, double gbs, int kind, double seconds, bool checks,
             figures *out);
    void print(const char *beside, double gbs, const char *name, const figures &f,
               const figures &alone, double alone_speed, double unshaped) const;
    void compare(double gbs, int kind, const figures &alone);
    double speed_alone(work_kind kind);
    bool is_small() const // for compute-sanitizer
    {
        return opt_.seconds < 0.02;
    }

    const bench_options &opt_;
    bench_pool pool_;
    bench_case of_;
    work work_;
    uint64_t wrong_ = 0;
};

void spin(double seconds)
{
    for (const double until = bench_seconds() + seconds; bench_seconds() < until;) {
    }
}

unsigned launches_for(double seconds)
{
    return static_cast<unsigned>(seconds / 0.2e-3); // each takes longer
}

wic_share share_of(const manner &m, const place &at)
{
    return {m.way, m.way == WIC_SHARE_PADDED ? at.processors : 0,
            m.way == WIC_SHARE_GREEN ? at.part : nullptr};
}

// kind < 0: alone. No figures if the kernel found no room.
void shares::run(const manner &m, const place &at, double gbs, int kind, double seconds,
                 bool checks, figures *out)
{
    wic_link_options options = bench_link_options(WAIT_PARKED, pool_, at.plan);
    options.share = share_of(m, at);
    lanes rest = {};
    wic_link *link = nullptr;
    const int rc = wic_link_create(&options, &link);
    if (rc == -E2BIG || rc == -ENOSPC) { // a plan that does not fit on this GPU
        return;
    }
    if (rc != 0) {
        bench_fail(wic_link_why(), __LINE__);
    }
    wic_link_shaped(link, &out->shaped);
    for (cudaStream_t &stream : rest.stream) {
        if (m.rest && kind >= 0 && wic_part_stream(at.part, true, 0, &stream) != 0) {
            bench_fail(wic_link_why(), __LINE__);
        }
    }
    if (kind >= 0) {
        work_.start(static_cast<work_kind>(kind), m.rest ? &rest : nullptr, m.padded,
                    launches_for(4 * seconds + 10e-3));
        spin(5e-3);
    }
    const double begin = bench_seconds();
    std::unique_ptr<strategy> way = start_resident(link, pool_, at.plan.in_unit);
    const double start_ms = 1e3 * (bench_seconds() - begin);
    if (way) {
        bench_load load(*way, pool_);
        const double gap = 1e-9 * static_cast<double>(chunk) / gbs;
        load.offer(gap, seconds / 5, 100);
        const double before = kind >= 0 ? work_.done() : 0, since = bench_seconds();
        const load_result found = load.offer(gap, seconds, 100);
        const double took = bench_seconds() - since;
        if (kind >= 0) {
            const double after = work_.done();
            if (!work_.is_running()) {
                bench_fail("the neighbour ended before the measurement", __LINE__);
            }
            out->speed.push_back((after - before) / took);
        }
        out->start_ms.push_back(start_ms);
        out->gbs.push_back(found.gbs);
        out->p50.push_back(found.p50_us);
        out->p99.push_back(found.p99_us);
        if (checks) {
            wrong_ +=
                pool_.wrong(static_cast<uint32_t>(std::min<uint64_t>(found.samples, pool_.slots)));
            pool_.poison();
        }
    }
    if (kind >= 0) {
        work_.stop();
    }
    way.reset();
    for (cudaStream_t stream : rest.stream) {
        if (stream) {
            CUDA_MUST(cudaStreamDestroy(stream));
        }
    }
}

place shares::place_of(const shape &s, uint32_t processors, bool green) const
{
    place at = {processors, of_.plan, nullptr};
    bench_set_piece(&at.plan, s.piece, chunk);
    at.plan.pulls = of_.plan.pulls * of_.plan.in_piece / at.plan.in_piece;
    at.plan.depth = s.depth;
    at.plan.warps = s.warps;
    at.plan.blocks = processors * s.blocks_each;
    at.plan.pulls = std::min(at.plan.pulls, at.plan.blocks);
    if (green && wic_part_create(processors, &at.part) != 0) {
        bench_fail(wic_link_why(), __LINE__);
    }
    return at;
}

// The fewest multiprocessors, and their blocks, with which the stream next to the neighbour keeps
// up with a 99th percentile of at most 1.4 times that of the stream alone. If none does, those with
// which both together keep the most.
place shares::find(const manner &m, double gbs, int kind, double p99, double alone)
{
    const bool green = m.way == WIC_SHARE_GREEN;
    const shape *const first = green ? shapes : padded_shapes;
    const size_t n = green ? std::size(shapes) : std::size(padded_shapes);
    place best = {};
    double most = -1;
    for (const uint32_t count : {2u, 4u, 6u, 8u, 12u, 16u, 20u, 24u, 32u, 40u, 48u, 64u}) {
        for (size_t i = 0; i < n && !(is_small() && count != 4); i++) {
            const place at = place_of(first[i], count, green);
            figures f;
            run(m, at, gbs, kind, opt_.seconds / 3, false, &f);
            const double kept = middle(f.speed) / alone + middle(f.gbs) / gbs;
            const bool good = middle(f.gbs) > 0.99 * gbs && middle(f.p99) < 1.4 * p99;
            if (kept > most || good) {
                wic_part_destroy(best.part);
                best = at;
                most = kept;
            } else {
                wic_part_destroy(at.part);
            }
            if (good) {
                return best;
            }
        }
    }
    return best;
}

double shares::speed_alone(work_kind kind)
{
    work_.start(kind, nullptr, false, launches_for(2 * opt_.seconds));
    spin(5e-3);
    const double before = work_.done(), since = bench_seconds();
    spin(opt_.seconds / 2);
    const double took = bench_seconds() - since, after = work_.done();
    if (!work_.is_running()) {
        bench_fail("the neighbour ended before the measurement", __LINE__);
    }
    work_.stop();
    return (after - before) / took;
}

void shares::print(const char *beside, double gbs, const char *name, const figures &f,
                   const figures &alone, double alone_speed, double unshaped) const
{
    const wic_shaped &s = f.shaped;
    if (f.gbs.empty()) {
        printf("%-7s %5.0f  %-12s %4u %6u  the kernel found no room\n", beside, gbs, name,
               s.multiprocessors, s.blocks);
        return;
    }
    printf("%-7s %5.0f  %-12s %4u %6u %8.2f %7.2f %8.1f %8.1f", beside, gbs, name,
           s.multiprocessors, s.blocks, middle(f.start_ms), middle(f.gbs), middle(f.p50),
           middle(f.p99));
    if (alone_speed > 0) {
        const double kept = middle(f.speed) / alone_speed, total = kept + middle(f.gbs) / gbs;
        printf(" %7.2f %8.1f %7.1f %7.3f %7.3f", middle(f.p99) / middle(alone.p99), middle(f.speed),
               100 * (1 - kept), total, total / unshaped);
    }
    printf("  %s\n", s.why);
    fflush(stdout);
}

void shares::compare(double gbs, int kind, const figures &alone)
{
    constexpr size_t n = std::size(manners);
    figures found[n];
    std::vector<double> speed = {speed_alone(static_cast<work_kind>(kind))};
    wic_part *part = nullptr;
    const bool has_parts = wic_part_create(2, &part) == 0;
    if (!has_parts) {
        printf("no green context: %s\n", wic_link_why());
    }
    wic_part_destroy(part);
    const place whole = {0, of_.plan, nullptr};
    const place padded = find(manners[3], gbs, kind, middle(alone.p99), speed[0]);
    const place green =
        has_parts ? find(manners[5], gbs, kind, middle(alone.p99), speed[0]) : padded;
    const auto is_possible = [&](const manner &m) {
        return (has_parts || m.way != WIC_SHARE_GREEN) && (!m.padded || kind == WORK_GEMM);
    };
    speed.clear();
    for (uint32_t round = 0; round < opt_.rounds; round++) {
        speed.push_back(speed_alone(static_cast<work_kind>(kind)));
        for (size_t i = 0; i < n; i++) {
            const manner &m = manners[i];
            if (is_possible(m)) {
                const place &at = !m.few ? whole : m.way == WIC_SHARE_PADDED ? padded : green;
                run(m, at, gbs, kind, opt_.seconds, true, &found[i]);
            }
        }
    }
    wic_part_destroy(green.part);
    const double unshaped = middle(found[0].speed) / middle(speed) + middle(found[0].gbs) / gbs;
    printf("%-7s        alone: %.1f %s; few blocks and green: blocks of %u warps, %u bytes x %u; "
           "padded: %u warps, %u x %u\n",
           work_names[kind], middle(speed), work_units[kind], green.plan.warps, green.plan.in_piece,
           green.plan.depth, padded.plan.warps, padded.plan.in_piece, padded.plan.depth);
    for (size_t i = 0; i < n; i++) {
        if (is_possible(manners[i])) {
            print(work_names[kind], gbs, manners[i].name, found[i], alone, middle(speed), unshaped);
        }
    }
}

bool shares::measure()
{
    const unsigned bad = work_.wrong();
    printf("a stream of chunks of %zu KiB next to kernels that fill the GPU; medians of %u rounds\n"
           "SMs: that its kernel's blocks can be on; start: until the kernel runs; times: of the "
           "stream's p99 alone; loss: of the neighbour;\n"
           "total: the parts that both keep, and over that of unshaped\n",
           chunk / 1024, opt_.rounds);
    printf("%-7s %5s  %-12s %4s %6s %8s %7s %8s %8s %7s %8s %7s %7s %7s\n", "next to", "GB/s",
           "way", "SMs", "blocks", "start ms", "GB/s", "p50 us", "p99 us", "times", "speed",
           "loss %", "total", "ratio");
    for (const std::string &rate : bench_split(opt_.rates)) {
        const double gbs = atof(rate.c_str());
        figures alone = {};
        for (uint32_t round = 0; round < 2 * opt_.rounds + 1; round++) {
            run(manners[0], {0, of_.plan, nullptr}, gbs, -1, opt_.seconds, true, &alone);
        }
        print("-", gbs, "alone", alone, alone, 0, 1);
        for (int kind = 0; kind < WORK_KINDS; kind++) {
            compare(gbs, kind, alone);
        }
    }
    printf("%llu elements of the stream wrong, %u of 64 of the product\n",
           static_cast<unsigned long long>(wrong_), bad);
    return wrong_ == 0 && bad == 0;
}
} // namespace

bool measure_shares(const bench_options &opt)
{
    return shares(opt).measure();
}
