// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Both stages by all strategies, in turn in each round, with new inputs each round and poison
// before each run. Work is queued after a kernel that sleeps, therefore the time of a run has no
// calls of the host in it.
#include "wic/stages/kernels.cuh"

#include <algorithm>
#include <cmath>

namespace
{
constexpr double RAGGED_GAIN = 1.10, LEAST = 0.97; // gain of workers over streams
constexpr uint64_t HOLD_NS = 100000;

using strategies = std::vector<std::unique_ptr<stage_strategy>>;

struct measured {
    std::string name;
    std::vector<double> us;
    uint64_t wrong = 0;
    uint32_t stopped = 0;
};

strategies make_all()
{
    strategies all;
    all.push_back(make_streams());
    all.push_back(make_launch_early());
    all.push_back(make_graph());
    all.push_back(make_spin());
    all.push_back(make_spin_depth());
    all.push_back(make_workers());
    all.push_back(make_free());
    return all;
}

struct bench {
    cudaStream_t main, side;
    cudaEvent_t begin, end;
    uint32_t slots; // tiles that the GPU computes at a time
};

bench make_bench()
{
    bench b = {};
    int per = 0, processors = 0;
    CUDA_MUST(cudaStreamCreateWithFlags(&b.main, cudaStreamNonBlocking));
    CUDA_MUST(cudaStreamCreateWithFlags(&b.side, cudaStreamNonBlocking));
    CUDA_MUST(cudaEventCreate(&b.begin));
    CUDA_MUST(cudaEventCreate(&b.end));
    allow_shared(plain_producers<>);
    CUDA_MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CUDA_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, plain_producers<>, TILE_THREADS,
                                                            TILE_SHARED));
    b.slots = static_cast<uint32_t>(per * processors);
    return b;
}

void destroy(const bench &b)
{
    CUDA_MUST(cudaStreamDestroy(b.main));
    CUDA_MUST(cudaStreamDestroy(b.side));
    CUDA_MUST(cudaEventDestroy(b.begin));
    CUDA_MUST(cudaEventDestroy(b.end));
}

double run_once(const bench &b, stage_strategy &strategy, const stages &view)
{
    float ms = 0;
    hold_stream(b.main, HOLD_NS);
    CUDA_MUST(cudaEventRecord(b.begin, b.main));
    strategy.queue(view, b.main, b.side);
    CUDA_MUST(cudaEventRecord(b.end, b.main));
    CUDA_MUST(cudaDeviceSynchronize());
    CUDA_MUST(cudaEventElapsedTime(&ms, b.begin, b.end));
    return 1000.0 * static_cast<double>(ms);
}

// The bound needs the producer's result: it finds the one of the strategy before.
bool is_bound(const stage_strategy &strategy)
{
    return std::string(strategy.name()) == "free";
}

void run_strategy(const bench &b, stage_strategy &strategy, const stage_data &data,
                  const stages &view, measured *out)
{
    const double us = run_once(b, strategy, view);
    const uint32_t stopped = strategy.stopped();
    out->us.push_back(us);
    out->stopped += stopped;
    out->wrong += data.wrong();
    if (stopped) { // its words have lost count
        (void)strategy.prepare(view);
    }
}

// All strategies that can, in an order that begins with another one each round.
bool run_rounds(const depend_options &options, const bench &b, stage_data &data, const stages &view,
                std::vector<measured> *out)
{
    strategies all = make_all();
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const auto &one) { return !one->prepare(view); }),
              all.end());
    out->resize(all.size());
    bool good = true;
    for (uint32_t round = 0; round < options.rounds; round++) {
        good = data.fill(options.seed + 1000 * round) && good;
        for (size_t i = 0; i < all.size(); i++) {
            const size_t at = is_bound(*all[i]) ? i : (i + round) % (all.size() - 1);
            (*out)[at].name = all[at]->name();
            if (round == 0 && options.mistake == STAGE_RIGHT) { // loads the kernels
                (void)run_once(b, *all[at], view);
            }
            for (uint32_t run = 0; run < options.runs; run++) {
                if (!is_bound(*all[at])) {
                    data.poison();
                }
                run_strategy(b, *all[at], data, view, &(*out)[at]);
            }
        }
    }
    return good;
}

