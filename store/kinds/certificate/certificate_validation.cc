// SPDX-License-Identifier: Apache-2.0
// Validation of certificate signing requests: a PKCS#10 request with a valid signature, known usages, a signer name; an approval,
// denial or certificate cannot be changed. OpenSSL does the cryptography. Source: certificates.k8s.io/v1 API reference; RFC 2986.
#include <memory>
#include <set>

#include "runtime/base/libcrypto.h"
#include "runtime/base/text.h"
#include "store/kinds/certificate/certificate_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kDomainMax = 253, kPathMax = 253 + 63 + 1, kSignerMax = kDomainMax + kPathMax + 1;
constexpr int64_t kExpirationSecondsMin = 600;
constexpr std::string_view kLegacySigner = "kubernetes.io/legacy-unknown";

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509_REQ* request) const { X509_REQ_free(request); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

struct PemBlock {
  std::string type, header, der;
};

// Reads the next block of PEM text; false: there is none.
bool next_block(BIO* bio, PemBlock& out) {
  char *name = nullptr, *header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (PEM_read_bio(bio, &name, &header, &data, &size) != 1) return false;
  out = {name, header, std::string(reinterpret_cast<char*>(data), size_t(size))};
  OPENSSL_free(name), OPENSSL_free(header), OPENSSL_free(data);
  return true;
}

// The problem of a request; "": none.
std::string request_problem(const std::string& text) {
  if (auto loaded = load_libcrypto(); !loaded) return loaded.error().text();
  Owned<BIO> bio(BIO_new_mem_buf(text.data(), int(text.size())));
  PemBlock block;
  if (!bio || !next_block(bio.get(), block) || block.type != "CERTIFICATE REQUEST")
    return "PEM block type must be CERTIFICATE REQUEST";
  auto at = reinterpret_cast<const unsigned char*>(block.der.data());
  const unsigned char* end = at + block.der.size();
  Owned<X509_REQ> request(d2i_X509_REQ(nullptr, &at, long(block.der.size())));
  if (!request) return "asn1: syntax error: the request cannot be read";
  if (at != end) return "asn1: syntax error: trailing data";
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (!key) return "x509: unsupported public key";
  if (X509_REQ_verify(request.get(), key) == 1) return {};
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC ? "x509: ECDSA verification failure" : "crypto/rsa: verification error";
}

std::string certificate_problem(const std::string& text) {
  if (text.empty()) return {};
  if (auto loaded = load_libcrypto(); !loaded) return loaded.error().text();
  Owned<BIO> bio(BIO_new_mem_buf(text.data(), int(text.size())));
  if (!bio) return "out of memory";
  int blocks = 0;
  for (PemBlock block; next_block(bio.get(), block); ++blocks) {
    if (block.type != "CERTIFICATE")
      return "only CERTIFICATE PEM blocks are allowed, found " + coracle::quoted(std::string_view(block.type));
    if (!block.header.empty()) return "no PEM block headers are permitted";
    auto at = reinterpret_cast<const unsigned char*>(block.der.data());
    if (!Owned<X509>(d2i_X509(nullptr, &at, long(block.der.size())))) return "x509: malformed certificate";
  }
  return blocks ? std::string() : "must contain at least one CERTIFICATE PEM block";
}

// "" for invalid base64.
std::string decoded_or_empty(std::string_view base64) {
  auto bytes = base64_decode(base64);
  return bytes ? *std::move(bytes) : std::string();
}

void check_signer(std::string_view signer, Findings& out) {
  const std::string path = "spec.signerName";
  if (signer.empty()) return out.required(path);
  std::vector<std::string_view> parts = split(signer, '/');
  if (parts.size() != 2)
    return out.invalid(path, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'");
  if (parts[0].size() > kDomainMax) out.too_long(path, kDomainMax);
  auto segments = [&](std::string_view text, auto problems_of) {
    for (std::string_view label : split(text, '.')) {
      std::vector<std::string> problems = problems_of(label);
      for (const std::string& problem : problems)
        out.invalid(path, text, "validating label " + coracle::quoted(label) + ": " + problem);
      if (!problems.empty()) break;  // further ones would give the same errors
    }
  };
  segments(parts[0], dns_label_problems);
  if (split(parts[0], '.').size() < 2)
    out.invalid(path, parts[0], "should be a domain with at least two segments separated by dots");
  segments(parts[1], dns_subdomain_problems);
  if (signer.size() > kSignerMax) out.too_long(path, kSignerMax);
}

void check_certificate_request_spec(const json::value& value, const std::string&, Findings& out) {
  view::CertificateSigningRequestSpec spec(value);
  if (std::string problem = request_problem(decoded_or_empty(spec.request())); !problem.empty())
    out.invalid("spec.request", spec.request(), problem);
  if (spec.usages().empty()) out.required("spec.usages");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < spec.usages().size(); ++i) {
    if (!seen.insert(spec.usages()[i]).second) out.duplicate(item("spec.usages", i), spec.usages()[i]);
  }
  if (spec.signer_name() == kLegacySigner) {
    out.invalid("spec.signerName", spec.signer_name(), "the legacy signerName is not allowed via this API version");
  } else {
    check_signer(spec.signer_name(), out);
  }
  if (spec.has_expiration_seconds() && spec.expiration_seconds() < kExpirationSecondsMin) {
    out.invalid("spec.expirationSeconds", spec.expiration_seconds(),
                "may not specify a duration less than 600 seconds (10 minutes)");
  }
}

bool always_true(std::string_view type) { return type == "Approved" || type == "Denied" || type == "Failed"; }

void check_certificate_conditions(view::CertificateSigningRequest request, Findings& out) {
  auto conditions = request.status().conditions();
  std::set<std::string_view> seen;
  for (size_t i = 0; i < conditions.size(); ++i) {
    view::CertificateSigningRequestCondition condition = conditions[i];
    std::string path = item("status.conditions", i), type(condition.type());
    if (type.empty()) out.required(sub(path, "type"));
    std::string_view status = condition.status();
    bool known = status == "True" || (!always_true(type) && (status == "False" || status == "Unknown"));
    if (status.empty()) out.required(sub(path, "status"));
    else if (!known && always_true(type)) out.not_supported(sub(path, "status"), status, {"True"});
    else if (!known) out.not_supported(sub(path, "status"), status, {"False", "True", "Unknown"});
    bool contradicts = (type == "Approved" && seen.count("Denied")) || (type == "Denied" && seen.count("Approved"));
    if (contradicts) out.invalid(sub(path, "type"), type, "Approved and Denied conditions are mutually exclusive");
    if (!seen.insert(condition.type()).second) out.duplicate(sub(path, "type"), type);
  }
}

std::vector<json::value> of_type(view::CertificateSigningRequest request, std::string_view type) {
  std::vector<json::value> out;
  for (view::CertificateSigningRequestCondition condition : request.status().conditions()) {
    if (condition.type() == type) out.push_back(condition.raw());
  }
  return out;
}

constexpr NamedValidationRule kCertificateChecks[] = {
    {"io.k8s.api.certificates.v1.CertificateSigningRequestSpec", check_certificate_request_spec}};

}  // namespace

