// Stores of conversations, prompt/response pairs and prebuilt ids: they hold what the format gives for every
// row, and batches have its weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/log_capture_for_test.h"
#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/loader/loader.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::batches;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

constexpr const char* kTemplate =
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}.{% endgeneration %}"
    "{% else %}{{ m.content }}: {% endif %}{% endfor %}";

// Rows that every format can read; also a blank line, a row without messages, and one that is not an object.
std::vector<std::string> write_rows(io::FileSystem& fs) {
  check_ok(fs.make_dirs("in"));
  std::vector<std::string> lines;
  for (int i = 0; i < 40; ++i) {
    nlohmann::json row;
    const std::string question = words(i, 2 + i % 7), answer = words(100 + i, 1 + i % 11);
    row["messages"] = {{{"role", "user"}, {"content", question}},
                       {{"role", "assistant"}, {"content", answer}},
                       {{"role", "user"}, {"content", "and"}},
                       {{"role", "assistant"}, {"content", question}}};
    if (i == 5) row["messages"] = nlohmann::json::array();
    row["prompt"] = i == 5 ? "" : question;
    row["response"] = i == 5 ? "" : answer;
    row["chosen"] = answer;
    row["rejected"] = answer + words(200 + i, 1 + i % 3);
    for (int k = 0; k < (i == 5 ? 0 : 3 + i % 20); ++k) {
      row["ids"].push_back((i * 7 + k * 3) % 256);
      row["weights"].push_back(k % 3 * 0.25);
    }
    if (i == 5) row["ids"] = row["weights"] = nlohmann::json::array();
    lines.push_back(row.dump());
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n" + (text.empty() ? " \n" : "");
  write(fs, "in/a.jsonl", text + "7\n");
  write(fs, "tokenizer.json", "{}");  // a chat template looks for what lies beside it
  return lines;
}

DataOptions options_of(const RowFormat& format) {
  DataOptions options;
  options.tokenizer = "tokenizer.json";
  options.cache_dir = "cache";
  options.enforce_eos = !std::holds_alternative<PrebuiltFormat>(format);
  options.on_bad_row = OnBadRow::kSkip;
  options.components["some"] = {
      .train_urls = {"in"}, .validation_urls = {}, .validation_fraction = 0, .format = format};
  return options;
}

}  // namespace

TEST_CASE("component formats: options that components have of their own are refused above them") {
  DataOptions options;
  options.tokenizer = "tokenizer.json";
  options.components["web"].train_urls = {"web"};
  CHECK(options.validate().ok());
  options.validation_fraction = 0.2;
  const Status refused = options.validate();
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("data.validation_fraction") != std::string::npos);
}

TEST_CASE("component formats: ids, weights and counts are what the format says of each row") {
  const ChatFormat chat{.chat_template = kTemplate};
  const SupervisedFormat pairs{.separate_with = "\n"};
  const PrebuiltFormat ids{.input_ids_key = "ids", .loss_weights_key = "weights"};
  for (const RowFormat& format : {RowFormat(chat), RowFormat(pairs), RowFormat(ids)}) {
    const DataOptions options = options_of(format);
    CAPTURE(format.index());
    io::MemoryFileSystem fs;
    const std::vector<std::string> lines = write_rows(fs);
    const auto data = build_data_set(fs, options, test_tokenizer(), small_settings());
    REQUIRE_MESSAGE(data.ok(), (data.ok() ? "" : data.error().message()));
    const TokenStore& store = *(*data)->parts()[0].store;
    CHECK(verify_store(fs, "cache/some").ok());
    const auto formatter =
        make_row_formatter(fs, format, "f", "", test_tokenizer(), {.enforce_eos = options.enforce_eos});
    REQUIRE(formatter.ok());
    tokenizer::Encoder encoder(test_tokenizer());
    const TokenStream& stream = store.split(Split::kTrain);
    int64_t row = 0, empty = 0;
    for (const std::string& line : lines) {
      Row bytes;
      bytes.bytes = line;
      const auto expected = (*formatter)->format(bytes, encoder);
      REQUIRE_MESSAGE(expected.ok(), (expected.ok() ? "" : expected.error().message()));
      if (expected->skip != RowSkip::kNone) {
        ++empty;
        continue;
      }
      REQUIRE(row < stream.rows());
      const auto ends = stream.row_ends(row, 1);
      REQUIRE(ends.ok());
      std::vector<int32_t> tokens(static_cast<size_t>((*ends)[1] - (*ends)[0]));
      std::vector<float> weights(tokens.size());
      check_ok(stream.read((*ends)[0], tokens));
      check_ok(stream.read_weights((*ends)[0], weights));
      CHECK(std::vector<uint32_t>(tokens.begin(), tokens.end()) == expected->ids);
      CHECK(weights ==
            (expected->weights.empty() ? std::vector<float>(tokens.size(), 1.0f) : expected->weights));
      CHECK(*stream.row_hash(row) == hash_row(expected->ids, expected->weights));
      ++row;
    }
    CHECK(row == stream.rows());
    CHECK(row > 30);
    const FileLedger& file = (*store.files())->at(0);
    CHECK(file.empty + file.no_loss == empty);
    CHECK(file.skipped == 1);
  }
}

