// SPDX-License-Identifier: Apache-2.0
// ConfigMaps and Secrets from literals, files, and files of environment variables. See generate.h.
// Source: kubectl pkg/cmd/create/create_configmap.go, create_secret*.go; pkg/cmd/util/env_file.go.
#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "ctl/flag_values.h"
#include "ctl/generate.h"
#include "ctl/last_applied.h"
#include "runtime/base/json.h"
#include "runtime/base/libcrypto.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;  // limit for one file in a ConfigMap or Secret

// Errors begin with `failing`.
Result<std::string> read_small_file(const std::string& path, const std::string& failing) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(Code::not_found, failing + errno_text(errno));
  std::string text(kFileBytesMax + 1, '\0');
  file.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(file.gcount()));
  if (text.size() > kFileBytesMax) return Error(Code::too_large, path + " is larger than 1 MiB, more than an object can hold");
  return text;
}

Result<bool> is_directory(const std::string& path) {
  std::error_code failed;
  auto status = std::filesystem::status(path, failed);
  if (failed || !std::filesystem::exists(status))
    return Error(Code::not_found, "error reading " + path + ": " + errno_text(failed ? failed.value() : ENOENT));
  return std::filesystem::is_directory(status);
}

// Collects the data of one object.
class DataReader {
 public:
  DataReader(std::string_view kind, const std::string& name) : of_secret_(kind == "Secret"), name_(name) {}

  Result<void> add_literal(const std::string& literal) {
    size_t equals = literal.find('=');
    if (equals == literal.npos || equals == 0)
      return Error(Code::bad_request, "invalid literal source " + literal + ", expected key=value");
    return add(literal.substr(0, equals), literal.substr(equals + 1));
  }

  // "PATH", "KEY=PATH".
  Result<void> add_file(const std::string& source) {
    size_t equals = source.find('='), signs = size_t(std::count(source.begin(), source.end(), '='));
    if (signs > 1) return Error(Code::bad_request, "key names or file paths cannot contain '='");
    if (equals == 0) return Error(Code::bad_request, "key name for file path " + source.substr(1) + " missing");
    if (signs == 1 && equals + 1 == source.size())
      return Error(Code::bad_request, "file path for key name " + source.substr(0, equals) + " missing");
    std::string path = signs == 0 ? source : source.substr(equals + 1);
    bool whole_directory = TRY(is_directory(path));
    if (whole_directory && signs == 1) return Error(Code::bad_request, "cannot give a key name for a directory path");
    if (whole_directory) return add_directory(path);
    std::string text = TRY(read_small_file(path, "open " + path + ": "));
    return add(signs == 0 ? std::filesystem::path(path).filename().string() : source.substr(0, equals), std::move(text));
  }

  Result<void> add_variables(const std::string& path) {
    bool whole_directory = TRY(is_directory(path));
    if (whole_directory)
      return Error(Code::bad_request, std::string("env ") + (of_secret_ ? "secret" : "config") + " file cannot be a directory");
    std::string text = TRY(read_small_file(path, "open " + path + ": "));
    size_t number = 0;
    for (std::string_view line : split(without_byte_order_mark(text), '\n')) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      TRY(add_variable(line, path, ++number));
    }
    return {};
  }

  Data take() { return std::move(data_); }

 private:
  Result<void> add_directory(const std::string& path) {
    std::vector<sys::DirEntry> entries = TRY(sys::list(path).wrap("error listing files in " + path));
    for (const sys::DirEntry& entry : entries) {
      if (entry.type != DT_REG) continue;
      std::string file = (std::filesystem::path(path) / entry.name).string();
      std::string text = TRY(read_small_file(file, "open " + file + ": "));
      TRY(add(entry.name, std::move(text)));
    }
    return {};
  }

  // A name without "=" takes its value from our own environment.
  Result<void> add_variable(std::string_view line, const std::string& path, size_t number) {
    if (!is_utf8(line))
      return Error(Code::bad_request, "env file " + path + " contains invalid utf8 bytes at line " + std::to_string(number));
    line.remove_prefix(std::min(line.find_first_not_of(" \t\v\f\r"), line.size()));
    if (line.empty() || line.front() == '#') return {};
    size_t equals = line.find('=');
    std::string name(line.substr(0, equals));
    if (std::string fault = fault_of_variable(name); !fault.empty())
      return Error(Code::bad_request, coracle::quoted(name) + " is not a valid key name: " + fault);
    const char* ours = equals == line.npos ? std::getenv(name.c_str()) : nullptr;
    return add(name, equals == line.npos ? (ours ? ours : "") : std::string(line.substr(equals + 1)));
  }

  Result<void> add(std::string key, std::string value) {
    if (std::string fault = fault_of_key(key); !fault.empty())
      return Error(Code::bad_request,
                   coracle::quoted(key) +
                       (of_secret_ ? " is not valid key name for a Secret " : " is not a valid key name for a ConfigMap: ") +
                       fault);
    for (const auto& [known, bytes] : data_)
      if (known == key)
        return Error(Code::bad_request,
                     of_secret_ ? "cannot add key " + key + ", another key by that name already exists"
                                : "cannot add key " + coracle::quoted(key) + ", another key by that name already exists in " +
                                      (is_utf8(bytes) ? "Data" : "BinaryData") + " for ConfigMap " + coracle::quoted(name_));
    data_.emplace_back(std::move(key), std::move(value));
    return {};
  }

  bool of_secret_;
  std::string name_;
  Data data_;
};

