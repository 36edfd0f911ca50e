// worker_words, check_workers, check_worker_count: split a launcher's command line into its own options and
// the words for its workers, and check the numbers of workers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

// The most workers of one run.
inline constexpr int64_t kMostWorkers = 1024;

// Returns the words of a launcher's command line `typed` that its workers get, too: all but the verb, which
// comes first, the options `own` with their values, and `flags`, which have none or one after '='.
std::vector<std::string> worker_words(const std::vector<std::string>& typed, const std::set<std::string>& own,
                                      const std::set<std::string>& flags = {});

// Returns the words with `file` in place of the value of --config; unchanged when they have no --config.
std::vector<std::string> with_config(std::vector<std::string> words, const std::string& file);

// The configuration as the file for workers has it: launch.yaml in the run's directory, or elsewhere.
inline constexpr const char* kLaunchFile = "launch.yaml";
std::string kept_config_text(train::TrainConfig config);

// Returns the words with the file in the run's directory (launch.yaml) that with_kept_config writes.
std::vector<std::string> naming_kept_config(const train::TrainConfig& config,
                                            const std::vector<std::string>& words);

// Writes the configuration into the run's directory, which may be in an object store, and returns
// naming_kept_config. Workers that start later
// then have the configuration of this moment, even if the given file is edited meanwhile, and other nodes
// need not have the files that it includes. Errors: those of writing.
Result<std::vector<std::string>> with_kept_config(const train::TrainConfig& config,
                                                  const std::vector<std::string>& words);

// The folders that all workers must share: those of the run and of its stores, absolute; not those behind a
// scheme.
std::vector<std::string> shared_folders(const train::TrainConfig& config);

// Checks that one run can have so many workers, and that they can train with the mesh of `config`. Errors:
// kInvalidArgument; they name `of`, which gives the number: "hosts.txt", "--nodes 4:16".
Status check_worker_count(int64_t workers, const std::string& of, const train::TrainConfig& config);

// Checks that 1 <= min_workers <= max_workers <= kMostWorkers, and that max_workers workers can train with
// the mesh of `config`. Errors: kInvalidArgument, with a number that works.
Status check_workers(int64_t min_workers, int64_t max_workers, const train::TrainConfig& config);

}  // namespace ostro::cli
