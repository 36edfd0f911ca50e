#include "ostro/cluster/wire/secret.h"

#include <doctest/doctest.h>

namespace ostro::cluster {
namespace {

TEST_CASE("a proof depends on the secret, the role and both nonces") {
  const std::string a(32, 'a'), b(32, 'b');
  CHECK(proof("s", "member", a, b) == proof("s", "member", a, b));
  CHECK(proof("s", "member", a, b) != proof("t", "member", a, b));
  CHECK(proof("s", "member", a, b) != proof("s", "coordinator", a, b));
  CHECK(proof("s", "member", a, b) != proof("s", "member", b, a));
}

}  // namespace
}  // namespace ostro::cluster
