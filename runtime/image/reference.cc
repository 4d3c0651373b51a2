// SPDX-License-Identifier: Apache-2.0
// Parses the grammar from the right: digest, tag, registry, repository. See reference.h.
#include "runtime/image/reference.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::image {
namespace {

bool lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool alnum(char c) { return lower(c) || (c >= 'A' && c <= 'Z'); }
bool all(std::string_view text, bool (*is)(char)) { return std::all_of(text.begin(), text.end(), is); }

// [\w][\w.-]{0,127}
bool is_tag(std::string_view tag) {
  auto word = [](char c) { return alnum(c) || c == '_'; };
  return !tag.empty() && tag.size() <= kTagMax && word(tag[0]) &&
         std::all_of(tag.begin(), tag.end(), [&](char c) { return word(c) || c == '.' || c == '-'; });
}

// Letters and digits, separated by single dots or underscores, double underscores, or any number of dashes.
bool is_path_component(std::string_view part) {
  if (part.empty() || !lower(part.front()) || !lower(part.back())) return false;
  for (size_t i = 0; i < part.size();) {
    if (lower(part[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (!lower(part[end])) ++end;  // terminates: the last one is a letter or digit
    std::string_view separator = part.substr(i, end - i);
    bool dashes = separator.find_first_not_of('-') == separator.npos;
    if (!dashes && separator != "." && separator != "_" && separator != "__") return false;
    i = end;
  }
  return true;
}

bool is_ipv6(std::string_view text) {  // only checks the characters; connecting checks the rest
  return text.size() >= 2 && text.find(':') != text.npos &&
         all(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':'; });
}

bool is_host(std::string_view host) {
  for (std::string_view label : split(host, '.')) {
    if (label.empty() || !alnum(label.front()) || !alnum(label.back())) return false;
    if (!all(label, [](char c) { return alnum(c) || c == '-'; })) return false;
  }
  return true;
}

bool is_registry(std::string_view registry) {
  std::string_view port;
  bool good;
  if (registry.starts_with('[')) {
    size_t close = registry.find(']');
    if (close == registry.npos) return false;
    good = is_ipv6(registry.substr(1, close - 1));
    port = registry.substr(close + 1);
  } else {
    size_t colon = registry.find(':');
    good = is_host(registry.substr(0, colon));
    port = colon == registry.npos ? std::string_view() : registry.substr(colon);
  }
  if (port.empty()) return good;
  auto number = port[0] == ':' ? parse_number<uint16_t>(port.substr(1)) : std::nullopt;
  return good && number && *number != 0;
}

// Docker's rule: the first component is a registry if it could not be part of a repository's name.
bool looks_like_registry(std::string_view part) {
  return part.find_first_of(".:[") != part.npos || part == "localhost" || to_lower(part) != part;
}

Error invalid(std::string_view text, const std::string& why) {
  return Error(Code::invalid, "invalid image reference " + quoted(text.substr(0, 300)) + ": " + why);
}

}  // namespace

std::string Reference::text() const {
  std::string out = name();
  if (!tag.empty()) out += ":" + tag;
  if (digest) out += "@" + digest->text();
  return out;
}

Result<Reference> parse_reference(std::string_view text) {
  Reference reference;
  std::string_view rest = text;
  if (rest.empty()) return invalid(text, "it is empty");
  if (size_t at = rest.find('@'); at != rest.npos) {
    auto digest = Digest::parse(rest.substr(at + 1));
    if (!digest) return invalid(text, digest.error().text());
    reference.digest = *digest;
    rest = rest.substr(0, at);
  }
  size_t slash = rest.rfind('/');
  if (size_t colon = rest.rfind(':'); colon != rest.npos && (slash == rest.npos || colon > slash)) {
    reference.tag = rest.substr(colon + 1);
    if (!is_tag(reference.tag)) return invalid(text, "the tag may hold letters, digits, _ . - and has 1 to 128 of them");
    rest = rest.substr(0, colon);
  }
  size_t first = rest.find('/');
  if (first != rest.npos && looks_like_registry(rest.substr(0, first))) {
    reference.registry = rest.substr(0, first);
    rest = rest.substr(first + 1);
    if (!is_registry(reference.registry)) return invalid(text, "the registry is no host[:port]");
  } else {
    reference.registry = "docker.io";
  }
  if (reference.registry == "index.docker.io") reference.registry = "docker.io";
  for (std::string_view part : split(rest, '/'))
    if (!is_path_component(part))
      return invalid(text, to_lower(part) != part
                               ? "the repository must be lower case"
                               : "the repository's parts are lower-case letters and digits, joined by . _ __ or -");
  auto hex_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (first == rest.npos && rest.size() == 64 && all(rest, hex_digit)) return invalid(text, "a bare image id is no name");
  reference.repository =
      reference.registry == "docker.io" && rest.find('/') == rest.npos ? "library/" + std::string(rest) : std::string(rest);
  if (reference.name().size() > kReferenceNameMax) return invalid(text, "the name is longer than 255 characters");
  if (reference.tag.empty() && !reference.digest) reference.tag = "latest";
  return reference;
}

}  // namespace coracle::image
