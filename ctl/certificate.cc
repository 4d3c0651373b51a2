// SPDX-License-Identifier: Apache-2.0
// certificate approve, certificate deny: decide about certificate signing requests. Source: kubectl certificate.
#include <algorithm>

#include "ctl/command.h"
#include "runtime/base/clock.h"
#include "store/kinds/meta/metadata.h"

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

// Approves or denies each request. An earlier decision stays unless --force is given.
Result<int> run_decision(Commands& commands, const CertificateFlags& flags, std::string_view type, const std::string& done) {
  std::vector<std::string> names = TRY(names_of(flags));
  Session* session = TRY(commands.session());
  const schema::KindInfo& kind = schema::catalog().of(kCertificateSigningRequest);
  for (const std::string& name : names) {
    json::value request = TRY(session->json({.path = session->path(kind, "", name)}));
    if (!decided(request, type) || flags.force) {
      json::value& conditions = make(request, "status.conditions");
      if (!conditions.is_array()) conditions.emplace_array();
      json::array& all = conditions.get_array();
      auto same = [&](const json::value& each) { return view::CertificateSigningRequestCondition(each).type() == type; };
      all.erase(std::remove_if(all.begin(), all.end(), same), all.end());
      all.push_back(json::object{
          {"type", type},
          {"status", "True"},
          {"reason", "Coraclectl" + std::string(type == "Approved" ? "Approve" : "Deny")},
          {"message", "This CSR was " + done + " by coraclectl certificate " + (type == "Approved" ? "approve" : "deny") + "."},
          {"lastUpdateTime", format_time(system_clock().now())}});
      std::string path = session->path(kind, "", name, "approval");
      request = TRY(session->json({.method = "PUT", .path = path, .body = to_text(request)}));
    }
    print_outcome(flags.output, DryRun::none, std::move(request), kind, done);
  }
  return 0;
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
    commands.on(command, [&commands, flags, approve] {
      return approve ? run_decision(commands, *flags, "Approved", "approved")
                     : run_decision(commands, *flags, "Denied", "denied");
    });
  }
}

}  // namespace coracle::ctl
