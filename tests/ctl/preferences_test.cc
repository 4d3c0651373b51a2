// SPDX-License-Identifier: Apache-2.0
// Preferences of the kuberc file, and how they change a line. What kubectl 1.36 does with the same file decides.
#include "ctl/preferences.h"

#include <gtest/gtest.h>

#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

struct PreferencesLine {
  CommandLine line{"test", "a command line"};
  std::string ns, output;
  std::vector<std::string> args;
  bool watch = false;

  PreferencesLine() {
    line.root().add_option("-n,--namespace", ns, "the namespace");
    Command get = line.root().add_command("get", "shows");
    get.add_option("args", args, "what");
    get.add_option("-o,--output", output, "how");
    get.add_flag("-w,--watch", watch, "follow");
    line.root().add_command("set", "sets").add_command("env", "variables").add_option("-o,--output", output, "how");
  }
};

constexpr const char* kKuberc = R"(
apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
defaults:
- command: get
  options:
  - name: output
    default: wide
- command: set env
  options:
  - name: output
    default: yaml
aliases:
- name: getn
  command: get
  prependArgs: [nodes]
  appendArgs: ["--", x]
  options:
  - name: watch
    default: "true"
)";

Preferences parsed_kuberc(const std::string& text) {
  std::vector<std::string> unknown;
  json::value document = MUST(decode_preference(text, "kuberc", unknown));
  EXPECT_TRUE(unknown.empty()) << join(unknown, ",");
  return MUST(preferences_of(document));
}

std::string applied(std::vector<std::string> words, const std::string& text = kKuberc) {
  PreferencesLine line;
  auto changed = apply_preferences(line.line.root(), parsed_kuberc(text), std::move(words));
  return changed ? join(*changed, " ") : changed.error().text();
}

TEST(Preferences, give_flags_their_defaults) {
  EXPECT_EQ(applied({"get", "pods"}), "get pods --output=wide");
  EXPECT_EQ(applied({"get", "pods", "-o", "json"}), "get pods -o json");
  EXPECT_EQ(applied({"get", "pods", "-ojson"}), "get pods -ojson");
  EXPECT_EQ(applied({"get", "pods", "--output=json"}), "get pods --output=json");
  EXPECT_EQ(applied({"-n", "x", "get", "pods", "--", "y"}), "-n x get pods --output=wide -- y");
  EXPECT_EQ(applied({"set", "env"}), "set env --output=yaml");
  EXPECT_EQ(applied({"set"}), "set");
}

TEST(Preferences, know_how_much_is_to_be_told) {
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{"get", "pods", "-v=5"}, Words{"get", "-v", "5", "pods"}, Words{"--v=5", "get"},
                             Words{"get", "--v", "5"}, Words{"get", "-v5"}, Words{"-v1", "get", "-v5"}})
    EXPECT_EQ(given_verbosity(words), 5) << join(words, " ");
  for (const Words& words : {Words{"get", "pods"}, Words{"create", "--validate=5"}, Words{"exec", "web", "--", "top", "-v", "5"},
                             Words{"get", "-v"}, Words{"get", "-v", "many"}})
    EXPECT_EQ(given_verbosity(words), 0) << join(words, " ");
}

TEST(Preferences, have_aliases) {
  EXPECT_EQ(applied({"getn"}), "get nodes --watch=true -- x");
  EXPECT_EQ(applied({"-n", "getn", "getn", "edge", "-w=false"}), "-n getn get nodes edge -w=false -- x");
  EXPECT_EQ(applied({"other"}), "other");
  EXPECT_EQ(applied({"gone"},
                    "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\naliases:\n- name: gone\n"
                    "  command: nothing\n"),
            "command \"nothing\" not found to set alias \"gone\"");
}

TEST(Preferences, name_flags_that_are_not_there) {
  const std::string head = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n";
  EXPECT_EQ(applied({"get"}, head + "defaults:\n- command: get\n  options:\n  - name: colour\n    default: red\n"),
            "invalid flag colour for command get");
  EXPECT_EQ(applied({"get"}, head + "defaults:\n- command: get\n  options:\n  - name: watch\n    default: maybe\n"),
            "could not apply value maybe to flag watch: true or false");
}

TEST(Preferences, are_read_from_older_files) {
  Preferences old = parsed_kuberc(
      "apiVersion: v1\nkind: Other\n---\napiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\noverrides:\n"
      "- command: get\n  flags:\n  - name: output\n    default: json\n");
  ASSERT_EQ(old.defaults.size(), 1u);
  EXPECT_EQ(old.defaults.front().options.front().value, "json");
  std::vector<std::string> unknown;
  EXPECT_TRUE(MUST(decode_preference("", "kuberc", unknown)).is_null());
  EXPECT_FALSE(decode_preference("kind: Other\n", "kuberc", unknown));
  EXPECT_FALSE(decode_preference("a: [", "kuberc", unknown));
  MUST(decode_preference("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\nx: 1\naliases:\n- name: a\n  y: 2\n",
                         "kuberc", unknown));
  EXPECT_EQ(unknown, (std::vector<std::string>{"unknown field \"x\"", "unknown field \"aliases[0].y\""}));
}

TEST(Preferences, are_checked) {
  auto problem = [](const std::string& lines) {
    std::vector<std::string> unknown;
    auto document = decode_preference("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n" + lines, "kuberc", unknown);
    if (!document) return document.error().text();
    auto read = preferences_of(*document);
    return read ? std::string() : read.error().text();
  };
  EXPECT_EQ(problem("aliases:\n- name: a-b\n  command: get\n"), "invalid alias name, can only include alphabetical characters");
  EXPECT_EQ(problem("aliases:\n- name: a\n- name: a\n"), "duplicate alias name a");
  EXPECT_EQ(problem("defaults:\n- command: get\n  options:\n  - name: --output\n    default: x\n"),
            "flag name --output should be in long form without dashes");
  EXPECT_EQ(problem("credentialPluginPolicy: Allowlist\n"),
            "credential plugin policy set to \"Allowlist\", but allowlist is unspecified");
  EXPECT_EQ(problem("credentialPluginPolicy: Some\n"), "unknown plugin policy: \"Some\"");
  EXPECT_NE(problem("defaults: 3\n"), "");
}

TEST(Preferences, say_which_credential_plugins_run) {
  EXPECT_TRUE(check_plugin_policy("", {}, "x"));
  EXPECT_TRUE(check_plugin_policy("AllowAll", {}, "x"));
  EXPECT_FALSE(check_plugin_policy("DenyAll", {}, "x"));
  EXPECT_TRUE(check_plugin_policy("Allowlist", {"x"}, "x"));
  EXPECT_TRUE(check_plugin_policy("Allowlist", {"sh"}, "/bin/sh") || check_plugin_policy("Allowlist", {"sh"}, "/usr/bin/sh"));
  EXPECT_FALSE(check_plugin_policy("Allowlist", {"y"}, "x"));
}

}  // namespace
}  // namespace coracle::ctl
