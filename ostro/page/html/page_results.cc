// The sections about the run's results: samples, data, time.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "ostro/chain/clock_text.h"
#include "ostro/page/html/page.h"
#include "ostro/page/html/page_parts.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::page {
namespace {

std::optional<int64_t> unix_seconds(const std::string& utc) {
  std::tm parts{};
  if (const char* end = ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts); end == nullptr || *end != 0)
    return std::nullopt;
  return ::timegm(&parts);
}

// What a reader may expect of the samples.
std::string expectation(const RunView& view) {
  constexpr int64_t kTiny = 100'000'000;
  if (view.parameters == 0) return "";
  const std::string size = short_number(static_cast<double>(view.parameters));
  return view.parameters < kTiny
             ? fmt::format(
                   "A model of {} parameters is tiny: it spells and imitates the form of its texts, and it "
                   "makes no sense.",
                   size)
             : fmt::format("The model has {} parameters and is not tuned to answer.", size);
}

}  // namespace

std::optional<double> session_seconds(const chain::Session& session) {
  const auto begin = unix_seconds(session.started), end = unix_seconds(session.ended);
  if (!begin || !end) return std::nullopt;
  return static_cast<double>(*end - *begin);
}

std::optional<double> run_seconds(const RunView& view) {
  if (!view.record || view.record->sessions.empty()) return std::nullopt;
  const auto begin = unix_seconds(view.record->sessions.front().started),
             end = unix_seconds(view.record->sessions.back().ended);
  if (!begin || !end) return std::nullopt;
  return static_cast<double>(*end - *begin);
}

std::string samples_section(const RunView& view) {
  if (!view.facts || view.facts->samples.empty()) return "";
  const Facts& facts = *view.facts;
  constexpr size_t kLongestSample = 4'000;
  std::string out = heading("Samples");
  out += fmt::format(
      "<p class=\"soft\">How the model continues a text after step {} (temperature {}, seed {}): <span "
      "class=\"prompt\">grey is the beginning that it was given</span>, <span class=\"own\">the rest is what "
      "it wrote</span>. {}</p>\n",
      grouped(facts.step), facts.temperature, facts.seed, expectation(view));
  for (size_t i = 0; i < std::min(facts.samples.size(), kRows); ++i) {
    const Sample& sample = facts.samples[i];
    std::string where = "A new document";
    if (!sample.prompt.empty())
      where = fmt::format("Held-out text: {}{}, document {}",
                          sample.component.empty() ? "" : cut(sample.component, kLongestWord) + ", ",
                          cut(sample.file, kLongestWord), grouped(sample.document));
    const std::string prompt = fmt::format("<i>{}</i>", cut(sample.prompt, kLongestSample));
    out += fmt::format("<div class=\"sample\"><b>{}</b>", where);
    const std::string model = fmt::format("<pre>{}{}</pre>", prompt, cut(sample.model, kLongestSample));
    out += sample.prompt.empty()
               ? model
               : fmt::format(
                     "<div class=\"two\"><div><small>the model</small>{}</div><div><small>the text</small>"
                     "<pre>{}{}</pre></div></div>",
                     model, prompt, cut(sample.text, kLongestSample));
    out += "</div>\n";
  }
  return out;
}

std::string data_section(const RunView& view) {
  std::string out;
  if (view.facts && !view.facts->data.empty()) {
    const std::vector<ComponentFacts>& data = view.facts->data;
    const bool named = data.size() > 1 || !data[0].name.empty();
    const auto row = [&](const std::string& name, const char* split, const SplitFacts& counts,
                         const std::string& unigram) {
      return fmt::format(
          "<tr>{}<td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
          "<td class=\"n\">{}</td></tr>\n",
          named ? fmt::format("<td>{}</td>", cut(name, kLongestWord)) : "", split, grouped(counts.documents),
          grouped(counts.tokens), grouped(counts.bytes), unigram);
    };
    out += fmt::format(
        "<div class=\"scroll\"><table><thead><tr>{}<th>split</th><th class=\"n\">documents</th>"
        "<th class=\"n\">tokens</th><th class=\"n\">bytes</th><th class=\"n\">loss of "
        "frequencies</th></tr></thead>\n",
        named ? "<th>component</th>" : "");
    for (size_t i = 0; i < std::min(data.size(), kRows); ++i)
      out += row(data[i].name, "train", data[i].train, "") +
             row("", "held out", data[i].held_out,
                 data[i].unigram ? fmt::format("{:.4f}", data[i].unigram->nats_per_token) : "");
    out += "</table></div>\n";
    if (data.size() > kRows) out += fmt::format("<p class=\"soft\">and {} more.</p>\n", data.size() - kRows);
    if (const int64_t tokens = data[0].train.tokens; data.size() == 1 && tokens > 0)
      out += fmt::format("<p class=\"soft\">The run saw every training token {:.3g} times on average.</p>\n",
                         view.history.tokens / static_cast<double>(tokens));
  }
  if (view.config) {
    FactTable facts;
    facts.row("training texts", cut_words(view.config->data.train_urls));
    facts.row("held-out texts", cut_words(view.config->data.validation_urls));
    out += facts.html();
  }
  return out.empty() ? "" : heading("Data") + out;
}

std::string time_section(const RunView& view) {
  FactTable facts;
  const auto share = [](double part, double whole) {
    return whole > 0 ? fmt::format(" ({:.1f} %)", 100 * part / whole) : std::string();
  };
  const auto wall = run_seconds(view);
  if (wall) facts.row("from first start to last end", chain::duration_text(*wall));
  const auto sum = [&](const char* name) -> const Bins* {
    const auto found = view.history.metrics.find(name);
    return found == view.history.metrics.end() || found->second.empty() ? nullptr : &found->second;
  };
  if (const Bins* steps = sum("throughput/step_seconds")) {
    const double seconds = steps->sum();
    facts.row("in steps that count (goodput)",
              fmt::format("{:.1f} s{}", seconds, wall ? share(seconds, *wall) : ""));
    const int64_t done = view.history.last_step - view.history.first_step + 1;
    if (steps->values() != done)
      facts.row("", fmt::format("known of {} of {} steps", grouped(steps->values()), grouped(done)));
    for (const auto& [name, what] :
         {std::pair{"throughput/data_stall_seconds", "waiting for data"},
          std::pair{"throughput/checkpoint_stall_seconds", "starting to save checkpoints"}})
      if (const Bins* stall = sum(name))
        facts.row(what, fmt::format("{:.1f} s{}", stall->sum(), wall ? share(stall->sum(), *wall) : ""));
    if (seconds > 0 && steps->values() == done)
      facts.row("tokens a second, in steps", short_number(view.history.tokens / seconds));
  }
  if (const Bins* mfu = sum("throughput/mfu"); mfu != nullptr && mfu->sum() > 0)
    facts.row("model FLOPs utilization, mean",
              fmt::format("{:.1f} %", 100 * mfu->sum() / static_cast<double>(mfu->values())));
  return facts.html().empty() ? "" : heading("Time") + facts.html();
}

}  // namespace ostro::page
