#include "ostro/train/step/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ostro/base/sha256.h"
#include "ostro/batches/packing/sequence_reader.h"
#include "ostro/chain/chain.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/path.h"
#include "ostro/train/step/batches.h"

namespace ostro::train {
namespace {

using batches::PairScores;
using data::Split;

std::string split_label(const batches::DataSet::Part& part, Split split) {
  return part.component.name + "/" + data::split_name(split);
}

std::string reference_hash(const batches::DataSet& stores, const Reference& reference) {
  Sha256 hash;
  for (size_t i = 0; i < stores.parts().size(); ++i)
    for (const Split split : data::kSplits) {
      const PairScores& scores = *reference.scores[i][static_cast<size_t>(split)];
      hash.update(fmt::format("{} {}\n", split_label(stores.parts()[i], split), scores.size() / 2));
      hash.update(std::as_bytes(std::span(scores)));
    }
  return to_hex(hash.finish());
}

// Of one split.
Result<PairScores> scores_of(runtime::Executable& program, int64_t rows,
                             const std::vector<runtime::Buffer>& parameters, const TrainConfig& config,
                             const batches::DataSet& stores, size_t component, Split split) {
  const int64_t seq_len = config.model_options().seq_len();
  ASSIGN_OR_RETURN(const auto reader,
                   batches::open_sequences(stores.parts()[component], split, config.data, seq_len));
  batches::BatchShape shape = batches::batch_shape(stores, split, config.data, seq_len);
  shape.reference = false;
  const int64_t pairs = reader->sequences(false);
  PairScores out;
  out.reserve(static_cast<size_t>(2 * pairs));
  for (int64_t first = 0; first < pairs; first += rows) {
    batches::Batch batch = batches::make_batch(0, rows, shape);
    const int64_t count = std::min(rows, pairs - first);
    for (int64_t row = 0; row < count; ++row) RETURN_IF_ERROR(reader->read(first + row, batch, row));
    std::vector<runtime::Buffer> inputs = parameters;
    for (runtime::Buffer& b : to_arrays(batch)) inputs.push_back(std::move(b));
    ASSIGN_OR_RETURN(const std::vector<runtime::Buffer> results, program.run(std::move(inputs)));
    ASSIGN_OR_RETURN(const runtime::Buffer made, results[0].to_host());
    const auto values = made.as<double>();
    out.insert(out.end(), values.begin(), values.begin() + 2 * count);
  }
  return out;
}

}  // namespace

Result<Reference> compute_reference(const ir::Program& program, runtime::Engine& engine,
                                    const std::vector<runtime::Buffer>& parameters, const TrainConfig& config,
                                    const batches::DataSet& stores) {
  ASSIGN_OR_RETURN(const auto compiled, engine.compile(program));
  ASSIGN_OR_RETURN(const auto at_engine, runtime::all_to(parameters, engine.memory()));
  const int64_t rows = program.body.shape(program.body.results[0]).axes[0].size;
  Reference out;
  out.scores.resize(stores.parts().size());
  for (size_t i = 0; i < stores.parts().size(); ++i)
    for (const Split split : data::kSplits) {
      ASSIGN_OR_RETURN(PairScores scores, scores_of(*compiled, rows, at_engine, config, stores, i, split));
      out.scores[i][static_cast<size_t>(split)] = std::make_shared<const PairScores>(std::move(scores));
    }
  out.hash = reference_hash(stores, out);
  return out;
}

Status write_reference(io::FileSystem& fs, const std::string& run_directory, const batches::DataSet& stores,
                       const Reference& reference) {
  std::vector<io::SafetensorsEntry> entries;
  for (size_t i = 0; i < stores.parts().size(); ++i)
    for (const Split split : data::kSplits) {
      const PairScores& scores = *reference.scores[i][static_cast<size_t>(split)];
      entries.push_back({split_label(stores.parts()[i], split),
                         "F64",
                         {static_cast<int64_t>(scores.size() / 2), 2},
                         std::as_bytes(std::span(scores))});
    }
  return io::write_safetensors(fs, io::join_path(run_directory, kReferenceFile), entries,
                               {{"sha256", reference.hash}});
}

Result<Reference> read_reference(io::FileSystem& fs, const std::string& run_directory,
                                 const batches::DataSet& stores, const std::string& hash) {
  const std::string path = io::join_path(run_directory, kReferenceFile);
  ASSIGN_OR_RETURN(const io::SafetensorsReader file, io::SafetensorsReader::open(fs, path));
  Reference out;
  out.scores.resize(stores.parts().size());
  for (size_t i = 0; i < stores.parts().size(); ++i)
    for (const Split split : data::kSplits) {
      const std::string name = split_label(stores.parts()[i], split);
      const int64_t pairs = stores.parts()[i].store->split(split).rows();
      const io::SafetensorsInfo* info = file.find(name);
      if (info == nullptr || info->dtype != "F64" || info->shape != io::Extents{pairs, 2})
        return corrupt(fmt::format("{}: it should have {} of {} pairs, and has {}", path, name, pairs,
                                   info == nullptr
                                       ? "nothing of that name"
                                       : fmt::format("{} {}", info->dtype, fmt::join(info->shape, " x "))));
      PairScores scores(static_cast<size_t>(2 * pairs));
      RETURN_IF_ERROR(file.read(name, std::as_writable_bytes(std::span(scores))));
      out.scores[i][static_cast<size_t>(split)] = std::make_shared<const PairScores>(std::move(scores));
    }
  out.hash = reference_hash(stores, out);
  if (out.hash != hash)
    return corrupt(fmt::format("{}: the hash of its values is {}, but the run began with {} ({})", path,
                               out.hash, hash, chain::kChainFile));
  return out;
}

Result<std::shared_ptr<const batches::DataSet>> with_reference_of(
    io::FileSystem& fs, const std::string& run_directory, std::shared_ptr<const batches::DataSet> stores) {
  ASSIGN_OR_RETURN(const chain::Chain beginning,
                   chain::read_chain_until(fs, io::join_path(run_directory, chain::kChainFile), 0));
  const chain::GenesisEntry& genesis = beginning.genesis();
  if (!genesis.reference) return stores;
  if (genesis.data_hash != stores->hash())
    return invalid_argument(
        fmt::format("{} compares with what its first weights give to its own pairs, data set {}; these are "
                    "others, data set {}",
                    run_directory, genesis.data_hash, stores->hash()));
  ASSIGN_OR_RETURN(const Reference reference, read_reference(fs, run_directory, *stores, *genesis.reference));
  return stores->with_scores(reference.scores);
}

}  // namespace ostro::train
