// All token stores of a configuration: what its batches are made of.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/build/build.h"
#include "ostro/data/options/options.h"
#include "ostro/data/packing/packing.h"
#include "ostro/data/store/token_store.h"

namespace ostro::data {

class SequenceReader;

// The finished stores of all components, in the order of components_of(options). Immutable; refers to the
// file system.
class DataSet {
 public:
  struct Part {
    Component component;
    std::shared_ptr<const TokenStore> store;
    // Where the ledger is, and pack indices are or are made; null for a store without a name.
    io::FileSystem* fs = nullptr;
    std::string folder;
  };

  // Opens the stores; errors as TokenStore::open, with the component's name.
  static Result<std::shared_ptr<const DataSet>> open(io::FileSystem& fs, const DataOptions& options,
                                                     const tokenizer::Tokenizer& tokenizer);
  // One store that is open already, without a name.
  static std::shared_ptr<const DataSet> of(std::shared_ptr<const TokenStore> store);

  const std::vector<Part>& parts() const { return parts_; }
  // The identity of the data in a run's genesis: of one store without a name its ledger hash, else the
  // SHA-256 of the canonical JSON {name: ledger hash, ...}.
  std::string hash() const;
  int64_t vocab_size() const { return parts_[0].store->ledger().preprocessing.vocab_size; }

 private:
  explicit DataSet(std::vector<Part> parts) : parts_(std::move(parts)) {}
  std::vector<Part> parts_;
};

// Builds, goes on with or checks the store of every component; then opens them.
Result<std::shared_ptr<const DataSet>> build_data_set(io::FileSystem& fs, const DataOptions& options,
                                                      const tokenizer::Tokenizer& tokenizer,
                                                      const BuildSettings& settings = {});

// Makes the pack indices of both splits of a component's finished store that lack them, so that a copy of the
// store has them, too; none where rows are not packed, or where nothing can be written. Errors: as
// DataSet::open and PackIndex::open.
Status make_packs(io::FileSystem& fs, const DataOptions& options, const Component& component,
                  const tokenizer::Tokenizer& tokenizer, int64_t seq_len);

// How rows of a format share sequences of `seq_len` tokens; nothing for those that become one stream.
std::optional<PackRule> pack_rule(const RowFormat& format, int64_t seq_len);

// Whether batches have segment ids: documents are kept apart, or some component packs documents side by side.
bool has_segments(const DataOptions& options);

// The sequences of a split of a component's store: cut out of the stream of its tokens, or, for conversations
// and pairs, whole rows packed side by side. Errors: as PackIndex::open.
Result<std::shared_ptr<const SequenceReader>> open_sequences(const DataSet::Part& part, Split split,
                                                             const DataOptions& options, int64_t seq_len);

}  // namespace ostro::data
