// write_cluster_file, read_cluster_file: RUN/cluster.json, the state of a job, for people and tools
// (docs/reference/formats/cluster.md). Training does not read it.
#pragma once

#include <string>

#include "ostro/cluster/watch/job_watch.h"
#include "ostro/io/files/file_system.h"

namespace ostro::cluster {

inline constexpr const char* kClusterFile = "cluster.json";
inline constexpr const char* kJournalFile = "coordinator.journal";

// The content of the file.
std::string cluster_json(const JobState& state);
// Replaces the file atomically.
Status write_cluster_file(io::FileSystem& fs, const std::string& path, const JobState& state);
// Reads the file. Errors: kNotFound; kCorrupt names the field; a later format is kUnsupported.
Result<JobState> read_cluster_file(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::cluster
