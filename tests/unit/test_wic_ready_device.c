/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * Rings of ready tasks and counters of arrivals (wic/depend) by threads of the host: graphs of
 * tasks that read what the tasks before them wrote, with plain memory in between, so that the
 * thread sanitizer sees an order that is missing. */
#include "tests/device/emulate_ready.h"

#include "run_suite.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, LAYERS = 40, WIDTH = 12, TASKS = LAYERS * WIDTH, NEEDS = 3, RUNS = 3 };

struct graph {
    struct wic_ready ready;
    void *memory;
    uint32_t need[TASKS][NEEDS];  /* tasks of the layer before; some twice */
    uint32_t counter[TASKS];      /* arrivals */
    uint32_t made[TASKS];         /* plain: value that a task wrote */
    uint32_t times[TASKS];        /* plain: how often it ran */
    uint32_t done;                /* a counter */
    uint32_t run, wrong[THREADS]; /* plain */
};

static struct graph graph;

static uint32_t below(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

static void empty_rings(void)
{
    uint32_t most[WIC_READY_RINGS] = {0};
    most[1] = most[3] = TASKS; /* later layers in the more urgent ring */
    const size_t bytes = wic_ready_bytes(most);
    if (graph.memory == NULL)
        graph.memory = aligned_alloc(128, (bytes + 127) / 128 * 128);
    ck_assert_ptr_nonnull(graph.memory);
    wic_ready_init(most, UINT64_MAX, graph.memory, graph.memory, &graph.ready);
}

static void make_graph(uint32_t seed)
{
    memset(&graph, 0, sizeof graph);
    for (uint32_t t = WIDTH; t < TASKS; t++)
        for (uint32_t i = 0; i < NEEDS; i++)
            graph.need[t][i] = (t / WIDTH - 1) * WIDTH + below(&seed, WIDTH);
}

static uint32_t ring_of(uint32_t task)
{
    return task / WIDTH % 2 == 0 ? 3 : 1;
}

static void run_task(uint32_t task, uint32_t *wrong)
{
    uint32_t sum = task + graph.run;
    for (uint32_t i = 0; i < NEEDS && task >= WIDTH; i++)
        sum = sum * 31 + graph.made[graph.need[task][i]];
    graph.made[task] = sum;
    *wrong += ++graph.times[task] != graph.run + 1;
    for (uint32_t t = (task / WIDTH + 1) * WIDTH; t < (task / WIDTH + 2) * WIDTH && t < TASKS; t++)
        for (uint32_t i = 0; i < NEEDS; i++)
            if (graph.need[t][i] == task && emulate_arrive(&graph.counter[t], NEEDS))
                emulate_push(&graph.ready, ring_of(t), t, 1);
    if (emulate_arrive(&graph.done, TASKS))
        emulate_stop(&graph.ready, WIC_READY_DONE);
}

static void *work(void *number)
{
    uint32_t *wrong = number, task;
    while (__atomic_load_n(graph.ready.stop, __ATOMIC_RELAXED) == 0) {
        bool found = false;
        for (uint32_t ring = 0; ring < WIC_READY_RINGS && !found; ring++)
            found = emulate_try(&graph.ready, ring, &task);
        if (found)
            run_task(task, wrong);
        else
            (void)sched_yield();
    }
    return NULL;
}

static void check_made(void)
{
    static uint32_t want[TASKS];
    for (uint32_t t = 0; t < TASKS; t++) {
        want[t] = t + graph.run;
        for (uint32_t i = 0; i < NEEDS && t >= WIDTH; i++)
            want[t] = want[t] * 31 + want[graph.need[t][i]];
        ck_assert_uint_eq(graph.made[t], want[t]);
    }
}

/* Counters are not reset between runs. */
START_TEST(tasks_run_once_and_after_what_they_need)
{
    pthread_t thread[THREADS];
    make_graph((uint32_t)_i + 1);
    for (graph.run = 0; graph.run < RUNS; graph.run++) {
        empty_rings();
        emulate_push(&graph.ready, ring_of(0), 0, WIDTH);
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &graph.wrong[i]), 0);
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
        for (int i = 0; i < THREADS; i++)
            ck_assert_uint_eq(graph.wrong[i], 0);
        check_made();
    }
    free(graph.memory);
}
END_TEST

START_TEST(a_ring_goes_round_and_keeps_its_order)
{
    uint32_t task;
    make_graph(1);
    empty_rings();
    const uint32_t entries = graph.ready.mask[1] + 1;
    for (uint32_t i = 0; i < 5 * entries; i += 3) {
        emulate_push(&graph.ready, 1, i, 3);
        for (uint32_t k = 0; k < 3; k++) {
            ck_assert(emulate_try(&graph.ready, 1, &task));
            ck_assert_uint_eq(task, i + k);
        }
        ck_assert(!emulate_try(&graph.ready, 1, &task));
    }
    free(graph.memory);
}
END_TEST

/* Pushes like a copy engine: the word alone. */
START_TEST(listed_tasks_are_ready_when_their_word_is_written)
{
    static const uint32_t tasks[] = {7, 5, 9};
    uint32_t task;
    make_graph(1);
    empty_rings();
    wic_ready_list(graph.memory, &graph.ready, 3, tasks, 3);
    ck_assert(!emulate_try(&graph.ready, 3, &task));
    graph.ready.line->brought[3] = 2;
    ck_assert(!emulate_try(&graph.ready, 3, &task));
    emulate_list(&graph.ready, 3);
    emulate_list(&graph.ready, 3); /* counts nothing twice */
    ck_assert(emulate_try(&graph.ready, 3, &task));
    ck_assert_uint_eq(task, 7);
    ck_assert(emulate_try(&graph.ready, 3, &task));
    ck_assert_uint_eq(task, 5);
    ck_assert(!emulate_try(&graph.ready, 3, &task));
    free(graph.memory);
}
END_TEST

START_TEST(epochs_wrap_and_the_first_to_stop_says_why)
{
    uint32_t word = UINT32_MAX - 1, counter = UINT32_MAX - 3; /* a multiple of 4, less 4 */
    make_graph(1);
    empty_rings();
    ck_assert(emulate_is_at(&word, UINT32_MAX - 1));
    ck_assert(!emulate_is_at(&word, UINT32_MAX));
    emulate_post(&word, 1);
    ck_assert(emulate_is_at(&word, UINT32_MAX));
    ck_assert(!emulate_is_at(&word, 2));
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(emulate_arrive(&counter, 4), i % 4 == 3);
    emulate_stop(&graph.ready, WIC_READY_LATE);
    emulate_stop(&graph.ready, WIC_READY_DONE);
    ck_assert_uint_eq(*graph.ready.stop, WIC_READY_LATE);
    free(graph.memory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_ready");
    TCase *all = tcase_create("wic_ready");
    tcase_add_loop_test(all, tasks_run_once_and_after_what_they_need, 0, 4);
    tcase_add_test(all, a_ring_goes_round_and_keeps_its_order);
    tcase_add_test(all, listed_tasks_are_ready_when_their_word_is_written);
    tcase_add_test(all, epochs_wrap_and_the_first_to_stop_says_why);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
