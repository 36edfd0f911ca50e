// nvrtc_helper LIBRARY ARCHITECTURE... [-- FILE...]: compiles all device text with that NVRTC, and the text
// of each file, with the options of gpu/driver. Prints a line of JSON for each text and architecture: text,
// architecture, error or null, log (what the compiler says of registers and memory), milliseconds. Exit code
// 1 when a text does not compile.
#include <fmt/core.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ostro/cuda/text/device_text.h"
#include "ostro/gpu/driver/nvrtc.h"

int main(int argc, char** argv) {
  using namespace ostro;
  if (argc < 3) {
    fmt::print(stderr, "error: nvrtc_helper LIBRARY ARCHITECTURE... [-- FILE...]\n");
    return 2;
  }
  const auto nvrtc = gpu::Nvrtc::open_library(argv[1]);
  if (!nvrtc.ok()) {
    fmt::print(stderr, "error: {}\n", nvrtc.error().message());
    return 2;
  }
  std::vector<std::string> architectures;
  std::vector<std::pair<std::string, std::string>> texts;
  for (const cuda::DeviceFile& file : cuda::device_files())
    if (file.name.ends_with(".cu") && !file.name.starts_with("text/"))
      texts.emplace_back(file.name, cuda::device_file_text(file.name));
  bool files = false;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") {
      files = true;
    } else if (files) {
      std::ifstream in(word, std::ios::binary);
      texts.emplace_back(word,
                         std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()));
    } else {
      architectures.push_back(word);
    }
  }
  bool all = true;
  for (const std::string& architecture : architectures)
    for (const auto& [name, text] : texts) {
      std::vector<std::string> options = gpu::Nvrtc::options(architecture);
      options.emplace_back("--ptxas-options=-v");
      std::string log;
      const auto begin = std::chrono::steady_clock::now();
      const auto code = (*nvrtc)->compile(name, text, options, &log);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      nlohmann::json line = {
          {"text", name}, {"architecture", architecture}, {"log", log}, {"milliseconds", took.count()}};
      line["error"] = code.ok() ? nlohmann::json() : nlohmann::json(code.error().message());
      fmt::print("{}\n", line.dump());
      all = all && code.ok();
    }
  return all ? 0 : 1;
}
