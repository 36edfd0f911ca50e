// check_cluster: whether a run can be started on some machines, before anything is started: it asks a program
// on each of them (agent.h) about builds, clocks, self-test, devices, about the folders, object stores and
// disks of a run, and about the links between them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/cluster/ssh/hosts.h"
#include "ostro/cluster/ssh/line_process.h"
#include "ostro/context/context.h"

namespace ostro::cluster_check {

// A place that an option names, "data.tokenizer".
struct NamedPath {
  std::string option, path;
};

struct CheckRequest {
  std::vector<cluster::SshHost> hosts;
  std::vector<std::string> folders;  // that all machines, and this one, must share
  std::vector<NamedPath> stores;     // folders at s3:// in which all machines, and this one, write
  std::vector<NamedPath> readable;   // that each machine reads, by its own path or from a store
  std::vector<NamedPath> disks;      // folders of its own in which each machine writes
  std::optional<std::string> ports;  // trainer.worker_ports, "": any; none: there is no configuration
  std::string relay;                 // trainer.relay; "": the coordinator passes no bytes on
  bool selftest = true;
  int64_t link_bytes = int64_t{32} << 20;  // sent over each link that is measured; 0: only connects
  // Starts the program of a host.
  std::function<Result<cluster::LineProcess>(const cluster::SshHost& host)> start;
  std::function<void(const std::string& what, double part)> on_progress = [](const std::string&, double) {};
};

struct CheckedFolder {
  std::string path;
  int64_t free = 0;       // bytes
  double write_rate = 0;  // bytes a second, written and synced
};

// A folder of an object store that can be written and read there.
struct CheckedStore {
  std::string path, server, keys;  // keys: where they come from, not what they are
};

struct CheckedHost {
  std::string name, address, processor, version, source_commit, binary_sha256, numerics;
  int64_t threads = 0, memory = 0;  // memory in bytes
  double clock_offset = 0;          // seconds that its clock is ahead of this machine's
  double clock_error = 0;           // of that, at most: half of the way there and back
  std::string floats, integers;     // hashes of the self-test
  std::vector<CheckedFolder> folders;
  std::vector<CheckedStore> stores;
  std::vector<CheckedFolder> disks;  // write_rate: not measured
  bool reached = false;
};

struct CheckedLink {
  size_t from = 0, to = 0;  // numbers of hosts
  double rate = 0;          // bytes a second over one connection; 0: not measured
};

struct ClusterReport {
  std::vector<CheckedHost> hosts;
  std::vector<CheckedLink> links;     // that can be connected
  std::vector<std::string> problems;  // a run cannot start so, or its bits are in doubt
  std::vector<std::string> notes;     // it can, and something is worse than it could be
};

// Asks all machines. All pairs are connected, in both directions; measured is each pair once, or of more than
// 16 machines each with the next one and with the first. Nothing stays on the machines, in the folders or in
// the stores.
// What is wrong is in the report. Errors: a folder of this machine that cannot be written; kBusy when
// context.stop asked to end.
Result<ClusterReport> check_cluster(const Context& context, const CheckRequest& request);

// The report for people, which ends with a verdict, and as one JSON object in a line.
std::string report_text(const ClusterReport& report);
std::string report_json(const ClusterReport& report);

}  // namespace ostro::cluster_check
