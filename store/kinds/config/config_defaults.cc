// SPDX-License-Identifier: Apache-2.0
// Secrets: stringData is write-only; its texts are encoded into data and override existing keys. Source: core/v1 API reference,
// Secret.
#include <map>
#include <string>

#include "runtime/base/text.h"
#include "store/kinds/config/config_kinds.h"

namespace coracle::schema {
namespace {

void merge_string_data(json::object& secret) {
  json::object* plain = object_at(secret, "stringData");
  if (!plain) return;
  std::map<std::string, std::string, std::less<>> merged;
  if (json::object* data = object_at(secret, "data")) {
    for (auto& pair : *data) merged[pair.key()] = text_at(*data, pair.key());
  }
  for (auto& pair : *plain) merged[pair.key()] = base64_encode(text_at(*plain, pair.key()));
  secret.erase("stringData");
  json::object& data = secret["data"].emplace_object();
  for (auto& [name, text] : merged) data.emplace(name, text);
}

constexpr NamedDefaultRule kSecretDefaults[] = {{"io.k8s.api.core.v1.Secret", merge_string_data}};

}  // namespace

std::span<const NamedDefaultRule> secret_defaults() { return kSecretDefaults; }

}  // namespace coracle::schema
