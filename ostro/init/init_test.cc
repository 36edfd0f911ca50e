// Survey, held-out texts, sizes and the configuration of `ostro init`.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "ostro/init/config_text.h"
#include "ostro/init/folder_globs.h"
#include "ostro/init/token_sample.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/prepare/store/documents.h"
#include "ostro/train/options/config.h"

namespace ostro::init {
namespace {

using Strings = std::vector<std::string>;

void write(io::FileSystem& fs, const std::string& path, const std::string& text) {
  check_ok(fs.make_dirs(io::parent_path(path)));
  check_ok(fs.write_file(path, text));
}

std::string prose(int number, size_t bytes) {
  static const char* const kWords[] = {"rain", "falls", "on", "the", "old", "town", "and", "every", "roof"};
  std::string text;
  for (auto state = static_cast<uint64_t>(number + 1); text.size() < bytes;) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += std::string(kWords[(state >> 33) % 9]) + " ";
  }
  return text.substr(0, bytes);
}

Survey surveyed(io::FileSystem& fs, const Strings& places) {
  auto found = survey(fs, {places, {"train.yaml", "cache", "runs"}});
  REQUIRE_MESSAGE(found.ok(), found.error().message());
  return *found;
}
std::string survey_error(io::FileSystem& fs, const Strings& places) {
  const auto found = survey(fs, {places, {"train.yaml", "cache", "runs"}});
  return found.ok() ? "" : found.error().message();
}

Machine machine() { return {.cores = 2, .memory = {8'000'000'000, "MemAvailable"}, .peak_flops = 2e11}; }

TEST_CASE("a folder gives globs by extension, without what is no text and without what a run writes") {
  io::MemoryFileSystem fs;
  write(fs, "texts/a.txt", prose(1, 900));
  write(fs, "texts/deep/b.txt", prose(2, 800));
  write(fs, "texts/c.md", prose(3, 700));
  write(fs, "texts/.hidden.txt", "hidden");
  write(fs, "texts/photo.jpg", std::string("\xff\xd8\x00\x10", 4));
  write(fs, "texts/old.zip", "PK");
  write(fs, "texts/settings.json", "{\n  \"a\": 1\n}\n");
  write(fs, "texts/empty.txt2", "");
  const Survey s = surveyed(fs, {"texts"});
  CHECK(s.urls == Strings{"texts/**/*.md", "texts/**/*.txt"});
  CHECK(s.documents == 3);
  CHECK(s.text_bytes == 2400);
  CHECK(s.is_whole);
  CHECK(s.left_out_count == 4);
  const std::string left_out = fmt::format("{}", fmt::join(s.left_out, "; "));
  CHECK(left_out.find("texts/empty.txt2: it is empty") != std::string::npos);
  CHECK(left_out.find("texts/old.zip: compressed files are read as") != std::string::npos);
}

TEST_CASE("in the folder that a run writes into, no glob names what it writes") {
  io::MemoryFileSystem fs;
  write(fs, "a.txt", prose(1, 900));
  write(fs, "more/b.txt", prose(2, 900));
  write(fs, "notes.yaml", "a: 1");
  write(fs, "runs/old/log.txt", "a log");
  write(fs, "cache/x.txt", "tokens");
  const Survey s = surveyed(fs, {"."});
  CHECK(fmt::format("{}", fmt::join(s.urls, " ")) ==
        "*.txt notes.yaml more/**/*.txt");  // *.yaml would name train.yaml
  CHECK(s.documents == 3);
}

TEST_CASE("files of which some are no texts are listed by name") {
  io::MemoryFileSystem fs;
  write(fs, "t/a.dat", "text");
  write(fs, "t/b.dat", std::string("\0\1", 2));
  write(fs, "t/README", "read me");
  CHECK(surveyed(fs, {"t"}).urls == Strings{"t/README", "t/a.dat"});
}

TEST_CASE("rows: the field that holds the text is found, the same in all files") {
  io::MemoryFileSystem fs;
  write(fs, "rows/a.jsonl", "\n{\"id\": 7, \"title\": \"rain\", \"story\": \"it rained and rained\"}\n");
  CHECK(surveyed(fs, {"rows"}).text_key == "story");
  write(fs, "rows/a.jsonl", "{\"story\": \"it rained and rained\", \"content\": \"x\"}\n");
  CHECK(surveyed(fs, {"rows"}).text_key == "content");
  write(fs, "rows/a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\nbroken\n");
  CHECK(survey_error(fs, {"rows"}).find("rows/a.jsonl:3: not valid JSON") != std::string::npos);
  write(fs, "rows/a.jsonl", "{\"messages\": [1, 2]}\n");
  CHECK(survey_error(fs, {"rows"}).find("line 1 has no string") != std::string::npos);
}

TEST_CASE("names with wildcards are names, and what is written for them names the same files") {
  io::MemoryFileSystem fs;
  write(fs, "my [texts]/notes [1].txt", prose(1, 1000));
  write(fs, "my [texts]/what?.txt", prose(2, 1100));
  write(fs, "my [texts]/***.txt", prose(3, 1200));
  write(fs, "my t/notes 1.txt", "what a set would match");
  Survey s = surveyed(fs, {"my [texts]"});
  CHECK(s.urls == Strings{"my [[]texts]/**/*.txt"});
  CHECK(s.documents == 3);
  CHECK(s.left_out_count == 0);
  const HoldOut h = choose_hold_out(s);
  CHECK(h.validation_urls == Strings{"my [[]texts]/notes [[]1].txt"});
  CHECK(h.train_urls == Strings{"my [[]texts]/[*][*][*].txt", "my [[]texts]/what[?].txt"});
  const auto named = data::find_sources(fs, {h.train_urls, h.validation_urls});
  REQUIRE_MESSAGE(named.ok(), named.error().message());
  CHECK(named->missing == "");
  CHECK(named->files.size() == 3);
  s = surveyed(fs, {"my [texts]/***.txt"});  // a file of that name is there
  CHECK(s.urls == Strings{"my [[]texts]/[*][*][*].txt"});
  CHECK(s.documents == 1);
  CHECK(surveyed(fs, {"my t*/*.txt"}).urls == Strings{"my t*/*.txt"});
  // Listed by name, and with a bracket in the extension.
  write(fs, "my [texts]/broken.txt", std::string("\0", 1));
  CHECK(surveyed(fs, {"my [texts]"}).urls ==
        Strings{"my [[]texts]/[*][*][*].txt", "my [[]texts]/notes [[]1].txt", "my [[]texts]/what[?].txt"});
  write(fs, "odd/a.[x]", "text");
  CHECK(surveyed(fs, {"odd"}).urls == Strings{"odd/**/*.[[]x]"});
}

TEST_CASE("a folder above the one that a run writes into: no glob names what lies there later") {
  io::MemoryFileSystem fs;
  const std::string work = io::base_name(io::absolute_path("."));
  write(fs, "../" + work + "/a.txt", prose(1, 900));
  write(fs, "../" + work + "/deep/b.txt", prose(2, 900));
  write(fs, "../beside/c.txt", prose(3, 900));
  const auto urls = [&] { return surveyed(fs, {".."}).urls; };
  const std::string name = "../" + io::glob_literal(work);
  CHECK(urls() == (name < "../beside"
                       ? Strings{name + "/*.txt", name + "/deep/**/*.txt", "../beside/**/*.txt"}
                       : Strings{"../beside/**/*.txt", name + "/*.txt", name + "/deep/**/*.txt"}));
  const auto before = data::find_sources(fs, {urls(), {}});
  for (const char* later : {"/runs/1/log.txt", "/runs/log.txt", "/cache/log.txt"})
    write(fs, "../" + work + later, "a log");
  const auto after = data::find_sources(fs, {urls(), {}});
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  CHECK(before->files.size() == 3);
  CHECK(after->files.size() == 3);
}

TEST_CASE("files whose name is not UTF-8 are left out, and refused where they are named") {
  io::MemoryFileSystem fs;
  write(fs, "t/a.txt", prose(1, 900));
  write(fs, "t/caf\xe9.txt", prose(2, 900));
  const Survey s = surveyed(fs, {"t"});
  CHECK(s.urls == Strings{"t/a.txt"});
  CHECK(s.left_out == Strings{"t/caf\xe9.txt: its name is not UTF-8"});
  for (const char* place : {"t/caf\xe9.txt", "t/*.txt"}) {
    const auto refused = survey(fs, {{place}, {}});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    CHECK(refused.error().message() ==
          "t/caf\xe9.txt: its name is not UTF-8, and a configuration cannot name it; rename it");
  }
}

TEST_CASE("what cannot be surveyed says why") {
  io::MemoryFileSystem fs;
  CHECK(survey_error(fs, {"gone"}) == "gone: there is no such file or folder");
  CHECK(survey_error(fs, {"gone/*.txt"}).find("gone/*.txt: names no file") != std::string::npos);
  check_ok(fs.make_dirs("empty"));
  CHECK(survey_error(fs, {"empty"}) ==
        "empty: holds no text; put .txt, .md, .jsonl or .parquet files there (it is empty)");
  write(fs, "pictures/a.jpg", std::string("\xff\xd8\x00", 3));
  CHECK(survey_error(fs, {"pictures"})
            .find("pictures: holds no text; put .txt, .md, .jsonl or .parquet files "
                  "there (1 files are left out: pictures/a.jpg: ") == 0);
  write(fs, "a.zip", "PK");
  CHECK(survey_error(fs, {"a.zip"}).find("a.zip: compressed files") != std::string::npos);
}

TEST_CASE("of few files one is held out by name, of many documents a share that is not empty") {
  io::MemoryFileSystem fs;
  for (int i = 0; i < 3; ++i) write(fs, fmt::format("few/{}.txt", i), prose(i, 1000 + 100 * i));
  HoldOut h = choose_hold_out(surveyed(fs, {"few"}));
  CHECK(h.validation_urls == Strings{"few/0.txt"});
  CHECK(h.train_urls == Strings{"few/1.txt", "few/2.txt"});
  CHECK(h.fraction == 0);
  CHECK(h.held_out_bytes == 1000);
  write(fs, "few/small.txt", "hello");
  write(fs, "few/medium.txt", prose(9, 300));
  CHECK(choose_hold_out(surveyed(fs, {"few"})).validation_urls == Strings{"few/medium.txt"});

  // Most of the text in one file, and empty ones that a glob names.
  for (const char* name : {"a", "b"}) write(fs, fmt::format("empty/{}.txt", name), "");
  write(fs, "empty/c.txt", "hello");
  write(fs, "empty/d.txt", "hello you");
  CHECK(choose_hold_out(surveyed(fs, {"empty/*.txt"})).why.find("2 documents: nothing can be held out") == 0);
  write(fs, "empty/e.txt", prose(1, 5000));
  CHECK(choose_hold_out(surveyed(fs, {"empty/*.txt"})).validation_urls == Strings{"empty/c.txt"});

  write(fs, "two/a.txt", prose(1, 500));
  write(fs, "two/b.txt", prose(2, 500));
  h = choose_hold_out(surveyed(fs, {"two"}));
  CHECK(h.validation_urls.empty());
  CHECK(h.fraction == 0);
  CHECK(h.why.find("2 documents: nothing can be held out") == 0);

  for (const int count : {3, 10, 60, 2000}) {
    CAPTURE(count);
    std::string lines;
    for (int i = 0; i < count; ++i) lines += fmt::format("{{\"text\": \"{}\"}}\n", prose(i, 50));
    write(fs, "rows/a.jsonl", lines);
    const Survey s = surveyed(fs, {"rows"});
    h = choose_hold_out(s);
    CHECK(h.train_urls == s.urls);
    if (h.fraction == 0) {
      CHECK(count < 10);
      continue;
    }
    int64_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += prepare::is_held_out(prose(i, 50), h.fraction) ? 50 : 0;
    CHECK(bytes > 0);
    CHECK(bytes == h.held_out_bytes);
    CHECK(h.fraction <= 0.5);
  }
}

TEST_CASE("sizes grow with text, time and memory, and nothing else") {
  const auto sizes = [](int64_t bytes, double minutes, double flops, int64_t memory) {
    Machine m = machine();
    m.peak_flops = flops;
    m.memory.bytes = memory;
    const int64_t vocab = choose_vocab_size(bytes);
    return choose_sizes({.bytes = bytes,
                         .documents = std::max<int64_t>(3, bytes / 3000),
                         .bytes_per_token = 3.0,
                         .held_out_bytes = 0},
                        vocab, m, minutes);
  };
  double before = 0;
  for (int64_t bytes = 600; bytes < 100'000'000'000; bytes *= 3) {
    CAPTURE(bytes);
    const Sizes s = sizes(bytes, 5, 2e11, 8'000'000'000);
    CHECK(s.parameters >= before);
    before = s.parameters;
    CHECK(s.seconds < 5 * 60 * 1.1);
    CHECK(s.epochs < 13);
    CHECK(s.batch >= 1);
    CHECK(static_cast<double>(s.batch * s.seq_len) <= static_cast<double>(bytes) / 3.0);  // a batch fits
    CHECK(s.hidden_dim % s.num_heads == 0);
    CHECK(s.num_heads % s.num_kv_heads == 0);
  }
  const int64_t gigabytes = 5'000'000'000;
  CHECK(sizes(gigabytes, 600, 2e11, 8'000'000'000).parameters >
        sizes(gigabytes, 5, 2e11, 8'000'000'000).parameters);
  CHECK(sizes(gigabytes, 5, 2e13, 8'000'000'000).parameters >
        sizes(gigabytes, 5, 2e11, 8'000'000'000).parameters);
  const Sizes large = sizes(gigabytes, 1e5, 2e13, 500'000'000'000),
              small = sizes(gigabytes, 1e5, 2e13, 4'000'000'000);
  CHECK(small.parameters < large.parameters);
  CHECK(small.memory_bytes < 0.75 * 4e9);
  CHECK(small.why.at("model").find("the memory allows no larger one") != std::string::npos);
  // A few texts are the same run on every machine that is fast enough.
  CHECK(sizes(50'000, 5, 1e11, 4'000'000'000).steps == sizes(50'000, 5, 9e12, 4'000'000'000).steps);
}

TEST_CASE("the configuration loads, has the chosen sizes, and says why behind each") {
  io::MemoryFileSystem fs;
  for (int i = 0; i < 3; ++i) write(fs, fmt::format("my texts/{}.txt", i), prose(i, 20'000));
  const Survey s = surveyed(fs, {"my texts"});
  const HoldOut h = choose_hold_out(s);
  const auto density = bytes_per_token(s.sample, 320, 2);
  REQUIRE(density.ok());
  CHECK(*density > 2);
  CHECK(*density < 8);
  const Sizes sizes =
      choose_sizes({.bytes = 40'000, .documents = 3, .bytes_per_token = *density, .held_out_bytes = 20'000},
                   320, machine(), 5);
  const std::string id = run_id("my texts/");
  CHECK(id == "my_texts");
  const std::string yaml = config_text(s, h, sizes, machine(), {.id = id}, "ostro init");
  const auto config = train::parse_train_config(yaml, "train.yaml", models::builtin_models());
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  CHECK_FALSE(config->data.tokenizer);
  CHECK(config->data.vocab_size == 320);
  CHECK(config->data.train_urls == h.train_urls);
  CHECK(config->data.validation_urls == h.validation_urls);
  CHECK(config->trainer.num_train_steps == sizes.steps);
  CHECK(config->trainer.id == "my_texts");
  CHECK(config->model_options().seq_len() == sizes.seq_len);
  for (const char* key :
       {"vocab_size", "seq_len", "hidden_dim", "num_layers", "learning_rate", "weight_decay",
        "train_batch_size", "num_train_steps", "steps_per_eval", "checkpointer", "validation_urls"}) {
    CAPTURE(key);
    const size_t at = yaml.find(fmt::format("  {}:", key));
    REQUIRE(at != std::string::npos);
    const std::string line = yaml.substr(at, yaml.find('\n', at) - at);
    CHECK(line.find(" # ") != std::string::npos);
    CHECK(line.size() > line.find(" # ") + 5);
  }
  const std::string said = choices_text(s, h, sizes, machine());
  CHECK(said.find("vocab_size 320: for 40.0 KB of training text, ") != std::string::npos);
  CHECK(said.find("training: about ") != std::string::npos);
  CHECK(said.find("an estimate") != std::string::npos);
}

TEST_CASE("no path and no typed word leaves its comment") {
  io::MemoryFileSystem fs;
  for (int i = 0; i < 3; ++i) write(fs, fmt::format("t/{}\n  evil: 1\t.txt", i), prose(i, 20'000));
  const Survey s = surveyed(fs, {"t"});
  const HoldOut h = choose_hold_out(s);
  const Sizes sizes = choose_sizes(
      {.bytes = 40'000, .documents = 3, .bytes_per_token = 4, .held_out_bytes = 20'000}, 320, machine(), 5);
  const std::string yaml =
      config_text(s, h, sizes, machine(), {.id = "t"}, "ostro init --out a\nb\x01\x7f\xff.yaml");
  CHECK(yaml.find("`ostro init --out a b  \xef\xbf\xbd.yaml`") != std::string::npos);
  CHECK(yaml.find("# t/0   evil: 1 .txt of 3 files") != std::string::npos);
  const auto config = train::parse_train_config(yaml, "train.yaml", models::builtin_models());
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  CHECK(config->data.validation_urls == h.validation_urls);
}

TEST_CASE("names of runs are names of folders") {
  CHECK(run_id(".") == "run");
  CHECK(run_id("a/b*.txt") == "run");
  CHECK(run_id("../some/texts") == "texts");
  CHECK(run_id("book.txt") == "book.txt");
}

}  // namespace
}  // namespace ostro::init
