#include "ostro/cluster/wire/secret.h"

#include <fmt/format.h>

#include "ostro/base/sha256.h"

namespace ostro::cluster {
namespace {

constexpr size_t kFewestBytes = 16;

}  // namespace

std::string proof(std::string_view secret, std::string_view role, std::string_view coordinator_nonce,
                  std::string_view member_nonce, std::string_view binding) {
  std::string message("ostro cluster 1 ");
  message.append(role).append(" ").append(coordinator_nonce).append(member_nonce).append(binding);
  const Sha256Digest code = hmac_sha256(secret, message);
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

Status check_secret(std::string_view secret, bool tls) {
  if (!tls || secret.empty() || secret.size() >= kFewestBytes) return {};
  return invalid_argument(
      fmt::format("TLS (trainer.tls: job) needs a secret that is hard to guess, and OSTRO_JOB_SECRET has {} "
                  "bytes; use one of {} at least, such as that of: openssl rand -hex 32",
                  secret.size(), kFewestBytes));
}

}  // namespace ostro::cluster
