// SigningKey, PublicKey: Ed25519 signatures, as OpenSSL makes and checks them.
//
// Keys are PEM files of `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout`; a signature is 64
// raw bytes, which `openssl pkeyutl -verify -pubin -rawin` checks. Values that may be copied; not
// thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ostro/io/files/file_system.h"

namespace ostro::bundle {

class PublicKey {
 public:
  // kCorrupt, naming `where`, when the text is not exactly one public key of Ed25519 as OpenSSL writes it: no
  // byte of the file can change unnoticed.
  static Result<PublicKey> parse(const std::string& pem, const std::string& where);

  const std::string& pem() const { return pem_; }
  // SHA-256 of the key's DER form (SubjectPublicKeyInfo), hexadecimal.
  const std::string& fingerprint() const { return fingerprint_; }
  bool has_signed(std::string_view text, std::string_view signature) const;
  bool operator==(const PublicKey& other) const { return pem_ == other.pem_; }

 private:
  friend class SigningKey;
  PublicKey() = default;
  std::shared_ptr<void> key_;  // EVP_PKEY
  std::string pem_, fingerprint_;
};

class SigningKey {
 public:
  // Reads a private key. kInvalidArgument, naming the file, for one that is encrypted or of another kind.
  static Result<SigningKey> read(io::FileSystem& fs, const std::string& path);

  // 64 bytes. A text has one signature.
  std::string sign(std::string_view text) const;
  const PublicKey& public_key() const { return public_; }

 private:
  SigningKey() = default;
  PublicKey public_;
};

}  // namespace ostro::bundle
