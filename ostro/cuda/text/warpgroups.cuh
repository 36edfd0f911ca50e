// Words for the tensor cores of compute capability 9.0 (PTX: wgmma), which a warpgroup uses together, four warps of which the first is a multiple of four, and
// for what feeds them (mbarrier, cp.async.bulk.tensor, setmaxnreg). HOPPER is 1 where the text is compiled for them, and in the emulation.
//
// MBarrier                     barriers in shared memory. A phase of one ends after so many arrivals and bytes of copies, and the next begins
// MBARRIER_INIT(b, n)          n arrivals a phase; by one thread, with MBARRIERS_READY() after the last and BARRIER() before any is used
// MBARRIER_EXPECT(b, bytes)    arrives; so many bytes of COPY_TILE are of this phase, too
// MBARRIER_ARRIVE(b)           arrives
// COPIES_ARRIVE(b)             arrives as soon as all that this thread copies by COPY16 and COPY4 is there
// MBARRIER_WAIT(b, parity)     waits until the phase of this parity is over; the first one's is 0
// COPY_TILE(to, map, b, x, y)  one thread begins to copy bytes x to x + 127 of rows y, y + 1, ... of a TileMap to shared memory, to a multiple of 1024. The
//                              matrix goes on with zeros. Unit u of 16 bytes of row r is put in place u xor r % 8 of the 128 bytes r
// PRODUCTS_BEGIN()             by all threads of a warpgroup, before products whose accumulators they read or wrote. Tiles come by COPY_TILE alone
// WGMMA_S8(sum, a, b, keep)    begins C[64, 128] (+)= A[64, 32] B[32, 128] of integers of 8 bits, with what was there for `keep` other than 0. a and b
//                              are tiles as COPY_TILE leaves them, moved by a multiple of 32 below 128 along their rows. Thread t of a warpgroup has
//                              C[t / 32 * 16 + t % 32 / 4 + r / 2 % 2 * 8, r / 4 * 8 + t % 4 * 2 + r % 2] in sum[r]
// PRODUCTS_WAIT(sum)           waits for all that the warpgroup began; until then the sums and the tiles are not touched
// WARP_BARRIER()               waits for the threads of the warp
// FEWER_REGISTERS(n), MORE_REGISTERS(n)  by all threads of a warpgroup: each has n from now on
typedef unsigned long long MBarrier;
#ifdef OSTRO_EMULATED
#define HOPPER 1
// What a phase waits for, in the 8 bytes of an MBarrier.
struct OstroMBarrier {
  unsigned short arrivals, missing : 15, parity : 1;
  int bytes;
};
struct OstroTileCopy {
  unsigned char* to;
  TileMap map;
  OstroMBarrier* at;
  int x, y;
};
// Those of the block of that number which are not there yet: they come when a thread waits for them. Until then there is poison.
struct OstroTileCopies {
  unsigned long long block;
  int count;
  OstroTileCopy of[64];
};
static OstroTileCopies ostro_tiles;
enum { OSTRO_LINE = 128 };
// Place `offset` of shared memory, of which bits 4 to 6 are changed by bits 7 to 9.
static inline unsigned char* ostro_swizzled(unsigned long long offset) { return ostro_block->base + (offset ^ (offset >> 7 & 7) << 4); }
static inline unsigned long long ostro_shared_offset(const void* p) { return (unsigned long long)((const unsigned char*)p - ostro_block->base); }
static inline void ostro_arrive(OstroMBarrier* b, int arrivals, int bytes) {
  ++ostro_block->events;
  if (b->missing < arrivals) return ostro_block->fail("a thread arrives at an mbarrier that waits for no more arrivals");
  b->missing -= arrivals, b->bytes += bytes;
  if (b->missing == 0 && b->bytes == 0) b->missing = b->arrivals, b->parity ^= 1;
}
static inline void ostro_copy_tile(void* to, const TileMap& map, OstroMBarrier* at, int x, int y) {
  if (ostro_tiles.block != ostro_block->number) ostro_tiles.block = ostro_block->number, ostro_tiles.count = 0;
  if (ostro_tiles.count == 64) return ostro_block->fail("more than 64 tiles on their way");
  if (ostro_shared_offset(to) % 1024 != 0) return ostro_block->fail("a tile that does not begin at a multiple of 1024");
  ++ostro_block->events;
  ostro_tiles.of[ostro_tiles.count++] = {(unsigned char*)to, map, at, x, y};
  for (unsigned long long i = 0; i < map.words[3] * OSTRO_LINE; ++i) ((unsigned char*)to)[i] = 0xb5;
}
// The words of a map: address, bytes of a row, rows, rows of a tile (gpu/emulated).
static inline void ostro_deliver(OstroMBarrier* at) {
  if (ostro_tiles.block != ostro_block->number) return;
  int left = 0;
  for (int n = 0; n < ostro_tiles.count; ++n) {
    const OstroTileCopy copy = ostro_tiles.of[n];
    if (copy.at != at) {
      ostro_tiles.of[left++] = copy;
      continue;
    }
    const unsigned long long* const map = copy.map.words;
    for (unsigned long long i = 0; i < map[3]; ++i)
      for (unsigned long long j = 0; j < OSTRO_LINE; ++j) {
        const unsigned long long row = (unsigned long long)copy.y + i, at_byte = (unsigned long long)copy.x + j;
        *ostro_swizzled(ostro_shared_offset(copy.to) + i * OSTRO_LINE + j) =
            row < map[2] && at_byte < map[1] ? ((const unsigned char*)map[0])[row * map[1] + at_byte] : 0;
      }
    ostro_arrive(at, 0, -(int)map[3] * OSTRO_LINE);
  }
  ostro_tiles.count = left;
}
static inline void ostro_mbarrier_wait(OstroMBarrier* b, int parity, int line) {
  for (;;) {
    ostro_deliver(b);
    if (b->parity != parity) return;
    ostro_block->pause(line);
  }
}
// The products that a thread of the block of that number began; they are made when it waits for them.
struct OstroProducts {
  unsigned long long block;
  int count;
  struct {
    int* sum;
    unsigned long long a, b;
    int keep;
  } of[16];
};
static OstroProducts ostro_products[1024];
static inline void ostro_wgmma(int* sum, const void* a, const void* b, int keep) {
  OstroProducts& own = ostro_products[ostro_block->thread];
  if (own.block != ostro_block->number) own.block = ostro_block->number, own.count = 0;
  if (own.count == 16) return ostro_block->fail("more than 16 products of a warpgroup that are not waited for");
  own.of[own.count++] = {sum, ostro_shared_offset(a), ostro_shared_offset(b), keep};
  for (int r = 0; r < 64; ++r)
    if (!keep) sum[r] = (int)0xb5b5b5b5;
}
static inline void ostro_products_wait() {
  OstroProducts& own = ostro_products[ostro_block->thread];
  const int t = (int)ostro_block->thread % 128;
  if (own.block != ostro_block->number) return;
  for (int n = 0; n < own.count; ++n)
    for (int r = 0; r < 64; ++r) {
      const int i = t / 32 * 16 + t % 32 / 4 + r / 2 % 2 * 8, j = r / 4 * 8 + t % 4 * 2 + r % 2;
      int sum = own.of[n].keep ? own.of[n].sum[r] : 0;
      for (int k = 0; k < 32; k += 16) {
        const signed char* const x = (const signed char*)ostro_swizzled(own.of[n].a + (unsigned long long)(i * OSTRO_LINE + k));
        const signed char* const y = (const signed char*)ostro_swizzled(own.of[n].b + (unsigned long long)(j * OSTRO_LINE + k));
        for (int e = 0; e < 16; ++e) sum += (int)x[e] * (int)y[e];
      }
      own.of[n].sum[r] = sum;
    }
  own.count = 0;
}
#define MBARRIER_INIT(b, n) (*(OstroMBarrier*)(b) = {(unsigned short)(n), (unsigned short)(n), 0, 0})
#define MBARRIERS_READY() (void)0
#define MBARRIER_EXPECT(b, bytes) ostro_arrive((OstroMBarrier*)(b), 1, bytes)
#define MBARRIER_ARRIVE(b) ostro_arrive((OstroMBarrier*)(b), 1, 0)
#define COPIES_ARRIVE(b) (COPIES_END(), COPIES_WAIT(0), ostro_arrive((OstroMBarrier*)(b), 1, 0))
#define MBARRIER_WAIT(b, parity) ostro_mbarrier_wait((OstroMBarrier*)(b), parity, __LINE__)
#define COPY_TILE(to, map, b, x, y) ostro_copy_tile(to, map, (OstroMBarrier*)(b), x, y)
#define PRODUCTS_BEGIN() (void)0
#define WGMMA_S8(sum, a, b, keep) ostro_wgmma(sum, a, b, keep)
#define PRODUCTS_WAIT(sum) ostro_products_wait()
#define WARP_BARRIER() (void)SHUFFLE_XOR32(0, 1)
#define FEWER_REGISTERS(n) (void)0
#define MORE_REGISTERS(n) (void)0
#define SHARED_ADDRESS(p) ((unsigned)ostro_shared_offset(p))
#else
#define SHARED_ADDRESS(p) ((unsigned)__cvta_generic_to_shared(p))
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER 1
#define MBARRIER_INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SHARED_ADDRESS(b)), "r"(n) : "memory")
#define MBARRIERS_READY() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define MBARRIER_EXPECT(b, bytes) \
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SHARED_ADDRESS(b)), "r"(bytes) : "memory")
#define MBARRIER_ARRIVE(b) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SHARED_ADDRESS(b)) : "memory")
#define COPIES_ARRIVE(b) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(SHARED_ADDRESS(b)) : "memory")
DEVICE void ostro_mbarrier_wait(const MBarrier* b, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra AGAIN;\n"
      "}" ::"r"(SHARED_ADDRESS(b)),
      "r"(parity)
      : "memory");
}
#define MBARRIER_WAIT(b, parity) ostro_mbarrier_wait(b, parity)
#define COPY_TILE(to, map, b, x, y)                                                                                       \
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"  \
               ::"r"(SHARED_ADDRESS(to)), "l"(&(map)), "r"(SHARED_ADDRESS(b)), "r"(x), "r"(y) : "memory")
