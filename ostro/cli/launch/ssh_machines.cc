#include "ostro/cli/launch/ssh_machines.h"

#include <fmt/format.h>

#include <sstream>

#include "ostro/runtime/device_name.h"

namespace ostro::cli {

void take_ssh_options(Args& args, SshMachines& machines) {
  args.option("--ssh", &machines.ssh, "WORDS", "the program, for instance 'ssh -p 2222 -i KEY'");
  args.option("--program", &machines.program, "PATH",
              "this program on the machines; without it: the same path as here");
  args.option("--folder", &machines.folder, "DIR", "where the workers run; without it: the current folder");
}

Result<std::vector<cluster::SshHost>> read_hosts(io::FileSystem& fs, const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(file));
  ASSIGN_OR_RETURN(std::vector<cluster::SshHost> hosts, cluster::parse_hosts(text, file));
  for (const cluster::SshHost& host : hosts)
    for (const std::string& device : host.devices)
      if (!device.empty())
        RETURN_IF_ERROR(runtime::parse_device(fmt::format("{}: {}", file, host.name), device));
  return hosts;
}

std::vector<std::string> ssh_words(const std::string& given) {
  std::istringstream in(given);
  std::vector<std::string> words = {"/usr/bin/env"};
  for (std::string word; in >> word;) words.push_back(word);
  for (const char* option : {"BatchMode=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3"})
    words.insert(words.end(), {"-o", option});
  words.emplace_back("-T");
  return words;
}

}  // namespace ostro::cli
