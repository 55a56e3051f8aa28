// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_MEASURE_CUH
#define WIC_APP_PAIR_MEASURE_CUH
// One application of one size between two kernels, by all strategies. The first strategy's result
// of each round is verified; later runs of the round are right if both parties' memory is the same,
// or else if verify() passes. The oracle is the slower one of the parties, each alone with all
// chunks of a round in memory, by the fastest one of three strategies.
#include "wic/apps/pair/pair_launches.cuh"
#include "wic/apps/pair/pair_report.cuh"
#include "wic/apps/strategies/step_kernels.cuh"

#include <algorithm>
#include <cmath>

static __global__ void pair_compare(const uint4 *a, const uint4 *b, size_t count,
                                    uint32_t *different)
{
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x) {
        const uint4 x = a[i], y = b[i];
        if (x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w) {
            *different = 1;
        }
    }
}

template <class A> class pair_bench
{
  public:
    pair_bench(const pair_options &options, const app_size &size, pair_report *report)
        : options_(options), report_(*report), size_(size)
    {
        int device = 0, processors = 0, shared = 0;
        APP_MUST(cudaGetDevice(&device));
        APP_MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
        APP_MUST(
            cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
        words_.pinned(4 * pair_room<A>::line);
        different_.pinned(sizeof(uint32_t));
        place_.most = A::most(size);
        place_.bytes[0] = app_stride(size_t(place_.most.up_units) * A::facts.up_unit);
        place_.bytes[1] = app_stride(size_t(place_.most.down_units) * A::facts.down_unit);
        place_.blocks = static_cast<uint32_t>(processors) / 2;
        place_.shared_bytes = static_cast<uint32_t>(shared);
        place_.words = reinterpret_cast<uint32_t *>(words_.at());
        place_.limit_ns = static_cast<uint64_t>(options.limit * 1e9);
        for (int party = 0; party < 2; party++) {
            bytes_[party] = (app_bytes<A>(size, party) + 255) / 256 * 256;
            for (resident_allocation *of : {&view_[party], &start_[party], &right_[party]}) {
                of->device(bytes_[party]);
            }
            place_.view[party] = app_view<A>(size, party, view_[party].at());
        }
    }

    void measure()
    {
        std::vector<pair_row> rows = open();
        std::vector<double> oracle;
        uint32_t rounds = options_.fault != APP_BREAK_NONE ? 1 : options_.rounds;
        app_host<A> host(size_);
        for (uint32_t round = 0; round < rounds; round++) {
            begin(host, round);
            if (options_.fault != APP_BREAK_NONE) {
                break_all(host, rows);
                return;
            }
            double all = 0.0;
            for (size_t i = 0; i < rows.size(); i++) {
                const size_t k = (i + round) % rows.size();
                if (strategies_[k] == nullptr) {
                    continue;
                }
                if (round == 0) { // a warm-up
                    run(k, {}, &rows[k]);
                    check(host, &rows[k]);
                }
                run(k, {}, &rows[k]);
                check(host, &rows[k]);
                rows[k].totals.push_back(seconds_);
                all += seconds_;
            }
            if (has_oracle_) {
                oracle.push_back(std::min(
                    {alone<pair_elected>(), alone<pair_elected_2>(), alone<pair_parked<2>>()}));
                has_oracle_ = std::isfinite(oracle.back());
            }
            if (all * (round + 1) > options_.seconds) {
                break;
            }
        }
        for (pair_row &row : rows) {
            row.total = median(row.totals);
            row.oracle = has_oracle_ ? median(oracle) : 0.0;
            pair_print(row);
            report_.rows.push_back(row);
        }
    }

  private:
    static double median(std::vector<double> values)
    {
        std::sort(values.begin(), values.end());
        return values.empty() ? 0.0 : values[values.size() / 2];
    }
    void restore()
    {
        for (int party = 0; party < 2; party++) {
            APP_MUST(cudaMemcpy(view_[party].at(), start_[party].at(), bytes_[party],
                                cudaMemcpyDeviceToDevice));
        }
        APP_MUST(cudaDeviceSynchronize());
    }
    // Seconds of the slower party.
    template <class Way> double alone()
    {
        uint32_t chunks[2] = {place_.most.up, place_.most.down};
        if (A::facts.told) {
            chunks[0] *= resident_steps_ring;
            chunks[1] *= resident_steps_ring;
        } else {
            chunks[0] = chunks[1] = 0;
            for (app_step step = {}; A::next(place_.view[0], &step); step.index++) {
                chunks[0] += step.up;
                chunks[1] += step.down;
            }
        }
        pair_resident<A, Way> both(place_, false, chunks);
        restore();
        both.ready({});
        double seconds = both.run() ? 0.0 : INFINITY;
        both.rest();
        const auto time = [&](auto ready, auto run) {
            restore();
            ready();
            const uint64_t begin = app_host_now();
            const bool is_done = run();
            const double took = static_cast<double>(app_host_now() - begin) / 1e9;
            both.rest();
            seconds = is_done ? std::max(seconds, took) : INFINITY;
        };
        time([&] { both.template ready_alone<0>(); }, [&] { return both.template run_alone<0>(); });
        time([&] { both.template ready_alone<1>(); }, [&] { return both.template run_alone<1>(); });
        return seconds;
    }
    pair_row row_of(const char *strategy) const
    {
        return {A::facts.name, A::facts.paper, size_.name, strategy, "", {}, 0.0, 0.0, 0, 0, ""};
    }
    std::vector<pair_row> open()
    {
        std::vector<pair_row> rows;
#define PAIR(id, name, about)                                                                      \
    if (pair_is_chosen(options_.strategies, name)) {                                               \
        rows.push_back(row_of(name));                                                              \
        strategies_.push_back(pair_by_##id<A>(place_, &rows.back().why));                          \
    }
#include "wic/apps/pair/strategies.def"
#undef PAIR
        return rows;
    }
    void begin(app_host<A> &host, uint32_t round)
    {
        host.begin(options_.seed, round);
        for (int party = 0; party < 2; party++) {
            APP_MUST(cudaMemcpy(start_[party].at(), host.memory(party), host.bytes(party),
                                cudaMemcpyHostToDevice));
        }
        is_verified_ = false;
    }
    void run(size_t k, const app_fault &fault, pair_row *row)
    {
        restore();
        pair_strategy<A> &strategy = *strategies_[k];
        strategy.ready(fault);
        const uint64_t begin = app_host_now();
        const bool is_done = strategy.run();
        seconds_ = static_cast<double>(app_host_now() - begin) / 1e9;
        strategy.rest();
        row->runs++;
        if (!is_done) {
            row->why = row->what = "a run took longer than the limit";
            row->wrong++;
            strategies_[k] = nullptr;
        }
    }
    bool is_same()
    {
        uint32_t *different = reinterpret_cast<uint32_t *>(different_.at());
        *different = 0;
        for (int party = 0; party < 2; party++) {
            pair_compare<<<1024, 256>>>(reinterpret_cast<const uint4 *>(view_[party].at()),
                                        reinterpret_cast<const uint4 *>(right_[party].at()),
                                        bytes_[party] / sizeof(uint4), different);
        }
        APP_MUST(cudaGetLastError());
        APP_MUST(cudaDeviceSynchronize());
        return *different == 0;
    }
    void download(app_host<A> &host)
    {
        for (int party = 0; party < 2; party++) {
            APP_MUST(cudaMemcpy(host.memory(party), view_[party].at(), host.bytes(party),
                                cudaMemcpyDeviceToHost));
        }
    }
    void check(app_host<A> &host, pair_row *row)
    {
        if (!row->why.empty() || (is_verified_ && is_same())) {
            return;
        }
        download(host);
        if constexpr (A::any_order) {
            if (is_verified_ && A::outcome(host.view(0), host.view(1)) == outcome_) {
                return;
            }
        }
        std::string what;
        if (!host.verify(&what)) {
            row->what = row->wrong == 0 ? what : row->what;
            row->wrong++;
            return;
        }
        if (!is_verified_) {
            for (int party = 0; party < 2; party++) {
                APP_MUST(cudaMemcpy(right_[party].at(), view_[party].at(), bytes_[party],
                                    cudaMemcpyDeviceToDevice));
            }
            if constexpr (A::any_order) {
                outcome_ = A::outcome(host.view(0), host.view(1));
            }
            is_verified_ = true;
        }
    }

    // The mistake is made in the third step that has chunks for its receiver.
    void break_all(app_host<A> &host, std::vector<pair_row> &rows)
    {
        for (size_t k = 0; k < rows.size(); k++) {
            for (int receiver = 1; receiver >= 0 && strategies_[k] != nullptr; receiver--) {
                const app_fault fault = {options_.fault, receiver, 0, step_with(receiver)};
                pair_found found = {rows[k].app, size_.name, rows[k].strategy, receiver, false, ""};
                run(k, fault, &rows[k]);
                if (rows[k].why.empty()) {
                    download(host);
                    found.found = !host.verify(&found.what);
                } else {
                    found.what = rows[k].why;
                }
                pair_print(found);
                report_.found.push_back(found);
            }
            if (strategies_[k] == nullptr && rows[k].wrong == 0) {
                pair_print(rows[k]);
            }
        }
    }
    uint32_t step_with(int receiver) const
    {
        uint32_t found = 0, last = 0;
        for (app_step step = {}; !A::facts.told && found < 3; step.index++) {
            const typename A::view &v = place_.view[0];
            if (!A::next(v, &step)) {
                return last;
            }
            if ((receiver == 1 ? step.down : step.up) > 0) {
                found++;
                last = step.index;
            }
        }
        return A::facts.told ? 2 : last;
    }

    const pair_options &options_;
    pair_report &report_;
    const app_size size_;
    resident_allocation words_, different_, view_[2], start_[2], right_[2];
    size_t bytes_[2];
    pair_place<A> place_ = {};
    std::vector<std::unique_ptr<pair_strategy<A>>> strategies_; // NULL: cannot be done
    std::vector<uint32_t> outcome_;
    bool is_verified_ = false, has_oracle_ = true;
    double seconds_ = 0.0; // length of the last run
};

template <class A>
void pair_measure(const pair_options &options, const app_size &size, pair_report *report)
{
    pair_bench<A>(options, size, report).measure();
}
#endif
