// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_JOINS_CUH
#define WIC_BENCH_JOINS_CUH
// What a join costs: the time from the last task of a stage to the first of the next one, where
// each stage needs all of the one before. By workers that stay (wic/depend), by kernels one after
// the other in a stream, in a graph, and in four streams joined by events. False: a task of the
// workers did not see what the tasks before it wrote.
bool measure_joins();
#endif
