#include "ostro/cluster/wire/secret.h"

#include "ostro/base/sha256.h"

namespace ostro::cluster {

std::string proof(std::string_view secret, std::string_view role, std::string_view coordinator_nonce,
                  std::string_view member_nonce, std::string_view binding) {
  std::string message("ostro cluster 1 ");
  message.append(role).append(" ").append(coordinator_nonce).append(member_nonce).append(binding);
  const Sha256Digest code = hmac_sha256(secret, message);
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

}  // namespace ostro::cluster
