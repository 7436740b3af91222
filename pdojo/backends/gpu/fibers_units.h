/* Asynchronous products of four warps (PTX ISA, wgmma), for fibers_matrices.h, which comes before.

   Each warp computes 16 of 64 rows, at once or when it waits. Where elements lie is from the PTX ISA alone: "Matrix
   Fragments for wgmma.mma_async.m64nNk16", "Matrix Descriptor Format", "Strides", with a swizzle of 128 bytes. */
#pragma GCC visibility push(hidden)

namespace pd_fiber {

/* Where an element is in shared memory. K_MAJOR: elements of a row or column of the product are neighbours along k.
   Bits 4 to 6 of an address are exchanged by bits 7 to 9. */
template <bool K_MAJOR> inline size_t place_of(const Described &operand, int outer, int k, int bytes) {
  const int row = K_MAJOR ? outer : k, column = (K_MAJOR ? k : outer) * bytes;
  size_t place = size_t(operand.start - state.shared) + size_t(row / 8) * operand.group + size_t(row % 8) * 128 +
                 size_t(column / 128) * operand.piece + column % 128;
  return place ^ (place >> 7 & 7) << 4;
}

template <typename T, bool K_MAJOR> inline float factor_at(const Described &operand, int outer, int k) {
  typename T::bits bits;
  memcpy(&bits, state.shared + place_of<K_MAJOR>(operand, outer, k, sizeof bits), sizeof bits);
  return T::value(bits);
}

template <typename T, int N, bool A_K, bool B_K> inline void compute_rows(const Product &one, int warp) {
  constexpr int K = 32 / sizeof(typename T::bits);
  static float a[16][K], b[K][N];
  const int first = 16 * (warp % 4);
  for (int r = 0; r < 16; ++r)
    for (int k = 0; k < K; ++k) a[r][k] = factor_at<T, A_K>(one.a, first + r, k);
  for (int n = 0; n < N; ++n)
    for (int k = 0; k < K; ++k) b[k][n] = factor_at<T, B_K>(one.b, n, k);
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < N / 2; ++i) {
      const int row = l / 4 + 8 * (i / 2 % 2), column = i / 4 * 8 + l % 4 * 2 + i % 2;
      float sum = one.c[l][i];
      for (int k = 0; k < K; ++k) sum = fmaf(a[row][k], b[k][column], sum);
      one.c[l][i] = sum;
    }
}

template <bool K_MAJOR> inline void check_operand(const Described &operand, int outers, int ks, int bytes) {
  const size_t place = size_t(operand.start - state.shared);
  if (place % 16 || place % 1024 >= 128) fail("a product's operand begins at byte %zu of shared memory", place);
  if (operand.group % 16 || operand.piece % 16 || operand.group >> 18 || operand.piece >> 18)
    fail("a product's operand has distances of %d and %d bytes", operand.group, operand.piece);
  for (int outer = 0; outer < outers; ++outer)
    for (int k = 0; k < ks; ++k) {
      const size_t at = place_of<K_MAJOR>(operand, outer, k, bytes);
      if (at + bytes > state.shared_bytes) fail("a product reads byte %zu of %zu of shared memory", at, state.shared_bytes);
      if (memcmp(shown + at, state.shared + at, bytes))
        fail("a product reads byte %zu of shared memory, which was written, but not shown to the unit", at);
    }
}

inline int warp_of(const Fragments *lanes) { return int(lanes - state.fragments) / 32; }

template <typename T, int N, bool A_K, int A_GROUP, int A_PIECE, bool B_K, int B_GROUP, int B_PIECE>
inline void issue(const Fragments *lanes) {
  constexpr int BYTES = sizeof(typename T::bits), K = 32 / BYTES;
  const int warp = warp_of(lanes);
  Units &unit = units[warp];
  Product one{};
  one.a = {static_cast<const char *>(lanes[0].a), A_GROUP, A_PIECE};
  one.b = {static_cast<const char *>(lanes[0].b), B_GROUP, B_PIECE};
  one.group = unit.committed;
  one.compute = compute_rows<T, N, A_K, B_K>;
  for (int l = 0; l < 32; ++l) {
    if (lanes[l].a != lanes[0].a || lanes[l].b != lanes[0].b) fail("threads give a product different operands");
    one.c[l] = static_cast<float *>(lanes[l].c);
  }
  List<Product> &group = called[warp / 4];
  if (size_t(unit.issued) == group.size) group.push(one);
  const Product &first = group[unit.issued++];
  if (first.a.start != one.a.start || first.b.start != one.b.start || first.compute != one.compute)
    fail("warps of one group call different products");
  if (!unit.fenced) fail("a product without a fence before it");
  check_operand<A_K>(one.a, 64, K, BYTES);
  check_operand<B_K>(one.b, N, K, BYTES);
  if (late_products())
    unit.pending.push(one);
  else
    one.compute(one, warp);
}

inline void fence_units(const Fragments *lanes) { units[warp_of(lanes)].fenced = true; }
inline void commit_units(const Fragments *lanes) {
  Units &unit = units[warp_of(lanes)];
  ++unit.committed;
  unit.fenced = false;
}
template <int N> inline void wait_units(const Fragments *lanes) {
  const int warp = warp_of(lanes);
  Units &unit = units[warp];
  size_t done = 0;
  for (; done < unit.pending.size && unit.pending[done].group < unit.committed - N; ++done)
    unit.pending[done].compute(unit.pending[done], warp);
  if (done) memmove(unit.pending.values, unit.pending.values + done, (unit.pending.size -= done) * sizeof(Product));
}

/* All threads of a warp call an instruction. */
inline void call_unit(void (*instruction)(const Fragments *), const Fragments &own, int line) {
  const int self = state.current;
  if (WARP != 32 || self / 128 * 128 + 128 > state.threads) fail("a product at line %d needs 128 threads", line);
  state.fragments[self] = own;
  state.instruction = instruction;
  lane_barrier(UNIT, ALL_LANES, 0, line);
}

} /* namespace pd_fiber */

/* c += a * b by 128 threads; K: whether elements along k are neighbours; distances of 8 rows, and of 128 bytes. */
template <typename T, int N, bool A_K, int A_GROUP, int A_PIECE, bool B_K, int B_GROUP, int B_PIECE>
inline void pd_unit_product(const void *a, const void *b, float *c, int line) {
  using namespace pd_fiber;
  call_unit(issue<T, N, A_K, A_GROUP, A_PIECE, B_K, B_GROUP, B_PIECE>, {a, b, c}, line);
}
inline void pd_unit_fence(int line = __builtin_LINE()) { pd_fiber::call_unit(pd_fiber::fence_units, {}, line); }
inline void pd_unit_commit(int line = __builtin_LINE()) { pd_fiber::call_unit(pd_fiber::commit_units, {}, line); }
template <int N> inline void pd_unit_wait(int line = __builtin_LINE()) {
  pd_fiber::call_unit(pd_fiber::wait_units<N>, {}, line);
}
template <int N> inline void pd_unit_hold(float (&)[N]) {}
/* Show units what threads have written to shared memory. */
inline void pd_unit_show() {
  using namespace pd_fiber;
  memcpy(shown, state.shared, state.shared_bytes);
}

#pragma GCC visibility pop
