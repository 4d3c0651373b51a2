// SPDX-License-Identifier: Apache-2.0
// Adding a kind needs one folder: this program is the API with the folder boat beside those of store/kinds. store/README.md shows
// its text; a test compares the two.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "daemon/informer/informer.h"
#include "daemon/registry/local.h"
#include "daemon/registry/serve_kinds.h"
#include "runtime/base/thread.h"
#include "store/object/object.h"
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

  RawAnswer applied = client.ask("PATCH", boats + "/rosa?fieldManager=me&force=true",
                                 "apiVersion: boats.example.com/v1\nkind: Boat\nspec: {seats: 2, people: [bob]}\n",
                                 "Content-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(to_text(*find(applied.json(), "spec.people")), R"(["ann","bob"])") << "a set: two writers, both stay";
}

TEST(ExampleKind, has_a_default_a_rule_a_column_and_a_strategy) {
  ServerFixture fixture;
  KeyPair admin = fixture.server->admin();
  RawClient client(fixture.port(), &admin);
  const std::string boats = "/apis/boats.example.com/v1/namespaces/default/boats";

  RawAnswer made = client.ask("POST", boats, R"({"metadata":{"name":"rosa"},"spec":{"seats":3,"people":["ann"]}})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(get_int(made.json(), "spec.vests"), 3) << "as many as seats";

  RawAnswer full = client.ask("POST", boats, R"({"metadata":{"name":"b"},"spec":{"people":["ann","bob"]}})");
  EXPECT_EQ(full.status, 422);
  EXPECT_NE(full.body.find("spec.people: Too many: 2: must have at most 1 item"), std::string::npos) << full.body;

  RawAnswer table = client.get(boats, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
  EXPECT_EQ(to_text(get_array(get_array(table.json(), "rows")[0], "cells")[2]), "2") << table.body;

  RawAnswer refused = client.ask("DELETE", boats + "/rosa", "");
  EXPECT_EQ(refused.status, 403) << refused.body;
  EXPECT_NE(refused.body.find("there are people in the boat"), std::string::npos) << refused.body;
  ASSERT_EQ(client.ask("PATCH", boats + "/rosa", R"({"spec":{"people":null}})", "Content-Type: application/merge-patch+json\r\n")
                .status,
            200);
  EXPECT_EQ(client.ask("DELETE", boats + "/rosa", "").status, 200);
}

// A hundred clients write while the kind comes and goes: every write of a kind that stays succeeds, and a write of a boat either
// succeeds or finds no such resource.
TEST(ExampleKind, comes_and_goes_while_clients_write) {
  constexpr Kind kBoat{"boats.example.com", "v1", "Boat", "boats"};
  constexpr int kClients = 100, kRounds = 10;
  const auto all = std::make_shared<const schema::Catalog>();
  const auto without = std::make_shared<const schema::Catalog>([&](const Kind& kind) { return kind != kBoat; });
  schema::CatalogSource catalogs(without);
  ServerFixture fixture({}, catalogs);
  KeyPair admin = fixture.server->admin();
  const std::string boats = "/apis/boats.example.com/v1/namespaces/default/boats";

  std::atomic<bool> ends = false;
  std::atomic<int> written = 0, boats_written = 0, wrong = 0;
  std::vector<std::jthread> writers;
  for (int i = 0; i < kClients; ++i)
    writers.push_back(start_thread("writer", [&, i] {
      RawClient client(fixture.port(), &admin);
      for (int n = 0; !ends; ++n) {
        std::string name = R"({"metadata":{"name":"w)" + std::to_string(i) + "-" + std::to_string(n) + R"("}})";
        int map = client.ask("POST", "/api/v1/namespaces/default/configmaps", name).status,
            boat = client.ask("POST", boats, name).status;
        if (map == 201) ++written;
        if (boat == 201) ++boats_written;
        if (map != 201 || (boat != 201 && boat != 404)) ++wrong;
      }
    }));

  registry::LocalClient local(*fixture.registry);
  RawClient client(fixture.port(), &admin);
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_EQ(client.get(boats).status, 404);
    EXPECT_EQ(local.list(kBoat, {}).error().code(), Code::not_found);
    registry::serve_kinds(catalogs, *fixture.engine, all);
    EXPECT_NE(client.get("/apis").body.find("boats.example.com"), std::string::npos);
    const std::string name = "rosa" + std::to_string(round);
    ASSERT_EQ(client.ask("POST", boats, R"({"metadata":{"name":")" + name + R"("},"spec":{"seats":2}})").status, 201);
    Informer informer(local, kBoat, {}, Reopening::by_hand);
    MUST(informer.start());
    ASSERT_TRUE(informer.wait_synced({}));
    EXPECT_TRUE(informer.get({"default", name}));
    ASSERT_EQ(
        client
            .ask("PATCH", boats + "/" + name, R"({"spec":{"colour":"white"}})", "Content-Type: application/merge-patch+json\r\n")
            .status,
        200);
    EXPECT_TRUE(comes_true([&] { return get_string(informer.get({"default", name})->json(), "spec.colour") == "white"; }));
    RawClient watch(fixture.port(), &admin);
    watch.send("GET " + boats + "?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(watch.receive_until("\"ADDED\"").find("200"), std::string::npos);
    const int before = boats_written;
    EXPECT_TRUE(comes_true([&] { return boats_written > before; })) << "others write boats too";
    registry::serve_kinds(catalogs, *fixture.engine, without);
    const std::string last = watch.receive_until("\"code\":410");
    EXPECT_NE(last.find("boats.boats.example.com is no longer served"), std::string::npos) << "the watch ends, and says why";
    EXPECT_TRUE(comes_true([&] { return informer.run_once(); })) << "and so does the informer's";
  }
  EXPECT_EQ(client.get("/apis").body.find("boats.example.com"), std::string::npos);
  const int before = written;
  EXPECT_TRUE(comes_true([&] { return written > before + kClients; }));
  ends = true;
  writers.clear();
  EXPECT_EQ(wrong, 0);
  registry::serve_kinds(catalogs, *fixture.engine, all);
  EXPECT_EQ(int(MUST(local.list(kBoat, {})).items.size()), boats_written + kRounds) << "what was acknowledged is there again";
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
  std::stringstream text(contents(std::string(root ? root : ".") + "/tests/daemon/api/boat/boats.v1"));
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