TEST_CASE(
    "component formats: a store with weights that has whole chunks is extended to what one build gives") {
  const ChatFormat chat{.chat_template = kTemplate};
  const SupervisedFormat pairs{.separate_with = "\n"};
  const PrebuiltFormat ids{.input_ids_key = "ids", .loss_weights_key = "weights"};
  for (const RowFormat& format : {RowFormat(chat), RowFormat(pairs), RowFormat(ids)}) {
    CAPTURE(format.index());
    io::MemoryFileSystem fs;
    write_rows(fs);
    const std::string rows = *fs.read_file("in/a.jsonl");
    DataOptions options = options_of(format);
    std::vector<std::string>& urls = options.components["some"].train_urls;
    urls = {"in/a.jsonl"};
    const auto build = [&](bool append) {
      BuildSettings settings = small_settings();
      settings.append = append;
      auto ledger = build_store(fs, options, components_of(options).front(), test_tokenizer(), settings);
      REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
      check_ok(verify_store(fs, options.cache_dir + "/some"));
      return ledger->hash();
    };
    write(fs, "in/a.jsonl", rows + rows);  // the offsets have a chunk of 64 and more
    build(false);
    for (const char* more : {"in/b.jsonl", "in/c.jsonl"}) {
      write(fs, more, rows);
      urls.push_back(more);
      build(true);
    }
    const std::string grown = build(true);  // nothing to add
    options.cache_dir = "whole";
    CHECK(build(false) == grown);
  }
}

TEST_CASE("component formats: the pack indices that a build makes are all that a reader needs") {
  DataOptions options = options_of(SupervisedFormat{.separate_with = "\n"});
  io::MemoryFileSystem fs;
  write_rows(fs);
  const auto data = build_data_set(fs, options, test_tokenizer(), small_settings());
  REQUIRE(data.ok());
  check_ok(make_packs(fs, options, components_of(options).front(), test_tokenizer(), 32));
  const auto files = *fs.glob("cache/some/**");
  for (const Split split : kSplits) {
    CHECK(*fs.exists(fmt::format("cache/some/packs/{}/packed-32-right.idx", split_name(split))));
    CHECK(open_sequences((*data)->parts()[0], split, options, 32).ok());
  }
  CHECK(*fs.glob("cache/some/**") == files);  // nothing more was made
}

TEST_CASE("component formats: a store of format 3 is read as one of today, with the same hash and root") {
  const DataOptions options =
      options_of(PrebuiltFormat{.input_ids_key = "ids", .loss_weights_key = "weights"});
  io::MemoryFileSystem fs;
  write_rows(fs);
  const Component component = components_of(options).front();
  const auto built = build_store(fs, options, component, test_tokenizer(), small_settings());
  REQUIRE(built.ok());
  const auto read = [&] {
    const auto store = TokenStore::open(fs, options, component, test_tokenizer());
    REQUIRE_MESSAGE(store.ok(), (store.ok() ? "" : store.error().message()));
    CHECK((*store)->hash() == built->hash());
    CHECK(**(*store)->files() == built->files);
    const TokenStream& stream = (*store)->split(Split::kTrain);
    std::vector<int32_t> tokens(static_cast<size_t>(stream.tokens()));
    std::vector<float> weights(tokens.size());
    check_ok(stream.read(0, tokens));
    check_ok(stream.read_weights(0, weights));
    CHECK(stream.rows_of(0, stream.tokens())->size() == static_cast<size_t>(stream.rows()));
    return std::pair(tokens, weights);
  };
  const auto expected = read();
  const auto root = DataSet::open(fs, options, test_tokenizer()).value()->roots().value();
  CHECK(root == std::map<std::string, std::string>{{"some", built->root}});
  make_format_3(fs, "cache/some");
  CHECK(verify_store(fs, "cache/some").ok());
  CHECK(read() == expected);
  CHECK(*DataSet::open(fs, options, test_tokenizer()).value()->roots() == root);
  // The next build finds it finished and leaves it as it is.
  CHECK(build_store(fs, options, component, test_tokenizer(), small_settings())->root.empty());
}

