// SPDX-License-Identifier: Apache-2.0
// How describe shows service accounts, roles and their bindings, Secrets, ConfigMaps and certificate requests. See describe.h.
#include <arpa/inet.h>

#include <algorithm>
#include <memory>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "ctl/policy_rules.h"
#include "runtime/base/libcrypto.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/schema/table.h"

namespace coracle::ctl {
namespace {

// ---- service accounts ----

std::string account_text(const json::value& account) {
  std::string text;
  put_head(text, account);
  std::string header = "Image pull secrets:";
  view::Range<view::LocalObjectReference> secrets = view::ServiceAccount(account).image_pull_secrets();
  if (secrets.empty()) text += header + "\t<none>\n";
  for (view::LocalObjectReference secret : secrets) {
    text += header + "\t" + std::string(secret.name()) + "\n";
    header.assign(header.size(), ' ');
  }
  return text;
}

// ---- roles ----

std::string role_text(const json::value& role) {  // ClusterRoles have the fields that are read here, too
  std::string text;
  put(text, 0, "Name", metadata_of(role).name());
  put_marks(text, role);
  text +=
      "PolicyRule:\n  Resources\tNon-Resource URLs\tResource Names\tVerbs\n  "
      "---------\t-----------------\t--------------\t-----\n";
  for (const PolicyRule& rule : compacted(policy_rules_of(view::Role(role).rules().raw())))
    text += "  " + resource_and_group(rule) + "\t" + go_list(rule.non_resource_urls) + "\t" + go_list(rule.resource_names) +
            "\t" + go_list(rule.verbs) + "\n";
  return text;
}

std::string binding_text(const json::value& object) {  // likewise of ClusterRoleBindings
  view::RoleBinding binding(object);
  std::string text;
  put(text, 0, "Name", binding.metadata().name());
  put_marks(text, object);
  text += "Role:\n";
  put(text, 1, "Kind", binding.role_ref().kind());
  put(text, 1, "Name", binding.role_ref().name());
  text += "Subjects:\n  Kind\tName\tNamespace\n  ----\t----\t---------\n";
  for (view::Subject subject : binding.subjects())
    text +=
        "  " + std::string(subject.kind()) + "\t" + std::string(subject.name()) + "\t" + std::string(subject.namespace_()) + "\n";
  return text;
}

// ---- Secrets and ConfigMaps ----

std::vector<std::string> sorted_keys_of(const json::object& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::string secret_text(const json::value& object) {  // sizes, never the values, except of tokens
  view::Secret secret(object);
  std::string text;
  put_head(text, object);
  std::string type(secret.type());
  text += "\nType:\t" + type + "\n\nData\n====\n";
  const json::object& data = secret.data();
  for (const auto& key : sorted_keys_of(data)) {
    auto bytes = base64_decode(jsonpath_text(data.at(key)));
    bool token = type == "kubernetes.io/service-account-token" && key == "token";
    put(text, 0, key, token ? (bytes ? *bytes : "") : std::to_string(bytes ? bytes->size() : 0) + " bytes");
  }
  return text;
}

// ---- certificate requests ----

using RequestPtr = std::unique_ptr<X509_REQ, decltype(X509_REQ_free)>;

// Ends the process if libcrypto cannot be loaded.
RequestPtr parse_request(const json::value& object) {
  MUST(load_libcrypto());
  RequestPtr none(nullptr, X509_REQ_free);
  auto pem = base64_decode(view::CertificateSigningRequest(object).spec().request());
  if (!pem) return none;
  std::unique_ptr<BIO, decltype(BIO_free)> bio(BIO_new_mem_buf(pem->data(), int(pem->size())), BIO_free);
  return RequestPtr(bio ? PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr) : nullptr, X509_REQ_free);
}

std::string asn1_text(const ASN1_STRING* string) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)), size_t(ASN1_STRING_length(string)));
}

std::vector<std::string> subject_values(const X509_NAME* subject, int nid) {
  std::vector<std::string> values;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, nid, at)) >= 0;)
    values.push_back(asn1_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  return values;
}

std::string address_of(const ASN1_STRING* bytes) {
  std::string raw = asn1_text(bytes);
  char text[INET6_ADDRSTRLEN];
  if (raw.size() != sizeof(in_addr) && raw.size() != sizeof(in6_addr)) return "?" + hex(raw);  // as Go writes what is none
  return ::inet_ntop(raw.size() == sizeof(in_addr) ? AF_INET : AF_INET6, raw.data(), text, sizeof text);
}

void put_all(std::string& text, const std::string& name, const std::vector<std::string>& values) {
  if (!values.empty()) text += "\t" + name + ":\t" + join(values, "\n\t\t") + "\n";
}

