// SPDX-License-Identifier: Apache-2.0
// What nearly every test includes, compiled once: as runtime/base/precompiled/headers.h, with GoogleTest.
#ifndef CORACLE_TESTS_PRECOMPILED_HEADERS_H
#define CORACLE_TESTS_PRECOMPILED_HEADERS_H

#include <gtest/gtest.h>

#include "runtime/base/precompiled/headers.h"

#endif
