#include "ostro/batches/loader/data_set.h"

#include <algorithm>

#include "ostro/base/check.h"
#include "ostro/batches/loader/stores_hash.h"
#include "ostro/batches/packing/pack_index_file.h"
#include "ostro/batches/packing/pack_verify.h"
#include "ostro/batches/packing/packed_sequences.h"
#include "ostro/batches/packing/pair_sequences.h"
#include "ostro/batches/packing/sequence_reader.h"
#include "ostro/data/store/store_plan.h"
#include "ostro/data/store/store_verify.h"
#include "ostro/io/files/path.h"

namespace ostro::batches {
namespace {

// Adds the component's name to an error, if its message does not begin with it.
template <typename T>
Result<T> named(const data::Component& c, Result<T> result) {
  if (result.ok() || c.name.empty() || result.error().message().starts_with(c.key + ".")) return result;
  return result.error().with_context(c.key);
}

Result<DataSet::Part> open_part(io::FileSystem& fs, const data::DataOptions& options,
                                const data::Component& c, const tokenizer::Tokenizer& tokenizer,
                                std::shared_ptr<data::ChunkCache> cache) {
  ASSIGN_OR_RETURN(auto store, named(c, data::TokenStore::open(fs, options, c, tokenizer, std::move(cache))));
  ASSIGN_OR_RETURN(const data::StoreFolder folder, data::store_folder(fs, options, c));
  return DataSet::Part{c, std::move(store), &fs, folder.ledger};
}

}  // namespace

Result<std::shared_ptr<const DataSet>> DataSet::open(io::FileSystem& fs, const data::DataOptions& options,
                                                     const tokenizer::Tokenizer& tokenizer) {
  std::vector<Part> parts;
  const auto cache = data::make_chunk_cache(options);
  for (const data::Component& c : data::components_of(options)) {
    ASSIGN_OR_RETURN(Part part, open_part(fs, options, c, tokenizer, cache));
    parts.push_back(std::move(part));
  }
  return std::shared_ptr<const DataSet>(new DataSet(std::move(parts)));
}

std::shared_ptr<const DataSet> DataSet::of(std::shared_ptr<const data::TokenStore> store) {
  std::vector<Part> parts;
  parts.push_back({data::components_of(data::DataOptions{})[0], std::move(store), nullptr, ""});
  return std::shared_ptr<const DataSet>(new DataSet(std::move(parts)));
}

std::shared_ptr<const DataSet> DataSet::with_scores(
    const std::vector<std::array<std::shared_ptr<const PairScores>, 2>>& scores) const {
  std::vector<Part> parts = parts_;
  OSTRO_CHECK(scores.size() == parts.size(), "scores of {} components of {}", scores.size(), parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].scores = scores[i];
    for (const data::Split split : data::kSplits) {
      const auto& list = scores[i][static_cast<size_t>(split)];
      const int64_t rows = parts[i].store->split(split).rows();
      OSTRO_CHECK(list != nullptr && static_cast<int64_t>(list->size()) == 2 * rows, "scores of {} pairs",
                  rows);
    }
  }
  return std::shared_ptr<const DataSet>(new DataSet(std::move(parts)));
}

std::shared_ptr<const DataSet> DataSet::of_components(std::shared_ptr<const DataSet> data,
                                                      const data::DataOptions& options) {
  const std::vector<data::Component> components = data::components_of(options);
  if (components.size() == data->parts_.size()) return data;
  std::vector<Part> parts;
  for (const data::Component& c : components)
    for (const Part& part : data->parts_)
      if (part.component.name == c.name) parts.push_back(part);
  return std::shared_ptr<const DataSet>(new DataSet(std::move(parts)));
}

std::string DataSet::hash() const {
  std::set<std::string> all;
  for (const Part& part : parts_) all.insert(part.component.name);
  return hash_of(all);
}

bool DataSet::has(const std::set<std::string>& components) const {
  return std::all_of(components.begin(), components.end(), [&](const std::string& name) {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const Part& part) { return part.component.name == name; });
  });
}

std::string DataSet::hash_of(const std::set<std::string>& components) const {
  OSTRO_CHECK(has(components), "the hash of components that are not there");
  std::map<std::string, std::string> hashes;
  for (const Part& part : parts_)
    if (part.component.name.empty() || components.contains(part.component.name))
      hashes[part.component.name] = part.store->hash();
  return stores_hash(hashes);
}

Result<std::map<std::string, std::string>> DataSet::roots() const {
  std::map<std::string, std::string> roots;
  for (const Part& part : parts_) {
    std::string& root = roots[part.component.name];
    root = part.store->ledger().root;
    if (!root.empty()) continue;
    OSTRO_CHECK(part.fs != nullptr, "the root of a store that is not in a folder");
    ASSIGN_OR_RETURN(root, data::root_of_rows(*part.fs, part.folder, *part.store));
  }
  return roots;
}

