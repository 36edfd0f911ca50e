// Prints draws of ostro/numerics/threefry.h for check_jax.py: one line a draw, hexadecimal words.
//
//   random_helper KIND SEED FOLD... -- FIRST COUNT      KIND: key, bits or uniform; FOLD: numbers to fold in
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "ostro/numerics/threefry.h"

int main(int argc, char** argv) {
  using namespace ostro::numerics;
  if (argc < 6) return 2;
  const std::string_view kind = argv[1];
  Key key = key_from_seed(std::strtoull(argv[2], nullptr, 10));
  int at = 3;
  for (; at < argc && std::strcmp(argv[at], "--") != 0; ++at)
    key = fold_in(key, static_cast<uint32_t>(std::strtoul(argv[at], nullptr, 10)));
  if (at + 2 >= argc) return 2;
  const uint64_t first = std::strtoull(argv[at + 1], nullptr, 10);
  const uint64_t count = std::strtoull(argv[at + 2], nullptr, 10);
  if (kind == "key") std::printf("%08x %08x\n", key.word0, key.word1);
  for (uint64_t i = first; kind != "key" && i < first + count; ++i)
    std::printf("%08x\n",
                kind == "bits" ? random_bits(key, i) : std::bit_cast<uint32_t>(random_uniform(key, i)));
  return 0;
}
