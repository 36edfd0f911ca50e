// traced_programs: whether the programs that a run's chain names are those of its configuration.
//
// The chain has the hash of the programs (numerics.md N15), and program.ir their text. Neither says that they
// are what the configuration means. So they are traced again, with the code of this program.
#pragma once

#include <optional>
#include <string>

#include "ostro/audit/record/amend.h"
#include "ostro/chain/record.h"
#include "ostro/train/programs/programs.h"

namespace ostro::audit {

// The programs of a configuration, for a tokenizer of so many tokens. Errors: tracing refuses it.
Result<train::CanonicalPrograms> traced_programs(const train::TrainConfig& config, int64_t vocab);

// Whether the run, from `period` on, was computed by this program: the same file, or built from the same
// commit. `record` (run.json) says so; the chain does not.
bool is_of_this_program(const chain::RunRecord& record, const Period& period);

// Compares the traced programs with the period's hash. kCorrupt: this program wrote the run, so configuration
// and chain contradict each other. kUnsupported: another version did, which may trace other programs; it is
// named.
Status check_traced(const train::CanonicalPrograms& traced, const Period& period,
                    const std::optional<chain::RunRecord>& record);

// Whether stored programs can run in the place of the traced ones: all take and give the same arrays, by name
// and shape. kUnsupported names the first that does not.
Status check_same_arrays(const train::CanonicalPrograms& stored, const train::CanonicalPrograms& traced,
                         const std::string& where);

}  // namespace ostro::audit
