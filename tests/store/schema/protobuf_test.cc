// SPDX-License-Identifier: Apache-2.0
// Protobuf: every field of every kind in both directions, the same bytes as Go writes, and malformed input.
#include "store/schema/protobuf.h"

#include <gtest/gtest.h>

#include "store/schema/wire.h"
#include "tests/store/schema/prepared.h"
#include "tests/store/schema/sample.h"

namespace coracle::schema {
namespace {

bool has_numbers(const Type& type) {
  for (const Field& field : type.fields()) {
    if (field.number) return true;
  }
  return false;
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (int value : values) out += char(uint8_t(value));
  return out;
}

TEST(Protobuf, carries_every_field_of_every_type) {
  for (const Type& type : all_types()) {
    if (!has_numbers(type)) continue;
    json::value sample = canonical(type, Sampler().object(type));
    auto encoded = message_to_protobuf(type, sample);
    ASSERT_TRUE(encoded) << type.openapi_name() << encoded.error().text();
    auto back = message_from_protobuf(type, *encoded);
    ASSERT_TRUE(back) << type.openapi_name() << back.error().text();
    EXPECT_EQ(to_text(*back), to_text(sample)) << type.openapi_name();
    EXPECT_EQ(*message_to_protobuf(type, *back), *encoded) << type.openapi_name();
  }
}

TEST(Protobuf, carries_the_empty_object_of_every_kind) {
  for (const KindInfo& info : catalog().kinds()) {
    json::value empty = canonical(info.type(), json::object());
    auto encoded = to_protobuf(empty);
    ASSERT_TRUE(encoded) << info.kind.kind;
    auto back = from_protobuf(*encoded);
    ASSERT_TRUE(back) << info.kind.kind << back.error().text();
    EXPECT_EQ(to_text(*back), to_text(empty));
  }
}

TEST(Protobuf, writes_the_envelope) {
  json::value map = canonical(catalog().of(kConfigMap).type(), *parse_json(R"({"metadata":{"name":"c"},"data":{"k":"v"}})"));
  std::string metadata = bytes({0x0a, 1, 'c', 0x12, 0, 0x1a, 0, 0x22, 0, 0x2a, 0, 0x32, 0, 0x38, 0, 0x42, 0});
  std::string raw = bytes({0x0a, int(metadata.size())}) + metadata + bytes({0x12, 6, 0x0a, 1, 'k', 0x12, 1, 'v'});
  std::string want = std::string("k8s\0", 4) + bytes({0x0a, 15, 0x0a, 2, 'v', '1', 0x12, 9}) + "ConfigMap" +
                     bytes({0x12, int(raw.size())}) + raw + bytes({0x1a, 0, 0x22, 0});
  EXPECT_EQ(hex(*to_protobuf(map)), hex(want));
}

TEST(Protobuf, reads_and_writes_the_very_bytes_of_kubectl) {
  struct Row {
    const char* command;  // the kubectl 1.32 command that sends this request body
    const char* body;
  };
  for (const Row& row :
       {Row{"create configmap c --from-literal=a=b",
            "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a016312001a0022002a0032003800420012060a0161120162"
            "1a002200"},
        Row{"create deployment web --image=nginx --replicas=2 --port=80",
            "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412b8010a1f0a0377656212001a0022002a003200380042"
            "005a0a0a0361707012037765621286010802120c0a0a0a0361707012037765621a6c0a1c0a0012001a0022002a0032003800"
            "42005a0a0a036170701203776562124c122e0a056e67696e7812056e67696e782a00320a0a001000185022002a0042006a00"
            "7200800100880100900100a201001a00320042004a0052005800600068008201008a01009a0100c2010022020a0028003800"
            "1a0c0800100018002000280038001a002200"},
        Row{"create service nodeport s --tcp=80:8080",
            "6b3873000a0d0a02763112075365727669636512620a1b0a017312001a0022002a003200380042005a080a03617070120173"
            "123f0a1b0a0738302d38303830120354435018502207080010903f1a00280012080a036170701201731a0022084e6f646550"
            "6f72743a00420052005a00600068001a020a001a002200"},
        Row{"create secret generic s --from-literal=x=y",
            "6b3873000a0c0a0276311206536563726574121d0a110a017312001a0022002a0032003800420012060a01781201791a001a"
            "002200"}}) {
    std::string body;
    for (const char* at = row.body; *at; at += 2) body += char(*parse_number<uint8_t>(std::string_view(at, 2), 16));
    auto object = from_protobuf(body);
    ASSERT_TRUE(object) << row.command << object.error().text();
    EXPECT_EQ(hex(*to_protobuf(*object)), row.body) << row.command << to_text(*object);
  }
}

TEST(Protobuf, writes_what_go_writes) {
  struct Row {
    const char* type;
    const char* json;
    std::string want;
  };
  for (const Row& row : {
           // IntOrString: type, number and text are all written.
           Row{"io.k8s.api.core.v1.TCPSocketAction", R"({"port":80})", bytes({0x0a, 6, 0x08, 0, 0x10, 80, 0x1a, 0, 0x12, 0})},
           Row{"io.k8s.api.core.v1.TCPSocketAction", R"({"port":"web","host":"h"})",
               bytes({0x0a, 9, 0x08, 1, 0x10, 0, 0x1a, 3, 'w', 'e', 'b', 0x12, 1, 'h'})},
           // An inlined struct is a message of its own, written even if it is empty.
           Row{"io.k8s.api.core.v1.Volume", R"({"name":"v","emptyDir":{}})", bytes({0x0a, 1, 'v', 0x12, 4, 0x12, 2, 0x0a, 0})},
           Row{"io.k8s.api.core.v1.Volume", R"({"name":"v"})", bytes({0x0a, 1, 'v', 0x12, 0})},
           // Unset pointers are omitted; a zero behind a pointer is not.
           Row{"io.k8s.api.autoscaling.v1.ScaleStatus", R"({"replicas":3,"selector":"a=b"})",
               bytes({0x08, 3, 0x12, 3, 'a', '=', 'b'})},
           Row{"io.k8s.api.coordination.v1.LeaseSpec", R"({"leaseDurationSeconds":0})", bytes({0x10, 0})},
           Row{"io.k8s.api.coordination.v1.LeaseSpec", R"({"renewTime":"1970-01-01T00:00:01.000002Z"})",
               bytes({0x22, 5, 0x08, 1, 0x10, 0xd0, 0x0f})},
           // A negative number takes ten bytes.
           Row{"io.k8s.api.core.v1.ClientIPConfig", R"({"timeoutSeconds":-1})",
               bytes({0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})},
           // Numbers in a list are not packed.
           Row{"io.k8s.api.core.v1.LinuxContainerUser", R"({"uid":0,"gid":0,"supplementalGroups":[1,300]})",
               bytes({0x08, 0, 0x10, 0, 0x18, 1, 0x18, 0xac, 2})},
           Row{"io.k8s.api.core.v1.ResourceRequirements", R"({"limits":{"cpu":"1"}})",
               bytes({0x0a, 10, 0x0a, 3, 'c', 'p', 'u', 0x12, 3, 0x0a, 1, '1'})},
           Row{"io.k8s.api.core.v1.Secret", R"({"metadata":{},"data":{"k":"AA=="}})", ""},
       }) {
    const Type* type = type_named(row.type);
    ASSERT_NE(type, nullptr) << row.type;
    std::string got = *message_to_protobuf(*type, canonical(*type, *parse_json(row.json)));
    if (row.want.empty()) {
      EXPECT_NE(got.find(bytes({0x12, 6, 0x0a, 1, 'k', 0x12, 1, 0})), std::string::npos) << hex(got);
    } else {
      EXPECT_EQ(hex(got), hex(row.want)) << row.type << row.json;
    }
  }
}

TEST(Protobuf, reads_packed_lists_unknown_fields_and_foreign_options) {
  const Type* user = type_named("io.k8s.api.core.v1.LinuxContainerUser");
  auto packed =
      message_from_protobuf(*user, bytes({0x1a, 3, 1, 0xac, 2, 0xfa, 0x3f, 1, 'x', 0xf9, 0x3f, 1, 2, 3, 4, 5, 6, 7, 8}));
  ASSERT_TRUE(packed) << packed.error().text();
  EXPECT_EQ(to_text(*packed), R"({"uid":0,"gid":0,"supplementalGroups":[1,300]})");
  json::value options = *parse_json(R"({"apiVersion":"apps/v1","kind":"DeleteOptions","gracePeriodSeconds":5})");
  auto back = from_protobuf(*to_protobuf(options));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(get_int(*back, "gracePeriodSeconds"), 5);
}

TEST(Protobuf, times_of_all_years_go_there_and_back) {
  for (const char* time : {"0001-01-01T00:00:02Z", "1677-01-01T00:00:00Z", "2262-12-31T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    json::value pod = json::object{
        {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", json::object{{"name", "a"}, {"deletionTimestamp", time}}}};
    auto bytes = to_protobuf(MUST(decode(catalog().of(kPod).type(), pod)).value);
    ASSERT_TRUE(bytes) << bytes.error().text();
    auto back = from_protobuf(*bytes);
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(get_string(*back, "metadata.deletionTimestamp"), time);
  }
}

TEST(Protobuf, times_that_were_never_set_are_absent) {
  json::value meta =
      *message_from_protobuf(*type_named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"), bytes({0x42, 0, 0x0a, 1, 'x'}));
  EXPECT_EQ(to_text(meta), R"({"name":"x"})");
}

TEST(Protobuf, refuses_what_is_no_message) {
  const Type& pod = catalog().of(kPod).type();
  for (const std::string& input :
       {bytes({0x0a}), bytes({0x0a, 5, 'x'}), bytes({0x00, 0}), bytes({0x0b}), bytes({0x08}),
        bytes({0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}), bytes({0x0d, 1, 2}), bytes({0x09, 1}),
        bytes({0x0a, 3, 0x0a, 1, 0xff}), bytes({0x08, 1}), bytes({0x0a, 4, 0x42, 2, 0x08, 0xff})}) {
    auto result = message_from_protobuf(pod, input);
    ASSERT_FALSE(result) << hex(input);
    EXPECT_EQ(result.error().code(), Code::bad_request) << hex(input);
  }
  EXPECT_EQ(from_protobuf("k8").error().code(), Code::bad_request);
  EXPECT_EQ(from_protobuf(std::string("k8s\0", 4)).error().code(), Code::unsupported);
  EXPECT_EQ(from_protobuf(std::string("k8s\0\x0a\x09\x0a\x02v1\x12\x03Nix", 15)).error().code(), Code::unsupported);
}

TEST(Protobuf, does_not_follow_envelopes_forever) {
  std::string inner = *to_protobuf(*parse_json(R"({"apiVersion":"v1","kind":"List","metadata":{},"items":[]})"));
  for (int i = 0; i < 200; ++i) {  // a List whose only item is a List …
    WireWriter wire;
    wire.append(std::string("k8s\0", 4));
    size_t meta = wire.begin(1);
    wire.bytes(1, "v1");
    wire.bytes(2, "List");
    wire.end(meta);
    size_t raw = wire.begin(2), item = wire.begin(2);
    wire.bytes(1, inner);
    wire.end(item);
    wire.end(raw);
    inner = wire.take();
  }
  auto result = from_protobuf(inner);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::bad_request);
}

TEST(Protobuf, has_no_form_of_a_table) {
  EXPECT_EQ(to_protobuf(*parse_json(R"({"apiVersion":"meta.k8s.io/v1","kind":"Table"})")).error().code(), Code::not_acceptable);
  EXPECT_EQ(to_protobuf(*parse_json(R"({"apiVersion":"x/v1","kind":"Foo"})")).error().code(), Code::not_acceptable);
}

TEST(Protobuf, frames_watch_events) {
  EXPECT_EQ(hex(watch_frame("ADDED", "xyz")), hex(bytes({0, 0, 0, 14, 0x0a, 5}) + "ADDED" + bytes({0x12, 5, 0x0a, 3}) + "xyz"));
}

}  // namespace
}  // namespace coracle::schema
