// SPDX-License-Identifier: Apache-2.0
// Precompiled header: the standard headers that nearly every file includes, and Boost.JSON (GCC's manual, "Using Precompiled
// Headers"). Each file still includes what it needs: -Db_pch=false builds without this one.
#ifndef CORACLE_PRECOMPILED_HEADERS_H  // #pragma once is a warning in a header that is compiled by itself
#define CORACLE_PRECOMPILED_HEADERS_H

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/json.hpp>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#endif
