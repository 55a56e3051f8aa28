// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-bench: compares the strategies to process chunks on a GPU, in one run.
//   throughput   all slots kept full, GB/s of input; every element of every slot checked after it
//   latency      one chunk at a time, 20 us apart, publish to host-visible result, p50 and p99
//   leave        from the last result until the GPU is free again
//   neighbours   what waiting warps cost compute warps on the same multiprocessors
// Usage: wic-bench --help.
// Exit: 0, or 1 when an element was wrong or the kernel did not leave as it must.
#include "wic/bench/bench.cuh"
#include "wic/bench/options.cuh"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

namespace
{
constexpr double latency_limit_s = 3;

struct result {
    std::string strategy;
    size_t chunk;
    wic_transfer_plan plan;
    double gbs, p50_us, p99_us, leave_ms;
    uint64_t wrong;
};

struct neighbour_result {
    std::string strategy;
    uint32_t warps;
    neighbours slowdown;
};

const char *const waiting_names[] = {"wic", "poll-host", "poll-device", "poll-nanosleep"};

std::unique_ptr<strategy> make(const std::string &name, const bench_pool &pool,
                               const wic_transfer_plan &plan)
{
    for (int kind = WAIT_PARKED; kind <= WAIT_POLL_NANOSLEEP; kind++) {
        if (name == waiting_names[kind]) {
            return make_resident(static_cast<wait_kind>(kind), pool, plan);
        }
    }
    return name == "graph" ? make_graph(pool) : make_streams(pool);
}

wic_gpu this_gpu()
{
    int device = 0;
    wic_gpu gpu;
    CUDA_MUST(cudaGetDevice(&device));
    if (wic_gpu_read(device, &gpu) != 0) {
        bench_fail("the GPU does not answer", __LINE__);
    }
    return gpu;
}

void set_piece(wic_transfer_plan *plan, size_t piece, size_t chunk)
{
    plan->in_piece = static_cast<uint32_t>(std::min(piece, chunk));
    plan->piece_units = plan->in_piece / in_unit;
    plan->out_piece = plan->in_piece / in_unit * out_unit;
    plan->pieces = static_cast<uint32_t>((chunk + plan->in_piece - 1) / plan->in_piece);
}

wic_transfer_plan plan_for(const bench_options &opt, size_t chunk)
{
    const wic_gpu gpu = this_gpu();
    wic_tile_shape shape = {};
    shape.slot_bytes = chunk;
    shape.in_unit = in_unit;
    shape.out_unit = out_unit;
    wic_transfer_plan plan;
    if (wic_transfer_plan_choose(&gpu, &shape, nullptr, &plan) != 0) {
        bench_fail("no transfer plan for this GPU", __LINE__);
    }
    if (opt.piece) {
        set_piece(&plan, opt.piece, chunk);
    }
    if (opt.results >= 0) {
        plan.results = static_cast<wic_results>(opt.results);
    }
    plan.depth = opt.depth ? opt.depth : plan.depth;
    plan.blocks = opt.blocks ? opt.blocks : plan.blocks;
    plan.warps = opt.warps ? opt.warps : plan.warps;
    plan.pulls = std::min(plan.blocks, opt.pulls ? opt.pulls : plan.pulls);
    return plan;
}

void measure_latency(strategy &way, int samples, result *out)
{
    std::vector<double> us;
    const double limit = bench_seconds() + latency_limit_s;
    for (int i = 0; i < samples && (i < 100 || bench_seconds() < limit); i++) {
        const double start = bench_seconds();
        way.once();
        const double end = bench_seconds();
        us.push_back(1e6 * (end - start));
        while (bench_seconds() < end + 20e-6) {
        }
    }
    std::sort(us.begin(), us.end());
    out->p50_us = us[us.size() / 2];
    out->p99_us = us[us.size() * 99 / 100];
}

// False: the plan does not fit on this GPU.
bool measure(const bench_options &opt, const std::string &name, bench_pool &pool,
             const wic_transfer_plan &plan, result *out)
{
    std::unique_ptr<strategy> way = make(name, pool, plan);
    if (!way) {
        return false;
    }
    *out = {name, pool.chunk, plan, 0, 0, 0, 0, 0};
    const uint64_t probe = 256;
    way->throughput(probe); // warm up
    const double each = way->throughput(probe) / static_cast<double>(probe);
    const uint64_t chunks = std::max(probe, static_cast<uint64_t>(opt.seconds / each));
    pool.poison();
    const double seconds = way->throughput(chunks);
    out->gbs = 1e-9 * static_cast<double>(chunks) * static_cast<double>(pool.chunk) / seconds;
    out->wrong = pool.wrong(way->slots_used(chunks));
    measure_latency(*way, opt.samples, out);
    out->leave_ms = way->leave_ms();
    return true;
}

// Polling kernels have their own best shape: the best of three, by throughput.
bool measure_best(const bench_options &opt, const std::string &name, bench_pool &pool,
                  const wic_transfer_plan &plan, result *out)
{
    if (name.rfind("poll", 0) != 0 || opt.blocks || opt.warps) {
        return measure(opt, name, pool, plan, out);
    }
    const uint32_t processors = this_gpu().multiprocessors;
    for (uint32_t blocks : {processors / 2, processors, 2 * processors}) {
        wic_transfer_plan other = plan;
        other.blocks = blocks;
        other.pulls = 1; // not for them
        other.warps = 8;
        result r;
        if (!measure(opt, name, pool, other, &r)) {
            return false;
        }
        if (blocks == processors / 2 || r.gbs > out->gbs) {
            *out = r;
        }
    }
    return true;
}

void print(const result &r)
{
    printf("%-15s %7zu %8.2f %9.1f %9.1f %8.2f %8llu  %6u x%u, %u blocks of %u, %u pulls\n",
           r.strategy.c_str(), r.chunk / 1024, r.gbs, r.p50_us, r.p99_us, r.leave_ms,
           static_cast<unsigned long long>(r.wrong), r.plan.in_piece, r.plan.depth, r.plan.blocks,
           r.plan.warps, r.plan.pulls);
    fflush(stdout);
}

// Every shape of plan for wic: what fills the table of transfer_plan.c.
void sweep(const bench_options &opt, bench_pool &pool, size_t chunk, std::vector<result> *results)
{
    const uint32_t processors = this_gpu().multiprocessors;
    for (size_t piece : {8192, 16384, 32768}) {
        if (piece > chunk) {
            break;
        }
        pool.lay_out(chunk, piece);
        for (uint32_t blocks : {processors / 2, processors, 2 * processors}) {
            for (uint32_t pulls : {4, 6, 8, 12, 16, 24, 48}) {
                wic_transfer_plan plan = plan_for(opt, chunk);
                set_piece(&plan, piece, chunk);
                plan.blocks = blocks;
                plan.pulls = pulls;
                result r;
                if (measure(opt, "wic", pool, plan, &r)) {
                    print(r);
                    results->push_back(r);
                }
            }
        }
    }
}

// "580.95.05", as the kernel module says; "" where it is hidden.
std::string driver_version()
{
    char line[256] = "";
    if (FILE *file = fopen("/proc/driver/nvidia/version", "r")) {
        line[fread(line, 1, sizeof line - 1, file)] = 0;
        fclose(file);
    }
    for (const std::string &word : bench_split(line, " \n")) {
        if (word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos) {
            return word;
        }
    }
    return "";
}

std::string utc_now()
{
    char text[32];
    const time_t now = time(nullptr);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return text;
}

// The architecture that the kernels were compiled for, 80 for sm_80: older paths also run on newer
// GPUs, from PTX.
int code_architecture()
{
    cudaFuncAttributes found;
    CUDA_MUST(cudaFuncGetAttributes(&found, resident_kernel(WAIT_PARKED)));
    return found.ptxVersion;
}

void write_head(FILE *file)
{
    int cuda = 0;
    CUDA_MUST(cudaDriverGetVersion(&cuda));
    const wic_gpu gpu = this_gpu();
    fprintf(file,
            "{\"gpu\": \"%s\", \"compute\": %d, \"code\": %d, \"driver\": \"%s\", \"cuda\": "
            "\"%d.%d\", \"date\": \"%s\",\n\"results\": [",
            gpu.name, gpu.compute, code_architecture(), driver_version().c_str(), cuda / 1000,
            cuda % 1000 / 10, utc_now().c_str());
}

void write_json(const char *path, const std::vector<result> &results,
                const std::vector<neighbour_result> &beside)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        bench_fail("the JSON file cannot be written", __LINE__);
    }
    write_head(file);
    const char *comma = "";
    for (const result &r : results) {
        fprintf(
            file,
            "%s\n {\"strategy\": \"%s\", \"chunk_bytes\": %zu, \"gbs\": %.3f, \"p50_us\": %.2f, "
            "\"p99_us\": %.2f, \"leave_ms\": %.3f, \"wrong\": %llu, \"pieces\": %u, "
            "\"piece_bytes\": %u, \"depth\": %u, \"blocks\": %u, \"warps\": %u, \"pulls\": %u}",
            comma, r.strategy.c_str(), r.chunk, r.gbs, r.p50_us, r.p99_us, r.leave_ms,
            static_cast<unsigned long long>(r.wrong), r.plan.pieces, r.plan.in_piece, r.plan.depth,
            r.plan.blocks, r.plan.warps, r.plan.pulls);
        comma = ",";
    }
    fprintf(file, "],\n\"neighbours\": [");
    comma = "";
    for (const neighbour_result &r : beside) {
        fprintf(file,
                "%s\n {\"strategy\": \"%s\", \"waiting_warps\": %u, \"fma\": %.4f, \"memory\": "
                "%.4f}",
                comma, r.strategy.c_str(), r.warps, r.slowdown.fma, r.slowdown.memory);
        comma = ",";
    }
    fprintf(file, "]}\n");
    if (fclose(file) != 0) {
        bench_fail("the JSON file cannot be written", __LINE__);
    }
}

