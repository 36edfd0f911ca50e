#include "ostro/base/sha256.h"

#include <doctest/doctest.h>

using namespace ostro;

TEST_CASE("sha256 of the published examples (FIPS 180-2, appendix B)") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(sha256(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 does not depend on how the input is cut") {
  Sha256 hash;
  for (const char c : std::string("abc")) hash.update(std::string_view(&c, 1));
  CHECK(to_hex(hash.finish()) == sha256_hex("abc"));
}

TEST_CASE("codes are the same only when every byte is") {
  CHECK(same_code("", ""));
  CHECK(same_code("abc", "abc"));
  CHECK(!same_code("abc", "abd"));
  CHECK(!same_code("bbc", "abc"));
  CHECK(!same_code("ab", "abc"));
}

TEST_CASE("every nonce is another") { CHECK(new_nonce() != new_nonce()); }

TEST_CASE("hmac_sha256 of the published examples (RFC 4231)") {
  CHECK(to_hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(to_hex(hmac_sha256({}, {})) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}
