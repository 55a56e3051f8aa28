// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The load generator. Latency counts from the time at which a chunk was to arrive, also when the
// strategy was too busy to look, or its slot was not free yet.
#include "wic/bench/measure/load.cuh"
#include "wic/bench/base/cost.cuh"

#include <algorithm>
#include <cmath>

namespace
{
constexpr double stuck_s = 10;     // without any chunk done, the strategy does not work
constexpr double kept_up_s = 2e-3; // after the last arrival all is done within this, or 3 %
constexpr uint64_t samples_max = 1 << 23;

double percentile(std::vector<float> &us, size_t count, double share)
{
    const auto at = us.begin() + static_cast<long>(share * static_cast<double>(count - 1));
    std::nth_element(us.begin(), at, us.begin() + static_cast<long>(count));
    return *at;
}

// Of the first `count` chunks.
void set_latency(load_result *result, std::vector<float> &us, uint64_t count)
{
    result->samples = count;
    result->p50_us = percentile(us, count, 0.5);
    result->p99_us = percentile(us, count, 0.99);
}

void set_cost(load_result *result, const bench_cost &cost, double in_calls)
{
    result->cpu = cost.cpu_seconds / cost.seconds;
    result->calls = in_calls / cost.seconds;
    result->seconds = cost.seconds;
    result->joules = cost.joules;
}
} // namespace

bench_load::bench_load(strategy &way, const bench_pool &pool) : way_(way), pool_(pool)
{
}

uint64_t bench_load::finish(double limit_s)
{
    const double limit = bench_seconds() + limit_s;
    uint64_t done = way_.poll();
    while (done < next_) {
        if (bench_seconds() > limit) {
            bench_fail("a strategy does not finish its chunks", __LINE__);
        }
        done = way_.poll();
    }
    return done;
}

load_result bench_load::saturate(double seconds)
{
    load_result result;
    const uint64_t first = next_;
    const bench_meter meter;
    const double start = bench_seconds();
    double now = start;
    for (uint64_t done = first; now < start + seconds; now = bench_seconds()) {
        if (next_ < done + way_.slots) {
            next_ = done + way_.slots;
            way_.submit(next_);
        }
        done = way_.poll();
    }
    finish(stuck_s);
    const bench_cost cost = meter.stop();
    result.samples = next_ - first;
    result.gbs = 1e-9 * static_cast<double>(result.samples) * static_cast<double>(pool_.chunk) /
                 cost.seconds;
    set_cost(&result, cost, cost.seconds); // it always has something to do
    return result;
}

load_result bench_load::offer(double gap, double seconds, uint64_t least)
{
    load_result result;
    const uint64_t first = next_;
    const uint64_t count = std::min(
        std::max(static_cast<uint64_t>(seconds / gap), std::max<uint64_t>(least, 1)), samples_max);
    us_.resize(std::max<size_t>(us_.size(), count)); // its pages are touched before the clock runs
    uint64_t done = 0, sent = 0;
    double in_calls = 0, last = 0;
    const bench_meter meter;
    const double start = bench_seconds(), end = start + gap * static_cast<double>(count);
    // As long again for chunks that had no slot when the last one arrived.
    const double give_up = end + (end - start);
    double now = start, progress = start;
    while (done < count) {
        now = bench_seconds();
        const uint64_t arrived =
            now > give_up ? sent : std::min(count, static_cast<uint64_t>((now - start) / gap) + 1);
        const uint64_t limit = std::min(arrived, done + way_.slots);
        if (limit > sent) {
            sent = limit;
            next_ = first + sent;
            way_.submit(next_);
            in_calls += bench_seconds() - now;
            now = bench_seconds();
        }
        const uint64_t found = way_.poll() - first;
        if (found > done) {
            last = bench_seconds();
            in_calls += last - now;
            progress = last;
            for (; done < found; done++) {
                us_[done] =
                    static_cast<float>(1e6 * (last - start - gap * static_cast<double>(done)));
            }
        } else if (done == sent && now > give_up) {
            break; // the others had no slot in time
        } else if (done < sent && now > progress + stuck_s && now > end) {
            bench_fail("a strategy does not finish its chunks", __LINE__);
        }
    }
    set_latency(&result, us_, done);
    result.gbs =
        1e-9 * static_cast<double>(done) * static_cast<double>(pool_.chunk) / (last - start);
    const double late = last - end - 1e-6 * result.p50_us;
    result.kept_up = done == count && late < std::max(kept_up_s, 0.03 * (end - start)) &&
                     1e-6 * result.p50_us < 0.25 * (end - start);
    set_cost(&result, meter.stop(), in_calls);
    return result;
}

load_result bench_load::one_by_one(int count, double pause)
{
    load_result result;
    us_.resize(std::max<size_t>(us_.size(), static_cast<size_t>(count)));
    for (int i = 0; i < count; i++) {
        const double start = bench_seconds();
        way_.submit(++next_);
        finish(stuck_s);
        const double end = bench_seconds();
        us_[static_cast<size_t>(i)] = static_cast<float>(1e6 * (end - start));
        while (bench_seconds() < end + pause) {
            way_.poll();
        }
    }
    set_latency(&result, us_, static_cast<uint64_t>(count));
    return result;
}

uint64_t bench_load::check(bench_pool &pool, uint64_t chunks)
{
    const uint64_t first = next_, end = first + chunks;
    uint64_t wrong = 0, random = 88172645463325252u, done = first;
    while (done < end) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const uint64_t to = std::min({end, next_ + 1 + random % way_.slots, done + way_.slots});
        for (uint64_t chunk = next_; chunk < to; chunk++) {
            pool.fill(static_cast<uint32_t>(chunk % way_.slots), 1 + chunk);
        }
        if (to > next_) {
            next_ = to;
            way_.submit(next_);
        }
        const uint64_t found =
            random % 4 == 0 || next_ == done + way_.slots ? finish(stuck_s) : way_.poll();
        for (; done < found; done++) {
            const uint32_t slot = static_cast<uint32_t>(done % way_.slots);
            wrong += pool.wrong_in(slot, way_.results(pool, slot));
        }
    }
    return wrong;
}
