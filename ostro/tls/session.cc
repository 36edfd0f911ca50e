#include "ostro/tls/session.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "ostro/base/check.h"

namespace ostro::tls {
namespace {

constexpr size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr int64_t kRecordsOfKey = int64_t{1} << 22;  // 2^24.5 are allowed
constexpr const char* kBindingLabel = "EXPORTER-ostro job 1";
constexpr size_t kBindingBytes = 32;

// The socket below the library's TLS. The library's own would send the process SIGPIPE, and would not say
// that more bytes follow at once.
struct Wire {
  int fd = -1;
  bool more = false;   // another record follows this one
  bool keeps = false;  // what the socket does not take now is kept here, and the library goes on
  std::string kept;    // goes before anything else
  bool ended = false;
  int error = 0;  // of the system
};

Wire& wire_of(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

// Whether the call may be tried again; remembers the error otherwise.
bool keep_error(BIO* bio) {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return true;
  wire_of(bio).error = errno;
  return false;
}

ssize_t send_now(const Wire& wire, std::string_view bytes) {
  return ::send(wire.fd, bytes.data(), bytes.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT | (wire.more ? MSG_MORE : 0));
}

int wire_write(BIO* bio, const char* bytes, int size) {
  Wire& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  if (wire.keeps) {
    wire.kept.append(bytes, static_cast<size_t>(size));
    return size;
  }
  ssize_t put = 0;
  while (put >= 0 && !wire.kept.empty()) {
    put = send_now(wire, wire.kept);
    if (put > 0) wire.kept.erase(0, static_cast<size_t>(put));
  }
  if (put >= 0) put = send_now(wire, std::string_view(bytes, static_cast<size_t>(size)));
  if (put < 0 && keep_error(bio)) BIO_set_retry_write(bio);
  return static_cast<int>(put);
}

int wire_read(BIO* bio, char* bytes, int size) {
  Wire& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(wire.fd, bytes, static_cast<size_t>(size), MSG_DONTWAIT);
  if (got < 0 && keep_error(bio)) BIO_set_retry_read(bio);
  if (got == 0) wire.ended = true;
  return static_cast<int>(got);
}

long wire_control(BIO* bio, int what, long, void*) {
  if (what == BIO_CTRL_EOF) return wire_of(bio).ended ? 1 : 0;
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* make_bio(Wire& wire) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ostro socket");
    if (made == nullptr) return made;
    BIO_meth_set_write(made, wire_write);
    BIO_meth_set_read(made, wire_read);
    BIO_meth_set_ctrl(made, wire_control);
    return made;
  }();
  BIO* bio = method == nullptr ? nullptr : BIO_new(method);
  OSTRO_CHECK(bio != nullptr, "out of memory for a TLS connection");
  BIO_set_data(bio, &wire);
  BIO_set_init(bio, 1);
  return bio;
}

bool is_of_time(long verdict) {
  return verdict == X509_V_ERR_CERT_HAS_EXPIRED || verdict == X509_V_ERR_CERT_NOT_YET_VALID;
}

// The error of a certificate that this side does not take.
Error refused_certificate(long verdict) {
  const char* why = X509_verify_cert_error_string(verdict);
  if (is_of_time(verdict))
    return invalid_argument(
        fmt::format("TLS: the other side's certificate is not valid at this time ({}): compare the clocks of "
                    "both machines",
                    why));
  return invalid_argument(
      fmt::format("TLS: the other side's certificate is not of this job ({}): do both have the same secret, "
                  "OSTRO_JOB_SECRET?",
                  why));
}

// What the library calls an alert: the other side has said why it ends the connection.
bool is_of_certificate(int alert) {
  return alert == SSL_AD_BAD_CERTIFICATE || alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_DECRYPT_ERROR ||
         alert == SSL_AD_CERTIFICATE_EXPIRED || alert == SSL_AD_CERTIFICATE_UNKNOWN ||
         alert == SSL_AD_UNSUPPORTED_CERTIFICATE || alert == SSL_AD_CERTIFICATE_REQUIRED;
}

}  // namespace

struct Session::State {
  Wire wire;
  std::shared_ptr<SSL_CTX> context;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl{nullptr, SSL_free};
  bool established = false;
  bool blocked = false;         // by a socket that takes no more
  std::optional<Error> failed;  // after bytes that read() has returned first
  int64_t records = 0, records_of_key = kRecordsOfKey;

