#include "ostro/site/run_extras.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/lab/steps/run_data.h"

namespace ostro::site {

using lab::shown_text;

namespace {

constexpr size_t kMostSamples = 12;

// A part of a sample: its name, and the text as the model or its author wrote it.
std::string part_html(const char* name, const std::string& text) {
  return text.empty() ? "" : fmt::format("<p><small>{}</small></p><pre>{}</pre>\n", name, shown_text(text));
}

}  // namespace

void add_run_extras(const Context& context, bool texts, LabFacts& facts) {
  for (RunFacts& run : facts.runs) {
    const std::string& folder = facts.state.made.at(run.name).folder;
    const auto opened = audit::open_recorded(context.fs, folder, context.models, /*stored_programs=*/true);
    if (opened.ok()) run.flops = audit::recorded_flops(*opened);
    if (!texts || !lab::texts_may_be_shown(facts.plan, *facts.state.find(run.name)->step)) continue;
    auto found = page::read_facts(context.fs, io::join_path(folder, page::kFactsFile));
    if (found.ok()) run.samples = std::move(*found);
  }
}

std::string samples_html(const LabFacts& facts, const RunFacts& run) {
  if (!run.samples || run.samples->samples.empty()) return "";
  const page::Facts& made = *run.samples;
  std::string out = fmt::format(
      "<h2>Samples</h2>\n<p>Beginnings of held-out texts, and how the state after step {} goes on "
      "(temperature "
      "{}, seed {}). Whatever it says is no fact.</p>\n",
      made.step, made.temperature, made.seed);
  for (size_t i = 0; i < std::min(made.samples.size(), kMostSamples); ++i) {
    const page::Sample& sample = made.samples[i];
    const std::string source =
        sample.file.empty()
            ? std::string("a text of its own")
            : fmt::format("{}, document {}", isolated(facts.without_folder(sample.file)), sample.document);
    out += fmt::format("<h3>{}</h3>\n", source) + part_html("beginning", sample.prompt) +
           part_html("the model goes on", sample.model) + part_html("the document goes on", sample.text);
  }
  if (made.samples.size() > kMostSamples)
    out += fmt::format("<p>{} more are in <code>{}</code> of the run's folder.</p>\n",
                       made.samples.size() - kMostSamples, page::kFactsFile);
  return out;
}

std::string flops_text(const RunFacts& run) {
  return run.flops ? fmt::format("{:.4g} FLOPs", *run.flops) : "";
}

}  // namespace ostro::site
