// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "wic/stages/measure.cuh"

#include <algorithm>

namespace
{
constexpr uint32_t SIDE = 32; // side of the reference's blocks

__host__ __device__ inline uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

__global__ void fill_inputs(int8_t *small, half *as_half, size_t n, uint64_t seed)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
        const int value = static_cast<int>(mixed(seed + i) % 3) - 1;
        small[i] = static_cast<int8_t>(value);
        as_half[i] = __float2half_rn(static_cast<float>(value));
    }
}

// out = a * b in integers, b: its columns.
template <class A>
__global__ void product_of(const A *a, const int8_t *b, int32_t *out, uint32_t cols, uint32_t depth)
{
    __shared__ int32_t left[SIDE][SIDE + 1], right[SIDE][SIDE + 1];
    const uint32_t x = threadIdx.x, y = threadIdx.y;
    const size_t row = blockIdx.y * SIDE + y, col = blockIdx.x * SIDE;
    int32_t sum = 0;
    for (uint32_t k = 0; k < depth; k += SIDE) {
        left[y][x] = a[row * depth + k + x];
        right[y][x] = b[(col + y) * depth + k + x];
        __syncthreads();
        for (uint32_t i = 0; i < SIDE; i++) {
            sum += left[y][i] * right[x][i];
        }
        __syncthreads();
    }
    out[row * cols + col + x] = sum;
}

// The consumer's value of kinds that are no product, in integers.
__host__ __device__ inline int32_t wanted_of(stage_kind kind, const int32_t *mid, int64_t rows,
                                             int64_t mid_cols, int64_t row, int64_t col)
{
    const auto at = [&](int64_t r, int64_t c) {
        return r < 0 || c < 0 || r >= rows || c >= mid_cols ? 0 : mid[r * mid_cols + c];
    };
    if (kind == STAGE_POINTS) {
        return 2 * at(row, col) + 1;
    }
    if (kind == STAGE_THIRDS) {
        const int64_t third = mid_cols / 3;
        return at(row, col) * at(row, col + third) + at(row, col + 2 * third);
    }
    int32_t sum = 0;
    for (int64_t i = 0; i < 9; i++) {
        sum += at(row + i / 3 - 1, col + i % 3 - 1);
    }
    return sum;
}

__global__ void other_kinds(stage_kind kind, const int32_t *mid, int32_t *out, int64_t rows,
                            int64_t mid_cols, int64_t cols)
{
    const int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (at < rows * cols) {
        out[at] = wanted_of(kind, mid, rows, mid_cols, at / cols, at % cols);
    }
}

__global__ void count_wrong(const half *got, const int32_t *wanted, size_t n,
                            unsigned long long *wrong)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    unsigned long long bad = 0;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
        const float want = __half2float(__float2half_rn(static_cast<float>(wanted[i])));
        bad += !(__half2float(got[i]) == want);
    }
    if (bad > 0) {
        atomicAdd(wrong, bad);
    }
}

__global__ void hold(uint64_t ns)
{
    stage_sleep(ns);
}

template <class T> T *on_device(size_t n)
{
    void *memory = nullptr;
    CUDA_MUST(cudaMalloc(&memory, n * sizeof(T)));
    CUDA_MUST(cudaMemset(memory, 0xff, n * sizeof(T)));
    return static_cast<T *>(memory);
}

template <class T> std::vector<T> to_host(const T *from, size_t n)
{
    std::vector<T> all(n);
    CUDA_MUST(cudaMemcpy(all.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost));
    return all;
}

wic_tile_policy policy_of(const stage_shape &shape)
{
    switch (shape.kind) {
    case STAGE_POINTS:
        return wic_policy_tile();
    case STAGE_NEIGHBOURS:
        return wic_policy_neighbours();
    case STAGE_THIRDS:
        return wic_policy_strided(shape.cols, 3);
    default:
        return wic_policy_row();
    }
}
} // namespace

double median_of(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : values[values.size() / 2];
}

double spread_of(const std::vector<double> &values)
{
    const double middle = median_of(values);
    std::vector<double> off;
    for (const double value : values) {
        off.push_back(value > middle ? value - middle : middle - value);
    }
    return middle > 0 ? median_of(off) / middle : 0.0;
}

void hold_stream(cudaStream_t stream, uint64_t ns)
{
    hold<<<1, 1, 0, stream>>>(ns);
    CUDA_MUST(cudaGetLastError());
}

