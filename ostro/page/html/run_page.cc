#include "ostro/page/html/run_page.h"

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/page/facts/make_facts.h"
#include "ostro/page/html/page.h"

namespace ostro::page {

Result<std::string> run_page(io::FileSystem& fs, const std::string& run_directory,
                             const models::ModelChoices& models, PageKind kind) {
  ASSIGN_OR_RETURN(const RunView view, read_view(fs, run_directory, models, kPageBins));
  return page_html(view, kind);
}

Result<std::string> comparison_page(io::FileSystem& fs, std::span<const std::string> run_directories,
                                    const models::ModelChoices& models) {
  std::vector<RunView> runs;
  std::vector<std::string> names;
  for (const std::string& directory : run_directories) {
    // Of many runs each gets fewer points: the page stays small enough to send around.
    ASSIGN_OR_RETURN(RunView view, read_view(fs, directory, models,
                                             run_directories.size() > 4 ? kPageBins / 2 : kPageBins));
    std::string name = view.name();
    if (std::find(names.begin(), names.end(), name) != names.end()) name = directory;
    names.push_back(std::move(name));
    runs.push_back(std::move(view));
  }
  return comparison_html(runs, names);
}

Status refresh_report(io::FileSystem& fs, const std::string& run_directory,
                      const train::TrainConfig& config) {
  const std::string facts_path = io::join_path(run_directory, kFactsFile);
  const auto before = read_facts(fs, facts_path);
  if (!before.ok() || before->data.empty()) {
    Facts facts;
    if (auto data = data_facts(fs, run_directory, config); data.ok()) facts.data = std::move(*data);
    RETURN_IF_ERROR(io::write_file_atomically(fs, facts_path, facts_json(facts)));
  }
  ASSIGN_OR_RETURN(const std::string page, run_page(fs, run_directory, config.model.choices()));
  return io::write_file_atomically(fs, io::join_path(run_directory, kPageFile), page);
}

Result<std::string> write_report(io::FileSystem& fs, runtime::Engine* sampler,
                                 const std::string& run_directory, const train::TrainConfig& config,
                                 const std::function<bool()>& stop) {
  const std::string facts_path = io::join_path(run_directory, kFactsFile);
  Facts facts;
  if (auto before = read_facts(fs, facts_path); before.ok()) facts = std::move(*before);
  if (auto data = data_facts(fs, run_directory, config); data.ok())
    facts.data = std::move(*data);
  else
    log_warning(fmt::format("the page says nothing of the data: {}", data.error().message()));
  if (sampler != nullptr && sampler->info().is_fast)
    if (const Status done = add_samples(fs, *sampler, run_directory, config, stop, facts); !done.ok())
      log_warning(fmt::format("the page has no samples: {}", done.error().message()));
  RETURN_IF_ERROR(io::write_file_atomically(fs, facts_path, facts_json(facts)));
  ASSIGN_OR_RETURN(const std::string page, run_page(fs, run_directory, config.model.choices()));
  const std::string path = io::join_path(run_directory, kPageFile);
  RETURN_IF_ERROR(io::write_file_atomically(fs, path, page));
  return path;
}

}  // namespace ostro::page