// The place of a tile for wgmma: 128 bytes a row, 1024 from 8 rows to the next 8, units of 16 bytes as COPY_TILE puts them.
DEVICE u64 ostro_tile(const void* p) { return (u64)((SHARED_ADDRESS(p) & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
#define PRODUCTS_BEGIN() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define OSTRO_SUMS_8(s, i)                                                                                                  \
  "+r"((s)[i]), "+r"((s)[(i) + 1]), "+r"((s)[(i) + 2]), "+r"((s)[(i) + 3]), "+r"((s)[(i) + 4]), "+r"((s)[(i) + 5]), "+r"((s)[(i) + 6]), \
      "+r"((s)[(i) + 7])
DEVICE void ostro_wgmma(int (&s)[64], u64 a, u64 b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred keeps;\n"
      "setp.ne.b32 keeps, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, keeps;\n"
      "}"
      : OSTRO_SUMS_8(s, 0), OSTRO_SUMS_8(s, 8), OSTRO_SUMS_8(s, 16), OSTRO_SUMS_8(s, 24), OSTRO_SUMS_8(s, 32), OSTRO_SUMS_8(s, 40),
        OSTRO_SUMS_8(s, 48), OSTRO_SUMS_8(s, 56)
      : "l"(a), "l"(b), "r"(keep));
}
#define WGMMA_S8(sum, a, b, keep) ostro_wgmma(sum, ostro_tile(a), ostro_tile(b), keep)
// The second half keeps reads of the sums behind the wait.
#define PRODUCTS_WAIT(sum)                                                                                    \
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");            \
  _Pragma("unroll") for (int ostro_r = 0; ostro_r < 64; ++ostro_r) asm volatile("" : "+r"((sum)[ostro_r])::"memory")
#define WARP_BARRIER() __syncwarp()
#define FEWER_REGISTERS(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 " #n ";")
#define MORE_REGISTERS(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 " #n ";")
#else
#define HOPPER 0
#endif
#endif
