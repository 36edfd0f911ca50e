#include "ostro/without/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/base/sha256.h"
#include "ostro/batches/loader/document_uses.h"
#include "ostro/chain/data_record.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/manifest.h"
#include "ostro/io/files/path.h"
#include "ostro/numerics/permutation.h"
#include "ostro/train/step/run_data.h"

namespace ostro::without {
namespace {

constexpr int64_t kMostLooked = 200000;  // rows that are looked at for controls

// What finding documents of a run needs.
struct OpenRun {
  std::shared_ptr<const batches::DataSet> stores;
  const batches::Loader& loader;
  int64_t end = 0;  // the run's last step; of a fork, the steps before it count, too
};

using RowName = std::pair<size_t, int64_t>;  // component and row

// A document of the run, as a candidate to be removed.
struct RunDocument {
  batches::UsedRow used;           // the row of the first component that has it
  std::vector<size_t> components;  // that have it and are trained on
  int64_t uses = 0;                // in all of them
  int64_t first_use = 0;
};

Result<std::vector<uint32_t>> ids_of(const OpenRun& run, const batches::UsedRow& row) {
  const data::TokenStream& stream = run.loader.reader(row.component).stream();
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row.row, 1));
  std::vector<int32_t> ids(static_cast<size_t>(ends[1] - ends[0]));
  RETURN_IF_ERROR(stream.read(ends[0], ids));
  return std::vector<uint32_t>(ids.begin(), ids.end());
}

// Nothing: no step uses it.
std::optional<RunDocument> document_of(std::vector<batches::UsedRow> rows) {
  RunDocument out;
  out.first_use = INT64_MAX;
  size_t leading = rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].trained) out.components.push_back(rows[i].component);
    if (rows[i].uses.empty()) continue;
    if (leading == rows.size()) leading = i;
    out.uses += static_cast<int64_t>(rows[i].uses.size());
    out.first_use = std::min(out.first_use, rows[i].uses[0].step);
  }
  if (leading == rows.size()) return std::nullopt;
  out.used = std::move(rows[leading]);
  return out;
}

Status add(const OpenRun& run, const RunDocument& document, const std::string& name, Removal& removal) {
  removal.first_use =
      removal.documents.empty() ? document.first_use : std::min(removal.first_use, document.first_use);
  removal.documents.push_back(name);
  removal.sources.push_back({document.used.source.file, document.used.source.document});
  removal.components.push_back(document.components);
  removal.uses += document.uses;
  removal.tokens += document.used.tokens;
  ASSIGN_OR_RETURN(std::vector<uint32_t> ids, ids_of(run, document.used));
  removal.ids.push_back(std::move(ids));
  return {};
}

// A document with its name.
struct NamedDocument {
  RunDocument document;
  std::string name;
};

// The document that a row came from. Nothing: no step uses it, or its name leads to other rows as well, so
// that removing it would remove more than this row.
Result<std::optional<NamedDocument>> document_at(const OpenRun& run, size_t component, int64_t row) {
  const data::TokenStream& stream = run.loader.reader(component).stream();
  ASSIGN_OR_RETURN(const data::RowSource source, stream.source(row));
  const data::DocumentName name{source.file, source.document};
  auto rows = batches::document_uses(*run.stores, run.loader, name, "", 0, run.end);
  if (!rows.ok() && rows.error().code() != ErrorCode::kInvalidArgument) return rows.error();
  if (!rows.ok() || rows->size() != 1 || (*rows)[0].row != row) return std::optional<NamedDocument>();
  auto document = document_of(std::move(*rows));
  if (!document) return std::optional<NamedDocument>();
  return std::optional(NamedDocument{std::move(*document), name.text()});
}

numerics::Key key_of(const std::string& run_hash, std::string_view purpose) {
  return numerics::fold_in(numerics::key_from_seed(std::stoull(run_hash.substr(0, 16), nullptr, 16)),
                           purpose);
}

// Draws documents like the given ones, each once.
class ControlDraw {
 public:
  // `left_out`: rows that the run itself leaves out.
  ControlDraw(const OpenRun& run, const std::string& run_hash, std::vector<RunDocument> like,
              std::set<RowName> left_out)
      : run_(run), like_(std::move(like)), taken_(std::move(left_out)) {
    for (const RunDocument& document : like_) taken_.insert({document.used.component, document.used.row});
    key_ = key_of(run_hash, "controls");
    next_.resize(like_.size());
  }

  // False: there is no other.
  Result<bool> draw(Removal& removal) {
    for (size_t i = 0; i < like_.size(); ++i) {
      const size_t component = like_[i].used.component;
      const int64_t rows = run_.loader.reader(component).stream().rows();
      const numerics::Permutation order(numerics::fold_in(key_, static_cast<uint32_t>(component)), rows);
      bool found = false;
      for (; !found && next_[i] < std::min(rows, kMostLooked); ++next_[i]) {
        ASSIGN_OR_RETURN(found, try_row(i, order(next_[i]), removal));
      }
      if (!found) return false;
    }
    return true;
  }

