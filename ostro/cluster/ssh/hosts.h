// SshHost, parse_hosts: the machines of a job that is started by ssh, from a text with a line for each.
//
//   # comments and empty lines are passed over
//   node1                          one worker
//   me@node2 slots=4               four workers
//   node3 devices=cuda:0,cuda:1    a worker for each device
//   node4 slice=west               its workers have fast links to those of the same slice only
//   node5 advertise=gate:40000-40009    the others reach its workers there (dist/reach.h)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

struct SshHost {
  std::string name;                  // as ssh takes it: HOST, USER@HOST or an alias of ~/.ssh/config
  std::vector<std::string> devices;  // of its workers, one each; "": that of the configuration
  std::string slice;                 // of its workers; "": none is named
  std::string advertise;             // what the others are told of its workers; "": nothing else than usual
};

// `file` begins the errors: kInvalidArgument with the number of the line, for unknown words, numbers of slots
// outside 1 to 1024, slots that are not as many as devices, a host that stands twice, and a text without
// hosts. The names of devices are not looked at.
Result<std::vector<SshHost>> parse_hosts(std::string_view text, const std::string& file);

}  // namespace ostro::cluster
