// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of strategies, and the shapes that each is tried in.
#include "wic/bench/strategies/strategies.cuh"

#include <algorithm>

namespace
{
template <wait_kind kind>
std::unique_ptr<strategy> resident(const bench_pool &pool, const bench_shape &shape)
{
    return make_resident(resident_kernel(kind), pool, shape.plan);
}

// wic's plan is the library's choice.
std::vector<bench_shape> as_planned(const bench_case &of)
{
    return {{of.plan, 0, 0, 0}};
}

// A piece of every size, so many blocks on every two multiprocessors, and so many warps. As many
// shapes as --sweep tries for wic.
std::vector<bench_shape> kernels(const bench_case &of, const std::vector<uint32_t> &half_blocks,
                                 const std::vector<uint32_t> &warps)
{
    std::vector<bench_shape> shapes;
    for (size_t piece : {4096, 8192, 16384, 32768}) {
        if (of.chunk % piece != 0) {
            break;
        }
        for (uint32_t blocks : half_blocks) {
            for (uint32_t some : warps) {
                wic_transfer_plan plan = of.plan;
                bench_set_piece(&plan, piece, of.chunk);
                plan.blocks = of.gpu.multiprocessors * blocks / 2;
                plan.pulls = plan.blocks; // no bound
                plan.warps = some;
                shapes.push_back({plan, 0, 0, 0});
            }
        }
    }
    return shapes;
}

std::vector<bench_shape> polling(const bench_case &of)
{
    return kernels(of, {1, 2, 4, 6}, {4, 8, 16, 24});
}

// With and without a bound on what crosses the link.
std::vector<bench_shape> elected(const bench_case &of)
{
    std::vector<bench_shape> shapes;
    for (bench_shape shape : kernels(of, {1, 2, 4, 6}, {8, 16})) {
        shape.plan.depth = 1;
        shape.plan.results = WIC_PUSH_STORES;
        shapes.push_back(shape);
        shape.plan.pulls = std::min(shape.plan.blocks, (256 << 10) / shape.plan.in_piece);
        shapes.push_back(shape);
    }
    return shapes;
}

// Two stages; block 0 does not work.
std::vector<bench_shape> pipelines(const bench_case &of)
{
    std::vector<bench_shape> shapes = kernels(of, {1, 2, 4, 6}, {5, 13, 29});
    for (bench_shape &shape : shapes) {
        shape.plan.depth = 2;
        shape.plan.results = WIC_PUSH_STORES;
    }
    return shapes;
}

// wic's transport by copy engine, in units of lines.
std::vector<bench_shape> copied(const bench_case &of)
{
    std::vector<bench_shape> shapes;
    const uint32_t lines = static_cast<uint32_t>(of.chunk / line_in);
    for (uint32_t piece : {1, 2, 4, 8}) {
        for (uint32_t blocks : {1, 2}) {
            for (uint32_t warps : {8, 16}) {
                wic_work work = {};
                work.warps = warps;
                work.blocks = blocks;
                bench_shape shape = {};
                if (lines % piece == 0 && wic_transfer_plan_whole(&of.gpu, WIC_COPY, lines / piece,
                                                                  &work, &shape.plan) == 0) {
                    shape.plan.piece_units = piece;
                    shapes.push_back(shape);
                }
            }
        }
    }
    return shapes;
}

std::vector<bench_shape> faulting(const bench_case &of)
{
    std::vector<bench_shape> shapes;
    for (uint32_t blocks : {8u, of.gpu.multiprocessors / 4, of.gpu.multiprocessors}) {
        for (uint32_t warps : {8, 16}) {
            bench_shape shape = {of.plan, 0, 0, 0};
            shape.plan.blocks = blocks;
            shape.plan.warps = warps;
            shapes.push_back(shape);
        }
    }
    return shapes;
}

std::vector<bench_shape> lanes(const bench_case &of)
{
    std::vector<bench_shape> shapes;
    for (uint32_t some : {1, 2, 4, 8, 16, 32}) {
        shapes.push_back({of.plan, some, 1, 0});
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
        {"wic", WAIT_PARKED, "parked warps, the bare link", resident<WAIT_PARKED>, as_planned},
        {"wic-channel", WAIT_PARKED, "the same through channels and device proxy", make_wic_channel,
         as_planned},
        {"wic-naps", WAIT_PARKED, "the same, with naps of 10 us in place of spins",
         make_wic_channel_naps, as_planned},
        {"wic-step", WAIT_PARKED, "the same by one thread, which serves the GPU between chunks",
         make_wic_channel_steps, as_planned},
        {"poll-host", WAIT_POLL_HOST, "every warp polls the host's flag", resident<WAIT_POLL_HOST>,
         polling},
        {"poll-device", WAIT_POLL_DEVICE, "every warp polls a mirror in device memory",
         resident<WAIT_POLL_DEVICE>, polling},
        {"poll-nanosleep", WAIT_POLL_NANOSLEEP, "the same, sleeping between polls",
         resident<WAIT_POLL_NANOSLEEP>, polling},
        {"poll-naps", WAIT_POLL_NAPS, "the same, sleeping as wic's Activator does",
         resident<WAIT_POLL_NAPS>, polling},
        {"poll-elected", WAIT_POLL_ELECTED,
         "one warp of a block polls the mirror, a barrier, wic's pulls",
         resident<WAIT_POLL_ELECTED>, elected},
        {"pipeline", -1, "cuda::pipeline of two stages behind a poll of the mirror",
         resident<WAIT_PIPELINE>, pipelines},
        {"managed-flag", -1, "flags and data in managed memory, one spinning thread a block",
         make_managed, faulting},
        {"ce-post", -1, "wic's transport by copy engine, a chunk a copy",
         resident<WAIT_PARKED_WHOLE>, copied},
        {"launch", -1, "one kernel a chunk, in pinned memory", make_launch, lanes},
        {"wait-value", -1, "the same, queued before behind a wait for the host's counter",
         make_wait_value, lanes},
        {"stream", -1, "copy, kernel, copy a chunk", make_stream, streams},
        {"stream-batch", -1, "copy, kernel, copy of all that has arrived, 4 streams",
         make_stream_batch, batches<4>},
        {"stream-batch-8", -1, "the same, 8 streams", make_stream_batch, batches<8>},
        {"graph", -1, "a graph a chunk, four at a time", make_graph, as_planned},
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
    if (shape.plan.in_piece == 0) {
        wic_transfer_plan_print(&shape.plan, text, sizeof text);
    } else if (shape.lanes > 0) {
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
