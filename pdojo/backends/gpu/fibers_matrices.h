/* Instructions that the threads of a warp run together, for fibers.h, which comes before.

   Where the elements are, from the vendors' manuals and from nowhere else: row and column of element `i` of lane `l`. The
   machine descriptions of pdojo say the inverse in their own words; where the two differ, products are wrong. */
#pragma GCC visibility push(hidden)

namespace pd_fiber {


inline float single_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
struct bf16 {
  typedef uint16_t bits;
  static float value(bits x) { return single_of(uint32_t(x) << 16); }
};
struct f16 {
  typedef uint16_t bits;
  static float value(bits x) {
    const int exponent = x >> 10 & 31, significand = x & 1023;
    const float size = exponent == 31 ? (significand ? NAN : INFINITY)
                       : exponent     ? ldexpf(float(significand + 1024), exponent - 25)
                                      : ldexpf(float(significand), -24);
    return x >> 15 ? -size : size;
  }
};
struct f32 {
  typedef float bits;
  static float value(bits x) { return x; }
};
/* PTX ISA, cvt.rna.tf32.f32: the nearest number of 11 significant bits, ties away from zero. */
inline float to_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if ((bits & 0x7f800000) != 0x7f800000) bits += 0x1000;
  return single_of(bits & ((bits & 0x7f800000) == 0x7f800000 && x != x ? ~0u : 0xffffe000u));
}

/* PTX ISA: units ignore the low 13 bits of tf32 factors. */
struct tf32 {
  typedef float bits;
  static float value(bits x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return single_of(bits & 0xffffe000u);
  }
};

