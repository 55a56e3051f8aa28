/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program of a filter, a tree of comparisons, decides every call as the list of rules does, in
 * which the first rule that matches counts. Both are evaluated here, for all numbers of calls, with
 * the tables of calls of each architecture that has a filter. test_confine.c makes real calls. */
#include <stdint.h>

#define seccomp_syscall_resolve_name resolve_in_table
#include "service/confine/confine_seccomp.c"
#undef seccomp_syscall_resolve_name

#include "run_suite.h"

#include <check.h>
#include <stdio.h>

#define CALLS_MAX 1024U /* above all numbers that Linux has given */
#define ARGUMENTS 6

static const struct {
    const char *name;
    uint32_t token;
} tables[] = {
    {"x86_64", SCMP_ARCH_X86_64}, {"aarch64", SCMP_ARCH_AARCH64}, {"riscv64", SCMP_ARCH_RISCV64}};

static uint32_t table; /* token of the architecture whose numbers are used */

int resolve_in_table(const char *name)
{
    const int call = seccomp_syscall_resolve_name_arch(table, name);
    ck_assert_int_lt(call, (int)CALLS_MAX);
    return call;
}

/* --- two evaluations ---------------------------------------------------------------------------*/

static bool matches(const struct rule *rule, const struct seccomp_data *data)
{
    for (unsigned i = 0; i < rule->n; i++)
        if ((data->args[rule->arg[i].at] & rule->arg[i].mask) != rule->arg[i].value)
            return false;
    return true;
}

static uint32_t judge_by_list(const struct rules *rules, const struct seccomp_data *data)
{
    if (data->arch != ARCHITECTURE)
        return SECCOMP_RET_KILL_PROCESS;
#ifdef X32_CALLS
    if ((uint32_t)data->nr >= X32_CALLS)
        return SECCOMP_RET_KILL_PROCESS;
#endif
    for (size_t i = 0; i < rules->n; i++)
        if (rules->rule[i].call == data->nr && matches(&rules->rule[i], data))
            return rules->rule[i].action;
    return FAILS_WITH(EPERM);
}

static uint32_t judge_by_program(const struct filter *filter, const struct seccomp_data *data)
{
    uint32_t a = 0;
    for (unsigned at = 0; at < filter->n; at++) {
        const struct sock_filter *const op = &filter->code[at];
        switch (op->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            ck_assert_uint_le(op->k + sizeof a, sizeof *data);
            (void)memcpy(&a, (const char *)data + op->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= op->k;
            break;
        case BPF_JMP | BPF_JA:
            at += op->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += a == op->k ? op->jt : op->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += a >= op->k ? op->jt : op->jf;
            break;
        case BPF_RET | BPF_K:
            return op->k;
        default:
            ck_abort_msg("instruction %u has code %u", at, op->code);
        }
    }
    ck_abort_msg("the program has no end for call %d", data->nr);
    return 0;
}

/* --- comparison --------------------------------------------------------------------------------*/

static unsigned compared;

static void compare(const struct filter *filter, const struct rules *rules,
                    const struct seccomp_data *data)
{
    const uint32_t wanted = judge_by_list(rules, data), found = judge_by_program(filter, data);
    compared++;
    if (wanted != found)
        ck_abort_msg("call %d (%llx, %llx, %llx): %x and not %x", data->nr,
                     (unsigned long long)data->args[0], (unsigned long long)data->args[1],
                     (unsigned long long)data->args[2], found, wanted);
}

/* Compares with arguments that match the rule, and with each of their bits changed. */
static void compare_rule(const struct filter *filter, const struct rules *rules,
                         const struct rule *rule, uint64_t others)
{
    struct seccomp_data data = {.nr = rule->call, .arch = ARCHITECTURE};
    for (int i = 0; i < ARGUMENTS; i++)
        data.args[i] = others;
    for (unsigned i = 0; i < rule->n; i++)
        data.args[rule->arg[i].at] = rule->arg[i].value | (others & ~rule->arg[i].mask);
    compare(filter, rules, &data);
    for (unsigned i = 0; i < rule->n; i++) {
        __u64 *const arg = &data.args[rule->arg[i].at];
        for (int bit = 0; bit < 64; bit++) {
            *arg ^= UINT64_C(1) << bit;
            compare(filter, rules, &data);
            *arg ^= UINT64_C(1) << bit;
        }
    }
}

static void compare_all(const struct filter *filter, const struct rules *rules)
{
    static const uint32_t edges[] = {0x3fffffff, 0x40000000, 0x40000001, 0x7fffffff,
                                     0x80000000, 0xfffffffe, 0xffffffff};
    struct seccomp_data data = {.arch = ARCHITECTURE};
    for (uint32_t i = 0; i < CALLS_MAX + COUNT(edges); i++) {
        data.nr = (int)(i < CALLS_MAX ? i : edges[i - CALLS_MAX]);
        for (int ones = 0; ones < 2; ones++) {
            (void)memset(data.args, ones ? 0xff : 0, sizeof data.args);
            compare(filter, rules, &data);
        }
        data.arch ^= 1; /* a call of another architecture */
        compare(filter, rules, &data);
        data.arch ^= 1;
    }
    for (size_t i = 0; i < rules->n; i++) {
        compare_rule(filter, rules, &rules->rule[i], 0);
        compare_rule(filter, rules, &rules->rule[i], UINT64_MAX);
        compare_rule(filter, rules, &rules->rule[i], UINT64_C(0x5555555555555555));
    }
}

static void check_filter(void (*fill_rules)(struct rules *rules), size_t rules_min)
{
    static struct filter filter;
    static struct rules rules;
    rules.n = 0;
    fill_rules(&rules);
    ck_assert_uint_ge(rules.n, rules_min);
    filter.fill = fill_rules;
    filter.n = 0;
    ck_assert_int_eq(compile(&filter), 0);
    compare_all(&filter, &rules);
    write_process_id(&filter);
    for (size_t i = 0; i < rules.n; i++)
        for (unsigned k = 0; k < rules.rule[i].n; k++)
            if (rules.rule[i].arg[k].value == SELF)
                rules.rule[i].arg[k].value = (uint64_t)getpid();
    compare_all(&filter, &rules);
}

START_TEST(test_tree_of_calls_decides_as_the_list)
{
    table = tables[_i].token;
    compared = 0;
    check_filter(fill, 150);
    check_filter(fill_looking, 60);
    ck_assert_uint_gt(compared, 4 * 3 * CALLS_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("confine_filter");
    TCase *tests = tcase_create("confine_filter");
    tcase_add_loop_test(tests, test_tree_of_calls_decides_as_the_list, 0, (int)COUNT(tables));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
