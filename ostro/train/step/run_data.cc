#include "ostro/train/step/run_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/chain/record.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/step/data_difference.h"

namespace ostro::train {
namespace {

// Resolves a path of the config: first relative to the directory where the run was started, then relative to
// the current one.
std::vector<std::string> places(const std::string& started_in, const std::string& path) {
  std::vector<std::string> out{io::join_path(started_in, path)};
  if (out[0] != path) out.push_back(path);
  return out;
}

// The first place that `open` accepts. The error lists what is wrong with each place.
template <typename Open>
auto first_of(const std::string& what, const std::vector<std::string>& places, const char* advice,
              const Open& open) -> decltype(open(places[0])) {
  std::vector<std::string> reasons;
  for (const std::string& place : places) {
    auto found = open(place);
    if (found.ok()) return found;
    const std::string& reason = found.error().message();
    reasons.push_back(reason.find(place) == std::string::npos ? fmt::format("{}: {}", place, reason)
                                                              : reason);
  }
  return invalid_argument(fmt::format("{}; looked at: {}; {}", what, fmt::join(reasons, "; "), advice));
}

// Where the run was last started. Without a readable record, only the current directory can be tried.
std::string started_in(io::FileSystem& fs, const std::string& directory) {
  const Result<chain::RunRecord> record =
      chain::read_record(fs, io::join_path(directory, chain::kRecordFile));
  return record.ok() && !record->sessions.empty() ? record->sessions.back().directory : "";
}

}  // namespace

Result<std::shared_ptr<const tokenizer::Tokenizer>> open_run_tokenizer(io::FileSystem& fs,
                                                                       const std::string& directory,
                                                                       const TrainConfig& config,
                                                                       const chain::GenesisEntry& genesis) {
  std::vector<std::string> tokenizers = places(started_in(fs, directory), config.data.tokenizer_path());
  tokenizers.insert(tokenizers.begin(), io::join_path(directory, "tokenizer.json"));
  using TokenizerResult = Result<std::shared_ptr<const tokenizer::Tokenizer>>;
  return first_of(fmt::format("the tokenizer of {} is not there", directory), tokenizers,
                  "put it back into the run directory", [&](const std::string& path) -> TokenizerResult {
                    ASSIGN_OR_RETURN(tokenizer::Tokenizer t, tokenizer::load_tokenizer(fs, path));
                    if (const std::string hash = t.hash(); hash != genesis.tokenizer_hash)
                      return invalid_argument(fmt::format("it is another tokenizer: hash {}, the run's is {}",
                                                          hash, genesis.tokenizer_hash));
                    return std::shared_ptr<const tokenizer::Tokenizer>(
                        std::make_shared<tokenizer::Tokenizer>(std::move(t)));
                  });
}

Status check_data_of(const chain::Chain& chain, const batches::DataSet& stores) {
  bool has_all = false;
  for (const chain::DataRecord& record : chain::data_records(chain)) {
    if (!stores.has(record.components)) continue;
    has_all = has_all || record.components.size() == stores.parts().size();
    if (const std::string hash = stores.hash_of(record.components); hash != record.hash)
      return invalid_argument(
          fmt::format("it holds another data set: hash {}, the run's is {}", hash, record.hash));
  }
  if (has_all) return {};
  return invalid_argument(fmt::format("it holds other components than the run had: hash {}, the run's is {}",
                                      stores.hash(), chain::data_records(chain).back().hash));
}

Status check_same_data(io::FileSystem& fs, const std::string& directory,
                       const std::set<std::string>& components, const std::string& hash,
                       const batches::DataSet& stores) {
  if (!stores.has(components)) return {};
  const std::string here = stores.hash_of(components);
  if (here == hash) return {};
  return invalid_argument(fmt::format("another data set: hash {} there, {} here{}", hash, here,
                                      data_difference(fs, directory, stores)));
}

Result<TrainConfig> config_of_added_data(io::FileSystem& fs, const std::string& directory,
                                         const std::optional<chain::GenesisEntry>& genesis,
                                         const TrainConfig& given) {
  TrainConfig config = given;
  if (given.data.tokenizer || !genesis ||
      chain::component_names(canonical_text(given)) == chain::component_names(genesis->config))
    return config;
  const std::string own = io::join_path(directory, "tokenizer.json");
  ASSIGN_OR_RETURN(const bool there, fs.exists(own));
  if (!there) return config;
  config.data.tokenizer = own;
  config.data.vocab_size.reset();
  return config;
}

Result<DataAccess> open_run_data(io::FileSystem& fs, const std::string& directory, const TrainConfig& config,
                                 const chain::Chain& chain, const std::string& cache) {
  const chain::GenesisEntry& genesis = chain.genesis();
  const std::string start = started_in(fs, directory);
  DataAccess out;
  out.tokenizer_hash = genesis.tokenizer_hash;
  ASSIGN_OR_RETURN(out.tokenizer, open_run_tokenizer(fs, directory, config, genesis));

  const std::vector<std::string> caches =
      cache.empty() ? places(start, config.data.cache_dir) : std::vector<std::string>{cache};
  using StoreResult = Result<std::shared_ptr<const batches::DataSet>>;
  ASSIGN_OR_RETURN(
      out.stores,
      first_of(fmt::format("the token store of {} is not there", directory), caches,
               "name its folder with --cache", [&](const std::string& path) -> StoreResult {
                 data::DataOptions options = config.data;
                 options.cache_dir = path;
                 // cache_dir options of single components are relative to the start directory,
                 // too.
                 if (path == io::join_path(start, config.data.cache_dir))
                   for (auto& [name, component] : options.components)
                     if (component.cache_dir)
                       component.cache_dir = io::join_path(start, *component.cache_dir);
                 if (!cache.empty())
                   for (auto& [name, component] : options.components) {
                     ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(path, name)));
                     if (there) component.cache_dir.reset();
                   }
                 ASSIGN_OR_RETURN(auto stores, batches::DataSet::open(fs, options, *out.tokenizer));
                 if (const Status same = check_data_of(chain, *stores); !same.ok())
                   return invalid_argument(same.error().message() + data_difference(fs, directory, *stores));
                 return stores;
               }));
  out.data_hash = out.stores->hash();
  return out;
}

}  // namespace ostro::train
