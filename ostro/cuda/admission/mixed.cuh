// mixed: a number that looks drawn, from which operands of the checks are made. The host includes this, too
// (compare.h).
DEVICE u32 mixed(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}
