// SPDX-License-Identifier: Apache-2.0
// See payload.h.
#include "daemon/node/volume/payload.h"

#include <optional>

#include "daemon/node/container_spec.h"
#include "daemon/node/pod.h"
#include "daemon/node/volume/pod_volume.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::node {
namespace {

constexpr unsigned kDefaultMode = 0644;

// The user of all containers if they have the same one: then tokens are owned by it.
std::optional<uint32_t> common_user(const json::value& pod) {
  std::optional<int64_t> common;
  for (const auto& container : containers_of(pod)) {
    auto user = run_as_user(pod, *container.spec);
    if (!user || (common && *common != *user)) return std::nullopt;
    common = user;
  }
  if (!common) return std::nullopt;
  return uint32_t(*common);
}

class PayloadMaker {
 public:
  PayloadMaker(const json::value& pod, const PayloadSources& sources) : pod_(pod), sources_(sources) {}

  Result<Payload> make(view::Volume volume) {
    if (volume.has_config_map()) {
      view::ConfigMapVolumeSource source = volume.config_map();
      TRY(add_config_map(source, source.name(), mode_of(source.default_mode_or(kDefaultMode))));
    } else if (volume.has_secret()) {
      view::SecretVolumeSource source = volume.secret();
      TRY(add_secret(source, source.secret_name(), mode_of(source.default_mode_or(kDefaultMode))));
    } else if (volume.has_downward_api()) {
      view::DownwardAPIVolumeSource source = volume.downward_api();
      TRY(add_downward(source.items(), mode_of(source.default_mode_or(kDefaultMode))));
    } else if (volume.has_projected()) {
      unsigned mode = mode_of(volume.projected().default_mode_or(kDefaultMode));
      for (view::VolumeProjection source : volume.projected().sources()) TRY(add_projection(source, mode));
    }
    return std::move(payload_);
  }

 private:
  static unsigned mode_of(int64_t number) { return unsigned(number) & 07777; }

  Result<void> add_projection(view::VolumeProjection source, unsigned mode) {
    if (source.has_config_map()) return add_config_map(source.config_map(), source.config_map().name(), mode);
    if (source.has_secret()) return add_secret(source.secret(), source.secret().name(), mode);
    if (source.has_downward_api()) return add_downward(source.downward_api().items(), mode);
    if (source.has_service_account_token()) return add_token(source.service_account_token(), mode);
    return Error(Code::unsupported, "a source of the projected volume is of a kind that this node does not know");
  }

  // `source`: of a volume or of a projected one.
  template <typename Source>
  Result<void> add_config_map(Source source, std::string_view name, unsigned mode) {
    ObjectPtr map = TRY(objects_.config_map(name));
    if (!map && source.optional()) return {};
    if (!map) return Error(Code::not_found, "configmap " + quoted(name) + " not found");
    view::ConfigMap viewed(*map);
    Values values{viewed.data(), viewed.binary_data(), false};
    return add_items(source.items(), source.optional(), values, mode, "configmap references non-existent config key: ");
  }

  template <typename Source>
  Result<void> add_secret(Source source, std::string_view name, unsigned mode) {
    ObjectPtr secret = TRY(objects_.secret(name));
    if (!secret && source.optional()) return {};
    if (!secret) return Error(Code::not_found, "secret " + quoted(name) + " not found");
    Values values{view::Secret(*secret).data(), view::ConfigMap().binary_data(), true};
    return add_items(source.items(), source.optional(), values, mode, "references non-existent secret key: ");
  }

  struct Values {
    const json::object &data, &binary;
    bool is_secret;
  };

  Result<void> add_items(view::Range<view::KeyToPath> items, bool is_optional, const Values& values, unsigned mode,
                         std::string_view missing) {
    const auto& [data, binary, is_secret] = values;
    if (items.empty()) {
      for (const auto& [key, value] : data) TRY(add_value(std::string(key), value, is_secret, mode));
      for (const auto& [key, value] : binary) TRY(add_value(std::string(key), value, true, mode));
    }
    for (view::KeyToPath item : items) {
      const std::string_view key = item.key();
      const json::value *text = data.if_contains(key), *bytes = binary.if_contains(key);
      const json::value* found = bytes && bytes->is_string() ? bytes : text;
      if (found && found->is_string())
        TRY(add_value(std::string(item.path()), *found, is_secret || found == bytes, mode_of(item.mode_or(mode))));
      else if (!is_optional) return Error(Code::not_found, std::string(missing) + std::string(key));
    }
    return {};
  }

  Result<void> add_value(std::string path, const json::value& value, bool is_base64, unsigned mode) {
    if (!value.is_string()) return {};
    if (!is_base64) return add(path, std::string(value.get_string()), mode);
    std::string bytes = TRY(base64_decode(value.get_string()));
    return add(path, std::move(bytes), mode);
  }

  Result<void> add(const std::string& path, std::string content, unsigned mode) {
    TRY(budget_.take(path.size() + content.size()));
    payload_[path] = {std::move(content), mode, {}};
    return {};
  }

  Result<void> add_downward(view::Range<view::DownwardAPIVolumeFile> items, unsigned mode) {
    for (view::DownwardAPIVolumeFile item : items) {
      std::string value;
      if (item.has_field_ref()) {
        value = TRY(field_value(pod_, item.field_ref().field_path(), sources_.identity));
      } else if (item.has_resource_field_ref()) {
        view::ResourceFieldSelector resource = item.resource_field_ref();
        auto container = find_container(pod_, resource.container_name());
        if (!container) return Error(Code::invalid, "container " + quoted(resource.container_name()) + " not found");
        value = TRY(resource_value(*container->spec, resource.resource(), resource.divisor(), sources_.identity));
      }
      TRY(add(std::string(item.path()), std::move(value), mode_of(item.mode_or(mode))));
    }
    return {};
  }

  Result<void> add_token(view::ServiceAccountTokenProjection source, unsigned mode) {
    std::string path(source.path());
    std::string token = TRY(sources_.token(source.audience(), source.expiration_seconds_or(3600), path));
    auto user = common_user(pod_);
    if (user || fs_group(pod_)) mode = 0600;
    TRY(budget_.take(path.size() + token.size() + kTokenCost));
    payload_[path] = {std::move(token), mode, user};
    return {};
  }

  const json::value& pod_;
  const PayloadSources& sources_;
  TextBudget budget_{"the volume", kPayloadBytesMax};
  NamedObjects objects_{sources_.lookup, budget_};
  Payload payload_;
};

}  // namespace

Result<Payload> volume_payload(const json::value& pod, const json::value& volume, const PayloadSources& sources) {
  return PayloadMaker(pod, sources).make(view::Volume(volume));
}

}  // namespace coracle::node
