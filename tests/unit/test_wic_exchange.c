/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * Exchanges among threads, one a party. The data of a party depends on everything that it got, so
 * that an order other than the schedule's gives other data: each chunk is checked against what the
 * same exchange gives without threads. Random schedules with several parties, dependencies, dynamic
 * steps and all access patterns are the stress test. */
#include "plugin_pattern.h"
#include "run_suite.h"
#include "wic/pattern/exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 8

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 29);
}

/* --- one exchange as the chunks of its parties ---------------------------------------------- */

struct run;

struct party {
    struct run *run;
    uint32_t number;
    uint64_t knows; /* hash of all that it sent and got, in order */
    uint64_t sent, got, told;
    struct wic_party calls;
    int rc;
    char text[WIC_TEXT_BYTES];
};

struct run {
    struct party party[WIC_PARTIES_MAX];
    uint32_t parties;
    uint64_t most;    /* chunks that a party sends on an open way, all together */
    uint64_t fail_at; /* party 1 fails at this chunk that it gets; 0: never */
};

/* The sender's value of a chunk; false: it has no more. */
static bool make(struct party *p, const struct wic_step *step, uint64_t chunk, uint64_t *out)
{
    if ((step->flags & WIC_STEP_TOLD) && p->run->most > 0 && p->sent == p->run->most) {
        return false;
    }
    p->sent++;
    *out = p->knows = mix(p->knows, chunk * 64 + step->to);
    return true;
}

static void take(struct party *p, const struct wic_step *step, uint64_t chunk, uint64_t value)
{
    p->got++;
    p->knows = mix(p->knows, mix(value, chunk * 64 + step->from));
}

static int send(void *context, const struct wic_step *step, uint64_t chunk, void *data)
{
    uint64_t value;
    if (!make(context, step, chunk, &value)) {
        return 1;
    }
    for (uint64_t i = 0; i < WORDS - 1; i++) {
        ((uint64_t *)data)[i] = value ^ i;
    }
    ((uint64_t *)data)[WORDS - 1] = chunk;
    return 0;
}

/* Returns true if the chunk is whole in its slot. */
static bool is_whole(const uint64_t *words, uint64_t chunk)
{
    for (uint64_t i = 0; i < WORDS - 1; i++) {
        if (words[i] != (words[0] ^ i)) {
            return false;
        }
    }
    return words[WORDS - 1] == chunk;
}

static int receive(void *context, const struct wic_step *step, uint64_t chunk,
                   const struct wic_neighbours *with)
{
    struct party *p = context;
    uint64_t place = step->access == WIC_ADJACENT ? chunk - step->first : 0; /* else: alone */
    uint64_t low, high;
    wic_step_window(step, step->count, place, &low, &high);
    uint64_t after = with->count - 1 - with->middle;
    bool open = p->run->most > 0; /* the step may end before its count */
    if (with->middle != place - low || (open ? after > high - place : after != high - place)) {
        return -EPROTO;
    }
    for (uint32_t k = 0; k < with->count; k++) {
        if (!is_whole(with->data[k], chunk + k - with->middle)) {
            return -EPROTO;
        }
    }
    take(p, step, chunk, *(const uint64_t *)with->data[with->middle]);
    return p->number == 1 && p->run->fail_at != 0 && p->got == p->run->fail_at ? -EDOM : 0;
}

static uint64_t value_of(void *context, const struct wic_step *step, uint64_t count)
{
    struct party *p = context;
    (void)step;
    p->told++;
    return mix(p->knows, count) >> 40;
}

static void parties_init(struct run *run, uint32_t parties)
{
    run->parties = parties;
    for (uint32_t i = 0; i < parties; i++) {
        struct party *p = &run->party[i];
        *p = (struct party){.run = run, .number = i, .knows = i};
        p->calls = (struct wic_party){i, send, receive, value_of, p};
    }
}

/* --- the same without threads ------------------------------------------------------------------
 */

