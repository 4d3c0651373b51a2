// SPDX-License-Identifier: Apache-2.0
// Adding a kind only needs text: this program is the API with tables compiled from the schema text and example.v1.
// store/README.md shows that text; a test compares the two.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ExampleKind, is_served_like_any_other) {
  ServerFixture fixture;
  KeyPair admin = fixture.server->admin();
  RawClient client(fixture.port(), &admin);
  const std::string boats = "/apis/boats.example.com/v1/namespaces/default/boats";

  RawAnswer made = client.ask("POST", boats, R"({"metadata":{"name":"rosa"},"spec":{"colour":"white","people":["ann"]}})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(get_int(made.json(), "spec.seats"), 1) << "the text's default";
  EXPECT_EQ(client.get(boats + "/rosa").body, made.body);
  EXPECT_EQ(get_string(client.get(boats).json(), "kind"), "BoatList");
  EXPECT_EQ(get_array(client.get(boats).json(), "items").size(), 1u);
  RawAnswer table = client.get(boats, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
  EXPECT_EQ(get_string(get_array(table.json(), "columnDefinitions")[1], "name"), "Seats");
  RawAnswer binary = client.get(boats + "/rosa", "Accept: application/vnd.kubernetes.protobuf\r\n");
  EXPECT_EQ(binary.body.substr(0, 4), std::string_view("k8s\0", 4));

  RawAnswer refused = client.ask("POST", boats, R"({"metadata":{"name":"b"},"spec":{"colour":"pink"}})");
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.body.find("spec.colour: Unsupported value: \\\"pink\\\": supported values: \\\"black\\\", \\\"white\\\""),
            std::string::npos)
      << refused.body;
  RawAnswer unknown = client.ask("POST", boats + "?fieldValidation=Strict", R"({"metadata":{"name":"b"},"spec":{"sails":2}})");
  EXPECT_EQ(unknown.status, 400) << unknown.body;

  RawAnswer applied = client.ask("PATCH", boats + "/rosa?fieldManager=me",
                                 "apiVersion: boats.example.com/v1\nkind: Boat\nspec: {people: [bob]}\n",
                                 "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(to_text(*find(applied.json(), "spec.people")), R"(["ann","bob"])") << "a set: two writers, both stay";
}

TEST(ExampleKind, is_found_and_explained) {
  ServerFixture fixture;
  KeyPair admin = fixture.server->admin();
  RawClient client(fixture.port(), &admin);
  EXPECT_EQ(get_string(client.get("/apis/boats.example.com").json(), "preferredVersion.version"), "v1");
  json::value resources = client.get("/apis/boats.example.com/v1").json();
  EXPECT_EQ(to_text(*find(get_array(resources, "resources")[0], "shortNames")), R"(["bo"])");
  json::value document = client.get("/openapi/v3/apis/boats.example.com/v1").json();
  const json::value* schema =
      find_keys(document, {"components", "schemas", "com.example.boats.v1.BoatSpec", "properties", "seats", "description"});
  ASSERT_TRUE(schema);
  EXPECT_EQ(*schema, "How many people it carries.") << "what `kubectl explain boat.spec.seats` says";
}

TEST(ExampleKind, is_what_the_readme_shows) {
  const char* root = std::getenv("CORACLE_SOURCE");
  std::string readme = contents(std::string(root ? root : ".") + "/store/README.md");
  std::stringstream text(contents(std::string(root ? root : ".") + "/tests/daemon/api/example.v1"));
  int lines = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line[0] == '#') continue;
    EXPECT_NE(readme.find("    " + line + "\n"), std::string::npos) << line;
    ++lines;
  }
  EXPECT_GT(lines, 10);
}

}  // namespace
}  // namespace coracle::api
