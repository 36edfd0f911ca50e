// Damaged and made-up pickles for the reader of Grok-1's files.
//   fuzz_pickle [--count N] [--seed FIRST|drawn] [--seconds S]
// Case number i depends on seed + i alone. Each must be refused with one clear error, or read as arrays that
// lie in the file; reading takes only a few bytes of it, and bounded memory. What an error must name: the
// file, the byte, the reason.
// --seconds goes on from the seed until the time is over. Run it under sanitizers: PRESET=asan-ubsan.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "ostro/base/test_size.h"
#include "ostro/grok/pickle/opcodes.h"
#include "ostro/grok/pickle/pickle_for_test.h"

using namespace ostro;
using namespace ostro::grok;

namespace {

constexpr uint8_t kOpcodes[] = {
    kMark,      kEmptyTuple,      kStop,        kBinBytes, kShortBinBytes, kBinInt,     kBinInt1, kBinInt2,
    kNone,      kReduce,          kBinUnicode,  kBuild,    kBinGet,        kLongBinGet, kTuple,   kSetItems,
    kEmptyDict, kProto,           kNewObj,      kTuple1,   kTuple2,        kTuple3,     kNewTrue, kNewFalse,
    kBinBytes8, kShortBinUnicode, kStackGlobal, kMemoize,  kFrame};

constexpr const char* kTexts[] = {"__main__",
                                  "QuantizedWeight8bit",
                                  "numpy.core.multiarray",
                                  "numpy._core.multiarray",
                                  "_reconstruct",
                                  "numpy",
                                  "ndarray",
                                  "dtype",
                                  "ml_dtypes",
                                  "bfloat16",
                                  "f4",
                                  "i1",
                                  "<",
                                  "|",
                                  ">",
                                  "weight",
                                  "scales",
                                  "os",
                                  "system",
                                  "builtins",
                                  "eval"};

class Case {
 public:
  explicit Case(uint64_t seed) : rng_(seed) {}

  std::string make() {
    std::string bytes = one_in(5) ? made_up() : good();
    if (one_in(4)) bytes = spliced(bytes, good());
    for (uint64_t edits = one_in(8) ? 0 : 1 + below(one_in(3) ? 12 : 3); edits > 0; --edits) edit(bytes);
    if (!one_in(4)) repair_frame(bytes);
    return bytes;
  }

 private:
  uint64_t below(uint64_t n) { return rng_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  int64_t extent() { return static_cast<int64_t>(one_in(6) ? below(400) : below(9)); }

  // A file as the release's, of small arrays.
  std::string good() {
    StoredTensor tensor;
    if (one_in(2)) {
      tensor = array_of(one_in(3) ? Dtype::kBf16 : Dtype::kF32, {});
      for (uint64_t rank = below(5); rank > 0; --rank) tensor.weight.shape.push_back(extent());
    } else {
      const int64_t k = extent() + 1, n = extent() + 1;
      tensor = one_in(2) ? quantized_of({k, n}, {1, n}) : quantized_of({2, 8 * k, n}, {2, 8, n});
    }
    if (bytes_needed(tensor.weight.dtype, tensor.weight.shape) > 100'000) tensor.weight.shape = {70'000};
    return pickle_of(tensor, static_cast<char>(rng_()));
  }

  std::string number(int bytes) {
    static constexpr uint64_t kEdges[] = {0,
                                          1,
                                          2,
                                          3,
                                          0x7f,
                                          0x80,
                                          0xff,
                                          0x7fff,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xffffffffffffffff};
    const uint64_t value = one_in(2) ? kEdges[below(std::size(kEdges))] : below(40);
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  }

  // An opcode with an operand that mostly fits it.
  std::string opcode() {
    const uint8_t op = one_in(30) ? static_cast<uint8_t>(rng_()) : kOpcodes[below(std::size(kOpcodes))];
    std::string out(1, static_cast<char>(op));
    const std::string text = kTexts[below(std::size(kTexts))];
    if (op == kShortBinUnicode || op == kShortBinBytes) {
      out += static_cast<char>(text.size());
      out += text;
    } else if (op == kBinUnicode || op == kBinBytes) {
      out += static_cast<char>(text.size()) + std::string(3, '\0') + text;
    } else if (op == kBinInt1 || op == kBinGet || op == kProto) {
      out += static_cast<char>(below(one_in(4) ? 256 : 40));
    } else if (op == kBinInt2) {
      out += number(2);
    } else if (op == kBinInt || op == kLongBinGet) {
      out += number(4);
    } else if (op == kFrame || op == kBinBytes8) {
      out += number(8);
    }
    return out;
  }

  std::string made_up() {
    std::string out = "\x80\x04";
    if (one_in(2)) out += "\x95" + std::string(8, '\0');
    for (uint64_t n = below(60); n > 0; --n) out += opcode();
    return out + ".";
  }

  std::string spliced(const std::string& a, const std::string& b) {
    return a.substr(0, below(a.size() + 1)) + b.substr(below(b.size() + 1));
  }

  void edit(std::string& bytes) {
    const size_t at = below(bytes.size() + 1), length = below(one_in(4) ? 64 : 8);
    switch (below(8)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(kOpcodes[below(std::size(kOpcodes))]);
        break;
      case 2: bytes.insert(at, opcode()); break;
      case 3: bytes.erase(at, length); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size() + 1), length)); break;
      case 5: {
        const std::string edge = number(static_cast<int>(1 + below(8)));
        if (at + edge.size() <= bytes.size()) bytes.replace(at, edge.size(), edge);
        break;
      }
      case 6:
        if (one_in(4)) bytes.resize(at);
        break;
      case 7: {
        const std::string from = kTexts[below(std::size(kTexts))], to = kTexts[below(std::size(kTexts))];
        const size_t found = bytes.find(from);
        if (found != std::string::npos && found > 0 && from.size() > 2) {
          bytes.replace(found, from.size(), to);
          bytes[found - 1] = static_cast<char>(to.size());
        }
        break;
      }
    }
  }

  // The length of the first frame, if the file begins with one, becomes what is left of the file.
  void repair_frame(std::string& bytes) {
    if (bytes.size() < 11 || bytes[2] != static_cast<char>(kFrame)) return;
    const uint64_t length = bytes.size() - 11;
    for (size_t i = 0; i < 8; ++i) bytes[3 + i] = static_cast<char>(length >> (8 * i));
  }

  std::mt19937_64 rng_;
};

