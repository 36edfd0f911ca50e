// traced_programs, check_traced: check that the programs that a run's chain names are those of its
// configuration.
//
// The chain has the hash of the programs (numerics.md N15), and program.ir their text. Neither proves that
// they are what the configuration means. So they are traced again, with the code of this program.
#pragma once

#include <optional>
#include <string>

#include "ostro/audit/record/amend.h"
#include "ostro/chain/record.h"
#include "ostro/train/programs/programs.h"

namespace ostro::audit {

// Traces the programs of a configuration, for a tokenizer of `vocab` tokens. Error: tracing refuses it.
Result<train::CanonicalPrograms> traced_programs(const train::TrainConfig& config, int64_t vocab);

// Returns true when `record` (run.json) says that the run was computed by this program from `period` on: by
// the same file, or by one built from the same commit. The chain does not say it.
bool is_of_this_program(const chain::RunRecord& record, const Period& period);

// Compares the traced programs with the period's hash. Errors when they differ: kCorrupt if this program
// wrote the run, because then configuration and chain contradict each other; kUnsupported, with its name, if
// another version did, which may trace other programs.
Status check_traced(const train::CanonicalPrograms& traced, const Period& period,
                    const std::optional<chain::RunRecord>& record);

// Checks that stored programs can run in place of the traced ones: all take and return the same arrays, by
// name and shape. Error: kUnsupported, with the first program that does not.
Status check_same_arrays(const train::CanonicalPrograms& stored, const train::CanonicalPrograms& traced,
                         const std::string& where);

}  // namespace ostro::audit
