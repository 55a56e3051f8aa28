// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Rare states of a link: counters that wrap after 2^32 while the kernel is resident, and a kernel
// that does not leave. Both are forced here.
#include "wic/bench/hard_links.cuh"
#include "wic/device/wic_device.cuh"

#include <cerrno>
#include <ctime>

namespace
{
constexpr uint32_t chunk = 65536;
constexpr uint64_t deaf_ns = 4000000000;

// Enters, tells the host so, and hears nothing. Ends by itself.
__global__ void deaf(const __grid_constant__ wic_view view)
{
    if (threadIdx.x == 0 && wic_add_device(&view.state->started, 1) == gridDim.x - 1) {
        wic_store_system(view.started, 1);
    }
    const uint64_t start = wic_now();
    while (wic_now() - start < deaf_ns) {
        __nanosleep(10000);
    }
}

// Posts tiles up to `end` and waits for them, so many at a time as there are slots. 0, -ETIMEDOUT.
int serve(wic_link *link, const bench_pool &pool, uint64_t *next, uint64_t end)
{
    uint64_t done = *next;
    const double limit = bench_seconds() + 20;
    while (done < end && bench_seconds() < limit) {
        if (*next < end && *next - done < pool.slots) {
            const wic_link_tile tile = {
                *next, chunk / in_unit, chunk, chunk / in_unit * out_unit, nullptr, 0};
            const int rc = wic_link_post(link, &tile);
            if (rc != 0) {
                return rc;
            }
            ++*next;
        }
        if (done < *next && wic_link_done(link, done)) {
            done++;
            wic_link_beat(link);
        }
    }
    return done == end ? 0 : -ETIMEDOUT;
}
} // namespace

bool counters_wrap(const wic_transfer_plan &plan, bool rounds, std::string *out_text)
{
    auto kept = std::make_unique<bench_pool>(64 * chunk, false);
    bench_pool &pool = *kept;
    pool.lay_out(chunk);
    wic_link_options options = bench_link_options(WAIT_PARKED, pool, plan);
    // Some rounds, or some tiles, before it happens; as many slots further on all is as ever.
    const uint64_t each = (plan.blocks * plan.depth + plan.pieces - 1) / plan.pieces; // a round
    options.first_round = rounds ? UINT32_MAX - 7 : 0;
    options.first_tile = rounds ? 0 : UINT32_MAX - UINT64_C(100);
    const uint64_t before = rounds ? 4 * each : 50, all = before + 20 * each + 4 * pool.slots;
    wic_link *link = nullptr;
    int rc = wic_link_create(&options, &link);
    rc = rc ? rc : wic_link_start(link, 0, 0);
    uint64_t next = options.first_tile, wrong = 0;
    rc = rc ? rc : serve(link, pool, &next, options.first_tile + before);
    if (rc == 0) {
        pool.poison();
        rc = serve(link, pool, &next, options.first_tile + all);
        wrong = pool.wrong(pool.slots);
    }
    rc == 0 ? wic_link_close(link, options.first_tile + all) : wic_link_abort(link);
    const int left = wic_link_join(link, WIC_LINK_BEAT_NS);
    const int freed = wic_link_destroy(link);
    if (freed != 0) {
        (void)kept.release(); // the kernel may still use the slots
    }
    char text[200];
    snprintf(text, sizeof text,
             "%s wraps while the kernel is resident: %llu tiles, status %d, %llu elements wrong, "
             "left %d, "
             "freed %d",
             rounds ? "the count of rounds" : "the tiles' number",
             static_cast<unsigned long long>(next - options.first_tile), rc,
             static_cast<unsigned long long>(wrong), left, freed);
    *out_text = text;
    return rc == 0 && wrong == 0 && left == 0 && freed == 0;
}

bool deaf_kernel_is_left_behind(const wic_transfer_plan &plan, std::string *out_text)
{
    // Not freed: the link keeps what it has, and so must the slots be kept.
    bench_pool *pool = new bench_pool(64 * chunk, false);
    pool->lay_out(chunk);
    wic_link_options options = bench_link_options(WAIT_PARKED, *pool, plan);
    options.kernel = reinterpret_cast<const void *>(deaf);
    wic_link *link = nullptr;
    int rc = wic_link_create(&options, &link);
    rc = rc ? rc : wic_link_start(link, 0, 0);
    if (rc != 0) {
        *out_text = "the deaf kernel does not start";
        return false;
    }
    wic_link_abort(link);
    const int left = wic_link_join(link, 200000000);
    const double start = bench_seconds();
    const int freed = wic_link_destroy(link);
    const double took = 1e3 * (bench_seconds() - start);
    CUDA_MUST(cudaDeviceSynchronize()); // for those who come behind
    char text[200];
    snprintf(text, sizeof text,
             "a kernel that does not leave: join said %d, destroy %d after %.2f ms", left, freed,
             took);
    *out_text = text;
    return left == -ETIMEDOUT && freed == -ETIMEDOUT && took < 100;
}

bool too_long_is_refused(const wic_transfer_plan &plan, std::string *out_text)
{
    bench_pool pool(64 * chunk, false);
    pool.lay_out(chunk);
    wic_link_options options = bench_link_options(WAIT_PARKED, pool, plan);
    options.out_stride = chunk / in_unit * out_unit / 2; // the results of half a tile
    wic_link *link = nullptr;
    int rc = wic_link_create(&options, &link);
    rc = rc ? rc : wic_link_start(link, 0, 0);
    if (rc != 0) {
        *out_text = "a link with short slots does not start";
        return false;
    }
    const uint32_t units = chunk / in_unit;
    const wic_link_tile half = {0, units / 2, chunk / 2, 0, nullptr, 0},
                        whole = {1, units, chunk, 0, nullptr, 0},
                        more = {1, units + 1, chunk, 0, nullptr, 0};
    const int good = wic_link_post(link, &half), bad = wic_link_post(link, &whole),
              worse = wic_link_post(link, &more);
    wic_link_close(link, 1);
    const int left = wic_link_join(link, WIC_LINK_BEAT_NS);
    wic_link_destroy(link);
    char text[200];
    snprintf(text, sizeof text,
             "a tile that fits %d, one whose results do not %d, one of too many units %d, left %d",
             good, bad, worse, left);
    *out_text = text;
    return good == 0 && bad == -EINVAL && worse == -EINVAL && left == 0;
}
