// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Two kernels in a stream: the consumer begins when all of the producer is done. A last wave of the
// producer that does not fill the GPU leaves the rest of it idle.
#include "wic/stages/kernels.cuh"

namespace
{
class in_stream : public stage_strategy
{
  public:
    const char *name() const override
    {
        return "streams";
    }
    bool prepare(const stages &) override
    {
        allow_shared(plain_producers<>);
        allow_shared(plain_consumers<>);
        return true;
    }
    void queue(const stages &s, cudaStream_t main, cudaStream_t side) override
    {
        const cudaStream_t second = s.mistake == STAGE_EARLY ? side : main;
        plain_producers<><<<tiles_of(s.producers), TILE_THREADS, TILE_SHARED, main>>>(s);
        plain_consumers<><<<tiles_of(s.consumers), TILE_THREADS, TILE_SHARED, second>>>(s);
        CUDA_MUST(cudaGetLastError());
    }
};
} // namespace

std::unique_ptr<stage_strategy> make_streams()
{
    return std::make_unique<in_stream>();
}
