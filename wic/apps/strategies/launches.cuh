// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_LAUNCHES_CUH
#define WIC_APP_LAUNCHES_CUH
// Strategies in which the host launches the kernels of each step: stream, stream-batch, graph and
// zero-copy. The host waits for events; kernels never wait.
#include "wic/apps/strategies/step_kernels.cuh"

#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

struct app_launch_kind {
    bool copies; // chunks through device memory by the copy engines; otherwise kernels read and
                 // write pinned memory
    bool joins;  // gathered chunks, at least join_bytes, are one copy and one kernel
    bool graphs; // the kernels after the last chunk of a step are one graph
};

template <class A> class app_launches : public app_strategy<A>
{
  public:
    app_launches(const app_place<A> &place, const app_launch_kind &kind)
        : place_(place), kind_(kind), kernels_(place), lanes_(is_piped ? lanes_most : 0)
    {
        if (is_piped && kind.joins) {
            const size_t most = std::max<size_t>(1, join_bytes / place.bytes[1]);
            group_ = static_cast<uint32_t>(std::min<size_t>(most, std::max(1u, place.slots / 4)));
        }
        const size_t downs = is_piped ? place.slots : place.most.down;
        const size_t ups = is_piped ? place.slots : place.most.up;
        down_bytes_ = is_piped ? downs * slot_bytes() : app_work_bytes + downs * place.bytes[1];
        up_bytes_ = ups * place.bytes[0];
        for (set &s : sets_) {
            if (is_piped && &s != sets_) {
                break;
            }
            s.host = app_take_pinned(down_bytes_);
            s.up = app_take_pinned(up_bytes_);
            if (kind.copies) {
                s.device = app_take_device(down_bytes_);
                s.up_device = app_take_device(up_bytes_);
            }
            s.arrived = std::make_unique<app_event[]>(std::max<size_t>(ups, 1));
        }
        scratch_ = app_take_pinned(place.bytes[1]);
        ups_ = app_take_pinned(sizeof(uint32_t));
        copied_ = std::make_unique<app_event[]>(std::max<size_t>(downs, 1));
        if (kind.graphs && !is_piped) {
            for (const app_step &step : place.steps) {
                graph_of(step);
            }
        } else if (kind.graphs) {
            for (uint32_t slot = 0; slot + group_ <= place.slots; slot += group_) {
                slot_graphs_.push_back(capture_slot(slot));
            }
        }
    }

    ~app_launches() override
    {
        cudaDeviceSynchronize();
        for (const auto &graph : graphs_) {
            cudaGraphExecDestroy(graph.second);
        }
        for (cudaGraphExec_t graph : slot_graphs_) {
            cudaGraphExecDestroy(graph);
        }
    }

    void ready() override
    {
        for (set &s : sets_) {
            if (s.host != nullptr) {
                memset(s.host.get(), app_poison, down_bytes_);
                memset(s.up.get(), app_poison, up_bytes_);
            }
            if (s.device != nullptr) {
                APP_MUST(cudaMemset(s.device.get(), app_poison, down_bytes_));
                APP_MUST(cudaMemset(s.up_device.get(), app_poison, up_bytes_));
            }
        }
        begun_ = 0;
        APP_MUST(cudaDeviceSynchronize());
    }

    bool run(app_run<A> &host) override
    {
        app_step step;
        while (host.next(&step)) {
            if constexpr (is_piped) {
                if (!pipe(host, step)) {
                    return false;
                }
            } else if (!take_step(host, step)) {
                return false;
            }
        }
        end_.record(compute_);
        return end_.wait(host);
    }

    void rest() override
    {
        APP_MUST(cudaDeviceSynchronize());
    }

  private:
    static constexpr bool is_piped = A::facts.order == APP_PIPED;
    static constexpr size_t lanes_most = 4, join_bytes = 256 << 10;

    // Memory of the chunks of a step; steps take turns. On the device: none without copies.
    struct set {
        app_pinned host; // begins with the work, for graphs
        app_on_device device;
        app_event free; // the kernels have read it
        app_pinned up;  // chunks of party 1
        app_on_device up_device;
        app_event made;
        std::unique_ptr<app_event[]> arrived;
    };

    // Memory that kernels read and write.
    unsigned char *readable(const set &s) const
    {
        return kind_.copies ? s.device.get() : s.host.get();
    }
    unsigned char *made_in(const set &s) const
    {
        return kind_.copies ? s.up_device.get() : s.up.get();
    }
    set &set_of(const app_step &step)
    {
        return sets_[step.index % 2];
    }

    // --- steps --------------------------------------------------------------------------------

    bool take_step(app_run<A> &host, const app_step &step)
    {
        set &s = set_of(step);
        begin(step);
        if (!s.free.wait(host) || !produce_all(host, step, s)) {
            return false;
        }
        s.free.record(compute_);
        if (A::facts.order == APP_ANSWERS && step.up > 0) {
            start_up(step);
        }
        app_step then = {};
        then.index = step.index + 1;
        then.round = step.round;
        if (!A::facts.told && A::next(place_.view, &then)) {
            begin(then);
        }
        host.independent(step);
        return take_up(host, step) && (host.settle(step), true);
    }
    // Launches the work that needs no chunk of the step: where the data does not decide the steps,
    // before the host has settled the step before.
    void begin(const app_step &step)
    {
        if (step.index < begun_) {
            return;
        }
        begun_ = step.index + 1;
        const app_work work = {step, 0, step.down, true, true, app_no_chunk};
        if (A::facts.order == APP_EXCHANGES && step.up > 0) {
            kernels_.make(work, nullptr, made_in(set_of(step)), 0, told(), compute_);
            start_up(step);
        }
        kernels_.independent(work, nullptr, compute_);
    }

    bool produce_all(app_run<A> &host, const app_step &step, set &s)
    {
        const size_t stride = app_stride_for<A>(1, step);
        unsigned char *chunks = s.host.get() + app_work_bytes;
        uint32_t sent = 0;
        for (uint32_t c = 0; c < step.down; c++) {
            const bool is_last = c + 1 == step.down;
            if (host.is_wrong(step, c)) {
                send(step, s, sent, c, false);
                mistake(host, step, s, c);
                return true;
            }
            host.produce(step, c, chunks + c * stride);
            if (!kind_.joins || is_last || (c + 1 - sent) * stride >= join_bytes) {
                send(step, s, sent, c + 1, is_last);
                sent = c + 1;
            }
            if (host.is_late()) {
                return false;
            }
        }
        if (step.down == 0) {
            send(step, s, 0, 0, true);
        }
        return true;
    }

    // Chunks first .. end - 1 to the device, and the kernels that take them.
    void send(const app_step &step, set &s, uint32_t first, uint32_t end, bool is_last)
    {
        const size_t stride = app_stride_for<A>(1, step);
        const app_work work = {step, first, end - first, first == 0, is_last, app_no_chunk};
        const bool by_graph = kind_.graphs && is_last;
        if (by_graph) {
            memcpy(s.host.get(), &work, sizeof work);
            if (first > 0) {
                copy_down(s, 0, app_work_bytes);
            }
        }
        if (kind_.copies && (end > first || by_graph)) {
            const size_t head = first == 0 && by_graph ? app_work_bytes : 0;
            copy_down(s, app_work_bytes - head + first * stride, head + (end - first) * stride);
            app_event &copied = copied_[kind_.joins ? 0 : first];
            copied.record(in_);
            copied.hold(compute_);
        }
        if (by_graph) {
            APP_MUST(cudaGraphLaunch(graph_of(step), compute_));
            return;
        }
        if (end > first) {
            kernels_.dependent(work, nullptr, readable(s) + app_work_bytes, 0, compute_);
        }
        if (is_last) {
            finish(work, nullptr, compute_);
        }
    }
    void copy_down(set &s, size_t at, size_t bytes)
    {
        APP_MUST(cudaMemcpyAsync(s.device.get() + at, s.host.get() + at, bytes,
                                 cudaMemcpyHostToDevice, in_));
    }
    // The kernels of a step after those that take chunks.
    void finish(const app_work &work, const app_work *at, cudaStream_t stream)
    {
        for (uint32_t phase = 0; phase < A::settles(work.step); phase++) {
            kernels_.settle(work, at, phase, stream);
        }
        if (A::facts.order == APP_ANSWERS && work.step.up > 0) {
            kernels_.make(work, at, made_in(set_of(work.step)), 0, told(), stream);
        }
    }

    // The last chunk of a step by host.fault.kind.
    void mistake(app_run<A> &host, const app_step &step, set &s, uint32_t chunk)
    {
        const size_t stride = app_stride_for<A>(1, step), at = app_work_bytes + chunk * stride;
        const app_work work = {step, chunk, 1, chunk == 0, true, app_no_chunk};
        if (host.fault.kind == APP_LOST_LAST) {
            host.produce(step, chunk, s.host.get() + at);
        } else {
            if (host.fault.kind == APP_EARLY_READ) {
                APP_MUST(cudaMemsetAsync(readable(s) + at, app_poison, stride, compute_));
            }
            kernels_.dependent(work, nullptr, readable(s) + app_work_bytes, 0, compute_);
            host.produce(step, chunk, scratch_.get());
        }
        finish(work, nullptr, compute_);
    }

    // --- chunks of party 1 --------------------------------------------------------------------

    // Memory for the number of chunks that only party 1 knows.
    uint32_t *told() const
    {
        return A::facts.told ? reinterpret_cast<uint32_t *>(ups_.get()) : nullptr;
    }
    void start_up(const app_step &step)
    {
        set &s = set_of(step);
        s.made.record(compute_);
        if (kind_.copies && !A::facts.told) {
            s.made.hold(out_);
            copy_up(step, step.up);
        }
    }
    void copy_up(const app_step &step, uint32_t count)
    {
        const size_t stride = app_stride_for<A>(0, step);
        const uint32_t each = kind_.joins ? count : 1;
        const set &s = set_of(step);
        for (uint32_t c = 0; c < count; c += each) {
            APP_MUST(cudaMemcpyAsync(s.up.get() + c * stride, s.up_device.get() + c * stride,
                                     each * stride, cudaMemcpyDeviceToHost, out_));
            s.arrived[c].record(out_);
        }
    }
    bool take_up(app_run<A> &host, const app_step &step)
    {
        if (step.up == 0) {
            return true;
        }
        const set &s = set_of(step);
        uint32_t count = step.up;
        if (A::facts.told || !kind_.copies) {
            if (!s.made.wait(host)) {
                return false;
            }
            count = A::facts.told ? *told() : count;
        }
        if (kind_.copies && A::facts.told) {
            copy_up(step, count);
        }
        for (uint32_t c = 0; c < count; c++) {
            if (kind_.copies && !s.arrived[kind_.joins ? 0 : c].wait(host)) {
                return false;
            }
            host.consume(step, c, s.up.get() + c * app_stride_for<A>(0, step));
        }
        return true;
    }

    // --- graphs -------------------------------------------------------------------------------

    cudaGraphExec_t graph_of(const app_step &step)
    {
        const auto key = std::make_tuple(step.index % 2, A::settles(step), step.up > 0);
        const auto found = graphs_.find(key);
        if (found != graphs_.end()) {
            return found->second;
        }
        return graphs_[key] = capture([&] {
                   const unsigned char *from = readable(set_of(step));
                   const app_work *at = reinterpret_cast<const app_work *>(from);
                   const app_work work = {step, 0, step.down, true, true, app_no_chunk};
                   kernels_.dependent(work, at, from + app_work_bytes, 0, compute_);
                   finish(work, at, compute_);
               });
    }
    cudaGraphExec_t capture_slot(uint32_t slot)
    {
        return capture([&] { send_slot(slot, nullptr, compute_); });
    }
    template <class Calls> cudaGraphExec_t capture(Calls calls)
    {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        APP_MUST(cudaStreamBeginCapture(compute_, cudaStreamCaptureModeThreadLocal));
        calls();
        APP_MUST(cudaStreamEndCapture(compute_, &graph));
        APP_MUST(cudaGraphInstantiate(&exec, graph, 0));
        APP_MUST(cudaGraphDestroy(graph));
        APP_MUST(cudaGraphUpload(exec, compute_));
        APP_MUST(cudaStreamSynchronize(compute_));
        return exec;
    }

    // --- piped --------------------------------------------------------------------------------

    // A place of the ring: its work, then the chunk. Batches are without the work.
    size_t slot_bytes() const
    {
        return place_.bytes[1] + (kind_.graphs ? app_work_bytes : 0);
    }
    unsigned char *slot_of(unsigned char *ring, uint32_t c) const
    {
        return ring + c % place_.slots * slot_bytes() + (kind_.graphs ? app_work_bytes : 0);
    }

    struct batch {
        uint32_t end; // chunk after its last one
        size_t event; // in arrived of the set
    };

    bool pipe(app_run<A> &host, const app_step &step)
    {
        uint32_t produced = 0, sent = 0, consumed = 0;
        std::deque<batch> running;
        while (consumed < step.down) {
            if (produced < step.down && produced - consumed < place_.slots) {
                const bool is_wrong = host.is_wrong(step, produced);
                while (is_wrong && sent < produced) {
                    send_batch(step, &sent, produced, &running, APP_BREAK_NONE);
                }
                const bool is_put = !is_wrong || host.fault.kind == APP_LOST_LAST;
                unsigned char *to = slot_of(sets_[0].host.get(), produced);
                host.produce(step, produced, is_put ? to : scratch_.get());
                if (is_wrong && host.fault.kind == APP_EARLY_READ && !kind_.copies) {
                    memset(to, app_poison, place_.bytes[1]);
                }
                produced++;
                if (is_wrong) {
                    send_batch(step, &sent, produced, &running, host.fault.kind);
                }
            }
            const bool is_all = produced == step.down || produced - consumed == place_.slots;
            while (sent < produced && (is_all || produced - sent >= group_)) {
                send_batch(step, &sent, produced, &running, APP_BREAK_NONE);
            }
            while (!running.empty() && sets_[0].arrived[running.front().event].is_done()) {
                for (; consumed < running.front().end; consumed++) {
                    host.consume(step, consumed,
                                 sets_[0].up.get() + consumed % place_.slots * place_.bytes[0]);
                }
                running.pop_front();
            }
            if (host.is_late()) {
                return false;
            }
        }
        return true;
    }

    // One batch from *sent on: up to `end`, to the end of the ring.
    void send_batch(const app_step &step, uint32_t *sent, uint32_t end, std::deque<batch> *running,
                    app_break kind)
    {
        const size_t lane = batches_++ % lanes_.size();
        const uint32_t first = *sent, slot = first % place_.slots;
        const uint32_t count = std::min({end - first, place_.slots - slot, group_ - slot % group_});
        const app_work work = {step, first, count,
                               true, true,  kind == APP_LOST_LAST ? first : app_no_chunk};
        if (kind == APP_BREAK_NONE && kind_.graphs && count == group_) {
            memcpy(slot_of(sets_[0].host.get(), first) - app_work_bytes, &work, sizeof work);
            APP_MUST(cudaGraphLaunch(slot_graphs_[slot / group_], lanes_[lane]));
        } else {
            if (kind == APP_EARLY_READ && kind_.copies) {
                APP_MUST(cudaMemsetAsync(slot_of(sets_[0].device.get(), first), app_poison,
                                         place_.bytes[1], lanes_[lane]));
            }
            is_put_ = kind == APP_BREAK_NONE || kind == APP_LOST_LAST;
            send_slot(slot, &work, lanes_[lane]);
        }
        const size_t event = (first + count - 1) % place_.slots;
        sets_[0].arrived[event].record(lanes_[lane]);
        running->push_back({first + count, event});
        *sent = first + count;
    }
    // Chunks from this place of the ring on through the device. NULL: a full batch, whose work is
    // in the ring.
    void send_slot(uint32_t slot, const app_work *work, cudaStream_t stream)
    {
        set &s = sets_[0];
        const uint32_t count = work == nullptr ? group_ : work->count;
        const size_t at = slot * slot_bytes(), up_at = slot * place_.bytes[0];
        if (kind_.copies && is_put_) {
            APP_MUST(cudaMemcpyAsync(s.device.get() + at, s.host.get() + at, count * slot_bytes(),
                                     cudaMemcpyHostToDevice, stream));
        }
        is_put_ = true;
        kernels_.piped(work == nullptr ? app_work{} : *work,
                       work == nullptr ? reinterpret_cast<const app_work *>(readable(s) + at)
                                       : nullptr,
                       slot_of(readable(s), 0), slot_bytes(), made_in(s), place_.bytes[0],
                       place_.slots, stream);
        if (kind_.copies) {
            APP_MUST(cudaMemcpyAsync(s.up.get() + up_at, s.up_device.get() + up_at,
                                     count * place_.bytes[0], cudaMemcpyDeviceToHost, stream));
        }
    }

    const app_place<A> &place_;
    const app_launch_kind kind_;
    const app_kernels<A> kernels_;
    size_t down_bytes_ = 0, up_bytes_ = 0;
    app_stream compute_, in_, out_;
    std::vector<app_stream> lanes_;
    uint32_t group_ = 1; // chunks in a batch
    size_t batches_ = 0;
    bool is_put_ = true; // the next send_slot() copies the chunks
    set sets_[2];
    app_pinned scratch_, ups_;
    app_event end_;
    std::unique_ptr<app_event[]> copied_;
    uint32_t begun_ = 0; // steps whose work without chunks is launched
    std::map<std::tuple<uint32_t, uint32_t, bool>, cudaGraphExec_t> graphs_;
    std::vector<cudaGraphExec_t> slot_graphs_;
};
#endif
