// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_BFS_CUH
#define WIC_APP_BFS_CUH
// G_BFS: levels of a breadth-first search in an R-MAT graph, whose vertices a hash gives to one of
// the parties. In a step each sends the other's vertices that it reached in the step before; the
// data decides how many chunks that takes and when the search ends. Size: n = log2 of the vertices,
// m = edges of a vertex.
#include "wic/apps/app.cuh"

#include <algorithm>
#include <vector>

constexpr uint32_t bfs_steps_most = 64;

// A list that only grows. Entries at[s] .. at[s + 1] - 1 are those of step s.
struct bfs_list {
    uint32_t *entry, *count, *at;
};

struct bfs_view {
    uint32_t vertices, edges, units; // units: size of a chunk
    uint32_t *start, *edge;          // neighbours of own v: edge[start[v]], ...
    uint32_t *level;                 // own vertices: level; others: the step that sends them
    bfs_list found;                  // own vertices found by own edges, by level
    uint32_t *passed;                // number of these received in the same step, by level
    bfs_list given;                  // own vertices found by the other party, by level
    bfs_list outbox;                 // vertices to be sent, by step
    bfs_list inbox;                  // vertices received, by step, for the verification
    uint32_t *heard;                 // header received in each step: (step + 1) * 2 + is_active
    uint32_t *steps;                 // number of settled steps
};

