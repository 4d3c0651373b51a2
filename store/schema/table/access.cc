// SPDX-License-Identifier: Apache-2.0
// Cells of role bindings and of certificate signing requests.
#include "runtime/base/text.h"
#include "store/schema/table.h"
#include "store/schema/table/cells.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

json::value role(const CellInput& in) {
  view::RoleRef ref = view::RoleBinding(in.object).role_ref();
  return json::value(std::string(ref.kind()) + "/" + std::string(ref.name()));
}

json::value subjects(const CellInput& in) {
  std::vector<std::string> names;
  for (view::Subject subject : view::RoleBinding(in.object).subjects()) {
    if (subject.kind() != in.arguments[0]) continue;
    std::string name(subject.name());
    names.push_back(subject.kind() == "ServiceAccount" ? std::string(subject.namespace_()) + "/" + name : name);
  }
  return json::value(join(names, ", "));
}

json::value requested_duration(const CellInput& in) {
  view::CertificateSigningRequestSpec spec = view::CertificateSigningRequest(in.object).spec();
  if (!spec.has_expiration_seconds()) return or_none("");
  return json::value(human_duration(std::chrono::seconds(spec.expiration_seconds())));
}

json::value condition(const CellInput& in) {
  view::CertificateSigningRequestStatus status = view::CertificateSigningRequest(in.object).status();
  bool approved = false, denied = false, failed = false;
  for (view::CertificateSigningRequestCondition found : status.conditions()) {
    approved = approved || found.type() == "Approved";
    denied = denied || found.type() == "Denied";
    failed = failed || found.type() == "Failed";
  }
  std::string text = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) text += ",Failed";
  if (!status.certificate().empty()) text += ",Issued";
  return json::value(text);
}

constexpr NamedCellRule kAccessCells[] = {
    {"binding.role", role}, {"binding.subjects", subjects}, {"csr.duration", requested_duration}, {"csr.condition", condition}};

}  // namespace

std::span<const NamedCellRule> access_cells() { return kAccessCells; }

}  // namespace coracle::schema
