// SPDX-License-Identifier: Apache-2.0
// See hosts_directory.h.
#include "daemon/hosts_directory.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "daemon/toml.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle {
namespace {

constexpr size_t kHostsFileMax = 1 << 20;  // bytes

using HostsPath = std::vector<std::string>;

// A host of hosts.toml, or what stands at its top about the server.
struct HostFields {
  runtime::RegistryServer server;
  bool pulls = true, overrides_path = false;
};

// Without a scheme it is https; with /v2 at the end, unless the URL is where the API is.
std::string api_url(std::string url, bool overrides_path) {
  if (url.find("://") == url.npos) url.insert(0, "https://");
  while (url.ends_with('/')) url.pop_back();
  if (!overrides_path && !url.ends_with("/v2")) url += "/v2";
  return url;
}

class HostsReader {
 public:
  HostsReader(const Toml& toml, const std::string& directory, const ReadPem& read_pem)
      : toml_(toml), directory_(directory), read_pem_(read_pem) {}

  Result<std::vector<runtime::RegistryServer>> read() const {
    std::vector<runtime::RegistryServer> out;
    HostFields last;
    for (const auto& [name, value] : toml_.root.get_object()) {
      const HostsPath path{std::string(name)};
      if (name == "server") last.server.url = TRY(read_url(path, value));
      else if (name == "host") TRY(read_hosts(path, value, out));
      else TRY(read_field(path, value, last));
    }
    if (!last.server.url.empty()) last.server.url = api_url(std::move(last.server.url), last.overrides_path);
    if (last.pulls) out.push_back(std::move(last.server));
    return out;
  }

 private:
  Error wrong(const HostsPath& path, const std::string& what) const {
    const size_t line = toml_.line_of(path);
    return Error(Code::invalid, (line ? "line " + std::to_string(line) + ": " : "") + shown_path(path) + ": " + what);
  }

  Result<std::string> text(const HostsPath& path, const json::value& value) const {
    if (!value.is_string()) return wrong(path, "must be text in quotes");  // without the value: it may be a password
    return std::string(value.get_string());
  }
  // One text, or a list of them.
  Result<std::vector<std::string>> texts(const HostsPath& path, const json::value& value) const {
    std::vector<std::string> out;
    if (const json::array* list = value.if_array()) {
      for (const json::value& each : *list) {
        std::string one = TRY(text(path, each));
        out.push_back(std::move(one));
      }
    } else {
      std::string one = TRY(text(path, value));
      out.push_back(std::move(one));
    }
    return out;
  }
  Result<bool> flag(const HostsPath& path, const json::value& value) const {
    if (!value.is_bool()) return wrong(path, "must be true or false");
    return value.get_bool();
  }
  Result<std::string> read_url(const HostsPath& path, const json::value& value) const {
    std::string url = TRY(text(path, value));
    if (std::string fault = registry_url_fault(url); !fault.empty()) return wrong(path, fault);
    return url;
  }

  Result<void> read_hosts(const HostsPath& path, const json::value& value, std::vector<runtime::RegistryServer>& into) const {
    if (!value.is_object()) return wrong(path, "must be tables: [host.\"https://host\"]");
    for (const auto& [name, fields] : value.get_object()) {
      HostsPath below = path;
      below.emplace_back(name);
      std::string url = TRY(read_url(below, json::value(name)));
      if (!fields.is_object()) return wrong(below, "must be a table");
      HostFields host;
      for (const auto& [key, field] : fields.get_object()) {
        HostsPath at = below;
        at.emplace_back(key);
        TRY(read_field(at, field, host));
      }
      host.server.url = api_url(std::move(url), host.overrides_path);
      if (host.pulls) into.push_back(std::move(host.server));
    }
    return {};
  }