 private:
  Result<bool> try_row(size_t i, int64_t row, Removal& removal) {
    const RunDocument& like = like_[i];
    if (taken_.contains({like.used.component, row})) return false;
    const data::TokenStream& stream = run_.loader.reader(like.used.component).stream();
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, 1));
    if (4 * std::abs(ends[1] - ends[0] - like.used.tokens) > like.used.tokens) return false;
    ASSIGN_OR_RETURN(const auto found, document_at(run_, like.used.component, row));
    const int64_t near = std::max<int64_t>(run_.end / 20, 1);
    if (!found || std::abs(found->document.first_use - like.first_use) > near) return false;
    taken_.insert({like.used.component, row});
    RETURN_IF_ERROR(add(run_, found->document, found->name, removal));
    return true;
  }

  const OpenRun& run_;
  std::vector<RunDocument> like_;
  std::set<RowName> taken_;
  numerics::Key key_;
  std::vector<int64_t> next_;
};

// The last step up to the first use whose state the run still has; 0: none. kInvalidArgument: it cannot
// begin.
Result<int64_t> beginning_of(io::FileSystem& fs, const WithoutRequest& request, const chain::Chain& chain,
                             const Removal& removal) {
  if (request.rebuild) return 0;  // another order from the first step on
  const int64_t forked = chain.genesis().step();
  if (removal.first_use < forked)
    return invalid_argument(
        fmt::format("{} is a fork at step {}, and {} is used before, in step {}: ask for it in the parent",
                    request.run, forked, removal.documents[0], removal.first_use));
  int64_t begins = 0;
  for (const chain::ChainLink& link : chain.links) {
    const auto* entry = std::get_if<chain::CheckpointEntry>(&link.entry);
    if (entry == nullptr || entry->step > removal.first_use) continue;
    const std::string folder = io::join_path(io::join_path(request.run, checkpoint::kCheckpointsFolder),
                                             checkpoint::step_directory(entry->step));
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(folder, checkpoint::kManifestName)));
    if (there) begins = entry->step;
  }
  if (begins == 0 && forked > 0)
    return invalid_argument(
        fmt::format("{} is a fork at step {}, and its first checkpoint is after step {}, where {} is first "
                    "used; it cannot "
                    "begin anew without its parent: ask for the document in the parent",
                    request.run, forked, removal.first_use, removal.documents[0]));
  for (const chain::ChainLink& link : chain.links)
    if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry); amend && amend->step >= begins)
      return invalid_argument(fmt::format(
          "{} was amended after step {}, and the run without {} begins after step {}: it would have to be "
          "amended there, too",
          request.run, amend->step, removal.documents[0], begins));
  return begins;
}

// The steps from `first` on whose batches have tokens of the documents.
Result<std::set<int64_t>> steps_of(const OpenRun& run, const Removal& removal, int64_t first) {
  std::set<int64_t> out;
  for (const data::DocumentName& name : removal.sources) {
    ASSIGN_OR_RETURN(const auto rows,
                     batches::document_uses(*run.stores, run.loader, name, "", first, run.end));
    for (const batches::UsedRow& row : rows)
      for (const batches::DocumentUse& use : row.uses) out.insert(use.step);
  }
  return out;
}

// An error where a batch has no target without the documents: training would end there, after all steps
// before it. `config`: of the run in whose order of batches `run` is.
Status check_targets(const WithoutRequest& request, train::TrainConfig config, const OpenRun& run,
                     const Removal& removal, int64_t first) {
  if (request.rebuild) return {};  // other rows take their places
  ASSIGN_OR_RETURN(const std::set<int64_t> steps, steps_of(run, removal, first));
  config.data.without.insert(config.data.without.end(), removal.documents.begin(), removal.documents.end());
  config.data.without_as = request.as;
  ASSIGN_OR_RETURN(const batches::Loader without, train::make_loader(config, run.stores));
  for (const int64_t step : steps) {
    ASSIGN_OR_RETURN(const batches::Batch batch, without.batch(step));
    if (std::any_of(batch.loss_mask.begin(), batch.loss_mask.end(), [](float w) { return w != 0; })) continue;
    const auto more = removal.documents.size() - 1;
    return invalid_argument(
        fmt::format("{}{}: without {} the batch of step {} (trainer.seed {}) has no token that counts, and "
                    "training would "
                    "end there: leave out fewer documents, or use --as rebuild",
                    removal.documents[0], more > 0 ? fmt::format(" and {} more", more) : "",
                    more > 0 ? "them" : "it", step, config.trainer.seed));
  }
  return {};
}

