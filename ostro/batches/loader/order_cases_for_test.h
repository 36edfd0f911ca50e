// order_cases, parts_by_definition: data sets in every order and form for tests, and which parts of rows
// their sequences hold, found the slow way. For this room's tests.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ostro/batches/loader/loader.h"
#include "ostro/prepare/store/test_corpus.h"

namespace ostro::batches {

inline constexpr int64_t kLength = 16, kSteps = 90;
inline constexpr const char* kRowTemplate =
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}.{% endgeneration %}"
    "{% else %}{{ m.content }}: {% endif %}{% endfor %}";

// Texts, conversations, pairs of prompt and response, and preferences, each as rows of a file of its own.
inline void write_sources(io::FileSystem& fs) {
  prepare::write_corpus(fs, "corpus");
  check_ok(fs.make_dirs("rows"));
  prepare::write(fs, "tokenizer.json", "{}");
  std::string lines;
  for (int i = 0; i < 70; ++i) {
    nlohmann::json row;
    const std::string question = prepare::words(i, 1 + i % 5), answer = prepare::words(300 + i, 1 + i % 9);
    row["messages"] = {{{"role", "user"}, {"content", question}},
                       {{"role", "assistant"}, {"content", i % 13 == 0 ? "" : answer}}};
    row["prompt"] = question;
    row["response"] = answer;
    row["chosen"] = answer;
    row["rejected"] = answer + " " + prepare::words(700 + i, 2);
    lines += row.dump() + "\n";
  }
  prepare::write(fs, "rows/r.jsonl", lines);
}

inline data::ComponentOptions component(const char* files,
                                        const data::RowFormat& format = data::TextFormat()) {
  return {.train_urls = {files},
          .validation_urls = {},
          .validation_fraction = 0.1,
          .format = format,
          .cache_dir = {}};
}

struct OrderCase {
  const char* name;
  data::DataOptions options;
  config::Staged<int64_t> sizes = 4;
};

inline data::Shuffle by_blocks(int64_t size, int64_t window) {
  return {std::variant<data::BlockShuffle>(data::BlockShuffle{size, window})};
}

inline std::vector<OrderCase> order_cases() {
  const data::ChatFormat chat{.chat_template = kRowTemplate};
  data::SupervisedFormat alone{.separate_with = "\n"};
  alone.pack = false;
  std::vector<OrderCase> all;
  const auto texts = [&](const char* name, const data::Shuffle& shuffle) -> OrderCase& {
    data::DataOptions options = prepare::corpus_options("corpus");
    options.shuffle = shuffle;
    return all.emplace_back(OrderCase{name, options});
  };
  texts("stored order", {false});
  texts("shuffled", {true});
  texts("eras", {int64_t{7}}).sizes.stages = {{0, 3}, {11, 8}, {40, 2}};
  texts("blocks", by_blocks(5, 3)).options.block_cross_document_attention = true;
  OrderCase& budget = texts("blocks, a part of the data", by_blocks(4, 2));
  budget.options.target_budget = 9000;
  budget.options.experiment_budget = 4000;
  const auto of = [&](const char* name, std::map<std::string, data::ComponentOptions> components,
                      config::Staged<data::Weights> weights) -> OrderCase& {
    data::DataOptions options;
    options.tokenizer = "tokenizer.json";
    options.components = std::move(components);
    options.train_weights = std::move(weights);
    options.mixture_block_size = 16;
    return all.emplace_back(OrderCase{name, options});
  };
  of("packed", {{"chat", component("rows", chat)}}, data::Weights{});
  of("a row each", {{"pairs", component("rows", alone)}}, data::Weights{});
  of("preferences", {{"pairs", component("rows", data::PreferenceFormat())}}, data::Weights{});
  config::Staged<data::Weights> staged;
  staged.stages = {{0, {{"a", 0.7}, {"b", 0.3}, {"c", 0}}},
                   {13, {{"a", 0}, {"b", 0.5}, {"c", 0.5}}},
                   {14, {{"a", 1}, {"b", 0.2}, {"c", 0}}},
                   {50, {{"a", 0.1}, {"b", 0}, {"c", 0.9}}}};
  OrderCase& mixed = of(
      "mixture",
      {{"a", component("corpus")}, {"b", component("rows", chat)}, {"c", component("corpus/text")}}, staged);
  mixed.sizes.stages = {{0, 5}, {30, 9}};
  return all;
}

// The parts of rows that a sequence of a component holds, by row: from its documents, and for texts from the
// rows of its targets.
inline std::vector<std::pair<int64_t, RowPart>> parts_by_definition(const DataSet& stores,
                                                                    const Loader& loader, size_t c,
                                                                    int64_t sequence) {
  const auto spans = loader.reader(c).documents(sequence);
  REQUIRE(spans.ok());
  const data::RowFormat& format = stores.parts()[c].component.format;
  const bool whole_rows = data::is_packed(format) || data::is_preference(format);
  std::vector<std::pair<int64_t, RowPart>> parts;
  for (const DocumentSpan& span : *spans)
    parts.push_back({span.row,
                     {sequence, span.begin, span.end, whole_rows ? span.begin : 0, whole_rows ? span.end : 0,
                      span.first_token}});
  if (whole_rows) return parts;
  const int64_t first = sequence * kLength + 1;  // the first target
  const auto targets = loader.reader(c).stream().rows_of(first, kLength);
  REQUIRE(targets.ok());
  for (const data::RowSpan& span : *targets) {
    if (parts.back().first < span.row) parts.push_back({span.row, {sequence, kLength, kLength, 0, 0, 0}});
    for (auto& [row, part] : parts)
      if (row == span.row) {
        part.target_begin = std::max<int64_t>(span.begin - first, 0);
        part.target_end = std::min<int64_t>(span.end - first, kLength);
      }
  }
  return parts;
}

}  // namespace ostro::batches
