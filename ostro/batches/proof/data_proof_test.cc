#include "ostro/batches/proof/data_proof.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "ostro/batches/proof/make_proof.h"
#include "ostro/prepare/store/test_corpus.h"

namespace ostro::batches {
namespace {

struct ProofFixture {
  io::MemoryFileSystem fs;
  data::DataOptions options = prepare::corpus_options("corpus");
  std::shared_ptr<const DataSet> stores;

  explicit ProofFixture(const std::string& more = "") {
    prepare::write_corpus(fs, "corpus");
    if (!more.empty()) prepare::write(fs, "corpus/text/more.txt", more);
    REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
    auto opened = DataSet::open(fs, options, prepare::test_tokenizer());
    REQUIRE_MESSAGE(opened.ok(), opened.error().message());
    stores = *opened;
  }
  Loader loader() const {
    auto made = Loader::create(stores, options, 16, 6, 0);
    REQUIRE(made.ok());
    return std::move(*made);
  }
  std::string root() const { return stores->roots()->at(""); }
};

// What a reader who has the root and the step's fingerprint says of a proof's text. Empty: it holds.
std::string objection(const std::string& text, const std::string& root, const std::string& fingerprint) {
  const auto proof = parse_proof(text, "proof");
  if (!proof.ok()) return proof.error().message();
  const auto roots = roots_of_proof(*proof);
  if (!roots.ok()) return roots.error().message();
  for (const auto& [component, found] : *roots)
    if (component != "" || found != root) return "another root, or component";
  const auto batch = batch_of_proof(*proof);
  if (!batch.ok()) return batch.error().message();
  return fingerprint_of_proof(*proof->batch) == fingerprint ? "" : "another fingerprint";
}

TEST_CASE("a proof of a step gives its sequences and its fingerprint without the store") {
  const ProofFixture f;
  const Loader loader = f.loader();
  const auto batch = loader.batch(3);
  REQUIRE(batch.ok());
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 6}, {2, 3}}) {
    const auto proof = prove_batch(*f.stores, loader, 3, first, count);
    REQUIRE_MESSAGE(proof.ok(), proof.error().message());
    const std::string text = proof_text(*proof);
    const auto read = parse_proof(text, "proof");
    REQUIRE_MESSAGE(read.ok(), read.error().message());
    CHECK(proof_text(*read) == text);
    CHECK(read->batch->step == 4);
    CHECK(objection(text, f.root(), batch_fingerprint(*batch)) == "");
    const auto made = batch_of_proof(*read);
    REQUIRE(made.ok());
    for (int64_t at = first * 16; at < (first + count) * 16; ++at) {
      const auto i = static_cast<size_t>(at);
      CHECK(made->tokens[i] == batch->tokens[i]);
      CHECK(made->targets[i] == batch->targets[i]);
      CHECK(made->loss_mask[i] == batch->loss_mask[i]);
    }
  }
}

TEST_CASE("a row with a document that data.without leaves out has no proof, and others have") {
  ProofFixture f;
  const Loader whole = f.loader();
  const auto spans = whole.reader().documents(whole.place(3 * 6 + 2).sequence);
  REQUIRE(spans.ok());
  const data::RowSource& source = spans->front().source;
  f.options.without = {data::DocumentName{source.file, source.document}.text()};
  const Loader loader = f.loader();
  const auto refused = prove_batch(*f.stores, loader, 3, 0, 6);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kUnsupported);
  for (int64_t row = 0; row < 6; ++row)
    CHECK(prove_batch(*f.stores, loader, 3, row, 1).ok() ==
          !loader.withheld().touches(0, whole.place(3 * 6 + row).sequence));
  CHECK(prove_batch(*f.stores, whole, 3, 0, 6).ok());
}

TEST_CASE("any byte of a proof that is changed is found, but for what is for people alone") {
  const ProofFixture f;
  const Loader loader = f.loader();
  const std::string fingerprint = batch_fingerprint(*loader.batch(0));
  const auto proof = prove_batch(*f.stores, loader, 0, 1, 1);
  REQUIRE(proof.ok());
  const std::string text = proof_text(*proof), root = f.root();
  REQUIRE(objection(text, root, fingerprint) == "");
  int64_t found = 0, silent = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == '1' ? '2' : '1';
    if (!objection(changed, root, fingerprint).empty()) {
      ++found;
      continue;
    }
    // Where a document is from, and the number of a sequence or a step, are in no hash: of the step the chain
    // has the fingerprint.
    ++silent;
    const auto read = parse_proof(changed, "proof");
    REQUIRE(read.ok());
    auto reset = *read;
    for (size_t i = 0; i < reset.rows.size(); ++i)
      reset.rows[i].file = proof->rows[i].file, reset.rows[i].document = proof->rows[i].document;
    reset.batch->step = proof->batch->step;
    for (size_t i = 0; i < reset.batch->sequences.size(); ++i)
      reset.batch->sequences[i].sequence = proof->batch->sequences[i].sequence;
    CHECK_MESSAGE(proof_text(reset) == text, text.substr(at > 60 ? at - 60 : 0, 80));
  }
  CHECK(found > 20 * silent);
}

