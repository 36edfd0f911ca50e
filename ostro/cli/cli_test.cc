// The command line as a user sees it: each case runs the program.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace {

struct Outcome {
  int code;
  std::string out;
};

// Runs a shell command line in which $OSTRO is the program; returns standard output.
Outcome shell(const std::string& line) {
  FILE* pipe = popen(("OSTRO=" OSTRO_BINARY "; " + line).c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("ostro_cli_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST_CASE("help and version go to standard output; a bare command is a usage error") {
  CHECK(shell("$OSTRO --version").out.find("ostro ") == 0);
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

}  // namespace
