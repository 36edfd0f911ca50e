#include "ostro/cli/data/data_session.h"

#include <fmt/format.h>

#include "ostro/base/machine.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/data/store/store_stats.h"
#include "ostro/data/tokenizer/trained_tokenizer.h"
#include "ostro/io/s3/routing_file_system.h"

namespace ostro::cli {

using data::Component;

namespace {

std::string names_of(const std::vector<Component>& components) {
  std::vector<std::string> names;
  for (const Component& c : components) names.push_back(c.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::vector<Component>> named_components(std::vector<Component> components, const std::string& name) {
  if (name.empty()) return components;
  const std::string names = names_of(components);
  std::erase_if(components, [&](const Component& c) { return c.name != name; });
  if (!components.empty()) return components;
  return invalid_argument(
      fmt::format("--component {}: data.components names {}", name, names.empty() ? "none" : names));
}

Result<Component> only_component(const std::vector<Component>& components) {
  if (components.size() == 1) return components[0];
  return invalid_argument(
      fmt::format("--component: needed, since data.components names {}", names_of(components)));
}

Result<DataSession> open_data_session(const Args& args, const std::string& component,
                                      MissingTokenizer missing) {
  ASSIGN_OR_RETURN(train::TrainConfig config, args.load_config());
  ASSIGN_OR_RETURN(const int threads, default_threads());
  io::FileSystem& fs = io::default_file_system();
  BuildProgressLine line;
  ASSIGN_OR_RETURN(const data::BuildSettings settings, build_settings(line));
  ASSIGN_OR_RETURN(tokenizer::Tokenizer tokenizer, missing == MissingTokenizer::kIsTrained
                                                       ? data::make_tokenizer(fs, config.data, settings)
                                                       : data::open_tokenizer(fs, config.data));
  ASSIGN_OR_RETURN(std::vector<Component> components,
                   named_components(data::components_of(config.data), component));
  return DataSession{std::move(config), std::move(tokenizer), std::move(components), threads};
}

std::string place_text(const std::string& cache_dir, const data::StoreLedger& ledger,
                       const std::string& files) {
  const size_t parts = ledger.parts.size();
  if (ledger.levanter_cache.empty())
    return fmt::format("{}: {}{}\n", cache_dir, files,
                       parts == 0 ? "" : fmt::format(", the rows in {} stores, used in place", parts));
  const std::string& name = ledger.levanter_tokenizer;
  return fmt::format("{}: a Levanter cache{}{}, used in place\n", ledger.levanter_cache,
                     parts == 0 ? "" : fmt::format(" of {} shards", parts),
                     name.empty() ? "" : fmt::format(" with the ids of {}", name));
}

std::string counts_text(std::span<const data::FileLedger> files) {
  const data::FileCounts counts = data::file_counts(files);
  std::string out;
  if (counts.empty > 0) out += fmt::format("skipped     {} empty documents\n", counts.empty);
  if (counts.no_loss > 0)
    out += fmt::format("skipped     {} documents whose loss weights are all 0\n", counts.no_loss);
  if (counts.skipped > 0)
    out += fmt::format("skipped     {} malformed rows (data.on_bad_row: skip)\n", counts.skipped);
  if (counts.repaired > 0)
    out += fmt::format("repaired    {} documents with malformed UTF-8 (read as U+FFFD)\n", counts.repaired);
  return out;
}

}  // namespace ostro::cli
