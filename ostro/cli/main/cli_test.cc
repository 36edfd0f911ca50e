// The command line as a user sees it: each case runs the program.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ostro/cli/main/shell_for_test.h"

namespace ostro::cli {
namespace {

TEST_CASE("help and version go to standard output; a bare command is a usage error") {
  const Outcome version = shell("$OSTRO --version");
  CHECK(version.out.find("ostro ") == 0);
  for (const char* line : {"\ncommit    ", "\nnumerics  ", "\nparquet   "})
    CHECK_MESSAGE(version.out.find(line) != std::string::npos, version.out);
  const Outcome help = shell("$OSTRO --help");
  CHECK(help.code == 0);
  CHECK(help.out.find("tokenizer") != std::string::npos);
  CHECK(shell("$OSTRO tokenizer --help").code == 0);
  CHECK(shell("$OSTRO tokenizer train --help").out.find("--vocab_size") != std::string::npos);
  CHECK(shell("$OSTRO 2>/dev/null").code == 2);
  CHECK(shell("$OSTRO tokenizer 2>/dev/null").code == 2);
}

TEST_CASE("mistakes give one line and a usage code") {
  auto error = [](const std::string& words) {
    const Outcome o = shell("$OSTRO " + words + " 2>&1 >/dev/null");
    CHECK_MESSAGE(o.code == 2, o.out);
    CHECK_MESSAGE(o.out.find("error: ") == 0, o.out);
    CHECK_MESSAGE(o.out.find('\n') == o.out.size() - 1, o.out);
    return o.out;
  };
  CHECK(error("tokenzer") ==
        "error: unknown command \"tokenzer\"; the nearest is \"tokenizer\" (see ostro --help)\n");
  CHECK(error("tokenizer trian").find("the nearest is \"train\"") != std::string::npos);
  CHECK(error("tokenizer train --vocab_size 300 --out x").find("--input") != std::string::npos);
  CHECK(error("tokenizer train --vocab_size many --input a --out x").find("--vocab_size") !=
        std::string::npos);
  CHECK(error("tokenizer train --vocab_size 9 --input a --out x").find("--vocab_size 9") !=
        std::string::npos);
  CHECK(error("tokenizer encode --tokenizer x --foo").find("--foo") != std::string::npos);
}

TEST_CASE("a tokenizer is trained, encodes and decodes") {
  const Folder folder;
  std::filesystem::create_directories(folder / "texts");
  std::ofstream(folder / "texts/a.txt") << "the cat and the hat and the bat\n";
  std::ofstream(folder / "texts/b.txt") << "the dog and the fog\n";
  const std::string t = folder / "t.json";
  const std::string train = "$OSTRO tokenizer train --vocab_size 270 --out ";
  REQUIRE(shell(train + t + " --input " + (folder / "texts")).code == 0);
  // Another order, another number of threads, a glob: the same file.
  REQUIRE(shell(train + (folder / "u.json") + " --threads 3 --input '" + (folder / "texts/*.txt") + "' " +
                (folder / "texts/a.txt"))
              .code == 0);
  CHECK(shell("cmp " + t + " " + (folder / "u.json")).code == 0);

  const Outcome lines = shell("printf 'the cat\\nhat' | $OSTRO tokenizer encode --tokenizer " + t);
  CHECK(std::count(lines.out.begin(), lines.out.end(), '\n') == 2);
  CHECK(shell("echo '" + lines.out + "' | $OSTRO tokenizer decode --tokenizer " + t)
            .out.find("the cat\nhat\n") == 0);
  const Outcome list = shell("printf 'the cat\\nhat' | $OSTRO tokenizer encode --json --tokenizer " + t);
  CHECK(list.out.front() == '[');
  CHECK(shell("echo '" + list.out + "' | $OSTRO tokenizer decode --tokenizer " + t)
            .out.find("the cat\nhat\n") == 0);

  const std::string chat = folder / "chat.json", more = " --special_tokens '<|user|>' '[INST]' ";
  const std::string inputs = "--input " + (folder / "texts") + " 2>&1";
  REQUIRE(shell(train + chat + more + inputs).code == 0);
  CHECK(shell("printf '<|endoftext|>[INST]<|user|>' | $OSTRO tokenizer encode --json --tokenizer " + chat)
            .out == "[0, 2, 1]\n");
  CHECK(shell(train + chat + more + "'<|endoftext|>' " + inputs).code == 0);
  CHECK(shell("printf '<|endoftext|>[INST]<|user|>' | $OSTRO tokenizer encode --json --tokenizer " + chat)
            .out == "[2, 1, 0]\n");
  CHECK(shell(train + chat + more + "'[INST]' " + inputs).out.find("error: special token \"[INST]\"") == 0);
  CHECK(shell("$OSTRO tokenizer train --vocab_size 258 --out " + chat + more + inputs)
            .out.find("error: --vocab_size 258: use 259 (256 bytes and 3 special tokens)") == 0);

  CHECK(shell("$OSTRO tokenizer encode --tokenizer " + (folder / "absent.json") + " </dev/null 2>/dev/null")
            .code == 1);
  CHECK(shell(train + t + " --input '" + (folder / "*.nothing") + "' 2>/dev/null").code == 1);
  CHECK(shell("echo the | $OSTRO tokenizer encode --tokenizer " + t + " 2>&1 >/dev/full")
            .out.find("error: standard output") == 0);
  CHECK(shell("echo the | $OSTRO tokenizer encode --tokenizer " + t + " >/dev/full 2>/dev/null").code == 1);
}

TEST_CASE("data check finds what was planted, whatever the threads, and says what it cannot use") {
  const Folder folder;
  const std::string question = "how many grey herons stood on the broken bridge when the ninth bell rang";
  std::ofstream corpus(folder / "a.jsonl");
  for (int i = 0; i < 40; ++i) {
    std::string text;
    for (int j = 0; j < 30; ++j) text += "w" + std::to_string(i * 100 + j) + " ";
    if (i == 3) text += question + "?";
    corpus << "{\"text\": \"" << text << "\"}\n";
    if (i == 5) corpus << "{\"text\": \"" << text << "\"}\n";
  }
  corpus.close();
  std::ofstream(folder / "eval.jsonl") << "{\"question\": \"" << question << "\"}\n";
  std::ofstream(folder / "empty.jsonl");
  std::ofstream(folder / "t.txt") << question << " and the bridge and the bell\n";
  REQUIRE(shell("$OSTRO tokenizer train --vocab_size 270 --out " + (folder / "t.json") + " --input " +
                (folder / "t.txt"))
              .code == 0);
  std::ofstream(folder / "c.yaml") << "data: {tokenizer: " + (folder / "t.json") + ", train_urls: [" +
                                          (folder / "a.jsonl") + "]}\nmodel: {type: llama}\n";
  const auto check = [&](const std::string& environment, const std::string& words) {
    return shell("export " + environment + "; $OSTRO data check --config " + (folder / "c.yaml") + " " +
                 words + " 2>&1");
  };
  const std::string eval = "--eval " + (folder / "eval.jsonl");
  const Outcome one = check("OSTRO_THREADS=1", eval + " --out " + (folder / "one.html"));
  CHECK_MESSAGE(one.code == 0, one.out);
  CHECK(one.out.find("documents          41\nwith eval data     1 (of 1 eval documents, 0 too short)\n"
                     "exact copies       1 in 1 clusters, ") == 0);
  CHECK(check("OSTRO_THREADS=2", eval + " --out " + (folder / "two.html")).code == 0);
  for (const std::string end : {".html", ".json"})
    CHECK(shell("cmp " + (folder / ("one" + end)) + " " + (folder / ("two" + end))).code == 0);
  CHECK(shell("grep -o 'a.jsonl:[0-9]*' " + (folder / "one.json") + " | tr '\n' ' '").out ==
        "a.jsonl:4 a.jsonl:6 a.jsonl:7 ");

  const auto fails = [&](const std::string& out, const std::string& words, const std::string& message) {
    const Outcome o = check("OSTRO_THREADS=1", "--out " + (folder / out) + " " + words);
    CHECK_MESSAGE(o.code != 0, o.out);
    CHECK_MESSAGE(o.out.find("error: ") == 0, o.out);
    CHECK_MESSAGE(o.out.find(message) != std::string::npos, o.out);
    CHECK_FALSE(std::filesystem::exists(folder / (out + ".tmp")));
  };
  fails("bad.html", "--eval " + (folder / "absent.jsonl"), "error: --eval: " + (folder / "absent.jsonl"));
  fails("bad.html", eval + " --eval_field answer", "eval.jsonl:1: has no field \"answer\"");
  fails("bad.html", "--data.train_urls '[" + (folder / "empty.jsonl") + "]'", "hold no text");
  fails("a.jsonl/report.html", eval, "a.jsonl: cannot make directory: Not a directory");
  std::filesystem::create_directories(folder / "taken.json");
  fails("taken.html", eval, "--out: " + (folder / "taken.json") + " is a directory");
}

// A store of one component, built from the command line, and what changes a byte of a file in it.
struct BuiltStore {
  const Folder folder;
  std::string config;

