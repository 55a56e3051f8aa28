/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A slot is found by its number, the wall clock divided by its length, and has that number in it:
 * after a step of the clock old slots are recognised, and replaced when they are used. The rises
 * between two samples are added to the slot in the middle of them. */
#include "service/web/ring.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX  336
#define NEAREST_MS (PB_WEB_SAMPLE_MS / 2) /* samples that are closer make no rate */
#define APART_MS   (3 * PB_WEB_SAMPLE_MS) /* samples further apart leave a gap */

static const struct {
    const char *name;
    int64_t slot_ms;
    size_t slots;
} spans[PB_WEB_SPANS] = {[PB_WEB_HOUR] = {"hour", 20000, 180},
                         [PB_WEB_DAY] = {"day", 300000, 288},
                         [PB_WEB_WEEK] = {"week", 1800000, SLOTS_MAX}};

struct slot {
    int64_t number;      /* wall clock / length; 0 = never used */
    uint32_t covered_ms; /* time between the samples whose differences are in the sums */
    uint32_t samples;
    double read_bytes, written_bytes;
    float done, failed, cpu_s;
    float waiting, running; /* sums over the samples */
    float waiting_most;
    float busy_s[PB_WEB_STAGES], parked_s[PB_WEB_STAGES];
    float delays[PB_WEB_LIMITS];
};

struct pb_web_ring {
    unsigned cores;
    pthread_mutex_t lock; /* all below */
    struct slot slots[PB_WEB_SPANS][SLOTS_MAX];
    struct pb_web_sample last;
    int64_t last_mono_ms, since_ms; /* since: wall clock of the first sample; 0 = no sample */
};

/* --- metrics --- */

/* Returns what follows `key` at the end of the labels, up to its quote; NULL if they end with
 * another label. A quote inside a value is escaped, therefore a value never contains `key`. */
static const char *last_label(const char *labels, const char *key, char out[32])
{
    const char *found = NULL;
    for (const char *at = labels; (at = strstr(at, key)) != NULL; at += strlen(key))
        found = at + strlen(key);
    const size_t n = found ? strcspn(found, "\"") : 0;
    if (found == NULL || n >= 32 || strcmp(found + n, "\"}") != 0)
        return NULL;
    (void)snprintf(out, 32, "%.*s", (int)n, found);
    return out;
}

/* Adds a count of the histogram, which has those at or below each limit. */
static void read_delay(struct pb_web_sample *sample, double limit_s, double count)
{
    size_t i = 0;
    while (i < sample->n_limits && sample->limit_s[i] < limit_s)
        i++;
    if (i == sample->n_limits && i < PB_WEB_LIMITS)
        sample->limit_s[sample->n_limits++] = limit_s;
    if (i < sample->n_limits)
        sample->delays[i] += count;
}

static void read_stage(struct pb_web_sample *sample, const char *labels, double seconds)
{
    static const char start[] = "{stage=\"";
    char mode[32];
    if (strncmp(labels, start, sizeof start - 1) != 0 ||
        last_label(labels, ",mode=\"", mode) == NULL)
        return;
    const char *name = labels + sizeof start - 1;
    const size_t n = strcspn(name, "\"");
    for (size_t i = 0; i < PB_WEB_STAGES && n < sizeof sample->stage[i].name; i++) {
        if (sample->stage[i].name[0] == '\0')
            (void)snprintf(sample->stage[i].name, sizeof sample->stage[i].name, "%.*s", (int)n,
                           name);
        if (strncmp(sample->stage[i].name, name, n) != 0 || sample->stage[i].name[n] != '\0')
            continue;
        if (strcmp(mode, "busy") == 0)
            sample->stage[i].busy_s += seconds;
        else if (strcmp(mode, "parked") == 0)
            sample->stage[i].parked_s += seconds;
        return;
    }
}

