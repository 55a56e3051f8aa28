// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_NEIGHBOURS_CUH
#define WIC_BENCH_NEIGHBOURS_CUH
// Compute kernels that share all multiprocessors with the waiting ones: one block of each on every
// multiprocessor. Their speed beside a strategy over their speed alone is what waiting costs.
#include "wic/bench/bench.cuh"

enum neighbour_kind { NEIGHBOUR_FMA, NEIGHBOUR_MEMORY, NEIGHBOUR_L1, NEIGHBOUR_KINDS };

class bystander
{
  public:
    virtual ~bystander() = default;
    virtual void start(neighbour_kind kind) = 0; // returns when all its blocks run
    // Ends it. Returns its work a second, in units of its own.
    virtual double stop() = 0;
};

// In this process. Made before a strategy: nothing is allocated while that runs.
class local_bystander : public bystander
{
  public:
    local_bystander();
    ~local_bystander() override;
    local_bystander(const local_bystander &) = delete;
    local_bystander &operator=(const local_bystander &) = delete;

    void start(neighbour_kind kind) override;
    double stop() override;

  private:
    int blocks_;
    cudaStream_t stream_;
    float4 *in_;
    uint64_t *words_;   // pinned: stop, all blocks run
    uint64_t *mirror_;  // of stop, and how many blocks run; in device memory
    uint64_t *results_; // pinned: pieces of work and nanoseconds of each block
};

// In a process of its own, which runs this program.
std::unique_ptr<bystander> make_other_process();
int serve_other_process(); // what that process does; its exit status

// From now on this process and those that it starts share the GPU through a daemon of their own.
// To be called before any use of CUDA. False: *why.
bool start_mps(std::string *why);
void stop_mps();

// What a kernel leaves of the GPU, in percent: of the registers and the shared memory of the
// multiprocessors it is on, and of the multiprocessors those it is not on.
struct bench_room {
    double registers, shared, processors;
};
bench_room room_beside(const void *kernel, const wic_transfer_plan &plan);
#endif