  BuiltStore() {
    std::ofstream corpus(folder / "a.jsonl");
    for (int i = 0; i < 200; ++i)
      corpus << "{\"text\": \""
             << (i == 7 ? "how many grey herons stood on the broken bridge " : "the bell rang ") << i
             << " times\"}\n";
    corpus.close();
    std::ofstream(folder / "t.txt") << "the grey herons stood on the bridge and the bell rang\n";
    REQUIRE(shell("$OSTRO tokenizer train --vocab_size 270 --out " + (folder / "t.json") + " --input " +
                  (folder / "t.txt"))
                .code == 0);
    config = write("c.yaml", "components: {web: {train_urls: [" + (folder / "a.jsonl") +
                                 "], validation_fraction: 0}}, id_type: levanter");
    const Outcome built = shell("$OSTRO data build --config " + config + " 2>&1");
    REQUIRE_MESSAGE(built.code == 0, built.out);
  }

  std::string write(const std::string& name, const std::string& data) const {
    std::ofstream(folder / name)
        << "data: {tokenizer: " + (folder / "t.json") + ", cache_dir: " + (folder / "cache") + ", " + data +
               "}\nmodel: {seq_len: 16, hidden_dim: 16, intermediate_dim: 16, num_layers: 1, "
               "num_heads: 2, num_kv_heads: 1}\ntrainer: {train_batch_size: 4}\n";
    return folder / name;
  }

