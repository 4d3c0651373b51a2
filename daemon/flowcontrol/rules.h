// SPDX-License-Identifier: Apache-2.0
// Rules: parsed FlowSchemas and PriorityLevelConfigurations: the schema that matches a request, its level, and the distinguisher
// of its flows. Pure.
//   objects of flowcontrol.apiserver.k8s.io/v1 ──read──▶ LevelRule, SchemaRule ──classify──▶ Classified
// Source: Kubernetes "API Priority and Fairness"; apiserver util/flowcontrol/rule.go.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/auth/attributes.h"
#include "daemon/flowcontrol/queue_set.h"
#include "daemon/flowcontrol/shares.h"
#include "runtime/base/json.h"
#include "store/object/user.h"
#include "store/schema/views.h"

namespace coracle::flowcontrol {

struct FlowRules {
  std::vector<json::value> schemas, levels;  // the objects
};

struct LevelRule {
  std::string name, uid;
  ShareSettings shares;
  QueueSettings queues;
};
LevelRule read_level(const json::value& object);  // of a PriorityLevelConfiguration; values out of bounds are bounded

class SchemaRule {
 public:
  explicit SchemaRule(view::FlowSchema schema);

  bool matches(const User& user, const auth::Attributes& asked) const;
  std::string_view distinguisher(const User& user, const auth::Attributes& asked) const;  // valid as long as the two
  // Order of matching: by precedence, then by name.
  bool operator<(const SchemaRule& other) const;

  std::string name, uid, level;
  std::string level_uid;  // of the level, if it exists; set by FlowController
  bool exempt = false;

 private:
  struct Subject {
    enum class Of : uint8_t { nobody, everybody, user, group, accounts } of = Of::nobody;
    std::string name;  // of the user or group; or the prefix of the service accounts' names in a namespace
    bool is(const User& user) const;
  };
  static Subject read_subject(view::FlowcontrolSubject from);
  struct Resources {
    std::vector<std::string> verbs, groups, resources, namespaces;
    bool cluster_scope = false;
  };
  struct Paths {
    std::vector<std::string> verbs, urls;
  };
  struct Rule {  // matches if a subject and a resource or path rule match
    std::vector<Subject> subjects;
    std::vector<Resources> resources;
    std::vector<Paths> paths;
    bool covers(const auth::Attributes& asked) const;
  };

  int64_t precedence_ = 0;
  std::string method_;
  std::vector<Rule> rules_;
};

using SchemaRules = std::shared_ptr<const std::vector<SchemaRule>>;

// The classification of a request. The schema's names and uids are those of the time of the classification.
class Classified {
 public:
  Classified() = default;  // no schema matches, and there is none for the rest
  Classified(std::shared_ptr<const SchemaRule> rule, uint64_t flow) : rule_(std::move(rule)), flow_(flow) {}

  const std::string& schema() const { return rule().name; }
  const std::string& schema_uid() const { return rule().uid; }
  const std::string& level() const { return rule().level; }
  const std::string& level_uid() const { return rule().level_uid; }
  bool exempt() const { return rule().exempt; }
  uint64_t flow() const { return flow_; }  // hash_flow() of the schema and the distinguisher; 0 if it is exempt

 private:
  const SchemaRule& rule() const { return rule_ ? *rule_ : no_rule(); }
  static const SchemaRule& no_rule();
  std::shared_ptr<const SchemaRule> rule_;
  uint64_t flow_ = 0;
};
// By the first matching one of `schemas`, which are sorted. If none matches, by the schema catch-all; without that, an empty
// result.
Classified classify(const SchemaRules& schemas, const User& user, const auth::Attributes& asked);

}  // namespace coracle::flowcontrol
