// One step of the sum by the rule of tensor cores (N23), on integers, and the instruction that takes it on compute capability 9.0.

enum { TENSOR_STEP = 16 };

// a and b: the bits of 16 f32 that bf16 holds each; what is zero is no addend. c: the sum so far.
DEVICE float tensor_step(const u32 (&a)[TENSOR_STEP], const u32 (&b)[TENSOR_STEP], float c) {
  i32 product[TENSOR_STEP], exponent[TENSOR_STEP], largest = -133;
  bool nan = false, plus = false, minus = false;
#pragma unroll
  for (int k = 0; k < TENSOR_STEP; ++k) {
    const i32 fx = (i32)(a[k] >> 23 & 255), fy = (i32)(b[k] >> 23 & 255);
    const i32 x = (i32)(a[k] >> 16 & 127) + (fx > 0 ? 128 : 0), y = (i32)(b[k] >> 16 & 127) + (fy > 0 ? 128 : 0);
    const bool negative = (a[k] ^ b[k]) >> 31 != 0;
    product[k] = negative ? -(x * y) : x * y;
    exponent[k] = (fx > 0 ? fx : 1) + (fy > 0 ? fy : 1) - 254;
    if (fx == 255 || fy == 255) {
      if ((fx == 255 && x != 128) || (fy == 255 && y != 128) || product[k] == 0)
        nan = true;
      else if (negative)
        minus = true;
      else
        plus = true;
    } else if (product[k] != 0 && exponent[k] > largest) {
      largest = exponent[k];
    }
  }
  const u32 bits = bits32(c);
  const i32 fc = (i32)(bits >> 23 & 255), ec = (fc > 0 ? fc : 1) - 127;
  const i32 mc = (i32)(bits & 0x7fffffu) + (fc > 0 ? 0x800000 : 0);
  if (fc == 255) {
    if (mc != 0x800000)
      nan = true;
    else if (bits >> 31 != 0)
      minus = true;
    else
      plus = true;
  } else if (mc != 0 && ec > largest) {
    largest = ec;
  }
  if (nan || (plus && minus)) return f32_of(0x7fffffffu);
  if (plus || minus) return f32_of(minus ? 0xff800000u : 0x7f800000u);
  i64 sum = 0;  // of multiples of 2^(largest - 25)
#pragma unroll
  for (int k = 0; k < TENSOR_STEP; ++k) {
    const i32 below = largest - exponent[k];
    if (product[k] == 0 || below > 27) continue;
    sum += below <= 11 ? product[k] * (1 << (11 - below)) : product[k] / (1 << (below - 11));
  }
  if (mc != 0) {
    const i32 below = largest - ec, addend = below <= 2 ? mc << (2 - below) : below <= 26 ? mc >> (below - 2) : 0;
    sum += bits >> 31 != 0 ? -addend : addend;
  }
  if (sum == 0) return 0.0f;
  const u64 magnitude = (u64)(sum < 0 ? -sum : sum);
  // A double holds it exactly, with the place of its first bit as exponent.
  const i32 unit = largest - 25, e = (i32)(DOUBLE_BITS((double)magnitude) >> 52) - 1023 + unit;
  const u32 sign = sum < 0 ? 0x80000000u : 0;
  if (e > 127) return f32_of(sign | 0x7f800000u);
  const i32 drop = (e < -126 ? -126 : e) - 23 - unit;
  const u32 kept = (u32)(drop >= 0 ? magnitude >> drop : magnitude << -drop);
  if (kept == 0) return 0.0f;
  return f32_of(sign | (((u32)(e < -126 ? 0 : e + 126) << 23) + kept));
}

// A product of a warp: C[16, 8] += A[16, 16] B[16, 8] by one step for each output. A word has two numbers, the lower one in its
// lower half. Thread t has words t % 4 and t % 4 + 4 (registers 0, 1 and 2, 3) of rows t / 4 and t / 4 + 8 (even and odd ones) of
// A, the same words of column t / 4 of B, and C[t / 4 + r / 2 * 8, t % 4 * 2 + r % 2] in register r.
DEVICE void mma_tensor_rule(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#ifdef OSTRO_EMULATED
  const unsigned long long given[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const unsigned long long* const all = ostro_block->exchange(given, 6);
  const int lane = THREAD % 32;
  for (int r = 0; r < 4; ++r) {
    const int i = lane / 4 + r / 2 * 8, j = lane % 4 * 2 + r % 2;
    u32 x[TENSOR_STEP], y[TENSOR_STEP];
    for (int k = 0; k < TENSOR_STEP; ++k) {
      const u32 left = (u32)all[(i % 8 * 4 + k % 8 / 2) * 6 + i / 8 + k / 8 * 2],
                right = (u32)all[(j * 4 + k % 8 / 2) * 6 + 4 + k / 8];
      x[k] = k % 2 == 0 ? left << 16 : left & 0xffff0000u;
      y[k] = k % 2 == 0 ? right << 16 : right & 0xffff0000u;
    }
    c[r] = tensor_step(x, y, c[r]);
  }
#elif __CUDA_ARCH__ == 900
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();  // other tensor cores have another rule; the host launches this nowhere else
#endif
}