double time_of(const std::vector<measured> &all, const char *name)
{
    for (const measured &m : all) {
        if (m.name == name) {
            return median_of(m.us);
        }
    }
    return NAN;
}

// Verdict of a row: the fastest strategy, and workers compared to streams. The bound shows what
// there is to win: waves that are ragged alone may fill up again when both stages are added.
std::string verdict_of(const std::vector<measured> &all)
{
    const double streams = time_of(all, "streams"), workers = time_of(all, "workers");
    const double bound = streams / time_of(all, "free"), gain = streams / workers;
    const double bar = bound >= RAGGED_GAIN ? RAGGED_GAIN : LEAST;
    const measured *best = &all[0];
    for (const measured &m : all) {
        if (m.name != "free" && median_of(m.us) < median_of(best->us)) {
            best = &m;
        }
    }
    char text[200];
    snprintf(text, sizeof text, "%s %.2f, workers %.2f%s, bound %.2f%s", best->name.c_str(),
             streams / median_of(best->us), gain, gain < bar ? " (below the bar)" : "", bound,
             bound < RAGGED_GAIN ? ": nothing to win" : "");
    return text;
}

void print_json(FILE *to, const stage_shape &shape, const stages &view, double waves,
                const std::vector<measured> &all)
{
    static const char *const kinds[STAGE_KINDS] = {"product", "points", "neighbours", "thirds"};
    fprintf(to,
            "{\"row\": \"%s\", \"kind\": \"%s\", \"waves\": %.3f, \"rows\": %u, \"mid\": %u, "
            "\"cols\": %u, \"depth\": %u, \"order\": \"%s\", \"us\": {",
            shape.name, kinds[shape.kind], waves, shape.rows, shape.mid, shape.cols, shape.depth,
            wic_order_name(view.order));
    for (size_t i = 0; i < all.size(); i++) {
        fprintf(to, "%s\"%s\": [%.2f, %.4f]", i ? ", " : "", all[i].name.c_str(),
                median_of(all[i].us), spread_of(all[i].us));
    }
    fprintf(to, "}}\n");
}

bool is_right(const depend_options &options, const std::vector<measured> &all, const char *row)
{
    bool good = true;
    for (const measured &m : all) {
        if (options.mistake == STAGE_RIGHT && (m.wrong > 0 || m.stopped > 0)) {
            printf("  %s, %s: WRONG, %llu elements%s\n", row, m.name.c_str(),
                   static_cast<unsigned long long>(m.wrong), m.stopped ? ", time limit" : "");
            good = false;
        }
    }
    return good;
}

// With a mistake: each strategy that can make it is found in each run.
bool is_found(const depend_options &options, const std::vector<measured> &all, const char *row)
{
    bool good = true;
    for (const measured &m : all) {
        const bool waits = m.name == "workers" || m.name.rfind("spin", 0) == 0;
        if (m.name == "free" || (options.mistake == STAGE_SILENT && !waits)) {
            continue;
        }
        const bool found = options.mistake == STAGE_SILENT
                               ? m.stopped == options.rounds * options.runs
                               : m.wrong >= options.rounds * options.runs && m.stopped == 0;
        printf("  %s, %s: %s\n", row, m.name.c_str(), found ? "found" : "NOT FOUND");
        good = good && found;
    }
    return good;
}

