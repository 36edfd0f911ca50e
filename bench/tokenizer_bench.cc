// Encoding speed, on command, so that bench/tokenizer_compare.py can take turns with another library:
//
//   tokenizer_bench TOKENIZER RECORDS      RECORDS: u32 length and bytes for each document
//
// reads a command a line and answers with a line:
//   cold        new Encoder, one pass over all documents: nanoseconds of this thread's CPU time
//   warm        another pass of the last Encoder
//   each N      nanoseconds of each document, the least of N passes of one warm Encoder
//   ids FILE    writes u32 count and u32 ids for each document: the number of ids
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ostro/base/check.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace {

using namespace ostro;

int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

std::vector<std::string> read_records(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> out;
  for (uint32_t length; file.read(reinterpret_cast<char*>(&length), 4);) {
    out.emplace_back(length, '\0');
    file.read(out.back().data(), length);
  }
  return out;
}

class Bench {
 public:
  Bench(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> documents)
      : tokenizer_(tokenizer), documents_(std::move(documents)) {}

  int64_t pass(bool is_new) {
    if (is_new) encoder_.reset();
    const int64_t begin = cpu_ns();
    if (!encoder_) encoder_ = std::make_unique<tokenizer::Encoder>(tokenizer_);
    size_t total = 0;
    for (const std::string& document : documents_) {
      ids_.clear();
      encoder_->encode(document, {}, ids_);
      total += ids_.size();
    }
    const int64_t took = cpu_ns() - begin;
    OSTRO_CHECK(total == total_ || total_ == 0, "another number of ids than in an earlier pass");
    total_ = total;
    return took;
  }

  std::string each(int passes) {
    std::vector<int64_t> least(documents_.size(), INT64_MAX);
    pass(false);
    for (int i = 0; i < passes; ++i) {
      for (size_t d = 0; d < documents_.size(); ++d) {
        ids_.clear();
        const int64_t begin = cpu_ns();
        encoder_->encode(documents_[d], {}, ids_);
        least[d] = std::min(least[d], cpu_ns() - begin);
      }
    }
    return fmt::format("{}", fmt::join(least, " "));
  }

  size_t write_ids(const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    size_t total = 0;
    for (const std::string& document : documents_) {
      const auto ids = tokenizer_.encode(document);
      const auto count = static_cast<uint32_t>(ids.size());
      file.write(reinterpret_cast<const char*>(&count), 4);
      file.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(ids.size() * 4));
      total += ids.size();
    }
    return total;
  }

 private:
  const tokenizer::Tokenizer& tokenizer_;
  std::vector<std::string> documents_;
  std::unique_ptr<tokenizer::Encoder> encoder_;
  std::vector<uint32_t> ids_;
  size_t total_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tokenizer_bench TOKENIZER RECORDS\n");
    return 2;
  }
  const auto tokenizer = tokenizer::load_tokenizer(io::local_file_system(), argv[1]);
  if (!tokenizer.ok()) {
    fmt::print(stderr, "{}\n", tokenizer.error().message());
    return 1;
  }
  Bench bench(*tokenizer, read_records(argv[2]));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, path;
    words >> command;
    if (command == "cold" || command == "warm") {
      fmt::print("{}\n", bench.pass(command == "cold"));
    } else if (int passes = 0; command == "each" && words >> passes) {
      fmt::print("{}\n", bench.each(passes));
    } else if (command == "ids" && words >> path) {
      fmt::print("{}\n", bench.write_ids(path));
    } else {
      fmt::print(stderr, "unknown command: {}\n", line);
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}
