// SPDX-License-Identifier: Apache-2.0
// See registries_file.h.
#include "daemon/registries_file.h"

#include <map>
#include <utility>
#include <vector>

#include "runtime/base/text.h"
#include "runtime/image/rewrite.h"
#include "runtime/sys/file.h"
#include "store/object/yaml.h"
#include "store/object/yaml_lines.h"

namespace coracle {
namespace {

constexpr size_t kRegistriesFileMax = 1 << 20, kPemMax = 1 << 20;  // bytes

using FieldPath = std::vector<std::string>;

class RegistriesReader {
 public:
  RegistriesReader(std::string_view yaml, const std::string& file, const ReadPem& read_pem)
      : yaml_(yaml), file_(file), read_pem_(read_pem) {}

  Result<void> read(const json::value& document, runtime::RegistrySettings& into) {
    return each_field({}, document, "mirrors and configs", [&](const FieldPath& path, const json::value& value) -> Result<void> {
      const bool of_registries = path.back() == "mirrors", of_hosts = path.back() == "configs";
      if (!of_registries && !of_hosts && !value.is_null() && !value.is_object()) return unknown(path);
      return each_field(path, value, "a map by registry", [&](const FieldPath& of, const json::value& item) -> Result<void> {
        auto read = read_entry(of, item, into);
        if (read) return {};
        const std::string concerned = host_of_key(of.back());
        if (concerned.empty()) return read;  // all are
        const std::string why = read.take_error().wrap(file_).text();
        if (!of_hosts) refuse_registry(concerned, why, into);
        if (!of_registries) refuse_host(concerned, why, into);
        return {};
      });
    });
  }

 private:
  // Of "https://me@host/path", which is no name of a registry, the host.
  static std::string host_of_key(std::string_view key) {
    if (const size_t scheme = key.find("://"); scheme != key.npos) key.remove_prefix(scheme + 3);
    key = key.substr(0, key.find('/'));
    if (const size_t user = key.rfind('@'); user != key.npos) key.remove_prefix(user + 1);
    return std::string(key);
  }
  static void refuse_registry(const std::string& registry, const std::string& why, runtime::RegistrySettings& into) {
    into.mirrors.erase(registry);
    into.rewrites.erase(registry);
    into.refused.emplace(registry, why);
  }
  static void refuse_host(const std::string& host, const std::string& why, runtime::RegistrySettings& into) {
    runtime::RegistryHost& settings = into.hosts[host];
    settings = {.refused = settings.refused.empty() ? why : settings.refused};
  }

  // `path`: "mirrors" or another field, and the name of the registry or host.
  Result<void> read_entry(const FieldPath& path, const json::value& value, runtime::RegistrySettings& into) {
    const bool of_registries = path.front() == "mirrors";
    if (!of_registries && path.front() != "configs") return unknown({path.front()});
    if (path.back().find('/') != std::string::npos)  // it would never be looked for
      return wrong(path, "must be a host like registry.example:5000, or \"*\"");
    return of_registries ? read_mirror(path, value, into) : read_host(path, value, into.hosts[path.back()]);
  }

  Error wrong(const FieldPath& path, const std::string& what) const { return wrong_at(path, path, what); }
  Error wrong_at(const FieldPath& place, const FieldPath& path, const std::string& what) const {
    if (path.empty()) return Error(Code::invalid, what);
    const size_t line = line_in_yaml(yaml_, place);
    return Error(Code::invalid, (line ? "line " + std::to_string(line) + ": " : "") + shown_path(path) + ": " + what);
  }
  Error unknown(const FieldPath& path) const { return wrong(path, "unknown field"); }

  // Calls `f` for each field of a map; null is an empty one.
  template <typename F>
  Result<void> each_field(const FieldPath& path, const json::value& value, std::string_view want, const F& f) {
    if (value.is_null()) return {};
    const json::object* map = value.if_object();
    if (!map) return wrong(path, "must be " + std::string(want));
    for (const auto& [name, item] : *map) {
      FieldPath below = path;
      below.emplace_back(name);
      TRY(f(below, item));
    }
    return {};
  }

  Result<std::string> text(const FieldPath& path, const json::value& value) const {
    if (value.is_null()) return std::string();
    if (!value.is_string()) return wrong(path, "must be text; put quotes around it");  // without the value: it may be a password
    return std::string(value.get_string());
  }

  Result<void> read_mirror(const FieldPath& path, const json::value& value, runtime::RegistrySettings& into) {
    std::vector<std::string>& endpoints = into.mirrors[path.back()];
    std::vector<runtime::RegistryRewrite>& rewrites = into.rewrites[path.back()];
    endpoints.clear();
    return each_field(path, value, "endpoint and rewrite", [&](const FieldPath& field, const json::value& item) -> Result<void> {
      if (field.back() == "endpoint") return read_endpoints(field, item, endpoints);
      if (field.back() != "rewrite") return unknown(field);
      return each_field(field, item, "a map of patterns",
                        [&](const FieldPath& at, const json::value& replacement) -> Result<void> {
                          std::string by = TRY(text(at, replacement));
                          runtime::RegistryRewrite rewrite{at.back(), std::move(by)};
                          if (auto good = image::check_rewrite(rewrite); !good)
                            return wrong_at(at, field, quoted(at.back()) + ": " + good.error().text());
                          rewrites.push_back(std::move(rewrite));
                          return {};
                        });
    });
  }

