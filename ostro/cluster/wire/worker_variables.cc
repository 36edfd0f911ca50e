#include "ostro/cluster/wire/worker_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ostro::cluster {
namespace {

constexpr std::string_view kOfThisPlace[] = {"OSTRO_ADVERTISE=",
                                             "OSTRO_SLICE=",
                                             "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=",
                                             "AWS_CONTAINER_CREDENTIALS_FULL_URI=",
                                             "AWS_CONTAINER_AUTHORIZATION_TOKEN=",
                                             "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="};

}  // namespace

std::string worker_variables(const char* const* environment, const std::string& secret) {
  const std::string last = fmt::format("{}=", kSecretVariable);
  std::string out;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (std::any_of(std::begin(kOfThisPlace), std::end(kOfThisPlace),
                    [&](std::string_view name) { return entry.starts_with(name); }))
      continue;
    if ((entry.starts_with("OSTRO_") || entry.starts_with("AWS_")) && !entry.starts_with(last) &&
        entry.find('\n') == std::string_view::npos)
      out += fmt::format("{}\n", entry);
  }
  if (!secret.empty()) out += fmt::format("{}{}\n", last, secret);
  return out + "\n";
}

}  // namespace ostro::cluster
