// SPDX-License-Identifier: Apache-2.0
// Validation of ConfigMaps and Secrets: keys that are valid file names, the size limit, required keys of a Secret's type. Source:
// core/v1 API reference; Kubernetes "Secrets", types.
#include "runtime/base/text.h"
#include "store/kinds/config/config_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kDataBytesMax = 1024 * 1024;
constexpr std::string_view kImmutable = "field is immutable when `immutable` is set";

size_t decoded_bytes(std::string_view base64) {
  size_t padding = base64.ends_with("==") ? 2 : base64.ends_with('=') ? 1 : 0;
  return base64.size() / 4 * 3 - padding;
}

// Returns the size of all values in bytes. Keys do not count.
size_t check_keys(Findings& out, const std::string& path, const json::object& data, bool encoded) {
  size_t bytes = 0;
  for (const auto& pair : data) {
    out.invalid_all([&] { return entry(path, pair.key()); }, pair.key(), config_key_problems(pair.key()));
    std::string_view value = pair.value().is_string() ? std::string_view(pair.value().get_string()) : std::string_view();
    bytes += encoded ? decoded_bytes(value) : value.size();
  }
  return bytes;
}

// As Go names it; "" for what can be read as a map.
std::string_view kind_of_no_map(const json::value& value) {
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_number() ? "number" : "";
}

void check_config_map(const json::value& value, const std::string&, Findings& out) {
  view::ConfigMap map(value);
  size_t bytes = check_keys(out, "data", map.data(), false) + check_keys(out, "binaryData", map.binary_data(), true);
  for (const auto& pair : map.data()) {
    if (map.binary_data().contains(pair.key())) {
      out.invalid(entry("data", pair.key()), pair.key(), "duplicate of key present in binaryData");
    }
  }
  if (bytes > kDataBytesMax) out.too_long("", kDataBytesMax);
}

void check_json_key(Findings& out, const json::object& data, std::string_view key) {
  const json::value* found = data.if_contains(key);
  std::string path = entry("data", key);
  if (!found || !found->is_string()) return out.required(path);
  constexpr std::string_view kRedacted = "<secret contents redacted>";
  auto bytes = base64_decode(found->get_string());
  Result<json::value> map = bytes ? parse_json(*bytes) : Result<json::value>(bytes.take_error());
  if (!map) return out.invalid(path, kRedacted, "invalid JSON");
  if (std::string_view kind = kind_of_no_map(*map); !kind.empty())
    out.invalid(path, kRedacted,
                "json: cannot unmarshal " + std::string(kind) + " into Go value of type map[string]interface {}");
}

void check_secret(const json::value& value, const std::string&, Findings& out) {
  view::Secret secret(value);
  if (check_keys(out, "data", secret.data(), true) > kDataBytesMax) out.too_long("data", kDataBytesMax);
  auto need = [&](std::string_view key) {
    if (!secret.data().contains(key)) out.required(entry("data", key));
  };
  std::string_view type = secret.type();
  if (type == "kubernetes.io/tls") {
    need("tls.crt");
    need("tls.key");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    check_json_key(out, secret.data(), ".dockerconfigjson");
  } else if (type == "kubernetes.io/dockercfg") {
    check_json_key(out, secret.data(), ".dockercfg");
  } else if (type == "kubernetes.io/ssh-auth") {
    const json::value* key = secret.data().if_contains("ssh-privatekey");
    if (!key || !key->is_string() || key->get_string().empty()) out.required(entry("data", "ssh-privatekey"));
  } else if (type == "kubernetes.io/basic-auth") {
    if (secret.data().contains("username") || secret.data().contains("password")) return;
    need("username");
    need("password");
  } else if (type == "kubernetes.io/service-account-token") {
    constexpr std::string_view kAccount = "kubernetes.io/service-account.name";
    const json::value* account = secret.metadata().annotations().if_contains(kAccount);
    if (!account || !account->is_string() || account->get_string().empty()) {
      out.required(entry("metadata.annotations", kAccount));
    }
  }
}

constexpr NamedValidationRule kConfigChecks[] = {
    {"io.k8s.api.core.v1.ConfigMap", check_config_map},
    {"io.k8s.api.core.v1.Secret", check_secret},
};

}  // namespace

std::span<const NamedValidationRule> config_rules() { return kConfigChecks; }

void check_config_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::ConfigMap map(now), old(before);  // a Secret has these fields, too, but no binaryData
  if (old.kind() == "Secret") check_immutable(out, "type", view::Secret(now).type(), view::Secret(before).type());
  if (!old.immutable()) return;
  if (!map.immutable()) out.forbidden("immutable", kImmutable);
  if (map.data() != old.data()) out.forbidden("data", kImmutable);
  if (map.binary_data() != old.binary_data()) out.forbidden("binaryData", kImmutable);
}

}  // namespace coracle::schema
