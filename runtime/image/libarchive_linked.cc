// SPDX-License-Identifier: Apache-2.0
// See libarchive.h. For programs that link libarchive.
#include "runtime/image/libarchive.h"

namespace coracle {

#define CORACLE_DEFINE(name) decltype(&::name) name = ::name;
CORACLE_ARCHIVE_FUNCTIONS(CORACLE_DEFINE)
#undef CORACLE_DEFINE

Result<void> load_libarchive() { return {}; }

}  // namespace coracle
