// SPDX-License-Identifier: Apache-2.0
// See packed_text.h: deflate with a dictionary of typical event text, because each event is short.
#include "store/object/packed_text.h"

#include <zlib.h>

#include <new>

#include "runtime/base/result.h"
#include "runtime/base/scope.h"

namespace coracle {
namespace {

// Smaller than zlib's defaults: a text is about a kilobyte. Window bits, negative for no header; memory level 1 to 9.
constexpr int kWindow = -12, kMemory = 5;

constexpr std::string_view kSample =
    "persistentvolume-controllerPersistentVolumeClaim\"reason\":\"FailedBinding\",\"ExternalProvisioning\""
    "WaitForFirstConsumer\",\"message\":\"waiting for first consumer to be created before binding\""
    "\"reason\":\"WaitForPodScheduled\",\"message\":\"waiting for pod  to be scheduled\""
    "\"reason\":\"ProvisioningSucceeded\",\"message\":\"Successfully provisioned volume pvc-\""
    "Liveness probe failed: Readiness probe failed: Startup probe failed: Back-off restarting failed container "
    "Error: ImagePullBackOffError: ErrImagePullBack-off pulling image \"Failed to pull image \"FailedFailedMountFailedScheduling"
    "0/1 nodes are available: persistentvolumeclaim \" not foundScaled up replica set  from 0 to 1Created pod: Deleted pod: "
    "SuccessfulCreateSuccessfulDeleteScalingReplicaSetJob completedSawCompletedJobreplicaset-controllerjob-controller"
    "cronjob-controllerWarningUnhealthyBackOffPulling image \"docker.io/library/Successfully pulled image \"localhost/"
    "\"reason\":\"Killing\",\"message\":\"Stopping container \"reason\":\"Scheduled\",\"message\":\"Successfully assigned "
    "default/"
    "\",\"source\":{\"component\":\"default-scheduler\"},\"reason\":\"Pulled\",\"message\":\"Container image \\\""
    "\\\" already present on machine\"reason\":\"Created\",\"message\":\"Created container: "
    "\"reason\":\"Started\",\"message\":\"Started container "
    "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"\",\"namespace\":\"kube-system\",\"namespace\":"
    "\"default\","
    "\"uid\":\"\",\"resourceVersion\":\"\",\"creationTimestamp\":\"20:00:00Z\"},"
    "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"\",\"uid\":\"\",\"apiVersion\":\"v1\","
    "\"resourceVersion\":\"\",\"fieldPath\":\"spec.containers{\"},\"reason\":\"\",\"message\":\""
    "\",\"source\":{\"component\":\"kubelet\",\"host\":\"\"},\"firstTimestamp\":\"20:00:00Z\",\"lastTimestamp\":\"20:00:00Z\","
    "\"count\":1,\"type\":\"Normal\",\"eventTime\":null,\"reportingComponent\":\"kubelet\",\"reportingInstance\":\"\"}";

Bytef* bytes(std::string_view text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

// The most frequent text is last.
std::string dictionary_with(std::string_view beside) { return std::string(kSample).append(beside); }

}  // namespace

std::string pack_text(std::string_view text, std::string_view beside) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  Scope end([&] { (void)deflateEnd(&stream); });
  const std::string dictionary = dictionary_with(beside);
  (void)deflateSetDictionary(&stream, bytes(dictionary), uInt(dictionary.size()));  // cannot fail before the first deflate
  std::string packed(text.size(), '\0');
  stream.next_in = bytes(text), stream.avail_in = uInt(text.size());
  stream.next_out = bytes(packed), stream.avail_out = uInt(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return {};  // it would not be shorter
  packed.erase(packed.size() - stream.avail_out);
  return packed.size() < text.size() ? packed : std::string();
}

std::string unpack_text(std::string_view packed, size_t size, std::string_view beside) {
  z_stream stream{};
  if (inflateInit2(&stream, kWindow) != Z_OK) bug("unpack_text", "zlib has no memory", std::source_location::current());
  Scope end([&] { (void)inflateEnd(&stream); });
  const std::string dictionary = dictionary_with(beside);
  (void)inflateSetDictionary(&stream, bytes(dictionary), uInt(dictionary.size()));
  std::string text(size, '\0');
  stream.next_in = bytes(packed), stream.avail_in = uInt(packed.size());
  stream.next_out = bytes(text), stream.avail_out = uInt(size);
  int outcome = inflate(&stream, Z_FINISH);
  if (outcome != Z_STREAM_END || stream.avail_out > 0)
    bug("unpack_text", "this is not what was packed", std::source_location::current());
  return text;
}

}  // namespace coracle
