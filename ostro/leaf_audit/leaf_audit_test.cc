// Leaves of a run of two components, whose batch sizes change by step: replayed from the store and from
// proofs.
#include "ostro/leaf_audit/leaf_audit.h"

#include <doctest/doctest.h>

#include "ostro/batches/packing/row_digest.h"
#include "ostro/batches/proof/make_proof.h"
#include "ostro/chain/leaf_file.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/leaf_audit/check_proof.h"
#include "ostro/leaf_audit/leaf_proof.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"
#include "ostro/train/step/run_data.h"

namespace ostro::leaf_audit {
namespace {

// A finished run of seven steps that keeps its leaves: batches of 4, 10 and 2 sequences, leaves of 2.
struct LeafFixture {
  io::MemoryFileSystem fs;
  std::unique_ptr<runtime::Engine> engine;

  LeafFixture() {
    auto made = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
    REQUIRE(made.ok());
    engine = std::move(*made);
    train::write_mixed_files(fs);
    const auto run =
        run::Run::open(train::mixed_config({{"chain.leaf_gradients", "true"}}), {fs, *engine, 1, {}, {}, {}});
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    const auto outcome = (*run)->train({});
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
  }

  LeafAudit audit(int64_t step, int64_t leaf, const std::string& proof = "") {
    LeafRequest request{step, leaf, proof, {}, false};
    auto out = audit_leaf(fs, *engine, "runs/run", {}, request, models::builtin_models());
    REQUIRE_MESSAGE(out.ok(), out.error().message());
    return std::move(*out);
  }
  batches::DataProof prove(int64_t step, int64_t leaf) {
    auto proof = prove_step(fs, "runs/run", "", models::builtin_models(), step, leaf);
    REQUIRE_MESSAGE(proof.ok(), proof.error().message());
    return std::move(*proof);
  }
  // The audit of a leaf with this proof.
  LeafAudit with(const batches::DataProof& proof, int64_t step, int64_t leaf) {
    check_ok(io::write_file_atomically(fs, "proof.json", batches::proof_text(proof)));
    return audit(step, leaf, "proof.json");
  }
  std::string leaves() { return fs.read_file("runs/run/leaves.jsonl").value(); }
};

std::string texts(const LeafAudit& audit) {
  std::string out;
  for (const audit::Finding& finding : audit.findings) out += finding.text + "\n";
  return out;
}

TEST_CASE("a leaf is proven from the store or from its rows alone, and lies about it are found") {
  LeafFixture f;
  // From the seed, from a checkpoint, and with a step before it.
  for (const auto& [step, leaf] : {std::pair<int64_t, int64_t>{1, 1}, {5, 4}, {6, 0}}) {
    const LeafAudit audit = f.audit(step, leaf);
    CHECK_MESSAGE(audit.verdict() == audit::Verdict::kEqual, texts(audit));
    CHECK(audit.price.replayed == (step == 6 ? 1 : 0));
    CHECK(audit.replayed->gradient.has_value());
  }
  const batches::DataProof honest = f.prove(5, 4);
  const std::string leaves = f.leaves();
  check_ok(f.fs.remove_all("runs/run/leaves.jsonl"));
  CHECK(f.audit(5, 4).verdict() == audit::Verdict::kIncomplete);
  {
    const LeafAudit audit = f.with(honest, 5, 4);
    CHECK_MESSAGE(audit.verdict() == audit::Verdict::kEqual, texts(audit));
    CHECK(audit.proven_rows);
  }
  // With the right rows the leaf is another one than the path says: its number is in what is hashed.
  batches::DataProof moved = honest;
  moved.batch->leaf_path.front()[0] ^= 1;
  CHECK(f.with(moved, 5, 4).verdict() == audit::Verdict::kDiffers);
  moved = honest;
  moved.batch->leaf = 3;
  CHECK(texts(f.with(moved, 5, 4)).find("leaf 3 has sequences 8 to 9, the leaf has 6 to 7") !=
        std::string::npos);
  CHECK(f.with(moved, 5, 3).verdict() == audit::Verdict::kCannotCheck);
  moved = honest;
  moved.batch->leaves = 6;
  CHECK(texts(f.with(moved, 5, 4)).find("leaf 4 of 6, step 5 has 5 leaves") != std::string::npos);
  moved = honest;
  moved.batch->leaf_path.pop_back();
  CHECK(f.with(moved, 5, 4).verdict() == audit::Verdict::kCannotCheck);
  // Rows and sequences that are not the step's.
  moved = honest;
  moved.rows[0].ids[0] ^= 1;
  CHECK(texts(f.with(moved, 5, 4)).find("to the root ") != std::string::npos);
  moved = honest;
  moved.batch->step = 4;
  CHECK(f.with(moved, 5, 4).verdict() == audit::Verdict::kCannotCheck);
  moved = honest;
  std::swap(moved.batch->sequences[0], moved.batch->sequences[1]);
  CHECK(texts(f.with(moved, 5, 4)).find("is not what its rows make") != std::string::npos);
  // The record of a leaf is changed, first alone, then with the chain's root: the replay tells.
  auto kept = leaves;
  check_ok(io::write_file_atomically(f.fs, "runs/run/leaves.jsonl", leaves));
  const auto records = chain::read_leaves(f.fs, "runs/run/leaves.jsonl", 5);
  REQUIRE(records.ok());
  const std::string& gradient = *(*records)[4].gradient;
  kept.replace(kept.find(gradient), gradient.size(), std::string(64, '0'));
  check_ok(io::write_file_atomically(f.fs, "runs/run/leaves.jsonl", kept));
  CHECK(texts(f.audit(5, 4)).find("the leaves of step 5 have the root") != std::string::npos);
  CHECK(f.audit(1, 0).verdict() == audit::Verdict::kEqual);  // of another step
}

// What is said of a proof whose rows, roots, digests and fingerprint all hold: the first sequence of leaf 4
// of step 5 is the beginning of a row of this component and split.
struct ForgedStep {
  LeafFixture f;
  batches::DataProof honest = f.prove(5, 4);
  audit::RecordedRun run =
      *audit::open_recorded(f.fs, "runs/run", models::builtin_models(), /*stored_programs=*/false);
  train::DataAccess data = *train::open_run_data(f.fs, "runs/run", run.config, run.chain, "");

