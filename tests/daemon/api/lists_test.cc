// SPDX-License-Identifier: Apache-2.0
// Lists in every form: a list that is written item by item equals the list encoded as a whole.
#include <gtest/gtest.h>

#include "runtime/base/text.h"
#include "store/object/yaml.h"
#include "store/schema/protobuf.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

const std::string kTable = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n",
                  kPartial = "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\r\n",
                  kProtobuf = "Accept: application/vnd.kubernetes.protobuf\r\n",
                  kPartialProtobuf =
                      "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\r\n",
                  kYaml = "Accept: application/yaml\r\n";

class Lists : public testing::Test {
 protected:
  void create(const std::string& name) {
    std::string label = name == "b" ? "x" : "y", text = "line\\n\\u00e9 \\\" {\\n}";
    RawAnswer made =
        client.ask("POST", kMaps,
                   R"({"metadata":{"name":")" + name + R"(","labels":{"l":")" + label + R"("}},"data":{"k":")" + text + "\"}}");
    ASSERT_EQ(made.status, 201) << made.body;
  }
  RawAnswer ask(const std::string& query, const std::string& headers = {}) {
    RawAnswer answer = client.get(std::string(kMaps) + "?" + query, headers);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer;
  }
  // An empty list is read as null, since protobuf does not distinguish the two.
  static json::value unpacked(const RawAnswer& answer) {
    json::value list = MUST(schema::from_protobuf(answer.body));
    if (list.at("items").is_null()) make(list, "items") = json::array();
    return list;
  }
  // As in protobuf, where a list does not repeat the type for its items.
  static json::value without_types(json::value list) {
    for (json::value& item : make(list, "items").get_array())
      item.get_object().erase("kind"), item.get_object().erase("apiVersion");
    return list;
  }
  // Of two answers, one may come a second later.
  static json::value without_ages(json::value table) {
    for (json::value& row : make(table, "rows").get_array()) row.at("cells").as_array().pop_back();
    return table;
  }
  static size_t count(const json::value& list) { return get_array(list, "items").size(); }

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(Lists, say_the_same_in_every_form) {
  for (size_t there = 0; there < 4; there++) {
    if (there) create(std::string(1, char('a' + there - 1)));
    for (const std::string query :
         {"", "limit=2", "labelSelector=l%3Dy", "fieldSelector=metadata.name%3Dnone", "limit=1&labelSelector=l%3Dy"}) {
      json::value plain = ask(query).json();
      RawAnswer pretty = ask("pretty=true&" + query);
      EXPECT_EQ(pretty.body, to_pretty(pretty.json(), 2) + "\n");
      EXPECT_EQ(pretty.json(), plain) << query;
      EXPECT_EQ(MUST(parse_yaml(ask(query, kYaml).body)).at(0), plain) << query;
      EXPECT_EQ(unpacked(ask(query, kProtobuf)), plain) << query;
      json::value table = ask(query, kTable).json(), partial = ask(query, kPartial).json();
      EXPECT_EQ(unpacked(ask(query, kPartialProtobuf)), without_types(partial)) << query;
      for (const json::value* other : {&table, &partial}) EXPECT_EQ(*find(*other, "metadata"), *find(plain, "metadata")) << query;
      const json::array &rows = get_array(table, "rows"), &shown = get_array(partial, "items"),
                        &items = get_array(plain, "items");
      ASSERT_EQ(rows.size(), items.size());
      ASSERT_EQ(shown.size(), items.size());
      for (size_t i = 0; i < items.size(); i++) {
        EXPECT_EQ(*find(rows[i], "object.metadata"), *find(items[i], "metadata"));
        EXPECT_EQ(*find(shown[i], "metadata"), *find(items[i], "metadata"));
        EXPECT_EQ(std::string(get_array(rows[i], "cells").at(0).as_string()), get_string(items[i], "metadata.name"));
      }
      RawAnswer pretty_table = ask("pretty=true&" + query, kTable);
      EXPECT_EQ(pretty_table.body, to_pretty(pretty_table.json(), 2) + "\n");
      EXPECT_EQ(without_ages(pretty_table.json()), without_ages(table)) << query;
    }
  }
}

TEST_F(Lists, of_another_version_than_the_stored_one_are_converted) {
  const char* scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
  for (const char* name : {"a", "b"})
    ASSERT_EQ(client
                  .ask("POST", scalers,
                       R"({"metadata":{"name":")" + std::string(name) +
                           R"("},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,)"
                           R"("scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})")
                  .status,
              201);
  json::value plain = client.get(scalers).json();
  ASSERT_EQ(count(plain), 2u);
  EXPECT_EQ(get_int(get_array(plain, "items")[1], "spec.targetCPUUtilizationPercentage"), 50);
  EXPECT_EQ(unpacked(client.get(scalers, kProtobuf)), plain);
  json::value table = client.get(scalers, kTable).json();
  ASSERT_EQ(get_array(table, "rows").size(), 2u);
  EXPECT_EQ(get_array(get_array(table, "rows")[0], "cells").at(0).as_string(), "a");
}

}  // namespace
}  // namespace coracle::api