struct Place {
  int row, column;
};
/* PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type". */
template <typename T> struct Mma16 {
  typedef typename T::bits factor;
  static constexpr int THREADS = 32, M = 16, N = 8, K = 16, A = 8, B = 4, C = 4;
  static Place a(int l, int i) {
    return {i == 0 || i == 1 || i == 4 || i == 5 ? l >> 2 : (l >> 2) + 8, (l % 4) * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  }
  static Place b(int l, int i) { return {(l % 4) * 2 + (i & 1) + (i >= 2 ? 8 : 0), l >> 2}; }
  static Place c(int l, int i) { return {i < 2 ? l >> 2 : (l >> 2) + 8, (l % 4) * 2 + (i & 1)}; }
  static float product(float sum, factor x, factor y) { return fmaf(T::value(x), T::value(y), sum); }
};
/* PTX ISA, "Matrix Fragments for mma.m16n8k8" with .tf32. */
struct MmaTf32 {
  typedef float factor;
  static constexpr int THREADS = 32, M = 16, N = 8, K = 8, A = 4, B = 2, C = 4;
  static Place a(int l, int i) { return {i == 0 || i == 2 ? l >> 2 : (l >> 2) + 8, i < 2 ? l % 4 : l % 4 + 4}; }
  static Place b(int l, int i) { return {i == 0 ? l % 4 : l % 4 + 4, l >> 2}; }
  static Place c(int l, int i) { return {i < 2 ? l >> 2 : (l >> 2) + 8, (l % 4) * 2 + (i & 1)}; }
  static float product(float sum, float x, float y) { return fmaf(to_tf32(x), to_tf32(y), sum); }
};
/* The large part is truncated; the small one, to which half of the last place is added, by the instruction. */
struct Mma3xTf32 : MmaTf32 {
  static float high(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return single_of(bits & 0xffffe000u);
  }
  static float low(float x) {
    const float rest = x - high(x);
    uint32_t bits;
    memcpy(&bits, &rest, 4);
    return high(single_of(bits + 0x1000));
  }
  static float product(float sum, float x, float y) {
    return fmaf(high(x), high(y), fmaf(high(x), low(y), fmaf(low(x), high(y), sum)));
  }
};
/* AMD Matrix Instruction Calculator, v_mfma_f32_32x32x8_f16 and _bf16_1k of CDNA3. */
template <typename T> struct Mfma32 {
  typedef typename T::bits factor;
  static constexpr int THREADS = 64, M = 32, N = 32, K = 8, A = 4, B = 4, C = 16;
  static Place a(int l, int i) { return {l % 32, 4 * (l / 32) + i}; }
  static Place b(int l, int i) { return {4 * (l / 32) + i, l % 32}; }
  static Place c(int l, int i) { return {8 * (i / 4) + 4 * (l / 32) + i % 4, l % 32}; }
  static float product(float sum, factor x, factor y) { return fmaf(T::value(x), T::value(y), sum); }
};
/* The same, v_mfma_f32_32x32x2_f32. */
struct Mfma32Single : Mfma32<f32> {
  static constexpr int K = 2, A = 1, B = 1;
  static Place a(int l, int) { return {l % 32, l / 32}; }
  static Place b(int l, int) { return {l / 32, l % 32}; }
};

/* c += a * b for the matrices that the lanes of a warp hold. */
template <typename Kind> inline void multiply(const Fragments *warp) {
  typedef typename Kind::factor factor;
  static factor a[Kind::M][Kind::K], b[Kind::K][Kind::N];
  for (int l = 0; l < Kind::THREADS; ++l) {
    for (int i = 0; i < Kind::A; ++i) {
      const Place place = Kind::a(l, i);
      a[place.row][place.column] = static_cast<const factor *>(warp[l].a)[i];
    }
    for (int i = 0; i < Kind::B; ++i) {
      const Place place = Kind::b(l, i);
      b[place.row][place.column] = static_cast<const factor *>(warp[l].b)[i];
    }
  }
  for (int l = 0; l < Kind::THREADS; ++l)
    for (int i = 0; i < Kind::C; ++i) {
      const Place place = Kind::c(l, i);
      float &result = static_cast<float *>(warp[l].c)[i], sum = result;
      for (int k = 0; k < Kind::K; ++k) sum = Kind::product(sum, a[place.row][k], b[k][place.column]);
      result = sum;
    }
}

/* PTX ISA, "ldmatrix": lanes 8 m to 8 m + 7 give the addresses of the rows of matrix m, each of eight numbers of 16 bits.
   Lane l gets the numbers 2 (l % 4) and the next of row l / 4 in its register m; with .trans, number l / 4 of rows
   2 (l % 4) and the next. */
template <int MATRICES, bool TRANS> inline void load_matrices(const Fragments *warp) {
  static uint16_t x[MATRICES][8][8];
  for (int m = 0; m < MATRICES; ++m)
    for (int r = 0; r < 8; ++r) memcpy(x[m][r], warp[8 * m + r].a, sizeof x[m][r]);
  for (int l = 0; l < 32; ++l)
    for (int m = 0; m < MATRICES; ++m)
      for (int i = 0; i < 2; ++i) {
        const uint16_t *number = TRANS ? &x[m][2 * (l % 4) + i][l / 4] : &x[m][l / 4][2 * (l % 4) + i];
        memcpy(static_cast<char *>(warp[l].c) + 4 * m + 2 * i, number, sizeof *number);
      }
}

inline void check_row(const void *row, int line) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(row), shared = reinterpret_cast<uintptr_t>(state.shared);
  if (place % 16) fail("pd_ldmatrix at line %d: a row is misaligned, its address %% 16 = %d", line, int(place % 16));
  if (place < shared || place + 16 > shared + state.shared_bytes)
    fail("pd_ldmatrix at line %d: a row is outside of shared memory", line);
}

} /* namespace pd_fiber */

/* c += a * b by all threads of a warp, each of which gives and gets its elements; they all call this. */
template <typename Kind> inline void pd_mma(const void *a, const void *b, float *c, int line = __builtin_LINE()) {
  using namespace pd_fiber;
  const int self = state.current, first = self / WARP * WARP;
  if (Kind::THREADS != WARP || first + WARP > state.threads)
    fail("pd_mma at line %d needs %d threads of a warp", line, Kind::THREADS);
  state.fragments[self] = {a, b, c};
  state.instruction = multiply<Kind>;
  lane_barrier(MATRIX, ALL_LANES, 0, line);
}

/* Load matrices of 8 by 8 numbers of 16 bits from shared memory; lanes beyond those that give rows may give anything. */
template <int MATRICES, bool TRANS> inline void pd_ldmatrix(void *to, const void *row, int line = __builtin_LINE()) {
  using namespace pd_fiber;
  static_assert(MATRICES == 1 || MATRICES == 2 || MATRICES == 4, "1, 2 or 4 matrices");
  const int self = state.current, lane = self % WARP;
  if (WARP != 32 || self - lane + WARP > state.threads) fail("pd_ldmatrix at line %d needs 32 threads of a warp", line);
  if (lane < 8 * MATRICES) check_row(row, line);
  state.fragments[self] = {row, nullptr, to};
  state.instruction = load_matrices<MATRICES, TRANS>;
  lane_barrier(MATRIX_LOAD, ALL_LANES, 0, line);
}

#pragma GCC visibility pop
