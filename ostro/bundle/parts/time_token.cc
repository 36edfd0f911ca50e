#include "ostro/bundle/parts/time_token.h"

#include <fmt/core.h>
#include <openssl/ess.h>
#include <openssl/pem.h>
#include <openssl/pkcs7.h>
#include <openssl/ts.h>
#include <openssl/x509.h>

#include <cstring>
#include <ctime>
#include <memory>

#include "ostro/base/sha256.h"
#include "ostro/chain/clock_text.h"

namespace ostro::bundle {
namespace {

template <typename T, void (*Free)(T*)>
struct FreeWith {
  void operator()(T* object) const { Free(object); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, FreeWith<T, Free>>;

void free_bio(BIO* bio) { BIO_free(bio); }
void free_certificates(STACK_OF(X509) * certificates) { sk_X509_free(certificates); }
using BytesIn = Owned<BIO, free_bio>;
using Answer = Owned<TS_RESP, TS_RESP_free>;

// Whether the bytes are the answer's own DER form and nothing else.
bool is_whole(const TS_RESP* answer, std::string_view bytes) {
  unsigned char* der = nullptr;
  const int size = i2d_TS_RESP(answer, &der);
  const bool same = size >= 0 && static_cast<size_t>(size) == bytes.size() &&
                    std::memcmp(der, bytes.data(), bytes.size()) == 0;
  OPENSSL_free(der);
  return same;
}

// Seconds since 1970; -1: the token has no time.
int64_t time_of(TS_TST_INFO* info) {
  tm parts{};
  if (ASN1_TIME_to_tm(TS_TST_INFO_get_time(info), &parts) != 1) return -1;
  return timegm(&parts);
}

std::string name_of(const X509* certificate) {
  const BytesIn bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);  // ASCII alone
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

// The bytes of a signed attribute; empty: there is none.
std::string_view signed_attribute(PKCS7_SIGNER_INFO* info, int nid) {
  const ASN1_TYPE* attribute = PKCS7_get_signed_attribute(info, nid);
  if (attribute == nullptr || attribute->type != V_ASN1_SEQUENCE) return {};
  const ASN1_STRING* bytes = attribute->value.sequence;
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(bytes)),
          static_cast<size_t>(ASN1_STRING_length(bytes))};
}

// Whether the hash of the certificate is among what was signed (RFC 5035): a certificate in the answer that
// has the same key and another name does not pass.
bool names_certificate(PKCS7* token, X509* certificate) {
  STACK_OF(PKCS7_SIGNER_INFO)* signers = PKCS7_get_signer_info(token);
  if (signers == nullptr || sk_PKCS7_SIGNER_INFO_num(signers) != 1) return false;
  PKCS7_SIGNER_INFO* info = sk_PKCS7_SIGNER_INFO_value(signers, 0);
  const std::string_view first = signed_attribute(info, NID_id_smime_aa_signingCertificate),
                         second = signed_attribute(info, NID_id_smime_aa_signingCertificateV2);
  const auto* at = reinterpret_cast<const unsigned char*>(first.data());
  const Owned<ESS_SIGNING_CERT, ESS_SIGNING_CERT_free> one(
      first.empty() ? nullptr : d2i_ESS_SIGNING_CERT(nullptr, &at, static_cast<long>(first.size())));
  at = reinterpret_cast<const unsigned char*>(second.data());
  const Owned<ESS_SIGNING_CERT_V2, ESS_SIGNING_CERT_V2_free> two(
      second.empty() ? nullptr : d2i_ESS_SIGNING_CERT_V2(nullptr, &at, static_cast<long>(second.size())));
  const Owned<STACK_OF(X509), free_certificates> chain(sk_X509_new_null());
  return chain != nullptr && sk_X509_push(chain.get(), certificate) > 0 &&
         OSSL_ESS_check_signing_certs(one.get(), two.get(), chain.get(), /*require_signing_cert=*/1) == 1;
}

// The certificate that signed, when the signature fits it; null when it does not.
X509* signer_of(PKCS7* token) {
  const BytesIn content(BIO_new(BIO_s_mem()));
  if (PKCS7_verify(token, nullptr, nullptr, nullptr, content.get(), PKCS7_NOVERIFY) != 1) return nullptr;
  const Owned<STACK_OF(X509), free_certificates> signers(PKCS7_get0_signers(token, nullptr, 0));
  if (signers == nullptr || sk_X509_num(signers.get()) != 1) return nullptr;
  X509* signer = sk_X509_value(signers.get(), 0);
  return names_certificate(token, signer) ? signer : nullptr;
}

// Whether the answer's status is that a time was given.
bool is_granted(TS_RESP* answer) {
  TS_STATUS_INFO* status = TS_RESP_get_status_info(answer);
  return ASN1_INTEGER_get(TS_STATUS_INFO_get0_status(status)) == TS_STATUS_GRANTED &&
         TS_STATUS_INFO_get0_failure_info(status) == nullptr;
}

// The certificates of a PEM text as what is trusted at a time; null when there are none.
X509_STORE* store_of(const std::string& pem, int64_t at) {
  const BytesIn bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509_STORE* store = X509_STORE_new();
  int count = 0;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    count += X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
  }
  if (count == 0) {
    X509_STORE_free(store);
    return nullptr;
  }
  X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store), at);
  return store;
}