Status check_run(io::FileSystem& fs, const WithoutRequest& request, const audit::RecordedRun& run) {
  if (data::has_pairs(run.config.data))
    return unsupported(
        fmt::format("{} trains on preference pairs, which have no loss of a text to compare", request.run));
  if (run.chain.last_step() == run.config.trainer.num_train_steps) return {};
  const auto record = chain::read_record(fs, io::join_path(request.run, chain::kRecordFile));
  if (record.ok() && !record->sessions.empty() && record->sessions.back().outcome == chain::kEndedAsAsked)
    return invalid_argument(
        fmt::format("{} has done {} of {} steps and ended there at a rung of a lab, as its plan wants it; "
                    "name a run that "
                    "went to its end",
                    request.run, run.chain.last_step(), run.config.trainer.num_train_steps));
  return invalid_argument(fmt::format("{} has done {} of {} steps; finish it first (ostro train --config {})",
                                      request.run, run.chain.last_step(), run.config.trainer.num_train_steps,
                                      io::join_path(request.run, "config.yaml")));
}

// The rows that the run itself lacks (data.without).
Result<std::set<RowName>> left_out_rows(const data::DataOptions& options, const batches::DataSet& stores) {
  std::set<RowName> out;
  for (const std::string& text : options.without) {
    ASSIGN_OR_RETURN(const data::DocumentName name, data::parse_document_name(text));
    ASSIGN_OR_RETURN(const auto rows, batches::training_rows(stores, name));
    for (const batches::ComponentRow& row : rows) out.insert({row.component, row.found.row});
  }
  return out;
}

// Where the run without begins: beginning_of() and check_targets().
Result<int64_t> find_beginning(io::FileSystem& fs, const WithoutRequest& request, const RemovalPlan& plan,
                               const OpenRun& run, const Removal& removal) {
  ASSIGN_OR_RETURN(const int64_t begins, beginning_of(fs, request, plan.chain, removal));
  RETURN_IF_ERROR(check_targets(request, plan.config, run, removal, begins));
  return begins;
}

// Draws `request.sample` documents of the run into the plan, each as a removal of its own.
Status draw_sample(io::FileSystem& fs, const WithoutRequest& request, const OpenRun& run,
                   const std::set<RowName>& left_out, RemovalPlan& plan) {
  std::vector<int64_t> ends;  // rows of the components up to each
  for (size_t component = 0; component < run.stores->parts().size(); ++component)
    ends.push_back((ends.empty() ? 0 : ends.back()) + run.loader.reader(component).stream().rows());
  const numerics::Permutation order(key_of(plan.chain.head(), "sample"), ends.back());
  std::vector<Removal> drawn;
  for (int64_t i = 0; i < std::min(ends.back(), kMostLooked) && std::ssize(drawn) < request.sample; ++i) {
    const int64_t place = order(i);
    const auto component =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin());
    const int64_t row = place - (component == 0 ? 0 : ends[component - 1]);
    if (left_out.contains({component, row})) continue;
    ASSIGN_OR_RETURN(const auto found, document_at(run, component, row));
    if (!found || found->document.used.tokens == 0) continue;
    Removal removal;
    RETURN_IF_ERROR(add(run, found->document, found->name, removal));
    const auto begins = find_beginning(fs, request, plan, run, removal);
    if (!begins.ok() && begins.error().code() == ErrorCode::kInvalidArgument) continue;  // not this one
    if (!begins.ok()) return begins.error();
    removal.begins = *begins;
    removal.folder = io::join_path(request.out, fmt::format("sample-{}", drawn.size() + 1));
    drawn.push_back(std::move(removal));
  }
  if (drawn.empty())
    return invalid_argument(fmt::format("--sample: {} uses no document that can be left out", request.run));
  plan.fewer_controls = std::ssize(drawn) < request.sample;
  plan.asked = std::move(drawn.front());
  plan.controls.assign(std::make_move_iterator(drawn.begin() + 1), std::make_move_iterator(drawn.end()));
  return {};
}

// Seeds that the run hash draws. Error: a run that cannot be trained anew with another seed, or another
// order.
Result<std::vector<int64_t>> drawn_seeds(const WithoutRequest& request, const chain::Chain& chain) {
  std::vector<int64_t> out;
  if (request.seeds == 0 && !request.rebuild) return out;
  const bool amended = std::any_of(chain.links.begin(), chain.links.end(), [](const chain::ChainLink& link) {
    return std::holds_alternative<chain::AmendEntry>(link.entry);
  });
  if (chain.genesis().fork || amended)
    return invalid_argument(fmt::format(
        "{}: {} {}, and with another seed or order only a run of one configuration can be trained from "
        "its first step on",
        request.rebuild ? "--as rebuild" : "--seeds", request.run, amended ? "was amended" : "is a fork"));
  for (int64_t i = 1; i <= request.seeds; ++i)
    out.push_back(static_cast<int64_t>(
        std::stoull(sha256_hex(fmt::format("{} seed {}", chain.head(), i)).substr(0, 7), nullptr, 16)));
  return out;
}

