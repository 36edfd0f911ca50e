// Leaves of a run of two components, whose batch sizes change by step: replayed from the store and from
// proofs.
#include "ostro/leaf_audit/leaf_audit.h"

#include <doctest/doctest.h>

#include "ostro/chain/leaf_file.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/leaf_audit/leaf_proof.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

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
  CHECK(f.with(moved, 5, 4).verdict() == audit::Verdict::kIncomplete);
  CHECK(f.with(moved, 5, 3).verdict() == audit::Verdict::kCannotCheck);  // these rows are of another leaf
  moved = honest;
  moved.batch->leaves = 6;
  CHECK(f.with(moved, 5, 4).verdict() == audit::Verdict::kDiffers);
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

TEST_CASE("a step or leaf that the run does not have is no finding") {
  LeafFixture f;
  for (const auto& [step, leaf] : {std::pair<int64_t, int64_t>{8, 0}, {0, 0}, {6, 1}, {1, 2}}) {
    const LeafRequest request{step, leaf, "", {}, false};
    const auto out = audit_leaf(f.fs, *f.engine, "runs/run", {}, request, models::builtin_models());
    REQUIRE(!out.ok());
    CHECK(out.error().code() == ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace ostro::leaf_audit
