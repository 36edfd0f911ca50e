#include "ostro/tls/session.h"

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <random>

#include "ostro/base/test_size.h"
#include "ostro/tls/pair_for_test.h"

namespace ostro::tls {
namespace {

using std::chrono::hours;

TEST_CASE("two processes of a job talk, in both directions, until one has said all") {
  const auto one = certificates_of("secret"), other = certificates_of("secret");
  TestPair pair(*one, *other);
  const auto errors = pair.shake();
  REQUIRE(!errors[0]);
  REQUIRE(!errors[1]);
  REQUIRE(pair.connects->established());
  REQUIRE(pair.accepts->established());
  CHECK(pair.connects->binding() == pair.accepts->binding());
  CHECK(pair.connects->binding().size() == 32);
  CHECK(pair.connects->write("to the one that accepts").value() == 23);
  CHECK(pair.accepts->write("back").value() == 4);
  CHECK(read_text(*pair.accepts).value() == "to the one that accepts");
  CHECK(read_text(*pair.connects, 3).value() == "bac");
  CHECK(pair.connects->has_unread());
  CHECK(read_text(*pair.connects).value() == "k");
  CHECK(!pair.connects->has_unread());
  CHECK(read_text(*pair.connects).value().empty());
  CHECK(pair.connects->write("last").value() == 4);
  pair.connects->finish();
  std::array<char, 8> more{};
  const Got last = pair.accepts->read(more).value();  // what came together with the end
  CHECK(last.bytes == 4);
  CHECK(!last.end);
  for (int again = 0; again < 2; ++again) CHECK(pair.accepts->read(more).value().end);
  CHECK(pair.accepts->write("still").value() == 5);  // the other direction is open
  CHECK(read_text(*pair.connects).value() == "still");
}

TEST_CASE("nothing of what is sent can be read on the way, and no two connections have one binding") {
  const auto job = certificates_of("secret");
  TestPair pair(*job, *job), another(*job, *job);
  pair.shake();
  another.shake();
  CHECK(pair.connects->binding() != another.connects->binding());
  const std::string word = "a word that stands nowhere else";
  CHECK(pair.connects->write(word).value() == word.size());
  const std::string on_the_way = pair.receive(1);
  CHECK(on_the_way.size() > word.size());
  CHECK(on_the_way.find("word") == std::string::npos);
}

// Sends random amounts from both sides at once, through the small buffers of the sockets.
TEST_CASE("all bytes arrive, whatever the sizes of writes and reads, also with new keys for every record") {
  const auto job = certificates_of("secret");
  TestPair pair(*job, *job);
  pair.shake();
  std::mt19937_64 rng(test_seed());
  INFO("seed ", test_seed());
  for (Session* side : {pair.connects.get(), pair.accepts.get()}) side->renew_keys_after(1);
  std::array<std::string, 2> sent, got;
  for (std::string& text : sent) {
    text.resize(1'000'000 + rng() % 500'000);
    for (char& c : text) c = static_cast<char>(rng());
  }
  std::array<size_t, 2> at{};
  std::string buffer(300'000, '\0');
  const auto arrived = [&] { return got[0].size() == sent[0].size() && got[1].size() == sent[1].size(); };
  for (int turn = 0; turn < 100'000 && !arrived(); ++turn)
    for (size_t i = 0; i < 2; ++i) {
      Session& from = i == 0 ? *pair.connects : *pair.accepts;
      Session& to = i == 0 ? *pair.accepts : *pair.connects;
      // The rest may be offered in another size than before.
      const size_t rest = std::min<size_t>(sent[i].size() - at[i], 1 + rng() % 200'000);
      if (rest > 0) {
        const bool blocked = from.wants_to_write();
        const size_t offered = blocked ? sent[i].size() - at[i] : rest;
        at[i] += from.write(std::string_view(sent[i]).substr(at[i], offered)).value();
      }
      const auto read = to.read(std::span(buffer).first(1 + rng() % buffer.size()));
      REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : text_of(read.error())));
      got[i].append(buffer, 0, read->bytes);
    }
  CHECK(got[0] == sent[0]);
  CHECK(got[1] == sent[1]);
}

// Both sides have sent all that the sockets take, and then say that new keys follow.
TEST_CASE("new keys of both sides, when neither socket takes more, keep no side from reading") {
  const auto job = certificates_of("secret");
  TestPair pair(*job, *job);
  pair.shake();
  const std::array<Session*, 2> sides{pair.connects.get(), pair.accepts.get()};
  std::array<size_t, 2> sent{}, got{};
  for (size_t i = 0; i < 2; ++i) {
    while (!sides[i]->wants_to_write()) sent[i] += sides[i]->write("a").value();
    CHECK(sent[i] > 1);
    // There is room for the record that waits, and for no message after it.
    got[i] += read_text(*sides[1 - i], 1).value().size();
    sent[i] += sides[i]->write("a").value();
    CHECK(!sides[i]->wants_to_write());
    sides[i]->renew_keys_after(1);
    CHECK(sides[i]->write("a").value() == 0);
    CHECK(sides[i]->wants_to_write());
  }
  for (size_t i = 0; i < 2; ++i) {
    got[i] += read_text(*sides[1 - i]).value().size();
    CHECK(got[i] == sent[i]);
    CHECK(sides[i]->write("a").value() == 1);
    CHECK(!sides[i]->wants_to_write());
    CHECK(read_text(*sides[1 - i]).value() == "a");
  }
}

TEST_CASE("a certificate of another job is refused by both sides") {
  const auto job = certificates_of("secret"), other = certificates_of("another");
  TestPair pair(*job, *other);
  const auto errors = pair.shake();
  REQUIRE(errors[0]);
  CHECK(errors[0]->code() == ErrorCode::kInvalidArgument);
  CHECK(errors[0]->message().find("certificate is not of this job") != std::string::npos);
  CHECK(errors[0]->message().find("OSTRO_JOB_SECRET") != std::string::npos);
  REQUIRE(errors[1]);
  CHECK(errors[1]->code() == ErrorCode::kInvalidArgument);
  CHECK(errors[1]->message().find("does not take this process's certificate") != std::string::npos);
}

TEST_CASE("a certificate whose time is over, or has not come, is refused; one that is made again is not") {
  const Time now = std::chrono::system_clock::now();
  Time clock = now - kValidAfter - hours(1);
  const auto job = certificates_of("secret"), old = certificates_of("secret", [&] { return clock; });
  const auto refusal = [&] {
    TestPair pair(*job, *old);
    const auto errors = pair.shake();
    REQUIRE(errors[0]);
    CHECK(errors[0]->code() == ErrorCode::kInvalidArgument);
    return errors[0]->message();
  };
  CHECK(refusal().find("not valid at this time (certificate has expired)") != std::string::npos);
  clock = now + kValidBefore + hours(2);
  CHECK(refusal().find("not valid at this time (certificate is not yet valid)") != std::string::npos);
  CHECK(refusal().find("compare the clocks") != std::string::npos);
  clock = now + kValidBefore - hours(2);  // clocks may differ by almost a day
  TestPair pair(*job, *old);
  CHECK(!pair.shake()[0]);
  // A process that lives longer than its certificate.
  Time later = now - kValidAfter - hours(1);
  const auto long_lived = certificates_of("secret", [&] { return later; });
  later = now;
  TestPair renewed(*long_lived, *job);
  const auto errors = renewed.shake();
  CHECK(!errors[0]);
  CHECK(!errors[1]);
}

TEST_CASE("a job without a secret has no certificates") {
  const auto none = Certificates::of_job("");
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kInvalidArgument);
  CHECK(none.error().message().find("OSTRO_JOB_SECRET") != std::string::npos);
}

// A client of another program: any protocol up to 1.3, and any certificate or none.
std::optional<Error> foreign_client(Certificates& job, int newest, bool with_certificate) {
  TestPair pair;
  Session accepts(job, pair.fds[1], Side::kAccepts);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_set_max_proto_version(context.get(), newest);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  if (with_certificate) {  // signed by itself
    EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
    X509* own = X509_new();
    X509_set_version(own, 2);
    X509_gmtime_adj(X509_getm_notBefore(own), -3600);
    X509_gmtime_adj(X509_getm_notAfter(own), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(own), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("ostro job"), -1, -1, 0);
    X509_set_issuer_name(own, X509_get_subject_name(own));
    X509_set_pubkey(own, key);
    X509_sign(own, key, nullptr);
    CHECK(SSL_CTX_use_certificate(context.get(), own) == 1);
    CHECK(SSL_CTX_use_PrivateKey(context.get(), key) == 1);
    X509_free(own);
    EVP_PKEY_free(key);
  }
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()), SSL_free);
  SSL_set_fd(client.get(), pair.fds[0]);
  SSL_set_connect_state(client.get());
  for (int turn = 0; turn < 20; ++turn) {
    SSL_do_handshake(client.get());
    const auto done = accepts.handshake();
    if (!done.ok()) return done.error();
  }
  return std::nullopt;
}

TEST_CASE("an older TLS, no certificate and one of its own making are refused") {
  const auto job = certificates_of("secret");
  const auto older = foreign_client(*job, TLS1_2_VERSION, false);
  REQUIRE(older);
  CHECK(older->code() == ErrorCode::kCorrupt);
  CHECK(older->message().find("does not speak TLS 1.3") != std::string::npos);
  const auto none = foreign_client(*job, TLS1_3_VERSION, false);
  REQUIRE(none);
  CHECK(none->message() == "TLS: the other side shows no certificate of this job");
  const auto own = foreign_client(*job, TLS1_3_VERSION, true);
  REQUIRE(own);
  CHECK(own->code() == ErrorCode::kInvalidArgument);
  CHECK(own->message().find("certificate is not of this job") != std::string::npos);
}

TEST_CASE("garbage before and in the handshake is an error, and so is an end") {
  const auto job = certificates_of("secret");
  std::mt19937_64 rng(test_seed());
  INFO("seed ", test_seed());
  for (int round = 0; round < 100; ++round) {
    TestPair pair(*job, *job);
    std::string garbage(1 + rng() % 2000, '\0');
    for (char& c : garbage) c = static_cast<char>(rng());
    if (round % 2 == 1) {  // a good beginning, with some bytes changed or cut off
      REQUIRE(!pair.connects->handshake().value());
      garbage = pair.receive(1);
      if (round % 4 == 1) garbage.resize(1 + rng() % (garbage.size() - 1));
      if (round % 8 == 3) garbage[5] ^= 0x40;               // its type
      if (round % 8 == 7) garbage[6 + rng() % 39] ^= 0x40;  // its length, version or random
    }
    // What cannot be the beginning of a record, and a message of an unknown type, are errors by themselves.
    // Of the others more could follow: they are errors by the end of the connection.
    const bool is_alien = round % 2 == 0 && garbage.size() >= 16 && (garbage[0] & 0x80) == 0 &&
                          garbage[0] != 0x16 && garbage[1] != 3;
    const bool is_whole = is_alien || round % 8 == 3;
    pair.send(0, garbage);
    if (!is_whole) pair.close(0);
    std::optional<Error> error;
    for (int turn = 0; turn < 3 && !error; ++turn) {
      const auto done = pair.accepts->handshake();
      if (!done.ok()) error = done.error();
      if (done.ok()) REQUIRE(!*done);
    }
    REQUIRE(error);
    if (is_whole) CHECK_MESSAGE(error->code() == ErrorCode::kCorrupt, error->message());
  }
}

TEST_CASE("a byte that is changed, a record that is cut off and one that comes again are errors") {
  const auto job = certificates_of("secret");
  for (const std::string how : {"changed", "cut off", "again"}) {
    INFO(how);
    TestPair pair(*job, *job);
    pair.shake();
    CHECK(pair.connects->write("first").ok());
    std::string record = pair.receive(1);
    pair.send(0, record);
    CHECK(read_text(*pair.accepts).value() == "first");
    if (how == "again") {
      pair.send(0, record);
    } else {
      CHECK(pair.connects->write("second").ok());
      record = pair.receive(1);
      if (how == "changed") record[record.size() / 2] ^= 1;
      if (how == "cut off") record.pop_back();
      pair.send(0, record);
      if (how == "cut off") pair.close(0);
    }
    const auto read = read_text(*pair.accepts);
    REQUIRE(!read.ok());
    CHECK(read.error().code() == (how == "cut off" ? ErrorCode::kIo : ErrorCode::kCorrupt));
    CHECK(!read_text(*pair.accepts).ok());
  }
}

TEST_CASE("the bytes of a whole connection that are sent again open no other one") {
  const auto job = certificates_of("secret");
  TestPair pair(*job, *job);
  std::string said;
  for (int turn = 0; turn < 10; ++turn) {
    if (!pair.connects->established()) REQUIRE(pair.connects->handshake().ok());
    const std::string bytes = pair.receive(1);
    said += bytes;
    if (!bytes.empty()) pair.send(0, bytes);
    if (!pair.accepts->established()) REQUIRE(pair.accepts->handshake().ok());
  }
  REQUIRE(pair.accepts->established());
  REQUIRE(pair.connects->write("a word").ok());
  said += pair.receive(1);
  TestPair later;
  Session accepts(*job, later.fds[1], Side::kAccepts);
  later.send(0, said);
  std::optional<Error> error;
  for (int turn = 0; turn < 3 && !error; ++turn) {
    const auto done = accepts.handshake();
    if (!done.ok()) error = done.error();
    if (done.ok()) REQUIRE(!*done);
  }
  CHECK(error);
}

TEST_CASE("bytes that came before the end of a connection are read first, then it is said to be cut off") {
  const auto job = certificates_of("secret");
  TestPair pair(*job, *job);
  pair.shake();
  CHECK(pair.connects->write("last words").ok());
  pair.close(0);
  CHECK(read_text(*pair.accepts).value() == "last words");
  const auto read = read_text(*pair.accepts);
  REQUIRE(!read.ok());
  CHECK(read.error().message() == "the connection was cut off");
}

}  // namespace
}  // namespace ostro::tls
