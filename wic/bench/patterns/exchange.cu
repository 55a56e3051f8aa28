// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Exchanges with a resident kernel, each by the schedule of its pattern.
#include "wic/bench/patterns/exchange.cuh"

namespace
{
constexpr uint64_t beat_looks = 1 << 10, check_looks = 1 << 20;
} // namespace

exchange_way::exchange_way(const wic_pattern &pattern, std::vector<uint64_t> args, uint32_t lanes,
                           const wic_link_options &options)
    : pattern_way(lanes), pattern_(pattern), args_(std::move(args)), options_(options),
      lanes_(lanes), place_(WIC_LINK_RING_MAX)
{
    if (wic_link_create(&options, &link_) != 0 || wic_link_start(link_, 0, 0) != 0) {
        bench_fail("no link for an exchange", __LINE__);
    }
    for (exchange_lane &lane : lanes_) {
        begin(&lane);
    }
}

exchange_way::~exchange_way()
{
    wic_link_abort(link_);
    wic_link_join(link_, WIC_LINK_BEAT_NS);
    wic_link_destroy(link_);
    for (exchange_lane &lane : lanes_) {
        wic_schedule_fini(&lane.schedule);
    }
}

void exchange_way::begin(exchange_lane *lane)
{
    wic_pattern_params params = {};
    params.parties = 2;
    params.slots = 2;
    params.chunk_bytes = options_.in_stride;
    params.chunks[0][1] = params.chunks[1][0] = WIC_OPEN;
    params.args = args_.data();
    char text[WIC_TEXT_BYTES] = "";
    if (wic_schedule_init(&lane->schedule, &pattern_, &params, text, sizeof text) != 0) {
        bench_fail(text, __LINE__);
    }
    lane->waits = false;
    lane->turn = 0;
}

void exchange_way::tell(exchange_lane *lane, uint64_t value)
{
    const wic_outcome all = {lane->schedule.untold.count, value};
    char text[WIC_TEXT_BYTES] = "";
    if (wic_schedule_tell(&lane->schedule, &all, text, sizeof text) != 0) {
        bench_fail(text, __LINE__);
    }
}

// Sends what the lane's pattern says is next, until it wants a result.
void exchange_way::go_on(uint32_t number)
{
    exchange_lane &lane = lanes_[number];
    char text[WIC_TEXT_BYTES] = "";
    wic_step step;
    for (;;) {
        int rc = wic_schedule_next(&lane.schedule, &step, text, sizeof text);
        if (rc == 0) { // it has ended: the next item is the first of another exchange
            wic_schedule_fini(&lane.schedule);
            begin(&lane);
            rc = wic_schedule_next(&lane.schedule, &step, text, sizeof text);
        }
        if (rc != 1) {
            bench_fail(text, __LINE__);
        }
        if (step.from != 0) {
            lane.waits = true;
            return;
        }
        for (uint32_t k = 0; k < step.count; k++) {
            exchange_place &place = place_[next_ % WIC_LINK_RING_MAX];
            place = {number, k, static_cast<uint32_t>(step.count),
                     static_cast<uint32_t>(lane.turn)};
            wic_link_tile tile = {};
            tile.number = next_;
            tile.user = &place;
            send(place, next_ % options_.in_slots, &tile);
            if (wic_link_post(link_, &tile) != 0) {
                bench_fail("a chunk cannot be posted", __LINE__);
            }
            lane.awaited = next_++;
        }
        lane.turn++;
        tell(&lane, wants_result);
    }
}

void exchange_way::submit(uint64_t end)
{
    wanted_ = end;
    for (uint32_t i = 0; i < lanes_.size() && started_ < wanted_; i++) {
        if (!lanes_[i].waits) {
            started_++;
            go_on(i);
        }
    }
}

void exchange_way::finish(uint64_t tile)
{
    const exchange_place &place = place_[tile % WIC_LINK_RING_MAX];
    exchange_lane &lane = lanes_[place.lane];
    if (tile != lane.awaited) {
        return; // its step has others after it
    }
    const uint64_t value = receive(place, tile % options_.in_slots);
    tell(&lane, value);
    lane.waits = false;
    if (!ends_item(value)) {
        go_on(place.lane);
        return;
    }
    lane.turn = 0;
    items_++;
    if (started_ < wanted_) {
        started_++;
        go_on(place.lane);
    }
}

uint64_t exchange_way::poll()
{
    if (++looks_ % beat_looks == 0) {
        wic_link_beat(link_);
    }
    if (looks_ % check_looks == 0 && wic_link_running(link_) != 1) {
        bench_fail("a resident kernel left before its time", __LINE__);
    }
    while (done_ < next_ && wic_link_done(link_, done_)) {
        finish(done_++);
    }
    return items_;
}
