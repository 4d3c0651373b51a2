// SPDX-License-Identifier: Apache-2.0
// See fetch.h.
#include "runtime/image/fetch/fetch.h"

#include <set>

#include "runtime/base/scope.h"
#include "runtime/image/fetch/image_archive.h"
#include "runtime/image/fetch/layers.h"
#include "runtime/image/fetch/registry.h"
#include "runtime/image/reference.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"

namespace coracle::image {
namespace {

std::vector<LayerJob> plan_layers(const std::vector<bool>& present) {
  std::vector<LayerJob> jobs;
  for (bool each : present) jobs.push_back({each, Bytes(0)});
  return jobs;
}

// Whether the download, whose rest it reads, brings the bytes of this digest: then no server has damaged them.
bool is_whole(Source& source, const Fd& partial, const Descriptor& descriptor) {
  if (!source.drain() || !sys::rewind(partial)) return false;
  FileSource file(partial);
  HashingSource bytes(file, descriptor.size);
  return bytes.drain() && bytes.size() == descriptor.size && bytes.digest() == descriptor.digest;
}

Result<void> fetch_layer(Content& content, Registry& registry, Unpacker& unpacker, size_t index, const Descriptor& descriptor,
                         std::atomic<int64_t>& done, std::stop_token stop) {
  for (bool again = false;; again = true) {
    Fd partial = TRY(content.open_partial(descriptor.digest));
    struct stat before = TRY(sys::stat(partial));
    Http http(stop);
    int64_t done_before = done;
    auto source = registry.layer(http, descriptor, partial, done);
    auto staged = unpacker.stage(index, *source, &descriptor);
    if (staged) return content.drop_partial(descriptor.digest);
    const Code code = staged.error().code();
    if (code != Code::invalid && code != Code::too_large) return std::move(staged).wrap("layer " + descriptor.digest.text());
    // Bytes from an earlier attempt may have been lost in a crash, and a mirror may send others: it begins anew.
    const bool may_be_old = before.st_size > 0 && !again;
    const std::set<size_t> suspects = source->senders();
    const bool is_damaged = may_be_old || !is_whole(*source, partial, descriptor);
    TRY(content.drop_partial(descriptor.digest));
    if (!is_damaged) return std::move(staged).wrap("layer " + descriptor.digest.text());  // such is the image, at each server
    if (!may_be_old && !registry.exclude(suspects)) {
      const std::string senders = registry.names_of(suspects);
      return std::move(staged).wrap("layer " + descriptor.digest.text() + (senders.empty() ? "" : ": from " + senders));
    }
    done = done_before;
  }
}

struct Found {  // the result of resolving a reference
  Digest top;   // the manifest or index that it names
  Manifest manifest;
};

Result<Found> find_manifest(Registry& registry, Http& http, const Reference& reference, const Platform& platform) {
  std::string which = reference.digest ? reference.digest->text() : reference.tag;
  Registry::Document document = TRY(registry.manifest(http, which).wrap("get manifest"));
  const Digest top = document.digest;
  for (int depth = 0; document.parsed.index; ++depth) {
    if (depth >= kIndexDepthMax) return Error(Code::invalid, "indexes within indexes");
    Descriptor chosen = TRY(choose(*document.parsed.index, platform));
    document = TRY(registry.manifest(http, chosen.digest.text()).wrap("get manifest"));
  }
  return Found{top, std::move(*document.parsed.manifest)};
}

Result<void> pull(const Job& job, const Reference& reference, Content& content, Unpacker& unpacker, const JobEvents& events) {
  auto endpoints = job.servers ? plan_servers(reference.registry, job.insecure_registries, *job.servers, job.hosts)
                               : plan_endpoints(reference.registry, job.insecure_registries, job.mirrors, job.hosts);
  if (std::string why = refusal_of(endpoints, job.hosts); !why.empty()) return Error(Code::invalid, std::move(why));
  Registry registry(reference, std::move(endpoints), job.credentials, job.insecure_registries, job.retry_delay, job.hosts,
                    job.mirror_repository);
  Http http({});
  Found found = TRY(find_manifest(registry, http, reference, job.platform));
  const Manifest& manifest = found.manifest;
  auto config_text = content.read_config(manifest.config.digest);
  if (!config_text) config_text = registry.blob(http, manifest.config, kManifestMax);
  std::string config = TRY(std::move(config_text).wrap("get configuration"));
  Configuration configuration = TRY(parse_configuration(config));
  if (configuration.diff_ids.size() != manifest.layers.size())
    return Error(Code::invalid, "the manifest and the configuration disagree about the layers");

  TRY(events.pin(manifest.config.digest, chain_ids(configuration.diff_ids)));
  std::vector<bool> present = TRY(unpacker.begin(configuration.diff_ids));
  std::vector<LayerJob> jobs = plan_layers(present);
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].size = Bytes(manifest.layers[i].size);
  auto bring = [&](size_t index, std::atomic<int64_t>& done, std::stop_token halt) {
    return fetch_layer(content, registry, unpacker, index, manifest.layers[index], done, halt);
  };
  TRY(bring_layers(unpacker, jobs, bring, events.progress, {}));
  TRY(content.write_config(manifest.config.digest, config));
  Record image{manifest.config.digest, {}, {reference.name() + "@" + found.top.text()}};
  if (!reference.tag.empty() && !reference.digest) image.references.push_back(reference.tagged());
  return events.add(image, registry.used_credentials());
}

Result<void> import_one(const Spool& spool, const ArchivedImage& image, const std::vector<Reference>& names, Content& content,
                        Unpacker& unpacker, const JobEvents& events) {
  Configuration configuration = TRY(parse_configuration(image.configuration));
  if (configuration.diff_ids.size() != image.layers.size())
    return Error(Code::invalid, "the manifest and the configuration disagree about the layers");
  TRY(events.pin(image.id, chain_ids(configuration.diff_ids)));
  std::vector<bool> present = TRY(unpacker.begin(configuration.diff_ids));
  std::vector<LayerJob> jobs = plan_layers(present);
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].present) continue;
    const ArchivedLayer& layer = image.layers[i];
    Fd file = TRY(spool.open(layer.file));
    FileSource source(file);
    TRY(check_layer(source, layer.descriptor ? &*layer.descriptor : nullptr, configuration.diff_ids[i]).wrap(layer.file));
  }
  auto bring = [&](size_t index, std::atomic<int64_t>&, std::stop_token) -> Result<void> {
    const ArchivedLayer& layer = image.layers[index];
    Fd file = TRY(spool.open(layer.file));
    FileSource source(file);
    return unpacker.stage(index, source, layer.descriptor ? &*layer.descriptor : nullptr).wrap(layer.file);
  };
  TRY(bring_layers(unpacker, jobs, bring, nullptr, {}));
  TRY(content.write_config(image.id, image.configuration));
  Record known_as{image.id, {}, {}};
  for (const Reference& name : names) {
    if (!name.tag.empty()) known_as.references.push_back(name.tagged());
    if (image.manifest) known_as.digests.push_back(name.name() + "@" + image.manifest->text());
  }
  return events.add(known_as, std::nullopt);
}

