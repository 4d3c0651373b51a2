// SPDX-License-Identifier: Apache-2.0
// Rules: PersistentVolumes and claims, storage classes, CSI objects.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedValidationRule> storage_rules();
std::span<const NamedValidationRule> csi_rules();
std::span<const NamedCellRule> storage_cells();
std::span<const NamedCellRule> csi_cells();

void check_volume_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_claim_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_csi_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_attachment_status(const json::value& now, const json::value& before, Findings& out);

}  // namespace coracle::schema
