// SPDX-License-Identifier: Apache-2.0
// The command `why`: collects the input of why_text.cc.
#include "ctl/why.h"

#include "ctl/command.h"
#include "ctl/escape.h"
#include "store/kinds/meta/metadata.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {
namespace {

constexpr const char* kPlacement = "/coracle/v1/placement";

Result<const schema::KindInfo*> kind_called(std::string_view kind) {
  std::vector<Named> named = TRY(parse_named({std::string(kind)}));
  return named.front().kind;
}

WhySource source_of(Session& session) {
  WhySource source;
  source.get = [&session](std::string_view kind, std::string_view name) -> Result<json::value> {
    const schema::KindInfo* info = TRY(kind_called(kind));
    auto got = session.json({.path = session.path(*info, session.ns(), name)});
    if (!got && got.error().code() == Code::not_found) return json::value();
    return got;
  };
  source.list = [&session](std::string_view kind) -> Result<json::array> {
    const schema::KindInfo* info = TRY(kind_called(kind));
    json::value list = TRY(session.json({.path = session.path(*info, session.ns())}));
    return items_of(list);
  };
  source.placement = [&session](std::string_view pod) {
    return session.json({.path = kPlacement, .query = {{"namespace", session.ns()}, {"pod", std::string(pod)}}});
  };
  return source;
}

Result<int> run_why(Commands& commands, const std::vector<std::string>& args) {
  std::vector<Named> named = TRY(parse_named(args));
  Session* session = TRY(commands.session());
  WhySource source = source_of(*session);
  for (const Named& one : named) {
    if (one.name.empty()) return Error(Code::bad_request, "why what? Name one, as in: coraclectl why pod NAME");
    std::string text = TRY(why(source, one.kind->kind.kind, one.name));
    out(visible_lines(text));
  }
  return 0;
}

}  // namespace

void add_why(Commands& commands) {
  auto args = std::make_shared<std::vector<std::string>>();
  Command command = commands.add("why", "What keeps an object from being what it should be, down to the cause");
  command.add_option("what", *args, "pod NAME, deployment/NAME, …").required();
  commands.on(command, [&commands, args] { return run_why(commands, *args); });
}

}  // namespace coracle::ctl