Result<void> import(const Job& job, const Fd& archive, Content& content, Unpacker& unpacker, const JobEvents& events) {
  std::vector<Reference> wanted;
  if (!job.name.empty()) {
    Reference reference = TRY(parse_reference(job.name));
    if (reference.digest) return Error(Code::invalid, "an imported image is named by a tag, not by a digest");
    wanted.push_back(std::move(reference));
  }
  Staging spool_dir = TRY(content.stage());
  FileSource file(archive);
  DecompressingSource plain(file);
  Spool spool = TRY(Spool::read(plain, spool_dir.diff()).wrap("read archive"));
  std::vector<ArchivedImage> images = TRY(read_archive(spool, job.platform).wrap("read archive"));
  if (images.empty()) return Error(Code::invalid, "the archive holds no image");
  if (!wanted.empty() && images.size() > 1)
    return Error(Code::invalid, "the archive holds " + std::to_string(images.size()) + " images: one name does not fit them all");
  for (const ArchivedImage& image : images) {
    const auto& names = wanted.empty() ? image.names : wanted;
    if (names.empty()) return Error(Code::invalid, "the archive does not name its image: give it a name");
    TRY(import_one(spool, image, names, content, unpacker, events).wrap("import " + names[0].text()));
  }
  return {};
}

}  // namespace

Result<void> fetch(const Job& job, const Fd* archive, Content& content, Unpacker& unpacker, const JobEvents& events) {
  if (job.kind == JobKind::import) {
    if (!archive) return Error(Code::internal, "an import without an archive");
    return import(job, *archive, content, unpacker, events);
  }
  Reference reference = TRY(parse_reference(job.name));
  return pull(job, reference, content, unpacker, events).wrap("pull " + reference.text());
}

}  // namespace coracle::image