/* labels: with their braces, or "". */
static void read_metric(struct pb_web_sample *sample, const char *name, const char *labels,
                        double value)
{
    const struct {
        const char *name;
        double *sum;
    } plain[] = {{"start_time_seconds", &sample->start_s},
                 {"bytes_read_total", &sample->read_bytes},
                 {"bytes_written_total", &sample->written_bytes},
                 {"process_cpu_seconds_total", &sample->cpu_s},
                 {"queue_depth", &sample->waiting},
                 {"jobs_running", &sample->running}};
    char label[32];
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(name, plain[i].name) == 0)
            *plain[i].sum += value;
    if (strcmp(name, "jobs_total") == 0 && last_label(labels, ",state=\"", label) != NULL) {
        sample->done += strcmp(label, "successful") == 0 ? value : 0;
        sample->failed += strcmp(label, "failed") == 0 ? value : 0;
    } else if (strcmp(name, "stage_duration_seconds_total") == 0) {
        read_stage(sample, labels, value);
    } else if (strcmp(name, "delivery_to_product_seconds_bucket") == 0 &&
               last_label(labels, ",le=\"", label) != NULL) {
        read_delay(sample, strtod(label, NULL), value);
    }
}

void pb_web_sample_read(const char *text, struct pb_web_sample *out)
{
    static const char prefix[] = "pushbroom_";
    char line[512];
    *out = (struct pb_web_sample){0};
    for (const char *at = text; *at != '\0';) {
        const size_t n = strcspn(at, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : 0), at);
        at += n + (at[n] == '\n');
        char *value = strrchr(line, ' ');
        if (strncmp(line, prefix, sizeof prefix - 1) != 0 || value == NULL)
            continue;
        *value++ = '\0';
        char *name = line + sizeof prefix - 1, name_of[64], *labels = name + strcspn(name, "{");
        (void)snprintf(name_of, sizeof name_of, "%.*s", (int)(labels - name), name);
        const double number = strtod(value, NULL);
        if (number >= 0 && number < 1e18)
            read_metric(out, name_of, labels, number);
    }
    for (size_t i = out->n_limits; i-- > 1;)
        out->delays[i] = fmax(0, out->delays[i] - out->delays[i - 1]);
}

/* --- slots --- */

struct pb_web_ring *pb_web_ring_create(unsigned cores)
{
    struct pb_web_ring *ring = calloc(1, sizeof *ring);
    if (ring != NULL) {
        ring->cores = cores;
        (void)pthread_mutex_init(&ring->lock, NULL);
    }
    return ring;
}

void pb_web_ring_destroy(struct pb_web_ring *ring)
{
    if (ring != NULL)
        (void)pthread_mutex_destroy(&ring->lock);
    free(ring);
}

static struct slot *slot_of(struct pb_web_ring *ring, unsigned span, int64_t number)
{
    return &ring->slots[span][(size_t)number % spans[span].slots];
}

static float rise(double now, double before)
{
    return now > before ? (float)(now - before) : 0;
}

static void add_rises(struct slot *slot, const struct pb_web_sample *now,
                      const struct pb_web_sample *before)
{
    slot->done += rise(now->done, before->done);
    slot->failed += rise(now->failed, before->failed);
    slot->cpu_s += rise(now->cpu_s, before->cpu_s);
    slot->read_bytes += fmax(0, now->read_bytes - before->read_bytes);
    slot->written_bytes += fmax(0, now->written_bytes - before->written_bytes);
    for (size_t i = 0; i < PB_WEB_STAGES; i++) {
        slot->busy_s[i] += rise(now->stage[i].busy_s, before->stage[i].busy_s);
        slot->parked_s[i] += rise(now->stage[i].parked_s, before->stage[i].parked_s);
    }
    for (size_t i = 0; i < now->n_limits; i++)
        slot->delays[i] += rise(now->delays[i], before->delays[i]);
    slot->waiting += (float)now->waiting;
    slot->waiting_most = fmaxf(slot->waiting_most, (float)now->waiting);
    slot->running += (float)now->running;
    slot->samples++;
}

