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
  // Reads a public key. The text must be exactly what OpenSSL writes for one Ed25519 key, so that no byte of
  // the file can change unnoticed. Error: kCorrupt, which names `where`.
  static Result<PublicKey> parse(const std::string& pem, const std::string& where);

  const std::string& pem() const { return pem_; }
  // SHA-256 of the key's DER form (SubjectPublicKeyInfo), hexadecimal.
  const std::string& fingerprint() const { return fingerprint_; }
  // Returns true when `signature` is one of this key over the text.
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

  // Returns the signature of a text, 64 bytes. A text always gets the same signature.
  std::string sign(std::string_view text) const;
  const PublicKey& public_key() const { return public_; }

 private:
  SigningKey() = default;
  PublicKey public_;
};

}  // namespace ostro::bundle
