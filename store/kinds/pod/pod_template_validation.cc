// SPDX-License-Identifier: Apache-2.0
// Validation of pod templates beyond their specs, and of annotations that named seccomp and AppArmor profiles before there were
// fields for them, in templates and pods. Source: Kubernetes "Seccomp and Kubernetes", "Restrict a Container's Access to
// Resources with AppArmor"; core validation.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_validation.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kAppArmorOf = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kSeccompOf = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kSeccompOfPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kLocalhost = "localhost/";

// A pod or a template. `at`: the path of a template, "" for a pod.
struct Profiled {
  const json::value& pod;
  const std::string& at;

  const json::object& annotations() const { return view::Pod(pod).metadata().annotations(); }
  std::string annotations_path() const {
    return at.empty() ? "metadata.annotations" : sub(at, "annotations");
  }  // Kubernetes' own
  // nullptr if it is absent.
  const json::string* annotation(const std::string& key) const {
    const json::value* found = annotations().if_contains(key);
    return found ? found->if_string() : nullptr;
  }
  template <typename Visit>
  void each_container(Visit visit) const {
    for (std::string_view list : {"spec.initContainers", "spec.containers", "spec.ephemeralContainers"}) {
      const json::array& containers = get_array(pod, list);
      for (size_t i = 0; i < containers.size(); ++i) visit(containers[i], item(sub(at, list), i));
    }
  }
  std::set<std::string_view> container_names() const {
    std::set<std::string_view> names;
    each_container([&](const json::value& container, const std::string&) { names.insert(view::Container(container).name()); });
    return names;
  }
};

void check_app_armor_annotation(const std::string& path, std::string_view key, std::string_view profile,
                                const std::set<std::string_view>& containers, Findings& out) {
  std::string at = entry(path, key);
  std::string_view container = key.substr(kAppArmorOf.size());
  if (!containers.contains(container)) out.invalid(at, container, "container not found");
  bool known = profile.empty() || profile == "runtime/default" || profile == "unconfined" || profile.starts_with(kLocalhost);
  if (!known) out.invalid(at, profile, "invalid AppArmor profile name: " + quoted(profile));
}

void check_seccomp_annotation(const std::string& path, std::string_view key, std::string_view profile, Findings& out) {
  if (profile == "runtime/default" || profile == "docker/default" || profile == "unconfined") return;
  std::string at = sub(path, key);
  if (!profile.starts_with(kLocalhost)) return out.invalid(at, profile, "must be a valid seccomp profile");
  std::string_view file = profile.substr(kLocalhost.size());
  if (file.starts_with('/')) out.invalid(at, file, "must be a relative path");
  for (std::string_view part : split(file, '/')) {
    if (part == "..") return out.invalid(at, file, "must not contain '..'");
  }
}

// `what`: its name in messages.
template <typename Profile>
void check_agreement(Profile profile, std::string_view annotation, std::string_view what, const std::string& path,
                     Findings& out) {
  std::string_view type = profile.type();
  bool local = type == "Localhost", agrees = true;
  if (type == "Unconfined") agrees = annotation == "unconfined";
  if (type == "RuntimeDefault") agrees = annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default");
  if (local) agrees = annotation.starts_with(kLocalhost);
  if (!agrees) return out.forbidden(sub(path, "type"), std::string(what) + " type in annotation and field must match");
  if (local && annotation.substr(kLocalhost.size()) != profile.localhost_profile())
    out.forbidden(sub(path, "localhostProfile"), std::string(what) + " profile in annotation and field must match");
}

void check_formats(const Profiled& of, Findings& out) {
  if (of.annotations().empty()) return;
  const std::string path = of.annotations_path();
  const std::set<std::string_view> containers = of.container_names();
  for (const auto& pair : of.annotations()) {
    std::string_view key = pair.key();
    const json::string* profile = pair.value().if_string();
    if (!profile || out.full()) continue;
    if (key.starts_with(kAppArmorOf)) check_app_armor_annotation(path, key, *profile, containers, out);
    if (key == kSeccompOfPod || key.starts_with(kSeccompOf)) check_seccomp_annotation(path, key, *profile, out);
  }
}

void check_agreements(const Profiled& of, Findings& out) {
  if (of.annotations().empty()) return;
  const json::string* annotation = of.annotation(std::string(kSeccompOfPod));
  view::PodSpec spec = view::Pod(of.pod).spec();
  view::SeccompProfile seccomp = spec.security_context().seccomp_profile();
  if (seccomp && annotation)
    check_agreement(seccomp, *annotation, "seccomp", sub(of.at, "spec.securityContext.seccompProfile"), out);
  const bool is_windows = spec.os().name() == "windows";
  of.each_container([&](const json::value& one, const std::string& at) {
    view::Container container(one);
    std::string name(container.name());
    const json::string *own_seccomp = of.annotation(std::string(kSeccompOf) + name),
                       *own_armor = of.annotation(std::string(kAppArmorOf) + name);
    view::SeccompProfile field = container.security_context().seccomp_profile();
    view::AppArmorProfile armor_field = container.security_context().app_armor_profile();
    if (!armor_field) armor_field = spec.security_context().app_armor_profile();
    if (field && own_seccomp) check_agreement(field, *own_seccomp, "seccomp", sub(at, "securityContext.seccompProfile"), out);
    if (armor_field && own_armor && !is_windows)
      check_agreement(armor_field, *own_armor, "apparmor", sub(at, "securityContext.appArmorProfile"), out);
  });
}

void check_pod_template(const json::value& value, const std::string& path, Findings& out) {
  check_formats({value, path}, out);
  check_agreements({value, path}, out);
  if (!view::Pod(value).spec().ephemeral_containers().empty())
    out.forbidden(sub(path, "spec.ephemeralContainers"), "ephemeral containers not allowed in pod template");
}

constexpr NamedValidationRule kTemplateChecks[] = {{"io.k8s.api.core.v1.PodTemplateSpec", check_pod_template}};

}  // namespace

std::span<const NamedValidationRule> template_rules() { return kTemplateChecks; }

void check_profile_annotations(const json::value& pod, Findings& out) {
  const std::string here;
  check_formats({pod, here}, out);
}

void check_profiles_agree(const json::value& pod, Findings& out) {
  const std::string here;
  check_agreements({pod, here}, out);
}

}  // namespace coracle::schema