static void model_step(struct run *run, const struct wic_step *step, struct wic_outcome *outcome)
{
    struct party *from = &run->party[step->from];
    struct party *to = &run->party[step->to];
    uint64_t *values = calloc(step->count > 4096 ? 4096 : step->count, sizeof(*values));
    uint64_t n = 0;
    for (; n < step->count; n++) {
        ck_assert_uint_lt(n, 4096);
        if (!make(from, step, wic_step_chunk(step, n), &values[n])) {
            break;
        }
    }
    for (uint64_t k = 0; k < n; k++) {
        take(to, step, wic_step_chunk(step, k), values[k]);
    }
    free(values);
    *outcome = (struct wic_outcome){n, 0};
    if (step->flags & WIC_STEP_TOLD) {
        outcome->value = value_of(from, step, n);
    }
}

/* Returns how many steps there were. */
static size_t model(struct run *run, const struct wic_pattern *pattern,
                    const struct wic_pattern_params *params)
{
    struct wic_schedule schedule;
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    size_t steps = 0;
    int rc = wic_schedule_init(&schedule, pattern, params, text, sizeof(text));
    while (rc == 0 && (rc = wic_schedule_next(&schedule, &step, text, sizeof(text))) == 1) {
        struct wic_outcome outcome;
        steps++;
        model_step(run, &step, &outcome);
        rc = step.flags & WIC_STEP_TOLD ? wic_schedule_tell(&schedule, &outcome, text, sizeof(text))
                                        : 0;
    }
    ck_assert_msg(rc == 0, "%s", text);
    wic_schedule_fini(&schedule);
    return steps;
}

/* --- both --------------------------------------------------------------------------------------
 */

static struct wic_exchange *exchange;

static void *party_main(void *argument)
{
    struct party *p = argument;
    p->rc = wic_exchange_run(exchange, &p->calls, p->text, sizeof(p->text));
    return NULL;
}

static void run_threads(struct run *run, const struct wic_pattern *pattern,
                        const struct wic_pattern_params *params)
{
    pthread_t threads[WIC_PARTIES_MAX];
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_msg(wic_exchange_create(pattern, params, &exchange, text, sizeof(text)) == 0, "%s",
                  text);
    for (uint32_t i = 0; i < run->parties; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, party_main, &run->party[i]), 0);
    }
    for (uint32_t i = 0; i < run->parties; i++) {
        pthread_join(threads[i], NULL);
    }
    wic_exchange_destroy(exchange);
}

/* Returns the number of steps. */
static size_t agree(const struct wic_pattern *pattern, const struct wic_pattern_params *params,
                    uint64_t most)
{
    struct run wanted = {.most = most};
    struct run run = {.most = most};
    parties_init(&wanted, params->parties);
    parties_init(&run, params->parties);
    size_t steps = model(&wanted, pattern, params);
    run_threads(&run, pattern, params);
    for (uint32_t i = 0; i < params->parties; i++) {
        const struct party *p = &run.party[i];
        const struct party *w = &wanted.party[i];
        ck_assert_msg(p->rc == 0, "party %u: %d %s", i, p->rc, p->text);
        ck_assert_uint_eq(p->sent, w->sent);
        ck_assert_uint_eq(p->got, w->got);
        ck_assert_uint_eq(p->told, w->told);
        ck_assert_uint_eq(p->knows, w->knows);
    }
    return steps;
}

static struct wic_pattern_params params_of(uint32_t parties, uint32_t slots, uint64_t down,
                                           uint64_t up, const uint64_t *args)
{
    struct wic_pattern_params params = {.parties = parties,
                                        .slots = slots,
                                        .chunk_bytes = WORDS * sizeof(uint64_t),
                                        .seed = 5,
                                        .args = args};
    for (uint32_t peer = 1; peer < parties; peer++) {
        params.chunks[0][peer] = down;
        params.chunks[peer][0] = up;
    }
    return params;
}

