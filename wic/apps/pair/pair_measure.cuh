// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_MEASURE_CUH
#define WIC_APP_PAIR_MEASURE_CUH
// One application of one size between two kernels, by all strategies. The first strategy's result
// of each round is verified; later runs of the round are right if both parties' memory is the same,
// or else if verify() passes. The oracle is the slower one of the parties, each alone with all
// chunks of a round in memory, by the fastest one of three strategies.
#include "wic/apps/pair/pair_launches.cuh"
#include "wic/apps/pair/pair_entry.cuh"
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
    pair_bench(const app_options &options, const app_size &size, app_report *report)
        : options_(options), report_(*report), size_(size)
    {
        words_.pinned(4 * pair_room<A>::line);
        different_.pinned(sizeof(uint32_t));
        place_.most = A::most(size);
        place_.bytes[0] = app_stride(size_t(place_.most.up_units) * A::facts.up_unit);
        place_.bytes[1] = app_stride(size_t(place_.most.down_units) * A::facts.down_unit);
        place_.words = reinterpret_cast<uint32_t *>(words_.at());
        place_.limit_ns = static_cast<uint64_t>(options.limit * 1e9);
        place_.blocks = place_.shared_bytes = UINT32_MAX;
        for (int party = 0; party < 2; party++) {
            place_.device[party] = options.gpus[party];
            const pair_on on(options.gpus[party]);
            place_.blocks = std::min(place_.blocks, attribute(cudaDevAttrMultiProcessorCount));
            place_.shared_bytes = std::min(place_.shared_bytes,
                                           attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
            bytes_[party] = (app_bytes<A>(size, party) + 255) / 256 * 256;
            for (resident_allocation *of : {&view_[party], &start_[party], &right_[party]}) {
                of->device(bytes_[party]);
            }
            place_.view[party] = app_view<A>(size, party, view_[party].at());
        }
        place_.blocks /= place_.is_between() ? 1 : 2;
    }

    void measure()
    {
        std::vector<app_row> rows = open();
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
                if (round > 0 && rows[k].totals.back() > options_.seconds * slow) {
                    continue;
                }
                if (round == 0) { // a warm-up
                    run(k, {}, &rows[k]);
                    check(host, &rows[k]);
                }
                while (round == 0 && strategies_[k] != nullptr && !strategies_[k]->is_settled()) {
                    run(k, {}, &rows[k]);
                    check(host, &rows[k]);
                }
                if (strategies_[k] == nullptr) {
                    continue;
                }
                run(k, {}, &rows[k]);
                check(host, &rows[k]);
                rows[k].totals.push_back(seconds_);
                all += seconds_;
            }
            if (has_oracle_) {
                oracle.push_back(alone());
                has_oracle_ = std::isfinite(oracle.back());
            }
            if (all * (round + 1) > options_.seconds) {
                break;
            }
        }
        app_row of_oracle = row_of("oracle");
        if (has_oracle_) {
            of_oracle.totals = oracle;
        } else {
            of_oracle.why = "a party alone took longer than the limit";
        }
        finish(of_oracle, app_median(oracle));
        for (size_t k = 0; k < rows.size(); k++) {
            rows[k].shape = strategies_[k] != nullptr ? strategies_[k]->shape() : "";
            finish(rows[k], has_oracle_ ? app_median(oracle) : NAN);
        }
    }

  private:
    static constexpr double slow = 0.1; // part of the time, in which a run is the only one

    static uint32_t attribute(cudaDeviceAttr of)
    {
        int device = 0, value = 0;
        APP_MUST(cudaGetDevice(&device));
        APP_MUST(cudaDeviceGetAttribute(&value, of, device));
        return static_cast<uint32_t>(value);
    }
    void finish(app_row &row, double oracle)
    {
        row.total = app_median(row.totals);
        row.oracle = oracle;
        app_print(row);
        report_.rows.push_back(row);
    }
    void restore()
    {
        for (int party = 0; party < 2; party++) {
            const pair_on on(place_.device[party]);
            APP_MUST(cudaMemcpy(view_[party].at(), start_[party].at(), bytes_[party],
                                cudaMemcpyDeviceToDevice));
        }
        pair_synchronize(place_);
    }
    // Seconds of the slower party, in the fastest shape.
    double alone()
    {
        pair_wants wants = {false, true, false, false, {place_.most.up, place_.most.down}};
        uint32_t *chunks = wants.chunks;
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
        using shape = pair_shape<A>;
        pair_resident<A> both(place_, wants);
        pair_add_polling(&both, PAIR_IN_PLACE);
        both.template add<pair_parked<1>>(PAIR_IN_PLACE, shape::PULLS);
        both.template add<pair_parked<2>>(PAIR_IN_PLACE, shape::READS);
        double least = INFINITY;
        for (size_t i = 0; i < both.shapes(); i++) {
            least = std::min(least, alone(both));
        }
        return least;
    }
    double alone(pair_resident<A> &both) // in its next shape
    {
        restore();
        both.ready({});
        double seconds = both.run() ? 0.0 : INFINITY;
        both.rest();
        for (int party = 0; party < 2 && std::isfinite(seconds); party++) {
            restore();
            both.ready_alone(party);
            const uint64_t begin = app_host_now();
            const bool is_done = both.run_alone(party);
            const double took = static_cast<double>(app_host_now() - begin) / 1e9;
            both.rest();
            seconds = is_done ? std::max(seconds, took) : INFINITY;
        }
        return seconds;
    }
    app_row row_of(const char *strategy) const
    {
        app_row row = {};
        row.app = A::facts.name;
        row.paper = A::facts.paper;
        row.size = size_.name;
        row.strategy = strategy;
        row.party0 = "kernel";
        row.make = row.host = row.overhead = NAN;
        return row;
    }
    std::vector<app_row> open()
    {
        std::vector<app_row> rows;
#define PAIR(id, name, about)                                                                      \
    if (app_is_chosen(options_.strategies, name)) {                                                \
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
    void run(size_t k, const app_fault &fault, app_row *row)
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
            const pair_on on(place_.device[party]);
            pair_compare<<<1024, 256>>>(reinterpret_cast<const uint4 *>(view_[party].at()),
                                        reinterpret_cast<const uint4 *>(right_[party].at()),
                                        bytes_[party] / sizeof(uint4), different);
            APP_MUST(cudaGetLastError());
        }
        pair_synchronize(place_);
        return *different == 0;
    }
    void download(app_host<A> &host)
    {
        for (int party = 0; party < 2; party++) {
            APP_MUST(cudaMemcpy(host.memory(party), view_[party].at(), host.bytes(party),
                                cudaMemcpyDeviceToHost));
        }
    }
    void check(app_host<A> &host, app_row *row)
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
    void break_all(app_host<A> &host, std::vector<app_row> &rows)
    {
        for (size_t k = 0; k < rows.size(); k++) {
            for (int receiver = 1; receiver >= 0 && strategies_[k] != nullptr; receiver--) {
                const app_fault fault = {options_.fault, receiver, 0, step_with(receiver)};
                app_found found = {rows[k].app, size_.name, rows[k].strategy, receiver, false, ""};
                found.found = true;
                strategies_[k]->try_again();
                do { // a run of each shape
                    run(k, fault, &rows[k]);
                    download(host);
                    if (!rows[k].why.empty() || host.verify(&found.what)) {
                        found.found = false;
                        found.what = rows[k].why;
                    }
                } while (found.found && !strategies_[k]->is_settled());
                app_print(found);
                report_.found.push_back(found);
            }
            if (strategies_[k] == nullptr && rows[k].wrong == 0) {
                app_print(rows[k]);
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

    const app_options &options_;
    app_report &report_;
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
void pair_measure(const app_options &options, const app_size &size, app_report *report)
{
    pair_bench<A>(options, size, report).measure();
}
#endif
