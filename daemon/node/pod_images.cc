// SPDX-License-Identifier: Apache-2.0
// Finds and pulls the images of one pod. See pod_images.h.
#include "daemon/node/pod_images.h"

#include <set>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr std::chrono::seconds kPullErrorShown{2};  // ErrImagePull is shown for so long, then ImagePullBackOff
constexpr std::string_view kOfVolume = "volume/";   // container names contain no slash

std::string seconds_text(std::chrono::milliseconds span) {
  if (span < std::chrono::seconds(1)) return std::to_string(span.count()) + "ms";
  return std::to_string(span.count() / 1000) + "." + std::to_string(span.count() % 1000) + "s";
}

bool shows_pull(std::string_view waiting_reason) {
  return waiting_reason == "ErrImagePull" || waiting_reason == "ImagePullBackOff" || waiting_reason == "InvalidImageName";
}

std::set<std::string_view> mounted_volumes(const json::value& container) {
  std::set<std::string_view> names;
  for (view::VolumeMount mount : view::Container(container).volume_mounts()) names.insert(mount.name());
  return names;
}

}  // namespace

std::optional<runtime::Image> PodImages::image_for(const ContainerRef& container, ContainerRecord& record) {
  ImageWanted wanted{record.name, std::string(view::Container(*container.spec).image()), pull_policy(*container.spec),
                     record.attempt + 1, &container};
  return find_image(wanted, container, record);
}

// A mounted image stays the same for the pod's lifetime, even if its name refers to another image later.
bool PodImages::mount_images(const ContainerRef& container, ContainerRecord& record) {
  bool all = true;
  const std::set<std::string_view> mounted_here = mounted_volumes(*container.spec);
  for (view::Volume volume : view::Pod(pod()).spec().volumes()) {
    std::string name(volume.name()), place = paths_.volume(name);
    if (!volume.has_image() || !mounted_here.contains(name)) continue;
    auto there = sys::open_directory(place);
    if (there && sys::is_mount_point(*there).value_or(false)) continue;
    std::string reference(volume.image().reference());
    ImageWanted wanted{std::string(kOfVolume) + name, reference, pull_policy(reference, volume.image().pull_policy()), 0,
                       nullptr};
    auto image = find_image(wanted, container, record);
    if (!image) {
      all = false;
      continue;
    }
    auto mounted = mount_image(*image, name, place);
    if (mounted) continue;
    config_error(container, record, "CreateContainerError",
                 mounted.take_error().wrap("failed to mount the image of volume " + coracle::quoted(name)));
    return false;
  }
  return all;
}

Result<void> PodImages::mount_image(const runtime::Image& image, const std::string& volume, const std::string& place) {
  TRY(sys::make_directories(place, 0755));
  std::vector<oci::IdMapping> ids;
  auto first = TRY(first_id());
  if (first) ids = {{0, *first, kPodIds}};
  return seams_.runtime.images().mount(image.id, image_holder(uid_, volume), place, ids);
}

std::optional<runtime::Image> PodImages::find_image(const ImageWanted& wanted, const ContainerRef& container,
                                                    ContainerRecord& record) {
  const std::pair<std::string, std::string> wanting{uid_, wanted.pull};
  // Before the lookup, so that an arriving image is not missed.
  seams_.wanting_images.with([&](WantingImages& all) { all.insert(wanting); });
  auto image = look_for_image(wanted, container, record);
  if (!image) return std::nullopt;
  seams_.wanting_images.with([&](WantingImages& all) { all.erase(wanting); });
  Pull& pull = entry_.pulls[wanted.pull];
  if (std::exchange(pull.told, wanted.attempt) == wanted.attempt) return image;
  const std::string shown = coracle::quoted(wanted.reference);
  const bool is_offline = wanted.policy == PullPolicy::always && !is_pulled(wanted);
  if (is_offline)
    event(true, "RegistryUnreachable",
          "Container image " + shown + " is present and runs, because it cannot be pulled: " + pull.error, wanted.about);
  else if (!is_pulled(wanted))
    event(false, "Pulled", "Container image " + shown + " already present on machine and can be accessed by the pod",
          wanted.about);
  // It may run anyway, if the kernel has an emulator (binfmt_misc).
  if (wanted.about && !image->other_machine.empty())
    event(true, "ImagePlatformMismatch",
          "Container image " + shown + " is for " + image->platform + ", this machine is " + image->other_machine, wanted.about);
  return image;
}

bool PodImages::is_pulled(const ImageWanted& wanted) const {
  const Pull& pull = entry_.pulls[wanted.pull];
  return pull.done && pull.attempt == wanted.attempt;
}

