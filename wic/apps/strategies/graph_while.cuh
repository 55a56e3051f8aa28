// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_GRAPH_WHILE_CUH
#define WIC_APP_GRAPH_WHILE_CUH
// graph-while: one graph for a whole round, a conditional node that loops. A kernel of one thread
// polls for the next step, another one for its chunks, in pinned memory; the kernels of the step
// follow in the same turn of the loop. Chunks are read and written in pinned memory. CUDA 12.4.
#include "wic/apps/strategies/step_kernels.cuh"

#if CUDART_VERSION >= 12040
constexpr uint32_t app_while_steps = 4; // the host is at most two ahead of the device

// In pinned memory; counts are of the round.
struct app_while_words {
    // Written by the host.
    alignas(64) app_step step[app_while_steps]; // in turn
    uint32_t lost[app_while_steps]; // 1: the last chunk of the step is not taken, by mistake
    alignas(64) uint32_t steps;     // published
    uint32_t chunks;                // published
    uint32_t is_end;                // there are no more steps
    // Written by the device.
    alignas(64) uint32_t ups; // chunks in the last step that had any
    uint32_t made;            // steps whose chunks have been made
    uint32_t done;            // steps, piped: chunks
};

// In device memory.
struct app_while_state {
    app_work head, body; // parts of the step before and after the wait for chunks, in this turn
    uint32_t number;     // index of the step
    uint32_t taken;      // chunks in the round
    uint32_t left;       // chunks of this step that have not been taken
    uint32_t is_within;  // the step has begun
    uint32_t made, done; // copies of the words
};

