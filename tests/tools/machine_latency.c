/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Latency of the machine itself while something else runs on it: how late a thread wakes that
 * sleeps for 1 ms (as cyclictest measures it, but with the ordinary scheduling class, which is what
 * a service gets), and how long fdatasync takes after 4 KiB were written.
 *
 * machine_latency FILE        FILE is created and written; until SIGTERM, then one line of JSON
 */
#include "tests/tools/latency.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define SLEEP_US 1000
#define SYNC_US  20000 /* between two fdatasyncs: few, so that they are no load themselves */

static atomic_bool ending;

static void sleep_us(int64_t us)
{
    const struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    (void)nanosleep(&pause, NULL);
}

static void *measure_sleeps(void *user)
{
    while (!atomic_load(&ending)) {
        int64_t start = latency_now_us();
        sleep_us(SLEEP_US);
        latency_add(user, latency_now_us() - start - SLEEP_US);
    }
    return NULL;
}

struct syncs {
    int fd;
    struct latency latency;
};

static void *measure_syncs(void *user)
{
    static const char block[4096];
    struct syncs *syncs = user;
    for (off_t at = 0; !atomic_load(&ending); at = (at + 4096) % (1 << 20)) {
        if (pwrite(syncs->fd, block, sizeof block, at) != (ssize_t)sizeof block)
            return "write";
        int64_t start = latency_now_us();
        if (fdatasync(syncs->fd) != 0)
            return "fdatasync";
        latency_add(&syncs->latency, latency_now_us() - start);
        sleep_us(SYNC_US);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct latency sleeps = {0};
    struct syncs syncs = {.fd = -1};
    pthread_t threads[2];
    sigset_t end;
    void *failed = NULL;
    int number;
    (void)sigemptyset(&end);
    (void)sigaddset(&end, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &end, NULL);
    if (argc == 2)
        syncs.fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (syncs.fd < 0 || pthread_create(&threads[0], NULL, measure_sleeps, &sleeps) != 0 ||
        pthread_create(&threads[1], NULL, measure_syncs, &syncs) != 0) {
        fprintf(stderr, "usage: machine_latency FILE\n");
        return 2;
    }
    (void)sigwait(&end, &number);
    atomic_store(&ending, true);
    (void)pthread_join(threads[0], NULL);
    (void)pthread_join(threads[1], &failed);
    printf("{\"wakeup\":{");
    latency_print(&sleeps);
    printf("},\"fdatasync\":{");
    latency_print(&syncs.latency);
    printf("},\"failed\":%s%s%s}\n", failed ? "\"" : "", failed ? (char *)failed : "null",
           failed ? "\"" : "");
    free(sleeps.us);
    free(syncs.latency.us);
    return close(syncs.fd) == 0 ? 0 : 1;
}
