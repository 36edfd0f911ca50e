// The tables below the curves.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "ostro/base/html.h"
#include "ostro/page/axis.h"
#include "ostro/page/page.h"
#include "ostro/train/record/canonical.h"
#include "ostro/train/record/clock_text.h"
#include "ostro/train/run/amend.h"

namespace ostro::page {
namespace {

// The page's size has a bound whatever was trained on: longer texts are cut, of long lists the last are
// shown.
constexpr size_t kLongestText = 16'000, kLongestWord = 400, kRows = 30;

std::string heading(const char* text) { return fmt::format("<h2>{}</h2>\n", text); }

// Escaped, and cut where a character begins.
std::string cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return html_escaped(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return html_escaped(text.substr(0, limit)) +
         fmt::format("… <small>({} more bytes)</small>", grouped(static_cast<int64_t>(text.size() - limit)));
}

// Rows of name and value; values are HTML.
class FactTable {
 public:
  void row(std::string_view name, const std::string& html) {
    if (!html.empty()) rows_ += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", name, html);
  }
  void hash(std::string_view name, std::string_view hash) {
    row(name, fmt::format("<span class=\"hash\">{}</span>", html_escaped(hash)));
  }
  std::string html() const { return rows_.empty() ? "" : "<table class=\"facts\">" + rows_ + "</table>\n"; }

 private:
  std::string rows_;
};

std::string earlier(size_t count, const char* what) {
  return count == 0 ? ""
                    : fmt::format("<p class=\"soft\">and {} earlier {}.</p>\n",
                                  grouped(static_cast<int64_t>(count)), what);
}

std::string words(const std::vector<std::string>& all) {
  return cut(fmt::format("{}", fmt::join(all, " ")), kLongestWord);
}

std::optional<int64_t> unix_seconds(const std::string& utc) {
  std::tm parts{};
  if (const char* end = ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts); end == nullptr || *end != 0)
    return std::nullopt;
  return ::timegm(&parts);
}

// A JSON value as lines "name: value", indented, without the quotes that only a program needs.
void outline(const nlohmann::ordered_json& value, size_t depth, std::string& out) {
  for (const auto& [key, item] : value.items()) {
    out += std::string(2 * depth, ' ') + key + ":";
    if (item.is_object() && !item.empty()) {
      out += "\n";
      outline(item, depth + 1, out);
    } else {
      out += " " + (item.is_string() && !item.empty() ? item.get<std::string>() : item.dump()) + "\n";
    }
  }
}

}  // namespace