  std::string said(const std::string& component, data::Split split, int64_t seq_len = 16,
                   bool segments = false) {
    size_t index = 0;
    while (data.stores->parts()[index].component.name != component) ++index;
    const int64_t row = 0;
    batches::DataProof proof = *batches::prove_rows(*data.stores, index, split, std::span(&row, 1));
    batches::Batch one = batches::make_batch(4, 1, {.seq_len = seq_len, .segments = segments});
    for (size_t i = 0; i < static_cast<size_t>(seq_len); ++i) {
      one.tokens[i] = static_cast<int32_t>(proof.rows[0].ids[i]);
      one.targets[i] = static_cast<int32_t>(proof.rows[0].ids[i + 1]);
      one.loss_mask[i] = 1;
    }
    proof.batch = honest.batch;
    proof.batch->seq_len = seq_len;
    proof.batch->segments = segments;
    proof.batch->leaf = -1;
    proof.batch->digests[8] = batches::row_digest(one, 0);
    proof.batch->sequences = {{0, true, {{0, 0, seq_len, 0, -1}}}};
    for (chain::ChainLink& link : run.chain.links)
      if (auto* step = std::get_if<chain::StepEntry>(&link.entry); step != nullptr && step->step == 5)
        step->batch = batches::fingerprint_of_proof(*proof.batch);
    const ProofCheck check = check_proof(proof, run);
    return !check.proof.ok()    ? "proof: " + check.proof.error().message()
           : !check.record.ok() ? "record: " + check.record.error().message()
                                : "";
  }
};

TEST_CASE("steps are done on training rows of the component whose place it is, in batches as configured") {
  ForgedStep step;
  const ProofCheck holds = check_proof(step.honest, step.run);
  check_ok(holds.proof);
  check_ok(holds.record);
  const batches::ProvenSequence& first = step.honest.batch->sequences[0];
  const std::string own = step.honest.rows[static_cast<size_t>(first.spans[0].row)].component,
                    other = own == "web" ? "code" : "web";
  CHECK(step.said(own, data::Split::kTrain) == "");
  CHECK(step.said(own, data::Split::kValidation)
            .find("proof: sequence 8 of the batch of step 5: its row "
                  "validation:0 is held out") == 0);
  CHECK(step.said(other, data::Split::kTrain) ==
        "proof: sequence 8 of the batch of step 5: its row 0 is of the component \"" + other +
            "\", the place is that of \"" + own + "\"");
  CHECK(step.said(own, data::Split::kTrain, 8) ==
        "record: at step 5: the chain's batch has sequences of 8 tokens, by the configuration it has "
        "sequences of 16 (model.seq_len)");
  CHECK(step.said(own, data::Split::kTrain, 16, true) ==
        "record: at step 5: the chain's batch has segment ids, by the configuration it has none");
}

TEST_CASE("the leaves of a step are as many as its batch has") {
  LeafFixture f;
  chain::StepEntry entry;
  entry.step = 5;
  for (const size_t count : {0, 1, 4, 6}) {
    std::vector<chain::LeafRecord> records;
    for (size_t i = 0; i < count; ++i) records.push_back({static_cast<int64_t>(i), 1.0, std::nullopt});
    entry.leaves = chain::leaves_root(records);
    check_ok(io::write_file_atomically(f.fs, "runs/run/leaves.jsonl", chain::leaves_line(5, records) + "\n"));
    const auto path = path_of_leaf(f.fs, "runs/run", entry, 1, 5);
    REQUIRE(!path.ok());
    CHECK(path.error().code() == ErrorCode::kCorrupt);
    CHECK(path.error().message() ==
          fmt::format("runs/run/leaves.jsonl: step 5 has 5 leaves, but {} are recorded", count));
  }
}

TEST_CASE("a step or leaf that the run does not have is no finding") {
  LeafFixture f;
  for (const auto& [step, leaf] : {std::pair<int64_t, int64_t>{8, 0}, {0, 0}, {6, 1}, {1, 2}}) {
    const LeafRequest request{step, leaf, "", {}, false};
    const auto out = audit_leaf(f.fs, *f.engine, "runs/run", {}, request, models::builtin_models());
    REQUIRE(!out.ok());
    CHECK(out.error().code() == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("leaves and proofs of a run to which an amend added a component, whose name is the first") {
  LeafFixture f;
  train::write_algebra(f.fs);
  const batches::DataProof was = f.prove(5, 4);
  train::Settings more = {{"chain.leaf_gradients", "true"}, {"trainer.num_train_steps", "11"}};
  more.insert(more.end(), train::kAlgebra.begin(), train::kAlgebra.end());
  const auto run = run::Run::open(train::mixed_config(more), {f.fs, *f.engine, 1, {}, {}, {}}, true);
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  REQUIRE((*run)->train({}).ok());
  CHECK(batches::proof_text(f.prove(5, 4)) == batches::proof_text(was));
  for (const int64_t step : {5, 9, 11}) {
    CHECK(f.audit(step, 0).verdict() == audit::Verdict::kEqual);
    CHECK(f.with(f.prove(step, 0), step, 0).verdict() == audit::Verdict::kEqual);
  }
  // The four steps have one block of the mixture.
  bool has_algebra = false;
  for (const int64_t step : {8, 9, 10, 11})
    for (const batches::ProvenRow& row : f.prove(step, -1).rows)
      has_algebra = has_algebra || row.component == "algebra";
  CHECK(has_algebra);
}

}  // namespace
}  // namespace ostro::leaf_audit