  // What came of a call that did not succeed: nothing when it is to be tried again, else the error.
  std::optional<Error> error_of(int returned) {
    const int kind = SSL_get_error(ssl.get(), returned);
    if (kind == SSL_ERROR_WANT_READ) return std::nullopt;
    if (kind == SSL_ERROR_WANT_WRITE) {
      blocked = true;
      return std::nullopt;
    }
    const unsigned long code = ERR_peek_error();
    const int reason = ERR_GET_REASON(code);
    ERR_clear_error();
    // First: the library answers an end with an alert, which then breaks the connection.
    if (wire.ended)
      return io_error(established ? "the connection was cut off"
                                  : "the connection was closed during the TLS handshake");
    if (wire.error != 0) return io_error(fmt::format("the connection broke: {}", std::strerror(wire.error)));
    if (kind != SSL_ERROR_SSL) return io_error("the connection broke");
    const char* text = ERR_reason_error_string(code);
    const std::string why = text == nullptr ? "unknown reason" : text;
    const int alert = reason - SSL_AD_REASON_OFFSET;
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && is_of_certificate(alert))
      return invalid_argument(
          fmt::format("TLS: the other side does not take this process's certificate ({}): do both have the "
                      "same secret, OSTRO_JOB_SECRET, and the same time?",
                      why));
    if (const long verdict = SSL_get_verify_result(ssl.get()); verdict != X509_V_OK)
      return refused_certificate(verdict);
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
      return invalid_argument("TLS: the other side shows no certificate of this job");
    if (established) return corrupt(fmt::format("TLS: bytes were changed on their way ({})", why));
    return corrupt(fmt::format("the other side does not speak TLS 1.3 as a job does ({})", why));
  }

  // Goes on with new keys for what follows. The message that says so goes to the wire's own memory: while
  // the library has one of it to send it reads nothing, and two sides that both wait for room would wait
  // for ever.
  Status renew_keys() {
    ERR_clear_error();
    wire.keeps = true;
    int made = SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    if (made == 1) made = SSL_do_handshake(ssl.get());
    wire.keeps = false;
    records = 0;
    if (made == 1) return {};
    return error_of(made).value_or(io_error("the connection broke when its keys were to be renewed"));
  }
};

Session::Session(Certificates& certificates, int fd, Side side) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.wire.fd = fd;
  s.context = certificates.context();
  s.ssl.reset(SSL_new(s.context.get()));
  OSTRO_CHECK(s.ssl != nullptr, "out of memory for a TLS connection");
  BIO* bio = make_bio(s.wire);
  SSL_set_bio(s.ssl.get(), bio, bio);
  if (side == Side::kConnects)
    SSL_set_connect_state(s.ssl.get());
  else
    SSL_set_accept_state(s.ssl.get());
}

Session::~Session() = default;

Result<bool> Session::handshake() {
  State& s = *state_;
  s.blocked = false;
  ERR_clear_error();
  const int returned = SSL_do_handshake(s.ssl.get());
  if (returned == 1) s.established = true;
  if (returned == 1) return true;
  if (auto error = s.error_of(returned)) return *error;
  return false;
}

bool Session::established() const { return state_->established; }

Result<Got> Session::read(std::span<char> into) {
  State& s = *state_;
  Got out;
  if (s.failed) return *s.failed;
  while (out.bytes < into.size()) {
    size_t got = 0;
    ERR_clear_error();
    const int returned = SSL_read_ex(s.ssl.get(), into.data() + out.bytes, into.size() - out.bytes, &got);
    out.bytes += got;
    if (returned == 1) continue;
    if (SSL_get_error(s.ssl.get(), returned) == SSL_ERROR_ZERO_RETURN) {
      out.end = out.bytes == 0;
      break;
    }
    s.failed = s.error_of(returned);
    if (s.failed && out.bytes == 0) return *s.failed;
    break;
  }
  return out;
}

Result<size_t> Session::write(std::string_view bytes) {
  State& s = *state_;
  if (s.failed) return *s.failed;
  // A record that is encrypted and not sent yet goes first; new keys would come before it.
  const bool was_blocked = std::exchange(s.blocked, false);
  size_t taken = 0;
  while (taken < bytes.size()) {
    if (s.records >= s.records_of_key && !(was_blocked && taken == 0)) RETURN_IF_ERROR(s.renew_keys());
    const size_t size = std::min(bytes.size() - taken, kRecordBytes);
    s.wire.more = taken + size < bytes.size();
    size_t put = 0;
    ERR_clear_error();
    const int returned = SSL_write_ex(s.ssl.get(), bytes.data() + taken, size, &put);
    taken += put;
    if (returned == 1) {
      ++s.records;
      continue;
    }
    if (auto error = s.error_of(returned)) return *error;
    break;
  }
  return taken;
}

bool Session::wants_to_write() const { return state_->blocked; }
bool Session::has_unread() const { return SSL_pending(state_->ssl.get()) > 0; }

std::string Session::binding() const {
  std::string out(kBindingBytes, '\0');
  const int made =
      SSL_export_keying_material(state_->ssl.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(),
                                 kBindingLabel, std::strlen(kBindingLabel), nullptr, 0, 0);
  OSTRO_CHECK(made == 1, "the binding of a TLS connection before its handshake is over");
  return out;
}

void Session::finish() {
  State& s = *state_;
  s.wire.more = false;
  ERR_clear_error();
  if (established()) SSL_shutdown(s.ssl.get());
  ERR_clear_error();
  ::shutdown(s.wire.fd, SHUT_WR);
}

void Session::renew_keys_after(int64_t records) { state_->records_of_key = records; }

}  // namespace ostro::tls