/* Drops delays with other limits, and times of other stages: they cannot be added to the new ones.
 * Call with the lock. */
static void drop_others(struct pb_web_ring *ring, const struct pb_web_sample *sample)
{
    bool same = true;
    if (ring->last.n_limits > 0 && sample->n_limits > 0)
        same = ring->last.n_limits == sample->n_limits &&
               memcmp(ring->last.limit_s, sample->limit_s, sizeof sample->limit_s) == 0;
    for (size_t i = 0; i < PB_WEB_STAGES; i++)
        same = same && (ring->last.stage[i].name[0] == '\0' || sample->stage[i].name[0] == '\0' ||
                        strcmp(ring->last.stage[i].name, sample->stage[i].name) == 0);
    for (unsigned span = 0; !same && span < PB_WEB_SPANS; span++)
        for (size_t i = 0; i < spans[span].slots; i++) {
            struct slot *slot = &ring->slots[span][i];
            memset(slot->delays, 0, sizeof slot->delays);
            memset(slot->busy_s, 0, sizeof slot->busy_s);
            memset(slot->parked_s, 0, sizeof slot->parked_s);
        }
}

/* Keeps the sample as the last one, with the limits and stages of earlier ones that a service
 * without finished jobs does not print. Call with the lock. */
static void keep_last(struct pb_web_ring *ring, const struct pb_web_sample *sample, int64_t mono_ms)
{
    const struct pb_web_sample before = ring->last;
    ring->last = *sample;
    ring->last_mono_ms = mono_ms;
    if (sample->n_limits == 0) {
        memcpy(ring->last.limit_s, before.limit_s, sizeof before.limit_s);
        ring->last.n_limits = before.n_limits;
    }
    for (size_t i = 0; i < PB_WEB_STAGES; i++)
        if (sample->stage[i].name[0] == '\0')
            memcpy(ring->last.stage[i].name, before.stage[i].name, sizeof before.stage[i].name);
}

void pb_web_ring_add(struct pb_web_ring *ring, int64_t wall_ms, int64_t mono_ms,
                     const struct pb_web_sample *sample)
{
    static const struct pb_web_sample start; /* counters of a service that has just started */
    (void)pthread_mutex_lock(&ring->lock);
    const bool first = ring->since_ms == 0;
    const int64_t apart_ms = mono_ms - ring->last_mono_ms;
    if (first)
        ring->since_ms = wall_ms;
    if (first || apart_ms >= NEAREST_MS) {
        drop_others(ring, sample);
        const bool again = fabs(sample->start_s - ring->last.start_s) > 0.0005;
        const int64_t middle_ms = wall_ms - apart_ms / 2;
        for (unsigned span = 0; !first && apart_ms <= APART_MS && span < PB_WEB_SPANS; span++) {
            const int64_t number = middle_ms / spans[span].slot_ms;
            struct slot *slot = slot_of(ring, span, number);
            if (slot->number != number)
                *slot = (struct slot){.number = number};
            slot->covered_ms += (uint32_t)apart_ms;
            add_rises(slot, sample, again ? &start : &ring->last);
        }
        keep_last(ring, sample, mono_ms);
    }
    (void)pthread_mutex_unlock(&ring->lock);
}

/* --- JSON --- */

bool pb_web_span_read(const char *text, enum pb_web_span *out)
{
    *out = PB_WEB_HOUR;
    for (unsigned i = 0; text != NULL && i < PB_WEB_SPANS; i++)
        if (strcmp(text, spans[i].name) == 0) {
            *out = (enum pb_web_span)i;
            return true;
        }
    return text == NULL;
}

/* Value at or below which the fraction q of the counts is: linear between two limits, as
 * histogram_quantile of Prometheus. NAN without counts. */
