// SPDX-License-Identifier: Apache-2.0
// Rules: CertificateSigningRequests.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> certificate_rules();
std::span<const NamedCellRule> certificate_cells();

void check_certificate_request_update(const json::value& now, const json::value& before, std::string_view subresource,
                                      Findings& out);
void check_certificate_request_status(const json::value& now, const json::value& before, Findings& out);

}  // namespace coracle::schema
