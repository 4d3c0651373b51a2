// SPDX-License-Identifier: Apache-2.0
// Selects the log output: journald with structured fields if standard error is connected to it, else text on standard error.
#pragma once

#include "runtime/base/log.h"

namespace coracle {

// Sets the log output of the whole process. In the journal a line has the fields MESSAGE, PRIORITY, CORACLE_COMPONENT and one
// CORACLE_<FIELD> per field (systemd.journal-fields(7)). Otherwise it is text; if standard error is a file, its size is limited
// (text_log.h).
void choose_log(LogLevel level);

}  // namespace coracle
