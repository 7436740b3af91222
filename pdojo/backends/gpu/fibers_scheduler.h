/* Fibers: the order of threads and of blocks. */
#pragma once
#include "fibers_memory.h"
#include "fibers_state.h"
#include "fibers_units_state.h"
#pragma GCC visibility push(hidden)

namespace pd_fiber {

inline uint64_t random_number() {
  uint64_t z = state.seed += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/* The order of the threads until the next barrier of the block, when none has a rank in `ready`. */
inline void rank_threads() {
  const int n = state.threads;
  for (int r = 0; r < n; ++r) state.thread[r] = state.order == DESCENDING ? n - 1 - r : r;
  if (state.order == SHUFFLED)
    for (int r = n - 1; r > 0; --r) swap(state.thread[r], state.thread[random_number() % (r + 1)]);
  for (int r = 0; r < n; ++r) state.rank[state.thread[r]] = r;
}

inline void all_ready() {
  if (state.order == SHUFFLED) rank_threads();
  const int n = state.threads;
  for (int w = 0; w < (n + 63) / 64; ++w) state.ready[w] = n - 64 * w >= 64 ? ~0ull : (1ull << (n - 64 * w)) - 1;
  state.lowest = 0;
}

inline void make_ready(int thread) {
  const int r = state.rank[thread];
  state.ready[r / 64] |= 1ull << (r % 64);
  if (r / 64 < state.lowest) state.lowest = r / 64;
}

/* The ready thread of the lowest rank, so that some threads run as far ahead as they can; -1 if none is ready. */
__attribute__((always_inline)) inline int pick() {
  const int words = (state.threads + 63) / 64;
  for (; state.lowest < words; ++state.lowest) {
    uint64_t &word = state.ready[state.lowest];
    if (word) {
      const int r = 64 * state.lowest + __builtin_ctzll(word);
      word &= word - 1;
      return state.thread[r];
    }
  }
  return -1;
}

/* No thread can go on, and not all have ended. */
[[noreturn]] __attribute__((noinline, cold)) inline void deadlock() {
  /* Waits in warps first: a lane that is missing there keeps the block from its barrier, too. */
  for (int k = 0; k < 2 * state.threads; ++k) {
    const int t = k % state.threads;
    const Fiber &fiber = state.fibers[t];
    if (fiber.waiting == NOWHERE || (fiber.waiting == BLOCK) != (k >= state.threads)) continue;
    for (int other = 0; other < state.threads; ++other) {
      const Fiber &member = state.fibers[other];
      const bool called = fiber.waiting == BLOCK || (other / WARP == t / WARP && fiber.mask >> (other % WARP) & 1);
      if (!called || (!member.ended && member.waiting == fiber.waiting)) continue;
      state.current = t;
      fail("it waits in %s at line %d for thread %d, which %s", waiting_name(fiber.waiting), fiber.line, other,
           whereabouts(other));
    }
  }
  fail("the threads of the block wait for each other");
}

inline int new_stack() {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *low = mmap(nullptr, PAGE_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (low == MAP_FAILED) fail("there is no memory for the stacks of the threads");
  mprotect(low, PAGE_BYTES, PROT_NONE);
  state.stacks.push(static_cast<char *>(low));
  return int(state.stacks.size) - 1;
}

inline void run_threads();

/* Go to a thread that is to run; returns when the thread whose context is `own` runs again. */
__attribute__((always_inline)) inline void go(Context &own, int next) {
  Fiber &fiber = state.fibers[next];
  state.current = next;
  if (!fiber.started) {
    int stack;
    if (state.free_stacks.size == 0) {
      stack = new_stack();
    } else {
      stack = state.free_stacks[--state.free_stacks.size];
    }
    state.starting_stack = stack;
    char *low = state.stacks[stack] + PAGE_BYTES;
    /* Stacks begin at different places of their pages, or they would compete for the same lines of the cache. */
    prepare(fiber.context, low, low + STACK_BYTES - stack % 64 * 64, run_threads);
  }
  switch_context(own, fiber.context);
}

/* The first function on a stack: runs one thread after the other to its end. */
inline void run_threads() {
  const int stack = state.starting_stack;
  for (;;) {
    Fiber &fiber = state.fibers[state.current];
    fiber.started = true;
    threadIdx.x = state.current;
    state.body(state.closure);
    fiber.ended = true;
    state.copies[state.current].pending.size = 0;
    ++state.ended;
    const int next = pick();
    if (next >= 0 && !state.fibers[next].started) {
      state.current = next;
      continue;
    }
    state.free_stacks.push(stack);
    if (next >= 0) {
      go(state.gone, next);
    } else {
      if (state.ended < state.threads) deadlock();
      switch_context(state.gone, state.host);
    }
    __builtin_unreachable();
  }
}

/* Run other threads until the current one is ready. */
__attribute__((always_inline)) inline void wait_here() {
  const int self = state.current, next = pick();
  if (next == self) return;
  if (next < 0) deadlock();
  go(state.fibers[self].context, next);
  threadIdx.x = self;
}

__attribute__((noinline)) inline void run_grid(const char *name, long blocks, long threads, size_t shared_bytes,
                                               void (*body)(void *), void *closure) {
  state.kernel = nullptr;
  if (threads < 1 || threads > MOST_THREADS) fail("kernel '%s': a block cannot have %ld threads", name, threads);
  if (blocks < 1 || blocks > 0x7fffffffL) fail("kernel '%s': a grid cannot have %ld blocks", name, blocks);
  watch(blocks);
  map_shared(shared_bytes);
  const Region shared = state.regions[state.regions.size - 1];
  shown = static_cast<char *>(malloc(shared_bytes + 1));
  if (!shown) fail("there is no memory for what units see of shared memory");
  state.kernel = name;
  state.threads = int(threads);
  state.body = body;
  state.closure = closure;
  gridDim.x = unsigned(blocks);
  blockDim.x = unsigned(threads);
  rank_threads();
  /* Blocks run in the order of threads. */
  List<unsigned> numbers{};
  for (long block = 0; state.order == SHUFFLED && block < blocks; ++block) numbers.push(unsigned(block));
  for (long k = long(numbers.size) - 1; k > 0; --k) swap(numbers[k], numbers[random_number() % (k + 1)]);
  for (long turn = 0; turn < blocks; ++turn) {
    const long block = state.order == DESCENDING ? blocks - 1 - turn : turn;
    blockIdx.x = numbers.size ? numbers[turn] : unsigned(block);
    memset(shared.start, 0xff, shared.high - shared.start);
    for (int t = 0; t < threads; ++t) {
      Fiber &fiber = state.fibers[t];
      fiber.started = fiber.ended = false;
      fiber.waiting = NOWHERE;
      state.copies[t].committed = 0;
    }
    memset(state.arrived_lanes, 0, sizeof state.arrived_lanes);
    state.ended = state.arrived = 0;
    begin_units();
    all_ready();
    go(state.host, pick());
    check_outcome();
    check_units();
    check_written();
  }
  written.active = false;
  state.kernel = nullptr;
  free(shown);
  munmap(shared.low - shared.gap, shared.high - shared.low + 2 * shared.gap);
  --state.regions.size;
  free(numbers.values);
}

} /* namespace pd_fiber */

#pragma GCC visibility pop
