/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * Plugins: a good one is loaded and its schedule moves real data over two channels; a file that
 * could be code of another user, or is no plugin of ours, is refused with a reason. The plugins are
 * those of wic/patterns, the hostile ones of tests/plugins; tests that play with modes and links do
 * so on copies in a scratch directory. */
#include "test_wic_group.h"
#include "wic/pattern/plugin.h"
#include "wic/pattern/replay.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <sys/stat.h>

/* --- a scratch directory with copies of plugins --- */

static char scratch[] = "/tmp/pb-plugin-XXXXXX";

static void scratch_make(void)
{
    strcpy(scratch, "/tmp/pb-plugin-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
}

static void scratch_remove(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
    ck_assert_int_eq(system(command), 0);
}

static const char *in_scratch(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    return path;
}

static void copy_plugin(const char *from, const char *to)
{
    char source[PATH_MAX];
    char buffer[65536];
    ssize_t got;
    snprintf(source, sizeof(source), PB_PATTERNS "/%s.so", from);
    int in = open(source, O_RDONLY);
    int out = open(in_scratch(to), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ck_assert_int_ge(in, 0);
    ck_assert_int_ge(out, 0);
    while ((got = read(in, buffer, sizeof(buffer))) > 0) {
        ck_assert_int_eq(write(out, buffer, (size_t)got), got);
    }
    close(in);
    close(out);
}

/* Loads, and checks that a refusal has a reason with `why` in it and gives no pattern. */
static int loaded(const char *directory, const char *name, const char *why)
{
    const struct wic_pattern *pattern = NULL;
    char text[WIC_TEXT_BYTES] = "";
    int rc = wic_plugin_load(directory, name, &pattern, text, sizeof(text));
    if (rc == 0) {
        ck_assert_ptr_nonnull(pattern);
        ck_assert_ptr_eq(wic_pattern_find(name), pattern);
    } else {
        ck_assert_ptr_null(pattern);
        ck_assert_msg(why != NULL && strstr(text, why) != NULL, "%d: '%s' lacks '%s'", rc, text,
                      why == NULL ? "nothing: it should load" : why);
    }
    return rc;
}

/* --- the good one --- */

START_TEST(plugin_is_loaded_once_and_found_by_name)
{
    const struct wic_pattern *first;
    const struct wic_pattern *second;
    ck_assert_ptr_null(wic_pattern_find("alternating"));
    ck_assert_int_eq(wic_plugin_load(PB_PATTERNS, "alternating", &first, NULL, 0), 0);
    ck_assert_int_eq(wic_plugin_load(PB_PATTERNS "/../patterns", "alternating", &second, NULL, 0),
                     0);
    ck_assert_ptr_eq(first, second);
    ck_assert_ptr_eq(wic_pattern_find("alternating"), first);
    ck_assert_str_eq(first->name, "alternating");
    ck_assert_ptr_eq(wic_pattern_at(1), first);
    ck_assert_ptr_null(wic_pattern_at(2));
}
END_TEST

START_TEST(copy_elsewhere_is_another_pattern_of_the_same_name)
{
    copy_plugin("alternating", "alternating.so");
    ck_assert_int_eq(loaded(PB_PATTERNS, "alternating", NULL), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", "another pattern"), -EEXIST);
}
END_TEST

/* --- a schedule replayed on the host: two devices, each a thread, and a channel each way --- */

#define WORDS 32

struct device {
    uint32_t id;
    struct wic_channel *to[2]; /* indexed by the sender's number */
    const struct wic_step *steps;
    size_t count;
    uint64_t sent, got; /* the last chunk's value each way */
    unsigned wrong;
};

/* Computes a sender's value from the chunk and from the last one that it got: therefore an order of
 * the two directions other than the schedule's gives other data. */
static uint64_t chunk_value(uint32_t from, uint64_t chunk, uint64_t got_before)
{
    return (got_before + chunk + 1) * UINT64_C(0x9e3779b97f4a7c15) + from;
}

static void device_send(struct device *device, uint32_t from, uint64_t chunk)
{
    struct wic_slot slot;
    if (wic_acquire(device->to[from], WIC_FOREVER, &slot) != 0) {
        device->wrong++;
        return;
    }
    device->sent = chunk_value(from, chunk, device->got);
    for (uint64_t i = 0; i < WORDS; i++) {
        ((uint64_t *)slot.data)[i] = device->sent ^ i;
    }
    memcpy(slot.user, &chunk, sizeof(chunk));
    device->wrong += wic_publish(device->to[from], &slot, slot.bytes) != 0;
}

static void device_receive(struct device *device, uint32_t from, uint64_t chunk)
{
    struct wic_slot slot;
    if (wic_wait(device->to[from], WIC_FOREVER, &slot) != 0) {
        device->wrong++;
        return;
    }
    uint64_t value = chunk_value(from, chunk, device->sent);
    for (uint64_t i = 0; i < WORDS; i++) {
        device->wrong += ((uint64_t *)slot.data)[i] != (value ^ i);
    }
    device->wrong += memcmp(slot.user, &chunk, sizeof(chunk)) != 0;
    device->got = value;
    device->wrong += wic_release(device->to[from], &slot) != 0;
}

static int device_move(void *context, const struct wic_step *step, uint64_t chunk)
{
    struct device *device = context;
    if (step->from == device->id) {
        device_send(device, step->from, chunk);
    } else {
        device_receive(device, step->from, chunk);
    }
    return 0;
}

static void *device_main(void *argument)
{
    struct device *device = argument;
    device->wrong += wic_replay_steps(device->steps, device->count, device_move, device) != 0;
    return NULL;
}

static void replay(const struct wic_pattern *pattern, uint64_t forth, uint64_t back)
{
    struct wic_pattern_params params = {.parties = 2,
                                        .slots = 3,
                                        .chunk_bytes = WORDS * sizeof(uint64_t),
                                        .chunks = {{0, forth}, {back}},
                                        .seed = 11};
    struct wic_channel *channels[2] = {channel_new(3, WORDS * sizeof(uint64_t)),
                                       channel_new(3, WORDS * sizeof(uint64_t))};
    size_t max = forth + back;
    size_t count = 0;
    struct wic_step *steps = calloc(max, sizeof(*steps));
    struct device devices[2];
    pthread_t threads[2];
    ck_assert_int_eq(wic_schedule_record(pattern, &params, steps, max, &count, NULL, 0), 0);
    for (uint32_t id = 0; id < 2; id++) {
        devices[id] = (struct device){
            .id = id, .to = {channels[0], channels[1]}, .steps = steps, .count = count};
        ck_assert_int_eq(pthread_create(&threads[id], NULL, device_main, &devices[id]), 0);
    }
    for (int id = 0; id < 2; id++) {
        pthread_join(threads[id], NULL);
    }
    for (int id = 0; id < 2; id++) {
        ck_assert_uint_eq(devices[id].wrong, 0);
        ck_assert_uint_eq(devices[id].sent, devices[1 - id].got);
        ck_assert_uint_eq(stats_of(channels[id]).consumed, params.chunks[id][1 - id]);
    }
    channel_free(channels[0]);
    channel_free(channels[1]);
    free(steps);
}

START_TEST(alternating_moves_real_data_both_ways_on_the_host)
{
    const struct wic_pattern *pattern;
    ck_assert_int_eq(wic_plugin_load(PB_PATTERNS, "alternating", &pattern, NULL, 0), 0);
    replay(pattern, 1, 1);
    replay(pattern, 2000, 2000);
}
END_TEST

START_TEST(probabilistic_moves_data_both_ways_on_the_host)
{
    const struct wic_pattern *pattern;
    ck_assert_int_eq(wic_plugin_load(PB_PATTERNS, "probabilistic", &pattern, NULL, 0), 0);
    replay(pattern, 3000, 500);
}
END_TEST

START_TEST(unidirectional_is_replayed_by_the_same_code)
{
    replay(wic_pattern_find("unidirectional"), 2000, 0);
}
END_TEST

START_TEST(what_a_plugin_yields_is_checked)
{
    const struct wic_pattern *pattern;
    struct wic_pattern_params params = {
        .parties = 2, .slots = 4, .chunk_bytes = 64, .chunks = {{0, 3}, {3}}};
    struct wic_step steps[8];
    size_t count = 0;
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_int_eq(wic_plugin_load(PB_HOSTILE, "hostile_liar", &pattern, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_record(pattern, &params, steps, 8, &count, text, sizeof(text)),
                     -EPROTO);
    ck_assert_ptr_nonnull(strstr(text, "hostile_liar: bad step"));
}
END_TEST

/* --- refused --- */

START_TEST(only_an_absolute_directory_will_do)
{
    ck_assert_int_eq(loaded("plugins", "alternating", "not an absolute path"), -EINVAL);
    ck_assert_int_eq(loaded("./plugins", "alternating", "not an absolute path"), -EINVAL);
    ck_assert_int_eq(loaded("", "alternating", "not an absolute path"), -EINVAL);
    ck_assert_int_eq(loaded(NULL, "alternating", "not an absolute path"), -EINVAL);
    ck_assert_int_eq(loaded("/nowhere/at/all", "alternating", "No such file"), -ENOENT);
    ck_assert_int_eq(loaded("/proc/self/exe", "alternating", "not a directory"), -EPERM);
}
END_TEST

START_TEST(a_name_is_not_a_path)
{
    const char *bad[] = {"",
                         "../alternating",
                         "/etc/passwd",
                         "a/b",
                         "alternating.so",
                         "Alternating",
                         "a234567890123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(loaded(PB_PATTERNS, bad[i], "not a pattern's name"), -EINVAL);
    }
    ck_assert_int_eq(loaded(PB_PATTERNS, NULL, "not a pattern's name"), -EINVAL);
    ck_assert_int_eq(loaded(PB_PATTERNS, "missing", "No such file"), -ENOENT);
}
END_TEST

START_TEST(what_everybody_may_write_is_refused)
{
    copy_plugin("alternating", "alternating.so");
    ck_assert_int_eq(chmod(in_scratch("alternating.so"), 0646), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", "everybody may write"), -EPERM);
    ck_assert_int_eq(chmod(in_scratch("alternating.so"), 0644), 0);
    ck_assert_int_eq(chmod(scratch, 0707), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", "everybody may write"), -EPERM);
    ck_assert_int_eq(chmod(scratch, 01777), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", "everybody may write"), -EPERM);
    ck_assert_int_eq(chmod(scratch, 0700), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", NULL), 0);
}
END_TEST

START_TEST(what_belongs_to_somebody_else_is_refused)
{
    copy_plugin("alternating", "alternating.so");
    if (chown(in_scratch("alternating.so"), 65534, (gid_t)-1) != 0) {
        printf(
            "skipped: what_belongs_to_somebody_else_is_refused: only root can give files away\n");
        return;
    }
    ck_assert_int_eq(loaded(scratch, "alternating", "belongs to user 65534"), -EPERM);
    ck_assert_int_eq(chown(in_scratch("alternating.so"), 0, (gid_t)-1), 0);
    ck_assert_int_eq(chown(scratch, 65534, (gid_t)-1), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", "belongs to user 65534"), -EPERM);
}
END_TEST

START_TEST(links_out_of_the_directory_are_refused)
{
    ck_assert_int_eq(symlink(PB_PATTERNS "/alternating.so", in_scratch("alternating.so")), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", "leads out of the directory"), -EPERM);
    ck_assert_int_eq(unlink(in_scratch("alternating.so")), 0);
    /* A link to a directory whose name has this length is refused, too. */
    char other[] = "/tmp/pb-plugin-XXXXXX";
    char there[64];
    char kept[sizeof(scratch)];
    ck_assert_ptr_nonnull(mkdtemp(other));
    snprintf(there, sizeof(there), "%s/alternating.so", other);
    strcpy(kept, scratch);
    strcpy(scratch, other);
    copy_plugin("alternating", "alternating.so");
    strcpy(scratch, kept);
    ck_assert_int_eq(symlink(there, in_scratch("alternating.so")), 0);
    int rc = loaded(scratch, "alternating", "leads out of the directory");
    unlink(there);
    rmdir(other);
    ck_assert_int_eq(rc, -EPERM);
    ck_assert_int_eq(unlink(in_scratch("alternating.so")), 0);
    /* Below is out of it, too. */
    ck_assert_int_eq(mkdir(in_scratch("below"), 0777), 0);
    copy_plugin("alternating", "below/alternating.so");
    ck_assert_int_eq(symlink("below/alternating.so", in_scratch("alternating.so")), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", "leads out of the directory"), -EPERM);
    ck_assert_int_eq(unlink(in_scratch("alternating.so")), 0);
    ck_assert_int_eq(symlink("loop.so", in_scratch("loop.so")), 0);
    ck_assert_int_eq(loaded(scratch, "loop", "symbolic links"), -ELOOP);
    /* A version's real name next door is the usual way. */
    copy_plugin("alternating", "alternating.so.1");
    ck_assert_int_eq(symlink("alternating.so.1", in_scratch("alternating.so")), 0);
    ck_assert_int_eq(loaded(scratch, "alternating", NULL), 0);
}
END_TEST

START_TEST(what_is_no_regular_file_is_refused)
{
    ck_assert_int_eq(mkdir(in_scratch("folder.so"), 0755), 0);
    ck_assert_int_eq(loaded(scratch, "folder", "not a regular file"), -EPERM);
    ck_assert_int_eq(mkfifo(in_scratch("fifo.so"), 0644), 0);
    ck_assert_int_eq(loaded(scratch, "fifo", "not a regular file"), -EPERM);
}
END_TEST

START_TEST(what_is_no_shared_object_is_refused)
{
    int fd = open(in_scratch("text.so"), O_WRONLY | O_CREAT, 0644);
    ck_assert_int_eq(write(fd, "hello", 5), 5);
    close(fd);
    ck_assert_int_eq(loaded(scratch, "text", "text.so"), -ELIBBAD);
}
END_TEST

/* Bytes of a plugin that the loader maps. */
static off_t mapped_bytes(const char *path)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) part;
    off_t most = 0;
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
    for (int i = 0; i < header.e_phnum; i++) {
        off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof(part));
        ck_assert_int_eq(pread(fd, &part, sizeof(part), at), sizeof(part));
        off_t end = (off_t)(part.p_offset + part.p_filesz);
        most = part.p_type == PT_LOAD && end > most ? end : most;
    }
    close(fd);
    return most;
}

START_TEST(what_was_copied_half_is_refused_wherever_it_ends)
{
    copy_plugin("alternating", "whole.so");
    off_t most = mapped_bytes(in_scratch("whole.so"));
    const off_t sizes[] = {0, 7, 63, 64, most / 4, most / 2, most / 4 * 3, most - 100, most - 1};
    ck_assert_int_gt(most, 1000);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        copy_plugin("alternating", "cut.so");
        ck_assert_int_eq(truncate(in_scratch("cut.so"), sizes[i]), 0);
        ck_assert_int_eq(loaded(scratch, "cut", "cut off"), -ELIBBAD);
    }
    ck_assert_int_eq(truncate(in_scratch("whole.so"), most), 0);
    ck_assert_int_eq(loaded(scratch, "whole", "contains the pattern alternating"), -EPROTO);
}
END_TEST

START_TEST(plugins_of_another_kind_are_refused)
{
    ck_assert_int_eq(loaded(PB_HOSTILE, "hostile_abi", "made for ABI 3"), -EPROTO);
    ck_assert_int_eq(
        loaded(PB_HOSTILE, "hostile_old", "made for ABI 1, this program has 2; build it again"),
        -EPROTO);
    ck_assert_int_eq(loaded(PB_HOSTILE, "hostile_size", "16 bytes"), -EPROTO);
    ck_assert_int_eq(loaded(PB_HOSTILE, "hostile_symbol", "no symbol wic_pattern_plugin"),
                     -ENOEXEC);
    ck_assert_int_eq(loaded(PB_HOSTILE, "hostile_unresolved", "nobody_has_this"), -ELIBBAD);
    ck_assert_int_eq(loaded(PB_HOSTILE, "hostile_name", "name is not"), -EINVAL);
    ck_assert_int_eq(loaded(PB_HOSTILE, "hostile_next", "lacks one of"), -EINVAL);
    ck_assert_int_eq(loaded(PB_HOSTILE, "hostile_misnamed", "contains the pattern alternating"),
                     -EPROTO);
    ck_assert_ptr_null(wic_pattern_at(1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_plugin");
    TCase *good = tcase_create("good");
    tcase_add_checked_fixture(good, scratch_make, scratch_remove);
    tcase_add_test(good, plugin_is_loaded_once_and_found_by_name);
    tcase_add_test(good, copy_elsewhere_is_another_pattern_of_the_same_name);
    tcase_add_test(good, alternating_moves_real_data_both_ways_on_the_host);
    tcase_add_test(good, probabilistic_moves_data_both_ways_on_the_host);
    tcase_add_test(good, unidirectional_is_replayed_by_the_same_code);
    tcase_add_test(good, what_a_plugin_yields_is_checked);
    suite_add_tcase(suite, good);
    TCase *refused = tcase_create("refused");
    tcase_add_checked_fixture(refused, scratch_make, scratch_remove);
    tcase_add_test(refused, only_an_absolute_directory_will_do);
    tcase_add_test(refused, a_name_is_not_a_path);
    tcase_add_test(refused, what_everybody_may_write_is_refused);
    tcase_add_test(refused, what_belongs_to_somebody_else_is_refused);
    tcase_add_test(refused, links_out_of_the_directory_are_refused);
    tcase_add_test(refused, what_is_no_regular_file_is_refused);
    tcase_add_test(refused, what_is_no_shared_object_is_refused);
    tcase_add_test(refused, what_was_copied_half_is_refused_wherever_it_ends);
    tcase_add_test(refused, plugins_of_another_kind_are_refused);
    suite_add_tcase(suite, refused);
    return run_suite(suite);
}