stage_data::stage_data(const stage_shape &shape)
    : view(), rows_(shape.rows * TILE_ROWS), mid_(shape.mid * TILE_COLS),
      cols_(shape.cols * TILE_COLS), depth_(shape.depth)
{
    const size_t of_c = shape.kind == STAGE_PRODUCT ? static_cast<size_t>(cols_) * mid_ : 1;
    const size_t of_mid = static_cast<size_t>(rows_) * mid_,
                 of_out = static_cast<size_t>(rows_) * cols_;
    a_ = on_device<int8_t>(static_cast<size_t>(rows_) * depth_);
    b_ = on_device<int8_t>(static_cast<size_t>(mid_) * depth_);
    c_ = on_device<int8_t>(of_c);
    half_a_ = on_device<half>(static_cast<size_t>(rows_) * depth_);
    half_b_ = on_device<half>(static_cast<size_t>(mid_) * depth_);
    half_c_ = on_device<half>(of_c);
    mid_wanted_ = on_device<int32_t>(of_mid);
    out_wanted_ = on_device<int32_t>(of_out);
    wrong_ = on_device<unsigned long long>(1);
    view.first = {half_a_, half_b_, on_device<half>(of_mid), depth_, mid_};
    view.out = on_device<half>(of_out);
    view.second = {view.first.out, half_c_, view.out, mid_, cols_};
    view.producers = {shape.rows, shape.mid};
    view.consumers = {shape.rows, shape.cols};
    view.policy = policy_of(shape);
    view.kind = shape.kind;
}

stage_data::~stage_data()
{
    const void *const all[] = {a_,          b_,          c_,     half_a_,        half_b_, half_c_,
                               mid_wanted_, out_wanted_, wrong_, view.first.out, view.out};
    for (const void *memory : all) {
        (void)cudaFree(const_cast<void *>(memory));
    }
}

bool stage_data::fill(uint64_t seed)
{
    const dim3 block(SIDE, SIDE);
    const bool product = view.kind == STAGE_PRODUCT;
    fill_inputs<<<512, 256>>>(a_, half_a_, static_cast<size_t>(rows_) * depth_, mixed(seed));
    fill_inputs<<<512, 256>>>(b_, half_b_, static_cast<size_t>(mid_) * depth_, mixed(seed + 1));
    product_of<<<dim3(mid_ / SIDE, rows_ / SIDE), block>>>(a_, b_, mid_wanted_, mid_, depth_);
    if (product) {
        fill_inputs<<<512, 256>>>(c_, half_c_, static_cast<size_t>(cols_) * mid_, mixed(seed + 2));
        product_of<<<dim3(cols_ / SIDE, rows_ / SIDE), block>>>(mid_wanted_, c_, out_wanted_, cols_,
                                                                mid_);
    } else {
        const int64_t n = static_cast<int64_t>(rows_) * cols_;
        other_kinds<<<static_cast<unsigned>((n + 255) / 256), 256>>>(
            view.kind, mid_wanted_, out_wanted_, rows_, mid_, cols_);
    }
    CUDA_MUST(cudaGetLastError());
    CUDA_MUST(cudaDeviceSynchronize());
    return check_rows(static_cast<uint32_t>(mixed(seed) % (rows_ - 2)));
}

// The host computes three rows of the producer's result and the consumer's row between them.
bool stage_data::check_rows(uint32_t row) const
{
    const std::vector<int8_t> a = to_host(a_ + static_cast<size_t>(row) * depth_, 3 * depth_),
                              b = to_host(b_, static_cast<size_t>(mid_) * depth_);
    const std::vector<int32_t> got =
        to_host(mid_wanted_ + static_cast<size_t>(row) * mid_, 3 * static_cast<size_t>(mid_));
    const std::vector<int32_t> got_out =
        to_host(out_wanted_ + (static_cast<size_t>(row) + 1) * cols_, cols_);
    std::vector<int32_t> mid(3 * static_cast<size_t>(mid_));
    for (size_t i = 0; i < mid.size(); i++) {
        const size_t at = i / mid_ * depth_, from = i % mid_ * depth_;
        for (uint32_t k = 0; k < depth_; k++) {
            mid[i] += a[at + k] * b[from + k];
        }
    }
    bool good = mid == got;
    const std::vector<int8_t> c =
        to_host(c_, view.kind == STAGE_PRODUCT ? static_cast<size_t>(cols_) * mid_ : 0);
    for (uint32_t col = 0; col < cols_; col++) {
        int32_t want = 0;
        if (view.kind == STAGE_PRODUCT) {
            for (uint32_t k = 0; k < mid_; k++) {
                want += mid[mid_ + k] * c[static_cast<size_t>(col) * mid_ + k];
            }
        } else {
            want = wanted_of(view.kind, mid.data(), 3, mid_, 1, col);
        }
        good = good && want == got_out[col];
    }
    return good;
}

void stage_data::poison()
{
    CUDA_MUST(cudaMemset(view.first.out, 0xff, static_cast<size_t>(rows_) * mid_ * sizeof(half)));
    CUDA_MUST(cudaMemset(view.out, 0xff, static_cast<size_t>(rows_) * cols_ * sizeof(half)));
    CUDA_MUST(cudaDeviceSynchronize());
}

uint64_t stage_data::wrong() const
{
    unsigned long long wrong = 0;
    CUDA_MUST(cudaMemset(wrong_, 0, sizeof *wrong_));
    count_wrong<<<512, 256>>>(view.first.out, mid_wanted_, static_cast<size_t>(rows_) * mid_,
                              wrong_);
    count_wrong<<<512, 256>>>(view.out, out_wanted_, static_cast<size_t>(rows_) * cols_, wrong_);
    CUDA_MUST(cudaGetLastError());
    CUDA_MUST(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost));
    return wrong;
}
