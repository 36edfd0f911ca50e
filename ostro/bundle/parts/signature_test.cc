#include "ostro/bundle/parts/signature.h"

#include <doctest/doctest.h>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::bundle {
namespace {

// RFC 8032, section 7.1, test 1: the key, its public key, and the signature of the empty text.
constexpr const char* kPrivate =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
constexpr const char* kPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    "-----END PUBLIC KEY-----\n";
constexpr const char* kSignatureOfNothing =
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0"
    "595bbe24655141438e7a100b";
// Of `openssl pkey -in KEY -aes128`, and of `openssl genpkey -algorithm ec`.
constexpr const char* kEncrypted =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAirt/07OLlsrAICCAAw\n"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEHhfXeHLjnk/X0VzRyNDtL0EQKUO\n"
    "RmsUzdDnCcOt/lz8JxqzdjUlfZHqOQeNc9YBGndAeuNWc6OiPfLY3dybwU2pbTjp\n"
    "cnDcH51D9xznPfcqUUY=\n"
    "-----END ENCRYPTED PRIVATE KEY-----\n";
constexpr const char* kOfACurve =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAQNeVtRmkmZfzUSH\n"
    "EtcX5f6TIn3ZywwUjBUfl5Q9LT6hRANCAAQRzi49eFgBzR64U57Qd5gYhbQNUK/l\n"
    "xy5vsHLJ8l5VHvvAwhvX/Kw+lWLUx3X2XPRiJS3shN8eqaqNdBtWxhv0\n"
    "-----END PRIVATE KEY-----\n";

Result<SigningKey> key_of(const std::string& pem) {
  io::MemoryFileSystem fs;
  CHECK(io::write_file_atomically(fs, "key.pem", pem).ok());
  return SigningKey::read(fs, "key.pem");
}

std::string hex_of(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

}  // namespace

TEST_CASE("signatures are those of RFC 8032") {
  const auto key = key_of(kPrivate);
  REQUIRE(key.ok());
  CHECK(hex_of(key->sign("")) == kSignatureOfNothing);
  CHECK(key->public_key().pem() == kPublic);
  // Of `openssl pkey -pubout -outform DER | sha256sum`.
  CHECK(key->public_key().fingerprint() ==
        "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9");
}

TEST_CASE("no bit of a text, a signature or a public key can change") {
  const auto key = key_of(kPrivate);
  REQUIRE(key.ok());
  const std::string text = "{\"a\":1}\n", signature = key->sign(text);
  CHECK(key->public_key().has_signed(text, signature));
  CHECK(!key->public_key().has_signed(text, signature + "x"));
  CHECK(!key->public_key().has_signed(text, signature.substr(1)));
  for (size_t i = 0; i < signature.size() * 8; ++i) {
    std::string other = signature;
    other[i / 8] = static_cast<char>(other[i / 8] ^ (1 << (i % 8)));
    CHECK(!key->public_key().has_signed(text, other));
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK(!key->public_key().has_signed(other, signature));
  }
  const std::string pem = kPublic;
  for (size_t i = 0; i < pem.size(); ++i)
    for (const int bit : {0, 3, 5}) {
      std::string other = pem;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      const auto changed = PublicKey::parse(other, "k.pub");
      CHECK((!changed.ok() || !changed->has_signed(text, signature)));
    }
  CHECK(!PublicKey::parse(pem + "\n", "k.pub").ok());
  CHECK(PublicKey::parse(pem, "k.pub").ok());
}

TEST_CASE("a key that cannot sign is refused with what to do") {
  const auto says = [](const std::string& pem, const char* words) {
    const auto key = key_of(pem);
    REQUIRE(!key.ok());
    CHECK(key.error().code() == ErrorCode::kInvalidArgument);
    CHECK_MESSAGE(key.error().message().find(words) != std::string::npos, key.error().message());
  };
  says(kEncrypted, "is encrypted");
  says(kOfACurve, "openssl genpkey -algorithm ed25519");
  says(kPublic, "is no private key of Ed25519");
  says("", "is no private key of Ed25519");
}

}  // namespace ostro::bundle
