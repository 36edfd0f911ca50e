// A leaf of a model with the shapes of Llama 3.1 8B: priced from a record alone, and refused where it does
// not fit.
#include <doctest/doctest.h>

#include "ostro/chain/chain_writer.h"
#include "ostro/chain/leaf_file.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/leaf_audit/leaf_audit.h"
#include "ostro/run/loop/begin.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::leaf_audit {
namespace {

constexpr int64_t kParameters = 8030261248;  // of the published model
constexpr int64_t kTokens = 1024;            // of a leaf

// A record of one step, written without the state and the step themselves.
void write_record(io::FileSystem& fs, runtime::Engine& engine, const train::TrainConfig& config) {
  const run::Environment several = {fs, engine, 2,
                                    {}, {},     {}};  // whether it fits in one process is not asked
  auto run = run::open_run(config, several, false);
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  check_ok(run::prepare(*run, several));
  check_ok(run::write_run_files(*run, fs));
  const auto genesis = run::genesis_of(*run);
  REQUIRE_MESSAGE(genesis.ok(), genesis.error().message());
  auto writer = chain::ChainWriter::create(fs, run->file(chain::kChainFile), *genesis);
  REQUIRE_MESSAGE(writer.ok(), writer.error().message());
  const auto batch = run->loader->batch(0);
  REQUIRE(batch.ok());
  std::vector<chain::LeafRecord> leaves;
  for (int64_t i = 0; i < 4; ++i) leaves.push_back({i, 11.5, std::string(64, '0')});
  check_ok(writer->append(chain::StepEntry{1, 11.5, 4 * kTokens, batches::batch_fingerprint(*batch),
                                           std::string(64, '0'), chain::leaves_root(leaves)}));
  auto kept = chain::LeafWriter::resume(fs, run->file(chain::kLeavesFile), 0);
  REQUIRE(kept.ok());
  check_ok(kept->append(1, leaves));
}

TEST_CASE("a leaf of the shapes of an 8B model has a price, and is refused where it does not fit") {
  io::MemoryFileSystem fs;
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  train::write_mixed_files(fs);
  const auto length = std::to_string(kTokens);
  write_record(fs, **engine,
               train::mixed_config({{"model.seq_len", length.c_str()},
                                    {"model.hidden_dim", "4096"},
                                    {"model.intermediate_dim", "14336"},
                                    {"model.num_layers", "32"},
                                    {"model.num_heads", "32"},
                                    {"model.num_kv_heads", "8"},
                                    {"model.vocab_size", "128256"},
                                    {"trainer.train_batch_size", "4"},
                                    {"numerics.leaf_examples", "1"},
                                    {"chain.leaf_gradients", "true"}}));
  LeafRequest request{1, 3, "", {}, true};
  const auto priced = audit_leaf(fs, **engine, "runs/run", {}, request, models::builtin_models());
  REQUIRE_MESSAGE(priced.ok(), priced.error().message());
  REQUIRE_MESSAGE(priced->findings.empty(), priced->findings.front().text);
  CHECK(priced->price.leaves == 4);
  CHECK(priced->price.replayed == 0);
  CHECK(priced->price.parameter_bytes == 4 * kParameters);
  // Gradients of all parameters, and at least the values between the layers in bf16.
  CHECK(priced->price.working_bytes > 4 * kParameters + 2 * 32 * 4096 * kTokens);
  // 6 operations for a token and a parameter but those of the embedding; attention and values that are
  // computed again come on top.
  const double products = 6.0 * static_cast<double>((kParameters - 128256ll * 4096) * kTokens);
  CHECK(priced->price.flops > products);
  CHECK(priced->price.flops < 1.5 * products);
  // Where the machine has less than that, nothing is begun.
  const int64_t need = priced->price.parameter_bytes + priced->price.working_bytes;
  if ((*engine)->memory().available().bytes >= need) return;
  request.only_price = false;
  const auto refused = audit_leaf(fs, **engine, "runs/run", {}, request, models::builtin_models());
  REQUIRE(refused.ok());
  CHECK(refused->verdict() == audit::Verdict::kCannotCheck);
  CHECK(refused->findings.front().text.find("MiB can be had") != std::string::npos);
}

}  // namespace
}  // namespace ostro::leaf_audit