json::object sorted_members(const Data& data, const std::function<std::string(const std::string&)>& value_of) {
  std::map<std::string, std::string> sorted(data.begin(), data.end());
  json::object members;
  for (const auto& [key, bytes] : sorted) members[key] = value_of(bytes);
  return members;
}

using BioPtr = std::unique_ptr<BIO, decltype(BIO_free_all)>;
BioPtr bio_of(const std::string& text) { return {BIO_new_mem_buf(text.data(), int(text.size())), BIO_free_all}; }

// Errors worded as those of Go's tls.X509KeyPair.
Result<void> check_key_pair(const std::string& certificate, const std::string& key) {
  TRY(load_libcrypto());
  auto certificate_bio = bio_of(certificate), key_bio = bio_of(key);
  std::unique_ptr<X509, decltype(X509_free)> parsed(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr),
                                                    X509_free);
  std::unique_ptr<EVP_PKEY, decltype(EVP_PKEY_free)> private_key(
      PEM_read_bio_PrivateKey(
          key_bio.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr),
      EVP_PKEY_free);
  ERR_clear_error();  // what OpenSSL says is worded below
  auto has = [](const std::string& text, const char* block) { return text.find(block) != text.npos; };
  auto fault = [](const std::string& text) { return Error(Code::bad_request, text); };
  if (!parsed && !has(certificate, "-----BEGIN ")) return fault("tls: failed to find any PEM data in certificate input");
  if (!parsed && !has(certificate, "-----BEGIN CERTIFICATE") && has(certificate, "PRIVATE KEY-----"))
    return fault(
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been "
        "switched");
  if (!parsed) return fault("x509: malformed certificate");
  if (!private_key && !has(key, "-----BEGIN ")) return fault("tls: failed to find any PEM data in key input");
  if (!private_key && has(key, "-----BEGIN CERTIFICATE"))
    return fault("tls: found a certificate rather than a key in the PEM for the private key");
  if (!private_key) return fault("tls: failed to parse private key");
  bool belong_together = X509_check_private_key(parsed.get(), private_key.get()) == 1;
  ERR_clear_error();
  if (!belong_together) return fault("tls: private key does not match public key");
  return {};
}

}  // namespace

void DataFlags::add_to(Command command) {
  command.add_option("--from-literal", literals, "KEY=VALUE");
  command.add_option("--from-file", files, "[KEY=]PATH; a directory gives all its files").delimiter(',');
  command.add_option("--from-env-file", env_files, "a file of KEY=VALUE lines; KEY alone takes its value from the environment")
      .delimiter(',');
}

Result<Data> read_data(const DataFlags& flags, std::string_view kind, const std::string& name) {
  if (!flags.env_files.empty() && !(flags.files.empty() && flags.literals.empty()))
    return Error(Code::bad_request, "from-env-file cannot be combined with from-file or from-literal");
  DataReader reader(kind, name);
  for (const auto& literal : flags.literals) TRY(reader.add_literal(literal));
  for (const auto& file : flags.files) TRY(reader.add_file(file));
  for (const auto& file : flags.env_files) TRY(reader.add_variables(file));
  return reader.take();
}

json::value configmap_of(const std::string& name, const Data& data) {
  Data text, binary;
  for (const auto& entry : data) (is_utf8(entry.second) ? text : binary).push_back(entry);
  json::object object = named_object("v1", "ConfigMap", name);
  if (!text.empty()) object["data"] = sorted_members(text, [](const std::string& value) { return value; });
  if (!binary.empty())
    object["binaryData"] = sorted_members(binary, [](const std::string& bytes) { return base64_encode(bytes); });
  return object;
}

json::value secret_of(const std::string& name, const std::string& type, const Data& data) {
  json::object object = named_object("v1", "Secret", name);
  if (!data.empty()) object["data"] = sorted_members(data, [](const std::string& bytes) { return base64_encode(bytes); });
  if (!type.empty()) object["type"] = type;
  return object;
}

std::string docker_config(const std::string& server, const std::string& user, const std::string& password,
                          const std::string& email) {
  json::object entry{{"username", user}, {"password", password}}, auths;
  if (!email.empty()) entry["email"] = email;
  entry["auth"] = base64_encode(user + ":" + password);
  auths[server] = std::move(entry);
  return escaped_markup(to_text(json::object{{"auths", std::move(auths)}}));
}

Result<Data> read_key_pair(const std::string& certificate_path, const std::string& key_path) {
  auto read = [](const std::string& path) { return read_small_file(path, "Cannot read file " + path + ", open " + path + ": "); };
  std::string certificate = TRY(read(certificate_path));
  std::string key = TRY(read(key_path));
  TRY(check_key_pair(certificate, key));
  return Data{{"tls.crt", std::move(certificate)}, {"tls.key", std::move(key)}};
}

}  // namespace coracle::ctl