void print_head()
{
    printf("| tiles | depth | order | waves | streams, us | launch-early | graph | spin | "
           "spin-depth | workers | bound | TFLOP/s: streams, best | x streams |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

void print_row(const stage_shape &shape, const stages &view, double waves,
               const std::vector<measured> &all)
{
    static const char *const names[] = {"streams",    "launch-early", "graph", "spin",
                                        "spin-depth", "workers",      "free"};
    const double tile = 2.0 * TILE_ROWS * TILE_COLS;
    double work = tile * shape.rows * shape.mid * shape.depth, best = INFINITY;
    work +=
        shape.kind == STAGE_PRODUCT ? tile * shape.rows * shape.cols * shape.mid * TILE_COLS : 0;
    printf("| %ux%u, %ux%u %s | %u | %s | %.2f |", shape.rows, shape.mid, shape.rows, shape.cols,
           shape.name, shape.depth, wic_order_name(view.order), waves);
    for (const char *name : names) {
        const double us = time_of(all, name);
        std::isnan(us) ? printf(" - |") : printf(" %.1f |", us);
        best = std::string(name) != "free" && us < best ? us : best;
    }
    printf(" %.0f, %.0f | %s |\n", work / time_of(all, "streams") * 1e-6, work / best * 1e-6,
           verdict_of(all).c_str());
    fflush(stdout);
}

bool measure_shape(const depend_options &options, const bench &b, const stage_shape &shape,
                   wic_tile_order order)
{
    std::vector<measured> all;
    stage_data data(shape);
    stages view = data.view;
    view.order = order;
    view.mistake = options.mistake;
    const double waves = static_cast<double>(shape.rows * shape.mid) / b.slots;
    if (!run_rounds(options, b, data, view, &all)) {
        printf("  %s: the reference is WRONG\n", shape.name);
        return false;
    }
    if (options.mistake != STAGE_RIGHT) {
        return is_found(options, all, shape.name);
    }
    if (!options.check) {
        print_row(shape, view, waves, all);
    }
    if (options.json) {
        print_json(options.json, shape, view, waves, all);
    }
    return is_right(options, all, shape.name);
}

std::vector<stage_shape> shapes_of(const depend_options &options, const bench &b)
{
    constexpr uint32_t across = 1536 / TILE_COLS;
    std::vector<stage_shape> shapes;
    if (options.check || options.mistake != STAGE_RIGHT) {
        return {{"product", STAGE_PRODUCT, 3, 3, 2, 128},
                {"points", STAGE_POINTS, 2, 3, 3, 128},
                {"neighbours", STAGE_NEIGHBOURS, 3, 4, 4, 192},
                {"thirds", STAGE_THIRDS, 3, 6, 2, 64}};
    }
    if (options.part == "all" || options.part == "products") {
        for (const double waves : {1.1, 1.25, 1.5, 1.75, 2.0, 2.1, 2.5, 2.9}) {
            const double rows = waves * b.slots / across;
            shapes.push_back(
                {"", STAGE_PRODUCT, static_cast<uint32_t>(rows + 0.5), across, across, 1536});
        }
        shapes.push_back({"MLP", STAGE_PRODUCT, 4, 6144 / TILE_COLS, 12288 / TILE_COLS, 12288});
        shapes.push_back({"MLP", STAGE_PRODUCT, 8, 6144 / TILE_COLS, 12288 / TILE_COLS, 12288});
    }
    if (options.part == "all" || options.part == "policies") {
        const uint32_t rows = (b.slots * 3 / 2 + across / 2) / across;
        shapes.push_back({"points", STAGE_POINTS, rows, across, across, 1536});
        shapes.push_back({"neighbours", STAGE_NEIGHBOURS, rows, across, across, 1536});
        shapes.push_back({"thirds", STAGE_THIRDS, rows, across, across / 3, 1536});
    }
    return shapes;
}
} // namespace

bool measure_stages(const depend_options &options)
{
    const bench b = make_bench();
    bool good = true;
    if (!options.check && options.mistake == STAGE_RIGHT) {
        printf("%u tiles of %u x %u at a time\n", b.slots, TILE_ROWS, TILE_COLS);
        print_head();
    }
    for (const stage_shape &shape : shapes_of(options, b)) {
        for (uint32_t i = 0; i < WIC_ORDERS; i++) {
            const auto order = static_cast<wic_tile_order>(i);
            if (options.all_orders || options.check || order == options.order) {
                good = measure_shape(options, b, shape, order) && good;
            }
        }
    }
    destroy(b);
    return good;
}