std::span<const NamedValidationRule> certificate_rules() { return kCertificateChecks; }

void check_certificate_request_update(const json::value& object, const json::value& old, std::string_view subresource,
                                      Findings& out) {
  view::CertificateSigningRequest now(object), before(old);
  check_certificate_conditions(now, out);
  for (std::string_view type : {"Approved", "Denied", "Failed"}) {
    auto had = of_type(before, type), has = of_type(now, type);
    std::string named = "a condition of type " + coracle::quoted(type);
    if (has.size() < had.size()) {
      out.forbidden("status.conditions", "updates may not remove " + named);
    } else if (subresource != "approval" && type != "Failed") {
      if (has.size() > had.size()) out.forbidden("status.conditions", "updates may not add " + named);
      else if (has != had) out.forbidden("status.conditions", "updates may not modify " + named);
    }
  }
  if (now.status().certificate() == before.status().certificate()) return;
  if (subresource != "status") return out.forbidden("status.certificate", "updates may not set certificate content");
  if (!before.status().certificate().empty())
    out.forbidden("status.certificate", "updates may not modify existing certificate content");
  if (std::string problem = certificate_problem(decoded_or_empty(now.status().certificate())); !problem.empty()) {
    out.invalid("status.certificate", "<certificate data>", problem);
  }
}

void check_certificate_request_status(const json::value& now, const json::value& before, Findings& out) {
  check_certificate_request_update(now, before, "status", out);
}

}  // namespace coracle::schema
