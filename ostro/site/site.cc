#include "ostro/site/site.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/chain/chain.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/report/hypotheses_table.h"
#include "ostro/lab/report/scaling_section.h"
#include "ostro/paper/paper.h"
#include "ostro/site/live_section.h"
#include "ostro/site/pages.h"
#include "ostro/site/run_extras.h"
#include "ostro/site/shell.h"
#include "ostro/site/site_folder.h"

namespace ostro::site {
namespace {

class Writer {
 public:
  // `live`: null where no server gives the pages out.
  Writer(const Context& context, const LabFacts& facts, SiteFolder& folder, const lab::LiveLab* live)
      : context_(context), facts_(facts), folder_(folder), live_(live) {
    shell_.lab = facts.plan.name;
    shell_.live = live != nullptr && !live->state.is_done();
  }

  // The first page with what all pages need. What runs stands on it.
  Status write_first() {
    ASSIGN_OR_RETURN(std::string index, index_body(facts_));
    if (live_ != nullptr) index = live_html(context_.fs, *live_) + index;
    RETURN_IF_ERROR(put_page("index.html", facts_.plan.name, index));
    RETURN_IF_ERROR(folder_.put("style.css", style_sheet()));
    return folder_.put("site.js", site_script());
  }

  Status write(const std::vector<BatchSet>& sets, const std::vector<board::Board>& boards,
               const std::vector<lab::ReportFile>& report) {
    ASSIGN_OR_RETURN(const std::string scaling, lab::scaling_html(facts_.record));
    ASSIGN_OR_RETURN(const std::string hypotheses, hypotheses_body());
    const auto has = [&](const char* name) {
      return std::any_of(report.begin(), report.end(),
                         [&](const lab::ReportFile& file) { return file.name == name; });
    };
    shell_.links = {
        {"index.html", "Lab"}, {"runs.html", "Runs"}, {"diff.html", "Compare"}, {"data.html", "Data"}};
    if (!scaling.empty()) shell_.links.emplace_back("scaling.html", "Scaling");
    if (!hypotheses.empty()) shell_.links.emplace_back("hypotheses.html", "Hypotheses and registry");
    if (!boards.empty()) shell_.links.emplace_back("boards.html", "Boards");
    if (has("report.html")) shell_.links.emplace_back("report/report.html", "Report");
    if (has("report.pdf")) shell_.links.emplace_back("report/report.pdf", "Paper (PDF)");
    RETURN_IF_ERROR(write_first());
    ASSIGN_OR_RETURN(const std::string runs, runs_body(facts_));
    RETURN_IF_ERROR(put_page("runs.html", "Runs", runs));
    ASSIGN_OR_RETURN(const std::string diff, diff_body(facts_));
    RETURN_IF_ERROR(put_page("diff.html", "Two runs compared", diff));
    ASSIGN_OR_RETURN(const std::string data, data_body(facts_, sets));
    RETURN_IF_ERROR(put_page("data.html", "Data", data));
    if (!scaling.empty()) RETURN_IF_ERROR(put_page("scaling.html", "Scaling", scaling));
    if (!hypotheses.empty()) RETURN_IF_ERROR(put_page("hypotheses.html", "Hypotheses", hypotheses));
    if (!boards.empty()) {
      ASSIGN_OR_RETURN(const std::string body, boards_body(facts_, boards));
      RETURN_IF_ERROR(put_page("boards.html", "Boards", body));
    }
    for (const RunFacts& run : facts_.runs) RETURN_IF_ERROR(write_run(run));
    for (const BatchSet& set : sets) {
      RETURN_IF_ERROR(put_page(set.id + ".html", "Batches", batches_body(facts_, set)));
      RETURN_IF_ERROR(put_data(set.id, set.json()));
      if (set.has_texts()) RETURN_IF_ERROR(put_data(set.id + kTexts, set.texts_json()));
    }
    for (const lab::ReportFile& file : report)
      RETURN_IF_ERROR(folder_.put("report/" + file.name, file.bytes));
    return {};
  }

 private:
  Status put_page(const std::string& file, const std::string& title, const std::string& body) {
    return folder_.put(file, shell_.page(file, title, body));
  }
  Status put_data(const std::string& id, const std::string& json) {
    return folder_.put("data/" + id + ".js", data_script(id, json));
  }

  Result<std::string> hypotheses_body() const {
    ASSIGN_OR_RETURN(const lab::Rows entries, facts_.record.select("SELECT line FROM registry"));
    if (facts_.plan.hypotheses.empty() && entries.rows.empty()) return std::string();
    ASSIGN_OR_RETURN(const std::string hypotheses, lab::hypotheses_html(facts_.record));
    ASSIGN_OR_RETURN(const std::string registry, lab::registry_html(facts_.record));
    return hypotheses + registry;
  }

