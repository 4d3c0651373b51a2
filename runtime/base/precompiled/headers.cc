// SPDX-License-Identifier: Apache-2.0
// Empty: meson compiles the header in advance only for a library or program that has a source file.
#include "runtime/base/precompiled/headers.h"
