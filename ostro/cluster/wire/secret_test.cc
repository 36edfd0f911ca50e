#include "ostro/cluster/wire/secret.h"

#include <doctest/doctest.h>

namespace ostro::cluster {
namespace {

TEST_CASE("strings are equal only when every byte is") {
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("abc", "abc"));
  CHECK(!equal_in_constant_time("abc", "abd"));
  CHECK(!equal_in_constant_time("bbc", "abc"));
  CHECK(!equal_in_constant_time("ab", "abc"));
}

TEST_CASE("a proof depends on the secret, the role and both nonces") {
  const std::string a = nonce(), b = nonce();
  CHECK(a.size() == 32);
  CHECK(a != b);
  CHECK(proof("s", "member", a, b) == proof("s", "member", a, b));
  CHECK(proof("s", "member", a, b) != proof("t", "member", a, b));
  CHECK(proof("s", "member", a, b) != proof("s", "coordinator", a, b));
  CHECK(proof("s", "member", a, b) != proof("s", "member", b, a));
}

}  // namespace
}  // namespace ostro::cluster
