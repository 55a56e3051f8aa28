// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_HOST_STRATEGY_CUH
#define WIC_APP_HOST_STRATEGY_CUH
// The strategy without a device: the work of both parties on the host, chunk by chunk, that of
// party 1 piece by piece and by any number of threads. It shows that an application is right, and
// that its verification finds the mistakes of other strategies.
#include "wic/apps/app.cuh"

#include <algorithm>
#include <thread>
#include <vector>

struct app_shape {
    uint32_t threads, pieces; // threads of party 1; pieces of a chunk
    bool parallel;            // each is a thread of the host; otherwise they run in turn
    bool backwards; // the last thread, piece and chunk first, dependent before independent
};

template <class A> class app_host_strategy
{
  public:
    app_host_strategy(const app_size &size, const app_shape &shape) : host(size), shape_(shape)
    {
        const app_step most = A::most(size);
        bytes_[1] = size_t(most.down_units) * A::facts.down_unit;
        bytes_[0] = size_t(most.up_units) * A::facts.up_unit;
        for (int to = 0; to < 2; to++) {
            before_[to] = app_allocate(bytes_[to]);
        }
    }

    // One round; `met`: the fault is in a step that has a chunk for its receiver.
    bool run(uint64_t seed, uint32_t round, const app_fault &fault, bool *met, std::string *why)
    {
        fault_ = fault;
        met_ = false;
        host.begin(seed, round);
        app_step step;
        for (steps = 0; host.next(&step); steps++) {
            step_ = &step;
            take_step();
        }
        *met = met_;
        return host.verify(why);
    }

    app_host<A> host;
    uint32_t steps = 0; // number in the last round

  private:
    using view = typename A::view;

    void take_step()
    {
        const app_step &s = *step_;
        const view &v1 = host.view(1);
        std::vector<app_memory> down, up;
        for (uint32_t c = 0; c < s.down; c++) {
            down.push_back(app_allocate(bytes_[1]));
            host.produce(s, c, down.back().get());
        }
        std::vector<const unsigned char *> got;
        for (uint32_t c = 0; c < s.down; c++) {
            got.push_back(found(1, c, s.down, down[c]));
        }
        if (A::facts.order != APP_ANSWERS) {
            make_room(&up);
        }
        if (A::facts.order == APP_EXCHANGES) {
            make_all(up);
        }
        host.independent(s);
        each_thread([&](app_part part) {
            if (!shape_.backwards) {
                A::template independent<1>(v1, s, part);
            }
            for (uint32_t i = 0; i < s.down; i++) {
                const uint32_t c = shape_.backwards ? s.down - 1 - i : i;
                each_piece(c, s.down_units, [&](const app_piece &piece) {
                    if (got[c] != nullptr) {
                        A::template dependent<1>(v1, s, piece,
                                                 at(got[c], piece, A::facts.down_unit), part);
                    }
                    if (A::facts.order == APP_PIPED) {
                        A::template make<1>(v1, s, piece, at(up[c].get(), piece, A::facts.up_unit),
                                            part);
                    }
                });
            }
            if (shape_.backwards) {
                A::template independent<1>(v1, s, part);
            }
        });
        for (uint32_t phase = 0; phase < A::settles(s); phase++) {
            each_thread([&](app_part part) { A::template settle<1>(v1, s, phase, part); });
        }
        if (A::facts.order == APP_ANSWERS) {
            make_room(&up);
            make_all(up);
        }
        for (uint32_t c = 0; c < up.size(); c++) {
            give(s, c, static_cast<uint32_t>(up.size()), up[c]);
        }
        host.settle(s);
    }

    template <class Work> void each_thread(Work work)
    {
        std::vector<std::thread> running;
        for (uint32_t i = 0; i < shape_.threads; i++) {
            const app_part part = {shape_.backwards ? shape_.threads - 1 - i : i, shape_.threads};
            if (shape_.parallel) {
                running.emplace_back(work, part);
            } else {
                work(part);
            }
        }
        for (std::thread &thread : running) {
            thread.join();
        }
    }
    template <class Work> void each_piece(uint32_t chunk, uint32_t units, Work work)
    {
        const uint32_t pieces = std::min(shape_.pieces, units);
        for (uint32_t i = 0; i < pieces; i++) {
            const uint32_t p = shape_.backwards ? pieces - 1 - i : i;
            const uint32_t first = static_cast<uint32_t>(uint64_t(units) * p / pieces);
            const uint32_t end = static_cast<uint32_t>(uint64_t(units) * (p + 1) / pieces);
            work(app_piece{chunk, first, end - first});
        }
    }
    template <class T> static T *at(T *chunk, const app_piece &piece, uint32_t unit)
    {
        return chunk + size_t(piece.first) * unit;
    }

    void make_room(std::vector<app_memory> *up)
    {
        for (uint32_t c = A::ups(host.view(1), *step_); c > 0; c--) {
            up->push_back(app_allocate(bytes_[0]));
        }
    }
    void make_all(const std::vector<app_memory> &up)
    {
        each_thread([&](app_part part) {
            for (uint32_t c = 0; c < up.size(); c++) {
                each_piece(c, step_->up_units, [&](const app_piece &piece) {
                    A::template make<1>(host.view(1), *step_, piece,
                                        at(up[c].get(), piece, A::facts.up_unit), part);
                });
            }
        });
    }

    // The chunk that the receiver finds; NULL: lost.
    const unsigned char *found(int receiver, uint32_t chunk, uint32_t chunks, app_memory &given)
    {
        const bool is_wrong = fault_.kind != APP_BREAK_NONE && fault_.receiver == receiver &&
                              fault_.round == step_->round && fault_.step == step_->index &&
                              chunk == chunks - 1;
        met_ = met_ || is_wrong;
        if (is_wrong && fault_.kind == APP_EARLY_READ) {
            given = app_allocate(bytes_[receiver]);
        } else if (is_wrong && fault_.kind == APP_STALE) {
            std::swap(given, before_[receiver]);
        }
        memcpy(before_[receiver].get(), given.get(), bytes_[receiver]);
        return is_wrong && fault_.kind == APP_LOST_LAST ? nullptr : given.get();
    }
    void give(const app_step &s, uint32_t chunk, uint32_t chunks, app_memory &given)
    {
        const unsigned char *from = found(0, chunk, chunks, given);
        if (from != nullptr) {
            host.consume(s, chunk, from);
        }
    }

    app_shape shape_;
    size_t bytes_[2];      // size of a chunk, by receiver
    app_memory before_[2]; // its last chunk
    app_fault fault_ = {};
    bool met_ = false;
    const app_step *step_ = nullptr;
};
#endif