  Result<void> read_endpoints(const FieldPath& path, const json::value& value, std::vector<std::string>& into) const {
    const json::array* list = value.if_array();
    if (!list) return wrong(path, "must be a list of URLs");
    for (size_t i = 0; i < list->size(); ++i) {
      FieldPath place = path;
      place.push_back(std::to_string(i));
      std::string url = TRY(text(place, (*list)[i]));
      if (std::string fault = registry_url_fault(url); !fault.empty()) return wrong_at(place, path, fault);
      into.push_back(std::move(url));
    }
    return {};
  }

  Result<void> read_host(const FieldPath& path, const json::value& value, runtime::RegistryHost& into) {
    return each_field(path, value, "auth and tls", [&](const FieldPath& field, const json::value& item) -> Result<void> {
      if (field.back() == "auth") {
        if (path.back() == "*") return wrong(field, "credentials belong to a host, not to all");
        if (!item.is_null()) into.credentials.registry = path.back();
        return each_field(field, item, "username and password", [&](const FieldPath& at, const json::value& one) {
          return read_credential(at, one, into.credentials);
        });
      }
      if (field.back() == "tls")
        return each_field(field, item, "ca_file, cert_file, key_file and insecure_skip_verify",
                          [&](const FieldPath& at, const json::value& one) { return read_tls(at, one, into); });
      return unknown(field);
    });
  }

  Result<void> read_credential(const FieldPath& path, const json::value& value, runtime::Credentials& into) const {
    std::string given = TRY(text(path, value));
    const std::string& name = path.back();
    if (name == "username") into.username = std::move(given);
    else if (name == "password") into.password = std::move(given);
    else if (name == "identity_token") into.identity_token = std::move(given);
    else if (name == "auth") return read_encoded(path, given, into);
    else return unknown(path);
    return {};
  }

  // The base64 of "user:password".
  Result<void> read_encoded(const FieldPath& path, const std::string& given, runtime::Credentials& into) const {
    auto plain = base64_decode(trim(given));
    const size_t colon = plain ? plain->find(':') : std::string::npos;
    if (colon == std::string::npos) return wrong(path, "is not the base64 of user:password");
    into.username = plain->substr(0, colon);
    into.password = plain->substr(colon + 1);
    return {};
  }

  Result<void> read_tls(const FieldPath& path, const json::value& value, runtime::RegistryHost& into) const {
    const std::string& name = path.back();
    if (name == "insecure_skip_verify") {
      if (!value.is_bool()) return wrong(path, "must be true or false");
      into.verify = !value.get_bool();
      return {};
    }
    std::string* to = name == "ca_file"     ? &into.tls.authorities
                      : name == "cert_file" ? &into.tls.certificate
                      : name == "key_file"  ? &into.tls.private_key
                                            : nullptr;
    if (!to) return unknown(path);
    std::string file = TRY(text(path, value));
    if (file.empty()) return {};
    if (is_pem(file)) return wrong(path, kPemInPlaceOfPath);
    auto pem = read_pem_(file);
    if (!pem) return wrong(path, pem.error().text());
    if (!is_pem(*pem)) return wrong(path, file + " has nothing in PEM");
    *to = *std::move(pem);
    return {};
  }

  const std::string_view yaml_;
  const std::string& file_;
  const ReadPem& read_pem_;
};

// An error of parse_yaml() without the name of an alias: it may be a password without quotes that begins with *.
Error without_alias(Error error) {
  const std::string text(error.text());
  const size_t at = text.find("unknown alias *");
  if (at == text.npos) return error;
  return Error(error.code(), text.substr(0, at) + "an unknown alias: put quotes around a text that begins with *");
}

}  // namespace

std::string registry_url_fault(std::string_view url) {
  if (!userinfo_of(url).empty())
    return quoted(shown_url(url)) + " has a user or a password in it; they belong into registries.yaml, to configs, auth";
  const size_t scheme = url.find("://");
  const std::string_view host = url.substr(scheme == url.npos ? 0 : scheme + 3);
  const bool is_known = scheme == url.npos || url.starts_with("https://") || url.starts_with("http://");
  const bool is_clean = url.find_first_of(" \t?#") == url.npos && host.substr(0, host.find('/')).find('@') == host.npos;
  if (is_known && is_clean && !host.empty() && !host.starts_with('/')) return {};
  return quoted(shown_url(url)) + " is no URL like https://host:port";
}

Result<void> add_registries(std::string_view yaml, const std::string& file, const ReadPem& read_pem,
                            runtime::RegistrySettings& settings) {
  auto read = [&]() -> Result<void> {
    auto parsed = parse_yaml(yaml);
    if (!parsed) return without_alias(parsed.take_error());
    const std::vector<json::value>& documents = *parsed;
    if (documents.empty()) return {};
    if (documents.size() > 1) return Error(Code::invalid, "more than one document");
    runtime::RegistrySettings added = settings;
    TRY(RegistriesReader(yaml, file, read_pem).read(documents.front(), added));
    settings = std::move(added);
    return {};
  };
  return read().wrap(file);
}

Result<void> add_registries_file(const std::string& path, runtime::RegistrySettings& settings) {
  auto yaml = sys::read_file(path, kRegistriesFileMax);
  if (!yaml && yaml.error().code() == Code::not_found) return {};
  if (!yaml) return yaml.take_error();
  const ReadPem read_pem = [](const std::string& file) -> Result<std::string> {
    if (!file.starts_with('/')) return Error(Code::invalid, quoted(file) + " is no absolute path");
    return sys::read_file(file, kPemMax);
  };
  return add_registries(*yaml, path, read_pem, settings);
}

}  // namespace coracle
