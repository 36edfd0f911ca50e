#include "ostro/cluster/wire/secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>

#include "ostro/base/check.h"
#include "ostro/base/sha256.h"

namespace ostro::cluster {
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char differences = 0;  // volatile: the compiler must not leave the loop early
  for (size_t i = 0; i < a.size(); ++i) {
    differences = static_cast<unsigned char>(differences | static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return differences == 0;
}

std::string nonce() {
  std::array<char, 32> bytes;
  ssize_t got;
  do {
    got = getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  OSTRO_CHECK(got == static_cast<ssize_t>(bytes.size()), "the system gives no random bytes");
  return {bytes.data(), bytes.size()};
}

std::string proof(std::string_view secret, std::string_view role, std::string_view coordinator_nonce,
                  std::string_view member_nonce) {
  std::string message("ostro cluster 1 ");
  message.append(role).append(" ").append(coordinator_nonce).append(member_nonce);
  const Sha256Digest code = hmac_sha256(secret, message);
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

}  // namespace ostro::cluster
