// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures the uses of patterns: items a second with several under way, and latency of one at a
// time. All ways take their turns; figures are medians.
#include "wic/bench/patterns/patterns.cuh"
#include "wic/bench/measure/report.cuh"

#include <algorithm>

namespace
{
struct figures {
    std::vector<double> rate, p50_us, p99_us;
    pattern_shape shape;
    uint64_t wrong = 0;
};

constexpr double stuck_s = 10; // without any item done, a way does not work

// Keeps a way busy.
class item_load
{
  public:
    explicit item_load(pattern_way &way) : way_(way)
    {
    }

    // With as many under way as there may be, for so long: items a second.
    double saturate(double seconds)
    {
        const uint64_t first = next_;
        const double start = bench_seconds();
        for (double now = start; now < start + seconds; now = bench_seconds()) {
            next_ = way_.poll() + way_.slots;
            way_.submit(next_);
        }
        finish();
        return static_cast<double>(next_ - first) / (bench_seconds() - start);
    }

    // Microseconds of each of so many, one at a time.
    std::vector<double> one_by_one(int count)
    {
        std::vector<double> us;
        for (int i = 0; i < count; i++) {
            const double start = bench_seconds();
            way_.submit(++next_);
            finish();
            us.push_back(1e6 * (bench_seconds() - start));
        }
        std::sort(us.begin(), us.end());
        return us;
    }

  private:
    void finish()
    {
        const double limit = bench_seconds() + stuck_s;
        while (way_.poll() < next_) {
            if (bench_seconds() > limit) {
                bench_fail("a way does not finish its items", __LINE__);
            }
        }
    }

    pattern_way &way_;
    uint64_t next_ = 0;
};

// The shape in which most items get done.
pattern_shape best_shape(const pattern_rival &rival, double seconds)
{
    pattern_shape best = rival.shapes.front();
    double most = 0;
    for (const pattern_shape &shape : rival.shapes) {
        if (rival.shapes.size() > 1) {
            const std::unique_ptr<pattern_way> way = rival.make(shape);
            const double rate = item_load(*way).saturate(seconds);
            best = rate > most ? shape : best;
            most = std::max(rate, most);
        }
    }
    return best;
}

void measure_once(const pattern_rival &rival, const bench_options &opt, figures *to)
{
    const std::unique_ptr<pattern_way> way = rival.make(to->shape);
    item_load load(*way);
    load.saturate(opt.seconds / 10); // warm up
    to->rate.push_back(load.saturate(opt.seconds));
    to->wrong += way->wrong();
    const std::vector<double> us = load.one_by_one(opt.samples);
    to->p50_us.push_back(us[us.size() / 2]);
    to->p99_us.push_back(us[us.size() * 99 / 100]);
    to->wrong += way->wrong();
}

uint64_t measure_size(const pattern_use &use, size_t size, const bench_options &opt)
{
    std::vector<figures> all(use.rivals.size());
    uint64_t wrong = 0;
    use.set_up(size);
    for (size_t i = 0; i < all.size(); i++) {
        all[i].shape = best_shape(use.rivals[i], opt.seconds / 2);
    }
    for (uint32_t round = 0; round < opt.rounds; round++) {
        for (size_t i = 0; i < all.size(); i++) {
            const size_t turn = (i + round) % all.size();
            measure_once(use.rivals[turn], opt, &all[turn]);
        }
    }
    use.take_down();
    for (size_t i = 0; i < all.size(); i++) {
        const quartiles rate = bench_quartiles(all[i].rate), p50 = bench_quartiles(all[i].p50_us),
                        p99 = bench_quartiles(all[i].p99_us);
        printf("%-10s %8zu %-5s %-12s %5u %10.0f %10.0f %10.0f %8.2f %8.1f %8.1f %8.1f %8.1f "
               "%6llu\n",
               use.name, size, use.size_name, use.rivals[i].name, all[i].shape.lanes, rate.middle,
               rate.low, rate.high, 1e-9 * rate.middle * use.item_bytes(size), p50.middle, p50.low,
               p50.high, p99.middle, static_cast<unsigned long long>(all[i].wrong));
        fflush(stdout);
        wrong += all[i].wrong;
    }
    return wrong;
}
} // namespace

bool measure_patterns(const bench_options &opt)
{
    uint64_t wrong = 0;
    printf("%-10s %14s %-12s %5s %10s %10s %10s %8s %8s %8s %8s %8s %6s\n", "use", "size", "way",
           "lanes", "items/s", "low", "high", "GB/s", "p50 us", "low", "high", "p99 us", "wrong");
    for (const pattern_use &use : {classify_use(), composite_use(), gate_use()}) {
        for (const size_t size : use.sizes) {
            if (opt.patterns != "small" || size == use.sizes.front()) {
                wrong += measure_size(use, size, opt);
            }
        }
    }
    return wrong == 0;
}