// Whether the answer is about the text and, with a store (which it takes), signed by what that trusts.
bool holds(TS_RESP* answer, std::string_view text, X509_STORE* store) {
  const Owned<TS_VERIFY_CTX, TS_VERIFY_CTX_free> context(TS_VERIFY_CTX_new());
  const Sha256Digest digest = sha256(text);
  auto* imprint = static_cast<unsigned char*>(OPENSSL_memdup(digest.data(), digest.size()));
  TS_VERIFY_CTX_set_flags(context.get(), static_cast<int>(TS_VFY_VERSION | TS_VFY_IMPRINT |
                                                          (store != nullptr ? TS_VFY_SIGNATURE : 0U)));
  TS_VERIFY_CTX_set_imprint(context.get(), imprint, static_cast<long>(digest.size()));
  if (store != nullptr) TS_VERIFY_CTX_set_store(context.get(), store);
  return TS_RESP_verify_response(context.get(), answer) == 1;
}

}  // namespace

std::string time_request(std::string_view text) {
  Sha256Digest digest = sha256(text);
  const Owned<TS_REQ, TS_REQ_free> request(TS_REQ_new());
  const Owned<TS_MSG_IMPRINT, TS_MSG_IMPRINT_free> imprint(TS_MSG_IMPRINT_new());
  const Owned<X509_ALGOR, X509_ALGOR_free> algorithm(X509_ALGOR_new());
  const Owned<ASN1_INTEGER, ASN1_INTEGER_free> nonce(ASN1_INTEGER_new());
  uint64_t number = 0;
  std::memcpy(&number, sha256("ostro time request\n" + to_hex(digest)).data(), sizeof(number));
  const bool made =
      X509_ALGOR_set0(algorithm.get(), OBJ_nid2obj(NID_sha256), V_ASN1_NULL, nullptr) == 1 &&
      TS_MSG_IMPRINT_set_algo(imprint.get(), algorithm.get()) == 1 &&
      TS_MSG_IMPRINT_set_msg(imprint.get(), digest.data(), static_cast<int>(digest.size())) == 1 &&
      ASN1_INTEGER_set_uint64(nonce.get(), number >> 1) == 1 && TS_REQ_set_version(request.get(), 1) == 1 &&
      TS_REQ_set_msg_imprint(request.get(), imprint.get()) == 1 &&
      TS_REQ_set_nonce(request.get(), nonce.get()) == 1 && TS_REQ_set_cert_req(request.get(), 1) == 1;
  OSTRO_CHECK(made, "no request for a time stamp could be made");
  unsigned char* der = nullptr;
  const int size = i2d_TS_REQ(request.get(), &der);
  OSTRO_CHECK(size > 0, "a request for a time stamp has no DER form");
  std::string out(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

Result<TimeToken> read_time_answer(std::string_view bytes, std::string_view text,
                                   const std::string& authority, const std::string& where) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  const Answer answer(d2i_TS_RESP(nullptr, &at, static_cast<long>(bytes.size())));
  if (answer == nullptr || !is_whole(answer.get(), bytes))
    return corrupt(fmt::format("{}: is no answer of a time-stamping service (RFC 3161, DER)", where));
  TS_TST_INFO* info = TS_RESP_get_tst_info(answer.get());
  PKCS7* token = TS_RESP_get_token(answer.get());
  if (info == nullptr || token == nullptr || !is_granted(answer.get()))
    return corrupt(fmt::format("{}: the service refused to give a time", where));
  if (!holds(answer.get(), text, nullptr))
    return corrupt(fmt::format("{}: is an answer about another bundle.json", where));
  const X509* signer = signer_of(token);
  const int64_t seconds = time_of(info);
  if (signer == nullptr || seconds < 0)
    return corrupt(
        fmt::format("{}: its signature is not that of the one certificate that it must hold", where));
  TimeToken out{chain::utc_text(seconds), name_of(signer), false};
  if (authority.empty()) return out;
  X509_STORE* store = store_of(authority, seconds);
  if (store == nullptr) return invalid_argument("--time_ca: the file holds no certificate (PEM)");
  if (!holds(answer.get(), text, store))
    return corrupt(
        fmt::format("{}: {} is not a time-stamping service that the authority of --time_ca vouches for",
                    where, out.service));
  out.trusted = true;
  return out;
}

}  // namespace ostro::bundle
