// The language of device text: what stands before every text, on a GPU (NVRTC) and in the emulation (a C++ compiler of the
// host, with OSTRO_EMULATED). Kernels are written with these words alone, so one text runs in both.
//
// KERNEL(name, Args) { ... a ... }   a kernel whose threads do not wait for each other; `a` is its argument
// BLOCK_KERNEL(name, Args) { ... }   a kernel with BARRIER(), SHARED or shuffles; all threads reach every BARRIER()
// TILED_KERNEL(name, Args, threads, blocks)  a BLOCK_KERNEL for blocks of that many threads, with registers for at least so many
//                                    blocks at a time
// THREAD, THREADS                    number of the thread in its block, and how many there are
// BLOCK_X, BLOCK_Y, BLOCK_Z          number of the block; 64 bits wide
// SHARED(T, name, n)                 n elements that the threads of a block share; their first values are arbitrary
// DYNAMIC_SHARED(T, name)            the same, as many bytes as the launch asked for
// SHUFFLE_DOWN32/64(bits, d)         the bits that thread + d of the same warp gives; all 32 threads take part
// SHUFFLE_XOR32(bits, d)             the bits that the thread of the warp gives whose number differs in the bits of d
// DOT4_S8(x, y, c)                   c plus the sum of four products; x and y are words of four integers of 8 bits
// MMA_S8(c, a, b)                    a product of a warp: C[16, 8] += A[16, 32] B[32, 8] of integers of 8 bits, C of 32 bits; each
//                                    thread has 4, 4 words and 2 words of them, where mma m16n8k32 of PTX has them
// LOAD_MATRICES(words, row)          four matrices of 8 rows of 16 bytes in shared memory, as MMA_S8 takes them: thread 8 q + i of a
//                                    warp gives the address of row i of matrix q, thread t gets word t % 4 of row t / 4 of each
// COPY16(to, from, bytes), COPY4     begins to copy `bytes` bytes of device memory to shared memory, which gets 16 (4) of them, the
//                                    rest as zeros; from sm_80 on the thread need not wait for them
// COPIES_END(), COPIES_WAIT(n)       ends a group of copies of this thread; waits for all but the last n groups
// BYTES4(x, y, z, w)                 the word of the lowest bytes of four words, x's lowest
// FLOOR_BYTE(x)                      a word whose lowest byte is that of floor(x), for |x| < 2^21
// ATOMIC_ADD64(p, x)                 adds integers; the order of integer sums does not matter
#ifdef OSTRO_EMULATED
struct OstroBlock {
  unsigned thread, threads;
  long long x, y, z;
  void* dynamic;
  void (*barrier)(int line);
  void* (*shared)(const void* key, unsigned long long bytes);
  const unsigned long long* (*exchange)(const unsigned long long* given, int count);
  void (*pause)(int line);
  void (*fail)(const char* why);
  unsigned long long number, events;
  unsigned char* base;
};
extern "C" {
OstroBlock* ostro_block;
}
// `exchange` gives what all 32 threads of the warp gave, `count` numbers each, until the next exchange of the warp. `pause` lets other
// threads run; it is a fault when all that are left pause and `events` does not grow. `fail` reports a fault. `number` is another one
// for every block that runs, `base` the first byte of its shared memory.
static inline unsigned long long ostro_shuffle(unsigned long long bits, int lane, int own) {
  return ostro_block->exchange(&bits, 1)[lane < 32 ? lane : own];
}
static inline int ostro_dot4(unsigned x, unsigned y, int c) {
  for (int i = 0; i < 32; i += 8) c += (int)(signed char)(x >> i) * (int)(signed char)(y >> i);
  return c;
}
// Word w of row i of A, numbers 4 w to 4 w + 3, is register i / 8 + w / 4 * 2 of thread i % 8 * 4 + w % 4. That of column j of B
// is register w / 4 of thread j * 4 + w % 4. Thread t has C[t / 4 + r / 2 * 8, t % 4 * 2 + r % 2] in register r.
static inline void ostro_mma_s8(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  const unsigned long long given[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const unsigned long long* const all = ostro_block->exchange(given, 6);
  const int lane = (int)ostro_block->thread % 32;
  for (int r = 0; r < 4; ++r) {
    const int i = lane / 4 + r / 2 * 8, j = lane % 4 * 2 + r % 2;
    for (int w = 0; w < 8; ++w)
      c[r] = ostro_dot4((unsigned)all[(i % 8 * 4 + w % 4) * 6 + i / 8 + w / 4 * 2], (unsigned)all[(j * 4 + w % 4) * 6 + 4 + w / 4],
                        c[r]);
  }
}
static inline void ostro_load_matrices(unsigned (&words)[4], const void* row) {
  const unsigned long long given = (unsigned long long)row;
  const unsigned long long* const all = ostro_block->exchange(&given, 1);
  const int lane = (int)ostro_block->thread % 32;
  for (int q = 0; q < 4; ++q) words[q] = ((const unsigned*)all[8 * q + lane / 4])[lane % 4];
}
// The copies that a thread has begun. Until the wait for their group what is to be overwritten is poison.
struct OstroCopy {
  unsigned char* to;
  int size, group;
  unsigned char bytes[16];
};
struct OstroCopies {
  int count, groups;
  OstroCopy of[64];
};
static OstroCopies ostro_copies[1024];
static inline OstroCopies& ostro_own_copies() { return ostro_copies[ostro_block->thread]; }
static inline void ostro_copy(void* to, const void* from, int bytes, int size) {
  OstroCopies& own = ostro_own_copies();
  if (own.count == 64) __builtin_trap();
  OstroCopy& copy = own.of[own.count++];
  copy.to = (unsigned char*)to, copy.size = size, copy.group = own.groups;
  for (int i = 0; i < size; ++i) copy.bytes[i] = i < bytes ? ((const unsigned char*)from)[i] : 0, copy.to[i] = 0xb5;
}
static inline void ostro_wait_for_copies(int groups_left) {
  OstroCopies& own = ostro_own_copies();
  int left = 0;
  for (int n = 0; n < own.count; ++n) {
    const OstroCopy copy = own.of[n];
    if (copy.group >= own.groups - groups_left)
      own.of[left++] = copy;
    else
      for (int i = 0; i < copy.size; ++i) copy.to[i] = copy.bytes[i];
  }
  own.count = left;
}
#define DEVICE static inline
#define THREAD ((int)ostro_block->thread)
#define THREADS ((int)ostro_block->threads)
#define BLOCK_X (ostro_block->x)
#define BLOCK_Y (ostro_block->y)
#define BLOCK_Z (ostro_block->z)
#define BARRIER() ostro_block->barrier(__LINE__)
#define SHARED(T, name, n)     \
  static const char name##_key = 0; \
  T* const name = (T*)ostro_block->shared(&name##_key, sizeof(T) * (unsigned long long)(n))
#define DYNAMIC_SHARED(T, name) T* const name = (T*)ostro_block->dynamic
#define SHUFFLE_DOWN32(bits, d) ((unsigned)ostro_shuffle(bits, THREAD % 32 + (d), THREAD % 32))
#define SHUFFLE_DOWN64(bits, d) ostro_shuffle(bits, THREAD % 32 + (d), THREAD % 32)
#define SHUFFLE_XOR32(bits, d) ((unsigned)ostro_shuffle(bits, (THREAD % 32) ^ (d), 0))
#define DOT4_S8(x, y, c) ostro_dot4(x, y, c)
#define MMA_S8(c, a, b) ostro_mma_s8(c, a, b)
#define LOAD_MATRICES(words, row) ostro_load_matrices(words, row)
#define COPY16(to, from, bytes) ostro_copy(to, (const void*)(from), bytes, 16)
#define COPY4(to, from, bytes) ostro_copy(to, (const void*)(from), bytes, 4)
#define COPIES_END() (void)++ostro_own_copies().groups
#define COPIES_WAIT(n) ostro_wait_for_copies(n)
#define BYTES4(x, y, z, w) (((x) & 0xffu) | ((y) & 0xffu) << 8 | ((z) & 0xffu) << 16 | (w) << 24)
#define FLOOR_BYTE(x) FLOAT_BITS(__builtin_floorf(x) + 0x1.8p23f)
#define ATOMIC_ADD64(p, x) (*(p) += (x))
#define FLOAT_BITS(x) __builtin_bit_cast(unsigned, x)
#define BITS_FLOAT(b) __builtin_bit_cast(float, b)
#define DOUBLE_BITS(x) __builtin_bit_cast(unsigned long long, x)
#define BITS_DOUBLE(b) __builtin_bit_cast(double, b)
#define HIDE32(x) __asm__("" : "+x"(x))
#define HIDE64(x) __asm__("" : "+x"(x))
#define FMA32 __builtin_fmaf
#define FMA64 __builtin_fma
#define SQRT32 __builtin_sqrtf
#define SQRT64 __builtin_sqrt
#define FLOOR32 __builtin_floorf
// One call runs all threads of a block, forwards or backwards; of a BLOCK_KERNEL it runs one thread.
#define KERNEL(name, Args)                                                                        \
  static inline void name##_body(const Args& a);                                                  \
  extern "C" const int name##_waits = 0;                                                          \
  extern "C" void name(const void* argument, int backwards) {                                     \
    const Args& a = *(const Args*)argument;                                                       \
    const unsigned n = ostro_block->threads;                                                      \
    for (unsigned t = 0; t < n; ++t) {                                                            \
      ostro_block->thread = backwards ? n - 1 - t : t;                                            \
      name##_body(a);                                                                             \
    }                                                                                             \
  }                                                                                               \
  static inline void name##_body(const Args& a)
#define BLOCK_KERNEL(name, Args)                                                                  \
  static inline void name##_body(const Args& a);                                                  \
  extern "C" const int name##_waits = 1;                                                          \
  extern "C" void name(const void* argument, int) {                                               \
    ostro_own_copies().count = ostro_own_copies().groups = 0;                                     \
    name##_body(*(const Args*)argument);                                                          \
  }                                                                                               \
  static inline void name##_body(const Args& a)
#define TILED_KERNEL(name, Args, threads, blocks) BLOCK_KERNEL(name, Args)
#else
#define DEVICE static __device__ __forceinline__
#define THREAD ((int)threadIdx.x)
#define THREADS ((int)blockDim.x)
#define BLOCK_X ((long long)blockIdx.x)
#define BLOCK_Y ((long long)blockIdx.y)
#define BLOCK_Z ((long long)blockIdx.z)
#define BARRIER() __syncthreads()
#define SHARED(T, name, n) __shared__ T name[n]
#define DYNAMIC_SHARED(T, name)                             \
  extern __shared__ __align__(16) unsigned char ostro_dynamic[]; \
  T* const name = (T*)ostro_dynamic
#define SHUFFLE_DOWN32(bits, d) __shfl_down_sync(0xffffffffu, (unsigned)(bits), d)
#define SHUFFLE_DOWN64(bits, d) __shfl_down_sync(0xffffffffu, (unsigned long long)(bits), d)
#define SHUFFLE_XOR32(bits, d) __shfl_xor_sync(0xffffffffu, (unsigned)(bits), d)
#define DOT4_S8(x, y, c) __dp4a((int)(x), (int)(y), (int)(c))
#define MMA_S8(c, a, b) ostro_mma_s8(c, a, b)
DEVICE void ostro_mma_s8(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  // Two halves of the rows, two of the numbers that are summed: the small product has the places of a quarter.
#pragma unroll
  for (int q = 0; q < 4; ++q)
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(c[q % 2 * 2]), "+r"(c[q % 2 * 2 + 1])
        : "r"(a[q]), "r"(b[q / 2]));
#endif
}
#define LOAD_MATRICES(words, row)                                                                          \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"                          \
               : "=r"((words)[0]), "=r"((words)[1]), "=r"((words)[2]), "=r"((words)[3])                    \
               : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory")
#if __CUDA_ARCH__ >= 800
#define OSTRO_COPY(how, size, to, from, bytes)                                                       \
  asm volatile("cp.async." how ".shared.global [%0], [%1], " size ", %2;" ::"r"(                     \
                   (unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"((int)(bytes)) : "memory")
#define COPY16(to, from, bytes) OSTRO_COPY("cg", "16", to, from, bytes)
#define COPY4(to, from, bytes) OSTRO_COPY("ca", "4", to, from, bytes)
#define COPIES_END() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"((int)(n)) : "memory")
#else
#define COPY16(to, from, bytes) (*(uint4*)(to) = (bytes) != 0 ? *(const uint4*)(from) : make_uint4(0, 0, 0, 0))
#define COPY4(to, from, bytes) (*(unsigned*)(to) = (bytes) != 0 ? *(const unsigned*)(from) : 0)
#define COPIES_END()
#define COPIES_WAIT(n)
#endif
#define BYTES4(x, y, z, w) __byte_perm(__byte_perm(x, y, 0x0040), __byte_perm(z, w, 0x0040), 0x5410)
#define FLOOR_BYTE(x) __float_as_uint(__fadd_rd(x, 0x1.8p23f))
#define ATOMIC_ADD64(p, x) atomicAdd((unsigned long long*)(p), (unsigned long long)(x))
#define FLOAT_BITS(x) __float_as_uint(x)
#define BITS_FLOAT(b) __uint_as_float(b)
#define DOUBLE_BITS(x) ((unsigned long long)__double_as_longlong(x))
#define BITS_DOUBLE(b) __longlong_as_double((long long)(b))
#define HIDE32(x) asm("" : "+f"(x))
#define HIDE64(x) asm("" : "+d"(x))
#define FMA32 __fmaf_rn
#define FMA64 __fma_rn
#define SQRT32 __fsqrt_rn
#define SQRT64 __dsqrt_rn
#define FLOOR32 floorf
#define KERNEL(name, Args) extern "C" __global__ void name(const __grid_constant__ Args a)
#define BLOCK_KERNEL(name, Args) extern "C" __global__ void name(const __grid_constant__ Args a)
#define TILED_KERNEL(name, Args, threads, blocks) \
  extern "C" __global__ __launch_bounds__(threads, blocks) void name(const __grid_constant__ Args a)
#endif
