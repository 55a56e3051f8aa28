/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * A channel between two processes that map its memory at different addresses. */
#include "test_wic_group.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define TICKETS 3000u

struct shared_memory {
    int fd;
    size_t bytes;
    void *memory;
    struct wic_channel *channel;
};

/* The slots are as long as a thread group's. */
static struct shared_memory shared_new(uint32_t slots)
{
    struct wic_options options = {
        .slots = slots, .slot_bytes = SLOT_U64 * sizeof(uint64_t), .shared = true};
    struct shared_memory made = {.bytes = wic_channel_bytes(&options)};
    made.fd = memfd_create("wic", MFD_CLOEXEC);
    ck_assert_int_ge(made.fd, 0);
    ck_assert_int_eq(ftruncate(made.fd, (off_t)made.bytes), 0);
    made.memory = mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
    ck_assert_ptr_ne(made.memory, MAP_FAILED);
    ck_assert_int_eq(wic_channel_init(made.memory, &options, &made.channel), 0);
    return made;
}

static void shared_free(struct shared_memory *shared)
{
    wic_channel_fini(shared->channel);
    munmap(shared->memory, shared->bytes);
    close(shared->fd);
}

/* In the child: maps the memory again, elsewhere, and drops the mapping that fork gave it. */
static struct wic_channel *attach_elsewhere(const struct shared_memory *shared)
{
    struct wic_channel *channel = NULL;
    void *memory = mmap(NULL, shared->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
    if (memory == MAP_FAILED || memory == shared->memory ||
        wic_channel_attach(memory, shared->bytes, &channel) != 0) {
        _exit(90);
    }
    munmap(shared->memory, shared->bytes);
    return channel;
}

static pid_t fork_or_fail(void)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0); /* kill(-1) would end everything */
    return child;
}

