// check_data_proof: `ostro data prove --check`.
#pragma once

#include <string>

#include "ostro/batches/proof/data_proof.h"
#include "ostro/shell/words/args.h"

namespace ostro::cli {

struct ProofToCheck {
  std::string proof;      // file
  std::string run, root;  // one of them: a run directory, or the root of a store
};
// Prints the verdict, and what was and was not shown. Returns the exit code.
int check_data_proof(const ProofToCheck& asked, const Context& context);

// "2 rows, which make 3 of 6 sequences of step 11 (leaf 1)".
std::string proof_contents(const batches::DataProof& proof);

}  // namespace ostro::cli
