// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_LAUNCHES_CUH
#define WIC_APP_PAIR_LAUNCHES_CUH
// A pair without resident kernels: each party has a stream, and a kernel for each part of a step,
// of the same shape as a resident one. All chunks of a step are made by one kernel and taken by one
// kernel; events join the streams.
//
//   stream      the host launches; if the data decides the steps, it reads them after each one
//   graph       the whole round is one graph that was captured before; not if the data decides
//   peer-copy   as stream, but chunks are made in the sender's memory and copied to the receiver's
//               by cudaMemcpyPeerAsync in a stream of their own
//   nccl        the same by ncclSend and ncclRecv, in a stream of either GPU
#include "wic/apps/pair/nccl.cuh"
#include "wic/apps/pair/pair_kernel.cuh"

// --- device -----------------------------------------------------------------------------------

// Chunks first .. first + count - 1 of the party's receiver.
template <class A, int party>
__global__ void __launch_bounds__(pair_threads_all, 1)
    pair_make(const __grid_constant__ typename A::view v, const __grid_constant__ pair_lane lane,
              const __grid_constant__ app_step step, uint32_t first, uint32_t count,
              app_break mistake)
{
    constexpr uint32_t unit = party == 0 ? A::facts.down_unit : A::facts.up_unit;
    const uint32_t units = party == 0 ? step.down_units : step.up_units;
    const resident_cut cut(count, units, unit, gridDim.x);
    for (uint32_t at = blockIdx.x; at < count * cut.pieces; at += gridDim.x) {
        const app_piece piece = cut.piece(at, units);
        unsigned char *to = lane.at(lane.data, first + piece.chunk, size_t(piece.first) * unit);
        if (mistake == APP_BREAK_NONE || piece.chunk + 1 < count) {
            A::template make<party>(v, step, piece, to, {threadIdx.x, blockDim.x});
        } else if (mistake == APP_EARLY_READ) {
            for (uint32_t i = threadIdx.x; i < piece.units * unit; i += blockDim.x) {
                to[i] = app_poison;
            }
        }
    }
}
template <class A, int party>
__global__ void __launch_bounds__(pair_threads_all, 1)
    pair_independent(const __grid_constant__ typename A::view v,
                     const __grid_constant__ app_step step)
{
    A::template independent<party>(
        v, step, resident_spread(blockIdx.x, gridDim.x, {threadIdx.x, blockDim.x}));
}
// `count` of the step's `all` chunks are taken; the last one may be lost.
template <class A, int party>
__global__ void __launch_bounds__(pair_threads_all, 1)
    pair_dependent(const __grid_constant__ typename A::view v,
                   const __grid_constant__ pair_lane lane, const __grid_constant__ app_step step,
                   uint32_t first, uint32_t count)
{
    constexpr uint32_t unit = party == 1 ? A::facts.down_unit : A::facts.up_unit;
    const uint32_t units = party == 1 ? step.down_units : step.up_units;
    const resident_cut cut(count, units, unit, gridDim.x);
    for (uint32_t at = blockIdx.x; at < count * cut.pieces; at += gridDim.x) {
        const app_piece piece = cut.piece(at, units);
        A::template dependent<party>(
            v, step, piece, lane.at(lane.data, first + piece.chunk, size_t(piece.first) * unit),
            {threadIdx.x, blockDim.x});
    }
}
template <class A, int party>
__global__ void __launch_bounds__(pair_threads_all, 1)
    pair_settle(const __grid_constant__ typename A::view v, const __grid_constant__ app_step step,
                uint32_t phase)
{
    A::template settle<party>(v, step, phase,
                              resident_spread(blockIdx.x, gridDim.x, {threadIdx.x, blockDim.x}));
}

struct pair_told {
    app_step step;
    uint32_t is_step, ups;
};
template <class A>
__global__ void pair_decide(const __grid_constant__ typename A::view v0, uint32_t index,
                            pair_told *told)
{
    app_step step = {};
    step.index = index;
    told->is_step = A::next(v0, &step);
    told->step = step;
}
template <class A>
__global__ void pair_count(const __grid_constant__ typename A::view v1,
                           const __grid_constant__ app_step step, pair_told *told)
{
    told->ups = A::ups(v1, step);
}