std::optional<double> session_seconds(const train::Session& session) {
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
      "<p class=\"soft\">How the model goes on after step {}, at temperature {} and seed {}.</p>\n",
      grouped(facts.step), facts.temperature, facts.seed);
  for (const Sample& sample : facts.samples) {
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
    const auto row = [&](const std::string& name, const char* split, const SplitFacts& counts) {
      return fmt::format(
          "<tr>{}<td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
          named ? fmt::format("<td>{}</td>", cut(name, kLongestWord)) : "", split, grouped(counts.documents),
          grouped(counts.tokens), grouped(counts.bytes));
    };
    out += fmt::format(
        "<div class=\"scroll\"><table><thead><tr>{}<th>split</th><th class=\"n\">documents</th>"
        "<th class=\"n\">tokens</th><th class=\"n\">bytes</th></tr></thead>\n",
        named ? "<th>component</th>" : "");
    for (size_t i = 0; i < std::min(data.size(), kRows); ++i)
      out += row(data[i].name, "train", data[i].train) + row("", "held out", data[i].held_out);
    out += "</table></div>\n";
    if (data.size() > kRows) out += fmt::format("<p class=\"soft\">and {} more.</p>\n", data.size() - kRows);
    if (const int64_t tokens = data[0].train.tokens; data.size() == 1 && tokens > 0)
      out += fmt::format("<p class=\"soft\">The run saw every training token {:.3g} times on average.</p>\n",
                         view.history.tokens / static_cast<double>(tokens));
  }
  if (view.config) {
    FactTable facts;
    facts.row("training texts", words(view.config->data.train_urls));
    facts.row("held-out texts", words(view.config->data.validation_urls));
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
  if (wall) facts.row("from first start to last end", train::duration_text(*wall));
  const auto sum = [&](const char* name) -> const Bins* {
    const auto found = view.history.metrics.find(name);
    return found == view.history.metrics.end() || found->second.empty() ? nullptr : &found->second;
  };
  if (const Bins* steps = sum("throughput/step_seconds")) {
    const double seconds = steps->sum();
    facts.row("in steps that stand (goodput)",
              fmt::format("{:.1f} s{}", seconds, wall ? share(seconds, *wall) : ""));
    const int64_t done = view.history.last_step - view.history.first_step + 1;
    if (steps->values() != done)
      facts.row("", fmt::format("known of {} of {} steps", grouped(steps->values()), grouped(done)));
    for (const auto& [name, what] :
         {std::pair{"throughput/data_stall_seconds", "waiting for data"},
          std::pair{"throughput/checkpoint_stall_seconds", "handing over checkpoints"}})
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

std::string sessions_section(const RunView& view) {
  std::string out = heading("Machine and sessions");
  if (!view.record)
    return out + fmt::format("<p class=\"warn\">The record cannot be read: {}</p>\n",
                             cut(view.record_error, kLongestWord));
  const std::vector<train::Session>& all = view.record->sessions;
  const size_t first = all.size() > kRows ? all.size() - kRows : 0;
  out +=
      "<div class=\"scroll\"><table><thead><tr><th>started</th><th>for</th><th>steps</th><th>outcome</th>"
      "<th>machine and program</th></tr></thead>\n";
  for (size_t i = first; i < all.size(); ++i) {
    const train::Session& s = all[i];
    const auto seconds = session_seconds(s);
    out += fmt::format(
        "<tr><td class=\"w\">{}</td><td class=\"w\">{}</td><td class=\"w\">{} to {}</td><td>{}</td><td>{}, "
        "{}, commit "
        "<code>{}</code></td></tr>\n",
        cut(s.started, kLongestWord), seconds ? train::duration_text(*seconds) : "?", grouped(s.from_step),
        grouped(s.to_step), cut(s.outcome, kLongestWord), cut(s.cpu, kLongestWord),
        cut(s.compiler, kLongestWord), cut(s.source_commit.substr(0, 12), kLongestWord));
  }
  out += "</table></div>\n" + earlier(first, "sessions");
  if (!all.empty()) {
    FactTable facts;
    facts.row("last command", fmt::format("<code>ostro train {}</code>", words(all.back().argv)));
    out += facts.html();
  }
  return out;
}

std::string hashes_section(const RunView& view) {
  const train::GenesisEntry& genesis = view.chain.genesis();
  FactTable facts;
  facts.hash("run hash (chain head)", view.chain.head());
  facts.row("chain",
            fmt::format("{} entries, {} steps", grouped(static_cast<int64_t>(view.chain.links.size())),
                        grouped(view.chain.last_step())));
  facts.row("numerics version", html_escaped(genesis.numerics_version));
  facts.hash("program", genesis.program_hash);
  facts.hash("data", genesis.data_hash);
  facts.hash("tokenizer", genesis.tokenizer_hash);
  if (genesis.fork)
    facts.row("fork of", fmt::format("<span class=\"hash\">{}</span> at step {}",
                                     html_escaped(genesis.fork->head), grouped(genesis.fork->step)));
  return heading("Hashes") + facts.html();
}

std::string checkpoints_section(const RunView& view) {
  const std::vector<ViewedCheckpoint>& all = view.checkpoints;
  if (all.empty()) return "";
  const size_t first = all.size() > kRows ? all.size() - kRows : 0;
  std::string out =
      heading("Checkpoints") +
      "<table><thead><tr><th class=\"n\">step</th><th>hash of the state</th><th>the chain has</th>"
      "</tr></thead>\n";
  for (size_t i = first; i < all.size(); ++i) {
    const ViewedCheckpoint& one = all[i];
    std::string state = fmt::format("<span class=\"hash\">{}</span>", html_escaped(one.name)),
                chain = "the same";
    if (!one.error.empty())
      state = fmt::format("<span class=\"bad\">damaged: {}</span>", cut(one.error, kLongestWord)), chain = "";
    else if (one.in_chain.empty())
      chain = "none: saved by the clock or a signal";
    else if (one.in_chain != one.name)
      chain = fmt::format("<span class=\"bad\">another: {}</span>", html_escaped(one.in_chain));
    out += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>\n", grouped(one.step), state,
                       chain);
  }
  return out + "</table>\n" + earlier(first, "checkpoints");
}

std::string config_section(const RunView& view) {
  std::string out = heading("Configuration");
  out +=
      "<p class=\"soft\">The options that the run hash depends on; texts and tokenizer stand in it by their "
      "hashes.</p>\n";
  std::vector<std::string> amends;
  for (const train::ChainLink& link : view.chain.links)
    if (const auto* amend = std::get_if<train::AmendEntry>(&link.entry))
      amends.push_back(fmt::format("<li>after step {}: {}</li>", grouped(amend->step),
                                   cut(train::amend_text(amend->difference), kLongestWord)));
  if (!amends.empty()) {
    const size_t first = amends.size() > kRows ? amends.size() - kRows : 0;
    out += fmt::format("<p>Amended:</p><ul>{}</ul>\n",
                       fmt::join(amends.begin() + static_cast<int64_t>(first), amends.end(), "")) +
           earlier(first, "amends");
  }
  std::string text;
  const auto json = nlohmann::ordered_json::parse(train::decimal_json(view.config_now), nullptr, false);
  if (json.is_object()) outline(json, 0, text);
  out += fmt::format("<pre>{}</pre>\n", cut(text, kLongestText));
  if (!view.config_yaml.empty())
    out += fmt::format(
        "<details><summary>config.yaml: all options, to do the run again</summary><pre>{}</pre></details>\n",
        cut(view.config_yaml, kLongestText));
  return out;
}

}  // namespace ostro::page
