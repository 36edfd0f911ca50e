// What the commands about token stores share: a configuration with its tokenizer and components.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/cli/main/args.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/options/options.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

// Of `components` the one of the name that --component gives, or with an empty name all. Errors: none has it.
Result<std::vector<data::Component>> named_components(std::vector<data::Component> components,
                                                      const std::string& name);
// The only one of these. Errors: they are several, of which --component would choose one.
Result<data::Component> only_component(const std::vector<data::Component>& components);

struct DataSession {
  train::TrainConfig config;
  tokenizer::Tokenizer tokenizer;
  std::vector<data::Component> components;  // the one that --component names, or all
  int threads = 1;                          // OSTRO_THREADS
};

// `component`: what --component says, or empty.
Result<DataSession> open_data_session(const Args& args, const std::string& component);

// Runs `work` on a session; what it says as an exit code.
template <typename Work>
int with_data_session(const Args& args, const std::string& component, const Work& work) {
  const auto session = open_data_session(args, component);
  if (!session.ok()) return report_error(session.error());
  const Status done = work(*session);
  return done.ok() ? kExitOk : report_error(done.error());
}

// A line that says where the rows of a store are; `files` counts its source files.
std::string place_text(const std::string& cache_dir, const data::StoreLedger& ledger,
                       const std::string& files);

// Lines about what was skipped and repaired, where something was.
std::string counts_text(std::span<const data::FileLedger> files);

}  // namespace ostro::cli