// --- host -------------------------------------------------------------------------------------

enum pair_launched { PAIR_STREAM, PAIR_GRAPH, PAIR_PEER_COPY, PAIR_NCCL };

template <class A> class pair_launches : public pair_strategy<A>
{
  public:
    // nccl: of PAIR_NCCL
    pair_launches(const pair_place<A> &place, pair_launched how, const pair_nccl *nccl = nullptr)
        : place_(place), is_graph_(how == PAIR_GRAPH), copies_(how >= PAIR_PEER_COPY), nccl_(nccl),
          shared_bytes_(place.shared_bytes / 2 + 1024),
          room_(place, {false, how >= PAIR_PEER_COPY, false, false, {0}})
    {
        told_.pinned(sizeof(pair_told));
        for (int party = 0; party < 2; party++) {
            const pair_on on(place.device[party]);
            const int to = 1 - party;
            for (cudaStream_t *stream : {&stream_[party], &copy_[to], &receive_[party]}) {
                APP_MUST(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
            }
            const int made = nccl_ != nullptr ? party : to; // event of the stream that ends last
            for (cudaEvent_t *event : {&made_[made][0], &made_[made][1], &taken_[party][0],
                                       &taken_[party][1], &there_[to], &join_[party]}) {
                APP_MUST(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
            }
        }
        allow<0>();
        allow<1>();
    }
    ~pair_launches() override
    {
        drop_graph();
        for (int i = 0; i < 2; i++) {
            for (cudaEvent_t event :
                 {made_[i][0], made_[i][1], taken_[i][0], taken_[i][1], there_[i], join_[i]}) {
                cudaEventDestroy(event);
            }
            cudaStreamDestroy(stream_[i]);
            cudaStreamDestroy(copy_[i]);
            cudaStreamDestroy(receive_[i]);
        }
    }

    void ready(const app_fault &fault) override
    {
        room_.clear(fault);
        if (is_graph_ && (graph_ == nullptr || fault.kind != captured_.kind ||
                          fault.receiver != captured_.receiver || fault.step != captured_.step)) {
            capture(fault);
        }
        if (is_graph_) {
            APP_MUST(cudaGraphUpload(graph_, stream_[0]));
            APP_MUST(cudaStreamSynchronize(stream_[0]));
        }
    }
    bool run() override
    {
        begin_ = app_host_now();
        if (is_graph_) {
            APP_MUST(cudaGraphLaunch(graph_, stream_[0]));
        } else if (!steps()) {
            return false;
        }
        return until_idle(stream_[0]) && until_idle(stream_[1]);
    }
    void rest() override
    {
        for (cudaStream_t stream :
             {stream_[0], stream_[1], copy_[0], copy_[1], receive_[0], receive_[1]}) {
            APP_MUST(cudaStreamSynchronize(stream));
        }
    }

  private:
    template <int party> void allow()
    {
        const pair_on on(place_.device[party]);
        for (const void *kernel : {reinterpret_cast<const void *>(pair_make<A, party>),
                                   reinterpret_cast<const void *>(pair_independent<A, party>),
                                   reinterpret_cast<const void *>(pair_dependent<A, party>),
                                   reinterpret_cast<const void *>(pair_settle<A, party>)}) {
            APP_MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(shared_bytes_)));
        }
    }
    bool until_idle(cudaStream_t stream)
    {
        cudaError_t error;
        while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady) {
            if (app_host_now() - begin_ > place_.limit_ns) {
                return false;
            }
        }
        APP_MUST(error);
        return true;
    }

    void drop_graph()
    {
        if (graph_ != nullptr) {
            cudaGraphExecDestroy(graph_);
        }
        graph_ = nullptr;
    }
    void capture(const app_fault &fault)
    {
        cudaGraph_t made = nullptr;
        drop_graph();
        APP_MUST(cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeThreadLocal));
        APP_MUST(cudaEventRecord(join_[0], stream_[0]));
        APP_MUST(cudaStreamWaitEvent(stream_[1], join_[0]));
        (void)steps();
        APP_MUST(cudaEventRecord(join_[1], stream_[1]));
        APP_MUST(cudaStreamWaitEvent(stream_[0], join_[1]));
        APP_MUST(cudaStreamEndCapture(stream_[0], &made));
        APP_MUST(cudaGraphInstantiate(&graph_, made, 0));
        APP_MUST(cudaGraphDestroy(made));
        captured_ = fault;
    }

    // False: too late.
    bool steps()
    {
        for (int to = 0; to < 2; to++) {
            sent_[to] = got_[to] = makes_[to] = takes_[to] = 0;
        }
        for (app_step step = {};; step.index++) {
            uint32_t ups = 0;
            const int is_step = next(&step, &ups);
            if (is_step <= 0) {
                return is_step == 0;
            }
            constexpr bool answers = A::facts.order == APP_ANSWERS;
            const uint32_t chunks[2] = {ups, step.down};
            make<0>(step, chunks[1]);
            if (!answers) {
                make<1>(step, chunks[0]);
                independent<0>(step);
            }
            independent<1>(step);
            dependent<1>(step, chunks[1]);
            settle<1>(step);
            if (answers) {
                make<1>(step, chunks[0]);
                independent<0>(step);
            }
            dependent<0>(step, chunks[0]);
            settle<0>(step);
        }
    }
    // 1: a step, 0: the round has ended; < 0: too late.
    int next(app_step *step, uint32_t *ups)
    {
        const typename A::view &v0 = place_.view[0];
        if constexpr (!A::facts.told) {
            const bool is_step = A::next(v0, step);
            *ups = step->up;
            return is_step;
        } else {
            pair_told *told = reinterpret_cast<pair_told *>(told_.at());
            on_device(0, [&] { pair_decide<A><<<1, 1, 0, stream_[0]>>>(v0, step->index, told); });
            if (!until_idle(stream_[0])) {
                return -1;
            }
            *step = told->step;
            if (told->is_step == 0) {
                return 0;
            }
            on_device(1,
                      [&] { pair_count<A><<<1, 1, 0, stream_[1]>>>(place_.view[1], *step, told); });
            if (!until_idle(stream_[1])) {
                return -1;
            }
            *ups = told->ups;
            return 1;
        }
    }

    template <class Launch> void on_device(int party, Launch launch)
    {
        const pair_on on(place_.device[party]);
        launch();
        APP_MUST(cudaGetLastError());
    }
    // The chunks keep their places until those of two steps later.
    template <int party> void make(const app_step &step, uint32_t chunks)
    {
        constexpr int to = 1 - party;
        if (chunks == 0) {
            return;
        }
        const app_fault &fault = room_.view().fault;
        const bool is_wrong =
            fault.kind != APP_BREAK_NONE && fault.receiver == to && fault.step == step.index;
        const uint32_t turn = makes_[to] % 2;
        if (makes_[to] >= 2) {
            APP_MUST(cudaStreamWaitEvent(stream_[party], taken_[to][turn]));
        }
        pair_lane lane = room_.view().to[to];
        lane.data = copies_ ? lane.copy : lane.data;
        on_device(party, [&] {
            pair_make<A, party><<<place_.blocks, pair_threads_all, shared_bytes_, stream_[party]>>>(
                place_.view[party], lane, step, sent_[to], chunks,
                is_wrong ? fault.kind : APP_BREAK_NONE);
        });
        if (copies_) {
            copy(to, chunks);
        }
        APP_MUST(cudaEventRecord(made_[to][turn], nccl_ != nullptr ? receive_[to]
                                                  : copies_        ? copy_[to]
                                                                   : stream_[party]));
        sent_[to] += chunks;
        makes_[to]++;
    }
    // Copies the chunks that a kernel makes, while its stream continues.
    void copy(int to, uint32_t chunks)
    {
        const pair_lane &lane = room_.view().to[to];
        APP_MUST(cudaEventRecord(there_[to], stream_[1 - to]));
        APP_MUST(cudaStreamWaitEvent(copy_[to], there_[to]));
        if (nccl_ != nullptr) { // the places are free before the chunks for them are made
            APP_MUST(cudaStreamWaitEvent(receive_[to], there_[to]));
        }
        for (uint32_t done = 0; done < chunks;) { // until the end of the ring
            const uint32_t at = (sent_[to] + done) & lane.mask;
            const uint32_t count = std::min(chunks - done, lane.mask + 1 - at);
            unsigned char *there = lane.data + at * lane.bytes;
            const unsigned char *here = lane.copy + at * lane.bytes;
            const size_t bytes = count * lane.bytes;
            if (nccl_ == nullptr) {
                APP_MUST(cudaMemcpyPeerAsync(there, place_.device[to], here, place_.device[1 - to],
                                             bytes, copy_[to]));
            } else if (!nccl_->copy(to, there, receive_[to], here, copy_[to], bytes)) {
                fprintf(stderr, "wic-pairs: NCCL cannot copy a chunk\n");
                exit(1);
            }
            done += count;
        }
    }
    template <int party> void independent(const app_step &step)
    {
        constexpr bool has = &A::template independent<party> !=
                             &app_base<typename A::view>::template independent<party>;
        if constexpr (has) {
            on_device(party, [&] {
                pair_independent<A, party>
                    <<<place_.blocks, pair_threads_all, shared_bytes_, stream_[party]>>>(
                        place_.view[party], step);
            });
        }
    }
    template <int party> void dependent(const app_step &step, uint32_t chunks)
    {
        if (chunks == 0) {
            return;
        }
        const app_fault &fault = room_.view().fault;
        const bool is_lost =
            fault.kind == APP_LOST_LAST && fault.receiver == party && fault.step == step.index;
        const uint32_t turn = takes_[party] % 2;
        APP_MUST(cudaStreamWaitEvent(stream_[party], made_[party][turn]));
        on_device(party, [&] {
            pair_dependent<A, party>
                <<<place_.blocks, pair_threads_all, shared_bytes_, stream_[party]>>>(
                    place_.view[party], room_.view().to[party], step, got_[party],
                    chunks - is_lost);
        });
        APP_MUST(cudaEventRecord(taken_[party][turn], stream_[party]));
        got_[party] += chunks;
        takes_[party]++;
    }
    template <int party> void settle(const app_step &step)
    {
        for (uint32_t phase = 0; phase < A::settles(step); phase++) {
            on_device(party, [&] {
                pair_settle<A, party>
                    <<<place_.blocks, pair_threads_all, shared_bytes_, stream_[party]>>>(
                        place_.view[party], step, phase);
            });
        }
    }

    const pair_place<A> &place_;
    const bool is_graph_, copies_;
    const pair_nccl *const nccl_; // NULL: copies are made by the CUDA run-time
    const uint32_t shared_bytes_; // size of a block's: more than half of a multiprocessor's
    pair_room<A> room_;
    resident_allocation told_;
    cudaStream_t stream_[2], copy_[2];     // stream of each party; of each receiver
    cudaStream_t receive_[2];              // the same, on the receiver's GPU
    cudaEvent_t made_[2][2], taken_[2][2]; // events of each receiver, in turn
    cudaEvent_t there_[2], join_[2];       // event of each receiver; of each party
    cudaGraphExec_t graph_ = nullptr;
    app_fault captured_ = {};
    uint32_t sent_[2], got_[2], makes_[2], takes_[2];
    uint64_t begin_ = 0;
};

template <class A>
std::unique_ptr<pair_strategy<A>> pair_by_stream(const pair_place<A> &place, std::string *)
{
    return std::make_unique<pair_launches<A>>(place, PAIR_STREAM);
}
template <class A>
std::unique_ptr<pair_strategy<A>> pair_by_peer_copy(const pair_place<A> &place, std::string *)
{
    return std::make_unique<pair_launches<A>>(place, PAIR_PEER_COPY);
}
template <class A>
std::unique_ptr<pair_strategy<A>> pair_by_nccl(const pair_place<A> &place, std::string *why)
{
    if (!place.is_between()) {
        *why = "not run: 1 GPU"; // NCCL refuses one GPU twice
        return nullptr;
    }
    const pair_nccl *nccl = pair_nccl::open(place.device, why);
    return nccl != nullptr ? std::make_unique<pair_launches<A>>(place, PAIR_NCCL, nccl) : nullptr;
}
template <class A>
std::unique_ptr<pair_strategy<A>> pair_by_graph(const pair_place<A> &place, std::string *why)
{
    if (A::facts.told) {
        *why = "the data decides the steps";
        return nullptr;
    }
    return std::make_unique<pair_launches<A>>(place, PAIR_GRAPH);
}
#endif