Status DataSet::check_contents() const {
  for (const Part& part : parts_) {
    if (part.fs == nullptr) continue;
    const data::VerifySettings settings{.threads = data::BuildSettings().threads_or_all(), .progress = {}};
    ASSIGN_OR_RETURN(const bool has_digests, part.store->has_digests());
    if (!has_digests) {
      ASSIGN_OR_RETURN(const data::StoreReport report, data::verify_arrays(*part.fs, part.folder, settings));
      for (const data::VerifiedArrayReport& array : report.arrays) RETURN_IF_ERROR(array.status);
    }
    if (!data::is_packed(part.component.format)) continue;
    ASSIGN_OR_RETURN(const std::vector<PackIndexReport> packs, verify_packs(*part.fs, part.folder, settings));
    for (const PackIndexReport& pack : packs)
      if (pack.state != PackIndexState::kStale) RETURN_IF_ERROR(pack.status);
  }
  return {};
}

Result<std::shared_ptr<const DataSet>> build_data_set(io::FileSystem& fs, const data::DataOptions& options,
                                                      const tokenizer::Tokenizer& tokenizer,
                                                      const data::BuildSettings& settings) {
  for (const data::Component& c : data::components_of(options))
    RETURN_IF_ERROR(named(c, prepare::build_store(fs, options, c, tokenizer, settings)));
  return DataSet::open(fs, options, tokenizer);
}

Status make_packs(io::FileSystem& fs, const data::DataOptions& options, const data::Component& component,
                  const tokenizer::Tokenizer& tokenizer, int64_t seq_len) {
  if (!data::is_packed(component.format)) return {};
  ASSIGN_OR_RETURN(const DataSet::Part part, open_part(fs, options, component, tokenizer, nullptr));
  if (!io::path_scheme(part.folder).empty()) return {};
  for (const data::Split split : data::kSplits) {
    const auto made = open_sequences(part, split, options, seq_len);
    if (!made.ok()) return made.error();
  }
  return {};
}

// Of a conversation that is too long the beginning is kept; of a prompt/response pair the end, which is the
// response.
std::optional<PackRule> pack_rule(const data::RowFormat& format, int64_t seq_len) {
  if (const auto* chat = std::get_if<data::ChatFormat>(&format))
    return PackRule{seq_len, Keep::kLeft, chat->pack};
  if (const auto* pair = std::get_if<data::SupervisedFormat>(&format))
    return PackRule{seq_len, Keep::kRight, pair->pack};
  return std::nullopt;
}

bool has_segments(const data::DataOptions& options) {
  if (options.block_cross_document_attention) return true;
  for (const data::Component& c : data::components_of(options))
    if (data::is_packed(c.format)) return true;
  return false;
}

int64_t row_positions(const data::DataOptions& options, int64_t seq_len) {
  return data::has_pairs(options) ? 2 * seq_len : seq_len;
}

BatchShape batch_shape(const DataSet& data, data::Split split, const data::DataOptions& options,
                       int64_t seq_len) {
  return {row_positions(options, seq_len), has_segments(options), data::has_pairs(options),
          data.parts()[0].scores[static_cast<size_t>(split)] != nullptr};
}

Result<std::shared_ptr<const SequenceReader>> open_sequences(const DataSet::Part& part, data::Split split,
                                                             const data::DataOptions& options,
                                                             int64_t seq_len) {
  if (const auto rule = pack_rule(part.component.format, seq_len)) {
    OSTRO_CHECK(part.fs != nullptr, "{} rows of a store without a name", part.component.key);
    ASSIGN_OR_RETURN(auto index, PackIndex::open(*part.fs, pack_folder(part.folder, split),
                                                 part.store->split(split), part.store->hash(), *rule));
    return std::shared_ptr<const SequenceReader>(
        std::make_shared<PackedSequences>(part.store, split, std::move(index)));
  }
  if (data::is_preference(part.component.format))
    return std::shared_ptr<const SequenceReader>(std::make_shared<PairSequences>(part.store, split, seq_len));
  return std::shared_ptr<const SequenceReader>(
      std::make_shared<StreamSequences>(part.store, split, seq_len, options.block_cross_document_attention));
}

std::optional<bool> begins_texts(const DataSet& data, const data::DataOptions& options,
                                 const tokenizer::Tokenizer& tokenizer) {
  if (options.enforce_bos) return options.enforce_bos;
  const bool adds = !tokenizer.spec().prefix.empty();
  if (!adds && (!tokenizer.bos_id() || tokenizer.bos_id() == tokenizer.eos_id())) return std::nullopt;
  for (const DataSet::Part& part : data.parts())
    if (data::ends_rows(part.component.format) && part.store->ledger().levanter_cache.empty())
      return !part.store->ledger().preprocessing.before.empty();
  // Conversations begin as their template says, and Levanter's rows as the tokenizer has it.
  return adds ? std::optional(true) : std::nullopt;
}

}  // namespace ostro::batches
