// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_STAGES_MEASURE_CUH
#define WIC_STAGES_MEASURE_CUH
// Measuring part of wic-depend: options, data of two stages and their check, medians.
#include "wic/stages/stages.cuh"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CUDA_MUST(call) stage_must((call), #call, __FILE__, __LINE__)

inline void stage_must(cudaError_t error, const char *what, const char *file, int line)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "wic-depend: %s: %s (%s:%d)\n", what, cudaGetErrorString(error), file,
                line);
        exit(1);
    }
}

struct depend_options {
    uint32_t rounds = 9, runs = 3; // runs of each strategy in a round
    uint64_t seed = 1;
    stage_mistake mistake = STAGE_RIGHT;
    wic_tile_order order = WIC_ORDER_ROWS;
    bool check = false, all_orders = false;
    std::string part = "all"; // products, policies, halo
    FILE *json = nullptr;
};

// Tiles of both stages, and the depth of the first product in elements.
struct stage_shape {
    const char *name;
    stage_kind kind;
    uint32_t rows, mid, cols, depth;
};

double median_of(std::vector<double> values);
// Median absolute deviation over the median: noise of a time.
double spread_of(const std::vector<double> &values);

// Inputs of two stages, -1, 0 or 1, and the results that they must have. These are computed in
// integers by other kernels, of which the host computes some rows. All sums are exact in float, so
// a result has one right value.
class stage_data
{
  public:
    explicit stage_data(const stage_shape &shape);
    ~stage_data();
    stage_data(const stage_data &) = delete;
    stage_data &operator=(const stage_data &) = delete;

    // New inputs and the results that follow from them. Returns false if the host's rows differ.
    bool fill(uint64_t seed);
    void poison(); // both results, with NaN
    // Elements that are wrong, of both results.
    uint64_t wrong() const;

    stages view;

  private:
    bool check_rows(uint32_t row) const;
    uint32_t rows_, mid_, cols_, depth_; // elements
    int8_t *a_, *b_, *c_;                // inputs: first, its weights, the second's weights
    int32_t *mid_wanted_, *out_wanted_;
    half *half_a_, *half_b_, *half_c_;
    unsigned long long *wrong_;
};

// One thread that keeps a stream for that time, so that work can gather after it.
void hold_stream(cudaStream_t stream, uint64_t ns);

// Returns true if all results were right, or with a mistake, if it was found.
bool measure_stages(const depend_options &options);
// Transfer plans of tiles with a halo: every plan, and the one that the search chooses.
bool measure_halo(const depend_options &options);
#endif
