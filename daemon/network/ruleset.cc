// SPDX-License-Identifier: Apache-2.0
// See ruleset.h.
#include "daemon/network/ruleset.h"

#include <vector>

#include "daemon/network/address.h"

namespace coracle::network {
namespace {

std::string element(const std::string& key, const std::string& value) { return value.empty() ? key : key + " : " + value; }

std::string elements(const std::vector<std::string>& list, std::string_view separator) {
  std::string out;
  for (const std::string& one : list) out.append(out.empty() ? "" : separator).append(one);
  return out;
}

std::string declare_set(const std::string& table, const std::string& name, const Set& set) {
  return std::string("add ") + (set.map ? "map " : "set ") + table + " " + name + " { " + set.declaration + " }\n";
}

std::string declare_chain(const std::string& table, const std::string& name, const Chain& chain) {
  return "add chain " + table + " " + name + (chain.hook.empty() ? "" : " { " + chain.hook + " }") + "\n";
}

std::string add_rules(const std::string& table, const std::string& name, const Chain& chain) {
  std::string out;
  for (const std::string& rule : chain.rules) out += "add rule " + table + " " + name + " " + rule + "\n";
  return out;
}

std::string change_elements(const std::string& table, const char* verb, const std::string& name,
                            const std::vector<std::string>& list) {
  if (list.empty()) return "";
  return std::string(verb) + " element " + table + " " + name + " { " + elements(list, ", ") + " }\n";
}

// Elements of `from` that `in` lacks or has with another value.
std::vector<std::string> missing(const Set& from, const Set* in) {
  std::vector<std::string> out;
  for (const auto& [key, value] : from.elements) {
    if (in != nullptr) {
      auto same = in->elements.find(key);
      if (same != in->elements.end() && same->second == value) continue;
    }
    out.push_back(element(key, value));
  }
  return out;
}

template <typename T>
const T* find_named(const std::map<std::string, T>& in, const std::string& name) {
  auto found = in.find(name);
  return found == in.end() ? nullptr : &found->second;
}

}  // namespace

bool is_dynamic(const Set& set) { return set.declaration.find("flags dynamic") != std::string::npos; }

std::string expiring_element_text(std::string_view key, uint64_t expires_ms) {
  if (key.size() != sizeof(uint32_t)) return "";
  Ipv4 address;
  for (char byte : key) address.value = address.value << 8 | uint8_t(byte);
  return address.text() + " timeout " + std::to_string(expires_ms / 1000 + 1) + "s";
}

std::string replace_script(const Ruleset& rules) {
  // "add" first, so that "delete" succeeds if there is no table yet.
  const std::string& table = rules.table;
  std::string out = "add table " + table + "\ndelete table " + table + "\ntable " + table + " {\n";
  for (const auto& [name, set] : rules.sets) {
    out += std::string(set.map ? "\tmap " : "\tset ") + name + " {\n\t\t" + set.declaration + "\n";
    std::vector<std::string> all = missing(set, nullptr);
    if (!all.empty()) out += "\t\telements = { " + elements(all, ",\n\t\t             ") + " }\n";
    out += "\t}\n";
  }
  for (const auto& [name, chain] : rules.chains) {
    out += "\tchain " + name + " {\n";
    if (!chain.hook.empty()) out += "\t\t" + chain.hook + "\n";
    for (const std::string& rule : chain.rules) out += "\t\t" + rule + "\n";
    out += "\t}\n";
  }
  return out + "}\n";
}

// The order matters, because every line must be valid in its place: first new names, then references to them; a name is deleted
// after the last reference to it.
std::string change_script(const Ruleset& before, const Ruleset& after) {
  const std::string& table = after.table;
  std::string declare, empty, fill, drop;
  for (const auto& [name, set] : after.sets) {
    const Set* old = find_named(before.sets, name);
    if (old == nullptr) declare += declare_set(table, name, set);
    if (old != nullptr) empty += change_elements(table, "delete", name, missing(*old, &set));
    fill += change_elements(table, "add", name, missing(set, old));
  }
  for (const auto& [name, chain] : after.chains) {
    const Chain* old = find_named(before.chains, name);
    if (old == nullptr) declare += declare_chain(table, name, chain);
    if (old != nullptr && *old == chain) continue;
    if (old != nullptr) empty += "flush chain " + table + " " + name + "\n";
    fill += add_rules(table, name, chain);
  }
  std::string drop_sets;
  for (const auto& [name, chain] : before.chains) {
    if (find_named(after.chains, name) != nullptr) continue;
    empty += "flush chain " + table + " " + name + "\n";
    drop += "delete chain " + table + " " + name + "\n";
  }
  for (const auto& [name, set] : before.sets)
    if (find_named(after.sets, name) == nullptr)
      drop_sets += std::string("delete ") + (set.map ? "map " : "set ") + table + " " + name + "\n";
  return declare + empty + fill + drop_sets + drop;
}

void drop_common(Ruleset& before, Ruleset& after) {
  for (auto& [name, set] : before.sets) {
    auto other = after.sets.find(name);
    if (other == after.sets.end()) continue;
    std::map<std::string, std::string>& others = other->second.elements;
    std::erase_if(set.elements, [&](const auto& element) {
      auto same = others.find(element.first);
      if (same == others.end() || same->second != element.second) return false;
      others.erase(same);
      return true;
    });
  }
  std::erase_if(before.chains, [&](const auto& chain) {
    auto same = after.chains.find(chain.first);
    if (same == after.chains.end() || same->second != chain.second) return false;
    after.chains.erase(same);
    return true;
  });
}

bool is_replaceable(const Ruleset& whole, const Ruleset& before, const Ruleset& after) {
  for (const auto& [name, set] : before.sets) {
    const Set* held = find_named(whole.sets, name);
    if (held == nullptr || held->declaration != set.declaration || !missing(set, held).empty()) return false;
  }
  for (const auto& [name, set] : after.sets) {
    const Set *held = find_named(whole.sets, name), *old = find_named(before.sets, name);
    if (held == nullptr) continue;
    if (old == nullptr) return false;
    for (const auto& [key, value] : set.elements)
      if (held->elements.contains(key) && !old->elements.contains(key)) return false;
  }
  for (const auto& [name, chain] : before.chains) {
    const Chain* held = find_named(whole.chains, name);
    if (held == nullptr || *held != chain) return false;
  }
  for (const auto& [name, chain] : after.chains)
    if (find_named(before.chains, name) == nullptr && find_named(whole.chains, name) != nullptr) return false;
  return true;
}

void replace_part(Ruleset& whole, const Ruleset& before, const Ruleset& after) {
  for (const auto& [name, set] : before.sets) {
    if (find_named(after.sets, name) == nullptr) {
      whole.sets.erase(name);
      continue;
    }
    for (const auto& [key, value] : set.elements) whole.sets[name].elements.erase(key);
  }
  for (const auto& [name, set] : after.sets) {
    Set& held = whole.sets.try_emplace(name, Set{set.map, set.declaration, {}}).first->second;
    for (const auto& [key, value] : set.elements) held.elements.insert_or_assign(key, value);
  }
  for (const auto& [name, chain] : before.chains) whole.chains.erase(name);
  for (const auto& [name, chain] : after.chains) whole.chains.insert_or_assign(name, chain);
}

std::string remove_script(const std::string& table) { return "add table " + table + "\ndelete table " + table + "\n"; }

}  // namespace coracle::network