  static void flip(const std::string& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    REQUIRE(byte >= 0);
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 4));
  }
};

TEST_CASE("data verify reads stores and Levanter caches, and names the array of a flipped byte") {
  const BuiltStore store;
  const std::string theirs = store.folder / "theirs", data = "/train/input_ids/data/c/0";
  std::filesystem::copy(store.folder / "cache/web", theirs, std::filesystem::copy_options::recursive);
  std::filesystem::remove(theirs + "/ledger.json");
  const std::string both = store.write(
      "both.yaml", "components: {web: {train_urls: [" + (store.folder / "a.jsonl") +
                       "], validation_fraction: 0}, theirs: {cache_dir: " + theirs +
                       "}}, train_weights: {web: 1, theirs: 1}, id_type: levanter, enforce_eos: true");
  const auto verify = [](const std::string& config) {
    return shell("$OSTRO data verify --config " + config + " 2>&1");
  };

  // What was not looked at is named, until the cache was checked once.
  std::ofstream(store.folder / "eval.txt") << "How many grey herons stood on the broken bridge?";
  const std::string check = "$OSTRO data check --config " + both + " --eval " + (store.folder / "eval.txt") +
                            " --out " + (store.folder / "r.html") + " 2>&1";
  const Outcome without = shell(check);
  CHECK_MESSAGE(without.out.find("documents          200\nwith eval data     1 (") == 0, without.out);
  CHECK_MESSAGE(without.out.find("not looked at      theirs: names no texts, and has no store to read: ") !=
                    std::string::npos,
                without.out);
  const Outcome built = shell("$OSTRO data build --component theirs --config " + both + " 2>&1");
  REQUIRE_MESSAGE(built.code == 0, built.out);
  const Outcome with = shell(check);
  CHECK_MESSAGE(with.out.find("documents          400\nwith eval data     2 (") == 0, with.out);
  CHECK(with.out.find("not looked at") == std::string::npos);
  CHECK(shell("grep -c 'theirs/train: row 8' " + (store.folder / "r.json")).code == 0);

  const Outcome good = verify(both);
  CHECK_MESSAGE(good.code == 0, good.out);
  CHECK(good.out.find("component theirs\nok       " + theirs + "/train/input_ids/data: ") !=
        std::string::npos);
  CHECK(good.out.find("damaged") == std::string::npos);

  const std::string held_out = "$OSTRO data batch --step 0 --split validation --config " + both + " 2>&1";
  CHECK(shell(held_out).out == "error: --component: needed, since data.components names theirs, web\n");
  CHECK(shell(held_out + " --component code").out ==
        "error: --component code: data.components names theirs, web\n");

  BuiltStore::flip(theirs + data, 100);
  const Outcome one = verify(both);
  CHECK_MESSAGE(one.code == 1, one.out);
  CHECK_MESSAGE(
      one.out.find("error: damaged Levanter cache: " + theirs + "/train/input_ids/data") != std::string::npos,
      one.out);
  BuiltStore::flip(store.folder / "cache/web/train/input_ids/offsets/c/0", 100);
  const Outcome two = verify(both);
  CHECK_MESSAGE(two.code == 1, two.out);
  CHECK_MESSAGE(two.out.find("damaged  damaged token store: " +
                             (store.folder / "cache/web/train/input_ids/offsets")) != std::string::npos,
                two.out);
  CHECK_MESSAGE(two.out.find("error: 2 places are damaged; the first: ") != std::string::npos, two.out);
  // The sums of chunks stand in pages of a file of their own.
  BuiltStore::flip(store.folder / "cache/web/train/input_ids/offsets/c/0", 100);
  CHECK(verify(store.config).code == 0);
  BuiltStore::flip(store.folder / "cache/web/chunks.table", 20);
  const Outcome page = verify(store.config);
  CHECK_MESSAGE(page.code == 1, page.out);
  CHECK_MESSAGE(page.out.find("chunks.table") != std::string::npos, page.out);
}

