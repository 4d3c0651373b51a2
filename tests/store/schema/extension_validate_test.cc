// SPDX-License-Identifier: Apache-2.0
// Validation of storage, flow control, admission registration, definitions, API services, devices, events and leases: the
// refusals for each kind, with field and message; and that the sample of every kind is valid.
#include <gtest/gtest.h>

#include "runtime/base/text.h"
#include "store/object/status.h"
#include "store/schema/convert.h"
#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/validate.h"
#include "tests/store/schema/sample_objects.h"

namespace coracle::schema {
namespace {

const KindInfo& info_by_kind(const std::string& qualified) {
  size_t slash = qualified.rfind('/');
  const KindInfo* info = catalog().by_kind(qualified.substr(0, slash), qualified.substr(slash + 1));
  if (!info) ADD_FAILURE() << qualified;
  return *info;
}

json::value prepared_as_stored(const KindInfo& info, json::value body) {
  if (info.kind.namespaced) make(body, "metadata.namespace") = "default";
  json::value value = MUST(decode(info.type(), std::move(body))).value;
  apply_defaults(info, value);
  value = convert(info, info.stored(), std::move(value));
  apply_defaults(info.stored(), value);
  return value;
}

// A sample with one field replaced: `pointer` is a path of keys and indexes, /spec/drivers/0/name.
json::value changed(const std::string& kind, const std::string& pointer, const std::string& text) {
  json::value body = MUST(parse_json(sample_objects().at(kind)));
  json::value* at = &body;
  for (std::string_view part : split(std::string_view(pointer).substr(1), '/')) {
    if (json::array* items = at->if_array()) {
      at = &(*items)[parse_number<size_t>(part).value_or(0)];
      continue;
    }
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[part];
  }
  *at = MUST(parse_json(text));
  return body;
}

std::string shown_with_reasons(const std::vector<Cause>& causes) {
  std::string text;
  for (const Cause& cause : causes) text += cause.field + ": " + cause.reason + ": " + cause.message + "\n";
  return text;
}

TEST(Samples, are_valid) {
  for (const auto& [name, text] : sample_objects()) {
    size_t slash = name.rfind('/');
    const KindInfo* info = catalog().by_kind(name.substr(0, slash), name.substr(slash + 1));
    if (!info || text.empty() || name == "batch/v1/Job") continue;  // a job's selector is generated on creation
    json::value object = prepared_as_stored(*info, MUST(parse_json(text)));
    make(object, "status.storedVersions") = json::array{"v1"};
    if (name != "apiextensions.k8s.io/v1/CustomResourceDefinition") object.get_object().erase("status");
    EXPECT_EQ(shown_with_reasons(validate_create(*info, object)), "") << name;
  }
}

struct SampleRow {
  const char* kind;
  const char* pointer;
  const char* value;
  const char* want;  // one line of the result
};

constexpr const char* kClass = "storage.k8s.io/v1/StorageClass";
constexpr const char* kDriver = "storage.k8s.io/v1/CSIDriver";
constexpr const char* kCsiNode = "storage.k8s.io/v1/CSINode";
constexpr const char* kStorageCapacity = "storage.k8s.io/v1/CSIStorageCapacity";
constexpr const char* kAttach = "storage.k8s.io/v1/VolumeAttachment";
constexpr const char* kAttributes = "storage.k8s.io/v1/VolumeAttributesClass";
constexpr const char* kFlow = "flowcontrol.apiserver.k8s.io/v1/FlowSchema";
constexpr const char* kLevel = "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration";
constexpr const char* kMutating = "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration";
constexpr const char* kValidating = "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration";
constexpr const char* kPolicy = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy";
constexpr const char* kBinding = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding";
constexpr const char* kChanger = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
constexpr const char* kChangerBinding = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding";
constexpr const char* kDefinition = "apiextensions.k8s.io/v1/CustomResourceDefinition";
constexpr const char* kApiService = "apiregistration.k8s.io/v1/APIService";
constexpr const char* kDeviceClass = "resource.k8s.io/v1/DeviceClass";
constexpr const char* kClaim = "resource.k8s.io/v1/ResourceClaim";
constexpr const char* kClaimTemplate = "resource.k8s.io/v1/ResourceClaimTemplate";
constexpr const char* kSlice = "resource.k8s.io/v1/ResourceSlice";
constexpr const char* kCoordinationLease = "coordination.k8s.io/v1/Lease";
constexpr const char* kOldEvent = "v1/Event";
constexpr const char* kNewEvent = "events.k8s.io/v1/Event";

const SampleRow kSampleRows[] = {
    // ---- StorageClass
    {kClass, "/provisioner", R"("")", "provisioner: FieldValueRequired: Required value\n"},
    {kClass, "/provisioner", R"("a b")", "provisioner: FieldValueInvalid: Invalid value: \"a b\": name part must consist of"},
    {kClass, "/reclaimPolicy", R"("Recycle")",
     "reclaimPolicy: FieldValueNotSupported: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"\n"},
    {kClass, "/volumeBindingMode", R"("Later")",
     "volumeBindingMode: FieldValueNotSupported: Unsupported value: \"Later\": supported values: \"Immediate\", "
     "\"WaitForFirstConsumer\"\n"},
    {kClass, "/parameters", R"({"":"x"})", "parameters: FieldValueInvalid: Invalid value: \"\": field can not be empty.\n"},
    {kClass, "/allowedTopologies", R"([{"matchLabelExpressions":[{"key":"zone","values":["a","a"]}]}])",
     "allowedTopologies[0].matchLabelExpressions[0].values[1]: FieldValueDuplicate: Duplicate value: \"a\"\n"},
    // ---- CSIDriver
    {kDriver, "/metadata/name", R"("Disk")",
     "metadata.name: FieldValueInvalid: Invalid value: \"Disk\": a lowercase RFC 1123 subdomain"},
    {kDriver, "/spec/fsGroupPolicy", R"("Sometimes")",
     "spec.fsGroupPolicy: FieldValueNotSupported: Unsupported value: \"Sometimes\": supported values: \"File\", \"None\", "
     "\"ReadWriteOnceWithFSType\"\n"},
    {kDriver, "/spec/volumeLifecycleModes", R"(["Eternal"])",
     "spec.volumeLifecycleModes: FieldValueNotSupported: Unsupported value: \"Eternal\": supported values: \"Persistent\", "
     "\"Ephemeral\"\n"},
    {kDriver, "/spec/tokenRequests", R"([{"audience":"a"},{"audience":"a"}])",
     "spec.tokenRequests[1].audience: FieldValueDuplicate: Duplicate value: \"a\"\n"},
    {kDriver, "/spec/tokenRequests", R"([{"audience":"a","expirationSeconds":5}])",
     "spec.tokenRequests[0].expirationSeconds: FieldValueInvalid: Invalid value: 5: may not specify a duration less than 10 "
     "minutes\n"},
    {kDriver, "/spec/nodeAllocatableUpdatePeriodSeconds", "9",
     "spec.nodeAllocatableUpdatePeriodSeconds: FieldValueInvalid: Invalid value: 9: must be greater than or equal to 10 "
     "seconds\n"},
    // ---- CSINode
    {kCsiNode, "/spec/drivers/0/name", R"("")", "spec.drivers[0].name: FieldValueRequired: Required value\n"},
    {kCsiNode, "/spec/drivers/0/name", R"("a_b")",
     "spec.drivers[0].name: FieldValueInvalid: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain"},
    {kCsiNode, "/spec/drivers/0/nodeID", R"("")", "spec.drivers[0].nodeID: FieldValueRequired: Required value\n"},
    {kCsiNode, "/spec/drivers/0/allocatable", R"({"count":-1})",
     "spec.drivers[0].allocatable.count: FieldValueInvalid: Invalid value: -1: must be greater than or equal to 0\n"},
    {kCsiNode, "/spec/drivers/0/topologyKeys", R"(["a","a"])", "spec.drivers[0]: FieldValueDuplicate: Duplicate value: \"a\"\n"},
    {kCsiNode, "/spec/drivers", R"([{"name":"a.b","nodeID":"1"},{"name":"a.b","nodeID":"1"}])",
     "spec.drivers[1].name: FieldValueDuplicate: Duplicate value: \"a.b\"\n"},
    // ---- CSIStorageCapacity
    {kStorageCapacity, "/storageClassName", R"("")",
     "storageClassName: FieldValueInvalid: Invalid value: \"\": a lowercase RFC 1123 subdomain"},
    {kStorageCapacity, "/storageClassName", R"("A")",
     "storageClassName: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
    {kStorageCapacity, "/capacity", R"("-1")",
     "capacity: FieldValueInvalid: Invalid value: \"-1\": must be greater than or equal to 0\n"},
    {kStorageCapacity, "/nodeTopology", R"({"matchExpressions":[{"key":"a","operator":"In"}]})",
     "nodeTopology.matchExpressions[0].values: FieldValueRequired: Required value: must be specified when `operator` is 'In' or "
     "'NotIn'\n"},
    {kStorageCapacity, "/metadata/name", R"("A")",
     "metadata.name: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
    // ---- VolumeAttachment
    {kAttach, "/spec/attacher", R"("")", "spec.attacher: FieldValueRequired: Required value\n"},
    {kAttach, "/spec/attacher", R"("a_b")",
     "spec.attacher: FieldValueInvalid: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain"},
    {kAttach, "/spec/nodeName", R"("")", "spec.nodeName: FieldValueInvalid: Invalid value: \"\": a lowercase RFC 1123 subdomain"},
    {kAttach, "/spec/source", "{}",
     "spec.source: FieldValueRequired: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName\n"},
    {kAttach, "/spec/source/inlineVolumeSpec",
     R"({"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}})",
     "spec.source: FieldValueForbidden: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName\n"},
    {kAttach, "/spec/source/persistentVolumeName", R"("")",
     "spec.source.persistentVolumeName: FieldValueRequired: Required value: must specify non empty persistentVolumeName\n"},
    // ---- VolumeAttributesClass
    {kAttributes, "/driverName", R"("")", "driverName: FieldValueRequired: Required value\n"},
    {kAttributes, "/driverName", R"("a b")", "driverName: FieldValueInvalid: Invalid value: \"a b\": name part must consist of"},
    {kAttributes, "/parameters", "{}",
     "parameters: FieldValueRequired: Required value: must contain at least one key/value pair\n"},
    {kAttributes, "/parameters", R"({"":"a"})", "parameters: FieldValueInvalid: Invalid value: \"\": field can not be empty.\n"},
    {kAttributes, "/metadata/name", R"("A")",
     "metadata.name: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
    // ---- FlowSchema
    {kFlow, "/spec/matchingPrecedence", "10001",
     "spec.matchingPrecedence: FieldValueInvalid: Invalid value: 10001: must not be greater than 10000\n"},
    {kFlow, "/spec/matchingPrecedence", "1",
     "spec.matchingPrecedence: FieldValueInvalid: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence "
     "1\n"},
    {kFlow, "/spec/matchingPrecedence", "-1",
     "spec.matchingPrecedence: FieldValueInvalid: Invalid value: -1: must be a positive value\n"},
    {kFlow, "/spec/priorityLevelConfiguration/name", R"("")",
     "spec.priorityLevelConfiguration.name: FieldValueRequired: Required value: must reference a priority level\n"},
    {kFlow, "/spec/distinguisherMethod", R"({"type":"ByHat"})",
     "spec.distinguisherMethod.type: FieldValueNotSupported: Unsupported value: \"ByHat\": supported values: \"ByNamespace\", "
     "\"ByUser\"\n"},
    {kFlow, "/spec/rules/0/subjects", "[]",
     "spec.rules[0].subjects: FieldValueRequired: Required value: subjects must contain at least one value\n"},
    {kFlow, "/spec/rules/0/subjects/0/kind", R"("Group")",
     "spec.rules[0].subjects[0].group: FieldValueRequired: Required value: group is required when subject kind is 'Group'\n"},
    {kFlow, "/spec/rules/0/nonResourceRules/0/verbs", R"(["get","*"])",
     "spec.rules[0].nonResourceRules[0].verbs: FieldValueInvalid: Invalid value: [\"get\",\"*\"]: if '*' is present, must not "
     "specify other verbs\n"},
    {kFlow, "/spec/rules/0/nonResourceRules/0/nonResourceURLs", R"(["/a*b"])",
     "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: FieldValueInvalid: Invalid value: \"/a*b\": wildcard can only do "
     "suffix matching\n"},
    {kFlow, "/spec/rules/0/resourceRules", R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])",
     "spec.rules[0].resourceRules[0].namespaces: FieldValueRequired: Required value: resource rules that are not cluster scoped "
     "must supply at least one namespace\n"},
    {kFlow, "/metadata/name", R"("catch-all")", "spec: FieldValueInvalid: Invalid value: {"},
    // ---- PriorityLevelConfiguration
    {kLevel, "/spec/type", R"("Other")",
     "spec.type: FieldValueNotSupported: Unsupported value: \"Other\": supported values: \"Exempt\", \"Limited\"\n"},
    {kLevel, "/spec/type", R"("Exempt")",
     "spec.type: FieldValueInvalid: Invalid value: \"Exempt\": type must be 'Exempt' if and only if name is 'exempt'\n"},
    {kLevel, "/spec", R"({"type":"Limited"})",
     "spec.limited: FieldValueRequired: Required value: must not be empty when type is Limited\n"},
    {kLevel, "/spec/limited/lendablePercent", "101",
     "spec.limited.lendablePercent: FieldValueInvalid: Invalid value: 101: must be between 0 and 100, inclusive\n"},
    {kLevel, "/spec/limited/nominalConcurrencyShares", "-1",
     "spec.limited.nominalConcurrencyShares: FieldValueInvalid: Invalid value: -1: must be a non-negative integer\n"},
    {kLevel, "/spec/limited/limitResponse", R"({"type":"Queue"})",
     "spec.limited.limitResponse.queuing: FieldValueRequired: Required value: must not be empty if limited.limitResponse.type is "
     "Limited\n"},
    {kLevel, "/spec/limited/limitResponse", R"({"type":"Queue","queuing":{"queues":4,"handSize":5}})",
     "spec.limited.limitResponse.queuing.handSize: FieldValueInvalid: Invalid value: 5: should not be greater than queues (4)\n"},
    {kLevel, "/spec/limited/limitResponse", R"({"type":"Queue","queuing":{"queues":512,"handSize":7}})",
     "required entropy bits of deckSize 512 and handSize 7 should not be greater than 60\n"},
    // ---- webhooks
    {kMutating, "/webhooks/0/name", R"("short")",
     "webhooks[0].name: FieldValueInvalid: Invalid value: \"short\": should be a domain with at least three segments separated "
     "by dots\n"},
    {kMutating, "/webhooks/0/sideEffects", R"("Some")",
     "webhooks[0].sideEffects: FieldValueNotSupported: Unsupported value: \"Some\": supported values: \"None\", "
     "\"NoneOnDryRun\"\n"},
    {kMutating, "/webhooks/0/timeoutSeconds", "31",
     "webhooks[0].timeoutSeconds: FieldValueInvalid: Invalid value: 31: the timeout value must be between 1 and 30 seconds\n"},
    {kMutating, "/webhooks/0/clientConfig", "{}",
     "webhooks[0].clientConfig: FieldValueRequired: Required value: exactly one of url or service is required\n"},
    {kMutating, "/webhooks/0/reinvocationPolicy", R"("Always")",
     "webhooks[0].reinvocationPolicy: FieldValueNotSupported: Unsupported value: \"Always\": supported values: \"IfNeeded\", "
     "\"Never\"\n"},
    {kMutating, "/webhooks/0/rules/0/operations", R"(["*","CREATE"])",
     "webhooks[0].rules[0].operations: FieldValueInvalid: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify "
     "other operations\n"},
    {kValidating, "/webhooks/0/admissionReviewVersions", R"(["v2"])",
     "webhooks[0].admissionReviewVersions: FieldValueInvalid: Invalid value: [\"v2\"]: must include at least one of v1, "
     "v1beta1\n"},
    {kValidating, "/webhooks/0/admissionReviewVersions", "[]",
     "webhooks[0].admissionReviewVersions: FieldValueRequired: Required value: must specify one of v1, v1beta1\n"},
    {kValidating, "/webhooks/0/clientConfig/url", R"("http://example.com")",
     "webhooks[0].clientConfig.url: FieldValueInvalid: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired "
     "format: https://host[/path]\n"},
    {kValidating, "/webhooks/0/rules/0/resources", R"(["*/*","pods"])",
     "webhooks[0].rules[0].resources: FieldValueInvalid: Invalid value: [\"*/*\",\"pods\"]: if '*/*' is present, must not "
     "specify other resources\n"},
    {kValidating, "/webhooks/0/rules/0/scope", R"("Some")",
     "webhooks[0].rules[0].scope: FieldValueNotSupported: Unsupported value: \"Some\": supported values: \"*\", \"Cluster\", "
     "\"Namespaced\"\n"},
    {kValidating, "/webhooks/0/failurePolicy", R"("Maybe")",
     "webhooks[0].failurePolicy: FieldValueNotSupported: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"\n"},
    // ---- policies
    {kPolicy, "/spec/validations", "[]",
     "spec.validations: FieldValueRequired: Required value: validations or auditAnnotations must contain at least one item\n"},
    {kPolicy, "/spec/validations/0/expression", R"(" ")",
     "spec.validations[0].expression: FieldValueRequired: Required value: expression is not specified\n"},
    {kPolicy, "/spec/validations/0/reason", R"("Gone")",
     "spec.validations[0].reason: FieldValueNotSupported: Unsupported value: \"Gone\": supported values: \"Forbidden\", "
     "\"Invalid\", \"RequestEntityTooLarge\"\n"},
    {kPolicy, "/spec/matchConstraints", "{}", "spec.matchConstraints.resourceRules: FieldValueRequired: Required value\n"},
    {kPolicy, "/spec/variables", R"([{"name":"a-b","expression":"1"}])",
     "spec.variables[0].name: FieldValueInvalid: Invalid value: \"a-b\": name is not a valid CEL identifier\n"},
    {kPolicy, "/spec/paramKind", R"({"apiVersion":"a/b/c","kind":"X"})",
     "spec.paramKind.apiVersion: FieldValueInvalid: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c\n"},
    {kBinding, "/spec/policyName", R"("")", "spec.policyName: FieldValueRequired: Required value\n"},
    {kBinding, "/spec/validationActions", "[]",
     "spec.validationActions: FieldValueRequired: Required value: at least one validation action is required\n"},
    {kBinding, "/spec/validationActions", R"(["Deny","Deny"])",
     "spec.validationActions[1]: FieldValueDuplicate: Duplicate value: \"Deny\"\n"},
    {kBinding, "/spec/validationActions", R"(["Shout"])",
     "spec.validationActions[0]: FieldValueNotSupported: Unsupported value: \"Shout\": supported values: \"Audit\", \"Deny\", "
     "\"Warn\"\n"},
    {kBinding, "/spec/paramRef", "{}",
     "spec.paramRef: FieldValueRequired: Required value: one of name or selector must be specified\n"},
    {kBinding, "/spec/paramRef", R"({"name":"a"})",
     "spec.paramRef.parameterNotFoundAction: FieldValueRequired: Required value\n"},
    {kChanger, "/spec/mutations", "[]",
     "spec.mutations: FieldValueRequired: Required value: mutations must contain at least one item\n"},
    {kChanger, "/spec/reinvocationPolicy", R"("")", "spec.reinvocationPolicy: FieldValueRequired: Required value\n"},
    {kChanger, "/spec/reinvocationPolicy", R"("Often")",
     "spec.reinvocationPolicy: FieldValueNotSupported: Unsupported value: \"Often\": supported values: \"IfNeeded\", "
     "\"Never\"\n"},
    {kChanger, "/spec/mutations/0/patchType", R"("ApplyConfiguration")",
     "spec.mutations[0].jsonPatch: FieldValueInvalid: Invalid value: \"{jsonPatch}\": must not be specified when patchType is "
     "ApplyConfiguration\n"},
    {kChanger, "/spec/mutations/0/jsonPatch/expression", R"(" ")",
     "spec.mutations[0].jsonPatch.expression: FieldValueRequired: Required value\n"},
    {kChanger, "/spec/matchConstraints/resourceRules/0/operations", R"(["DELETE"])",
     "spec.matchConstraints.resourceRules.operations: FieldValueNotSupported: Unsupported value: \"DELETE\": supported values: "
     "\"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"\n"},
    {kChangerBinding, "/spec/policyName", R"("")", "spec.policyName: FieldValueRequired: Required value\n"},
    {kChangerBinding, "/spec/policyName", R"("A")",
     "spec.policyName: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
    {kChangerBinding, "/spec/paramRef", R"({"name":"a/b","parameterNotFoundAction":"Deny"})",
     "spec.paramRef.name: FieldValueInvalid: Invalid value: \"a/b\": may not contain '/'\n"},
    {kChangerBinding, "/spec/paramRef", R"({"name":"a","parameterNotFoundAction":"Shrug"})",
     "spec.paramRef.parameterNotFoundAction: FieldValueNotSupported: Unsupported value: \"Shrug\": supported values: \"Deny\", "
     "\"Allow\"\n"},
    {kChangerBinding, "/spec/matchResources",
     R"({"resourceRules":[{"operations":["CREATE"],"apiGroups":[],"apiVersions":["v1"],"resources":["pods"]}]})",
     "spec.matchResources.resourceRules[0].apiGroups: FieldValueRequired: Required value\n"},
    // ---- CustomResourceDefinition
    {kDefinition, "/metadata/name", R"("other")",
     "metadata.name: FieldValueInvalid: Invalid value: \"other\": must be spec.names.plural+\".\"+spec.group\n"},
    {kDefinition, "/spec/group", R"("nodot")",
     "spec.group: FieldValueInvalid: Invalid value: \"nodot\": should be a domain with at least one dot\n"},
    {kDefinition, "/spec/scope", R"("World")",
     "spec.scope: FieldValueNotSupported: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespaced\"\n"},
    {kDefinition, "/spec/names/kind", R"("")", "spec.names.kind: FieldValueRequired: Required value\n"},
    {kDefinition, "/spec/names/listKind", R"("Widget")",
     "spec.names.listKind: FieldValueInvalid: Invalid value: \"Widget\": kind and listKind may not be the same\n"},
    {kDefinition, "/spec/versions/0/storage", "false", "spec.versions: FieldValueInvalid: Invalid value: ["},
    {kDefinition, "/spec/versions/0/name", R"("V1")",
     "spec.versions[0].name: FieldValueInvalid: Invalid value: \"V1\": a DNS-1035 label must consist of"},
    {kDefinition, "/spec/versions/0/schema", "{}",
     "spec.versions[0].schema.openAPIV3Schema: FieldValueRequired: Required value\n"},
    {kDefinition, "/spec/versions/0/schema/openAPIV3Schema/type", R"("")",
     "spec.validation.openAPIV3Schema.type: FieldValueRequired: Required value: must not be empty at the root\n"},
    {kDefinition, "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size", R"({"type":"int"})",
     "spec.validation.openAPIV3Schema.properties[spec].properties[size].type: FieldValueNotSupported: Unsupported value: "
     "\"int\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"\n"},
    {kDefinition, "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size", "{}",
     "spec.validation.openAPIV3Schema.properties[spec].properties[size].type: FieldValueRequired: Required value: must not be "
     "empty for specified object fields\n"},
    {kDefinition, "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/rest", R"({"type":"array"})",
     "spec.validation.openAPIV3Schema.properties[spec].properties[rest].items: FieldValueRequired: Required value: must be "
     "specified\n"},
    {kDefinition, "/spec/versions/0/schema/openAPIV3Schema/properties/spec/uniqueItems", "true",
     "spec.validation.openAPIV3Schema.properties[spec].uniqueItems: FieldValueForbidden: Forbidden: uniqueItems cannot be set to "
     "true since the runtime complexity becomes quadratic\n"},
    {kDefinition, "/spec/versions/0/schema/openAPIV3Schema/properties/spec/not", R"({"type":"string"})",
     "spec.validation.openAPIV3Schema.properties[spec].not.type: FieldValueForbidden: Forbidden: must be empty to be "
     "structural\n"},
    {kDefinition, "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/rest/x-kubernetes-list-type", R"("map")",
     "spec.validation.openAPIV3Schema.properties[spec].properties[rest].x-kubernetes-list-map-keys: FieldValueRequired: Required "
     "value: must not be empty if x-kubernetes-list-type is map\n"},
    {kDefinition, "/spec/conversion", R"({"strategy":"Webhook"})",
     "spec.conversion.webhookClientConfig: FieldValueRequired: Required value: required when strategy is set to Webhook\n"},
    {kDefinition, "/spec/versions/0/additionalPrinterColumns", R"([{"name":"a","type":"text","jsonPath":".spec"}])",
     "spec.additionalPrinterColumns[0].type: FieldValueInvalid: Invalid value: \"text\": must be one of "
     "boolean,date,integer,number,string\n"},
    {kDefinition, "/spec/versions/0/subresources",
     R"({"scale":{"specReplicasPath":".status.x","statusReplicasPath":".status.x"}})",
     "spec.subresources.scale.specReplicasPath: FieldValueInvalid: Invalid value: \".status.x\": should be a json path under "
     ".spec\n"},
    {kDefinition, "/spec/preserveUnknownFields", "true",
     "spec.preserveUnknownFields: FieldValueInvalid: Invalid value: true: cannot set to true, set "
     "x-kubernetes-preserve-unknown-fields"},
    // ---- APIService
    {kApiService, "/metadata/name", R"("v1.example.org")",
     "metadata.name: FieldValueInvalid: Invalid value: \"v1.example.org\": must be `spec.version+\".\"+spec.group`: "
     "\"v1.example.com\"\n"},
    {kApiService, "/spec/groupPriorityMinimum", "0",
     "spec.groupPriorityMinimum: FieldValueInvalid: Invalid value: 0: must be positive and less than 20000\n"},
    {kApiService, "/spec/versionPriority", "1001",
     "spec.versionPriority: FieldValueInvalid: Invalid value: 1001: must be positive and less than 1000\n"},
    {kApiService, "/spec/version", R"("V1")",
     "spec.version: FieldValueInvalid: Invalid value: \"V1\": a DNS-1035 label must consist of"},
    {kApiService, "/spec/caBundle", R"("YWI=")",
     "spec.caBundle: FieldValueInvalid: Invalid value: \"2 bytes\": local APIServices may not have a caBundle\n"},
    {kApiService, "/spec/service", R"({"name":"a"})", "spec.service.namespace: FieldValueRequired: Required value\n"},
    {kApiService, "/spec/insecureSkipTLSVerify", "true",
     "spec.insecureSkipTLSVerify: FieldValueInvalid: Invalid value: true: local APIServices may not have "
     "insecureSkipTLSVerify\n"},
    // ---- devices
    {kDeviceClass, "/metadata/name", R"("A")",
     "metadata.name: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
    {kDeviceClass, "/spec/selectors/0", "{}", "spec.selectors[0].cel: FieldValueRequired: Required value\n"},
    {kDeviceClass, "/spec/config", "[{}]", "spec.config[0].opaque: FieldValueRequired: Required value\n"},
    {kDeviceClass, "/spec/config", R"([{"opaque":{"driver":"a.b","parameters":"text"}}])",
     "spec.config[0].opaque.parameters: FieldValueInvalid: Invalid value: \"<value omitted>\": must be a valid JSON object\n"},
    {kDeviceClass, "/spec/config", R"([{"opaque":{"driver":"a_b","parameters":{}}}])",
     "spec.config[0].opaque.driver: FieldValueInvalid: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain"},
    {kDeviceClass, "/spec/extendedResourceName", R"("cpu")",
     "spec.extendedResourceName: FieldValueInvalid: Invalid value: \"cpu\": must be a valid extended resource name\n"},
    {kClaim, "/spec/devices/requests/0/name", R"("A")",
     "spec.devices.requests[0].name: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 label"},
    {kClaim, "/spec/devices/requests/0", R"({"name":"a"})",
     "spec.devices.requests[0]: FieldValueRequired: Required value: exactly one of `exactly` or `firstAvailable` is required\n"},
    {kClaim, "/spec/devices/requests/0/exactly/deviceClassName", R"("")",
     "spec.devices.requests[0].exactly.deviceClassName: FieldValueRequired: Required value\n"},
    {kClaim, "/spec/devices/requests/0/exactly/count", "-1",
     "spec.devices.requests[0].exactly.count: FieldValueInvalid: Invalid value: -1: must be greater than zero\n"},
    {kClaim, "/spec/devices/requests/0/exactly", R"({"deviceClassName":"a","allocationMode":"All","count":2})",
     "spec.devices.requests[0].exactly.count: FieldValueInvalid: Invalid value: 2: must not be specified when allocationMode is "
     "'All'\n"},
    {kClaim, "/spec/devices/constraints", R"([{"requests":["other"],"matchAttribute":"a.b/c"}])",
     "spec.devices.constraints[0].requests[0]: FieldValueInvalid: Invalid value: \"other\": must be the name of a request in the "
     "claim or the name of a request and a subrequest separated by '/'\n"},
    {kClaim, "/spec/devices/constraints", R"([{"matchAttribute":"c"}])",
     "spec.devices.constraints[0].matchAttribute: FieldValueInvalid: Invalid value: \"c\": a fully qualified name must be a "
     "domain and a name separated by a slash\n"},
    {kClaimTemplate, "/spec/spec/devices/requests/0/name", R"("")",
     "spec.spec.devices.requests[0].name: FieldValueInvalid: Invalid value: \"\": a lowercase RFC 1123 label"},
    {kClaimTemplate, "/spec/spec/devices/requests/0", R"({"name":"a"})",
     "spec.spec.devices.requests[0]: FieldValueRequired: Required value: exactly one of"},
    {kClaimTemplate, "/spec/spec/devices/requests/0/exactly/allocationMode", R"("Some")",
     "spec.spec.devices.requests[0].exactly.allocationMode: FieldValueNotSupported: Unsupported value: \"Some\": supported "
     "values: \"All\", \"ExactCount\"\n"},
    {kClaimTemplate, "/spec/spec/devices/requests/0/exactly/tolerations", R"([{"operator":"Exists","value":"x"}])",
     "spec.spec.devices.requests[0].exactly.tolerations[0].value: FieldValueInvalid: Invalid value: \"x\": must be empty for "
     "operator `Exists`\n"},
    {kClaimTemplate, "/spec/metadata", R"({"labels":{"a b":"c"}})",
     "spec.metadata.labels: FieldValueInvalid: Invalid value: \"a b\": name part must consist of"},
    {kSlice, "/spec/nodeName", R"("")",
     "spec.nodeName: FieldValueInvalid: Invalid value: \"\": must be either unset or set to a non-empty string\n"},
    {kSlice, "/spec/allNodes", "true",
     "spec: FieldValueInvalid: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, "
     "`allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set\n"},
    {kSlice, "/spec/pool/resourceSliceCount", "0",
     "spec.pool.resourceSliceCount: FieldValueInvalid: Invalid value: 0: must be greater than zero\n"},
    {kSlice, "/spec/devices/0/attributes", R"({"a":{}})",
     "spec.devices[0].attributes[a]: FieldValueInvalid: Invalid value: \"\": exactly one value must be specified\n"},
    {kSlice, "/spec/devices/0/attributes", R"({"a":{"version":"one"}})",
     "spec.devices[0].attributes[a].version: FieldValueInvalid: Invalid value: \"one\": must be a string compatible with "
     "semver.org spec 2.0.0\n"},
    {kSlice, "/spec/devices/0/taints", R"([{"key":"a","effect":"Whatever"}])",
     "spec.devices[0].taints[0].effect: FieldValueNotSupported: Unsupported value: \"Whatever\": supported values: "
     "\"NoExecute\", \"NoSchedule\", \"None\"\n"},
    {kSlice, "/spec/devices/0/capacity/memory/requestPolicy", R"({"default":"1","validValues":["1"]})",
     "spec.devices[0].capacity[memory].requestPolicy: FieldValueForbidden: Forbidden: allowMultipleAllocations must be true\n"},
    // ---- Lease
    {kCoordinationLease, "/spec/leaseDurationSeconds", "0",
     "spec.leaseDurationSeconds: FieldValueInvalid: Invalid value: 0: must be greater than 0\n"},
    {kCoordinationLease, "/spec/leaseTransitions", "-1",
     "spec.leaseTransitions: FieldValueInvalid: Invalid value: -1: must be greater than or equal to 0\n"},
    {kCoordinationLease, "/spec/strategy", R"("Newest")",
     "spec.strategy: FieldValueNotSupported: Unsupported value: \"Newest\": supported values: \"OldestEmulationVersion\"\n"},
    {kCoordinationLease, "/spec/preferredHolder", R"("x")",
     "spec.preferredHolder: FieldValueForbidden: Forbidden: may only be specified when `strategy` is defined\n"},
    {kCoordinationLease, "/metadata/name", R"("A")",
     "metadata.name: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
    // ---- Event, in both shapes
    {kOldEvent, "/involvedObject/namespace", R"("other")",
     "involvedObject.namespace: FieldValueInvalid: Invalid value: \"other\": does not match event.namespace\n"},
    {kOldEvent, "/eventTime", R"("2026-01-02T03:04:05.000006Z")", "reportingController: FieldValueRequired: Required value\n"},
    {kOldEvent, "/eventTime", R"("2026-01-02T03:04:05.000006Z")", "reportingInstance: FieldValueRequired: Required value\n"},
    {kOldEvent, "/eventTime", R"("2026-01-02T03:04:05.000006Z")", "action: FieldValueRequired: Required value\n"},
    {kOldEvent, "/metadata/name", R"("A")",
     "metadata.name: FieldValueInvalid: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
    {kNewEvent, "/eventTime", "null", "eventTime: FieldValueRequired: Required value\n"},
    {kNewEvent, "/type", R"("Odd")", "type: FieldValueInvalid: Invalid value: \"\": has invalid value: Odd\n"},
    {kNewEvent, "/deprecatedCount", "2", "count: FieldValueInvalid: Invalid value: \"\": needs to be unset\n"},
    {kNewEvent, "/series", R"({"count":1,"lastObservedTime":"2026-01-02T03:04:05.000006Z"})",
     "series.count: FieldValueInvalid: Invalid value: \"\": should be at least 2\n"},
    {kNewEvent, "/reason", R"("")", "reason: FieldValueRequired: Required value\n"},
    {kNewEvent, "/deprecatedSource", R"({"component":"x"})",
     "source: FieldValueInvalid: Invalid value: \"\": needs to be unset\n"},
};

TEST(ExtensionValidate, finds_what_is_wrong_and_says_where) {
  std::map<std::string, int> per_kind;
  for (const SampleRow& row : kSampleRows) {
    const KindInfo& info = info_by_kind(row.kind);
    std::string text =
        shown_with_reasons(validate_create(info, prepared_as_stored(info, changed(row.kind, row.pointer, row.value))));
    EXPECT_NE(text.find(row.want), text.npos)
        << row.kind << " " << row.pointer << " = " << row.value << "\nwant: " << row.want << "\ngot:\n"
        << text;
    ++per_kind[row.kind];
  }
  for (const auto& [kind, rows] : per_kind) EXPECT_GE(rows, 5) << kind;
}

TEST(ExtensionValidate, knows_versions_of_devices) {
  const KindInfo& slices = info_by_kind(kSlice);
  auto is_version = [&](const std::string& text) {
    std::string attribute = to_text(json::object{{"a", json::object{{"version", text}}}});
    return validate_create(slices, prepared_as_stored(slices, changed(kSlice, "/spec/devices/0/attributes", attribute))).empty();
  };
  for (const char* good :
       {"0.0.0", "1.20.300", "1.2.3-rc.1", "1.2.3-0", "1.2.3-0a.00b", "1.2.3--", "1.2.3-a-b+c-d.007", "1.2.3+0"})
    EXPECT_TRUE(is_version(good)) << good;
  for (const char* bad : {"",          "1",      "1.2",        "1.2.3.4",   "v1.2.3",   "01.2.3",     "1.2.03",
                          "1..3",      "1.2.",   "1.2.a",      "1.2.3-",    "1.2.3-01", "1.2.3-a..b", "1.2.3-a.",
                          "1.2.3-a_b", "1.2.3+", "1.2.3+a..b", "1.2.3+a+b", " 1.2.3",   "1.2.3\n",    "1.2.3-\u00e9"})
    EXPECT_FALSE(is_version(bad)) << bad;
  EXPECT_TRUE(is_version("1.2.3-" + std::string(58, 'a')));
  EXPECT_FALSE(is_version("1.2.3-" + std::string(59, 'a')));
}

TEST(ExtensionValidate, keeps_what_may_not_change) {
  struct Change {
    const char *kind, *pointer, *value, *want;
  };
  for (const Change& row : {
           Change{kClass, "/provisioner", R"("example.com/other")",
                  "provisioner: FieldValueForbidden: Forbidden: updates to provisioner are forbidden.\n"},
           Change{kClass, "/volumeBindingMode", R"("WaitForFirstConsumer")",
                  "volumeBindingMode: FieldValueInvalid: Invalid value: \"WaitForFirstConsumer\": field is immutable\n"},
           Change{kDriver, "/spec/attachRequired", "true",
                  "spec.attachedRequired: FieldValueInvalid: Invalid value: true: field is immutable\n"},
           Change{kCsiNode, "/spec/drivers/0/nodeID", R"("n2")", "spec.drivers: FieldValueInvalid: Invalid value: {"},
           Change{kStorageCapacity, "/storageClassName", R"("slow")",
                  "storageClassName: FieldValueInvalid: Invalid value: \"slow\": field is immutable\n"},
           Change{kAttach, "/spec/nodeName", R"("n2")", "spec: FieldValueInvalid: Invalid value: {"},
           Change{kAttributes, "/parameters", R"({"iops":"5"})",
                  "parameters: FieldValueForbidden: Forbidden: updates to parameters are forbidden.\n"},
           Change{kDefinition, "/spec/group", R"("example.org")",
                  "spec.group: FieldValueInvalid: Invalid value: \"example.org\": field is immutable\n"},
           Change{kClaim, "/spec/devices/requests/0/name", R"("npu")", "spec: FieldValueInvalid: Invalid value: {"},
           Change{kSlice, "/spec/driver", R"("npu.example.com")",
                  "spec.driver: FieldValueInvalid: Invalid value: \"npu.example.com\": field is immutable\n"},
           Change{kNewEvent, "/note", R"("other")", "message: FieldValueInvalid: Invalid value: \"other\": field is immutable\n"},
       }) {
    const KindInfo& info = info_by_kind(row.kind);
    json::value before = prepared_as_stored(info, MUST(parse_json(sample_objects().at(row.kind))));
    std::string text =
        shown_with_reasons(validate_update(info, prepared_as_stored(info, changed(row.kind, row.pointer, row.value)), before));
    EXPECT_NE(text.find(row.want), text.npos) << row.kind << " " << row.pointer << "\ngot:\n" << text;
  }
}

TEST(ExtensionValidate, looks_at_status_too) {
  const KindInfo& claims = info_by_kind(kClaim);
  json::value before = prepared_as_stored(claims, MUST(parse_json(sample_objects().at(kClaim)))), now = before;
  now.get_object()["status"] = MUST(parse_json(R"({"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]})"));
  EXPECT_EQ(shown_with_reasons(validate_update(claims, now, before, "status")),
            "status.reservedFor: FieldValueForbidden: Forbidden: may not be specified when `allocated` is not set\n");
  const KindInfo& services = info_by_kind(kApiService);
  before = now = prepared_as_stored(services, MUST(parse_json(sample_objects().at(kApiService))));
  now.get_object()["status"] = MUST(parse_json(R"({"conditions":[{"type":"Available","status":"Perhaps"}]})"));
  EXPECT_EQ(shown_with_reasons(validate_update(services, now, before, "status")),
            "status.conditions[0].status: FieldValueNotSupported: Unsupported value: \"Perhaps\": supported values: \"True\", "
            "\"False\", \"Unknown\"\n");
}

TEST(ExtensionDefaults, fill_in_what_depends) {
  struct Want {
    const char *kind, *path, *value;
  };
  for (const Want& want : {
           Want{kClass, "reclaimPolicy", R"("Delete")"},
           {kClass, "volumeBindingMode", R"("Immediate")"},
           {kDriver, "spec.volumeLifecycleModes", R"(["Persistent"])"},
           {kDriver, "spec.fsGroupPolicy", R"("ReadWriteOnceWithFSType")"},
           {kDefinition, "spec.names.singular", R"("widget")"},
           {kDefinition, "spec.names.listKind", R"("WidgetList")"},
           {kDefinition, "spec.conversion", R"({"strategy":"None"})"},
           {kDefinition, "status.storedVersions", R"(["v1"])"},
           {kLevel, "spec.limited.nominalConcurrencyShares", "30"},
           {kLevel, "spec.limited.lendablePercent", "0"},
           {kMutating, "webhooks", nullptr},
           {kClaim, "spec.devices.requests", nullptr},
       }) {
    const KindInfo& info = info_by_kind(want.kind);
    json::value object = prepared_as_stored(info, MUST(parse_json(sample_objects().at(want.kind))));
    const json::value* found = find(object, want.path);
    ASSERT_TRUE(found) << want.kind << " " << want.path;
    if (want.value) {
      EXPECT_EQ(to_text(*found), want.value) << want.kind << " " << want.path;
    }
  }
  json::value hook =
      get_array(prepared_as_stored(info_by_kind(kMutating), MUST(parse_json(sample_objects().at(kMutating)))), "webhooks")[0];
  EXPECT_EQ(get_string(hook, "failurePolicy"), "Fail");
  EXPECT_EQ(get_string(hook, "matchPolicy"), "Equivalent");
  EXPECT_EQ(get_int(hook, "timeoutSeconds"), 10);
  EXPECT_EQ(get_string(hook, "reinvocationPolicy"), "Never");
  EXPECT_TRUE(find(hook, "namespaceSelector")) << "everything is selected unless said otherwise";
  json::value request = get_array(prepared_as_stored(info_by_kind(kClaim), MUST(parse_json(sample_objects().at(kClaim)))),
                                  "spec.devices.requests")[0];
  EXPECT_EQ(get_string(request, "exactly.allocationMode"), "ExactCount");
  EXPECT_EQ(get_int(request, "exactly.count"), 1);
}

}  // namespace
}  // namespace coracle::schema
