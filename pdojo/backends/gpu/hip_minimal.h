/* What HIP kernels need of HIP's headers: no installation of HIP, no library of device functions. */
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
/* At most `threads` per block and, as an option, at least so many blocks per compute unit; clang's launch_bounds do
   nothing for AMD. A SIMD, of which a compute unit has 4, holds at most 8 waves of 64 threads. */
#define __launch_bounds__(threads, ...)                  \
  __attribute__((amdgpu_flat_work_group_size(1, threads) \
                 __VA_OPT__(, amdgpu_waves_per_eu(PD_WAVES(threads, __VA_ARGS__)))))
#define PD_WAVES(threads, blocks) \
  (((threads) + 63) / 64 * (blocks) > 32 ? 8 : (((threads) + 63) / 64 * (blocks) + 3) / 4)

typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#define INT8_MAX __INT8_MAX__
#define INT16_MAX __INT16_MAX__
#define INT32_MAX __INT32_MAX__
#define INT64_MAX __INT64_MAX__
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT8_MAX __UINT8_MAX__
#define UINT16_MAX __UINT16_MAX__
#define UINT32_MAX __UINT32_MAX__
#define UINT64_MAX __UINT64_MAX__
#define INT32_C(c) c
#define INT64_C(c) c##L
#define UINT32_C(c) c##u
#define UINT64_C(c) c##ul
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

/* Numbers of threads, blocks and their extents. */
#define PD_TRIPLE(name, x_, y_, z_)                                                \
  struct pd_##name {                                                               \
    __declspec(property(get = pd_x)) unsigned x;                                   \
    __declspec(property(get = pd_y)) unsigned y;                                   \
    __declspec(property(get = pd_z)) unsigned z;                                   \
    static __device__ __forceinline__ unsigned pd_x() { return x_; }               \
    static __device__ __forceinline__ unsigned pd_y() { return y_; }               \
    static __device__ __forceinline__ unsigned pd_z() { return z_; }               \
  };                                                                               \
  extern const __device__ __attribute__((weak)) pd_##name name
#define PD_AXES(name, builtin) PD_TRIPLE(name, builtin##_x(), builtin##_y(), builtin##_z())
PD_AXES(threadIdx, __builtin_amdgcn_workitem_id);
PD_AXES(blockIdx, __builtin_amdgcn_workgroup_id);
PD_AXES(blockDim, __builtin_amdgcn_workgroup_size);
PD_TRIPLE(gridDim, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
          __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z());
#define warpSize 64

/* What the launching functions of a text need to be read; no code is made of them. */
typedef struct ihipStream_t *hipStream_t;
typedef enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1 } hipError_t;
extern "C" __host__ hipError_t hipGetLastError(void);
struct dim3 {
  unsigned x, y, z;
  constexpr __host__ __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
extern "C" __host__ unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream);

static __device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/* The value of another lane of the wave; T has 4 or 8 bytes. */
template <class T> static __device__ __forceinline__ T pd_from_lane(T value, int lane) {
  static_assert(sizeof(T) % 4 == 0, "values of lanes are exchanged in pieces of 4 bytes");
  int pieces[sizeof(T) / 4];
  __builtin_memcpy(pieces, &value, sizeof(T));
  for (unsigned k = 0; k < sizeof(T) / 4; ++k) pieces[k] = __builtin_amdgcn_ds_bpermute(4 * lane, pieces[k]);
  __builtin_memcpy(&value, pieces, sizeof(T));
  return value;
}
static __device__ __forceinline__ int pd_lane() {
  return (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
/* `width`, a power of two, divides the wave into groups; if the partner is in a later group, a lane gets its own
   value. */
template <class T> static __device__ __forceinline__ T __shfl(T value, int lane, int width = warpSize) {
  return pd_from_lane(value, (pd_lane() & -width) | (lane & (width - 1)));
}
template <class T> static __device__ __forceinline__ T __shfl_xor(T value, int mask, int width = warpSize) {
  const int own = pd_lane(), other = own ^ mask;
  return pd_from_lane(value, (other & -width) > (own & -width) ? own : other);
}
template <class T> static __device__ __forceinline__ T __shfl_down(T value, unsigned by, int width = warpSize) {
  const int own = pd_lane(), other = own + (int)by;
  return pd_from_lane(value, (own & (width - 1)) + (int)by >= width ? own : other);
}

/* Instructions, or short sequences of them: nothing here becomes a call. */
#define memcpy __builtin_memcpy
#define signbit __builtin_signbit
#define isnan __builtin_isnan
#define isinf __builtin_isinf
#define isfinite __builtin_isfinite
#define fmaf __builtin_fmaf
#define sqrtf __builtin_sqrtf
#define fabsf __builtin_fabsf
#define floorf __builtin_floorf
#define ceilf __builtin_ceilf
#define truncf __builtin_truncf
#define rintf __builtin_rintf
#define copysignf __builtin_copysignf
#define fma __builtin_fma
#define sqrt __builtin_sqrt
#define fabs __builtin_fabs
#define floor __builtin_floor
#define ceil __builtin_ceil
#define trunc __builtin_trunc
#define rint __builtin_rint
#define copysign __builtin_copysign

/* The exact remainder, by long division of the significands of P bits; clang's own is inexact for great quotients. */
template <class F, class U, int P> static __host__ __device__ inline F pd_fmod(F x, F y) {
  const U hidden = (U)1 << P, sign = (U)1 << (8 * sizeof(U) - 1), infinite = (sign - 1) & ~(hidden - 1);
  U a, b;
  __builtin_memcpy(&a, &x, sizeof a);
  __builtin_memcpy(&b, &y, sizeof b);
  const U negative = a & sign;
  a &= ~sign;
  b &= ~sign;
  if (b == 0 || a >= infinite || b > infinite) return x * y / (x * y); /* NaN */
  if (a < b) return x;
  int e = a < hidden ? 1 : (int)(a >> P), f = b < hidden ? 1 : (int)(b >> P);
  a = a < hidden ? a : (a & (hidden - 1)) | hidden;
  b = b < hidden ? b : (b & (hidden - 1)) | hidden;
  for (; a < hidden; --e) a <<= 1; /* denormal numbers as if exponents had no end */
  for (; b < hidden; --f) b <<= 1;
  for (; e > f; --e) a = (a >= b ? a - b : a) << 1;
  a = a >= b ? a - b : a;
  for (; a && a < hidden && e > 1; --e) a <<= 1;
  a = e < 1 ? a >> (1 - e) : a < hidden ? a : (a & (hidden - 1)) | (U)e << P;
  a |= negative;
  __builtin_memcpy(&x, &a, sizeof a);
  return x;
}
static __host__ __device__ inline float fmodf(float x, float y) { return pd_fmod<float, uint32_t, 23>(x, y); }
static __host__ __device__ inline double fmod(double x, double y) { return pd_fmod<double, uint64_t, 52>(x, y); }