TEST_CASE(
    "data verify compares pack indices with their rows, and says of old and absent ones what they are") {
  const BuiltStore store;
  const auto pairs = [&](const std::string& name, int count) {
    std::ofstream out(store.folder / name);
    for (int i = 0; i < count; ++i)
      out << "{\"prompt\": \"how many herons stood\", \"response\": \"" << std::string(i % 7, 'x') << i
          << "\"}\n";
    return store.folder / name;
  };
  const auto config = [&](const std::string& name, const std::string& urls) {
    return store.write(name,
                       "components: {qa: {train_urls: [" + urls +
                           "], validation_fraction: 0.2, format: {type: supervised, input_field: prompt, "
                           "output_field: response}}}");
  };
  const auto run = [](const std::string& words) { return shell("$OSTRO data " + words + " 2>&1"); };
  const auto expect = [&](const std::string& words, int code, const std::vector<std::string>& says) {
    const Outcome o = run(words);
    CHECK_MESSAGE(o.code == code, o.out);
    for (const std::string& part : says) CHECK_MESSAGE(o.out.find(part) != std::string::npos, o.out);
  };
  const std::string a = pairs("a1.jsonl", 60), b = pairs("a2.jsonl", 20), one = config("one.yaml", a);
  REQUIRE(run("build --config " + one).code == 0);
  REQUIRE(run("build --config " + one + " --model.seq_len 64").code == 0);
  const std::string packs = store.folder / "cache/qa/packs", index = packs + "/train/packed-16-right.idx";
  expect("verify --config " + one, 0,
         {"ok       " + index + ": ", "ok       " + packs + "/validation/packed-64-right.idx: ",
          "pack indices: 4 ok, 0 stale, 0 damaged\n"});

  BuiltStore::flip(index, 8);
  const std::string wrong = index +
                            ": byte 8 is 0x05, and the rows of the store give 0x01: sequence 1 begins "
                            "with row 5 there, and should with row 1; delete the file: ";
  expect("verify --config " + one, 1,
         {"damaged  " + wrong, "pack indices: 3 ok, 0 stale, 1 damaged\n", "error: " + wrong});
  expect("verify --json --config " + one, 1, {"\"state\":\"damaged\"", "\"error\":\"" + wrong});
  std::filesystem::remove(index);
  expect("verify --config " + one, 0, {"pack indices: 3 ok, 0 stale, 0 damaged\n"});

  const std::string two = config("two.yaml", a + ", " + b);
  REQUIRE(run("build --append --config " + two).code == 0);
  expect("verify --config " + two, 0,
         {"stale    " + packs + "/train/packed-64-right.idx: ", "pack indices: 2 ok, 2 stale, 0 damaged\n"});
  const Outcome as_json = shell("$OSTRO data verify --json --config " + two);
  const auto found = nlohmann::json::parse(as_json.out)["qa"];
  CHECK(found["pack_indices"].size() == 4);
  CHECK(found["arrays"][0]["state"] == "ok");
  CHECK(found["ledger_hash"].get<std::string>().size() == 64);

  // Where the ends of the rows are damaged, that is the only damage.
  BuiltStore::flip(store.folder / "cache/qa/train/input_ids/offsets/c/0", 40);
  expect("verify --config " + two, 1,
         {"unread   " + index + ": ", "stale, 0 damaged, 1 unread\n", "error: damaged token store: "});
  BuiltStore::flip(store.folder / "cache/qa/train/input_ids/offsets/c/0", 40);
  std::filesystem::remove_all(packs);
  expect("verify --config " + two, 0, {"pack indices: none; made when they are first needed\n"});
}

