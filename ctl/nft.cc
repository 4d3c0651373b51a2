// SPDX-License-Identifier: Apache-2.0
// See nft.h.
#include "ctl/nft.h"

#include <memory>

#include "runtime/base/shared_library.h"
#include "runtime/base/text.h"
#include "runtime/sys/netns.h"

struct nft_ctx;

namespace coracle::ctl {
namespace {

constexpr const char* kLibrary = "libnftables.so.1";
constexpr unsigned kOutputJson = 1u << 4;  // NFT_CTX_OUTPUT_JSON

struct Library {
  nft_ctx* (*make)(uint32_t) = nullptr;
  void (*free)(nft_ctx*) = nullptr;
  int (*buffer_output)(nft_ctx*) = nullptr;
  int (*buffer_error)(nft_ctx*) = nullptr;
  const char* (*output)(nft_ctx*) = nullptr;
  const char* (*error)(nft_ctx*) = nullptr;
  void (*set_flags)(nft_ctx*, unsigned) = nullptr;
  int (*run)(nft_ctx*, const char*) = nullptr;
};

Result<Library> load() {
  auto loaded = SharedLibrary::load(kLibrary);
  if (!loaded) return Error(Code::unavailable, std::string(kLibrary) + " is missing: apt install libnftables1");
  Library library;
  TRY(loaded->find(library.make, "nft_ctx_new"));
  TRY(loaded->find(library.free, "nft_ctx_free"));
  TRY(loaded->find(library.buffer_output, "nft_ctx_buffer_output"));
  TRY(loaded->find(library.buffer_error, "nft_ctx_buffer_error"));
  TRY(loaded->find(library.output, "nft_ctx_get_output_buffer"));
  TRY(loaded->find(library.error, "nft_ctx_get_error_buffer"));
  TRY(loaded->find(library.set_flags, "nft_ctx_output_set_flags"));
  TRY(loaded->find(library.run, "nft_run_cmd_from_buffer"));
  return library;
}

Result<std::string> run_nft(const std::string& script, unsigned flags) {
  Library library = TRY(load());
  std::unique_ptr<nft_ctx, void (*)(nft_ctx*)> context(library.make(0), library.free);
  if (!context || library.buffer_output(context.get()) != 0 || library.buffer_error(context.get()) != 0)
    return Error(Code::internal, "nftables: out of memory");
  library.set_flags(context.get(), flags);
  if (library.run(context.get(), script.c_str()) == 0) return std::string(library.output(context.get()));
  std::string_view complaint = trim(library.error(context.get()));
  bool denied = complaint.find("Operation not permitted") != complaint.npos;
  return Error(denied ? Code::forbidden : Code::internal, "nftables: " + std::string(complaint.substr(0, complaint.find('\n'))));
}

// A rule set with one object of each type that the daemon's table contains.
constexpr const char* kTrial =
    "table ip probe {\n"
    "  map services { type inet_proto . ipv4_addr . inet_service : verdict; }\n"
    "  chain translate { type nat hook prerouting priority -100; policy accept;\n"
    "    meta l4proto . ip daddr . th dport vmap @services; }\n"
    "  chain leave { type nat hook postrouting priority 100; policy accept; ct status dnat oifname != \"lo\" masquerade; }\n"
    "  chain balance { dnat ip to numgen random mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }; }\n"
    "  chain refuse { reject with icmp type port-unreachable; }\n"
    "}\n";

}  // namespace

Result<json::value> list_ruleset() {
  std::string text = TRY(run_nft("list ruleset", kOutputJson));
  return parse_json(text).wrap("nft's answer");
}

Result<void> try_nftables() {
  Fd netns = TRY(sys::new_netns());
  return sys::in_netns(netns, [&]() -> Result<void> {
    TRY(run_nft(kTrial, 0));
    return {};
  });
}

}  // namespace coracle::ctl
