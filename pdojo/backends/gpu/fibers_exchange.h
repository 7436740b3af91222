/* Fibers: barriers, and exchanges of the threads of a warp. */
#pragma once
#include "fibers_scheduler.h"
#pragma GCC visibility push(hidden)

namespace pd_fiber {

/* All threads of the block wait for each other. */
__attribute__((noinline)) inline void block_barrier(int line) {
  const int self = state.current;
  Fiber &fiber = state.fibers[self];
  if (state.arrived++ == 0) {
    state.barrier_line = line;
    state.barrier_thread = self;
  } else if (line != state.barrier_line) {
    fail("it is in __syncthreads at line %d, but thread %d waits in __syncthreads at line %d", line,
         state.barrier_thread, state.barrier_line);
  }
  fiber.waiting = BLOCK;
  fiber.line = line;
  if (state.arrived == state.threads) {
    state.arrived = 0;
    for (int t = 0; t < state.threads; ++t) state.fibers[t].waiting = NOWHERE;
    all_ready();
  }
  wait_here();
}

/* The lanes in `mask` of the caller's warp wait for each other; the last one exchanges the values. */
__attribute__((noinline)) inline void lane_barrier(Waiting waiting, uint64_t mask, int offset, int line) {
  const int self = state.current, base = self / WARP * WARP;
  Fiber &fiber = state.fibers[self];
  uint64_t &lanes = state.arrived_lanes[self / WARP];
  fiber.waiting = waiting;
  fiber.line = line;
  fiber.mask = mask;
  fiber.offset = offset;
  lanes |= 1ull << (self % WARP);
  if ((lanes & mask) == mask) {
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
      const int t = base + __builtin_ctzll(rest);
      Fiber &member = state.fibers[t];
      if (member.waiting != waiting || member.line != line || member.mask != mask)
        fail("it waits in %s at line %d for thread %d, which %s%s", waiting_name(waiting), line, t, whereabouts(t),
             member.line == line ? " for other lanes" : "");
      if (member.offset != offset)
        fail("it exchanges at line %d with offset %d, thread %d with offset %d", line, offset, t, member.offset);
    }
    lanes &= ~mask;
    if (waiting == MATRIX || waiting == MATRIX_LOAD || waiting == UNIT) state.instruction(&state.fragments[base]);
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
      const int t = base + __builtin_ctzll(rest);
      if (waiting == SHUFFLE) memcpy(state.received[t], state.sent[t ^ offset], 16);
      state.fibers[t].waiting = NOWHERE;
      make_ready(t);
    }
  }
  wait_here();
}

inline void warp_barrier(uint64_t mask, int line) {
  const int lane = state.current % WARP, present = state.threads - (state.current - lane);
  mask &= present >= WARP ? ALL_LANES : (1ull << present) - 1;
  if (!(mask >> lane & 1)) fail("the mask of __syncwarp at line %d lacks its own lane %d", line, lane);
  lane_barrier(WARP_BARRIER, mask, 0, line);
}

inline void check_exchange(int offset, int width, int line) {
  if (width < 1 || width > WARP || (width & (width - 1)))
    fail("pd_shfl_xor at line %d among %d lanes: not a power of two up to %d", line, width, WARP);
  if (offset < 0 || offset >= width) fail("pd_shfl_xor at line %d with offset %d among %d lanes", line, offset, width);
  const int first = state.current & ~(width - 1);
  if (first + width > state.threads)
    fail("it waits in pd_shfl_xor at line %d for thread %d, but the block has %d threads", line, first + width - 1,
         state.threads);
}

} /* namespace pd_fiber */

#pragma GCC visibility pop