std::optional<runtime::Image> PodImages::look_for_image(const ImageWanted& wanted, const ContainerRef& container,
                                                        ContainerRecord& record) {
  const std::string &reference = wanted.reference, shown = coracle::quoted(reference);
  Pull& pull = entry_.pulls[wanted.pull];
  const bool pulled = is_pulled(wanted);
  auto found = seams_.runtime.images().find(reference);
  if (!found && found.error().code() == Code::invalid) {
    config_error(container, record, "InvalidImageName",
                 Error(Code::invalid, "Failed to apply default image tag " + shown + ": " + found.error().text()));
    return std::nullopt;
  }
  if (pulled || wanted.policy != PullPolicy::always) {
    if (found && (pulled && found->id == pull.image_id)) return *std::move(found);  // its registry has just authorized this pod
    if (found && may_use(seams_.config.image_verification, reference,
                         seams_.runtime.images().access(*found, reference, pull_credentials())))
      return *std::move(found);
    if (wanted.policy == PullPolicy::never) {
      config_error(container, record, "ErrImageNeverPull",
                   Error(Code::not_found, "Container image " + shown + " is not present with pull policy of Never"));
      return std::nullopt;
    }
  }
  if (pull.running) return std::nullopt;
  auto credentials = pull_credentials();
  if (seams_.config.run_present_images_offline && wanted.policy == PullPolicy::always && pull.is_unreachable &&
      pull.attempt == wanted.attempt) {
    if (found &&
        may_use(seams_.config.image_verification, reference, seams_.runtime.images().access(*found, reference, credentials))) {
      pull.back_off.reset();  // the container's next start asks the registry at once
      if (shows_pull(record.waiting_reason)) record.waiting_reason.clear();
      return *std::move(found);
    }
  }
  if (credentials != pull.credentials) pull.back_off.reset();  // other credentials may be accepted now
  auto wait = pull.error.empty() ? std::nullopt : pull.back_off.until(pull.failed_at);
  if (!wait || seams_.clock.steady() >= *wait) {
    begin_pull(wanted, std::move(credentials));
    return std::nullopt;
  }
  if (seams_.clock.steady() < pull.failed_at + kPullErrorShown) {
    wait_with(record, pull.reason, pull.error);
    again_at(pull.failed_at + kPullErrorShown);
    return std::nullopt;
  }
  if (record.waiting_reason != "ImagePullBackOff") {
    event(false, "BackOff", "Back-off pulling image " + shown, wanted.about);
    event(true, "Failed", "Error: ImagePullBackOff", wanted.about);
  }
  wait_with(record, "ImagePullBackOff", "Back-off pulling image " + shown + ": " + pull.reason + ": " + pull.error);
  again_at(*wait);
  return std::nullopt;
}

// The credentials of the pod's secrets. Records an event when the set of missing secrets changes.
std::vector<runtime::Credentials> PodImages::pull_credentials() {
  PullSecrets secrets = pull_secrets(pod(), lookup());
  std::string missing = join(secrets.missing, ", ");
  if (std::exchange(entry_.missing_pull_secrets, missing) != missing && !missing.empty())
    event(true, "FailedToRetrieveImagePullSecret",
          "Unable to retrieve some image pull secrets (" + missing + "); attempting to pull the image may not succeed.");
  return std::move(secrets.credentials);
}

void PodImages::begin_pull(const ImageWanted& wanted, std::vector<runtime::Credentials> credentials) {
  Pull& pull = entry_.pulls[wanted.pull];
  pull.attempt = wanted.attempt;
  pull.running = true;
  pull.done = false;
  pull.credentials = std::move(credentials);
  event(false, "Pulling", "Pulling image " + coracle::quoted(wanted.reference), wanted.about);
  auto task = [&worker = state_.worker, &seams = seams_, uid = uid_, name = wanted.pull, reference = wanted.reference,
               attempt = wanted.attempt, credentials = pull.credentials](std::stop_token stop) {
    SteadyTime began = seams.clock.steady();
    auto image = seams.runtime.images().pull(reference, credentials, nullptr, stop);
    auto took = std::chrono::duration_cast<std::chrono::milliseconds>(seams.clock.steady() - began);
    bool fine = image.ok();
    report(worker, uid, [&](Reports& reports) {
      reports.pulls.insert_or_assign(name, PullDone{reference, attempt, std::move(image), took});
    });
    if (fine) seams.images_changed();
    seams.look_again(uid);
  };
  seams_.pulls(std::move(task));
}

void PodImages::take_pull(const std::string& name, const PullDone& done) {
  Pull& pull = entry_.pulls[name];
  pull.running = false;
  const bool of_volume = name.starts_with(kOfVolume);
  const ContainerRef* container = of_volume ? nullptr : containers().find(name);
  if (!container && !of_volume) return;
  std::string shown = coracle::quoted(done.reference);
  if (!done.image) {
    pull.reason = "ErrImagePull";
    pull.error = done.image.error().text();
    pull.is_unreachable = runtime::is_registry_unreachable(done.image.error());
    pull.failed_at = seams_.clock.steady();
    pull.back_off.next(pull.failed_at, pull.failed_at);
    event(true, "Failed", "Failed to pull image " + shown + ": " + pull.error, container);
    event(true, "Failed", "Error: " + pull.reason, container);
  } else {
    pull.done = true;
    pull.is_unreachable = false;
    pull.image_id = done.image->id;
    pull.error.clear();
    pull.credentials.clear();
    pull.back_off.reset();
    event(false, "Pulled",
          "Successfully pulled image " + shown + " in " + seconds_text(done.took) + " (" + seconds_text(done.took) +
              " including waiting). Image size: " + std::to_string(done.image->size.count) + " bytes.",
          container);
  }
  for (const auto& each : containers().all()) {
    ContainerRecord* record = record_.find(each.name);
    bool waits =
        record && !record->running &&
        (of_volume ? mounted_volumes(*each.spec).contains(std::string_view(name).substr(kOfVolume.size())) : each.name == name);
    if (!waits) continue;
    if (!done.image) wait_with(*record, pull.reason, pull.error);
    else if (!of_volume || shows_pull(record->waiting_reason)) record->waiting_reason.clear();
  }
}

}  // namespace coracle::node
