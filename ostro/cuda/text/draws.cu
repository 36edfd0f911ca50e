// Draws (N12): the words of a key and a number.

struct Words {
  u32 x0, x1;
};

DEVICE void threefry_round(Words& x, int rotation) {
  x.x0 += x.x1;
  x.x1 = (x.x1 << rotation) | (x.x1 >> (32 - rotation));
  x.x1 ^= x.x0;
}
DEVICE void threefry_group(Words& x, int r0, int r1, int r2, int r3, u32 add0, u32 add1) {
  threefry_round(x, r0), threefry_round(x, r1), threefry_round(x, r2), threefry_round(x, r3);
  x.x0 += add0, x.x1 += add1;
}
DEVICE Words threefry(u32 k0, u32 k1, u32 x0, u32 x1) {
  const u32 k2 = k0 ^ k1 ^ 0x1bd11bdau;
  Words x = {x0 + k0, x1 + k1};
  threefry_group(x, 13, 15, 26, 6, k1, k2 + 1);
  threefry_group(x, 17, 29, 16, 24, k2, k0 + 2);
  threefry_group(x, 13, 15, 26, 6, k0, k1 + 3);
  threefry_group(x, 17, 29, 16, 24, k1, k2 + 4);
  threefry_group(x, 13, 15, 26, 6, k2, k0 + 5);
  return x;
}

// The 16 bits that dither an element (N20), by its number in the whole array. Four neighbours share `block`, the last counter, whose
// words are kept.
struct Dither {
  u32 k0, k1;
  u64 block;
  Words words;
};
DEVICE Dither dither_of(u32 k0, u32 k1) { return {k0, k1, ~(u64)0, {0, 0}}; }
DEVICE u32 dither_bits(Dither& d, u64 number) {
  const u64 block = number / 4;
  if (block != d.block) {
    d.words = threefry(d.k0, d.k1, (u32)(block >> 32), (u32)block);
    d.block = block;
  }
  const u32 word = number % 4 < 2 ? d.words.x0 : d.words.x1;
  return number % 2 == 0 ? word & 0xffffu : word >> 16;
}