TEST_CASE("component formats: batches of conversations keep them apart and weigh the answers alone") {
  io::MemoryFileSystem fs;
  write_rows(fs);
  DataOptions options = options_of(ChatFormat{.chat_template = kTemplate});
  options.train_weights = Weights{{"some", 1.0}};
  const auto data = build_data_set(fs, options, test_tokenizer(), small_settings());
  REQUIRE_MESSAGE(data.ok(), (data.ok() ? "" : data.error().message()));
  const auto loader = Loader::create(*data, options, 64, config::Staged<int64_t>(4), 1);
  REQUIRE_MESSAGE(loader.ok(), (loader.ok() ? "" : loader.error().message()));
  const auto batch = loader->batch(0, 1);
  REQUIRE(batch.ok());
  REQUIRE(batch->segment_ids.size() == batch->tokens.size());
  int64_t loss = 0, none = 0;
  for (const float weight : batch->loss_mask) ++(weight == 1.0f ? loss : none);
  CHECK(loss > 20);
  CHECK(none > 20);
  // Another template is other data.
  options.components["some"].format = ChatFormat{.chat_template = std::string(kTemplate) + " "};
  const auto other = build_data_set(fs, options, test_tokenizer(), small_settings());
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message().find("format") != std::string::npos);
}

TEST_CASE("component formats: a conversation that is cut before its answer is left out and counted") {
  constexpr int64_t kLength = 6;
  for (const bool pack : {true, false}) {
    io::MemoryFileSystem fs;
    write_rows(fs);
    const DataOptions options = options_of(ChatFormat{.chat_template = kTemplate, .pack = pack});
    const auto data = build_data_set(fs, options, test_tokenizer(), small_settings());
    REQUIRE_MESSAGE(data.ok(), (data.ok() ? "" : data.error().message()));
    const DataSet::Part& part = (*data)->parts()[0];
    const TokenStream& stream = part.store->split(Split::kTrain);
    const auto reader = open_sequences(part, Split::kTrain, options, kLength).value();
    int64_t lost = 0;
    const std::vector<int64_t> ends = *stream.row_ends(0, stream.rows());
    for (size_t row = 0; row + 1 < ends.size(); ++row) {
      if (ends[row + 1] - ends[row] - 1 <= kLength) continue;
      std::vector<float> weights(kLength);
      check_ok(stream.read_weights(ends[row] + 1, weights));
      lost += std::count(weights.begin(), weights.end(), 1.0f) == 0 ? 1 : 0;
    }
    CHECK(lost > 3);
    CHECK(reader->packing()->lost_rows == lost);
    CHECK(left_out_text(*reader->packing()).find("nothing that counts is kept") != std::string::npos);
    Batch batch = make_batch(0, 1, batch_shape(**data, Split::kTrain, options, kLength));
    for (int64_t i = 0; i < reader->sequences(true); ++i) {
      check_ok(reader->read(i, batch, 0));
      CHECK(std::count(batch.loss_mask.begin(), batch.loss_mask.end(), 1.0f) > 0);
    }
  }
}

TEST_CASE("component formats: answers without an end are told") {
  for (const bool ends : {false, true}) {
    io::MemoryFileSystem fs;
    write_rows(fs);
    std::string marked = kTemplate;  // behind the block, or inside it
    const std::string end = ends ? ".{% endgeneration %}" : "{% endgeneration %}.";
    marked.replace(marked.find(".{% endgeneration %}"), end.size(), end);
    const DataOptions options = options_of(ChatFormat{.chat_template = marked});
    LogCapture log;
    REQUIRE(build_data_set(fs, options, test_tokenizer(), small_settings()).ok());
    CAPTURE(log.lines);
    CHECK((log.lines.find("does not learn to end its answers") == std::string::npos) == ends);
  }
}

