#include "ostro/cluster/slurm/environment_file.h"

#include <fmt/format.h>

#include <sstream>

#include "ostro/base/net/host_port.h"
#include "ostro/cluster/slurm/private_file.h"
#include "ostro/cluster/wire/worker_variables.h"

namespace ostro::cluster {

std::string slurm_environment_text(const SlurmEnvironment& told, const char* const* environment) {
  return fmt::format("{}\n{}", host_and_port(told.address, told.port),
                     worker_variables(environment, told.secret));
}

Status write_slurm_environment(const std::string& path, const SlurmEnvironment& told,
                               const char* const* environment) {
  return write_private_file(path, slurm_environment_text(told, environment));
}

SlurmEnvironment read_slurm_environment(const std::string& path) {
  SlurmEnvironment out;
  std::istringstream in(read_private_file(path).value_or(""));
  std::string line;
  std::getline(in, line);
  if (const auto place = parse_host_port(line); place.ok()) out.address = place->host, out.port = place->port;
  const std::string name = fmt::format("{}=", kSecretVariable);
  while (std::getline(in, line))
    if (line.starts_with(name)) out.secret = line.substr(name.size());
  return out;
}

}  // namespace ostro::cluster
