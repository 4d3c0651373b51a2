// SPDX-License-Identifier: Apache-2.0
// Cells of certificate signing requests.
#include "store/kinds/certificate/certificate_kinds.h"
#include "store/schema/table.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

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

constexpr NamedCellRule kCertificateCells[] = {{"csr.duration", requested_duration}, {"csr.condition", condition}};

}  // namespace

std::span<const NamedCellRule> certificate_cells() { return kCertificateCells; }

}  // namespace coracle::schema