START_TEST(every_pattern_moves_real_data_between_two_threads)
{
    const uint64_t batch[] = {5, 2}, chance[] = {7, 3, 0, 0}, shuffled[] = {7, 3, 0, 1};
    struct wic_pattern_params params = params_of(2, 3, 2000, 0, NULL);
    agree(&wic_pattern_unidirectional, &params, 0);
    params = params_of(2, 1, 1000, 1000, NULL);
    agree(plugin_pattern("alternating"), &params, 0);
    params = params_of(2, 3, 1000, 400, batch);
    agree(plugin_pattern("multiple"), &params, 0);
    params = params_of(2, 2, 1000, 500, chance);
    agree(plugin_pattern("probabilistic"), &params, 0);
    params = params_of(2, 2, 1000, 500, shuffled);
    agree(plugin_pattern("probabilistic"), &params, 0);
}
END_TEST

START_TEST(several_parties_are_served_in_turn)
{
    const uint64_t batch[] = {5, 2};
    struct wic_pattern_params params = params_of(5, 2, 200, 80, batch);
    agree(plugin_pattern("multiple"), &params, 0);
    params = params_of(WIC_PARTIES_MAX, 1, 20, 20, NULL);
    agree(plugin_pattern("alternating"), &params, 0);
}
END_TEST

START_TEST(open_ways_end_where_their_sender_ends)
{
    const uint64_t batch[] = {5, 2};
    for (uint64_t most = 1; most < 12; most++) {
        struct wic_pattern_params params = params_of(2, 2, WIC_OPEN, 0, NULL);
        agree(&wic_pattern_unidirectional, &params, most);
        params = params_of(2, 2, WIC_OPEN, WIC_OPEN, NULL);
        agree(plugin_pattern("alternating"), &params, most);
        params = params_of(3, 3, WIC_OPEN, WIC_OPEN, batch);
        agree(plugin_pattern("multiple"), &params, most);
    }
}
END_TEST

START_TEST(values_that_are_told_decide_for_all_parties)
{
    const uint64_t by_data[] = {6, 4, 1, 0};
    struct wic_pattern_params params = params_of(2, 3, 900, 500, by_data);
    ck_assert_uint_gt(agree(plugin_pattern("probabilistic"), &params, 0), 200);
    /* More than the board has room for, and parties that do not take part in a step. */
    params = params_of(4, 3, 300, 200, by_data);
    ck_assert_uint_gt(agree(plugin_pattern("probabilistic"), &params, 0), 128);
}
END_TEST

START_TEST(receiver_has_the_neighbours_within_reach)
{
    for (uint64_t reach = 1; reach < 4; reach++) {
        for (uint32_t slots = (uint32_t)(2 * reach + 1); slots < 9; slots++) {
            for (uint64_t chunks = 1; chunks < 12; chunks++) {
                struct wic_pattern_params params = params_of(2, slots, chunks, 0, &reach);
                agree(&wic_pattern_unidirectional, &params, 0);
                params.chunks[0][1] = WIC_OPEN;
                agree(&wic_pattern_unidirectional, &params, chunks);
            }
        }
    }
}
END_TEST

/* --- random schedules --------------------------------------------------------------------------
 */

struct chaos {
    struct wic_pattern_params params;
    uint64_t random, moved[WIC_PARTIES_MAX][WIC_PARTIES_MAX], steps[WIC_PARTIES_MAX], total;
};

static uint64_t draw(struct chaos *c, uint64_t below)
{
    c->random = mix(c->random, 77);
    return (c->random >> 11) % below;
}

static int chaos_create(const struct wic_pattern_params *params, void **out_state)
{
    struct chaos *c = calloc(1, sizeof(*c));
    c->params = *params;
    c->random = params->seed;
    *out_state = c;
    return 0;
}

/* Every way gets its chunks in random portions, until all have; each step may depend on any step
 * before it. */
