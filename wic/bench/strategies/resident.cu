// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Strategies with a resident kernel: the host's side of the link, the same for all of them, and the
// only place where strategies post tiles.
#include "wic/bench/base/bench.cuh"

#include <cerrno>

namespace
{
class resident : public strategy
{
  public:
    resident(wic_link *link, const bench_pool &pool, uint32_t unit)
        : strategy(pool.slots), link_(link), bytes_(static_cast<uint32_t>(pool.chunk)),
          units_(bytes_ / unit)
    {
    }

    ~resident() override
    {
        wic_link_abort(link_);
        wic_link_join(link_, WIC_LINK_BEAT_NS);
        wic_link_destroy(link_);
    }

    void submit(uint64_t end) override
    {
        for (; next_ < end; next_++) {
            const wic_link_tile tile = {next_,   units_, bytes_, bytes_ / in_unit * out_unit,
                                        nullptr, 0};
            if (wic_link_post(link_, &tile) != 0) {
                bench_fail("a tile cannot be posted", __LINE__);
            }
        }
    }

    uint64_t poll() override
    {
        if (++looks_ % beat_looks == 0) {
            wic_link_beat(link_);
        }
        if (looks_ % check_looks == 0 && wic_link_running(link_) != 1) {
            bench_fail("a resident kernel left before its time", __LINE__);
        }
        while (done_ < next_ && wic_link_done(link_, done_)) {
            done_++;
        }
        return done_;
    }

    double leave_ms() override
    {
        const double start = bench_seconds();
        wic_link_close(link_, next_);
        while (wic_link_running(link_) > 0) {
        }
        return 1e3 * (bench_seconds() - start);
    }

  private:
    static constexpr uint64_t beat_looks = 1 << 10, check_looks = 1 << 20;

    wic_link *link_;
    uint32_t bytes_, units_; // of a chunk
    uint64_t next_ = 0, done_ = 0, looks_ = 0;
};
} // namespace

wic_link_options bench_link_options(wait_kind kind, const bench_pool &pool,
                                    const wic_transfer_plan &plan)
{
    wic_link_options options = {};
    options.in = pool.in;
    options.out = pool.out;
    options.in_stride = pool.in_stride;
    options.out_stride = pool.out_stride;
    options.in_slots = options.out_slots = pool.slots;
    options.plan = plan;
    options.kernel = resident_kernel(kind);
    return options;
}

std::unique_ptr<strategy> start_resident(wic_link *link, const bench_pool &pool, uint32_t unit)
{
    std::unique_ptr<strategy> way = std::make_unique<resident>(link, pool, unit);
    const int rc = wic_link_start(link, 0, 0);
    if (rc != 0 && rc != -EBUSY) {
        bench_fail("a resident kernel does not start", __LINE__);
    }
    return rc == 0 ? std::move(way) : nullptr;
}

std::unique_ptr<strategy> make_resident(const void *kernel, const bench_pool &pool,
                                        const wic_transfer_plan &plan)
{
    wic_link_options options = bench_link_options(WAIT_PARKED, pool, plan);
    if (kernel != options.kernel) {
        options.plan.engine_backlog = 0; // the other kernels read the host's slots
    }
    options.kernel = kernel;
    wic_link *link;
    const int rc = wic_link_create(&options, &link);
    if (rc == -E2BIG || rc == -ENOSPC) {
        return nullptr;
    }
    if (rc != 0) {
        bench_fail("a link cannot be made", __LINE__);
    }
    std::unique_ptr<strategy> way =
        start_resident(link, pool, plan.in_unit ? plan.in_unit : line_in);
    if (!way) {
        bench_fail("a resident kernel does not start", __LINE__);
    }
    return way;
}
