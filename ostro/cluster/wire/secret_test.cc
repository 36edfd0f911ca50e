#include "ostro/cluster/wire/secret.h"

#include <doctest/doctest.h>

namespace ostro::cluster {
namespace {

TEST_CASE("a proof depends on the secret, the role, both nonces and the connection") {
  const std::string a(32, 'a'), b(32, 'b');
  CHECK(proof("s", "member", a, b, "") == proof("s", "member", a, b, ""));
  CHECK(proof("s", "member", a, b, "") != proof("t", "member", a, b, ""));
  CHECK(proof("s", "member", a, b, "") != proof("s", "coordinator", a, b, ""));
  CHECK(proof("s", "member", a, b, "") != proof("s", "member", b, a, ""));
  CHECK(proof("s", "member", a, b, "") != proof("s", "member", a, b, a));
}

TEST_CASE("with TLS a short secret is refused; one that is missing is told of elsewhere") {
  CHECK(check_secret("s3cret", false).ok());
  CHECK(check_secret("", true).ok());
  CHECK(check_secret(std::string(16, 'a'), true).ok());
  const Status refused = check_secret(std::string(15, 'a'), true);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message().find("OSTRO_JOB_SECRET has 15 bytes; use one of 16") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cluster
