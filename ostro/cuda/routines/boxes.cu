#include "routines/box.cuh"
// Sums of squares by large boxes (N13): exact squares in f64, added in 64 lanes (N4).
//
// A lane is one chain of many additions, each of which waits for the one before. Threads compute it side by side
// nevertheless, exactly: as long as the sum stays below the next power of two, all its values are multiples of one unit u, and
// adding a square adds a whole number of units. That number depends on the sum only where a square lies in the middle between
// two multiples: then on whether the sum is odd. So a thread computes what its part of a lane adds, for an even and for an odd
// sum, and one thread a lane goes from part to part. A part in which the sum reaches the next power of two is added one by one.

enum { BOX_THREADS = 256, BOX_PART = 32, BOX_LINE = BOX_PART + 1 };

// The largest power of two that is not above the sum; below all squares for 0.
DEVICE double binade_of(double sum) { return f64_of(sum == 0 ? 0x07b0000000000000u : bits64(sum) & 0x7ff0000000000000u); }
DEVICE double shifted(double power, int by) { return f64_of(bits64(power) + ((u64)(i64)by << 52)); }
DEVICE bool is_odd(double units) { return ((i64)units & 1) != 0; }

// What BOX_PART squares add to an even and to an odd sum of the binade, in units; at least 2^53 where the sum leaves it.
struct Added {
  i64 even, odd;
};
DEVICE Added add_squares(const float* x, double binade) {
  const double half = shifted(binade, -53), per_unit = f64_of((2098u - (bits64(binade) >> 52)) << 52);
  double even = 0, odd = 0;
#pragma unroll 8
  for (int i = 0; i < BOX_PART; ++i) {
    const double y = (double)x[i];
    const double added = FMA64(y, y, binade) - binade, rest = FMA64(y, y, -added);
    const double even_before = even, odd_before = odd;
    even = even + added, odd = odd + added;
    if (rest == half || rest == -half) {
      if (is_odd(even_before * per_unit)) even = even + 2 * rest;
      if (!is_odd(odd_before * per_unit)) odd = odd + 2 * rest;
    }
  }
  even = even * per_unit, odd = odd * per_unit;
  const i64 most = (i64)1 << 53;
  return {even < 0x1p53 ? (i64)even : most, odd < 0x1p53 ? (i64)odd : most};
}

// BOX_THREADS threads for `lanes` lanes of a box.
BLOCK_KERNEL(box_lanes, BoxArgs) {
  SHARED(float, tile, BOX_THREADS * BOX_LINE);
  SHARED(i64, even, BOX_THREADS);
  SHARED(i64, odd, BOX_THREADS);
  SHARED(double, sums, 64);
  SHARED(int, places, 2 * 64);
  const int lanes = (int)a.lanes, parts = BOX_THREADS / lanes, piece = parts * BOX_PART;
  const i64 blocks = 64 / lanes, first_lane = BLOCK_X % blocks * lanes;
  const Box box = box_of(a, BLOCK_X / blocks);
  const int lane = THREAD / parts, own_lane = THREAD % lanes, own_row = THREAD / lanes;
  const bool in_a_line = a.rank > 0 && box.count == box.size[a.rank - 1];  // its elements are as far apart as on the last axis
  float next[BOX_PART];
  if (THREAD < lanes) sums[THREAD] = 0;
  for (i64 row = -piece; row * 64 < box.count; row += piece) {
    int* const place = places + (row / piece & 1) * 64;  // the part of each lane that comes next
    if (row >= 0) {
#pragma unroll
      for (int i = 0; i < BOX_PART; ++i) {
        const int k = own_row + i * parts;
        tile[(own_lane * parts + k / BOX_PART) * BOX_LINE + k % BOX_PART] = next[i];
      }
      if (THREAD < lanes) place[THREAD] = 0;
    }
    BARRIER();
    const i64 begin = (row + piece + own_row) * 64 + first_lane + own_lane;
    if (in_a_line) {
      const float* const from = AT(const float, a.from) + box.first;
#pragma unroll
      for (int i = 0; i < BOX_PART; ++i) {
        const i64 r = begin + i * parts * 64;
        next[i] = r < box.count ? from[r * a.stride[a.rank - 1]] : 0.0f;
      }
    } else {
#pragma unroll
      for (int i = 0; i < BOX_PART; ++i) {
        const i64 r = begin + i * parts * 64;
        next[i] = r < box.count ? AT(const float, a.from)[box_offset(a, box, r)] : 0.0f;
      }
    }
    while (row >= 0) {
      const Added added = add_squares(tile + THREAD * BOX_LINE, binade_of(sums[lane]));
      even[THREAD] = added.even, odd[THREAD] = added.odd;
      BARRIER();
      if (THREAD < lanes) {
        double sum = sums[THREAD];
        const double unit = shifted(binade_of(sum), -52);
        i64 units = sum == 0 ? 0 : (i64)(bits64(sum) & 0xfffffffffffffu) + ((i64)1 << 52);
        int at = place[THREAD];
        const int before = at;
        for (; at < parts; ++at) {
          const i64 more = units & 1 ? odd[THREAD * parts + at] : even[THREAD * parts + at];
          if (units + more >= (i64)1 << 53) break;
          units += more;
        }
        if (at > before) sum = (double)units * unit;
        if (at < parts) {
          const float* const x = tile + (THREAD * parts + at++) * BOX_LINE;
          for (int i = 0; i < BOX_PART; ++i) sum = FMA64((double)x[i], (double)x[i], sum);
        }
        sums[THREAD] = sum, place[THREAD] = at;
      }
      BARRIER();
      bool done = true;
      for (int l = 0; l < lanes; ++l) done = done && place[l] == parts;
      if (done) break;
    }
  }
  if (THREAD < lanes) AT(double, a.lane_sums)[BLOCK_X * lanes + THREAD] = sums[THREAD];
}

BLOCK_KERNEL(box_join, BoxArgs) {
  const double sum = row_sum64(AT(const double, a.lane_sums)[BLOCK_X * 64 + THREAD]);
  if (THREAD == 0) AT(double, a.to)[BLOCK_X] = sum;
}
