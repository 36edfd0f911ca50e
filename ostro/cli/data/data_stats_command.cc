// ostro data stats
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/packing/packing.h"
#include "ostro/batches/packing/pair_sequences.h"
#include "ostro/cli/data/data_session.h"
#include "ostro/cli/main/commands.h"
#include "ostro/data/store/store_stats.h"
#include "ostro/data/store/store_text.h"
#include "ostro/data/store/token_store.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

using data::Component;
using data::Split;

nlohmann::json length_json(const data::LengthStats& stats) {
  nlohmann::json json = {{"shortest", stats.shortest}, {"longest", stats.longest}};
  for (size_t q = 0; q < stats.quantiles.size(); ++q)
    json[fmt::format("p{}", data::kLengthQuantiles[q])] = stats.quantiles[q];
  nlohmann::json powers = nlohmann::json::object();
  for (size_t i = 0; i < stats.by_power.size(); ++i)
    if (stats.by_power[i] > 0) powers[std::to_string(int64_t{1} << i)] = stats.by_power[i];
  json["rows_from"] = std::move(powers);
  return json;
}

// Rows by their length, a line a power of two.
std::string bars(const data::LengthStats& stats) {
  const int64_t most = *std::max_element(stats.by_power.begin(), stats.by_power.end());
  std::string out;
  for (size_t i = 0; i < stats.by_power.size(); ++i) {
    const int64_t rows = stats.by_power[i];
    if (rows == 0) continue;
    const auto width = static_cast<size_t>(
        std::ceil(40 * static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(most, 1))));
    out += fmt::format("    {:>10} tokens and more  {:>12}  {}\n", i == 0 ? 0 : int64_t{1} << i, rows,
                       std::string(width, '#'));
  }
  return out;
}

nlohmann::json packing_json(const batches::PackCounts& counts, const batches::PackRule& rule) {
  return {{"seq_len", rule.seq_len},         {"sequences", counts.sequences},
          {"cut_rows", counts.cut_rows},     {"cut_tokens", counts.cut_tokens},
          {"empty_rows", counts.empty_rows}, {"lost_rows", counts.lost_rows}};
}

// How rows fill sequences of the configuration's length, and what is left out.
std::string packing_text(const batches::PackCounts& counts, const data::LengthStats& lengths,
                         const batches::PackRule& rule) {
  // The targets of all rows: one less than tokens, of a row without tokens none.
  const int64_t used = lengths.tokens - (lengths.rows - lengths.empty) - counts.cut_tokens -
                       (counts.lost_tokens - counts.lost_rows),
                places = counts.sequences * rule.seq_len;
  const std::string left_out = batches::left_out_text(counts);
  return fmt::format(
      "  {} sequences of {}, {:.1f} % of them padding{}{}\n", counts.sequences, rule.seq_len,
      100.0 * static_cast<double>(places - used) / static_cast<double>(std::max<int64_t>(places, 1)),
      left_out.empty() ? "" : "; ", left_out);
}

Status print_stats(const prepare::Session& session, int64_t step, bool json) {
  double weights = 0;
  for (const Component& c : data::components_of(session.options))
    weights += data::weight_of(session.options, c.name, step);
  nlohmann::json all = nlohmann::json::object();
  std::string out;
  for (const Component& c : session.components) {
    ASSIGN_OR_RETURN(const auto store,
                     data::TokenStore::open(session.fs, session.options, c, session.tokenizer));
    const data::StoreLedger& ledger = store->ledger();
    const double share = weights > 0 ? data::weight_of(session.options, c.name, step) / weights : 0;
    ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* files, store->files());
    const data::FileCounts counts = data::file_counts(*files);
    nlohmann::json entry = {{"ledger_hash", store->hash()}, {"mixture_share", share},
                            {"files", counts.files},        {"file_bytes", counts.file_bytes},
                            {"empty", counts.empty},        {"no_loss", counts.no_loss},
                            {"skipped", counts.skipped},    {"repaired", counts.repaired},
                            {"left_out", counts.left_out},  {"splits", nlohmann::json::object()}};
    if (!c.name.empty())
      out += fmt::format("component {}: {:.4g} of the mixture at step {}\n", c.name, share, step);
    out += data::place_text(c.cache_dir, ledger,
                            fmt::format("{} files of {} bytes", counts.files, counts.file_bytes));
    out += data::counts_text(*files);
    const auto rule = batches::pack_rule(c.format, session.seq_len);
    for (const Split split : data::kSplits) {
      const data::TokenStream& stream = store->split(split);
      ASSIGN_OR_RETURN(const data::LengthStats lengths, data::length_stats(stream));
      const data::SplitLedger& s = ledger.split(split);
      entry["splits"][data::split_name(split)] = {{"rows", s.rows},
                                                  {"tokens", s.tokens},
                                                  {"bytes", s.bytes},
                                                  {"tokens_per_byte", stream.tokens_per_byte()},
                                                  {"tokens_per_row", length_json(lengths)}};
      out += fmt::format("{:<10}  {} rows, {} tokens, {} bytes of text, {:.4f} tokens a byte\n",
                         data::split_name(split), s.rows, s.tokens, s.bytes, stream.tokens_per_byte());
      if (s.rows == 0) continue;
      const auto& q = lengths.quantiles;
      out += fmt::format(
          "  tokens a row: {} to {}, mean {:.1f}; 1 % {}, 10 % {}, 50 % {}, 90 % {}, 99 % {}\n",
          lengths.shortest, lengths.longest, static_cast<double>(s.tokens) / static_cast<double>(s.rows),
          q[0], q[1], q[2], q[3], q[4]);
      out += bars(lengths);
      if (data::is_preference(c.format)) {
        ASSIGN_OR_RETURN(const batches::PackCounts cut,
                         batches::PairSequences(store, split, session.seq_len).packing());
        entry["splits"][data::split_name(split)]["pairs"] = {{"seq_len", session.seq_len},
                                                             {"cut", cut.cut_rows},
                                                             {"cut_tokens", cut.cut_tokens},
                                                             {"lost", cut.lost_rows},
                                                             {"equal", cut.equal_pairs}};
        if (const std::string text = batches::left_out_text(cut); !text.empty())
          out += fmt::format("  {}; each text has {} targets (model.seq_len)\n", text, session.seq_len);
      }
      if (!rule) continue;
      ASSIGN_OR_RETURN(const batches::PackCounts packing, batches::count_packs(stream, *rule));
      entry["splits"][data::split_name(split)]["packing"] = packing_json(packing, *rule);
      out += packing_text(packing, lengths, *rule);
    }
    out += fmt::format("ledger hash {}\n", store->hash());
    all[c.name] = std::move(entry);
  }
  if (!json) return write_stdout(out);
  if (session.components[0].name.empty()) all = all[""];
  return write_stdout(all.dump() + "\n");
}

}  // namespace

int data_stats_command(Args args) {
  std::string component;
  bool json = false;
  int64_t step = 0;
  args.summary(
      "What is in the token stores: rows, tokens, bytes, how long rows are, what was skipped or repaired, "
      "and the\n"
      "share of each component in the mixture.");
  args.option("--component", &component, "NAME", "only this one");
  args.option("--step", &step, "N", "the step whose mixture is meant (default: 0)");
  args.flag("--json", &json, "one line of JSON");
  args.config();
  if (const auto code = args.parse()) return *code;
  if (step < 0) return report_error(invalid_argument(fmt::format("--step {}: use 0 or more", step)));
  return with_data_session(args, component,
                           [&](const prepare::Session& session) { return print_stats(session, step, json); });
}

}  // namespace ostro::cli
