// SPDX-License-Identifier: Apache-2.0
// Compiled seccomp programs, in memory and on disk. A file consists of a line with the program's metadata, the input that it was
// compiled from, and the instructions. It is not forced to the disk, which would take longer than to compile it: what a power
// failure has left of one is told by its sum, and compiled again. See seccomp_program.h.
#include <seccomp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/container/seccomp_program.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"

namespace coracle::runtime {
namespace {

constexpr int kFormat = 8;  // part of the key: programs of other formats are not found

// The complete input of a program.
std::string key_of(const json::value& profile, uint64_t capabilities) {
  const scmp_version* version = ::seccomp_version();
  return std::to_string(kFormat) + " " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->micro) + " " + std::to_string(::seccomp_arch_native()) + " " + std::to_string(capabilities) +
         "\n" + to_text(profile);
}

// FNV-1a of words of eight bytes: a profile has some 20,000 bytes, and each start of a container reads one. Bytes with equal
// hashes can be constructed, so the complete input is compared.
std::string hash_of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325 ^ bytes.size();  // the last word is filled up with zeros
  for (size_t at = 0; at < bytes.size(); at += sizeof hash) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x100000001b3;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// Only the capabilities that the profile mentions: containers with different others share a program.
uint64_t relevant(const json::value& profile, uint64_t capabilities) {
  uint64_t mentioned = 0;
  for (const auto& [name, calls] : get_object(profile, "capabilities"))
    if (auto bit = oci::capability_number(std::string(name))) mentioned |= uint64_t(1) << *bit;
  return capabilities & mentioned;
}

std::string write_head(const SeccompProgram& program, std::string_view instructions) {
  json::object out{{"flags", program.flags}, {"key", program.key.size()}, {"sum", hash_of(instructions)}};
  if (program.listener) {
    out["listener"] = program.listener->path;
    out["metadata"] = program.listener->metadata;
  }
  return to_text(out) + "\n";
}

// Reads the metadata line and the input, and removes them from `file`: the instructions are left. False if they are not those
// that were written.
bool read_head(std::string_view& file, SeccompProgram& out) {
  const size_t line = file.find('\n');
  if (line == file.npos) return false;
  auto head = parse_json(file.substr(0, line));
  if (!head || !head->is_object()) return false;
  const json::value* flags = find(*head, "flags");
  const json::value* key = find(*head, "key");
  file.remove_prefix(line + 1);
  if (!flags || !flags->is_int64() || !std::in_range<uint32_t>(flags->get_int64())) return false;
  if (!key || !key->is_int64() || !std::in_range<uint32_t>(key->get_int64()) || size_t(key->get_int64()) > file.size())
    return false;
  out.flags = uint32_t(flags->get_int64());
  out.key = file.substr(0, size_t(key->get_int64()));
  file.remove_prefix(out.key.size());
  // A program without a sum was forced to the disk; a pod that runs while the daemon is upgraded may have one.
  if (find(*head, "sum") && get_string(*head, "sum") != hash_of(file)) return false;
  if (find(*head, "listener"))
    out.listener = oci::SeccompListener{std::string(get_string(*head, "listener")), std::string(get_string(*head, "metadata"))};
  return true;
}

bool is_name(const std::string& name) { return !name.empty() && name.find_first_not_of("0123456789abcdef-") == name.npos; }

}  // namespace

Result<SeccompPtr> SeccompCache::get(const json::value& profile, uint64_t capabilities) {
  capabilities = relevant(profile, capabilities);
  const std::string key = key_of(profile, capabilities);
  if (Place place = look_up(key); place.found) return place.found;
  auto made = std::make_shared<SeccompProgram>();
  *made = TRY(compile_seccomp(profile, capabilities));
  made->key = key;
  TRY(sys::make_directories(directory_, 0700));
  // One writer at a time: a name that is stored somewhere never refers to another program.
  Fd directory = TRY(sys::open_directory(directory_));
  TRY(sys::lock(directory, sys::Lock::exclusive));
  Place place = look_up(key);
  if (place.found) return place.found;
  made->name = place.name;
  std::string bytes(made->instructions.size() * sizeof(uint64_t), '\0');
  std::memcpy(bytes.data(), made->instructions.data(), bytes.size());
  TRY(sys::replace_file_at(directory, made->name, write_head(*made, bytes) + key + bytes, 0600, sys::Durability::volatile_));
  SeccompPtr program = std::move(made);
  programs_.with([&](auto& programs) { programs[program->name] = program; });
  return program;
}

SeccompCache::Place SeccompCache::look_up(const std::string& key) {
  const std::string hash = hash_of(key);
  for (int i = 0;; ++i) {
    std::string name = hash + "-" + std::to_string(i);
    auto there = find(name);
    if (!there) return {std::move(name), nullptr};
    if ((*there)->key == key) return {std::move(name), *there};
  }
}

Result<SeccompPtr> SeccompCache::find(const std::string& name) {
  SeccompPtr found = programs_.with([&](auto& programs) {
    auto at = programs.find(name);
    return at == programs.end() ? nullptr : at->second;
  });
  if (found) return found;
  return load(name);
}

Result<SeccompPtr> SeccompCache::load(const std::string& name) {
  if (!is_name(name)) return Error(Code::not_found, "no such seccomp program");
  const std::string file = TRY(sys::read_file(directory_ + "/" + name));
  std::string_view rest = file;
  auto program = std::make_shared<SeccompProgram>();
  if (!read_head(rest, *program) || rest.empty() || rest.size() % sizeof(uint64_t) != 0 ||
      rest.size() / sizeof(uint64_t) > kSeccompInstructionsMax)
    return Error(Code::not_found, "seccomp program on the disk is damaged");
  program->name = name;
  program->instructions.resize(rest.size() / sizeof(uint64_t));
  std::memcpy(program->instructions.data(), rest.data(), rest.size());
  SeccompPtr out = std::move(program);
  programs_.with([&](auto& programs) { programs[name] = out; });
  return out;
}

}  // namespace coracle::runtime
