// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulate_apps.h"

#include "wic/apps/apps.cuh"
#include "wic/apps/host_strategy.cuh"

#include <cstdio>

template <class A>
static unsigned rounds_of(const emulate_apps *how, bool *met, uint32_t *steps, char why[200])
{
    app_host_strategy<A> strategy(A::sizes[0],
                                  {how->threads, how->pieces, how->parallel, how->backwards});
    const app_fault fault = {static_cast<app_break>(how->fault), how->receiver, how->round,
                             how->step};
    unsigned right = 0;
    *met = false;
    why[0] = 0;
    for (uint32_t round = 0; round < how->rounds; round++) {
        bool met_now;
        std::string what;
        const bool is_right = strategy.run(7, round, fault, &met_now, &what);
        *met = *met || met_now;
        right += is_right;
        if (!is_right && why[0] == 0) {
            snprintf(why, 200, "round %u: %s", round, what.c_str());
        }
    }
    *steps = strategy.steps;
    return right;
}

static const struct {
    const char *name;
    unsigned (*rounds)(const emulate_apps *how, bool *met, uint32_t *steps, char why[200]);
} apps[] = {
#define APP(app) {app::facts.name, rounds_of<app>},
#include "wic/apps/apps.def"
#undef APP
    {nullptr, nullptr}};

const char *emulate_app(unsigned app)
{
    return apps[app].name;
}

unsigned emulate_rounds(unsigned app, const emulate_apps *how, bool *met, uint32_t *steps,
                        char why[200])
{
    return apps[app].rounds(how, met, steps, why);
}