static int exit_of(pid_t child)
{
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A thread group of one process; its exit status is its result. */
static void run_child(struct wic_channel *channel, int producers, int consumers, uint64_t count)
{
    struct group group = {.producers = producers, .consumers = consumers, .timeout_ns = 5000 * MS};
    group_start(&group, channel, 0, count);
    group_join(&group, 0, producers + consumers);
    int ended = 0;
    for (int i = 0; i < producers + consumers; i++) {
        ended |= group.last_rc[i] != (i < producers ? 0 : -EPIPE);
    }
    _exit((group.wrong != 0 || group.timeouts != 0) + 2 * ended);
}

START_TEST(child_consumes_what_the_parent_publishes)
{
    struct shared_memory shared = shared_new(4);
    pid_t child = fork_or_fail();
    if (child == 0) {
        run_child(attach_elsewhere(&shared), 0, _i, TICKETS);
    }
    struct group group = {.producers = _i, .consumers = 0, .timeout_ns = WIC_FOREVER};
    group_start(&group, shared.channel, 0, TICKETS);
    group_join(&group, 0, _i);
    wic_close(shared.channel);
    ck_assert_int_eq(exit_of(child), 0);
    ck_assert_uint_eq(stats_of(shared.channel).published, TICKETS);
    ck_assert_uint_eq(stats_of(shared.channel).consumed, TICKETS);
    free(group.seen);
    shared_free(&shared);
}
END_TEST

START_TEST(parent_consumes_what_the_child_publishes)
{
    struct shared_memory shared = shared_new(3);
    pid_t child = fork_or_fail();
    if (child == 0) {
        run_child(attach_elsewhere(&shared), 2, 0, TICKETS);
    }
    struct group group = {.producers = 0, .consumers = 2, .timeout_ns = WIC_FOREVER};
    group_start(&group, shared.channel, 0, TICKETS);
    ck_assert_int_eq(exit_of(child), 0);
    group_finish(&group);
    shared_free(&shared);
}
END_TEST

START_TEST(two_processes_share_the_consumers_side)
{
    struct shared_memory shared = shared_new(3);
    pid_t child = fork_or_fail();
    if (child == 0) {
        run_child(attach_elsewhere(&shared), 0, 2, TICKETS);
    }
    struct group group = {.producers = 1, .consumers = 1, .timeout_ns = WIC_FOREVER};
    group_start(&group, shared.channel, 0, TICKETS);
    group_join(&group, 0, 1);
    wic_close(shared.channel);
    group_join(&group, 1, 2);
    ck_assert_int_eq(exit_of(child), 0);
    ck_assert_uint_eq(group.wrong, 0);
    ck_assert_int_eq(group.last_rc[1], -EPIPE);
    ck_assert_uint_eq(stats_of(shared.channel).consumed, TICKETS);
    free(group.seen);
    shared_free(&shared);
}
END_TEST

START_TEST(parked_child_is_woken_by_abort_and_close)
{
    struct shared_memory shared = shared_new(1);
    pid_t child = fork_or_fail();
    if (child == 0) {
        struct wic_slot slot;
        int rc = wic_wait(attach_elsewhere(&shared), 10000 * MS, &slot);
        _exit(rc == (_i == 0 ? -ECANCELED : -EPIPE) ? 0 : 1);
    }
    until_waiting(shared.channel, WIC_CONSUMER, 1);
    if (_i == 0) {
        wic_abort(shared.channel);
    } else {
        wic_close(shared.channel);
    }
    ck_assert_int_eq(exit_of(child), 0);
    ck_assert_uint_eq(stats_of(shared.channel).consumer_parks, 1);
    shared_free(&shared);
}
END_TEST

START_TEST(process_killed_while_parked_takes_nothing_with_it)
{
    struct shared_memory shared = shared_new(1);
    pid_t child = fork_or_fail();
    if (child == 0) {
        struct wic_slot slot;
        wic_wait(attach_elsewhere(&shared), WIC_FOREVER, &slot);
        _exit(1);
    }
    until_waiting(shared.channel, WIC_CONSUMER, 1);
    kill(child, SIGKILL);
    ck_assert_int_eq(exit_of(child), -1);
    for (uint64_t ticket = 0; ticket < 5; ticket++) {
        struct wic_slot in, out;
        ck_assert_int_eq(wic_acquire(shared.channel, 1000 * MS, &in), 0);
        ck_assert_int_eq(wic_publish(shared.channel, &in, 0), 0);
        ck_assert_int_eq(wic_wait(shared.channel, 1000 * MS, &out), 0);
        ck_assert_uint_eq(out.ticket, ticket);
        ck_assert_int_eq(wic_release(shared.channel, &out), 0);
    }
    shared_free(&shared);
}
END_TEST

/* Dies with a slot of its side in its hands. */
static void die_holding(struct shared_memory *shared, enum wic_role role)
{
    pid_t child = fork_or_fail();
    if (child == 0) {
        struct wic_channel *channel = attach_elsewhere(shared);
        struct wic_slot slot;
        int rc = role == WIC_PRODUCER ? wic_acquire(channel, WIC_FOREVER, &slot)
                                      : wic_wait(channel, WIC_FOREVER, &slot);
        if (rc == 0) {
            raise(SIGKILL);
        }
        _exit(1);
    }
    ck_assert_int_eq(exit_of(child), -1);
}

static void expect_abort_ends_all(struct wic_channel *channel)
{
    struct wic_slot slot;
    wic_abort(channel);
    ck_assert_int_eq(wic_acquire(channel, WIC_FOREVER, &slot), -ECANCELED);
    ck_assert_int_eq(wic_wait(channel, WIC_FOREVER, &slot), -ECANCELED);
}

START_TEST(wait_for_a_killed_producer_ends_in_time)
{
    struct shared_memory shared = shared_new(2);
    struct wic_slot slot;
    die_holding(&shared, WIC_PRODUCER);
    ck_assert_int_eq(wic_acquire(shared.channel, 0, &slot), 0);
    ck_assert_int_eq(wic_publish(shared.channel, &slot, 0), 0);
    wic_close(shared.channel); /* the end does not arrive either: a ticket is out */
    ck_assert_int_eq(wic_wait(shared.channel, 0, &slot), -ETIMEDOUT);
    ck_assert_int_eq(wic_wait(shared.channel, 20 * MS, &slot), -ETIMEDOUT);
    expect_abort_ends_all(shared.channel);
    shared_free(&shared);
}
END_TEST

START_TEST(wait_for_a_killed_consumer_ends_in_time)
{
    struct shared_memory shared = shared_new(2);
    struct wic_slot slot;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(wic_acquire(shared.channel, 0, &slot), 0);
        ck_assert_int_eq(wic_publish(shared.channel, &slot, 0), 0);
    }
    die_holding(&shared, WIC_CONSUMER);
    ck_assert_int_eq(wic_acquire(shared.channel, 20 * MS, &slot), -ETIMEDOUT);
    ck_assert_int_eq(wic_wait(shared.channel, 0, &slot), 0); /* the other ticket is there */
    ck_assert_uint_eq(slot.ticket, 1);
    ck_assert_int_eq(wic_release(shared.channel, &slot), 0);
    ck_assert_int_eq(wic_acquire(shared.channel, 20 * MS, &slot), -ETIMEDOUT); /* in turn */
    expect_abort_ends_all(shared.channel);
    shared_free(&shared);
}
END_TEST