  // The page, and the run's chain as it is: curves and the check of its hashes are made of the same bytes.
  Status write_run(const RunFacts& run) {
    ASSIGN_OR_RETURN(const std::string body, run_body(facts_, run));
    RETURN_IF_ERROR(put_page(run.id + ".html", run.name, body));
    const std::string file = io::join_path(facts_.state.made.at(run.name).folder, chain::kChainFile);
    ASSIGN_OR_RETURN(const std::string lines, context_.fs.read_file(file));
    return put_data(run.id, nlohmann::json(lines).dump(-1, ' ', /*ensure_ascii=*/true,
                                                       nlohmann::json::error_handler_t::replace));
  }

  const Context& context_;
  const LabFacts& facts_;
  SiteFolder& folder_;
  const lab::LiveLab* live_;
  Shell shell_;
};

}  // namespace

Result<Site> write_site(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                        const SiteRequest& request, const std::string& out) {
  std::vector<board::Board> boards;
  for (const std::string& folder : request.boards) {
    ASSIGN_OR_RETURN(board::Board one, board::Board::open(context.fs, folder));
    boards.push_back(std::move(one));
  }
  // From here on an error leaves no texts of an earlier site.
  SiteFolder folder(context.fs, out);
  RETURN_IF_ERROR(folder.begin());
  ASSIGN_OR_RETURN(const lab::Database record, lab::make_record(context.fs, plan, state, request.measured));
  ASSIGN_OR_RETURN(const lab::Journal journal, lab::Journal::open(context.fs, plan.directory()));
  LabFacts facts = lab_facts(plan, state, record, journal, request.measured);
  add_run_extras(context, request.texts, facts);
  ASSIGN_OR_RETURN(std::vector<BatchSet> sets, find_batch_sets(context, facts, request.texts));
  Site made;
  for (BatchSet& set : sets) {
    set.on_demand = request.live != nullptr && set.every > 1;
    if (set.on_demand) made.batches[set.id] = {set.runs[0], set.key, set.first, set.last};
  }
  Writer writer(context, facts, folder, request.live);
  paper::Report report;
  if (request.report) {
    ASSIGN_OR_RETURN(report, paper::shown_report(context.fs, plan, state, *request.report));
  } else if (state.is_done()) {
    ASSIGN_OR_RETURN(report, paper::shown_report(context.fs, plan, state));
  }
  RETURN_IF_ERROR(writer.write(sets, boards, report.files));
  RETURN_IF_ERROR(folder.end());
  made.files = folder.written();
  made.missing = report.missing;
  return made;
}

Status write_live_page(const Context& context, const lab::Plan& plan, const lab::LiveLab& lab,
                       const std::string& out) {
  SiteFolder folder(context.fs, out);
  RETURN_IF_ERROR(folder.begin());
  ASSIGN_OR_RETURN(const lab::Database record,
                   lab::make_record(context.fs, plan, lab.state, /*measured=*/false));
  const LabFacts facts{plan, lab.state, record, /*measured=*/false, {}, /*has_other_pages=*/false};
  RETURN_IF_ERROR(Writer(context, facts, folder, &lab).write_first());
  return folder.end();
}

Result<std::optional<std::string>> batch_step_script(const Context& context, const lab::Plan& plan,
                                                     const lab::LabState& state, const Site& site, bool texts,
                                                     const std::string& name) {
  // data/SET-KEY-step-N.js
  const std::string begin = "data/", middle = "-step-", end = ".js";
  const size_t at = name.find(middle);
  if (!name.starts_with(begin) || !name.ends_with(end) || at == std::string::npos)
    return std::optional<std::string>();
  const std::string asked = name.substr(begin.size(), at - begin.size());
  const std::string number = name.substr(at + middle.size(), name.size() - at - middle.size() - end.size());
  const auto found = std::find_if(site.batches.begin(), site.batches.end(),
                                  [&](const auto& set) { return asked == set.first + "-" + set.second.key; });
  if (found == site.batches.end() || number.empty() || number.size() > 15 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return std::optional<std::string>();
  const AskedBatches& set = found->second;
  const int64_t step = std::stoll(number);
  if (step < set.first || step > set.last) return std::optional<std::string>();
  ASSIGN_OR_RETURN(const auto batch, find_batch(context, plan, state, set.run, step, texts));
  if (!batch) return std::optional<std::string>();
  auto json = nlohmann::json::parse(batch->json());
  if (batch->has_texts()) json["shown"] = nlohmann::json::parse(batch->texts_json());
  return std::optional(data_script(asked + middle + number, json.dump(-1, ' ', /*ensure_ascii=*/true)));
}

}  // namespace ostro::site