static int chaos_next(void *state, struct wic_step *out)
{
    struct chaos *c = state;
    uint32_t n = c->params.parties;
    uint64_t ways[WIC_PARTIES_MAX * WIC_PARTIES_MAX], count = 0;
    for (uint32_t way = 0; way < n * n; way++) {
        if (c->moved[way / n][way % n] < c->params.chunks[way / n][way % n]) {
            ways[count++] = way;
        }
    }
    if (count == 0) {
        return 0;
    }
    uint64_t way = ways[draw(c, count)];
    out->from = (uint16_t)(way / n);
    out->to = (uint16_t)(way % n);
    uint64_t left = c->params.chunks[out->from][out->to] - c->moved[out->from][out->to];
    out->first = c->moved[out->from][out->to];
    out->count = 1 + draw(c, left < 9 ? left : 9);
    out->chunk_bytes = WORDS * sizeof(uint64_t);
    out->access = (uint16_t)draw(c, 4);
    out->flags = draw(c, 3) == 0 ? WIC_STEP_TOLD : 0;
    out->after_party = (uint32_t)draw(c, n);
    out->after_steps = draw(c, c->steps[out->after_party] + 1);
    out->reach = out->access == WIC_ADJACENT ? 1 + (uint32_t)draw(c, (c->params.slots - 1) / 2) : 0;
    out->stride = out->access == WIC_SCATTER_GATHER ? (out->count % 2 == 0 ? 2 : 1) : 0;
    out->seed = out->access == WIC_RANDOM ? 1 + draw(c, 1000) : 0;
    c->moved[out->from][out->to] += out->count;
    c->steps[out->from]++;
    c->steps[out->to]++;
    return 1;
}

static int chaos_told(void *state, const struct wic_step *step, const struct wic_outcome *outcome)
{
    struct chaos *c = state;
    (void)step;
    c->random = mix(c->random, outcome->value); /* a party with another value takes another way */
    return 0;
}

static const struct wic_pattern chaotic = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "chaotic",
    .doc = "a test",
    .create = chaos_create,
    .next = chaos_next,
    .told = chaos_told,
    .destroy = free,
};

START_TEST(random_schedules_of_several_parties_agree)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct wic_pattern_params params = {.parties = 2 + (uint32_t)(seed % 4),
                                            .slots = 3 + (uint32_t)(seed % 3),
                                            .chunk_bytes = WORDS * sizeof(uint64_t),
                                            .seed = seed};
        for (uint32_t from = 0; from < params.parties; from++) {
            for (uint32_t to = 0; to < params.parties; to++) {
                params.chunks[from][to] = from == to ? 0 : mix(seed, from * 16 + to) % 60;
            }
        }
        agree(&chaotic, &params, 0);
    }
}
END_TEST

/* --- dependencies ------------------------------------------------------------------------------
 */

/* D0 -> D1, then D2 -> D3, in turn; each step of D2 depends on the one of D1 before it. */
static int relay_create(const struct wic_pattern_params *params, void **out_state)
{
    (void)params;
    *out_state = calloc(1, sizeof(uint64_t));
    return 0;
}

static int relay_next(void *state, struct wic_step *out)
{
    uint64_t turn = (*(uint64_t *)state)++;
    bool second = turn % 2 != 0;
    if (turn == 400) {
        return 0;
    }
    *out = (struct wic_step){.from = second ? 2 : 0,
                             .to = second ? 3 : 1,
                             .first = turn / 2,
                             .count = 1,
                             .chunk_bytes = 8,
                             .after_party = second ? 1 : 0,
                             .after_steps = second ? turn / 2 + 1 : 0};
    return 1;
}

static const struct wic_pattern relay = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "relay",
    .doc = "a test",
    .create = relay_create,
    .next = relay_next,
    .destroy = free,
};

static atomic_uint_fast64_t arrived, early;

static int relay_send(void *context, const struct wic_step *step, uint64_t chunk, void *data)
{
    (void)context;
    *(uint64_t *)data = chunk;
    if (step->from == 2 && atomic_load(&arrived) < chunk + 1) {
        atomic_fetch_add(&early, 1);
    }
    return 0;
}

