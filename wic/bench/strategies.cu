// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of strategies, and the shapes that each is tried in.
#include "wic/bench/strategies.cuh"

#include <algorithm>

namespace
{
template <wait_kind kind>
std::unique_ptr<strategy> resident(const bench_pool &pool, const bench_shape &shape)
{
    return make_resident(kind, pool, shape.plan);
}

// wic's plan is the library's choice.
std::vector<bench_shape> as_planned(const bench_case &of)
{
    return {{of.plan, 0, 0, 0}};
}

// As many as --sweep tries for wic.
std::vector<bench_shape> polling(const bench_case &of)
{
    std::vector<bench_shape> shapes;
    for (size_t piece : {4096, 8192, 16384, 32768}) {
        if (piece > of.chunk) {
            break;
        }
        for (uint32_t half_blocks : {1, 2, 4, 6}) {
            for (uint32_t warps : {4, 8, 16, 24}) {
                wic_transfer_plan plan = of.plan;
                bench_set_piece(&plan, piece, of.chunk);
                plan.blocks = of.gpu.multiprocessors * half_blocks / 2;
                plan.pulls = 1; // not for them
                plan.warps = warps;
                shapes.push_back({plan, 0, 0, 0});
            }
        }
    }
    return shapes;
}

template <uint32_t lanes> std::vector<bench_shape> batches(const bench_case &of)
{
    std::vector<bench_shape> shapes;
    for (uint32_t queued : {1, 2}) {
        for (size_t batch = size_t{1} << 18; batch <= size_t{1} << 24; batch *= 2) {
            if (batch >= of.chunk) {
                shapes.push_back({of.plan, lanes, queued, batch});
            }
        }
        if (of.chunk > size_t{1} << 24) {
            shapes.push_back({of.plan, lanes, queued, of.chunk});
        }
    }
    return shapes;
}

std::vector<bench_shape> streams(const bench_case &of)
{
    std::vector<bench_shape> shapes;
    for (uint32_t lanes : {2, 4, 8}) {
        for (uint32_t queued : {1, 4, 16}) {
            shapes.push_back({of.plan, lanes, queued, 0});
        }
    }
    return shapes;
}
} // namespace

const std::vector<strategy_kind> &bench_strategies()
{
    static const std::vector<strategy_kind> all = {
        {"wic", "parked warps, the bare link", resident<WAIT_PARKED>, as_planned},
        {"wic-channel", "the same through channels and device proxy", make_wic_channel, as_planned},
        {"poll-host", "every warp polls the host's flag", resident<WAIT_POLL_HOST>, polling},
        {"poll-device", "every warp polls a mirror in device memory", resident<WAIT_POLL_DEVICE>,
         polling},
        {"poll-nanosleep", "the same, sleeping between polls", resident<WAIT_POLL_NANOSLEEP>,
         polling},
        {"stream", "copy, kernel, copy a chunk", make_stream, streams},
        {"stream-batch", "copy, kernel, copy of all that has arrived, 4 streams", make_stream_batch,
         batches<4>},
        {"stream-batch-8", "the same, 8 streams", make_stream_batch, batches<8>},
        {"graph", "a graph a chunk, four at a time", make_graph, as_planned},
    };
    return all;
}

const strategy_kind &find_strategy(const std::string &name)
{
    const std::vector<strategy_kind> &all = bench_strategies();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const strategy_kind &kind) { return name == kind.name; });
    if (found == all.end()) {
        bench_fail(("no strategy is called " + name).c_str(), __LINE__);
    }
    return *found;
}

void bench_set_piece(wic_transfer_plan *plan, size_t piece, size_t chunk)
{
    plan->in_piece = static_cast<uint32_t>(std::min(piece, chunk));
    plan->piece_units = plan->in_piece / in_unit;
    plan->out_piece = plan->in_piece / in_unit * out_unit;
    plan->pieces = static_cast<uint32_t>((chunk + plan->in_piece - 1) / plan->in_piece);
}

std::string bench_shape_text(const bench_shape &shape)
{
    char text[160];
    if (shape.lanes > 0) {
        const int length =
            snprintf(text, sizeof text, "%u streams of %u", shape.lanes, shape.queued);
        if (shape.batch > 0) {
            snprintf(text + length, sizeof text - static_cast<size_t>(length),
                     ", batches up to %zu KiB", shape.batch / 1024);
        }
    } else {
        const wic_transfer_plan &plan = shape.plan;
        snprintf(text, sizeof text, "pieces of %u bytes x%u, %u blocks of %u warps, %u pulls",
                 plan.in_piece, plan.depth, plan.blocks, plan.warps, plan.pulls);
    }
    return text;
}
