// SPDX-License-Identifier: Apache-2.0
// See raw.h.
#include "ctl/raw.h"

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

constexpr size_t kRawBodyBytesMax = 64 << 20;

Result<void> check_raw(const RawRequest& raw) {
  if (raw.other_flags)
    return Error(Code::bad_request,
                 "--raw may not be specified with other flags that filter the server request or alter the output");
  if (raw.needs_file && raw.files.empty()) return Error(Code::bad_request, "must specify one of -f and -k");
  if (raw.files.size() > 1) return Error(Code::bad_request, "--raw can only use a single local file or stdin");
  for (const auto& file : raw.files)
    if (file.starts_with("http://") || file.starts_with("https://"))
      return Error(Code::bad_request, "--raw cannot read from a url");
  if (!raw.path.starts_with('/'))
    return Error(Code::bad_request,
                 "--raw must be a valid URL path: parse " + coracle::quoted(raw.path) + ": invalid URI for request");
  return {};
}

Result<std::string> body_of(const RawRequest& raw) {
  if (raw.files.empty()) return std::string();
  if (raw.files.front() == "-") return sys::read_standard_input(kRawBodyBytesMax);
  auto text = sys::read_file(raw.files.front(), kRawBodyBytesMax);
  if (!text && text.error().err() == ENOENT)
    return Error(Code::not_found, "open " + raw.files.front() + ": no such file or directory");
  return text;
}

// What no URL may hold as it is. What is encoded already stays so.
std::string encoded(const std::string& path) {
  std::string text;
  for (char c : path) text += c > ' ' && c < '\x7f' ? std::string(1, c) : percent_encode(std::string_view(&c, 1));
  return text;
}

}  // namespace

Result<int> run_raw(Commands& commands, const RawRequest& raw) {
  TRY(check_raw(raw));
  Session* session = TRY(commands.session());
  Request request{.method = raw.method, .path = encoded(raw.path), .path_as_typed = true};
  request.body = TRY(body_of(raw));
  request.accept = "application/json, */*";
  auto done = session->stream(request, [](std::string_view bytes) { return out(bytes), true; });
  if (done) return 0;
  bool foreign = done.error().code() == Code::not_found && done.error().text().starts_with("the server answered ");
  if (foreign) return Error(Code::not_found, "the server could not find the requested resource").with({});  // as kubectl says it
  return done.take_error();
}

}  // namespace coracle::ctl