static int relay_receive(void *context, const struct wic_step *step, uint64_t chunk,
                         const struct wic_neighbours *with)
{
    (void)context;
    if (*(const uint64_t *)with->data[0] != chunk) {
        return -EPROTO;
    }
    if (step->to == 1) {
        atomic_fetch_add(&arrived, 1);
    }
    return 0;
}

START_TEST(step_waits_for_the_step_that_it_depends_on)
{
    struct wic_pattern_params params = {.parties = 4, .slots = 8, .chunk_bytes = 8};
    struct run run = {.most = 0};
    params.chunks[0][1] = params.chunks[2][3] = 200;
    parties_init(&run, 4);
    for (uint32_t i = 0; i < 4; i++) {
        run.party[i].calls.send = relay_send;
        run.party[i].calls.receive = relay_receive;
    }
    run_threads(&run, &relay, &params);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_msg(run.party[i].rc == 0, "party %u: %d %s", i, run.party[i].rc,
                      run.party[i].text);
    }
    ck_assert_uint_eq(atomic_load(&arrived), 200);
    ck_assert_uint_eq(atomic_load(&early), 0);
}
END_TEST

/* --- ends --------------------------------------------------------------------------------------
 */

START_TEST(failure_of_one_party_ends_all)
{
    const uint64_t by_data[] = {6, 4, 1, 0};
    struct wic_pattern_params params = params_of(4, 2, 200, 100, by_data);
    struct run run = {.fail_at = 50};
    parties_init(&run, 4);
    run_threads(&run, plugin_pattern("probabilistic"), &params);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(run.party[i].rc, i == 1 ? -EDOM : -ECANCELED);
    }
}
END_TEST

START_TEST(parties_that_wait_are_woken_by_an_abort)
{
    struct wic_pattern_params params = params_of(2, 2, 100, 100, NULL);
    struct run run = {.most = 0};
    pthread_t thread;
    parties_init(&run, 2);
    ck_assert_int_eq(
        wic_exchange_create(plugin_pattern("alternating"), &params, &exchange, NULL, 0), 0);
    pthread_create(&thread, NULL, party_main, &run.party[1]); /* D0 never arrives */
    wic_exchange_abort(exchange);
    pthread_join(thread, NULL);
    ck_assert_int_eq(run.party[1].rc, -ECANCELED);
    wic_exchange_destroy(exchange);
    wic_exchange_destroy(NULL);
}
END_TEST

START_TEST(pattern_refusal_is_raised_before_a_party_runs)
{
    struct wic_pattern_params params = params_of(2, 2, 100, 99, NULL);
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_int_eq(
        wic_exchange_create(plugin_pattern("alternating"), &params, &exchange, text, sizeof(text)),
        -EINVAL);
    ck_assert_ptr_nonnull(strstr(text, "alternating cannot do that"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_exchange");
    TCase *data = tcase_create("data");
    tcase_add_test(data, every_pattern_moves_real_data_between_two_threads);
    tcase_add_test(data, several_parties_are_served_in_turn);
    tcase_add_test(data, open_ways_end_where_their_sender_ends);
    tcase_add_test(data, values_that_are_told_decide_for_all_parties);
    tcase_add_test(data, receiver_has_the_neighbours_within_reach);
    tcase_add_test(data, random_schedules_of_several_parties_agree);
    tcase_add_test(data, step_waits_for_the_step_that_it_depends_on);
    suite_add_tcase(suite, data);
    TCase *ends = tcase_create("ends");
    tcase_add_test(ends, failure_of_one_party_ends_all);
    tcase_add_test(ends, parties_that_wait_are_woken_by_an_abort);
    tcase_add_test(ends, pattern_refusal_is_raised_before_a_party_runs);
    suite_add_tcase(suite, ends);
    return run_suite(suite);
}
