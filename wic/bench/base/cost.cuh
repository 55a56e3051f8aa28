// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_COST_CUH
#define WIC_BENCH_COST_CUH
// What a span of time cost: CPU seconds of this process, and energy of the GPU where NVML tells it.
// NVML updates its counter some ten times a second: add up spans shorter than a second.

struct bench_cost {
    double seconds, cpu_seconds, joules; // joules < 0: unknown
};

// Whether NVML is there; *why says why not.
bool bench_has_energy(const char **why);

class bench_meter // from its construction on
{
  public:
    bench_meter();
    bench_cost stop() const;

  private:
    double start_, cpu_, joules_;
};
#endif