START_TEST(attach_takes_only_a_shared_channel_of_this_version)
{
    struct shared_memory shared = shared_new(2);
    struct wic_channel *channel = NULL, *own = channel_new(2, 8);
    unsigned char *memory = shared.memory;
    _Alignas(64) static unsigned char blank[4096];
    ck_assert_int_eq(wic_channel_attach(NULL, shared.bytes, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_attach(memory, shared.bytes, NULL), -EINVAL);
    ck_assert_int_eq(wic_channel_attach(memory + 8, shared.bytes - 8, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_attach(memory, shared.bytes - 1, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_attach(memory, 63, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_attach(blank, sizeof(blank), &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_attach(own, (size_t)own->total_bytes, &channel), -EINVAL);
    shared.channel->version++;
    ck_assert_int_eq(wic_channel_attach(memory, shared.bytes, &channel), -EPROTO);
    shared.channel->version--;
    shared.channel->slots++;
    ck_assert_int_eq(wic_channel_attach(memory, shared.bytes, &channel), -EINVAL);
    shared.channel->slots--;
    shared.channel->stride += 4096;
    ck_assert_int_eq(wic_channel_attach(memory, shared.bytes, &channel), -EINVAL);
    shared.channel->stride -= 4096;
    ck_assert_ptr_null(channel);
    ck_assert_int_eq(wic_channel_attach(memory, shared.bytes, &channel), 0);
    ck_assert_ptr_eq(channel, shared.channel);
    wic_channel_fini(channel);
    ck_assert_int_eq(wic_channel_attach(memory, shared.bytes, &channel), -EINVAL);
    shared_free(&shared);
    channel_free(own);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_process");
    TCase *tcase = tcase_create("processes");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, child_consumes_what_the_parent_publishes, 1, 3);
    tcase_add_test(tcase, parent_consumes_what_the_child_publishes);
    tcase_add_test(tcase, two_processes_share_the_consumers_side);
    tcase_add_loop_test(tcase, parked_child_is_woken_by_abort_and_close, 0, 2);
    tcase_add_test(tcase, process_killed_while_parked_takes_nothing_with_it);
    tcase_add_test(tcase, wait_for_a_killed_producer_ends_in_time);
    tcase_add_test(tcase, wait_for_a_killed_consumer_ends_in_time);
    tcase_add_test(tcase, attach_takes_only_a_shared_channel_of_this_version);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