TEST_CASE("component formats: a preference row is a sequence of two texts, each cut and padded by itself") {
  const DataOptions options = options_of(PreferenceFormat{});
  io::MemoryFileSystem fs;
  write_rows(fs);
  const auto data = build_data_set(fs, options, test_tokenizer(), small_settings());
  REQUIRE_MESSAGE(data.ok(), (data.ok() ? "" : data.error().message()));
  CHECK(verify_store(fs, "cache/some").ok());
  const int64_t length = 12;
  const TokenStream& stream = (*data)->parts()[0].store->split(Split::kTrain);
  const int64_t pairs = stream.rows();
  CHECK(pairs == 39);  // one of 40 has an empty prompt
  const auto reader = open_sequences((*data)->parts()[0], Split::kTrain, options, length);
  REQUIRE(reader.ok());
  CHECK((*reader)->sequences(true) == pairs);
  Batch batch = make_batch(0, pairs, batch_shape(**data, Split::kTrain, options, length));
  CHECK(batch.pairs);
  int64_t cut = 0;
  for (int64_t row = 0; row < pairs; ++row) {
    check_ok((*reader)->read(row, batch, row));
    const std::vector<int64_t> ends = *stream.row_ends(row, 1);
    std::vector<int32_t> ids(static_cast<size_t>(ends[1] - ends[0]));
    std::vector<float> parts(ids.size());
    check_ok(stream.read(ends[0], ids));
    check_ok(stream.read_weights(ends[0], parts));
    const size_t middle = static_cast<size_t>(
        std::find_if(parts.begin(), parts.end(), [](float p) { return p >= 2; }) - parts.begin());
    for (size_t side = 0; side < 2; ++side)
      for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
        const size_t from = (side == 0 ? 0 : middle) + i, end = side == 0 ? middle : ids.size();
        const size_t at = static_cast<size_t>(row * 2 * length + static_cast<int64_t>(side) * length) + i;
        const bool there = from + 1 < end;
        cut += i + 1 == static_cast<size_t>(length) && from + 2 < end ? 1 : 0;
        CHECK(batch.tokens[at] == (there ? ids[from] : 0));
        CHECK(batch.targets[at] == (there ? ids[from + 1] : 0));
        CHECK(batch.loss_mask[at] == (there && static_cast<int>(parts[from + 1]) % 2 == 1 ? 1.0f : 0.0f));
      }
  }
  CHECK(cut > 5);
  // What is lost is counted: pairs of which a text is cut, and of them those without an answer, or with the
  // same.
  PackCounts expected;
  for (int64_t row = 0; row < pairs; ++row) {
    const std::vector<int64_t> ends = *stream.row_ends(row, 1);
    std::vector<int32_t> ids(static_cast<size_t>(ends[1] - ends[0]));
    std::vector<float> parts(ids.size());
    check_ok(stream.read(ends[0], ids));
    check_ok(stream.read_weights(ends[0], parts));
    const auto middle =
        std::find_if(parts.begin(), parts.end(), [](float p) { return p >= 2; }) - parts.begin();
    const int64_t size = static_cast<int64_t>(ids.size()), most = length + 1;
    const int64_t first = std::min<int64_t>(middle, most), second = std::min<int64_t>(size - middle, most);
    if (first + second == size) continue;
    ++expected.cut_rows;
    expected.cut_tokens += size - first - second;
    const auto answers = [&](int64_t begin, int64_t end) {
      return std::any_of(parts.begin() + begin + 1, parts.begin() + end,
                         [](float p) { return p == 1 || p == 3; });
    };
    const bool both = answers(0, first) && answers(middle, middle + second);
    expected.lost_rows += both ? 0 : 1;
    expected.equal_pairs += both && std::equal(ids.begin(), ids.begin() + first, ids.begin() + middle,
                                               ids.begin() + middle + second);
  }
  expected.sequences = pairs;
  CHECK(expected.cut_rows > 5);
  CHECK(expected.equal_pairs > 0);
  CHECK((*reader)->packing().value() == expected);
  // Scores come along with the pairs of training batches and of held-out ones.
  std::vector<double> scores;
  for (int64_t i = 0; i < 2 * pairs; ++i) scores.push_back(static_cast<double>(i) / 8);
  const auto scored = (*data)->with_scores(
      {{std::make_shared<const PairScores>(scores), std::make_shared<const PairScores>()}});
  CHECK(scored->hash() == (*data)->hash());
  DataOptions weighted = options;
  weighted.train_weights.stages[0].value = {{"some", 1}};
  const auto loader = Loader::create(scored, weighted, length, 4, 7);
  REQUIRE_MESSAGE(loader.ok(), (loader.ok() ? "" : loader.error().message()));
  for (int64_t step = 0; step < 12; ++step) {
    const auto made = loader->batch(step, 2);
    REQUIRE(made.ok());
    CHECK(made->seq_len == 2 * length);
    for (size_t row = 0; row < 4; ++row) {
      CHECK(made->reference[2 * row] == static_cast<double>(2 * made->sequences[row]) / 8);
      CHECK(made->reference[2 * row + 1] == static_cast<double>(2 * made->sequences[row] + 1) / 8);
    }
  }
}

TEST_CASE("component formats: pairs and other rows are not mixed") {
  DataOptions options = options_of(PreferenceFormat{});
  options.components["text"].train_urls = {"in"};
  options.train_weights.stages[0].value = {{"some", 1}, {"text", 1}};
  CHECK(options.validate().error().message().find("data.components.text.format.type: text and preference") ==
        0);
  options.components["text"].format = PreferenceFormat{};
  CHECK(options.validate().ok());
}
