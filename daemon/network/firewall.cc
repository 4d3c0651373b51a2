// SPDX-License-Identifier: Apache-2.0
// See firewall.h.
#include "daemon/network/firewall.h"

#include <nftables/libnftables.h>

#include <memory>

#include "daemon/network/address.h"
#include "runtime/base/text.h"
#include "runtime/sys/netfilter.h"

namespace coracle::network {
namespace {

constexpr size_t kComplaintMax = 500;  // bytes kept of nft's error message

// The rules with the current elements of their dynamic sets and the remaining lifetimes. Missing sets have no elements.
Ruleset with_remembered(const Ruleset& rules) {
  Ruleset out = rules;
  size_t left = kCarriedElementsMax;
  const std::string name_of_table = rules.table.substr(rules.table.find(' ') + 1);
  for (auto& [name, set] : out.sets) {
    if (!is_dynamic(set) || left == 0) continue;
    auto held = sys::expiring_elements(name_of_table, name, left);
    if (!held) continue;
    left -= held->size();
    for (const sys::ExpiringElement& one : *held)
      if (std::string text = expiring_element_text(one.key, one.expires_ms); !text.empty())
        set.elements.emplace(std::move(text), "");
  }
  return out;
}

struct FreeContext {
  void operator()(nft_ctx* context) const { nft_ctx_free(context); }
};

}  // namespace

// Creates a new context each time, because a context caches the kernel's rulesets.
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
  // The kernel's table differs from the last applied one, or does not exist.
  applied_.reset();
  TRY(run(replace_script(with_remembered(rules))));
  ++transactions_;
  applied_ = rules;
  return true;
}

Result<void> Firewall::apply_part(const Ruleset& before, const Ruleset& after) {
  std::string change = change_script(before, after);
  if (change.empty()) return {};
  auto done = run(change);
  if (!done) {
    applied_.reset();
    return done;
  }
  ++transactions_;
  replace_part(*applied_, before, after);
  return {};
}

Result<void> Firewall::remove() { return run(remove_script()); }

}  // namespace coracle::network
