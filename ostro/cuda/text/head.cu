// The language of device text: what stands before every text, on a GPU (NVRTC) and in the emulation (a C++ compiler of the
// host, with OSTRO_EMULATED). Kernels are written with these words alone, so one text runs in both.
//
// KERNEL(name, Args) { ... a ... }   a kernel whose threads do not wait for each other; `a` is its argument
// BLOCK_KERNEL(name, Args) { ... }   a kernel with BARRIER(), SHARED or shuffles; all threads reach every BARRIER()
// THREAD, THREADS                    number of the thread in its block, and how many there are
// BLOCK_X, BLOCK_Y, BLOCK_Z          number of the block; 64 bits wide
// SHARED(T, name, n)                 n elements that the threads of a block share; their first values are arbitrary
// DYNAMIC_SHARED(T, name)            the same, as many bytes as the launch asked for
// SHUFFLE_DOWN32/64(bits, d)         the bits that thread + d of the same warp gives; all 32 threads take part
// ATOMIC_ADD64(p, x)                 adds integers; the order of integer sums does not matter
#ifdef OSTRO_EMULATED
struct OstroBlock {
  unsigned thread, threads;
  long long x, y, z;
  void* dynamic;
  void (*barrier)(int line);
  void* (*shared)(const void* key, unsigned long long bytes);
  unsigned long long (*shuffle_down)(unsigned long long bits, int distance);
};
extern "C" {
OstroBlock* ostro_block;
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
#define SHUFFLE_DOWN32(bits, d) ((unsigned)ostro_block->shuffle_down(bits, d))
#define SHUFFLE_DOWN64(bits, d) ostro_block->shuffle_down(bits, d)
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
  extern "C" void name(const void* argument, int) { name##_body(*(const Args*)argument); }        \
  static inline void name##_body(const Args& a)
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
#endif