static double quantile(const struct pb_web_sample *limits, const float *delays, double q)
{
    double all = 0, below = 0;
    for (size_t i = 0; i < limits->n_limits; i++)
        all += (double)delays[i];
    if (all <= 0)
        return NAN;
    for (size_t i = 0; i < limits->n_limits; i++) {
        const double from = i > 0 ? limits->limit_s[i - 1] : 0, count = (double)delays[i];
        if (below + count >= q * all && count > 0)
            return isinf(limits->limit_s[i])
                       ? from
                       : from + (limits->limit_s[i] - from) * (q * all - below) / count;
        below += count;
    }
    return NAN;
}

/* A column of the answer: a value of each slot; NAN = null. */
enum column {
    COVERED,
    DONE,
    FAILED,
    READ,
    WRITTEN,
    P50,
    P99,
    WAITING,
    WAITING_MOST,
    RUNNING,
    CPU,
    COLUMNS
};
static const char *const column_name[COLUMNS] = {
    [COVERED] = "covered_s",
    [DONE] = "done",
    [FAILED] = "failed",
    [READ] = "read_bytes",
    [WRITTEN] = "written_bytes",
    [P50] = "p50_s",
    [P99] = "p99_s",
    [WAITING] = "waiting",
    [WAITING_MOST] = "waiting_most",
    [RUNNING] = "running",
    [CPU] = "cpu_share",
};

static double value_of(const struct pb_web_ring *ring, const struct slot *slot, enum column column)
{
    const double samples = slot->samples, covered_s = slot->covered_ms / 1000.0;
    switch (column) {
    case COVERED:
        return covered_s;
    case DONE:
        return (double)slot->done;
    case FAILED:
        return (double)slot->failed;
    case READ:
        return slot->read_bytes;
    case WRITTEN:
        return slot->written_bytes;
    case P50:
        return quantile(&ring->last, slot->delays, 0.5);
    case P99:
        return quantile(&ring->last, slot->delays, 0.99);
    case WAITING:
        return (double)slot->waiting / samples;
    case WAITING_MOST:
        return (double)slot->waiting_most;
    case RUNNING:
        return (double)slot->running / samples;
    case CPU:
        return (double)slot->cpu_s / (covered_s * ring->cores);
    case COLUMNS:
        break;
    }
    return NAN;
}

/* Part of the time of all threads in which they were busy with a stage, or (PB_WEB_STAGES) parked.
 * It is no share of the threads of that stage: those of the CPU do all stages in turn. */
static double thread_share(const struct slot *slot, size_t stage)
{
    double busy_s = 0, parked_s = 0;
    for (size_t i = 0; i < PB_WEB_STAGES; i++) {
        busy_s += (double)slot->busy_s[i];
        parked_s += (double)slot->parked_s[i];
    }
    const double part_s = stage < PB_WEB_STAGES ? (double)slot->busy_s[stage] : parked_s;
    return busy_s + parked_s > 0 ? part_s / (busy_s + parked_s) : NAN;
}

/* Returns the name of the i-th part; NULL after the last one. */
static const char *part_of(const struct pb_web_ring *ring, size_t i, size_t *out_stage)
{
    size_t n = 0;
    while (n < PB_WEB_STAGES && ring->last.stage[n].name[0] != '\0')
        n++;
    *out_stage = i < n ? i : PB_WEB_STAGES;
    return i < n ? ring->last.stage[i].name : i == n && n > 0 ? "parked" : NULL;
}

static void put(struct pb_json *json, const char *key, double value)
{
    pb_json_number(json, key, round(value * 1000) / 1000);
}

/* Writes a list with a value for each slot, oldest first. */
static void put_column(struct pb_json *json, struct pb_web_ring *ring, enum pb_web_span span,
                       int64_t last, enum column column)
{
    pb_json_array(json, column_name[column]);
    for (int64_t number = last - (int64_t)spans[span].slots + 1; number <= last; number++) {
        const struct slot *slot = slot_of(ring, span, number);
        put(json, NULL, slot->number == number ? value_of(ring, slot, column) : NAN);
    }
    pb_json_end(json);
}

