// SPDX-License-Identifier: Apache-2.0
// See negotiate.h.
#include "daemon/api/negotiate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr size_t kMediaTypesMax = 32;
constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";

double quality_of(std::string_view text) {
  double quality = 1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quality);
  bool good = error == std::errc() && end == text.data() + text.size() && std::isfinite(quality);
  return good ? quality : 1;
}

MediaType parse_media_type(std::string_view text) {
  MediaType out;
  auto parts = split(text, ';');
  out.type = to_lower(trim(parts[0]));
  for (size_t i = 1; i < parts.size(); i++) {
    size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos) continue;
    std::string name = to_lower(trim(parts[i].substr(0, equals))), value(trim(parts[i].substr(equals + 1)));
    if (name == "q") out.quality = quality_of(value);
    else out.parameters.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

std::optional<Encoding> encoding_of(std::string_view type) {
  if (type == "application/json" || type == "*/*" || type == "application/*") return Encoding::json;
  if (type == "application/yaml") return Encoding::yaml;
  if (type == kProtobuf) return Encoding::protobuf;
  return std::nullopt;
}

std::optional<As> as_of(const MediaType& type) {
  std::string_view as = type.parameter("as"), version = type.parameter("v");
  if (as.empty() && version.empty() && type.parameter("g").empty()) return As::itself;
  if (type.parameter("g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) return std::nullopt;
  if (as == "Table") return As::table;
  if (as == "PartialObjectMetadata") return As::partial;
  if (as == "PartialObjectMetadataList") return As::partial_list;
  return std::nullopt;
}

bool asks_for_pretty(const Head& head) {
  if (std::string_view asked = head.query.get("pretty"); !asked.empty()) {  // as Go parses a boolean
    static constexpr std::string_view kTrue[] = {"1", "t", "T", "true", "TRUE", "True"};
    return std::find(std::begin(kTrue), std::end(kTrue), asked) != std::end(kTrue);
  }
  std::string_view agent = head.headers.get("User-Agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

// Whether the client wants JSON and says so in the usual ways, or says nothing. These need no parsing.
bool accepts_plain_json(const Head& head) {
  size_t count = head.headers.count("Accept");
  std::string_view accept = head.headers.get("Accept");
  return count == 0 || (count == 1 && (accept == "application/json" || accept == "*/*"));
}

}  // namespace

std::string_view MediaType::parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters)
    if (key == name) return value;
  return {};
}

std::string_view Wanted::media_type() const {
  if (encoding == Encoding::yaml) return "application/yaml";
  return encoding == Encoding::protobuf ? kProtobuf : "application/json";
}

std::vector<MediaType> parse_accept(std::string_view field) {
  std::vector<MediaType> types;
  while (!field.empty() && types.size() < kMediaTypesMax)
    if (std::string_view part = trim(take_part(field, ',')); !part.empty()) types.push_back(parse_media_type(part));
  auto wildcards = [](const MediaType& type) { return std::count(type.type.begin(), type.type.end(), '*'); };
  std::stable_sort(types.begin(), types.end(), [&](const auto& a, const auto& b) {
    return a.quality != b.quality ? a.quality > b.quality : wildcards(a) < wildcards(b);
  });
  return types;
}

std::vector<MediaType> accepted_by(const Head& head) {
  auto fields = head.headers.all("Accept");
  return parse_accept(
      join(std::vector<std::string>(fields.begin(), fields.end()), ","));  // several lines are one list: RFC 9110 section 5.3
}

namespace {

// nullopt if the type is not supported, or not in this offer.
std::optional<Wanted> wanted_as(const MediaType& type, Offer offer) {
  auto encoding = encoding_of(type.type);
  auto as = as_of(type);
  std::string_view stream = type.parameter("stream");
  bool possible = encoding && as && type.quality > 0 && (*as == As::itself || offer != Offer::value) &&
                  !(*as == As::table && *encoding == Encoding::protobuf) &&
                  (stream.empty() || (stream == "watch" && *encoding != Encoding::yaml)) && type.parameter("sv").empty();
  if (!possible) return std::nullopt;
  Wanted wanted;
  wanted.encoding = *encoding, wanted.as = *as;
  if (*as != As::itself) wanted.version = type.parameter("v");
  wanted.pretty = type.parameter("pretty") == "1";
  return wanted;
}

}  // namespace

Result<std::vector<Wanted>> negotiate_all(const Head& head, Offer offer) {
  std::vector<Wanted> all;
  bool pretty = asks_for_pretty(head);
  std::vector<MediaType> types = accepted_by(head);
  if (types.empty()) all.emplace_back();
  for (const MediaType& type : types) {
    auto wanted = wanted_as(type, offer);
    if (!wanted) continue;
    if (offer == Offer::stream && wanted->encoding == Encoding::yaml) break;
    all.push_back(*std::move(wanted));
  }
  for (Wanted& wanted : all) wanted.pretty |= pretty;
  if (!all.empty()) return all;
  return Error(Code::not_acceptable, offer == Offer::stream
                                         ? "only the following media types are accepted: application/json;stream=watch, "
                                           "application/vnd.kubernetes.protobuf;stream=watch"
                                         : "only the following media types are accepted: application/json, application/yaml, "
                                           "application/vnd.kubernetes.protobuf");
}

Result<Wanted> negotiate(const Head& head, Offer offer) {
  if (accepts_plain_json(head)) {
    Wanted wanted;
    wanted.pretty = asks_for_pretty(head);
    return wanted;
  }
  std::vector<Wanted> all = TRY(negotiate_all(head, offer));
  return std::move(all.front());
}

Result<Encoding> body_encoding(std::string_view content_type) {
  if (trim(content_type).empty()) return Encoding::json;
  MediaType type = parse_media_type(content_type);
  auto encoding = type.type.find('*') == std::string::npos ? encoding_of(type.type) : std::nullopt;
  if (encoding) return *encoding;
  return Error(Code::unsupported,
               "the body of the request was in an unknown format - accepted media types include: application/json, "
               "application/yaml, application/vnd.kubernetes.protobuf");
}

}  // namespace coracle::api
