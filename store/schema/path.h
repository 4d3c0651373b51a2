// SPDX-License-Identifier: Apache-2.0
// Path: a position in an object, as a linked chain on the stack; it is converted to text only for a message.
//   spec.containers[0].ports[1].hostPort      spec.selector[app]
// A Path borrows its parent: create it as a named local or a function's argument, never from a temporary.
#pragma once

#include <string>
#include <string_view>

namespace coracle::schema {

class Path {
 public:
  Path() = default;  // the whole object
  // The whole object; its values must not occur in messages, because those of Secrets would be logged.
  static Path of_secret() {
    Path path;
    path.secret_ = true;
    return path;
  }
  Path(const Path& parent, std::string_view field) : parent_(&parent), name_(field) {}
  Path(const Path& parent, size_t index) : parent_(&parent), index_(int64_t(index)) {}
  static Path key(const Path& parent, std::string_view key) {
    Path path(parent, key);
    path.key_ = true;
    return path;
  }

  bool is_secret() const { return parent_ ? parent_->is_secret() : secret_; }

  std::string text() const {
    if (!parent_) return {};
    std::string out = parent_->text();
    if (index_ >= 0) return out + "[" + std::to_string(index_) + "]";
    if (key_) return out + "[" + std::string(name_) + "]";
    return out.empty() ? std::string(name_) : out + "." + std::string(name_);
  }

 private:
  const Path* parent_ = nullptr;
  std::string_view name_;
  int64_t index_ = -1;
  bool key_ = false, secret_ = false;
};

}  // namespace coracle::schema
