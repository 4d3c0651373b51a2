// SPDX-License-Identifier: Apache-2.0
// The output of `features` must be true: everything it lists is passed to the parser and the validator of config.json.
#include "runtime/oci/features_document.h"

#include <gtest/gtest.h>

#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/oci/mount_options.h"
#include "runtime/oci/parse.h"
#include "runtime/oci/seccomp_profile.h"
#include "runtime/oci/validate.h"
#include "tests/runtime/expect.h"

namespace coracle::oci {
namespace {

FeatureInfo info() {
  FeatureInfo out;
  out.runtime_version = "0.1.0";
  out.seccomp_version = "2.5.4";
  out.seccomp_architectures = {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"};
  out.seccomp_flags = {"SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_OF_TOMORROW"};
  return out;
}

const json::array& array_at(const json::value& value, std::string_view path) {
  EXPECT_FALSE(get_array(value, path).empty()) << path;
  return get_array(value, path);
}

Spec spec() {
  Spec out = default_spec();
  out.process.args = {"sh"};
  return out;
}

TEST(OciFeatures, has_every_member_of_the_specification) {
  json::value out = features(info());
  for (const char* path : {"ociVersionMin",
                           "ociVersionMax",
                           "hooks",
                           "mountOptions",
                           "annotations",
                           "potentiallyUnsafeConfigAnnotations",
                           "linux.namespaces",
                           "linux.capabilities",
                           "linux.cgroup.v1",
                           "linux.cgroup.v2",
                           "linux.cgroup.systemd",
                           "linux.cgroup.systemdUser",
                           "linux.cgroup.rdma",
                           "linux.seccomp.enabled",
                           "linux.seccomp.actions",
                           "linux.seccomp.operators",
                           "linux.seccomp.archs",
                           "linux.seccomp.knownFlags",
                           "linux.seccomp.supportedFlags",
                           "linux.apparmor.enabled",
                           "linux.selinux.enabled",
                           "linux.memoryPolicy.modes",
                           "linux.memoryPolicy.flags",
                           "linux.intelRdt.enabled",
                           "linux.intelRdt.schemata",
                           "linux.intelRdt.monitoring",
                           "linux.mountExtensions.idmap.enabled",
                           "linux.netDevices.enabled"})
    EXPECT_TRUE(find(out, path)) << path;
  EXPECT_EQ(get_object(out, "annotations").at("io.github.seccomp.libseccomp.version"), "2.5.4");
  EXPECT_EQ(to_text(*find(out, "linux.seccomp.supportedFlags")), R"(["SECCOMP_FILTER_FLAG_LOG"])");
  EXPECT_EQ(to_text(*find(out, "linux.seccomp.archs")), R"(["SCMP_ARCH_AARCH64","SCMP_ARCH_X86_64"])");
}

TEST(OciFeatures, accepts_what_it_lists) {
  json::value out = features(info());
  for (const char* version : {"ociVersionMin", "ociVersionMax"}) {
    Spec wanted = spec();
    wanted.version = get_string(out, version);
    EXPECT_TRUE(validate(wanted).ok()) << version;
  }
  for (const json::value& name : array_at(out, "mountOptions")) EXPECT_TRUE(mount_option(std::string(name.as_string())));
  for (const json::value& name : array_at(out, "linux.namespaces")) {
    Spec wanted = spec();
    wanted.linux_.namespaces = {{std::string(name.as_string()), ""}};
    EXPECT_TRUE(validate(wanted).ok()) << name;
  }
  for (const json::value& name : array_at(out, "linux.capabilities"))
    EXPECT_TRUE(capability_number(std::string(name.as_string()))) << name;
  for (const json::value& name : array_at(out, "hooks")) {
    json::value config = to_json(spec());
    json::array one{json::object{{"path", "/bin/true"}}};
    make(config, "hooks").emplace_object()[name.as_string()] = one;
    auto read = parse_spec(config);
    ASSERT_OK(read);
    EXPECT_TRUE(*find(to_json(*read), "hooks") == *find(config, "hooks")) << name;
  }
  for (const json::value& mode : array_at(out, "linux.memoryPolicy.modes")) {
    Spec wanted = spec();
    bool has_nodes = mode != "MPOL_DEFAULT" && mode != "MPOL_LOCAL";
    wanted.linux_.memory_policy = MemoryPolicy{std::string(mode.as_string()), has_nodes ? "0" : "", {}};
    EXPECT_TRUE(validate(wanted).ok()) << mode;
  }
  for (const json::value& flag : array_at(out, "linux.memoryPolicy.flags")) {
    Spec wanted = spec();
    wanted.linux_.memory_policy = MemoryPolicy{"MPOL_BIND", "0", {std::string(flag.as_string())}};
    EXPECT_TRUE(validate(wanted).ok()) << flag;
  }
}

TEST(OciFeatures, reads_seccomp_profiles_of_what_it_lists) {
  json::value out = features(info());
  for (const json::value& action : array_at(out, "linux.seccomp.actions"))
    for (const json::value& op : array_at(out, "linux.seccomp.operators")) {
      json::object rule{{"names", json::array{"read"}},
                        {"action", action},
                        {"args", json::array{json::object{{"index", 0}, {"value", 1}, {"op", op}}}}};
      json::value profile = json::object{{"defaultAction", "SCMP_ACT_ALLOW"},
                                         {"listenerPath", "/s"},
                                         {"flags", *find(out, "linux.seccomp.knownFlags")},
                                         {"architectures", *find(out, "linux.seccomp.archs")},
                                         {"syscalls", json::array{rule}}};
      auto read = parse_seccomp(profile);
      EXPECT_TRUE(read.ok()) << read.error().text();
    }
}

TEST(OciFeatures, says_what_it_has_not) {
  FeatureInfo none;
  json::value out = features(none);
  EXPECT_EQ(to_text(*find(out, "linux.seccomp")), R"({"enabled":false})");
  EXPECT_EQ(to_text(*find(out, "potentiallyUnsafeConfigAnnotations")), "[]");
  EXPECT_FALSE(get_bool(out, "linux.cgroup.systemd", true));
  EXPECT_FALSE(get_object(out, "annotations").contains("io.github.seccomp.libseccomp.version"));
  none.has_systemd = true;
  EXPECT_EQ(to_text(*find(features(none), "potentiallyUnsafeConfigAnnotations")), R"(["org.systemd.property."])");
  none.own_annotations = {"some.annotation"};
  EXPECT_EQ(to_text(*find(features(none), "potentiallyUnsafeConfigAnnotations")),
            R"(["some.annotation","org.systemd.property."])");
  // The validator does not accept it either.
  EXPECT_FALSE(get_bool(out, "linux.intelRdt.enabled", true));
  Spec wanted = spec();
  wanted.linux_.intel_rdt.emplace();
  EXPECT_CODE(validate(wanted), Code::unsupported);
}

}  // namespace
}  // namespace coracle::oci
