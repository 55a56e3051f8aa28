// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APPS_PARTY_CUH
#define WIC_APPS_PARTY_CUH
// Party 0 of a round on the host: by one thread or a team, with its times and mistakes. Or, if it
// replays a record, a party 0 that needs no time to compute: chunks are copied from the record, and
// those of party 1 are kept, to be compared later.
#include "wic/apps/measure/team.cuh"
#include "wic/apps/strategies/oracle.cuh"

#include <atomic>

enum app_call { APP_PRODUCE, APP_INDEPENDENT, APP_CONSUME, APP_SETTLE };
constexpr uint32_t app_calls = 4;

// True for calls that a team does faster than one thread.
struct app_by_team {
    bool is[app_calls];
};

template <class A> class app_party : public app_run<A>
{
  public:
    app_party(app_host<A> &host, app_team &team, const app_by_team &by_team, uint32_t *stop,
              double limit)
        : host_(host), team_(team), by_team_(by_team), stop_(stop),
          limit_ns_(static_cast<uint64_t>(limit * 1e9)), ready(app_stamp_rows),
          poison_(app_allocate(chunk_bytes())), before_(app_allocate(chunk_bytes()))
    {
        begin_ = app_host_now();
        host.again();
    }

    bool next(app_step *step) override
    {
        if (replay != nullptr) {
            const bool is_left = replayed_ < replay->steps.size();
            *step = is_left ? replay->steps[replayed_++] : app_step{};
            return is_left;
        }
        const bool is_step = host_.next(step);
        if (record != nullptr && is_step) {
            record->steps.push_back(*step);
            record->at.push_back(record->chunks.size());
            record->chunks.resize(record->chunks.size() + step->down * stride(*step));
            record->up_at.push_back(record->ups.size());
        }
        return is_step;
    }

    void produce(const app_step &step, uint32_t chunk, void *to) override
    {
        const app_piece all = {chunk, 0, step.down_units};
        if (replay != nullptr) {
            copy(APP_PRODUCE, to, &replay->chunks[replay->at[step.index] + chunk * stride(step)],
                 size_t(step.down_units) * A::facts.down_unit);
        } else {
            work(APP_PRODUCE, by_team_.is[APP_PRODUCE], [&](app_part part) {
                const app_piece own = part_of(all, part);
                A::template make<0>(host_.view(0), step, own,
                                    static_cast<char *>(to) + own.first * A::facts.down_unit,
                                    {0, 1});
            });
        }
        const uint32_t row = A::facts.order == APP_PIPED ? chunk : step.index;
        if (row < app_stamp_rows) {
            ready[row] = end_;
        }
        if (record != nullptr) {
            memcpy(&record->chunks[record->at.back() + chunk * stride(step)], to,
                   size_t(step.down_units) * A::facts.down_unit);
        }
    }
    void independent(const app_step &step) override
    {
        if (replay == nullptr) {
            work(APP_INDEPENDENT, by_team_.is[APP_INDEPENDENT],
                 [&](app_part part) { A::template independent<0>(host_.view(0), step, part); });
        }
    }
    void consume(const app_step &step, uint32_t chunk, const void *from) override
    {
        const size_t bytes = up_bytes(step);
        if (replay != nullptr) {
            const size_t at = replay->up_at[step.index] + chunk * bytes;
            got.resize(std::max(got.size(), at + bytes));
            copy(APP_CONSUME, &got[at], from, bytes);
            return;
        }
        if (record != nullptr) {
            const size_t at = record->up_at.back() + chunk * bytes;
            record->ups.resize(std::max(record->ups.size(), at + bytes));
            memcpy(&record->ups[at], from, bytes);
        }
        from = found(step, chunk, from);
        const app_piece all = {chunk, 0, step.up_units};
        if (from != nullptr) {
            work(APP_CONSUME, by_team_.is[APP_CONSUME], [&](app_part part) {
                const app_piece own = part_of(all, part);
                A::template dependent<0>(
                    host_.view(0), step, own,
                    static_cast<const char *>(from) + own.first * A::facts.up_unit, {0, 1});
            });
        }
    }
    void settle(const app_step &step) override
    {
        for (uint32_t phase = 0; replay == nullptr && phase < A::settles(step); phase++) {
            work(APP_SETTLE, by_team_.is[APP_SETTLE],
                 [&](app_part part) { A::template settle<0>(host_.view(0), step, phase, part); });
        }
    }

    bool is_late() override
    {
        if (++asked_ % 256 == 0 && app_host_now() - begin_ > limit_ns_) {
            __atomic_store_n(stop_, 1, __ATOMIC_RELEASE);
            late_ = true;
        }
        return late_;
    }

    app_record *record = nullptr; // gets the round, if set
    const app_record *replay = nullptr;
    std::vector<unsigned char> got; // in a replay: the chunks of party 1, as in the record
    uint64_t ns[app_calls] = {}, calls[app_calls] = {};

  private:
    app_host<A> &host_;
    app_team &team_;
    const app_by_team by_team_;
    uint32_t *stop_;
    const uint64_t limit_ns_;

  public:
    std::vector<uint64_t> ready; // a time for each row of the stamps

  private:
    static size_t stride(const app_step &step)
    {
        return app_stride_for<A>(1, step);
    }
    size_t chunk_bytes() const
    {
        return size_t(most_up()) * A::facts.up_unit;
    }
    uint32_t most_up() const
    {
        return A::most(host_.size()).up_units;
    }

    // A thread has units next to each other, so that threads share no lines of the cache.
    static app_piece part_of(const app_piece &all, app_part part)
    {
        const uint64_t units = all.units;
        const uint32_t first = static_cast<uint32_t>(units * part.thread / part.threads);
        const uint32_t end = static_cast<uint32_t>(units * (part.thread + 1) / part.threads);
        return {all.chunk, first, end - first};
    }
    static size_t up_bytes(const app_step &step)
    {
        return size_t(step.up_units) * A::facts.up_unit;
    }
    void copy(app_call call, void *to, const void *from, size_t bytes)
    {
        work(call, bytes >= copy_by_team, [&](app_part part) {
            const size_t lines = bytes / 64, first = lines * part.thread / part.threads * 64;
            const size_t end = lines * (part.thread + 1) / part.threads * 64;
            const bool is_last = part.thread + 1 == part.threads;
            memcpy(static_cast<char *>(to) + first, static_cast<const char *>(from) + first,
                   (is_last ? bytes : end) - first);
        });
    }
    template <class Work> void work(app_call call, bool by_team, Work what)
    {
        const uint64_t begin = app_host_now();
        if (by_team) {
            const unsigned threads = team_.threads();
            team_.run([&](unsigned thread) { what(app_part{thread, threads}); });
        } else {
            what(app_part{0, 1});
        }
        end_ = app_host_now();
        ns[call] += end_ - begin;
        calls[call]++;
    }

    // The chunk that party 0 finds; NULL: lost.
    const void *found(const app_step &step, uint32_t chunk, const void *from)
    {
        const app_fault &fault = this->fault;
        if (fault.kind == APP_BREAK_NONE || fault.receiver != 0) {
            return from;
        }
        const size_t bytes = size_t(step.up_units) * A::facts.up_unit;
        const bool is_wrong = fault.step == step.index && fault.round == step.round &&
                              chunk == (A::facts.told ? 0 : step.up - 1);
        if (is_wrong) {
            return fault.kind == APP_LOST_LAST    ? nullptr
                   : fault.kind == APP_EARLY_READ ? poison_.get()
                                                  : before_.get();
        }
        memcpy(before_.get(), from, bytes);
        return from;
    }

    static constexpr size_t copy_by_team = 128 << 10; // bytes

    app_memory poison_, before_; // before_: the chunk before
    size_t replayed_ = 0;        // steps
    uint64_t begin_, end_ = 0;
    uint32_t asked_ = 0;
    bool late_ = false;
};
#endif