__device__ inline uint32_t app_acquire(const uint32_t *word)
{
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}
__device__ inline void app_release(uint32_t *word, uint32_t value)
{
    __threadfence_system();
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// Until is_there(). False: the round is stopped.
template <class Is> __device__ bool app_poll(const uint32_t *stop, uint64_t limit_ns, Is is_there)
{
    const uint64_t begin = app_now();
    for (uint32_t turn = 1; !is_there(); turn++) {
        if (turn % 64 == 0 && (app_acquire(stop) != 0 || app_now() - begin > limit_ns)) {
            return false;
        }
    }
    return true;
}

static __global__ void app_while_step_kernel(app_while_words *words, app_while_state *state,
                                             const uint32_t *stop, uint64_t limit_ns,
                                             cudaGraphConditionalHandle loop)
{
    state->head.begins = false;
    state->body = {};
    if (state->is_within) {
        return;
    }
    const bool is_on = app_poll(stop, limit_ns, [&] {
        return app_acquire(&words->steps) > state->number || app_acquire(&words->is_end) != 0;
    });
    if (!is_on || app_acquire(&words->steps) <= state->number) {
        cudaGraphSetConditional(loop, 0);
        return;
    }
    const app_step step = words->step[state->number % app_while_steps];
    state->head = {step, 0, 0, true, true, app_no_chunk};
    state->left = step.down;
    state->is_within = true;
}

// Takes all chunks that have been published, at most `most`.
static __global__ void app_while_take_kernel(app_while_words *words, app_while_state *state,
                                             uint32_t most, const uint32_t *stop, uint64_t limit_ns,
                                             cudaGraphConditionalHandle loop)
{
    if (!state->is_within) {
        return;
    }
    const app_step step = state->head.step;
    uint32_t count = 0;
    if (state->left > 0) {
        const bool is_on = app_poll(stop, limit_ns, [&] {
            count = app_acquire(&words->chunks) - state->taken;
            return count > 0;
        });
        if (!is_on) {
            cudaGraphSetConditional(loop, 0);
            return;
        }
    }
    count = min(min(count, most), state->left);
    const uint32_t first = step.down - state->left;
    state->taken += count;
    state->left -= count;
    const bool ends = state->left == 0;
    const bool is_lost = ends && count > 0 && words->lost[state->number % app_while_steps] != 0;
    state->body = {step, first, count, first == 0, ends, is_lost ? step.down - 1 : app_no_chunk};
    state->is_within = !ends;
    state->number += ends;
}

template <class A>
__global__ void app_while_made_kernel(typename A::view view, app_while_words *words,
                                      app_while_state *state)
{
    const app_work &work = A::facts.order == APP_EXCHANGES ? state->head : state->body;
    if (work.step.up > 0 && (A::facts.order == APP_EXCHANGES ? work.begins : work.ends)) {
        words->ups = A::ups(view, work.step);
        app_release(&words->made, ++state->made);
    }
}

static __global__ void app_while_done_kernel(app_while_words *words, app_while_state *state,
                                             bool is_piped)
{
    const uint32_t done = is_piped ? state->body.count : state->body.ends;
    if (done > 0) {
        state->done += done;
        app_release(&words->done, state->done);
    }
}

template <class A> class app_graph_while : public app_strategy<A>
{
  public:
    explicit app_graph_while(const app_place<A> &place) : place_(place), kernels_(place)
    {
        for (int to = 0; to < 2; to++) {
            const size_t most = is_piped ? place.slots : to == 1 ? place.most.down : place.most.up;
            bytes_[to] = most * place.bytes[to] * (is_piped ? 1 : 2);
            memory_[to] = app_take_pinned(bytes_[to]);
        }
        scratch_ = app_take_pinned(place.bytes[1]);
        words_memory_ = app_take_pinned(sizeof(app_while_words));
        words_ = reinterpret_cast<app_while_words *>(words_memory_.get());
        state_memory_ = app_take_device(sizeof(app_while_state));
        state_ = reinterpret_cast<app_while_state *>(state_memory_.get());
        build();
    }

    ~app_graph_while() override
    {
        cudaDeviceSynchronize();
        cudaGraphExecDestroy(graph_);
    }

    void ready() override
    {
        for (int to = 0; to < 2; to++) {
            memset(memory_[to].get(), app_poison, bytes_[to]);
        }
        memset(words_, 0, sizeof *words_);
        APP_MUST(cudaMemset(state_, 0, sizeof *state_));
        APP_MUST(cudaDeviceSynchronize());
        APP_MUST(cudaGraphLaunch(graph_, stream_));
    }

    bool run(app_run<A> &host) override
    {
        app_step step;
        uint32_t steps = 0, chunks = 0, made = 0;
        for (; host.next(&step); steps++) {
            const auto is_free = [&] { return get(words_->done) + 2 > steps; };
            if (!is_piped && !wait(host, is_free)) {
                return false;
            }
            publish(step);
            app_step then = {};
            then.index = steps + 1;
            then.round = step.round;
            if (!A::facts.told && !is_piped && A::next(place_.view, &then)) {
                publish(then);
            }
            if (is_piped) {
                if (!pipe(host, step)) {
                    return false;
                }
                continue;
            }
            const size_t stride = app_stride_for<A>(1, step);
            unsigned char *to = memory_[1].get() + steps % 2 * (bytes_[1] / 2);
            for (uint32_t c = 0; c < step.down; c++) {
                produce(host, step, c, to + c * stride, &chunks);
            }
            host.independent(step);
            if (step.up > 0) {
                made++;
                if (!wait(host, [&] { return get(words_->made) >= made; })) {
                    return false;
                }
                const uint32_t count = A::facts.told ? words_->ups : step.up;
                for (uint32_t c = 0; c < count; c++) {
                    host.consume(step, c,
                                 memory_[0].get() + steps % 2 * (bytes_[0] / 2) +
                                     c * app_stride_for<A>(0, step));
                }
            }
            host.settle(step);
        }
        put(words_->is_end, 1);
        return is_piped || wait(host, [&] { return get(words_->done) == steps; });
    }

    void rest() override
    {
        APP_MUST(cudaDeviceSynchronize());
    }

  private:
    static constexpr bool is_piped = A::facts.order == APP_PIPED;

    static void put(uint32_t &word, uint32_t value)
    {
        __atomic_store_n(&word, value, __ATOMIC_RELEASE);
    }
    static uint32_t get(const uint32_t &word)
    {
        return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
    }
    template <class Is> static bool wait(app_run<A> &host, Is is_there)
    {
        while (!is_there()) {
            if (host.is_late()) {
                return false;
            }
        }
        return true;
    }

    // Where the data does not decide the steps, also the one after that of the host.
    void publish(const app_step &step)
    {
        if (step.index == words_->steps) {
            words_->step[step.index % app_while_steps] = step;
            words_->lost[step.index % app_while_steps] = 0;
            put(words_->steps, step.index + 1);
        }
    }
    // Makes and publishes a chunk, or makes the mistake.
    void produce(app_run<A> &host, const app_step &step, uint32_t c, unsigned char *to,
                 uint32_t *published)
    {
        const bool is_wrong = host.is_wrong(step, c);
        if (is_wrong && host.fault.kind == APP_EARLY_READ) {
            memset(to, app_poison, app_stride_for<A>(1, step));
        }
        if (is_wrong && host.fault.kind == APP_LOST_LAST) {
            words_->lost[step.index % app_while_steps] = 1;
        }
        const bool is_put = !is_wrong || host.fault.kind == APP_LOST_LAST;
        host.produce(step, c, is_put ? to : scratch_.get());
        put(words_->chunks, ++*published);
    }

    bool pipe(app_run<A> &host, const app_step &step)
    {
        uint32_t produced = 0, consumed = 0;
        while (consumed < step.down) {
            if (produced < step.down && produced - consumed < place_.slots) {
                produce(host, step, produced,
                        memory_[1].get() + produced % place_.slots * place_.bytes[1], &produced);
            }
            for (const uint32_t done = get(words_->done); consumed < done; consumed++) {
                host.consume(step, consumed,
                             memory_[0].get() + consumed % place_.slots * place_.bytes[0]);
            }
            if (host.is_late()) {
                return false;
            }
        }
        return true;
    }

    void build()
    {
        cudaGraph_t graph;
        cudaGraphConditionalHandle loop;
        cudaGraphNode_t node;
        APP_MUST(cudaGraphCreate(&graph, 0));
        APP_MUST(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
        cudaGraphNodeParams params = {};
        params.type = cudaGraphNodeTypeConditional;
        params.conditional.handle = loop;
        params.conditional.type = cudaGraphCondTypeWhile;
        params.conditional.size = 1;
#if CUDART_VERSION >= 13000
        APP_MUST(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
#else
        APP_MUST(cudaGraphAddNode(&node, graph, nullptr, 0, &params));
#endif
        cudaGraph_t body = params.conditional.phGraph_out[0];
        APP_MUST(cudaStreamBeginCaptureToGraph(stream_, body, nullptr, nullptr, 0,
                                               cudaStreamCaptureModeThreadLocal));
        app_while_step_kernel<<<1, 1, 0, stream_>>>(words_, state_, place_.stop, place_.limit_ns,
                                                    loop);
        is_piped ? build_piped(loop) : build_step(loop);
        app_while_done_kernel<<<1, 1, 0, stream_>>>(words_, state_, is_piped);
        APP_MUST(cudaGetLastError());
        APP_MUST(cudaStreamEndCapture(stream_, &body));
        APP_MUST(cudaGraphInstantiate(&graph_, graph, 0));
        APP_MUST(cudaGraphDestroy(graph));
        APP_MUST(cudaGraphUpload(graph_, stream_));
        APP_MUST(cudaStreamSynchronize(stream_));
    }
    void take(uint32_t most, cudaGraphConditionalHandle loop, cudaStream_t stream)
    {
        app_while_take_kernel<<<1, 1, 0, stream>>>(words_, state_, most, place_.stop,
                                                   place_.limit_ns, loop);
        APP_MUST(cudaGetLastError());
    }
    void made()
    {
        app_while_made_kernel<A><<<1, 1, 0, stream_>>>(place_.view, words_, state_);
        APP_MUST(cudaGetLastError());
    }
    void build_piped(cudaGraphConditionalHandle loop)
    {
        if constexpr (is_piped) {
            take(place_.slots, loop, stream_);
            kernels_.piped({}, &state_->body, memory_[1].get(), place_.bytes[1], memory_[0].get(),
                           place_.bytes[0], place_.slots, stream_);
        }
    }
    // Chunks are taken while the work without chunks is under way.
    void build_step(cudaGraphConditionalHandle loop)
    {
        if constexpr (!is_piped) {
            fork_.record(stream_);
            fork_.hold(beside_);
            take(UINT32_MAX, loop, beside_);
            kernels_.dependent({}, &state_->body, memory_[1].get(), bytes_[1] / 2, beside_);
            join_.record(beside_);
            if (A::facts.order == APP_EXCHANGES) {
                kernels_.make({}, &state_->head, memory_[0].get(), bytes_[0] / 2, nullptr, stream_);
                made();
            }
            kernels_.independent({}, &state_->head, stream_);
            join_.hold(stream_);
            for (uint32_t phase = 0; phase < place_.settles_most; phase++) {
                kernels_.settle({}, &state_->body, phase, stream_);
            }
            if (A::facts.order == APP_ANSWERS) {
                kernels_.make({}, &state_->body, memory_[0].get(), bytes_[0] / 2, nullptr, stream_);
                made();
            }
        }
    }

    const app_place<A> &place_;
    const app_kernels<A> kernels_;
    app_stream stream_, beside_;
    app_event fork_, join_;
    size_t bytes_[2];
    app_pinned memory_[2], scratch_, words_memory_; // memory_: of chunks, by receiver
    app_while_words *words_;
    app_on_device state_memory_;
    app_while_state *state_;
    cudaGraphExec_t graph_;
};
#endif

template <class A>
std::unique_ptr<app_strategy<A>> app_by_graph_while(const app_place<A> &place, std::string *why)
{
#if CUDART_VERSION >= 12040
    int driver = 0;
    APP_MUST(cudaDriverGetVersion(&driver));
    if (driver >= 12040) {
        return std::make_unique<app_graph_while<A>>(place);
    }
#endif
    *why = "needs CUDA 12.4 and its driver";
    return nullptr;
}
#endif