void put_alternatives(std::string& text, const X509_REQ& request) {
  std::unique_ptr<STACK_OF(X509_EXTENSION), void (*)(STACK_OF(X509_EXTENSION)*)> extensions(
      X509_REQ_get_extensions(const_cast<X509_REQ*>(&request)),
      [](STACK_OF(X509_EXTENSION) * all) { sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free); });
  std::unique_ptr<GENERAL_NAMES, decltype(GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)), GENERAL_NAMES_free);
  if (!names) return;
  std::vector<std::string> hosts, mails, uris, addresses;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) hosts.push_back(asn1_text(name->d.dNSName));
    else if (name->type == GEN_EMAIL) mails.push_back(asn1_text(name->d.rfc822Name));
    else if (name->type == GEN_URI) uris.push_back(asn1_text(name->d.uniformResourceIdentifier));
    else if (name->type == GEN_IPADD) addresses.push_back(address_of(name->d.iPAddress));
  }
  if (hosts.empty() && mails.empty() && uris.empty() && addresses.empty()) return;
  text += "Subject Alternative Names:\n";
  put_all(text, "DNS Names", hosts);
  put_all(text, "Email Addresses", mails);
  put_all(text, "URIs", uris);
  put_all(text, "IP Addresses", addresses);
}

std::string request_status(view::CertificateSigningRequestStatus status) {
  bool approved = false, denied = false, failed = false;
  for (view::CertificateSigningRequestCondition condition : status.conditions()) {
    std::string_view type = condition.type();
    approved = approved || type == "Approved", denied = denied || type == "Denied", failed = failed || type == "Failed";
  }
  return std::string(denied     ? "Denied"
                     : approved ? "Approved"
                                : "Pending") +
         (failed ? ",Failed" : "") + (status.certificate().empty() ? "" : ",Issued");
}

std::string request_text(const json::value& object) {
  std::string text;
  view::ObjectMeta metadata = metadata_of(object);
  view::CertificateSigningRequestSpec spec = view::CertificateSigningRequest(object).spec();
  put(text, 0, "Name", metadata.name());
  put(text, 0, "Labels", map_text(metadata.labels()));
  put(text, 0, "Annotations", map_text(metadata.annotations()));
  put(text, 0, "CreationTimestamp", time_text(metadata.creation_timestamp()));
  put(text, 0, "Requesting User", spec.username());
  if (!spec.signer_name().empty()) put(text, 0, "Signer", spec.signer_name());
  if (spec.has_expiration_seconds())
    put(text, 0, "Requested Duration", schema::human_duration(std::chrono::seconds(spec.expiration_seconds())));
  put(text, 0, "Status", request_status(view::CertificateSigningRequest(object).status()));
  RequestPtr request = parse_request(object);
  if (!request) return text;
  const X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  auto first = [&](int nid) {
    std::vector<std::string> values = subject_values(subject, nid);
    return values.empty() ? std::string() : values.back();
  };
  text += "Subject:\n\tCommon Name:\t" + first(NID_commonName) + "\n\tSerial Number:\t" + first(NID_serialNumber) + "\n";
  for (auto [nid, label] : {std::pair{NID_organizationName, "Organization"},
                            std::pair{NID_organizationalUnitName, "Organizational Unit"}, std::pair{NID_countryName, "Country"},
                            std::pair{NID_localityName, "Locality"}, std::pair{NID_stateOrProvinceName, "Province"},
                            std::pair{NID_streetAddress, "StreetAddress"}, std::pair{NID_postalCode, "PostalCode"}})
    put_all(text, label, subject_values(subject, nid));
  put_alternatives(text, *request);
  return text;
}

}  // namespace

std::string data_text(const json::value& map) {
  const json::object &data = view::ConfigMap(map).data(), &binary = view::ConfigMap(map).binary_data();
  std::string text = "\nData\n====\n";
  for (const auto& key : sorted_keys_of(data)) text += key + ":\n----\n" + jsonpath_text(data.at(key)) + "\n\n";
  text += "\nBinaryData\n====\n";
  for (const auto& key : sorted_keys_of(binary)) {
    auto bytes = base64_decode(jsonpath_text(binary.at(key)));
    text += key + ": " + std::to_string(bytes ? bytes->size() : 0) + " bytes\n";
  }
  return text;
}

std::string access_text(const json::value& object) {
  std::string_view kind = kind_in(object);
  if (kind == "ServiceAccount") return account_text(object);
  if (kind == "Role" || kind == "ClusterRole") return role_text(object);
  if (kind == "RoleBinding" || kind == "ClusterRoleBinding") return binding_text(object);
  if (kind == "Secret") return secret_text(object);
  if (kind == "CertificateSigningRequest") return request_text(object);
  return {};
}

}  // namespace coracle::ctl
