// SPDX-License-Identifier: Apache-2.0
// Nothing of its own: meson compiles a header beforehand for a library or program that has a file.
#include "runtime/base/precompiled/headers.h"
