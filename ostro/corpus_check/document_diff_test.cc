#include "ostro/corpus_check/document_diff.h"

#include <doctest/doctest.h>

#include "ostro/prepare/store/test_corpus.h"

namespace ostro::corpus_check {
namespace {

using Files = std::map<std::string, std::vector<std::string>>;  // .jsonl files of texts

// The stores of these files, which lie in the folder `name`.
std::shared_ptr<const batches::DataSet> stores_of(io::FileSystem& fs, const std::string& name,
                                                  const Files& files, double held_out = 0) {
  check_ok(fs.make_dirs(name));
  for (const auto& [file, texts] : files) {
    std::string lines;
    for (const std::string& text : texts) lines += fmt::format("{{\"text\": \"{}\"}}\n", text);
    prepare::write(fs, name + "/" + file, lines);
  }
  data::DataOptions options = prepare::corpus_options(name);
  options.validation_fraction = held_out;
  REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
  auto opened = batches::DataSet::open(fs, options, prepare::test_tokenizer());
  REQUIRE_MESSAGE(opened.ok(), opened.error().message());
  return *opened;
}

std::string differences(const Files& a, const Files& b, int64_t list = 100, double held_out = 0) {
  io::MemoryFileSystem fs;
  const auto text =
      document_diff_text(*stores_of(fs, "a", a, held_out), *stores_of(fs, "b", b, held_out), list);
  REQUIRE_MESSAGE(text.ok(), text.error().message());
  return *text;
}

std::vector<std::string> texts(int from, int to) {
  std::vector<std::string> out;
  for (int i = from; i < to; ++i) out.push_back(prepare::words(i, 12));
  return out;
}

TEST_CASE("documents that were removed, added and changed are named by file and number") {
  const std::vector<std::string> all = texts(0, 20);
  std::vector<std::string> without = all, with = all, changed = all;
  without.erase(without.begin() + 6);
  with.insert(with.begin() + 3, prepare::words(99, 12));
  changed[10] = prepare::words(99, 12);
  for (const double held_out : {0.0, 0.3}) {  // a document that is held out is one, too
    CAPTURE(held_out);
    const auto diff = [&](const auto& a, const auto& b) {
      return differences({{"x.jsonl", a}}, {{"x.jsonl", b}}, 100, held_out);
    };
    CHECK(diff(all, without) ==
          "1 documents only in A, 0 only in B, 0 changed\n  only in A: a/x.jsonl, document 7\n");
    CHECK(diff(all, with) ==
          "0 documents only in A, 1 only in B, 0 changed\n  only in B: b/x.jsonl, document 4\n");
    CHECK(diff(all, changed) ==
          "0 documents only in A, 0 only in B, 1 changed\n  changed: a/x.jsonl, document 11\n");
  }
}

TEST_CASE("a document that changed behind a removed or an added one is changed") {
  const std::vector<std::string> all = texts(0, 20);
  const auto diff = [&](const auto& b) { return differences({{"x.jsonl", all}}, {{"x.jsonl", b}}); };
  std::vector<std::string> b = all;
  b[15] = prepare::words(99, 12);
  b.erase(b.begin() + 6);
  b.push_back(prepare::words(98, 12));
  CHECK(diff(b) ==
        "1 documents only in A, 1 only in B, 1 changed\n  only in A: a/x.jsonl, document 7\n"
        "  changed: a/x.jsonl, document 16 (15 in B)\n  only in B: b/x.jsonl, document 20\n");
  b = all;
  b[15] = prepare::words(99, 12);
  b.insert(b.begin(), prepare::words(98, 12));
  CHECK(diff(b) ==
        "0 documents only in A, 1 only in B, 1 changed\n  only in B: b/x.jsonl, document 1\n"
        "  changed: a/x.jsonl, document 16 (17 in B)\n");
  b = all;
  b[3] = prepare::words(99, 12);
  std::swap(b[10], b[12]);  // another order is no change
  CHECK(diff(b) == "0 documents only in A, 0 only in B, 1 changed\n  changed: a/x.jsonl, document 4\n");
}

TEST_CASE("of documents that are there several times, the one that changed is found") {
  std::vector<std::string> a = texts(0, 5), b;
  a.push_back(a[1]);
  b = a;
  b[1] = prepare::words(99, 12);
  CHECK(differences({{"x.jsonl", a}}, {{"x.jsonl", b}}) ==
        "0 documents only in A, 0 only in B, 1 changed\n  changed: a/x.jsonl, document 2\n");
}

TEST_CASE("of documents that are there several times, one less is found") {
  std::vector<std::string> a = texts(0, 5), b;
  a.push_back(a[1]), a.push_back(a[1]);
  b = a;
  b.pop_back();
  CHECK(differences({{"x.jsonl", a}}, {{"x.jsonl", b}}).find("only in A: a/x.jsonl, document 7") !=
        std::string::npos);
}

TEST_CASE("files: one that is gone, one that was renamed, and another order") {
  const Files a = {{"1.jsonl", texts(0, 4)}, {"2.jsonl", texts(4, 9)}, {"3.jsonl", texts(9, 12)}};
  Files less = a, renamed = a;
  less.erase("2.jsonl");
  CHECK(differences(a, less) ==
        "5 documents only in A, 0 only in B, 0 changed\n  only in A: a/2.jsonl, 5 documents\n");
  renamed.erase("1.jsonl");
  renamed["9.jsonl"] = texts(0, 4);
  CHECK(differences(a, renamed) == "the documents are the same, in another order\n");
  const std::string many = differences({{"x.jsonl", texts(0, 9)}}, {{"x.jsonl", texts(20, 29)}}, 3);
  CHECK(many.starts_with("0 documents only in A, 0 only in B, 9 changed\n"));
  CHECK(many.ends_with("  and 6 lines more\n"));
  io::MemoryFileSystem fs;
  const auto same = stores_of(fs, "a", a);
  CHECK(*document_diff_text(*same, *same, 100) == "");
}

}  // namespace
}  // namespace ostro::corpus_check
