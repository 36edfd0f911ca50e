#include "ostro/board/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ostro/batches/order/batch_schedule.h"
#include "ostro/bundle/parts/ledger_files.h"
#include "ostro/chain/data_record.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/programs/run_flops.h"

namespace ostro::board {
namespace {

void check_start(const chain::GenesisEntry& genesis, Refusals& out) {
  const char* with = genesis.fork      ? "the state of another run (fork)"
                     : genesis.maker   ? "a published model (maker)"
                     : genesis.origin  ? "an imported model (origin)"
                     : genesis.initial ? "parameters of a checkpoint (initial)"
                                       : nullptr;
  if (with != nullptr)
    out.push_back({Rule::kStart, fmt::format("its genesis says that it began with {}, and an entry begins at "
                                             "step 0 with weights drawn from its seed",
                                             with)});
}

void check_data(const Entry& entry, const Track& track, Refusals& out) {
  if (entry.chain.genesis().format == 1) {
    out.push_back({Rule::kData, "its chain is of format 1, which has no roots of the data"});
    return;
  }
  std::vector<std::string> roots;
  const std::vector<chain::DataRecord> records = chain::data_records(entry.chain);
  for (const auto& [component, root] : records.back().roots) roots.push_back(root);
  std::sort(roots.begin(), roots.end());
  if (roots != track.data)
    out.push_back({Rule::kData, fmt::format("the roots of its data are {}, those of the track {}",
                                            fmt::join(roots, ", "), fmt::join(track.data, ", "))});
}

// A program's name and the program.
using Programs = std::vector<std::pair<std::string, const ir::Program*>>;

Programs programs_of(const audit::RecordedRun& run, const ScoreProgram& score) {
  Programs out;
  std::set<std::string> seen;  // an amend may go on with the same programs
  for (const audit::OpenedPeriod& period : run.periods) {
    if (!seen.insert(period.period.program_hash).second) continue;
    out.push_back({"init", &period.programs.init});
    out.push_back({"leaf", &period.programs.leaf});
    out.push_back({"update", &period.programs.update});
    if (period.programs.reference) out.push_back({"reference", &*period.programs.reference});
  }
  out.push_back({"score", &score.program()});
  return out;
}

// The paths of the files that have the rows of the entry's data.
std::vector<std::string> row_files(const Entry& entry) {
  std::set<std::string> names;
  for (const chain::DataRecord& record : chain::data_records(entry.chain))
    for (const auto& [component, root] : record.roots) names.insert(bundle::ledger_name(component));
  std::vector<std::string> out;
  for (const std::string& name : names)
    out.push_back(io::join_path(io::join_path(entry.folder, bundle::kLedgerFolder), name + ".rows"));
  return out;
}

}  // namespace

void check_chain_rules(const Entry& entry, const Track& track, Refusals& out) {
  const chain::GenesisEntry& genesis = entry.chain.genesis();
  if (genesis.tokenizer_hash != track.tokenizer)
    out.push_back({Rule::kTokenizer, fmt::format("its tokenizer has the hash {}, that of the track {}",
                                                 genesis.tokenizer_hash, track.tokenizer)});
  check_data(entry, track, out);
  check_start(genesis, out);
  const int64_t last = entry.chain.last_step();
  const std::vector<int64_t>& there = entry.bundle.checkpoints;  // that a folder lacks one, its audit says
  if (entry.chain.find_checkpoint(last) == nullptr || last == 0)
    out.push_back(
        {Rule::kEnd, fmt::format("its chain ends after step {} without the state that is scored", last)});
  else if (std::find(there.begin(), there.end(), last) == there.end())
    out.push_back(
        {Rule::kEnd, fmt::format("the state after step {}, its last one, is not in the bundle", last)});
}

void check_tokenizer_file(io::FileSystem& fs, const Entry& entry, const Track& track, Refusals& out) {
  const std::string path = io::join_path(entry.record, "tokenizer.json");
  const auto tokenizer = tokenizer::load_tokenizer(fs, path);
  if (!tokenizer.ok()) {
    out.push_back({Rule::kTokenizer, tokenizer.error().message()});
    return;
  }
  const std::string hash = tokenizer->hash();
  if (hash != track.tokenizer && hash != entry.chain.genesis().tokenizer_hash)
    out.push_back({Rule::kTokenizer, fmt::format("{} has the hash {}, the tokenizer of the track {}", path,
                                                 hash, track.tokenizer)});
}

Status check_evaluation_text(io::FileSystem& fs, const Entry& entry, const Evaluation& evaluation,
                             const EvaluationTokens& tokens, Refusals& out) {
  std::map<std::string, size_t> wanted;  // raw hash -> document
  for (size_t i = 0; i < tokens.row_hashes.size(); ++i) {
    const Sha256Digest& hash = tokens.row_hashes[i];
    wanted.emplace(std::string(hash.begin(), hash.end()), i);
  }
  constexpr int64_t kRowsAtATime = 1 << 16;
  for (const std::string& path : row_files(entry)) {
    ASSIGN_OR_RETURN(const auto file, fs.open(path));
    const int64_t rows = file->size() / bundle::kRowBytes;
    std::string part;
    for (int64_t first = 0; first < rows; first += kRowsAtATime) {
      const int64_t count = std::min(kRowsAtATime, rows - first);
      part.resize(static_cast<size_t>(count * bundle::kRowBytes));
      RETURN_IF_ERROR(
          file->read(first * bundle::kRowBytes, std::as_writable_bytes(std::span(part.data(), part.size()))));
      for (int64_t i = 0; i < count; ++i) {
        const auto found = wanted.find(
            part.substr(static_cast<size_t>(i * bundle::kRowBytes), std::tuple_size_v<Sha256Digest>));
        if (found == wanted.end()) continue;
        out.push_back({Rule::kEvaluationText, fmt::format("row {} of its ledger {} is {} of the evaluation",
                                                          first + i, path, evaluation.names[found->second])});
        return {};
      }
    }
  }
  return {};
}

void check_operations(Rule rule, const char* what, double flops, double budget, Refusals& out) {
  if (flops <= budget) return;  // false for what is no number
  out.push_back({rule, fmt::format("{} has {:.6g} FLOPs, and the track allows {:.6g}", what, flops, budget)});
}

double operations_of(const audit::RecordedRun& run, int64_t pairs) {
  const train::CanonicalPrograms& first = run.periods.front().programs;
  double flops = train::program_flops(first.init) + audit::recorded_flops(run);
  if (run.chain.genesis().reference && first.reference) {
    const ir::Shape& scores = first.reference->body.shape(first.reference->body.results.front());
    const int64_t at_once = scores.axes.empty() ? 1 : std::max<int64_t>(1, scores.axes.front().size);
    flops += train::program_flops(*first.reference) * static_cast<double>(pairs / at_once + 1);
  }
  return flops;
}

Result<int64_t> rows_of_data(io::FileSystem& fs, const Entry& entry) {
  int64_t rows = 0;
  for (const std::string& path : row_files(entry)) {
    ASSIGN_OR_RETURN(const auto file, fs.open(path));
    rows += file->size() / bundle::kRowBytes;
  }
  return rows;
}

void check_program_rules(const audit::RecordedRun& run, bool is_foreign, const ScoreProgram& score,
                         const Track& track, int64_t windows, int64_t rows, double& flops, Refusals& out) {
  int64_t held = 0;
  for (const auto& [name, program] : programs_of(run, score))
    if (is_foreign || program == &score.program()) held += held_bytes(*program);
  if (held > kMostConstantBytes)
    out.push_back({Rule::kConstants, fmt::format("its programs have {} bytes of constants and other numbers, "
                                                 "and may have {}",
                                                 held, kMostConstantBytes)});
  flops = operations_of(run, rows);
  check_operations(Rule::kFlops, "its training", flops, track.flops, out);
  if (!std::isfinite(flops)) flops = 0;
  check_operations(Rule::kScoreFlops, "scoring the evaluation once", score.flops(windows),
                   track.score_budget(), out);
}

void check_batch_memory(const audit::RecordedRun& run, int64_t bytes, Refusals& out) {
  constexpr double kBytes = 32;  // of a position: four numbers, as the loader and as programs have them
  for (int64_t done = 0; done < run.chain.last_step(); ++done) {
    const train::TrainConfig& config = run.period_after(done).config;
    const int64_t examples = batches::BatchSchedule(config.trainer.train_batch_size).size(done);
    const int64_t positions = config.example_positions();
    const double needed = kBytes * static_cast<double>(examples) * static_cast<double>(positions);
    if (needed <= static_cast<double>(bytes)) continue;
    out.push_back({Rule::kMemory,
                   fmt::format("the batch of step {}, {} examples of {} positions, needs {:.6g} bytes of "
                               "memory, and this check has {} (--memory)",
                               done + 1, examples, positions, needed, bytes)});
    return;
  }
}

Status check_memory(runtime::Engine& engine, const audit::RecordedRun& run, const ScoreProgram& score,
                    int64_t bytes, Refusals& out) {
  check_batch_memory(run, bytes, out);
  for (const auto& [name, program] : programs_of(run, score)) {
    ASSIGN_OR_RETURN(const runtime::ExecutableInfo info, engine.estimate(*program));
    const int64_t needed = info.arena_bytes + info.input_bytes + info.output_bytes;
    if (needed <= bytes) continue;
    out.push_back(
        {Rule::kMemory, fmt::format("its program {} needs {} bytes of memory, and this check has {} "
                                    "(--memory)",
                                    name, needed, bytes)});
    return {};
  }
  return {};
}

}  // namespace ostro::board
