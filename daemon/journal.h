// SPDX-License-Identifier: Apache-2.0
// Where the daemon's log goes: to journald with fields of its own where that listens, else to standard error.
#pragma once

#include "runtime/base/log.h"

namespace coracle {

// For the whole process, from now on. A line becomes MESSAGE, PRIORITY, CORACLE_ROOM and one CORACLE_<FIELD> per field
// (systemd.journal-fields(7)); without a journal it is text, and a file is kept from growing for ever: see text_log.h.
void choose_log(LogLevel level);

}  // namespace coracle