  Result<void> read_field(const HostsPath& path, const json::value& value, HostFields& into) const {
    const std::string& name = path.back();
    if (name == "capabilities") return read_capabilities(path, value, into);
    if (name == "ca") return read_authorities(path, value, into.server.tls.authorities);
    if (name == "client") return read_client(path, value, into.server.tls);
    if (name == "header") return read_headers(path, value, into.server.headers);
    if (name == "dial_timeout") {  // how long the client waits is its own matter
      TRY(text(path, value));
      return {};
    }
    if (name != "skip_verify" && name != "override_path") return wrong(path, "unknown field");
    const bool is_true = TRY(flag(path, value));
    if (name == "skip_verify") into.server.verify = !is_true;
    else into.overrides_path = is_true;
    return {};
  }

  Result<void> read_capabilities(const HostsPath& path, const json::value& value, HostFields& into) const {
    const std::vector<std::string> names = TRY(texts(path, value));
    for (const std::string& each : names)
      if (const std::string name = to_lower(each); name != "pull" && name != "resolve" && name != "push")
        return wrong(path, quoted(each) + " is none of pull, resolve and push");
    auto has = [&](std::string_view wanted) {
      return names.empty() || std::any_of(names.begin(), names.end(), [&](const auto& each) { return to_lower(each) == wanted; });
    };
    into.pulls = has("pull");
    into.server.resolves = has("resolve");
    return {};
  }

  Result<std::string> pem(const HostsPath& path, const std::string& file) const {
    if (is_pem(file)) return wrong(path, kPemInPlaceOfPath);
    const std::string whole = file.starts_with('/') ? file : directory_ + "/" + file;
    auto read = read_pem_(whole);
    if (!read) return wrong(path, read.error().text());
    if (!is_pem(*read)) return wrong(path, whole + " has nothing in PEM");
    return read;
  }

  Result<void> read_authorities(const HostsPath& path, const json::value& value, std::string& into) const {
    const std::vector<std::string> files = TRY(texts(path, value));
    for (const std::string& file : files) {
      into += TRY(pem(path, file));
      if (!into.ends_with('\n')) into += '\n';
    }
    return {};
  }

  // A file with both, a list with it, or a list with a pair of files.
  Result<void> read_client(const HostsPath& path, const json::value& value, runtime::RegistryTls& into) const {
    const json::value* given = &value;
    if (const json::array* list = value.if_array()) {
      if (list->size() != 1) return wrong(path, "must be one certificate, is " + std::to_string(list->size()));
      given = &list->front();
    }
    const std::vector<std::string> files = TRY(texts(path, *given));
    if (files.empty() || files.size() > 2 || files[0].empty()) return wrong(path, "must be [[certificate, key]]");
    into.certificate = TRY(pem(path, files[0]));
    into.private_key = into.certificate;
    if (files.size() == 2 && !files[1].empty()) into.private_key = TRY(pem(path, files[1]));
    return {};
  }

  Result<void> read_headers(const HostsPath& path, const json::value& value, std::vector<std::string>& into) const {
    if (!value.is_object()) return wrong(path, "must be a table");
    for (const auto& [name, given] : value.get_object()) {
      HostsPath at = path;
      at.emplace_back(name);
      const std::vector<std::string> values = TRY(texts(at, given));
      for (const std::string& each : values) {
        std::string header = std::string(name) + ": " + each;
        auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
        if (name.empty() || std::string_view(name).find_first_of(" :\t") != std::string_view::npos ||
            std::any_of(header.begin(), header.end(), is_control))
          return wrong(at, "is no header");
        into.push_back(std::move(header));
      }
    }
    return {};
  }

