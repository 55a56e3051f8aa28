// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// CPU time by getrusage; energy by NVML, which is loaded at run time as it comes with the driver
// and not with the toolkit.
#include "wic/bench/base/cost.cuh"
#include "wic/bench/base/bench.cuh"

#include <dlfcn.h>
#include <sys/resource.h>

namespace
{
class nvml
{
  public:
    nvml()
    {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            why = "there is no libnvidia-ml.so.1";
            return;
        }
        const auto start = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
        const auto find = reinterpret_cast<int (*)(const char *, void **)>(
            dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
        energy_ = reinterpret_cast<int (*)(void *, unsigned long long *)>(
            dlsym(library, "nvmlDeviceGetTotalEnergyConsumption"));
        char bus[32];
        int device = 0;
        CUDA_MUST(cudaGetDevice(&device));
        CUDA_MUST(cudaDeviceGetPCIBusId(bus, sizeof bus, device));
        if (!start || !find || !energy_ || start() != 0 || find(bus, &device_) != 0) {
            why = "NVML does not know this GPU";
        } else if (joules() < 0) {
            why = "this GPU does not count its energy";
        } else {
            why = nullptr;
        }
    }

    double joules() const
    {
        unsigned long long mj = 0;
        return energy_ && device_ && energy_(device_, &mj) == 0 ? 1e-3 * static_cast<double>(mj)
                                                                : -1;
    }

    const char *why = nullptr; // it is of no use

  private:
    int (*energy_)(void *, unsigned long long *) = nullptr;
    void *device_ = nullptr;
};

const nvml &the_nvml()
{
    static const nvml one;
    return one;
}

double cpu_seconds()
{
    rusage use;
    getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval &t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}
} // namespace

bool bench_has_energy(const char **why)
{
    *why = the_nvml().why;
    return !the_nvml().why;
}

bench_meter::bench_meter()
{
    joules_ = the_nvml().why ? -1 : the_nvml().joules();
    cpu_ = cpu_seconds();
    start_ = bench_seconds();
}

bench_cost bench_meter::stop() const
{
    bench_cost cost;
    cost.seconds = bench_seconds() - start_;
    cost.cpu_seconds = cpu_seconds() - cpu_;
    cost.joules = joules_ < 0 ? -1 : the_nvml().joules() - joules_;
    return cost;
}
