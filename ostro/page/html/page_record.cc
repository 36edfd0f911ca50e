// The sections from the run's records: sessions, hashes, checkpoints, configuration.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/audit/record/amend.h"
#include "ostro/base/html.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/clock_text.h"
#include "ostro/chain/data_record.h"
#include "ostro/page/html/page.h"
#include "ostro/page/html/page_parts.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::page {
namespace {

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

std::string sessions_section(const RunView& view) {
  std::string out = heading("Machine and sessions");
  if (!view.record)
    return out + fmt::format("<p class=\"warn\">The record cannot be read: {}</p>\n",
                             cut(view.record_error, kLongestWord));
  const std::vector<chain::Session>& all = view.record->sessions;
  const size_t first = all.size() > kRows ? all.size() - kRows : 0;
  out +=
      "<div class=\"scroll\"><table><thead><tr><th>started</th><th>for</th><th>steps</th><th>outcome</th>"
      "<th>machine and program</th></tr></thead>\n";
  for (size_t i = first; i < all.size(); ++i) {
    const chain::Session& s = all[i];
    const auto seconds = session_seconds(s);
    out += fmt::format(
        "<tr><td class=\"w\">{}</td><td class=\"w\">{}</td><td class=\"w\">{}{}</td><td>{}</td><td>{}, "
        "{}, commit <code>{}</code></td></tr>\n",
        cut(s.started, kLongestWord), seconds ? chain::duration_text(*seconds) : "", grouped(s.from_step),
        s.ended.empty() ? "" : " to " + grouped(s.to_step), cut(view.outcomes[i], kLongestWord),
        cut(s.cpu, kLongestWord), cut(s.compiler, kLongestWord),
        cut(s.source_commit.substr(0, 12), kLongestWord));
  }
  out += "</table></div>\n" + and_earlier(first, "sessions");
  if (!all.empty()) {
    FactTable facts;
    facts.row("last command",
              fmt::format("<code class=\"command\">ostro train {}</code>", cut_words(all.back().argv)));
    out += facts.html();
  }
  return out;
}

std::string hashes_section(const RunView& view) {
  const chain::GenesisEntry& genesis = view.chain.genesis();
  FactTable facts;
  facts.hash("run hash (chain head)", view.chain.head());
  facts.row("chain",
            fmt::format("{} entries, {} steps", grouped(static_cast<int64_t>(view.chain.links.size())),
                        grouped(view.chain.last_step())));
  facts.row("numerics version", html_escaped(genesis.numerics_version));
  facts.hash("program", genesis.program_hash);
  for (const chain::DataRecord& data : chain::data_records(view.chain))
    facts.hash(
        data.step == genesis.step() ? "data" : fmt::format("data since step {}", grouped(data.step + 1)),
        data.hash);
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
  const auto as_in_chain = [](const ViewedCheckpoint& one) {
    return one.error.empty() && one.in_chain == one.name;
  };
  const auto agree = static_cast<size_t>(std::count_if(all.begin(), all.end(), as_in_chain));
  std::string out = heading("Checkpoints");
  if (agree > 0)
    out += fmt::format("<p class=\"soft\">{} of {} {} the hash that the chain has for {}.</p>\n",
                       grouped(static_cast<int64_t>(agree)), grouped(static_cast<int64_t>(all.size())),
                       agree == 1 ? "has" : "have", agree == 1 ? "its step" : "their steps");
  out += "<table><thead><tr><th class=\"n\">step</th><th>hash of the state</th></tr></thead>\n";
  for (size_t i = first; i < all.size(); ++i) {
    const ViewedCheckpoint& one = all[i];
    std::string state = hash_html(one.name);
    if (!one.error.empty())
      state = fmt::format("<span class=\"bad\">damaged: {}</span>", cut(one.error, kLongestWord));
    else if (one.in_chain.empty())
      state += " <small>not in the chain: saved by the clock or a signal</small>";
    else if (one.in_chain != one.name)
      state += fmt::format(" <span class=\"bad\">the chain has another hash: {}</span>",
                           html_escaped(one.in_chain));
    out += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td></tr>\n", grouped(one.step), state);
  }
  return out + "</table>\n" + and_earlier(first, "checkpoints");
}

std::string config_section(const RunView& view) {
  std::string out = heading("Configuration");
  out +=
      "<p class=\"soft\">The options that the run hash depends on. Texts and tokenizer are covered by their "
      "hashes.</p>\n";
  std::vector<std::string> amends;
  for (const chain::ChainLink& link : view.chain.links)
    if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry))
      amends.push_back(fmt::format("<li>after step {}: {}</li>", grouped(amend->step),
                                   cut(audit::amend_text(amend->difference), kLongestWord)));
  if (!amends.empty()) {
    const size_t first = amends.size() > kRows ? amends.size() - kRows : 0;
    out += fmt::format("<p>Amended:</p><ul>{}</ul>\n",
                       fmt::join(amends.begin() + static_cast<int64_t>(first), amends.end(), "")) +
           and_earlier(first, "amends");
  }
  std::string text;
  const auto json = nlohmann::ordered_json::parse(chain::decimal_json(view.config_now), nullptr, false);
  if (json.is_object()) outline(json, 0, text);
  out += fmt::format("<pre>{}</pre>\n", cut(text, kLongestText));
  if (!view.config_yaml.empty())
    out += fmt::format(
        "<details><summary>config.yaml: all options, to do the run again</summary><pre>{}</pre></details>\n",
        cut(view.config_yaml, kLongestText));
  return out;
}

}  // namespace ostro::page