TEST_CASE("a proof that shows nothing, or has more than it shows, does not hold") {
  const ProofFixture f;
  const Loader loader = f.loader();
  const auto honest = prove_batch(*f.stores, loader, 0, 1, 2);
  REQUIRE(honest.ok());
  check_ok(check_sequences(*honest));
  const auto said = [&](void (*change)(DataProof&)) {
    DataProof proof = *honest;
    change(proof);
    const Status status = check_sequences(proof);
    return status.ok() ? std::string() : status.error().message();
  };
  CHECK(said([](DataProof& p) { p.batch.reset(); }).find("no batch of a step") != std::string::npos);
  CHECK(said([](DataProof& p) { p.batch->sequences.clear(); }).find("no sequences of step 1") !=
        std::string::npos);
  CHECK(said([](DataProof& p) { p.batch->sequences[0].spans.clear(); }).find("sequence 1 of the batch") !=
        std::string::npos);
  CHECK(said([](DataProof& p) { p.rows.push_back(p.rows[0]); }).find("is in no sequence") !=
        std::string::npos);
  CHECK(said([](DataProof& p) { p.rows[0].weights.resize(1); }).find("is not what its rows make") !=
        std::string::npos);
  // A batch of this length would have 24 TB.
  CHECK(said([](DataProof& p) {
          p.batch->seq_len = int64_t{1} << 20;
          p.batch->digests.resize(size_t{1} << 21);
        }).find("is not what its rows make") != std::string::npos);
  CHECK(roots_of_proof(DataProof()).error().message() == "the proof has no rows");
}

TEST_CASE("rows of another store, of another place and with other weights lead to another root") {
  const ProofFixture f, other("a text that only this store has");
  const std::vector<int64_t> rows = {2, 5};
  const auto mine = prove_rows(*f.stores, 0, data::Split::kTrain, rows);
  const auto theirs = prove_rows(*other.stores, 0, data::Split::kTrain, rows);
  REQUIRE(mine.ok());
  REQUIRE(theirs.ok());
  CHECK(roots_of_proof(*mine)->at("") == f.root());
  CHECK(roots_of_proof(*theirs)->at("") == other.root());
  CHECK(f.root() != other.root());
  DataProof mixed = *mine;
  mixed.rows[1] = theirs->rows[1];
  CHECK(roots_of_proof(mixed).error().code() == ErrorCode::kCorrupt);
  const auto first_root = [](DataProof proof) {
    proof.rows.resize(1);
    const auto roots = roots_of_proof(proof);
    return roots.ok() ? roots->at("") : std::string("none");
  };
  for (const auto& change : std::initializer_list<void (*)(ProvenRow&)>{
           [](ProvenRow& row) { row.ids[0] ^= 1; }, [](ProvenRow& row) { row.ids.pop_back(); },
           [](ProvenRow& row) { row.proof.row = 3; },
           [](ProvenRow& row) { row.proof.split = data::Split::kValidation; },
           [](ProvenRow& row) { ++row.proof.rows[1]; }, [](ProvenRow& row) { row.proof.path.pop_back(); },
           [](ProvenRow& row) { row.weights.assign(row.ids.size(), 0.5F); },
           [](ProvenRow& row) { row.weights.assign(row.ids.size() + 1, 1.0F); }}) {
    DataProof changed = *mine;
    change(changed.rows[0]);
    CHECK(first_root(changed) != f.root());
  }
  CHECK(prove_rows(*f.stores, 0, data::Split::kTrain, std::vector<int64_t>{1 << 20}).error().code() ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("the row of a document is found by file and number, in either split") {
  const ProofFixture f;
  const DataSet::Part& part = f.stores->parts()[0];
  for (const int64_t document : {1, 2, 37, 60}) {
    const auto found = row_of_document(part, "lines.jsonl", document);
    REQUIRE_MESSAGE(found.ok(), found.error().message());
    const auto source = part.store->split(found->split).source(found->row);
    REQUIRE(source.ok());
    CHECK(source->document == document);
    CHECK(source->file.ends_with("lines.jsonl"));
  }
  CHECK_FALSE(row_of_document(part, "lines.jsonl", 61).ok());
  CHECK_FALSE(row_of_document(part, "none.jsonl", 1).ok());
  CHECK_FALSE(row_of_document(part, "ines.jsonl", 1).ok());  // no whole name
}

}  // namespace
}  // namespace ostro::batches
