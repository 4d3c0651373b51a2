// SPDX-License-Identifier: Apache-2.0
// The names of the error codes, and the mapping from errno. See result.h.
#include "runtime/base/result.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace coracle {

const char* code_name(Code code) {
  switch (code) {
    case Code::invalid: return "invalid";
    case Code::bad_request: return "bad request";
    case Code::unauthorized: return "unauthorized";
    case Code::forbidden: return "forbidden";
    case Code::not_found: return "not found";
    case Code::method_not_allowed: return "method not allowed";
    case Code::not_acceptable: return "not acceptable";
    case Code::already_exists: return "already exists";
    case Code::conflict: return "conflict";
    case Code::gone: return "gone";
    case Code::too_large: return "too large";
    case Code::unsupported: return "unsupported";
    case Code::too_many_requests: return "too many requests";
    case Code::internal: return "internal";
    case Code::unavailable: return "unavailable";
    case Code::timeout: return "timeout";
    case Code::cancelled: return "cancelled";
  }
  return "unknown";
}

Code code_of_errno(int err) {
  switch (err) {
    case ENOENT:
    case ESRCH:
    case ENXIO:
    case ENODEV: return Code::not_found;
    case EEXIST: return Code::already_exists;
    case EPERM:
    case EACCES:
    case EROFS: return Code::forbidden;
    case EINVAL:
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ERANGE: return Code::invalid;
    case EBUSY:
    case ENOTEMPTY: return Code::conflict;
    case E2BIG:
    case EFBIG:
    case EMSGSIZE: return Code::too_large;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT: return Code::unsupported;
    case ETIMEDOUT:
    case ETIME: return Code::timeout;
    case ECANCELED: return Code::cancelled;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EPIPE:
    case ENOSPC:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return Code::unavailable;
    default: return Code::internal;
  }
}

Error Error::from_errno(int err, std::string_view doing, std::source_location where) {
  std::string text(doing);
  text += ": ";
  text += ::strerrordesc_np(err) ? ::strerrordesc_np(err) : "unknown error";
  Error error(code_of_errno(err), std::move(text), where);
  error.errno_ = err;
  return error;
}

void wrong_side_of_result() {
  std::fputs("<2>bug: the value of a Result that has an error was used, or the reverse\n", stderr);
  std::abort();
}

void bug(const char* what, const char* text, std::source_location where) {
  std::fprintf(stderr, "<2>bug: %s:%u: %s: %s\n", where.file_name(), where.line(), what, text);
  std::abort();
}

}  // namespace coracle
