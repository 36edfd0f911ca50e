#include "ostro/base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>

#include "ostro/base/check.h"

namespace ostro {

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  OSTRO_CHECK(context_ != nullptr, "out of memory for a SHA-256 context");
  const int ok = EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_.get()), EVP_sha256(), nullptr);
  OSTRO_CHECK(ok == 1, "the cryptographic library offers no SHA-256");
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  OSTRO_CHECK(context_ != nullptr, "update() after finish()");
  const int ok = EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
  OSTRO_CHECK(ok == 1, "SHA-256 update failed");
  return *this;
}

Sha256& Sha256::update(std::string_view bytes) { return update(std::as_bytes(std::span(bytes))); }

Sha256Digest Sha256::finish() {
  OSTRO_CHECK(context_ != nullptr, "finish() called twice");
  Sha256Digest digest;
  unsigned int size = 0;
  const int ok = EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), digest.data(), &size);
  OSTRO_CHECK(ok == 1 && size == digest.size(), "SHA-256 finish failed");
  context_.reset();
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) { return Sha256().update(bytes).finish(); }
Sha256Digest sha256(std::string_view bytes) { return Sha256().update(bytes).finish(); }

std::string to_hex(const Sha256Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * digest.size());
  for (const uint8_t byte : digest) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) { return to_hex(sha256(bytes)); }
std::string sha256_hex(std::span<const std::byte> bytes) { return to_hex(sha256(bytes)); }

Sha256Digest hmac_sha256(std::string_view key, std::string_view message) {
  Sha256Digest digest;
  unsigned int size = 0;
  // A null key would mean "the key of the last call" to OpenSSL, and an empty string_view may be null.
  const void* key_bytes = key.empty() ? "" : key.data();
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  const void* done = HMAC(EVP_sha256(), key_bytes, static_cast<int>(key.size()), bytes, message.size(),
                          digest.data(), &size);
  OSTRO_CHECK(done != nullptr && size == digest.size(), "HMAC-SHA256 failed");
  return digest;
}

Nonce new_nonce() {
  Nonce nonce;
  ssize_t got;
  do {
    got = getrandom(nonce.data(), nonce.size(), 0);
  } while (got < 0 && errno == EINTR);
  OSTRO_CHECK(got == static_cast<ssize_t>(nonce.size()), "the system gives no random bytes");
  return nonce;
}

bool same_code(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace ostro