// What is wrong with the answer, or nothing.
std::optional<std::string> complaint(const BytesFile& file, const Result<StoredTensor>& read) {
  if (file.bytes_read() > 2048 * 512) return "reads too much";
  if (read.ok()) {
    for (const StoredArray* array : {&read->weight, read->scales ? &*read->scales : nullptr}) {
      if (array == nullptr) continue;
      if (array->begin < 0 || array->bytes < 0 || array->begin > file.size() - array->bytes)
        return "lies outside";
      if (bytes_needed(array->dtype, array->shape) != array->bytes)
        return "has other bytes than its shape needs";
    }
    return std::nullopt;
  }
  const std::string& text = read.error().message();
  const ErrorCode code = read.error().code();
  if (code != ErrorCode::kCorrupt && code != ErrorCode::kUnsupported) return "error of another kind: " + text;
  if (!text.starts_with(file.path() + ": byte ")) return "an error without a place: " + text;
  for (const char c : text) {
    if (c < 0x20 || c > 0x7e) return "an error with control characters";
  }
  return std::nullopt;
}

struct Options {
  int64_t count = 2000;
  uint64_t seed = 1;
  double seconds = 0;
};

int run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(options.seconds));
  std::map<std::string, int64_t> reasons;
  int64_t done = 0, accepted = 0;
  for (; options.seconds > 0 ? Clock::now() < end : done < options.count; ++done) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(done);
    const BytesFile file(Case(seed).make());
    const auto read = read_pickle(file);
    if (const auto wrong = complaint(file, read)) {
      fmt::print("seed {}: {}\n", seed, *wrong);
      return 1;
    }
    if (read.ok()) {
      ++accepted;
    } else {  // "byte N: opcode X (NAME): reason", without the numbers
      std::string reason;
      for (const char c : read.error().message().substr(file.path().size()).substr(0, 90))
        if (c < '0' || c > '9') reason += c;
      ++reasons[reason];
    }
  }
  fmt::print("result: fuzz_pickle: seeds {} .. {}: {} read, {} refused for {} reasons\n", options.seed,
             options.seed + static_cast<uint64_t>(done) - 1, accepted, done - accepted, reasons.size());
  // Else the cases have become too dull, or too wild.
  return options.seconds == 0 && options.count >= 2000 && (accepted < done / 50 || reasons.size() < 100) ? 1
                                                                                                         : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--count")
      options.count = std::atoll(value.c_str());
    else if (flag == "--seconds")
      options.seconds = std::atof(value.c_str());
    else if (flag == "--seed")
      options.seed = value == "drawn" ? test_seed() : std::strtoull(value.c_str(), nullptr, 10);
    else
      return fmt::print(stderr, "usage: fuzz_pickle [--count N] [--seed FIRST|drawn] [--seconds S]\n"), 2;
  }
  return run(options);
}
