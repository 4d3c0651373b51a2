// SPDX-License-Identifier: Apache-2.0
// certificate approve, certificate deny: decide about certificate signing requests. Source: kubectl certificate.
#include <algorithm>

#include "ctl/command.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

struct CertificateFlags {
  std::vector<std::string> names;
  FileFlags files;
  Output output;
  bool force = false;
};

Result<std::vector<std::string>> names_of(const CertificateFlags& flags) {
  std::vector<std::string> names;
  if (!flags.names.empty() && !flags.files.empty())
    return Error(Code::bad_request, "resource/name arguments cannot be provided when a path is specified");
  for (const std::string& word : flags.names) {
    Named one{&schema::catalog().of(kCertificateSigningRequest), word};
    if (word.find('/') != word.npos) {  // csr/NAME is accepted too
      std::vector<Named> parsed = TRY(parse_named({word}));
      one = parsed.front();
    }
    if (!(one.kind->kind == kCertificateSigningRequest))
      return Error(Code::bad_request, "can only handle certificates.k8s.io/v1 certificate signing requests");
    names.push_back(one.name);
  }
  if (!flags.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files));
    for (const auto& document : documents) {
      if (!(document.kind->kind == kCertificateSigningRequest))
        return Error(Code::bad_request, "can only handle certificates.k8s.io/v1 certificate signing requests");
      names.emplace_back(metadata_of(document.object).name());
    }
  }
  if (names.empty()) return Error(Code::bad_request, "one or more CSRs must be specified as <name> or -f <filename>");
  return names;
}

bool decided(const json::value& request, std::string_view type) {
  for (view::CertificateSigningRequestCondition condition : view::CertificateSigningRequest(request).status().conditions())
    if (condition.type() == type) return true;
  return false;
}

constexpr int kDecisionTries = 11;  // others may change a request meanwhile

struct Decision {
  const char *type, *contrary, *done, *verb, *reason;
};
constexpr Decision kApprove{"Approved", "Denied", "approved", "approve", "CoraclectlApprove"};
constexpr Decision kDeny{"Denied", "Approved", "denied", "deny", "CoraclectlDeny"};

void add_condition(json::value& request, const Decision& decision) {
  json::value& conditions = make(request, "status.conditions");
  if (!conditions.is_array()) conditions.emplace_array();
  json::array& all = conditions.get_array();
  auto is_old = [&](const json::value& each) { return view::CertificateSigningRequestCondition(each).type() == decision.type; };
  all.erase(std::remove_if(all.begin(), all.end(), is_old), all.end());
  all.push_back(json::object{
      {"type", decision.type},
      {"status", "True"},
      {"reason", decision.reason},
      {"message", std::string("This CSR was ") + decision.done + " by coraclectl certificate " + decision.verb + "."},
      {"lastUpdateTime", format_time(system_clock().now())}});
}

// An earlier decision stays unless --force is given; the contrary one stays in any case. Gives the request.
Result<json::value> decide(Session& session, const CertificateFlags& flags, const Decision& decision, const std::string& name) {
  const schema::KindInfo& kind = schema::catalog().of(kCertificateSigningRequest);
  for (int tries = 1;; ++tries) {
    json::value request = TRY(session.json({.path = session.path(kind, "", name)}));
    if (decided(request, decision.contrary))
      return Error(Code::conflict, "certificate signing request " + coracle::quoted(name) + " is already " + decision.contrary);
    if (decided(request, decision.type) && !flags.force) return request;
    add_condition(request, decision);
    std::string path = session.path(kind, "", name, "approval");
    auto sent = session.json({.method = "PUT", .path = path, .body = to_text(request)});
    bool is_late = !sent && sent.error().code() == Code::conflict && tries < kDecisionTries;
    if (!is_late) return sent;
  }
}

// Approves or denies each request; a failure does not stop the others.
Result<int> run_decision(Commands& commands, const CertificateFlags& flags, const Decision& decision) {
  std::vector<std::string> names = TRY(names_of(flags));
  Session* session = TRY(commands.session());
  std::vector<Error> failures;
  for (const std::string& name : names) {
    auto request = decide(*session, flags, decision, name);
    if (!request) failures.push_back(request.take_error());
    else
      print_outcome(flags.output, DryRun::none, *std::move(request), schema::catalog().of(kCertificateSigningRequest),
                    decision.done);
  }
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_certificate(Commands& commands) {
  Command certificate = commands.add("certificate", "Decide about certificate signing requests");
  certificate.require_command();
  for (bool approve : {true, false}) {
    auto flags = std::make_shared<CertificateFlags>();
    Command command = approve ? commands.add("approve", "Let the signer sign a request", certificate)
                              : commands.add("deny", "Keep a request from being signed", certificate);
    command.add_option("names", flags->names, "NAME of the request");
    flags->files.add_to(command);
    commands.add_output(command, flags->output);
    command.add_flag("--force", flags->force, "decide again what is decided");
    commands.on(command, [&commands, flags, approve] { return run_decision(commands, *flags, approve ? kApprove : kDeny); });
  }
}

}  // namespace coracle::ctl