// A document that is asked for has to be in the run, and is named once. `asked`: rows of those before it.
Status check_document(const WithoutRequest& request, const batches::DataSet& stores,
                      const data::DocumentName& name, const std::set<RowName>& left_out,
                      std::set<RowName>& asked) {
  ASSIGN_OR_RETURN(const auto rows, batches::training_rows(stores, name));
  for (const batches::ComponentRow& row : rows) {
    if (left_out.contains({row.component, row.found.row}))
      return invalid_argument(
          fmt::format("{}: {} was trained without it (data.without)", name.text(), request.run));
    if (!asked.insert({row.component, row.found.row}).second)
      return invalid_argument(fmt::format("{}: this document is named twice", name.text()));
  }
  return {};
}

}  // namespace

int64_t RemovalPlan::steps_to_do() const {
  int64_t sum = steps - asked.begins;
  for (const Removal& control : controls) sum += steps - control.begins;
  return sum + 2 * steps * std::ssize(seeds);
}

Result<RemovalPlan> plan_removals(const Context& context, const WithoutRequest& request) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(audit::RecordedRun run,
                   audit::open_recorded(fs, request.run, context.models, /*stored_programs=*/false));
  RETURN_IF_ERROR(check_run(fs, request, run));
  // The runs without name the same stores, so these must be where the configuration has them.
  ASSIGN_OR_RETURN(const auto stores, batches::DataSet::open(fs, run.config.data, *run.tokenizer));
  if (const std::string hash = chain::data_records(run.chain).back().hash; stores->hash() != hash)
    return invalid_argument(fmt::format(
        "the stores that {} names hold other data than the run had: hash {} here, {} in its chain; start the "
        "command in the folder in which the run was started",
        io::join_path(request.run, "config.yaml"), stores->hash(), hash));
  ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(run.config, stores));
  RemovalPlan plan{run.config, run.chain, run.tokenizer, {}, {}, false, run.config.trainer.num_train_steps};
  const OpenRun open{stores, loader, plan.steps};
  if (!request.rebuild && !run.config.data.without.empty() && run.config.data.without_as != request.as)
    return invalid_argument(
        "--as: the run leaves documents out itself (data.without), in the other way; use the same");
  ASSIGN_OR_RETURN(std::set<RowName> left_out, left_out_rows(run.config.data, *stores));
  ASSIGN_OR_RETURN(plan.seeds, drawn_seeds(request, plan.chain));
  if (request.sample > 0) {
    RETURN_IF_ERROR(draw_sample(fs, request, open, left_out, plan));
    return plan;
  }
  std::vector<RunDocument> asked;
  std::set<RowName> named;
  for (const std::string& text : request.documents) {
    ASSIGN_OR_RETURN(const data::DocumentName name, data::parse_document_name(text));
    RETURN_IF_ERROR(check_document(request, *stores, name, left_out, named));
    ASSIGN_OR_RETURN(auto rows, batches::document_uses(*stores, loader, name, "", 0, open.end));
    auto document = document_of(std::move(rows));
    if (!document)
      return invalid_argument(
          fmt::format("{}: no step of {} uses it, so every state of the run is the same without it",
                      name.text(), request.run));
    RETURN_IF_ERROR(add(open, *document, name.text(), plan.asked));
    asked.push_back(std::move(*document));
  }
  plan.asked.folder = io::join_path(request.out, "without");
  ASSIGN_OR_RETURN(plan.asked.begins, find_beginning(fs, request, plan, open, plan.asked));
  for (const int64_t seed : plan.seeds) {
    train::TrainConfig config = plan.config;
    config.trainer.seed = seed;
    ASSIGN_OR_RETURN(const batches::Loader drawn, train::make_loader(config, stores));
    RETURN_IF_ERROR(check_targets(request, config, {stores, drawn, plan.steps}, plan.asked, 0));
  }
  ControlDraw controls(open, run.chain.head(), std::move(asked), std::move(left_out));
  while (std::ssize(plan.controls) < request.controls) {
    Removal control;
    ASSIGN_OR_RETURN(const bool found, controls.draw(control));
    if (!found) {
      plan.fewer_controls = true;
      break;
    }
    control.folder = io::join_path(request.out, fmt::format("control-{}", plan.controls.size() + 1));
    const auto begins = find_beginning(fs, request, plan, open, control);
    if (!begins.ok() && begins.error().code() == ErrorCode::kInvalidArgument) continue;  // not this one
    if (!begins.ok()) return begins.error();
    control.begins = *begins;
    plan.controls.push_back(std::move(control));
  }
  return plan;
}

}  // namespace ostro::without
