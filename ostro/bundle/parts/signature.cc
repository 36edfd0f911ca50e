#include "ostro/bundle/parts/signature.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "ostro/base/sha256.h"

namespace ostro::bundle {
namespace {

constexpr int64_t kMostKeyBytes = 1 << 16;
constexpr size_t kSignatureBytes = 64;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeContext>;

EVP_PKEY* get(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }
std::shared_ptr<void> owned(EVP_PKEY* key) {
  return {key, [](void* k) { EVP_PKEY_free(static_cast<EVP_PKEY*>(k)); }};
}
const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// OpenSSL would ask the terminal for the passphrase of an encrypted key.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return 0;
}

std::string public_pem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  OSTRO_CHECK(bio != nullptr && PEM_write_bio_PUBKEY(bio.get(), key) == 1, "a public key has no PEM form");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::string der_hash(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  OSTRO_CHECK(size > 0, "a public key has no DER form");
  std::string hash =
      sha256_hex(std::string_view(reinterpret_cast<const char*>(der), static_cast<size_t>(size)));
  OPENSSL_free(der);
  return hash;
}

}  // namespace

Result<PublicKey> PublicKey::parse(const std::string& pem, const std::string& where) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  PublicKey out;
  bool asked = false;
  out.key_ = owned(PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, &asked));
  if (out.key_ == nullptr)
    return corrupt(fmt::format("{}: is no public key (PEM, as `openssl pkey -pubout` writes it)", where));
  if (EVP_PKEY_id(get(out.key_)) != EVP_PKEY_ED25519)
    return corrupt(fmt::format("{}: is a public key, but not one of Ed25519", where));
  out.pem_ = public_pem(get(out.key_));
  if (out.pem_ != pem)
    return corrupt(fmt::format(
        "{}: holds more than the public key, or is not written as `openssl pkey -pubout` does", where));
  out.fingerprint_ = der_hash(get(out.key_));
  return out;
}

bool PublicKey::has_signed(std::string_view text, std::string_view signature) const {
  if (signature.size() != kSignatureBytes) return false;
  const DigestContext context(EVP_MD_CTX_new());
  return context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, get(key_)) == 1 &&
         EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(text), text.size()) == 1;
}

Result<SigningKey> SigningKey::read(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMostKeyBytes));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  SigningKey out;
  bool asked = false;
  out.public_.key_ = owned(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &asked));
  if (asked)
    return invalid_argument(
        fmt::format("{}: the key is encrypted; write it without a passphrase: openssl pkey -in {} -out "
                    "PLAIN.pem",
                    path, path));
  if (out.public_.key_ == nullptr || EVP_PKEY_id(get(out.public_.key_)) != EVP_PKEY_ED25519)
    return invalid_argument(
        fmt::format("{}: is no private key of Ed25519; make one: openssl genpkey -algorithm ed25519 "
                    "-out KEY.pem",
                    path));
  out.public_.pem_ = public_pem(get(out.public_.key_));
  out.public_.fingerprint_ = der_hash(get(out.public_.key_));
  return out;
}

std::string SigningKey::sign(std::string_view text) const {
  const DigestContext context(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  const bool done = context != nullptr &&
                    EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, get(public_.key_)) == 1 &&
                    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                                   raw(text), text.size()) == 1;
  OSTRO_CHECK(done && size == kSignatureBytes, "signing failed");
  return signature;
}

}  // namespace ostro::bundle
