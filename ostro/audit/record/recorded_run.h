// RecordedRun: a run directory, opened to be checked: its chain, and for each period its config and programs.
//
// Opening compares everything that needs no data: config.yaml and the amends with the chain, the programs
// with program.ir and with what the configuration means. Errors: kCorrupt where these contradict each other,
// others where something is missing or unknown (audit/verdict.h, finding_of). It only reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/audit/record/amend.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/train/programs/programs.h"

namespace ostro::audit {

// A period of the run, with the config and the programs that its steps follow from.
struct OpenedPeriod {
  Period period;
  train::TrainConfig config;
  train::CanonicalPrograms programs;
};

struct RecordedRun {
  chain::Chain chain;
  train::TrainConfig config;  // config.yaml
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::vector<OpenedPeriod> periods;
  // The parameters, which all periods have.
  std::vector<std::string> paths;
  std::vector<ir::Shape> shapes;
  // Empty when the programs are those of the configuration. With stored programs that could not be compared
  // with it: the reason.
  std::string unproven;

  // The config behind the last amend. Of options that are in no chain it has the values of config.yaml, which
  // may be from before that amend. It gives the batches of all steps and has all components.
  const train::TrainConfig& newest() const { return periods.back().config; }
  // The period of the step that is done after `step` steps.
  const OpenedPeriod& period_after(int64_t step) const;
};

// Opens the run in `directory`. `stored_programs`: when this version traces other programs from the
// configuration than the chain names, those of program.ir are used; without it that is an error.
Result<RecordedRun> open_recorded(io::FileSystem& fs, const std::string& directory,
                                  models::ModelChoices models, bool stored_programs);

// The error of a file of programs whose text could not be read: kCorrupt; kUnsupported for an op that this
// version does not have, which a later one may have written.
Error program_file_error(const std::string& path, const Error& error);

// The floating-point operations of all steps, each counted from the programs of its period
// (train::run_flops).
double recorded_flops(const RecordedRun& run);

}  // namespace ostro::audit
