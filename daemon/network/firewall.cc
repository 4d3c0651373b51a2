// SPDX-License-Identifier: Apache-2.0
// See firewall.h.
#include "daemon/network/firewall.h"

#include <nftables/libnftables.h>

#include <memory>

#include "runtime/base/text.h"

namespace coracle::network {
namespace {

constexpr size_t kComplaintMax = 500;  // bytes of nft's words that are worth keeping

struct FreeContext {
  void operator()(nft_ctx* context) const { nft_ctx_free(context); }
};

}  // namespace

// The context holds caches of the kernel's rulesets, so it lives no longer than this.
Result<void> Firewall::run(const std::string& script) {
  std::unique_ptr<nft_ctx, FreeContext> context(nft_ctx_new(NFT_CTX_DEFAULT));
  if (!context || nft_ctx_buffer_error(context.get()) != 0 || nft_ctx_buffer_output(context.get()) != 0)
    return Error(Code::internal, "nftables: out of memory");
  if (nft_run_cmd_from_buffer(context.get(), script.c_str()) == 0) return {};
  std::string_view complaint = trim(nft_ctx_get_error_buffer(context.get()));
  return Error(Code::internal, "nftables: " + std::string(complaint.substr(0, kComplaintMax)));
}

Result<bool> Firewall::apply(const Ruleset& rules) {
  if (applied_) {
    std::string change = change_script(*applied_, rules);
    if (change.empty() || run(change)) {
      if (!change.empty()) ++transactions_;
      applied_ = rules;
      return false;
    }
  }
  // The table is not what we thought, or not yet.
  applied_.reset();
  TRY(run(replace_script(rules)));
  ++transactions_;
  applied_ = rules;
  return true;
}

Result<void> Firewall::remove() { return run(remove_script()); }

}  // namespace coracle::network