  const Toml& toml_;
  const std::string& directory_;
  const ReadPem& read_pem_;
};

// "host_5000_" is host:5000, "_default" all.
std::string registry_of(const std::string& directory_name) {
  if (directory_name == "_default") return "*";
  const std::string_view name = directory_name;
  const size_t at = name.ends_with('_') ? name.substr(0, name.size() - 1).rfind('_') : name.npos;
  if (at == name.npos || at == 0) return directory_name;
  const std::string_view port = name.substr(at + 1, name.size() - at - 2);
  if (port.empty() || port.find_first_not_of("0123456789") != port.npos) return directory_name;
  return std::string(name.substr(0, at)) + ":" + std::string(port);
}

// The registry itself, with the certificates that lie in its directory. Errors: invalid, with the file's path.
Result<std::vector<runtime::RegistryServer>> read_certificates(const std::string& directory,
                                                               const std::vector<sys::DirEntry>& entries,
                                                               const ReadPem& read_pem) {
  runtime::RegistryServer own;
  bool has_any = false;
  for (const sys::DirEntry& entry : entries) {
    const std::string file = directory + "/" + entry.name;
    if (entry.name.ends_with(".crt")) {
      has_any = true;
      own.tls.authorities += TRY(read_pem(file));
      own.tls.authorities += '\n';
    } else if (entry.name.ends_with(".cert")) {
      has_any = true;
      if (!own.tls.certificate.empty()) return Error(Code::invalid, file + ": a second certificate of the client");
      own.tls.certificate = TRY(read_pem(file));
      auto key = read_pem(file.substr(0, file.size() - std::string_view("cert").size()) + "key");
      if (!key && key.error().code() != Code::not_found) return key.take_error();
      own.tls.private_key = key ? *std::move(key) : own.tls.certificate;
    }
  }
  std::vector<runtime::RegistryServer> servers;
  if (has_any) servers.push_back(std::move(own));
  return servers;
}

// The servers of a registry's directory; nullopt if it is none, or says nothing. Errors: invalid, with the file's path.
Result<std::optional<std::vector<runtime::RegistryServer>>> read_directory(const std::string& directory) {
  const ReadPem read_pem = [](const std::string& file) { return sys::read_file(file, kHostsFileMax); };
  const std::string file = directory + "/hosts.toml";
  auto files = sys::list(directory);
  const int err = files ? 0 : files.error().err();
  if (err == ENOTDIR || err == ENOENT) return std::optional<std::vector<runtime::RegistryServer>>();
  if (!files) return files.take_error();
  auto text = sys::read_file(file, kHostsFileMax);
  if (!text && text.error().code() != Code::not_found) return text.take_error();
  if (text && !text->empty()) {
    auto servers = TRY(read_hosts_toml(*text, directory, read_pem).wrap(file));
    return std::optional(std::move(servers));
  }
  auto with_certificates = TRY(read_certificates(directory, *files, read_pem));
  if (with_certificates.empty()) return std::optional<std::vector<runtime::RegistryServer>>();
  return std::optional(std::move(with_certificates));
}

}  // namespace

Result<std::vector<runtime::RegistryServer>> read_hosts_toml(std::string_view text, const std::string& directory,
                                                             const ReadPem& read_pem) {
  const Toml toml = TRY(parse_toml(text));
  return HostsReader(toml, directory, read_pem).read();
}

Result<void> add_hosts_directory(const std::string& path, runtime::RegistrySettings& settings) {
  auto directories = sys::list(path);
  if (!directories && directories.error().code() == Code::not_found) return {};
  if (!directories) return directories.take_error();
  std::map<std::string, Result<std::vector<runtime::RegistryServer>>> found;  // by registry
  for (const sys::DirEntry& entry : *directories) {
    auto servers = read_directory(path + "/" + entry.name);
    if (servers && !*servers) continue;
    if (servers) found.insert_or_assign(registry_of(entry.name), **std::move(servers));
    else found.insert_or_assign(registry_of(entry.name), servers.take_error());
  }
  for (auto& [registry, servers] : found) {
    settings.refused.erase(registry);  // its mirrors are not asked
    if (servers) settings.servers[registry] = *std::move(servers);
    else settings.refused[registry] = servers.error().text();
  }
  return {};
}

}  // namespace coracle
