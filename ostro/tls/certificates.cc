#include "ostro/tls/certificates.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstring>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"

namespace ostro::tls {
namespace {

constexpr const char* kAuthorityName = "ostro job";
constexpr const char* kProcessName = "ostro process";
constexpr long kMostCertificateBytes = 8192;       // of a stranger's
constexpr const char* kNoEnd = "99991231235959Z";  // RFC 5280, 4.1.2.5

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Error failed(const char* what) {
  const unsigned long code = ERR_get_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return Error(ErrorCode::kInternal,
               fmt::format("TLS: {}: {}", what, reason == nullptr ? "unknown reason" : reason));
}

Key take(EVP_PKEY* key) { return Key(key, EVP_PKEY_free); }

bool add_extension(X509* certificate, int number, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, number, value);
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool set_name(X509_NAME* name, const char* text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text),
                                    -1, -1, 0) == 1;
}

// The certificate's names, key and number; the caller adds what else it says, and signs it.
Certificate begin_certificate(EVP_PKEY* key, const char* subject) {
  Certificate out(X509_new(), X509_free);
  uint64_t number = 0;
  const Nonce random = new_nonce();
  std::memcpy(&number, random.data(), sizeof number);
  const bool good = out && X509_set_version(out.get(), X509_VERSION_3) == 1 &&
                    ASN1_INTEGER_set_uint64(X509_get_serialNumber(out.get()), number >> 1) == 1 &&
                    set_name(X509_get_subject_name(out.get()), subject) &&
                    set_name(X509_get_issuer_name(out.get()), kAuthorityName) &&
                    X509_set_pubkey(out.get(), key) == 1;
  if (!good) out.reset();
  return out;
}

// Without an end: it lives as long as the secret.
Certificate authority_certificate(EVP_PKEY* authority) {
  Certificate out = begin_certificate(authority, kAuthorityName);
  const bool good = out && ASN1_TIME_set(X509_getm_notBefore(out.get()), 0) != nullptr &&
                    ASN1_TIME_set_string(X509_getm_notAfter(out.get()), kNoEnd) == 1 &&
                    add_extension(out.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(out.get(), NID_key_usage, "critical,keyCertSign") &&
                    X509_sign(out.get(), authority, nullptr) > 0;
  if (!good) out.reset();
  return out;
}

Certificate process_certificate(EVP_PKEY* own, EVP_PKEY* authority, Time now) {
  Certificate out = begin_certificate(own, kProcessName);
  const auto seconds = [](Time time) { return std::chrono::system_clock::to_time_t(time); };
  const bool good = out &&
                    ASN1_TIME_set(X509_getm_notBefore(out.get()), seconds(now - kValidBefore)) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(out.get()), seconds(now + kValidAfter)) != nullptr &&
                    add_extension(out.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(out.get(), NID_key_usage, "critical,digitalSignature") &&
                    add_extension(out.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
                    X509_sign(out.get(), authority, nullptr) > 0;
  if (!good) out.reset();
  return out;
}

// The faster cipher first: AES where the processor has instructions for it.
const char* cipher_suites() {
#if defined(__x86_64__)
  const bool has_aes = __builtin_cpu_supports("aes") != 0;
#else
  const bool has_aes = true;
#endif
  return has_aes ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                 : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
}

bool restrict_protocol(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_max_cert_list(context, kMostCertificateBytes);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_num_tickets(context, 0) == 1 &&
         SSL_CTX_set_ciphersuites(context, cipher_suites()) == 1 &&
         SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1 &&
         SSL_CTX_set1_sigalgs_list(context, "ed25519") == 1;
}

}  // namespace

Certificates::Certificates(std::shared_ptr<evp_pkey_st> authority, std::function<Time()> now)
    : authority_(std::move(authority)), now_(std::move(now)) {}

Certificates::~Certificates() = default;

Result<std::shared_ptr<Certificates>> Certificates::of_job(const std::string& secret,
                                                           std::function<Time()> now) {
  if (secret.empty())
    return invalid_argument(
        "TLS (trainer.tls: job) needs the job's secret, from which its certificates follow: set "
        "OSTRO_JOB_SECRET, the same in all processes of the job");
  const Sha256Digest seed = hmac_sha256(secret, "ostro job certificate authority 1");
  Key authority = take(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  if (!authority) return failed("the key of the job's certificate authority");
  if (!now) now = [] { return std::chrono::system_clock::now(); };
  std::shared_ptr<Certificates> out(new Certificates(std::move(authority), std::move(now)));
  RETURN_IF_ERROR(out->renew(out->now_()));
  return out;
}

std::shared_ptr<ssl_ctx_st> Certificates::context() {
  const std::lock_guard lock(mutex_);
  const Time now = now_();
  if (now > made_ + kRenewAfter || now < made_) {
    const Status renewed = renew(now);
    if (!renewed.ok()) log_warning(renewed.error().message() + "; the last certificate is used further");
  }
  return context_;
}

// With the mutex held, or before another thread knows this.
Status Certificates::renew(Time now) {
  const Key own = take(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!own) return failed("a key");
  const Certificate authority = authority_certificate(authority_.get());
  const Certificate certificate = process_certificate(own.get(), authority_.get(), now);
  if (!authority || !certificate) return failed("a certificate");
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (!context || !restrict_protocol(context.get()) ||
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get()) != 1 ||
      SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), own.get()) != 1)
    return failed("the settings of connections");
  context_ = context;
  made_ = now;
  return Status();
}

}  // namespace ostro::tls