TEST_CASE("data diff names every option that makes batches differ, and takes overrides") {
  const BuiltStore store;
  const auto diff = [&](const std::string& a, const std::string& b, const std::string& words, int code) {
    const Outcome o = shell("$OSTRO data diff " + a + " " + b + " --steps 3 " + words + " 2>&1");
    CHECK_MESSAGE(o.code == code, o.out);
    return o.out;
  };
  std::filesystem::copy(store.config, store.folder / "d.yaml");
  std::ofstream(store.folder / "d.yaml", std::ios::app) << "optimizer: {learning_rate: 0.5}\n";
  const std::string same = diff(store.config, store.folder / "d.yaml", "--trainer.seed 3", 0);
  CHECK_MESSAGE(same ==
                    "other options that differ, without a part in the batches: optimizer.learning_rate\n"
                    "the first 3 steps are equal: 12 sequences\n",
                same);
  std::string text = shell("cat " + store.config).out;
  const auto replace = [&text](const std::string& a, const std::string& b) {
    REQUIRE(text.find(a) != std::string::npos);
    text.replace(text.find(a), a.size(), b);
  };
  replace("train_batch_size: 4", "train_batch_size: [[0, 4], [2, 6]], seed: 9");
  replace("id_type: levanter", "id_type: levanter, shuffle: 8, stop_strategy: first_exhausted");
  std::ofstream(store.folder / "e.yaml") << text;
  const std::string other = diff(store.config, store.folder / "e.yaml", "", 1);
  for (const std::string line :
       {"data.shuffle: true in A, 8 in B\n", "data.stop_strategy: restart in A, first_exhausted in B\n",
        "trainer.seed: 0 in A, 9 in B\n", "trainer.train_batch_size: 4 in A, [[0,4],[2,6]] in B\n",
        "numerics.leaf_examples", "first difference: step 0, row "})
    CHECK_MESSAGE(other.find(line) != std::string::npos, other);
  CHECK(shell("$OSTRO data diff --help").out.find("--a.b.c VALUE") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cli
