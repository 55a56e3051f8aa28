// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_EXCHANGE_CUH
#define WIC_BENCH_EXCHANGE_CUH
// Exchanges with a resident kernel, as many at a time as there are lanes. Each lane follows its own
// schedule of the pattern: what goes down is posted as tiles, what comes up is the result of the
// last one of a step. Of a chunk its place in the schedule travels beside it.
#include "wic/bench/patterns/patterns.cuh"

struct exchange_place {
    uint32_t lane;
    uint32_t k, count; // place in its step, and the step's chunks
    uint32_t turn;     // steps down in this item before this one
};
static_assert(sizeof(exchange_place) == 16, "a multiple of 16 bytes travels beside a tile");

struct exchange_lane {
    wic_schedule schedule;
    uint64_t awaited; // the tile whose result is next
    uint64_t turn;
    bool waits;
};

class exchange_way : public pattern_way
{
  public:
    // options: of the link; borrowed memory. args: of the pattern.
    exchange_way(const wic_pattern &pattern, std::vector<uint64_t> args, uint32_t lanes,
                 const wic_link_options &options);
    ~exchange_way() override;
    void submit(uint64_t end) override;
    uint64_t poll() override;

  protected:
    static constexpr uint64_t wants_result = 3; // told with what goes down: 2 * chunks + direction

    // A chunk that goes down as this tile, in that slot: its units and bytes. tile->user is the
    // place, or may be something that begins with it.
    virtual void send(const exchange_place &place, uint64_t slot, wic_link_tile *tile) = 0;
    // The result of the lane's item, or a part of it, has come up: the value told with it. 0: the
    // item is done.
    virtual uint64_t receive(const exchange_place &place, uint64_t slot) = 0;
    virtual bool ends_item(uint64_t value) const
    {
        return value == 0;
    }
    uint64_t in_slots() const
    {
        return options_.in_slots;
    }

  private:
    void begin(exchange_lane *lane);
    void go_on(uint32_t lane);
    void tell(exchange_lane *lane, uint64_t value);
    void finish(uint64_t tile);

    const wic_pattern &pattern_;
    std::vector<uint64_t> args_;
    wic_link_options options_;
    wic_link *link_;
    std::vector<exchange_lane> lanes_;
    std::vector<exchange_place> place_;             // by tile in the ring
    uint64_t wanted_ = 0, started_ = 0, items_ = 0; // items
    uint64_t next_ = 0, done_ = 0, looks_ = 0;      // tiles
};
#endif
