#include "ostro/train/step/fingerprints.h"

#include <fmt/format.h>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/leaves.h"

namespace ostro::train {
namespace {

std::string lanes(const std::array<int64_t, 2>& p) {
  return fmt::format("{:016x} {:016x}", static_cast<uint64_t>(p[0]), static_cast<uint64_t>(p[1]));
}

}  // namespace

std::string batch_fingerprint(const BatchArrays& batch, const std::vector<std::string>& names) {
  Sha256 hash;
  for (size_t i = 0; i < batch.size(); ++i) {
    hash.update(fmt::format("{} {}\n", names[i], batch[i].shape().str()));
    hash.update(batch[i].bytes());
  }
  return to_hex(hash.finish());
}

std::string measured_text(const StepResult& result) {
  return fmt::format("{} {} {}", chain::hex_float(result.measured.loss),
                     chain::hex_float(result.gradient_norm()), chain::hex_float(result.weight));
}

std::string state_fingerprint(const std::vector<ParameterPrint>& parameters, const std::string& measured) {
  Sha256 hash;
  for (const ParameterPrint& p : parameters)
    hash.update(fmt::format("{} {} {}\n", p.path, p.type, lanes(p.lanes)));
  hash.update(measured + "\n");
  return to_hex(hash.finish());
}

std::vector<double> losses_before(const chain::Chain& chain, int64_t step,
                                  const optim::CommonOptions& options) {
  std::vector<double> losses;
  if (!options.skip_bad_steps) return losses;
  for (int64_t i = std::max<int64_t>(1, step - options.skip_window + 1); i <= step; ++i)
    if (const chain::ChainLink* link = chain.find_step(i))
      losses.push_back(std::get<chain::StepEntry>(link->entry).loss);
  return losses;
}

chain::LeafRecord leaf_record(int64_t number, const LeafResult& leaf, const std::vector<std::string>& paths) {
  chain::LeafRecord record{number, leaf.loss_sum, std::nullopt};
  if (leaf.gradient_prints.empty()) return record;
  Sha256 hash;
  for (size_t i = 0; i < leaf.gradient_prints.size(); ++i)
    hash.update(fmt::format("{} {}\n", paths[i], lanes(leaf.gradient_prints[i])));
  record.gradient = to_hex(hash.finish());
  return record;
}

std::vector<chain::LeafRecord> leaf_records(const StepResult& result, const std::vector<std::string>& paths) {
  std::vector<chain::LeafRecord> out;
  for (const LeafResult& leaf : result.leaves)
    out.push_back(leaf_record(static_cast<int64_t>(out.size()), leaf, paths));
  return out;
}

chain::StepEntry step_entry(int64_t step, const StepResult& result, const std::string& batch,
                            const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes) {
  chain::StepEntry entry;
  entry.step = step;
  entry.loss = result.measured.loss;
  entry.tokens = static_cast<int64_t>(result.weight);
  entry.batch = batch;
  std::vector<ParameterPrint> parameters;
  for (size_t i = 0; i < paths.size(); ++i)
    parameters.push_back({paths[i], shapes[i].str(), result.prints[i]});
  entry.state = state_fingerprint(parameters, measured_text(result));
  entry.leaves = chain::leaves_root(leaf_records(result, paths));
  return entry;
}

}  // namespace ostro::train
