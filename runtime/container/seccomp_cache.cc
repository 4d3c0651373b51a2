// SPDX-License-Identifier: Apache-2.0
// Compiled seccomp programs, in memory and on the disk. A file is a line that says what belongs to the program beside
// its instructions, then these. See seccomp_program.h.
#include <openssl/evp.h>
#include <seccomp.h>

#include <cstring>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/container/seccomp_program.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"

namespace coracle::runtime {
namespace {

constexpr int kFormat = 4;  // part of the hash: programs of another making are not found

Result<std::string> hash_of(const json::value& profile, uint64_t capabilities) {
  const scmp_version* version = ::seccomp_version();
  std::string text = std::to_string(kFormat) + " " + std::to_string(version->major) + "." +
                     std::to_string(version->minor) + "." + std::to_string(version->micro) + " " +
                     std::to_string(::seccomp_arch_native()) + " " + std::to_string(capabilities) + "\n" +
                     to_text(profile);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (::EVP_Digest(text.data(), text.size(), digest, &size, ::EVP_sha256(), nullptr) != 1)
    return Error(Code::internal, "sha256");
  return hex(std::string_view(reinterpret_cast<char*>(digest), size));
}

// Only the capabilities that the profile speaks of matter: containers with different ones share a program.
uint64_t relevant(const json::value& profile, uint64_t capabilities) {
  uint64_t mentioned = 0;
  for (const auto& [name, calls] : get_object(profile, "capabilities"))
    if (auto bit = oci::capability_number(std::string(name))) mentioned |= uint64_t(1) << *bit;
  return capabilities & mentioned;
}

std::string write_head(const SeccompProgram& program) {
  json::value out = program.flags;
  if (program.listener)
    out = json::object{
        {"flags", program.flags}, {"listener", program.listener->path}, {"metadata", program.listener->metadata}};
  return to_text(out) + "\n";
}

bool read_head(std::string_view line, SeccompProgram& out) {
  auto head = parse_json(line);
  if (!head) return false;
  const json::value* flags = head->is_object() ? find(*head, "flags") : &*head;
  if (!flags || !flags->is_int64() || !std::in_range<uint32_t>(flags->get_int64())) return false;
  out.flags = uint32_t(flags->get_int64());
  if (head->is_object())
    out.listener =
        oci::SeccompListener{std::string(get_string(*head, "listener")), std::string(get_string(*head, "metadata"))};
  return true;
}

}  // namespace

Result<SeccompPtr> SeccompCache::get(const json::value& profile, uint64_t capabilities) {
  capabilities = relevant(profile, capabilities);
  std::string hash = TRY(hash_of(profile, capabilities));
  if (auto found = find(hash)) return found;
  auto made = std::make_shared<SeccompProgram>();
  *made = TRY(compile_seccomp(profile, capabilities));
  made->hash = hash;
  std::string bytes(made->instructions.size() * sizeof(uint64_t), '\0');
  std::memcpy(bytes.data(), made->instructions.data(), bytes.size());
  std::string file = write_head(*made) + bytes;
  TRY(sys::make_directories(directory_, 0700));
  TRY(sys::replace_file(directory_ + "/" + hash, file, 0600));
  SeccompPtr program = std::move(made);
  programs_.with([&](auto& programs) { programs[hash] = program; });
  return program;
}

Result<SeccompPtr> SeccompCache::find(const std::string& hash) {
  SeccompPtr found = programs_.with([&](auto& programs) {
    auto at = programs.find(hash);
    return at == programs.end() ? nullptr : at->second;
  });
  if (found) return found;
  return load(hash);
}

Result<SeccompPtr> SeccompCache::load(const std::string& hash) {
  if (hash.size() != 64 || hash.find_first_not_of("0123456789abcdef") != hash.npos)
    return Error(Code::not_found, "no such seccomp program");
  std::string file = TRY(sys::read_file(directory_ + "/" + hash));
  size_t line = file.find('\n');
  size_t size = line == file.npos ? 0 : file.size() - line - 1;
  auto program = std::make_shared<SeccompProgram>();
  // A power cut may have left it short: then it is made again.
  if (size == 0 || size % sizeof(uint64_t) != 0 || size / sizeof(uint64_t) > kSeccompInstructionsMax ||
      !read_head(std::string_view(file).substr(0, line), *program))
    return Error(Code::not_found, "seccomp program on the disk is damaged");
  program->hash = hash;
  program->instructions.resize(size / sizeof(uint64_t));
  std::memcpy(program->instructions.data(), file.data() + line + 1, size);
  SeccompPtr out = std::move(program);
  programs_.with([&](auto& programs) { programs[hash] = out; });
  return out;
}

}  // namespace coracle::runtime
