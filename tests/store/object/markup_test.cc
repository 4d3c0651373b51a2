// SPDX-License-Identifier: Apache-2.0
// JSON that clients compare as bytes: escaped as in Go.
#include "store/object/markup.h"

#include <gtest/gtest.h>

#include "store/object/object.h"

namespace coracle {
namespace {

std::string escaped(std::string text, size_t from = 0) {
  escape_markup(text, from);
  return text;
}

TEST(Markup, is_written_as_go_writes_it) {
  EXPECT_EQ(escaped(""), "");
  EXPECT_EQ(escaped(R"({"a":"b"})"), R"({"a":"b"})");
  EXPECT_EQ(escaped(R"(["a && b > c < d"])"), R"(["a \u0026\u0026 b \u003e c \u003c d"])");
  EXPECT_EQ(escaped("\"\xe2\x80\xa8\xe2\x80\xa9\xe2\x82\xac\""), "\"\\u2028\\u2029\xe2\x82\xac\"");
  EXPECT_EQ(escaped("<<<", 1), "<\\u003c\\u003c");
  EXPECT_EQ(escaped("\xe2\x80"), "\xe2\x80");
}

// kubectl rollout undo compares the bytes of a revision's data with its own serialization of the set's template.
TEST(Markup, is_escaped_in_revisions) {
  std::string body =
      R"({"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a","namespace":"b","resourceVersion":"7","annotations":{"c":"<"}},)"
      R"("data":{"args":["sh","-c","a && b"]},"revision":1})";
  ObjectPtr object = MUST(Object::make(kControllerRevision, *parse_json(body)));
  EXPECT_NE(object->text().find(R"("data":{"args":["sh","-c","a \u0026\u0026 b"]})"), std::string::npos) << object->text();
  EXPECT_EQ(object->json(), *parse_json(body));
  ObjectPtr newer = object->with_revision(1234, object->json());
  EXPECT_EQ(get_string(*parse_json(newer->text()), "metadata.resourceVersion"), "1234");
  EXPECT_EQ(get_string(*parse_json(newer->text()), "metadata.annotations.c"), "<");
  ObjectPtr other =
      MUST(Object::make(kConfigMap, *parse_json(R"({"metadata":{"name":"a","namespace":"b"},"data":{"page":"<p>"}})")));
  EXPECT_NE(other->text().find("<p>"), std::string::npos) << "nobody compares these, and they take less space so";
}

}  // namespace
}  // namespace coracle
