#include "ostro/cluster/wire/secret.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/base/sha256.h"

namespace ostro::cluster {
namespace {

std::string hex(const std::string& bytes) {
  Sha256Digest digest;
  REQUIRE(bytes.size() == digest.size());
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return to_hex(digest);
}

TEST_CASE("HMAC-SHA256 has the values of RFC 4231") {
  CHECK(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(
      hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

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
