#include "ostro/data/data_set.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/data/sequence_reader.h"

namespace ostro::data {
namespace {

template <typename T>
Result<T> named(const Component& c, Result<T> result) {
  if (result.ok() || c.name.empty()) return result;
  return result.error().with_context(c.key);
}

}  // namespace

Result<std::shared_ptr<const DataSet>> DataSet::open(io::FileSystem& fs, const DataOptions& options,
                                                     const tokenizer::Tokenizer& tokenizer) {
  std::vector<Part> parts;
  for (Component& c : components_of(options)) {
    ASSIGN_OR_RETURN(auto store, named(c, TokenStore::open(fs, options, c, tokenizer)));
    parts.push_back({std::move(c), std::move(store)});
  }
  return std::shared_ptr<const DataSet>(new DataSet(std::move(parts)));
}

std::shared_ptr<const DataSet> DataSet::of(std::shared_ptr<const TokenStore> store) {
  std::vector<Part> parts;
  parts.push_back({components_of(DataOptions{})[0], std::move(store)});
  return std::shared_ptr<const DataSet>(new DataSet(std::move(parts)));
}

std::string DataSet::hash() const {
  if (parts_[0].component.name.empty()) return parts_[0].store->ledger().hash();
  nlohmann::json hashes;
  for (const Part& part : parts_) hashes[part.component.name] = part.store->ledger().hash();
  return sha256_hex(hashes.dump());
}

Result<std::shared_ptr<const DataSet>> build_data_set(io::FileSystem& fs, const DataOptions& options,
                                                      const tokenizer::Tokenizer& tokenizer,
                                                      const BuildSettings& settings) {
  for (const Component& c : components_of(options))
    RETURN_IF_ERROR(named(c, build_store(fs, options, c, tokenizer, settings)));
  return DataSet::open(fs, options, tokenizer);
}

bool has_segments(const DataOptions& options) {
  if (options.block_cross_document_attention) return true;
  for (const Component& c : components_of(options))
    if (is_packed(c.format)) return true;
  return false;
}

Result<std::shared_ptr<const SequenceReader>> open_sequences(const DataSet::Part& part, Split split,
                                                             const DataOptions& options, int64_t seq_len) {
  if (is_packed(part.component.format))
    return unsupported(fmt::format(
        "{}.format: {} rows are built and shown, but not yet packed into sequences", part.component.key,
        std::visit([](const auto& f) { return f.kType; }, part.component.format)));
  return std::shared_ptr<const SequenceReader>(
      std::make_shared<StreamSequences>(part.store, split, seq_len, options.block_cross_document_attention));
}

}  // namespace ostro::data
