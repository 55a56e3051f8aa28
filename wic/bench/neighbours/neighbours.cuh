// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_NEIGHBOURS_CUH
#define WIC_BENCH_NEIGHBOURS_CUH
// Compute kernels that share the device with the waiting ones. Their speed beside a strategy over
// their speed alone is what waiting costs.
#include "wic/bench/base/bench.cuh"

enum neighbour_kind { NEIGHBOUR_FMA, NEIGHBOUR_MEMORY, NEIGHBOUR_L1, NEIGHBOUR_KINDS };

class bystander
{
  public:
    virtual ~bystander() = default;
    virtual void start(neighbour_kind kind) = 0; // some work that takes 20 ms alone
    virtual bool over() = 0;                     // whether it is done
    // Waits for its end, or ends it before. Returns its work a second, in units of its own.
    virtual double stop() = 0;
};

// For how long a neighbour is measured that gets hardly anything done.
constexpr double bystander_limit_s = 2;

// In this process. Made before a strategy: nothing is allocated while that runs.
class local_bystander : public bystander
{
  public:
    local_bystander();
    ~local_bystander() override;
    local_bystander(const local_bystander &) = delete;
    local_bystander &operator=(const local_bystander &) = delete;

    void start(neighbour_kind kind) override;
    bool over() override;
    double stop() override;

  private:
    unsigned blocks_[NEIGHBOUR_KINDS]; // of the grid
    cudaStream_t stream_, stopping_;
    cudaEvent_t began_, ended_;
    float4 *in_;
    uint64_t *device_words_; // blocks that are done; not 0: those to come do nothing
    uint64_t *words_;        // the same, pinned
};

// The speed of a neighbour while the strategy has no chunks; NULL: alone. To be called once in
// vain after a pause: the GPU's clock is lower then.
double speed_beside_idle(bystander &other, neighbour_kind kind, strategy *way);

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
