// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APPS_CUH
#define WIC_APPS_CUH
// All applications (apps.def).
#include "wic/apps/srs.cuh"
#endif
