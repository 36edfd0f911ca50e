// SshMachines: the machines of a command that reaches them by ssh, and the options that say how.
#pragma once

#include <string>
#include <vector>

#include "ostro/cluster/ssh/hosts.h"
#include "ostro/shell/words/args.h"

namespace ostro::cli {

struct SshMachines {
  std::string hosts;            // the file with a machine in each line
  std::string ssh = "ssh";      // the program and its words
  std::string program, folder;  // ostro on the machines, and where it runs; empty: as here
};

// Declares --ssh, --program and --folder; `machines` must outlive the parsing.
void take_ssh_options(Args& args, SshMachines& machines);

// Reads the file with the machines, which has names of devices that there may be. Errors: those of reading
// and of cluster::parse_hosts; kInvalidArgument, with the machine, for a word that names no device.
Result<std::vector<cluster::SshHost>> read_hosts(io::FileSystem& fs, const std::string& file);

// The words that begin a command on another machine: those of --ssh, with what makes a lost machine known and
// asks no questions. Behind them come "--", the machine's name and the command.
std::vector<std::string> ssh_words(const std::string& given);

}  // namespace ostro::cli
