// SPDX-License-Identifier: Apache-2.0
// A self-signed certificate with its key, and a key that does not belong to it, for the tests of Secrets.
#pragma once

namespace coracle::ctl {

constexpr const char* kCertificatePem = R"(-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUMJj9RwPf+4svDvzBoO8n3Rx3bWAwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBeDAgFw0yNjExMjkxMTA5MzlaGA8yMTI2MTEwNTExMDkzOVow
DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMbWqzmMC5Vy
xC/xQgGz13wjtLlgar9QfR66uH/nL9/lzYO/TSwF4N4h9rN65R9lJHwgAOjS/DZN
a9UCjixFl/GjUzBRMB0GA1UdDgQWBBTjOtemi3YnFf7B/MsQyUYmd601+jAfBgNV
HSMEGDAWgBTjOtemi3YnFf7B/MsQyUYmd601+jAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIDXc+DtzDP/5HhB3Iw8/wh7foDz0Zq9VmmydaYYfivEK
AiEAtf+gAlOCZdDRowWlLtNmn8w3LPpfe8VeWzzgm+1UR44=
-----END CERTIFICATE-----
)";

constexpr const char* kKeyPem = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3WqshI46S1MHdsyj
qZxQVTENI8R4UbZxq8Ag4mZLrcWhRANCAATG1qs5jAuVcsQv8UIBs9d8I7S5YGq/
UH0eurh/5y/f5c2Dv00sBeDeIfazeuUfZSR8IADo0vw2TWvVAo4sRZfx
-----END PRIVATE KEY-----
)";

constexpr const char* kOtherKeyPem = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTLLBozMdewguLa0M
VcQDWQ02u+ECQ5evtYqBYGsam3KhRANCAASsK2EDvRZjLRMu/mO23uW2AUt4ApBo
JeJ7zNL47JRmY3dpzVRgiIA3AfuyiwNtEFy8UB8VlR9wJeZRxrwMB69M
-----END PRIVATE KEY-----
)";

}  // namespace coracle::ctl
