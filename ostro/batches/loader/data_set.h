// DataSet: all token stores of a configuration. Training and evaluation batches are made from them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ostro/batches/packing/batch.h"
#include "ostro/batches/packing/packing.h"
#include "ostro/data/options/options.h"
#include "ostro/data/store/token_store.h"
#include "ostro/prepare/store/build.h"

namespace ostro::batches {

class SequenceReader;

// Two values for every pair of a split: of its chosen answer, then of its rejected one.
using PairScores = std::vector<double>;

// The finished stores of all components, in the order of components_of(options). Immutable. The file system
// must outlive it.
class DataSet {
 public:
  struct Part {
    data::Component component;
    std::shared_ptr<const data::TokenStore> store;
    // The folder of the store's ledger; its pack indices are kept there, too. Null for a data set made by
    // of().
    io::FileSystem* fs = nullptr;
    std::string folder;
    std::array<std::shared_ptr<const PairScores>, 2> scores{};  // by Split; null: none
  };

  // Opens the stores. Errors are those of TokenStore::open, with the component's name in front.
  static Result<std::shared_ptr<const DataSet>> open(io::FileSystem& fs, const data::DataOptions& options,
                                                     const tokenizer::Tokenizer& tokenizer);
  // A data set of a single store that is already open. Its only component has no name.
  static std::shared_ptr<const DataSet> of(std::shared_ptr<const data::TokenStore> store);

  // A copy of the data set with scores for its pairs, by component. Batches made from it have them.
  std::shared_ptr<const DataSet> with_scores(
      const std::vector<std::array<std::shared_ptr<const PairScores>, 2>>& scores) const;

  // The stores of the components of `options`, in their order; `data` itself if these are all. Stores that
  // are not there are left out.
  static std::shared_ptr<const DataSet> of_components(std::shared_ptr<const DataSet> data,
                                                      const data::DataOptions& options);

  const std::vector<Part>& parts() const { return parts_; }
  // The identity of the data, as it stands in a run's genesis. For a single store without a name this is its
  // ledger hash, otherwise the SHA-256 of the canonical JSON {name: ledger hash, ...}.
  std::string hash() const;
  // Whether the stores of all these components are there; and the hash of a data set of these alone.
  bool has(const std::set<std::string>& components) const;
  std::string hash_of(const std::set<std::string>& components) const;
  // The Merkle root of each component's rows, as they stand in a run's genesis: by name, "" for a store
  // without one. A store of format 3 has no root; its rows are read, with a warning. Errors of reading.
  Result<std::map<std::string, std::string>> roots() const;
  // Checks what readers do not compare with the ledger's SHA-256 while they read: all arrays of a store
  // without digests of its chunks, and the pack indices of every store. For callers that do not trust a
  // store. Error: kCorrupt, with the file.
  Status check_contents() const;
  int64_t vocab_size() const { return parts_[0].store->ledger().preprocessing.vocab_size; }

 private:
  explicit DataSet(std::vector<Part> parts) : parts_(std::move(parts)) {}
  std::vector<Part> parts_;
};

// Makes the store of every component ready, then opens them all. A missing store is built, an unfinished one
// is continued, a finished one is checked.
Result<std::shared_ptr<const DataSet>> build_data_set(io::FileSystem& fs, const data::DataOptions& options,
                                                      const tokenizer::Tokenizer& tokenizer,
                                                      const data::BuildSettings& settings = {});

// Makes the missing pack indices of both splits of a component's finished store, so that a copy of the store
// has them, too. Does nothing when rows are not packed, or when the store is not on a local file system.
// Errors: as DataSet::open and PackIndex::open.
Status make_packs(io::FileSystem& fs, const data::DataOptions& options, const data::Component& component,
                  const tokenizer::Tokenizer& tokenizer, int64_t seq_len);

// The rule by which rows of this format are packed into sequences of `seq_len` tokens. Nothing for formats
// whose rows are joined into one stream and cut.
std::optional<PackRule> pack_rule(const data::RowFormat& format, int64_t seq_len);

// True if batches have segment ids: when attention across documents is blocked, or when some component packs
// documents side by side.
bool has_segments(const data::DataOptions& options);

// Positions of a row of a batch, for a model with sequences of `seq_len`: a pair has two of them.
int64_t row_positions(const data::DataOptions& options, int64_t seq_len);
// The shape of the batches of one split. All components have scores, or none has.
BatchShape batch_shape(const DataSet& data, data::Split split, const data::DataOptions& options,
                       int64_t seq_len);

// The sequences of one split of a component's store. Text is cut out of the stream of all tokens; rows of
// conversations and of prompt/response pairs are packed whole, side by side; a preference row is a sequence
// of its own, twice as long. Errors: as PackIndex::open.
Result<std::shared_ptr<const SequenceReader>> open_sequences(const DataSet::Part& part, data::Split split,
                                                             const data::DataOptions& options,
                                                             int64_t seq_len);

// Returns true when the texts of these stores begin with a beginning token (tokenizer/model/text_ends.h); the
// answer is kept with the model. Nothing when the tokenizer has no beginning token, or only one that also
// ends texts.
std::optional<bool> begins_texts(const DataSet& data, const data::DataOptions& options,
                                 const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::batches
