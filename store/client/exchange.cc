// SPDX-License-Identifier: Apache-2.0
// See exchange.h.
#include "store/client/exchange.h"

#include "runtime/base/text.h"

namespace coracle {
namespace {

constexpr size_t kAnswerBytesMax = 512u << 20;  // of a response in memory
constexpr size_t kErrorBytesMax = 1u << 20;     // of a failed stream's body

bool is_success(int status) { return status >= 200 && status < 300; }

// Extracts the text of `299 - "text"`, with \" and \\ inside.
std::string warning_text(std::string_view value) {
  size_t open = value.find('"');
  if (open == value.npos) return std::string(value);
  std::string text;
  for (size_t i = open + 1; i < value.size() && value[i] != '"'; ++i) {
    if (value[i] == '\\' && i + 1 < value.size()) ++i;
    text += value[i];
  }
  return text;
}

}  // namespace

void Exchange::take_head_line(std::string_view line, int status) {
  if (trim(line).empty()) {  // the headers are complete
    if (begun && *begun && is_success(status)) (*begun)();
    return;
  }
  if (line.starts_with("HTTP/")) {  // "HTTP/1.1 404 Not Found"
    size_t reason = line.find(' ', std::min(line.find(' '), line.size() - 1) + 1);
    answer.reason = reason == line.npos ? std::string_view() : trim(line.substr(reason));
    return;
  }
  size_t colon = line.find(':');
  if (colon == line.npos) return;
  std::string name = to_lower(line.substr(0, colon));
  std::string_view value = trim(line.substr(colon + 1));
  if (name == "content-type") answer.content_type = value;
  else if (name == "retry-after") answer.retry_after_seconds = parse_number<int>(value).value_or(0);
  else if (name == "warning") answer.warnings.push_back(warning_text(value));
}

bool Exchange::take_body(std::string_view bytes, int status) {
  if (sink && is_success(status)) {
    sink_ended = !(*sink)(bytes);
    return !sink_ended;
  }
  too_large = answer.body.size() + bytes.size() > (sink ? kErrorBytesMax : kAnswerBytesMax);
  if (!too_large) answer.body.append(bytes);
  return !too_large;
}

}  // namespace coracle
