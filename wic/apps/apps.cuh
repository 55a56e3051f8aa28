// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APPS_CUH
#define WIC_APPS_CUH
// All applications (apps.def).
#include "wic/apps/bfs.cuh"
#include "wic/apps/bs.cuh"
#include "wic/apps/c2d.cuh"
#include "wic/apps/cg.cuh"
#include "wic/apps/fe.cuh"
#include "wic/apps/gem.cuh"
#include "wic/apps/h3d.cuh"
#include "wic/apps/kmn.cuh"
#include "wic/apps/srs.cuh"
#include "wic/apps/stn.cuh"
#endif
