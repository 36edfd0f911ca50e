#include "ostro/cluster/wire/worker_variables.h"

#include <fmt/format.h>

namespace ostro::cluster {

std::string worker_variables(const char* const* environment, const std::string& secret) {
  const std::string last = fmt::format("{}=", kSecretVariable);
  std::string out;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.starts_with("OSTRO_ADVERTISE=") || entry.starts_with("OSTRO_SLICE=")) continue;
    if ((entry.starts_with("OSTRO_") || entry.starts_with("AWS_")) && !entry.starts_with(last) &&
        entry.find('\n') == std::string_view::npos)
      out += fmt::format("{}\n", entry);
  }
  if (!secret.empty()) out += fmt::format("{}{}\n", last, secret);
  return out + "\n";
}

}  // namespace ostro::cluster
