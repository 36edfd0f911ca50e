// Witness: decides whether a checkpoint is what the chain of its run says.
//
// A person who changes a tensor can make every hash inside the checkpoint's directory fit again. The chain
// lies outside of it: its checkpoint entries hold the SHA-256 of whole states, its step entries a fingerprint
// of the parameters (docs/reference/formats/checkpoint.md, "Checked against the chain"). kCorrupt says how a
// checkpoint differs.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::audit {

// Returns true for a step whose checkpoint the chain names: it is due by trainer.checkpointer.keep, or the
// last.
bool is_due(const train::TrainConfig& config, int64_t step);

// The evidence that a chain has of a state.
enum class Evidence {
  kName,         // its name, a SHA-256 of parameters and moments
  kFingerprint,  // a fingerprint of its parameters; the chain says nothing of its moments
  kNothing,      // nothing: it is the initial state
};

// The chain of a run as a witness. A value.
class Witness {
 public:
  // `path` is the chain's, for errors; `models` are the choices of model.type.
  Witness(chain::Chain chain, std::string path, models::ModelChoices models);

  const chain::Chain& chain() const { return chain_; }
  const std::string& path() const { return path_; }

  // Compares a manifest with the chain: step, chain head, name and config. After kName, tensors that have the
  // hashes of the manifest are the run's. Errors: kCorrupt says in which way the checkpoint in the directory
  // `where` is forged or of another run; kUnsupported: this program does not know its config.
  Result<Evidence> check_manifest(const checkpoint::Manifest& manifest, const std::string& where) const;
  // Compares the fingerprint of the parameters with that of the step in the chain. Error: kCorrupt.
  Status check_parameters(const checkpoint::Manifest& manifest, const std::string& where,
                          const train::ParameterBytes& bytes) const;
  // The same, with the fingerprints already computed, in the order of the parameters in the manifest.
  Status check_prints(const checkpoint::Manifest& manifest, const std::string& where,
                      const std::vector<std::array<int64_t, 2>>& prints) const;
  // Compares manifest and parameters of a checkpoint, also when the chain has its name. Reads the arrays in
  // pieces.
  Result<Evidence> check(io::FileSystem& fs, const checkpoint::Checkpoint& checkpoint) const;

  // The same two comparisons as checks for load_state; a state of which the chain has nothing is refused. The
  // result refers to this object.
  train::StateChecks checks() const;

 private:
  Status check_step(const checkpoint::Manifest& manifest, const std::string& where) const;
  Status check_config(const checkpoint::Manifest& manifest, const std::string& where) const;

  chain::Chain chain_;
  std::string path_;
  models::ModelChoices models_;
};

// The run directory in which a checkpoint's directory lies: RUN of RUN/checkpoints/step-00000020, also where
// the path is relative or leads there over a symbolic link. Nothing when no run lies above it.
// Error: kNotFound for a run without its chain.
Result<std::optional<std::string>> run_of_checkpoint(io::FileSystem& fs, const std::string& checkpoint);

}  // namespace ostro::audit