/* Writes how the time of threads was divided. */
static void put_parts(struct pb_json *json, struct pb_web_ring *ring, enum pb_web_span span,
                      int64_t last)
{
    const char *name;
    size_t stage = 0;
    pb_json_object(json, "thread_share");
    for (size_t i = 0; (name = part_of(ring, i, &stage)) != NULL; i++) {
        pb_json_array(json, name);
        for (int64_t number = last - (int64_t)spans[span].slots + 1; number <= last; number++) {
            const struct slot *slot = slot_of(ring, span, number);
            put(json, NULL, slot->number == number ? thread_share(slot, stage) : NAN);
        }
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* Writes sums over the span. */
static void put_all(struct pb_json *json, struct pb_web_ring *ring, enum pb_web_span span,
                    int64_t last)
{
    struct slot all = {0};
    double done = 0, failed = 0, covered_s = 0;
    const char *name;
    size_t stage = 0;
    for (int64_t number = last - (int64_t)spans[span].slots + 1; number <= last; number++) {
        const struct slot *slot = slot_of(ring, span, number);
        if (slot->number != number)
            continue;
        done += (double)slot->done;
        failed += (double)slot->failed;
        all.read_bytes += slot->read_bytes;
        all.written_bytes += slot->written_bytes;
        for (size_t i = 0; i < PB_WEB_LIMITS; i++)
            all.delays[i] += slot->delays[i];
        for (size_t i = 0; i < PB_WEB_STAGES; i++) {
            all.busy_s[i] += slot->busy_s[i];
            all.parked_s[i] += slot->parked_s[i];
        }
        all.cpu_s += slot->cpu_s;
        covered_s += slot->covered_ms / 1000.0;
    }
    pb_json_object(json, "all");
    pb_json_number(json, "done", done);
    pb_json_number(json, "failed", failed);
    pb_json_number(json, "read_bytes", all.read_bytes);
    pb_json_number(json, "written_bytes", all.written_bytes);
    put(json, "p50_s", quantile(&ring->last, all.delays, 0.5));
    put(json, "p99_s", quantile(&ring->last, all.delays, 0.99));
    put(json, "cpu_share", covered_s > 0 ? (double)all.cpu_s / (covered_s * ring->cores) : NAN);
    pb_json_object(json, "thread_share");
    for (size_t i = 0; (name = part_of(ring, i, &stage)) != NULL; i++)
        put(json, name, thread_share(&all, stage));
    pb_json_end(json);
    pb_json_end(json);
}

char *pb_web_ring_text(struct pb_web_ring *ring, enum pb_web_span span, int64_t wall_ms)
{
    char since[PB_CLOCK_TEXT_BYTES];
    const int64_t slot_ms = spans[span].slot_ms, last = wall_ms / slot_ms;
    struct pb_json *json = pb_json_create(false);
    (void)pthread_mutex_lock(&ring->lock);
    pb_clock_text(ring->since_ms, since);
    pb_json_object(json, NULL);
    pb_json_string(json, "span", spans[span].name);
    pb_json_string(json, "since", since[0] ? since : NULL);
    pb_json_int(json, "slot_s", slot_ms / 1000);
    pb_json_int(json, "first_s", (last - (int64_t)spans[span].slots + 1) * slot_ms / 1000);
    pb_json_int(json, "slots", (int64_t)spans[span].slots);
    pb_json_int(json, "cores", ring->cores);
    for (int column = 0; column < COLUMNS; column++)
        put_column(json, ring, span, last, (enum column)column);
    put_parts(json, ring, span, last);
    put_all(json, ring, span, last);
    pb_json_end(json);
    (void)pthread_mutex_unlock(&ring->lock);
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}
