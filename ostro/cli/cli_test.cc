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

}  // namespace
