// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APPS_APPLICATION_CUH
#define WIC_APPS_APPLICATION_CUH
// One application of one size, by all strategies in turn. The inputs of all rounds are made first.
// A recorder, strategy stream, runs each of them; the memory that it leaves is verified, and later
// runs of the round are right if they leave the same.
#include "wic/apps/measure/party.cuh"
#include "wic/apps/measure/report.cuh"
#include "wic/apps/strategies/strategies.cuh"

#include <algorithm>
#include <cmath>
#include <future>

// --- device -----------------------------------------------------------------------------------

static __global__ void app_compare_kernel(const uint4 *a, const uint4 *b, size_t count,
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

// Answers each new number in words[0] with the time, in words[1] and then words[2].
static __global__ void app_clock_kernel(uint32_t *words, uint64_t *time, uint32_t count,
                                        uint64_t limit_ns)
{
    const uint64_t begin = app_now();
    for (uint32_t i = 1; i <= count; i++) {
        while (*static_cast<volatile uint32_t *>(words) != i) {
            if (app_now() - begin > limit_ns) {
                return;
            }
        }
        *time = app_now();
        __threadfence_system();
        *static_cast<volatile uint32_t *>(words + 1) = i;
    }
}

// The device's clock minus the host's, by the fastest of many answers.
inline int64_t app_clock_offset()
{
    constexpr uint32_t turns = 50;
    const app_pinned memory = app_take_pinned(64);
    memset(memory.get(), 0, 64);
    uint32_t *words = reinterpret_cast<uint32_t *>(memory.get());
    const uint64_t *time = reinterpret_cast<uint64_t *>(memory.get() + 16);
    app_stream stream;
    app_clock_kernel<<<1, 1, 0, stream>>>(words, const_cast<uint64_t *>(time), turns, 1000000000);
    APP_MUST(cudaGetLastError());
    uint64_t shortest = UINT64_MAX;
    int64_t offset = 0;
    for (uint32_t i = 1; i <= turns; i++) {
        const uint64_t begin = app_host_now();
        __atomic_store_n(words, i, __ATOMIC_RELEASE);
        while (__atomic_load_n(words + 1, __ATOMIC_ACQUIRE) != i) {
            if (app_host_now() - begin > 2000000000) {
                app_must(cudaErrorLaunchTimeout, "reading the clock", __FILE__, __LINE__);
            }
        }
        const uint64_t end = app_host_now();
        if (end - begin < shortest) {
            shortest = end - begin;
            offset = static_cast<int64_t>(*time) - static_cast<int64_t>(begin + (end - begin) / 2);
        }
    }
    APP_MUST(cudaStreamSynchronize(stream));
    return offset;
}

// --- rounds -----------------------------------------------------------------------------------

template <class A> struct app_inputs {
    explicit app_inputs(const app_size &size) : host(size)
    {
    }
    app_host<A> host;
    app_memory start[2], right[2]; // memory of each party before and after the round
    std::vector<uint32_t> outcome;
    app_record record;
    bool is_right = false;
    std::string why;
};

inline app_memory app_copy(const void *from, size_t bytes)
{
    app_memory to = app_allocate(bytes);
    memcpy(to.get(), from, bytes);
    return to;
}

template <class A> class app_bench
{
  public:
    app_bench(const app_options &options, const app_size &size, app_team *team, app_report *report)
        : options_(options), team_(*team), report_(*report), bytes_(app_bytes<A>(size, 1)),
          view_(app_take_device(bytes_)), start_(app_take_device(bytes_)),
          right_(app_take_device(bytes_)),
          stamps_(app_take_device(stamp_count * sizeof(app_stamps))),
          stop_(app_take_pinned(sizeof(uint32_t))), different_(app_take_pinned(sizeof(uint32_t))),
          offset_(app_clock_offset())
    {
        const app_step most = A::most(size);
        place_.size = size;
        place_.most = most;
        place_.bytes[0] = app_stride(size_t(most.up_units) * A::facts.up_unit);
        place_.bytes[1] = app_stride(size_t(most.down_units) * A::facts.down_unit);
        const size_t slots = slot_memory / std::max(place_.bytes[0], place_.bytes[1]);
        place_.slots = static_cast<uint32_t>(
            std::min<size_t>(most.down, std::clamp<size_t>(slots, 4, slots_most)));
        APP_MUST(cudaGetDevice(&place_.device));
        APP_MUST(cudaDeviceGetAttribute(&place_.processors, cudaDevAttrMultiProcessorCount,
                                        place_.device));
        place_.view = app_view<A>(size, 1, view_.get());
        place_.stamps = reinterpret_cast<app_stamps *>(stamps_.get());
        place_.stop = reinterpret_cast<const uint32_t *>(stop_.get());
        place_.limit_ns = static_cast<uint64_t>(options.limit * 1e9);
    }

    void measure()
    {
        if (!prepare(1)) {
            return;
        }
        uint32_t rounds = options_.fault != APP_BREAK_NONE ? 1
                          : options_.check                 ? 2
                                                           : options_.rounds;
        if (!options_.check) {
            rounds = rounds_in(2.0 * seconds_, rounds); // a round has a run of the recorder
        }
        if (rounds > 1 && !prepare(rounds)) {
            return;
        }
        if (!are_verified()) {
            return;
        }
        const std::vector<app_row> rows = open();
        if (options_.fault != APP_BREAK_NONE) {
            break_all(rows);
            return;
        }
        for (const bool replays : {false, true}) {
            const bool is_worth_it =
                replays || options_.check || place_.size.name == std::string("tiny");
            if (options_.hosts.empty()
                    ? is_worth_it
                    : app_is_chosen(options_.hosts, replays ? "replays" : "works")) {
                replays_ = replays;
                compare(rows, rounds);
            }
        }
    }

  private:
    // Measures strategies that can be opened.
    void compare(std::vector<app_row> rows, uint32_t rounds)
    {
        for (app_row &row : rows) {
            row.party0 = replays_ ? "replays" : "works";
        }
        const uint32_t measured = warm_up(&rows, rounds);
        app_oracle<A> oracle(place_);
        std::vector<std::vector<double>> oracle_times(oracle.shapes());
        app_row of_oracle = row_of("oracle");
        std::vector<std::vector<double>> make(rows.size()), host(rows.size()), over(rows.size());
        for (uint32_t round = 0; round < measured; round++) {
            app_inputs<A> &in = *inputs_[round];
            upload(in);
            oracle.load(in.record);
            double first = oracle_times[0].empty() ? 0.0 : oracle_times[0][0];
            for (const std::vector<double> &times : oracle_times) {
                first = times.empty() ? first : std::min(first, times[0]);
            }
            for (size_t shape = 0; shape < oracle.shapes(); shape++) {
                if (round > 0 && oracle_times[shape][0] > oracle_hope * first) {
                    continue;
                }
                restore(in);
                oracle_times[shape].push_back(oracle.run(shape));
                memcpy(in.host.memory(0), in.right[0].get(), in.host.bytes(0));
                check(in, nullptr, &of_oracle);
            }
            for (size_t i = 0; i < rows.size(); i++) {
                const size_t k = (i + round) % rows.size();
                if (strategies_[k] == nullptr || (is_slow_[k] && round > 0)) {
                    continue;
                }
                app_party<A> party = run(in, k, {}, &rows[k]);
                rows[k].totals.push_back(seconds_);
                make[k].push_back(static_cast<double>(party.ns[APP_PRODUCE]) / 1e9);
                host[k].push_back(host_seconds(party));
                over[k].push_back(overhead(party));
            }
        }
        std::vector<double> best = oracle_times[0];
        for (const std::vector<double> &times : oracle_times) {
            best = app_median(times) < app_median(best) ? times : best;
        }
        const double least = app_median(best);
        of_oracle.total = of_oracle.oracle = least;
        of_oracle.totals = best;
        finish(of_oracle);
        for (size_t k = 0; k < rows.size(); k++) {
            if (rows[k].why.empty()) {
                rows[k].total = app_median(rows[k].totals);
                rows[k].oracle = least;
                rows[k].make = app_median(make[k]);
                rows[k].host = app_median(host[k]);
                rows[k].overhead = app_median(over[k]);
            }
            finish(rows[k]);
        }
    }

    static constexpr double oracle_hope = 1.25; // a shape that is slower runs only once
    static constexpr size_t stamp_count = size_t(app_stamp_rows) * app_stamp_blocks;
    static constexpr size_t slot_memory = 64 << 20, slots_most = 256;

    app_row row_of(const char *strategy) const
    {
        app_row row = {};
        row.app = A::facts.name;
        row.paper = A::facts.paper;
        row.size = place_.size.name;
        row.strategy = strategy;
        row.party0 = replays_ ? "replays" : "works";
        row.overhead = NAN;
        return row;
    }
    void finish(const app_row &row)
    {
        app_print(row);
        report_.rows.push_back(row);
    }

    // --- inputs -------------------------------------------------------------------------------

    // Adds inputs up to this number of rounds.
    bool prepare(uint32_t rounds)
    {
        std::vector<std::future<void>> begun;
        const uint32_t first = static_cast<uint32_t>(inputs_.size());
        for (uint32_t r = first; r < rounds; r++) {
            inputs_.push_back(std::make_unique<app_inputs<A>>(place_.size));
            begun.push_back(std::async(std::launch::async, [this, r] {
                app_inputs<A> &in = *inputs_[r];
                in.host.begin(options_.seed, r);
                for (int party = 0; party < 2; party++) {
                    in.start[party] = app_copy(in.host.memory(party), in.host.bytes(party));
                }
            }));
        }
        for (std::future<void> &one : begun) {
            one.get();
        }
        std::string why;
        recorder_ = app_by_stream<A>(place_, &why);
        for (uint32_t r = first; r < rounds; r++) {
            if (!record(*inputs_[r], r == 0)) {
                return false;
            }
            verified_.push_back(std::async(std::launch::async, [of = inputs_[r].get()] {
                app_inputs<A> &in = *of;
                in.is_right = in.host.verify(&in.why);
                for (int party = 0; party < 2; party++) {
                    in.right[party] = app_copy(in.host.memory(party), in.host.bytes(party));
                }
                if constexpr (A::any_order) {
                    in.outcome = A::outcome(in.host.view(0), in.host.view(1));
                }
            }));
        }
        recorder_ = nullptr;
        return true;
    }
    bool are_verified()
    {
        for (std::future<void> &one : verified_) {
            one.get();
        }
        app_row row = row_of("recorder");
        for (const std::unique_ptr<app_inputs<A>> &in : inputs_) {
            row.runs++;
            if (!in->is_right) {
                row.wrong++;
                row.what = in->why;
            }
            for (const app_step &step : in->record.steps) {
                place_.settles_most = std::max(place_.settles_most, A::settles(step));
            }
        }
        place_.steps = inputs_[0]->record.steps;
        if (row.wrong > 0) {
            finish(row);
        }
        return row.wrong == 0;
    }

    // Runs the round by the recorder. The first one also finds which calls a team is faster in.
    bool record(app_inputs<A> &in, bool is_first)
    {
        app_row row = row_of("recorder");
        upload_start(in);
        if (is_first && team_.threads() > 1) {
            const app_by_team all = {{true, true, true, true}};
            by_team_ = all;
            const app_party<A> together = run_by(*recorder_, in, {}, &row);
            for (uint32_t call = 0; call < app_calls; call++) { // short calls need one thread
                by_team_.is[call] = together.ns[call] > together.calls[call] * uint64_t(100000);
            }
            const app_party<A> alone = run_by(*recorder_, in, {}, &row);
            for (uint32_t call = 0; call < app_calls; call++) {
                by_team_.is[call] = by_team_.is[call] || together.ns[call] < alone.ns[call];
            }
        }
        in.record = {};
        run_by(*recorder_, in, {}, &row, &in.record);
        if (!row.why.empty()) {
            finish(row);
            return false;
        }
        download(in);
        return true;
    }

    void upload_start(const app_inputs<A> &in)
    {
        APP_MUST(cudaMemcpy(start_.get(), in.start[1].get(), bytes_, cudaMemcpyHostToDevice));
    }
    void upload(const app_inputs<A> &in)
    {
        upload_start(in);
        APP_MUST(cudaMemcpy(right_.get(), in.right[1].get(), bytes_, cudaMemcpyHostToDevice));
    }
    void download(app_inputs<A> &in)
    {
        APP_MUST(cudaMemcpy(in.host.memory(1), view_.get(), bytes_, cudaMemcpyDeviceToHost));
    }
    void restore(app_inputs<A> &in)
    {
        memcpy(in.host.memory(0), in.start[0].get(), in.host.bytes(0));
        APP_MUST(cudaMemcpy(view_.get(), start_.get(), bytes_, cudaMemcpyDeviceToDevice));
        APP_MUST(cudaMemset(stamps_.get(), 0, stamp_count * sizeof(app_stamps)));
        APP_MUST(cudaDeviceSynchronize());
    }

    // --- runs ---------------------------------------------------------------------------------

    std::vector<app_row> open()
    {
        std::vector<app_row> rows;
#define STRATEGY(id, name, about)                                                                  \
    if (app_is_chosen(options_.strategies, name)) {                                                \
        rows.push_back(row_of(name));                                                              \
        strategies_.push_back(app_by_##id<A>(place_, &rows.back().why));                           \
    }
#include "wic/apps/strategies/strategies.def"
#undef STRATEGY
        return rows;
    }

    app_party<A> run_by(app_strategy<A> &strategy, app_inputs<A> &in, const app_fault &fault,
                        app_row *row, app_record *record = nullptr)
    {
        restore(in);
        *reinterpret_cast<uint32_t *>(stop_.get()) = 0;
        strategy.ready();
        team_.wake();
        app_party<A> party(in.host, team_, by_team_, reinterpret_cast<uint32_t *>(stop_.get()),
                           options_.limit);
        party.record = record;
        if (replays_) {
            party.replay = &in.record;
            party.got.assign(in.record.ups.size(), app_poison);
        }
        party.fault = fault;
        const uint64_t begin = app_host_now();
        const bool is_done = strategy.run(party);
        seconds_ = static_cast<double>(app_host_now() - begin) / 1e9;
        team_.rest();
        if (!is_done) {
            row->why = "a run took longer than the limit";
            *reinterpret_cast<uint32_t *>(stop_.get()) = 1;
        }
        strategy.rest();
        return party;
    }
    app_party<A> run(app_inputs<A> &in, size_t k, const app_fault &fault, app_row *row)
    {
        app_party<A> party = run_by(*strategies_[k], in, fault, row);
        if (!row->why.empty()) {
            strategies_[k] = nullptr;
            row->runs++;
            row->wrong++;
            row->what = row->why;
        } else if (fault.kind == APP_BREAK_NONE) {
            check(in, &party, row);
        }
        return party;
    }

    // One run of each strategy, or as many as it needs to settle; slow ones are measured in one
    // round only. Returns how many rounds there is time for.
    uint32_t warm_up(std::vector<app_row> *rows, uint32_t rounds)
    {
        double all = 0.0;
        is_slow_.assign(rows->size(), false);
        upload(*inputs_[0]);
        for (size_t k = 0; k < rows->size(); k++) {
            if (strategies_[k] != nullptr) {
                do {
                    run(*inputs_[0], k, {}, &(*rows)[k]);
                } while (strategies_[k] != nullptr && !strategies_[k]->is_settled());
                is_slow_[k] = seconds_ > options_.seconds / (2.0 * rounds);
                all += is_slow_[k] ? 0.0 : seconds_;
            }
        }
        return options_.check ? rounds : rounds_in(all, rounds);
    }
    // Odd number of rounds there is time for, at most `rounds`; `seconds`: length of one.
    uint32_t rounds_in(double seconds, uint32_t rounds) const
    {
        const double room = seconds > 0.0 ? options_.seconds / seconds : rounds;
        const uint32_t most = static_cast<uint32_t>(std::min<double>(rounds, room));
        return most > 1 ? (most - 1) / 2 * 2 + 1 : 1;
    }

    // Every element of both parties' memory, or instead of that of party 0 the chunks that it got.
    void check(app_inputs<A> &in, const app_party<A> *party, app_row *row)
    {
        if (replays_ && party != nullptr) {
            memcpy(in.host.memory(0), in.right[0].get(), in.host.bytes(0));
            if (!is_same(in.record, party->got)) {
                row->what = "a chunk of party 1 is wrong";
                row->wrong++;
            }
        }
        uint32_t *different = reinterpret_cast<uint32_t *>(different_.get());
        *different = 0;
        app_compare_kernel<<<1024, 256>>>(reinterpret_cast<const uint4 *>(view_.get()),
                                          reinterpret_cast<const uint4 *>(right_.get()),
                                          bytes_ / sizeof(uint4), different);
        APP_MUST(cudaGetLastError());
        APP_MUST(cudaDeviceSynchronize());
        row->runs++;
        if (*different == 0 &&
            memcmp(in.host.memory(0), in.right[0].get(), in.host.bytes(0)) == 0) {
            return;
        }
        download(in);
        if constexpr (A::any_order) {
            if (A::outcome(in.host.view(0), in.host.view(1)) == in.outcome) {
                return;
            }
        }
        std::string what;
        if (!in.host.verify(&what)) {
            row->what = row->wrong == 0 ? what : row->what;
            row->wrong++;
        }
    }

    // The words of a step can be in any order, if the order of threads decides it.
    static bool is_same(const app_record &record, const std::vector<unsigned char> &got)
    {
        if (record.ups == got || got.size() != record.ups.size()) {
            return record.ups == got;
        }
        for (size_t s = 0; A::any_order && s < record.steps.size(); s++) {
            const size_t first = record.up_at[s];
            const size_t end = s + 1 < record.steps.size() ? record.up_at[s + 1] : got.size();
            std::vector<uint32_t> wanted((end - first) / 4), has(wanted.size());
            memcpy(wanted.data(), record.ups.data() + first, end - first);
            memcpy(has.data(), got.data() + first, end - first);
            std::sort(wanted.begin(), wanted.end());
            std::sort(has.begin(), has.end());
            if (wanted != has) {
                return false;
            }
        }
        return A::any_order;
    }

    // The same mistake for either receiver, in a step that has a chunk for it.
    void break_all(std::vector<app_row> rows)
    {
        app_inputs<A> &in = *inputs_[0];
        upload(in);
        for (size_t k = 0; k < rows.size(); k++) {
            for (int receiver = 1; receiver >= 0 && strategies_[k] != nullptr; receiver--) {
                std::vector<uint32_t> steps;
                for (const app_step &step : in.record.steps) {
                    if ((receiver == 1 ? step.down : step.up) > 0) {
                        steps.push_back(step.index);
                    }
                }
                const app_fault fault = {options_.fault, receiver, 0,
                                         steps[std::min<size_t>(2, steps.size() - 1)]};
                app_found found = {rows[k].app, rows[k].size, rows[k].strategy,
                                   receiver,    false,        ""};
                run(in, k, fault, &rows[k]);
                if (rows[k].why.empty()) {
                    download(in);
                    found.found = !in.host.verify(&found.what);
                } else {
                    found.what = rows[k].why;
                }
                app_print(found);
                report_.found.push_back(found);
            }
            if (strategies_[k] == nullptr && rows[k].wrong == 0) {
                finish(rows[k]);
            }
        }
    }

    // --- figures ------------------------------------------------------------------------------

    static double host_seconds(const app_party<A> &party)
    {
        uint64_t ns = 0;
        for (const uint64_t one : party.ns) {
            ns += one;
        }
        return static_cast<double>(ns) / 1e9;
    }
    double overhead(const app_party<A> &party)
    {
        std::vector<app_stamps> all(stamp_count), with_chunks;
        APP_MUST(cudaMemcpy(all.data(), stamps_.get(), stamp_count * sizeof(app_stamps),
                            cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < all.size(); i++) {
            const uint64_t ready = party.ready[i / app_stamp_blocks];
            if (all[i].begin != 0 && all[i].in_hand != 0 && ready != 0) {
                all[i].ready = ready + static_cast<uint64_t>(offset_);
                with_chunks.push_back(all[i]);
            }
        }
        return with_chunks.empty() ? NAN : app_overhead(with_chunks.data(), with_chunks.size());
    }

    const app_options &options_;
    app_team &team_;
    app_report &report_;
    app_place<A> place_ = {};
    const size_t bytes_; // memory of party 1
    const app_on_device view_, start_, right_, stamps_;
    const app_pinned stop_, different_;
    const int64_t offset_; // the device's clock minus the host's
    app_by_team by_team_ = {};
    bool replays_ = false;      // party 0
    std::vector<bool> is_slow_; // strategies
    std::vector<std::future<void>> verified_;
    double seconds_ = 0.0; // length of the last run
    std::vector<std::unique_ptr<app_inputs<A>>> inputs_;
    std::unique_ptr<app_strategy<A>> recorder_;
    std::vector<std::unique_ptr<app_strategy<A>>> strategies_; // NULL: cannot be done
};

template <class A>
void app_measure(const app_options &options, const app_size &size, app_team *team,
                 app_report *report)
{
    app_bench<A>(options, size, team, report).measure();
}
#endif