struct bfs : app_base<bfs_view> {
    using view = bfs_view;
    static constexpr uint32_t none = UINT32_MAX;
    static constexpr app_facts facts = {"bfs",         "G_BFS",          "probabilistic",  "random",
                                        APP_EXCHANGES, sizeof(uint32_t), sizeof(uint32_t), true};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 8, 4}, {"small", 18, 16}, {"middle", 20, 16}, {"large", 22, 16}};

    static view lay_out(const app_size &size, int, app_arena &arena)
    {
        view v = {};
        v.vertices = 1u << size.n;
        v.edges = size.m << size.n;
        v.units = size.n < 16 ? 32 : 16384;
        v.start = arena.take<uint32_t>(v.vertices + 1);
        v.edge = arena.take<uint32_t>(2 * size_t(v.edges));
        v.level = arena.take<uint32_t>(v.vertices);
        for (bfs_list *list : {&v.found, &v.given, &v.outbox, &v.inbox}) {
            list->entry = arena.take<uint32_t>(v.vertices);
            list->count = arena.take<uint32_t>(1);
            list->at = arena.take<uint32_t>(bfs_steps_most + 3);
        }
        v.passed = arena.take<uint32_t>(bfs_steps_most + 3);
        v.heard = arena.take<uint32_t>(bfs_steps_most);
        v.steps = arena.take<uint32_t>(1);
        return v;
    }
    static app_step most(const app_size &size)
    {
        const view v = app_view<bfs>(size, 0, nullptr);
        const uint32_t chunks = v.vertices / (v.units - 1) + 1;
        return {0, 0, chunks, chunks, v.units, v.units};
    }
    static APP_DO int owner(uint32_t vertex)
    {
        return (vertex * 0x9e3779b1u) >> 31;
    }
    static APP_DO uint32_t size_at(const bfs_list &list, uint32_t step)
    {
        return list.at[step + 1] - list.at[step];
    }
    // True if the party found vertices of its own for that step. A vertex that was received as well
    // does not count, because chance decides which of the two is first.
    static APP_DO bool is_active(const view &v, uint32_t step)
    {
        return size_at(v.found, step) > v.passed[step];
    }
    // Chunks of a step: a header and vertices in each.
    static APP_DO uint32_t chunks(const view &v, const app_step &step)
    {
        const uint32_t sent = size_at(v.outbox, step.index);
        return sent == 0 ? 1 : (sent + v.units - 2) / (v.units - 1);
    }
    static APP_DO uint32_t ups(const view &v1, const app_step &step)
    {
        return chunks(v1, step);
    }
    // Both parties are done when neither had a vertex to expand or to send in the step before.
    static APP_DO bool next(const view &v, app_step *step)
    {
        const uint32_t s = step->index;
        if (s == bfs_steps_most || (s > 0 && !is_active(v, s) && size_at(v.outbox, s) == 0 &&
                                    size_at(v.outbox, s - 1) == 0 && v.heard[s - 1] % 2 == 0)) {
            return false;
        }
        step->down = chunks(v, *step);
        step->up = v.vertices / (v.units - 1) + 1;
        step->down_units = step->up_units = v.units;
        return true;
    }

    // Ends of an edge: in each level of a quadrant 57, 19, 19 or 5 per cent of them are.
    static void edge_of(uint64_t seed, uint32_t edge, uint32_t levels, uint32_t *from, uint32_t *to)
    {
        *from = *to = 0;
        for (uint32_t level = 0; level < levels; level++) {
            const uint64_t bits = app_random(seed, uint64_t(edge) * 4 + level / 8);
            const uint32_t byte = bits >> (level % 8 * 8) & 255;
            *from = *from * 2 + (byte >= 195);
            *to = *to * 2 + (byte >= 146 && (byte < 195 || byte >= 243));
        }
    }
    static uint32_t levels_of(const view &v)
    {
        uint32_t levels = 0;
        while (1u << levels < v.vertices) {
            levels++;
        }
        return levels;
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        const view *of[2] = {&v0, &v1};
        const uint32_t n = v0.vertices, levels = levels_of(v0);
        std::vector<uint32_t> ends(2 * size_t(v0.edges));
        for (uint32_t i = 0; i < v0.edges; i++) {
            edge_of(seed, i, levels, &ends[2 * size_t(i)], &ends[2 * size_t(i) + 1]);
        }
        const uint32_t source = ends[0];
        for (int party = 0; party < 2; party++) {
            const view &v = *of[party];
            memset(v.start, 0, (n + 1) * sizeof *v.start);
            for (const uint32_t vertex : ends) {
                v.start[vertex + 1] += owner(vertex) == party;
            }
            for (uint32_t i = 0; i < n; i++) {
                v.start[i + 1] += v.start[i];
            }
            std::vector<uint32_t> next_of(v.start, v.start + n);
            for (size_t i = 0; i < ends.size(); i++) {
                if (owner(ends[i]) == party) {
                    v.edge[next_of[ends[i]]++] = ends[i ^ 1];
                }
            }
            memset(v.level, 0xff, n * sizeof *v.level);
            memset(v.heard, 0, bfs_steps_most * sizeof *v.heard);
            memset(v.passed, 0, (bfs_steps_most + 3) * sizeof *v.passed);
            *v.steps = 0;
            for (const bfs_list *list : {&v.found, &v.given, &v.outbox, &v.inbox}) {
                *list->count = 0;
                memset(list->at, 0, (bfs_steps_most + 3) * sizeof *list->at);
            }
            if (owner(source) == party) {
                v.level[source] = 0;
                append(v, v.found, source);
            }
            v.found.at[1] = *v.found.count;
        }
    }

    static APP_DO void append(const view &v, const bfs_list &list, uint32_t vertex)
    {
        const uint32_t at = app_add(list.count, 1u);
        if (at < v.vertices) { // a repeated chunk may bring too many
            list.entry[at] = vertex;
        }
    }
    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        const uint32_t first = v.outbox.at[step.index], sent = size_at(v.outbox, step.index);
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            const uint32_t unit = piece.first + u, i = piece.chunk * (v.units - 1) + unit - 1;
            static_cast<uint32_t *>(to)[u] = unit == 0
                                                 ? (step.index + 1) * 2 + is_active(v, step.index)
                                             : i < sent ? v.outbox.entry[first + i]
                                                        : none;
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            const uint32_t word = static_cast<const uint32_t *>(from)[u];
            if (piece.first + u == 0) {
                if (piece.chunk == 0) {
                    v.heard[step.index] = word;
                }
            } else if (word < v.vertices) {
                append(v, v.inbox, word);
                const uint32_t before = app_min(&v.level[word], step.index);
                if (before > step.index) {
                    append(v, v.given, word);
                }
                if (before == step.index + 1) {
                    app_add(v.passed + before, 1u);
                }
            }
        }
    }

    // The neighbours of vertices that have this level, each by 32 threads or turns of one.
    template <int party>
    static APP_DO void expand(const view &v, const uint32_t *entry, size_t count, uint32_t level,
                              app_part part)
    {
        for (size_t i = part.thread; i < count * 32; i += part.threads) {
            const uint32_t vertex = entry[i / 32];
            const uint32_t end = v.level[vertex] == level ? v.start[vertex + 1] : 0;
            for (uint32_t e = v.start[vertex] + i % 32; e < end; e += 32) {
                if (app_min(&v.level[v.edge[e]], level + 1) == none) {
                    append(v, owner(v.edge[e]) == party ? v.found : v.outbox, v.edge[e]);
                }
            }
        }
    }
    // A vertex found here may be received in the same step, for the level before: then expand() of
    // the next step passes over it.
    template <int party>
    static APP_DO void independent(const view &v, const app_step &step, app_part part)
    {
        const uint32_t s = step.index;
        expand<party>(v, v.found.entry + v.found.at[s], size_at(v.found, s), s, part);
    }
    template <int party>
    static APP_DO void settle(const view &v, const app_step &step, uint32_t phase, app_part part)
    {
        const uint32_t s = step.index;
        if (phase == 0) {
            expand<party>(v, v.given.entry + v.given.at[s], *v.given.count - v.given.at[s], s,
                          part);
        } else if (part.thread == 0) {
            v.found.at[s + 2] = *v.found.count;
            v.outbox.at[s + 2] = *v.outbox.count;
            v.given.at[s + 1] = *v.given.count;
            v.inbox.at[s + 1] = *v.inbox.count;
            *v.steps = s + 1;
        }
    }
    static APP_DO uint32_t settles(const app_step &)
    {
        return 2;
    }

    // All that verify() reads, with the vertices received in a step in ascending order.
    static constexpr bool any_order = true;
    static std::vector<uint32_t> outcome(const view &v0, const view &v1)
    {
        std::vector<uint32_t> all;
        for (const view *v : {&v0, &v1}) {
            const uint32_t n = v->vertices, steps = *v->steps;
            for (uint32_t u = 0; u < n; u++) {
                all.push_back(owner(u) == (v == &v1) ? v->level[u] : 0);
            }
            all.insert(all.end(), {steps, *v->inbox.count});
            for (uint32_t s = 0; s < steps && s < bfs_steps_most; s++) {
                const uint32_t end = std::min(v->inbox.at[s + 1], n);
                const uint32_t first = std::min(v->inbox.at[s], end);
                all.insert(all.end(), {v->heard[s], v->inbox.at[s], v->inbox.at[s + 1]});
                all.insert(all.end(), v->inbox.entry + first, v->inbox.entry + end);
                std::sort(all.end() - (end - first), all.end());
            }
        }
        return all;
    }

    // A search with one queue over both halves of the graph. A vertex is sent by a party one step
    // after the first level in which that party has a neighbour of it.
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        const view *of[2] = {&v0, &v1};
        const uint32_t n = v0.vertices;
        std::vector<uint32_t> level(n, none), queue;
        std::vector<uint32_t> received(n, none); // steps in which the owners receive them
        bool active[2][bfs_steps_most] = {};     // a party has vertices that it found itself
        uint32_t source, other;
        edge_of(seed, 0, levels_of(v0), &source, &other);
        level[source] = 0;
        active[owner(source)][0] = true;
        queue.push_back(source);
        for (size_t i = 0; i < queue.size(); i++) {
            const uint32_t u = queue[i];
            const view &v = *of[owner(u)];
            for (uint32_t e = v.start[u]; e < v.start[u + 1]; e++) {
                const uint32_t w = v.edge[e];
                if (level[w] == none) {
                    level[w] = level[u] + 1;
                    queue.push_back(w);
                }
                if (owner(w) != owner(u) && received[w] == none) {
                    received[w] = level[u] + 1;
                }
                if (owner(w) == owner(u) && level[w] == level[u] + 1 && level[w] < bfs_steps_most) {
                    active[owner(u)][level[w]] = true;
                }
            }
        }
        for (int party = 0; party < 2; party++) {
            const view &v = *of[party];
            uint32_t wanted = 0;
            for (uint32_t u = 0; u < n; u++) {
                if (owner(u) == party && v.level[u] != level[u]) {
                    return app_wrong(why, "level of vertex", u);
                }
                wanted += owner(u) == party && received[u] != none;
            }
            for (uint32_t s = 0; s < *v0.steps; s++) {
                if (v.heard[s] != (s + 1) * 2 + active[1 - party][s]) {
                    return app_wrong(why, "header of step", s);
                }
                for (uint32_t i = v.inbox.at[s]; i < v.inbox.at[s + 1] && i < n; i++) {
                    uint32_t &when = received[v.inbox.entry[i]];
                    if (owner(v.inbox.entry[i]) != party || when != s) {
                        return app_wrong(why, "received vertex", v.inbox.entry[i]);
                    }
                    when = none; // once
                }
            }
            if (*v.steps != *v0.steps || *v.inbox.count != wanted) {
                return app_wrong(why, "number of vertices received by party",
                                 static_cast<uint64_t>(party));
            }
        }
        return true;
    }
};
#endif
