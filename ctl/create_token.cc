// SPDX-License-Identifier: Apache-2.0
// create token: a token by which a program speaks for a ServiceAccount. Source: kubectl pkg/cmd/create/create_token.go.
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "ctl/create.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"
#include "store/schema/views.h"

namespace coracle::ctl {
namespace {

struct TokenFlags {
  std::vector<std::string> names, audiences;
  Output output;
  std::string duration = "0s", bound_kind, bound_name, bound_uid;
};

Result<int64_t> seconds_of(const std::string& duration) {
  if (duration.starts_with('-')) return Error(Code::bad_request, "--duration must be greater than or equal to 0");
  auto span = TRY(parse_timeout(duration).wrap("--duration"));
  auto whole = std::chrono::duration_cast<std::chrono::seconds>(span);
  if (whole != span) return Error(Code::bad_request, "--duration cannot be expressed in units less than seconds");
  return int64_t(whole.count());
}

Result<json::value> token_request_of(const TokenFlags& flags) {
  int64_t seconds = TRY(seconds_of(flags.duration));
  for (const auto& audience : flags.audiences)
    if (audience.empty()) return Error(Code::bad_request, "--audience must not be an empty string");
  if (flags.bound_kind.empty()) {
    for (auto [flag, value] : {std::pair{"name", &flags.bound_name}, std::pair{"uid", &flags.bound_uid}})
      if (!value->empty())
        return Error(Code::bad_request,
                     "--bound-object-" + std::string(flag) + " can only be set if --bound-object-kind is provided");
  } else {
    if (flags.bound_kind != "Node" && flags.bound_kind != "Pod" && flags.bound_kind != "Secret")
      return Error(Code::bad_request, "supported --bound-object-kind values are Node, Pod, Secret");
    if (flags.bound_name.empty())
      return Error(Code::bad_request, "--bound-object-name is required if --bound-object-kind is provided");
  }
  json::value request = json::object{{"kind", "TokenRequest"}, {"apiVersion", "authentication.k8s.io/v1"}};
  json::value& spec = make(request, "spec");
  spec.emplace_object();
  if (!flags.audiences.empty()) spec.get_object()["audiences"] = json::value_from(flags.audiences);
  if (seconds > 0) spec.get_object()["expirationSeconds"] = seconds;
  if (!flags.bound_kind.empty()) {
    json::object bound{{"kind", flags.bound_kind}, {"apiVersion", "v1"}, {"name", flags.bound_name}};
    if (!flags.bound_uid.empty()) bound["uid"] = flags.bound_uid;
    spec.get_object()["boundObjectRef"] = std::move(bound);
  }
  return request;
}

Result<int> run_create_token(Commands& commands, const std::string& name, const TokenFlags& flags) {
  json::value wanted = TRY(token_request_of(flags));
  Session* session = TRY(commands.session());
  auto answer = session->json({.method = "POST",
                               .path = session->path(schema::catalog().of(kServiceAccount), session->ns(), name, "token"),
                               .body = to_text(wanted)});
  if (!answer) return Error(answer.error().code(), "failed to create token: " + answer.error().text());
  std::string token(view::TokenRequest(*answer).status().token());
  if (token.empty()) return Error(Code::internal, "failed to create token: no token in server response");
  if (!flags.output.empty()) flags.output.print(*std::move(answer), JsonOrder::given);
  else out(token + (::isatty(STDOUT_FILENO) ? "\n" : ""));  // a file gets the token alone
  return 0;
}

}  // namespace

void add_create_token(Commands& commands, Command create) {
  auto flags = std::make_shared<TokenFlags>();
  Command token = commands.add("token", "Ask for a ServiceAccount's token", create);
  token.add_option("name", flags->names, "the ServiceAccount's name");
  token.add_option("--audience", flags->audiences, "who shall accept it; may be repeated");
  token.add_option("--duration", flags->duration, "how long it is good for: 10m, 1h; 0s: the server decides").as_duration();
  token.add_option("--bound-object-kind", flags->bound_kind, "Pod, Secret or Node: it is good only as long as that object");
  token.add_option("--bound-object-name", flags->bound_name, "the object's name");
  token.add_option("--bound-object-uid", flags->bound_uid, "the object's UID; else that of the existing object");
  commands.add_output(token, flags->output);
  commands.on(token, [&commands, token, flags]() -> Result<int> {
    if (flags->names == std::vector<std::string>{""}) return Error(Code::bad_request, "service account name is required");
    std::string name = TRY(only_name(token, flags->names));
    return run_create_token(commands, name, *flags);
  });
}

}  // namespace coracle::ctl
