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

}  // namespace
}  // namespace ostro::cluster
