/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Finishes one product per thread: a SHA-256, and what is written at the end of a file, are
 * sequential. A BLAKE3 has threads of its own (io/gap_file.h). The stream's threads have ended by
 * then, and the plan counts the memory of all products that finish together. */
#include "pipeline/run/finish.h"
#include "pipeline/io/thread.h"
#include "pipeline/profile/work.h"

#include <stdlib.h>

struct group {
    const struct pb_run_products *products;
    struct pb_file_progress *files;
    struct pb_product_result *results;
    const size_t *product; /* numbers of the products to finish; result i is for product[i] */
    size_t n;
    _Atomic size_t next; /* index into product */

    pthread_mutex_t lock; /* protects all below */
    bool failed;
    struct pb_err failure; /* the first failure */
    int rc;                /* its errno */
};

static void record(struct group *group, int rc, const struct pb_err *why)
{
    pthread_mutex_lock(&group->lock);
    if (!group->failed) {
        group->failed = true;
        group->failure = *why;
        group->rc = rc;
    }
    pthread_mutex_unlock(&group->lock);
    /* Set last: the errors that it causes in other threads must not be recorded first. */
    atomic_store(&group->files->stop, true);
}

static int finish_one(const struct pb_run_products *all, size_t i,
                      const struct pb_product_result *earlier, size_t n_earlier, struct pb_err *err,
                      struct pb_product_result *out_result)
{
    pb_work_begin(PB_WORK_FINISH, (uint32_t)i);
    int rc = all->type[i]->finish(all->product[i], earlier, n_earlier, err, out_result);
    pb_work_end();
    return rc;
}

static void *work(void *arg)
{
    struct group *group = arg;
    const struct pb_run_products *all = group->products;
    size_t i;
    while ((i = atomic_fetch_add(&group->next, 1)) < group->n) {
        struct pb_err why = {0};
        size_t p = group->product[i];
        int rc = 0;
        if (atomic_load(&group->files->stop))
            rc = pb_fail(&why, PB_E_JOB_DISMISSED, "cancelled before all products were written");
        else
            rc = finish_one(all, p, NULL, 0, &why, &group->results[i]);
        if (rc < 0) {
            record(group, rc, &why);
            break;
        }
    }
    return NULL;
}

static void *help(void *arg)
{
    (void)pthread_setname_np(pthread_self(), "pb-finish");
    return work(arg);
}

/* Finishes product[0 .. n-1]; helper has room for threads. Works without the helpers that cannot be
 * started. */
static int finish_together(struct group *group, uint32_t threads, pthread_t *helper,
                           struct pb_err *err)
{
    uint32_t n = 0;
    pthread_mutex_init(&group->lock, NULL);
    while (n + 1 < threads && n + 1 < group->n && pb_thread_start(&helper[n], help, group) == 0)
        n++;
    (void)work(group);
    pb_work_begin(PB_WORK_WAIT, 0);
    while (n > 0)
        (void)pthread_join(helper[--n], NULL);
    pb_work_end();
    pthread_mutex_destroy(&group->lock);
    if (group->failed && err != NULL && err->code == PB_OK)
        *err = group->failure;
    return group->rc;
}

int pb_finish_items(const struct pb_run_products *all, struct pb_err *err,
                    struct pb_product_result *results)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < all->n; i++)
        n += !all->type[i]->kind->describes_others;
    const size_t n_earlier = n;
    for (size_t i = 0; i < all->n && rc == 0; i++)
        if (all->type[i]->kind->describes_others)
            rc = finish_one(all, i, results, n_earlier, err, &results[n++]);
    return rc;
}

int pb_finish_products(const struct pb_run_products *all, uint32_t threads,
                       struct pb_file_progress *files, struct pb_err *err,
                       struct pb_product_result *out_results, size_t *out_n)
{
    struct group group = {.products = all, .files = files, .results = out_results};
    size_t *product = calloc(all->n + 1, sizeof *product);
    pthread_t *helper = calloc(all->n + 1, sizeof *helper);
    *out_n = 0;
    int rc = 0;
    if (product == NULL || helper == NULL) {
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for finishing the products");
        goto out;
    }
    for (size_t i = 0; i < all->n; i++)
        if (!all->type[i]->kind->describes_others)
            product[group.n++] = i;
    group.product = product;
    rc = finish_together(&group, threads, helper, err);
    if (rc == 0)
        rc = pb_finish_items(all, err, out_results);
    if (rc == 0)
        *out_n = all->n;
out:
    free(product);
    free(helper);
    return rc;
}
