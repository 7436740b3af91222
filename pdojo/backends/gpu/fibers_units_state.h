/* Fibers: instructions of tensor units that run while their threads go on, and what units see of shared memory. */
#pragma once
#include "fibers_memory.h"
#include "fibers_state.h"
#pragma GCC visibility push(hidden)

namespace pd_fiber {

/* An operand that a unit reads from shared memory: its first element, and the distances of a descriptor in bytes. */
struct Described {
  const char *start;
  int group, piece;
};
/* The part of an instruction that belongs to one of its warps. */
struct Product {
  Described a, b;
  float *c[32];
  int group; /* the number of groups that ended before */
  void (*compute)(const Product &, int warp);
};
struct Units {
  List<Product> pending; /* if products are late */
  int issued, committed;
  bool fenced;
};
inline Units units[MOST_THREADS / 32];
/* Instructions that the first of four warps has come to, which the others must come to, too. */
inline List<Product> called[MOST_THREADS / 128];
/* Shared memory as units see it: threads show what they have written. */
inline char *shown;

/* A GPU may compute at once or at the wait; where copies are late, products are early. */
inline bool late_products() { return !state.late; }

inline void begin_units() {
  for (Units &one : units) {
    one.pending.size = 0;
    one.issued = one.committed = 0;
    one.fenced = false;
  }
  for (List<Product> &one : called) one.size = 0;
  memcpy(shown, state.shared, state.shared_bytes);
}

inline void check_units() {
  for (int w = 0; w < MOST_THREADS / 32; ++w) {
    if (units[w].pending.size) fail("warp %d ends while %zu products run", w, units[w].pending.size);
    if (units[w].issued != units[w / 4 * 4].issued)
      fail("warp %d calls %d products, warp %d of the same group %d", w, units[w].issued, w / 4 * 4,
           units[w / 4 * 4].issued);
  }
}

} /* namespace pd_fiber */

#pragma GCC visibility pop