void measure_all(const bench_options &opt, bench_pool &pool, std::vector<result> *results)
{
    printf("%-15s %7s %8s %9s %9s %8s %8s  plan\n", "strategy", "KiB", "GB/s", "p50 us", "p99 us",
           "leave ms", "wrong");
    for (size_t size : opt.sizes) {
        const size_t chunk = size * 1024;
        if (opt.sweep) {
            sweep(opt, pool, chunk, results);
            continue;
        }
        const wic_transfer_plan plan = plan_for(opt, chunk);
        pool.lay_out(chunk, plan.in_piece);
        for (const std::string &name : bench_split(opt.strategies)) {
            result r;
            if (!measure_best(opt, name, pool, plan, &r)) {
                bench_fail("the plan does not fit on this GPU", __LINE__);
            }
            print(r);
            results->push_back(r);
        }
    }
}

void measure_beside(const bench_options &opt, bench_pool &pool,
                    std::vector<neighbour_result> *beside)
{
    printf("%-15s %7s %8s %8s\n", "waiting", "warps", "FMA", "memory");
    pool.lay_out(16384, 16384);
    for (const std::string &name : bench_split(opt.strategies)) {
        for (int kind = WAIT_PARKED; kind <= WAIT_POLL_NANOSLEEP; kind++) {
            if (name != waiting_names[kind]) {
                continue;
            }
            for (const size_t beside_warps : opt.beside) {
                const uint32_t warps = static_cast<uint32_t>(beside_warps);
                neighbours slow;
                if (!measure_neighbours(static_cast<wait_kind>(kind), pool, warps, &slow)) {
                    printf("%-15s %7u  no room on a multiprocessor for both\n", name.c_str(),
                           warps);
                    continue;
                }
                printf("%-15s %7u %8.3f %8.3f\n", name.c_str(), warps, slow.fma, slow.memory);
                fflush(stdout);
                beside->push_back({name, warps, slow});
            }
        }
    }
}
} // namespace

int main(int argc, char **argv)
{
    bench_options opt;
    if (!bench_parse(argc, argv, &opt)) {
        return 2;
    }
    if (opt.help) {
        bench_help();
        return 0;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // no first launch beside a resident kernel
    if (opt.soak) {
        return soak(opt.soak, opt.transport) ? 0 : 1;
    }
    if (opt.ways_out) {
        return ways_out() ? 0 : 1;
    }
    if (opt.replay) {
        return replay() ? 0 : 1;
    }
    bench_pool pool(opt.window << 20, opt.huge);
    if (opt.park_ms > 0) {
        pool.lay_out(16384, 16384);
        park_for(opt.park_ms, pool, plan_for(opt, pool.chunk));
        return 0;
    }
    std::vector<result> results;
    std::vector<neighbour_result> beside;
    measure_all(opt, pool, &results);
    if (!opt.beside.empty() && !opt.sweep) {
        measure_beside(opt, pool, &beside);
    }
    if (!opt.json.empty()) {
        write_json(opt.json.c_str(), results, beside);
    }
    uint64_t wrong = 0;
    for (const result &r : results) {
        wrong += r.wrong;
    }
    return wrong ? 1 : 0;
}
