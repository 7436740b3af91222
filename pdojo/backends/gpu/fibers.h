/* Runs the text of CUDA C++ kernels on a CPU: one block at a time, one fiber per thread of the block. A fiber runs
   until it waits at a barrier or an exchange. This file begins a generated file, is compiled as C++17 with PD_WARP
   defined as the threads of a warp (32 or 64), and runs in a process of its own: an error is written to standard
   output, with the kernel, the block and the thread, and ends the process with status 3. `fibers.py` is the caller. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <type_traits>
#include <utility>
#include <vector>
#if !defined(__x86_64__) && !defined(PD_UCONTEXT)
#define PD_UCONTEXT
#endif
#ifdef PD_UCONTEXT
#include <ucontext.h>
#endif
#ifndef FP_FAST_FMA
#define FP_FAST_FMA 1
#endif

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

/* Only the functions of the text and what the caller needs are visible outside. */
#pragma GCC visibility push(hidden)

struct pd_index {
  unsigned x, y, z;
};
pd_index threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim{1, 1, 1}, gridDim{1, 1, 1};

namespace pd_fiber {

constexpr int WARP = PD_WARP;
static_assert(WARP == 32 || WARP == 64, "a warp has 32 or 64 threads");
constexpr int MOST_THREADS = 1024;
constexpr uint64_t ALL_LANES = WARP == 64 ? ~0ull : 0xffffffffull;
constexpr size_t STACK_BYTES = 256 << 10, ALIGNMENT = 64;
constexpr size_t PAGE_BYTES = 64 << 10; /* a multiple of the pages of any system */
/* Inaccessible bytes on each side of an array, so that a wrong index does not reach another array. */
constexpr size_t GAP_BYTES = size_t(1) << 30;

enum Order { ASCENDING, DESCENDING, SHUFFLED };
enum Waiting : uint8_t { NOWHERE, BLOCK, WARP_BARRIER, SHUFFLE, MATRIX };

#ifdef PD_UCONTEXT
struct Context {
  ucontext_t registers;
};
inline void switch_context(Context &from, Context &to) { swapcontext(&from.registers, &to.registers); }
inline void prepare(Context &context, char *low, char *high, void (*entry)()) {
  getcontext(&context.registers);
  context.registers.uc_stack.ss_sp = low;
  context.registers.uc_stack.ss_size = high - low;
  context.registers.uc_link = nullptr;
  makecontext(&context.registers, entry, 0);
}
#else
struct Context {
  void *stack;
};
#ifdef __AVX512F__
#define PD_MORE_REGISTERS                                                                                          \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",  \
      "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define PD_MORE_REGISTERS
#endif
/* Inlined, and `pop; jmp` rather than `ret`: a processor predicts the target of a `ret` from the matching call. So the
   next `ret` is predicted from the call of the fiber before, which is most often at the same place. */
__attribute__((always_inline)) inline void switch_context(Context &from, Context &to) {
  void **place = &from.stack, *stack = to.stack;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t" /* what a function may use below its stack pointer */
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rcx\n\t"
      "pushq %%rcx\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rsi, %%rsp\n\t"
      "popq %%rcx\n\t"
      "jmpq *%%rcx\n"
      "1:\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp\n\t"
      : "+D"(place), "+S"(stack)
      :
      : "memory", "cc", "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15" PD_MORE_REGISTERS);
}
inline void prepare(Context &context, char *, char *high, void (*entry)()) {
  void **top = reinterpret_cast<void **>(high);
  *--top = nullptr; /* where a caller would have left its address */
  *--top = reinterpret_cast<void *>(entry);
  context.stack = top;
}
#endif

struct Copy {
  void *to;
  const void *from;
  int bytes, group;
};

/* Small, so that the fibers of a block stay in the cache. */
struct Fiber {
  Context context;
  uint64_t mask; /* the lanes of the warp that take part */
  int line;      /* of the barrier or the exchange */
  int offset;    /* of an exchange */
  Waiting waiting;
  bool started, ended;
};

struct Copies {
  std::vector<Copy> pending;
  int committed; /* groups */
};

/* What a thread gives to an instruction of its warp, and where it gets its part of the result. */
struct Fragments {
  const void *a, *b;
  float *c;
};

struct Region {
  char *low, *high; /* accessible */
  char *start;
  size_t size;
  char name[48];
  size_t gap; /* inaccessible bytes on each side */
};

struct State {
  /* Settings. */
  bool late;
  Order order;
  uint64_t seed;
  double limit;
  std::vector<Region> regions;
  /* The launch. */
  const char *kernel;
  int threads;
  char *shared;
  size_t shared_bytes;
  void (*body)(void *);
  void *closure;
  /* The block. Bit `r` of `ready` stands for the thread of rank `r` in the order. */
  int current, ended, arrived, barrier_line, barrier_thread;
  uint64_t ready[MOST_THREADS / 64];
  int lowest; /* words of `ready` below are zero */
  int rank[MOST_THREADS], thread[MOST_THREADS];
  uint64_t arrived_lanes[MOST_THREADS / 32]; /* of a warp, at a barrier or an exchange of lanes */
  alignas(16) unsigned char sent[MOST_THREADS][16], received[MOST_THREADS][16];
  Fragments fragments[MOST_THREADS]; /* of an instruction of a warp */
  void (*multiply)(const Fragments *warp);
  Fiber fibers[MOST_THREADS];
  Copies copies[MOST_THREADS];
  Context host, gone;
  std::vector<char *> stacks; /* guard page, then STACK_BYTES */
  std::vector<int> free_stacks;
  int starting_stack;
};
inline State state;

/* Report an error and end the process. */
[[noreturn]] __attribute__((format(printf, 1, 2), noinline, cold)) inline void fail(const char *format, ...) {
  static char text[2048];
  size_t length = 0;
  if (state.kernel)
    length = snprintf(text, sizeof text, "kernel '%s', block %u, thread %d: ", state.kernel, blockIdx.x, state.current);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(text + length, sizeof text - length, format, arguments);
  va_end(arguments);
  if (length >= sizeof text) length = sizeof text - 1;
  if (write(1, text, length) < 0) _exit(4);
  _exit(3);
}

inline const char *waiting_name(Waiting waiting) {
  static const char *const names[] = {"nothing", "__syncthreads", "__syncwarp", "pd_shfl_xor", "pd_mma"};
  return names[waiting];
}

/* The type with which numbers are added: unsigned for integers. */
template <typename T, bool INTEGER = std::is_integral<T>::value> struct Word {
  typedef T type;
};
template <typename T> struct Word<T, true> {
  typedef typename std::make_unsigned<T>::type type;
};

/* What blocks write, for grids in small memory: the bytes before the block, and which block changed each.

   A GPU runs blocks at the same time. A number that two blocks change without an atomic operation loses one of the
   changes, which blocks that run one after the other do not show. */
struct Written {
  std::vector<std::vector<unsigned char>> before;
  std::vector<std::vector<int>> writer; /* of each byte: 1 more than the block's number; -1: by atomic operations */
  bool active;
};
inline Written written;

/* An atomic operation stores its result: no other block comes in between. */
template <typename T> inline void atomic(T *to, T value);

/* Why a thread does not come to where another one waits. */
inline const char *whereabouts(int thread) {
  static char text[128];
  const Fiber &fiber = state.fibers[thread];
  if (fiber.ended) return "has ended";
  if (fiber.waiting == NOWHERE) return "runs";
  snprintf(text, sizeof text, "waits in %s at line %d", waiting_name(fiber.waiting), fiber.line);
  return text;
}

/* ------------------------------------------------------------------------------------------------ scheduling */

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
    for (int r = n - 1; r > 0; --r) std::swap(state.thread[r], state.thread[random_number() % (r + 1)]);
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
  state.stacks.push_back(static_cast<char *>(low));
  return int(state.stacks.size()) - 1;
}

inline void run_threads();

/* Go to a thread that is to run; returns when the thread whose context is `own` runs again. */
__attribute__((always_inline)) inline void go(Context &own, int next) {
  Fiber &fiber = state.fibers[next];
  state.current = next;
  if (!fiber.started) {
    int stack;
    if (state.free_stacks.empty()) {
      stack = new_stack();
    } else {
      stack = state.free_stacks.back();
      state.free_stacks.pop_back();
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
    state.copies[state.current].pending.clear();
    ++state.ended;
    const int next = pick();
    if (next >= 0 && !state.fibers[next].started) {
      state.current = next;
      continue;
    }
    state.free_stacks.push_back(stack);
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

inline void check_outcome() {
  const size_t rest = -state.shared_bytes % ALIGNMENT;
  const char *end = state.shared + state.shared_bytes;
  for (size_t k = 0; k < rest; ++k)
    if (end[k] != char(0xff)) fail("the block wrote %zu bytes past the end of its shared memory", k);
}

/* Memory whose end touches an inaccessible page; `descriptor` -1: of no file. */
inline char *map_memory(size_t length, int descriptor, off_t offset, bool writable, Region &region) {
  for (size_t gap = GAP_BYTES; gap >= PAGE_BYTES; gap /= 4) {
    void *found = mmap(nullptr, length + 2 * gap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) continue;
    char *low = static_cast<char *>(found) + gap;
    const int flags = MAP_FIXED | (descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
    const int allowed = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    if (length && mmap(low, length, allowed, flags, descriptor, offset) == MAP_FAILED) break;
    region.low = low;
    region.high = low + length;
    region.gap = gap;
    return low;
  }
  fail("there is no memory for an array of %zu bytes", length);
}

inline void map_shared(size_t bytes) {
  const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const size_t length = (rounded + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  Region region{nullptr, nullptr, nullptr, bytes, "the shared memory", 0};
  map_memory(length, -1, 0, true, region);
  region.start = region.high - rounded;
  state.regions.push_back(region);
  state.shared = region.start;
  state.shared_bytes = bytes;
}

constexpr size_t MOST_COMPARED = size_t(1) << 30; /* bytes, of all blocks together */

/* Begin to watch what the blocks of a grid write. */
inline void watch(long blocks) {
  size_t bytes = 0;
  for (const Region &region : state.regions) bytes += region.size;
  written.active = blocks > 1 && bytes * size_t(blocks) <= MOST_COMPARED;
  written.before.clear();
  written.writer.clear();
  if (!written.active) return;
  for (const Region &region : state.regions) {
    const auto *from = reinterpret_cast<unsigned char *>(region.start);
    written.before.emplace_back(from, from + region.size);
    written.writer.emplace_back(region.size, 0);
  }
}

/* What the block wrote that has ended. */
inline void check_written() {
  const int block = int(blockIdx.x) + 1;
  for (size_t k = 0; written.active && k < written.before.size(); ++k) {
    const Region &region = state.regions[k];
    const auto *now = reinterpret_cast<unsigned char *>(region.start);
    unsigned char *before = written.before[k].data();
    if (memcmp(now, before, region.size) == 0) continue;
    for (size_t at = 0; at < region.size; ++at) {
      if (now[at] == before[at]) continue;
      int &writer = written.writer[k][at];
      if (writer < 0) fail("the block writes byte %zu of %s, which blocks change by atomic operations", at, region.name);
      if (writer && writer != block)
        fail("the block writes byte %zu of %s, which block %d wrote: that takes an atomic operation", at, region.name,
             writer - 1);
      writer = block;
      before[at] = now[at];
    }
  }
}

template <typename T> inline void atomic(T *to, T value) {
  if (reinterpret_cast<uintptr_t>(to) % sizeof(T)) fail("an atomic operation on a misaligned number");
  const T old = *to;
  *to = value;
  const char *place = reinterpret_cast<char *>(to);
  for (size_t k = 0; written.active && k < written.before.size(); ++k) {
    const Region &region = state.regions[k];
    if (place < region.start || place >= region.start + region.size) continue;
    const size_t at = size_t(place - region.start);
    if (memcmp(&written.before[k][at], &old, sizeof(T)))
      fail("an atomic operation on byte %zu of %s, which the block wrote otherwise", at, region.name);
    memcpy(&written.before[k][at], &value, sizeof(T));
    for (size_t byte = at; byte < at + sizeof(T); ++byte) {
      const int writer = written.writer[k][byte];
      if (writer > 0)
        fail("an atomic operation on byte %zu of %s, which block %d wrote otherwise", byte, region.name, writer - 1);
      written.writer[k][byte] = -1;
    }
  }
}

__attribute__((noinline)) inline void run_grid(const char *name, long blocks, long threads, size_t shared_bytes,
                                               void (*body)(void *), void *closure) {
  state.kernel = nullptr;
  if (threads < 1 || threads > MOST_THREADS) fail("kernel '%s': a block cannot have %ld threads", name, threads);
  if (blocks < 1 || blocks > 0x7fffffffL) fail("kernel '%s': a grid cannot have %ld blocks", name, blocks);
  const std::vector<Region> regions = state.regions;
  watch(blocks);
  map_shared(shared_bytes);
  const Region shared = state.regions.back();
  state.kernel = name;
  state.threads = int(threads);
  state.body = body;
  state.closure = closure;
  gridDim.x = unsigned(blocks);
  blockDim.x = unsigned(threads);
  rank_threads();
  /* Blocks run in the order of threads. */
  std::vector<unsigned> numbers;
  for (long block = 0; state.order == SHUFFLED && block < blocks; ++block) numbers.push_back(unsigned(block));
  for (long k = long(numbers.size()) - 1; k > 0; --k) std::swap(numbers[k], numbers[random_number() % (k + 1)]);
  for (long turn = 0; turn < blocks; ++turn) {
    const long block = state.order == DESCENDING ? blocks - 1 - turn : turn;
    blockIdx.x = numbers.empty() ? unsigned(block) : numbers[turn];
    memset(shared.start, 0xff, shared.high - shared.start);
    for (int t = 0; t < threads; ++t) {
      Fiber &fiber = state.fibers[t];
      fiber.started = fiber.ended = false;
      fiber.waiting = NOWHERE;
      state.copies[t].committed = 0;
    }
    memset(state.arrived_lanes, 0, sizeof state.arrived_lanes);
    state.ended = state.arrived = 0;
    all_ready();
    go(state.host, pick());
    check_outcome();
    check_written();
  }
  written.active = false;
  state.kernel = nullptr;
  munmap(shared.low - shared.gap, shared.high - shared.low + 2 * shared.gap);
  state.regions = regions;
}

/* ------------------------------------------------------------------------------------- barriers and exchanges */

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
    if (waiting == MATRIX) state.multiply(&state.fragments[base]);
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

inline void *shared_array(size_t offset, size_t bytes, size_t alignment) {
  if (offset % alignment)
    fail("an array in shared memory at offset %zu is not aligned to %zu bytes", offset, alignment);
  if (offset + bytes > state.shared_bytes)
    fail("an array of %zu bytes at offset %zu of %zu bytes of shared memory", bytes, offset, state.shared_bytes);
  return state.shared + offset;
}

inline void copy(void *to, const void *from, int bytes, int line) {
  const uintptr_t target = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  const uintptr_t shared = reinterpret_cast<uintptr_t>(state.shared);
  if ((target | source) % bytes)
    fail("an asynchronous copy of %d bytes at line %d is misaligned: target %% %d = %d, source %% %d = %d", bytes, line,
         bytes, int(target % bytes), bytes, int(source % bytes));
  if (target < shared || target + bytes > shared + state.shared_bytes)
    fail("an asynchronous copy at line %d goes outside of shared memory", line);
  if (!state.late) {
    memcpy(to, from, bytes);
    return;
  }
  Copies &copies = state.copies[state.current];
  copies.pending.push_back({to, from, bytes, copies.committed});
}

/* Late copies land: all but those of the last `outstanding` groups, and those of no group. */
inline void land(int outstanding) {
  Copies &copies = state.copies[state.current];
  size_t landed = 0;
  for (; landed < copies.pending.size(); ++landed) {
    const Copy &one = copies.pending[landed];
    if (one.group >= copies.committed - outstanding) break;
    memcpy(one.to, one.from, one.bytes);
  }
  copies.pending.erase(copies.pending.begin(), copies.pending.begin() + landed);
}

/* ------------------------------------------------------------------------------------------- errors of the CPU */

extern "C" const char __ehdr_start; /* where the linker puts the beginning of the library */

/* Where an address is that cannot be accessed. */
inline void wrong_address(char *address, const char *code) {
  for (char *stack : state.stacks)
    if (address >= stack && address < stack + PAGE_BYTES) fail("its stack overflows%s", code);
  const Region *nearest = nullptr;
  size_t least = GAP_BYTES;
  for (const Region &region : state.regions) {
    const size_t distance = address < region.start ? region.start - address : address - region.start;
    const size_t outside = address < region.start ? distance : distance < region.size ? 0 : distance - region.size;
    if (outside < least || (!nearest && outside == 0)) nearest = &region, least = outside;
  }
  if (!nearest) fail("it accesses address %p, which is in no array%s", static_cast<void *>(address), code);
  const long place = long(address - nearest->start);
  if (place >= 0 && size_t(place) < nearest->size) fail("it writes to %s, which is read-only%s", nearest->name, code);
  fail("it accesses byte %ld of %s, which has %zu bytes%s", place, nearest->name, nearest->size, code);
}

inline void on_signal(int number, siginfo_t *info, void *context) {
  char code[64] = "";
#ifdef __x86_64__
  const auto *registers = static_cast<const ucontext_t *>(context);
  const long place = long(registers->uc_mcontext.gregs[REG_RIP] - reinterpret_cast<greg_t>(&__ehdr_start));
  snprintf(code, sizeof code, " (code %#lx)", place);
#else
  (void)context;
#endif
  if (number == SIGSEGV || number == SIGBUS) wrong_address(static_cast<char *>(info->si_addr), code);
  if (number == SIGFPE) fail("it divides an integer by zero%s", code);
  if (number == SIGALRM) fail("it still runs after %g s%s", state.limit, code);
  fail("it executes an invalid instruction%s", code);
}

struct SourceLocation {
  const char *file;
  uint32_t line, column;
};
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];
};
struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor *type;
  unsigned char log_alignment, kind;
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor *array, *index;
};

[[noreturn]] inline void wrong_type(const TypeMismatch *data, uintptr_t address) {
  const size_t alignment = size_t(1) << data->log_alignment;
  if (address % alignment)
    fail("it accesses a %s at line %u that is not aligned to %zu bytes", data->type->name, data->location.line,
         alignment);
  fail("it accesses a %s at line %u outside of its array", data->type->name, data->location.line);
}

} /* namespace pd_fiber */

/* What the sanitizers of g++ and clang call; the library of the compiler is not linked. */
#define PD_EXPORT extern "C" __attribute__((used, visibility("default")))
PD_EXPORT void __ubsan_handle_type_mismatch_v1_abort(pd_fiber::TypeMismatch *data, uintptr_t address) {
  pd_fiber::wrong_type(data, address);
}
PD_EXPORT void __ubsan_handle_out_of_bounds_abort(pd_fiber::OutOfBounds *data, uintptr_t index) {
  const bool narrow = sizeof index > 4 && (1u << (data->index->info >> 1)) <= 32 && (data->index->info & 1);
  pd_fiber::fail("index %ld at line %u is out of the bounds of %s", narrow ? long(int(index)) : long(index),
                 data->location.line, data->array->name);
}

/* Choose how kernels run: whether asynchronous copies land late; the order of threads; seconds for the process. */
PD_EXPORT void pd_fiber_setup(int late, int order, uint64_t seed, double limit) {
  using namespace pd_fiber;
  state.late = late;
  state.order = Order(order);
  state.seed = seed;
  state.limit = limit;
  static char stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGALRM}) sigaction(number, &action, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = time_t(limit);
  timer.it_value.tv_usec = suseconds_t((limit - double(timer.it_value.tv_sec)) * 1e6) + 1;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

/* Map an array: `length` bytes of a file from `offset`, between inaccessible pages; `size` bytes from `start`. */
PD_EXPORT void *pd_fiber_array(int number, int file, long offset, long length, long start, long size, int writable) {
  pd_fiber::Region region{};
  snprintf(region.name, sizeof region.name, "array %d", number);
  region.start = pd_fiber::map_memory(length, file, offset, writable, region) + start;
  region.size = size;
  pd_fiber::state.regions.push_back(region);
  return region.start;
}

/* ------------------------------------------------------------------------------------- what generated text calls */

inline void __syncthreads(int line = __builtin_LINE()) { pd_fiber::block_barrier(line); }

inline void __syncwarp(uint64_t mask = pd_fiber::ALL_LANES, int line = __builtin_LINE()) {
  pd_fiber::warp_barrier(mask, line);
}

/* Groups of N neighbouring threads of a warp wait for each other. */
template <int N> inline void pd_sync_group(int line = __builtin_LINE()) {
  static_assert(N > 0 && pd_fiber::WARP % N == 0, "whole groups fill a warp");
  const int lane = pd_fiber::state.current % pd_fiber::WARP;
  pd_fiber::warp_barrier((N == 64 ? ~0ull : (1ull << N % 64) - 1) << (lane & ~(N - 1)), line);
}

/* The value of the lane `offset` away (by exclusive or) among `width` neighbours of a warp, all of which call this. */
template <typename T> inline T pd_shfl_xor(T value, int offset, int width, int line = __builtin_LINE()) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 16, "a value of at most 16 bytes");
  using namespace pd_fiber;
  check_exchange(offset, width, line);
  const int self = state.current, first = self % WARP & ~(width - 1);
  memcpy(state.sent[self], &value, sizeof value);
  lane_barrier(SHUFFLE, (width == 64 ? ~0ull : (1ull << width) - 1) << first, offset, line);
  memcpy(&value, state.received[self], sizeof value);
  return value;
}

/* An array in the shared memory of the block. */
template <typename T, size_t N> inline T (&pd_shared(size_t offset))[N] {
  return *static_cast<T(*)[N]>(pd_fiber::shared_array(offset, sizeof(T[N]), alignof(T)));
}

/* Copy to shared memory without waiting. */
/* Fill variables of a thread with NaN, or -1, before they are written. */
template <typename T> inline void pd_poison(T &variables) { memset((void *)&variables, 0xff, sizeof variables); }

/* Loads and stores with hints: plain ones. */
template <typename T> inline T pd_load_streaming(const T *from) { return *from; }
template <typename T> inline T pd_load_readonly(const T *from) { return *from; }
template <typename T> inline void pd_store_streaming(T *to, T value) { *to = value; }
template <int BYTES> inline void pd_copy_async(void *to, const void *from, int line = __builtin_LINE()) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4, 8 or 16 bytes");
  pd_fiber::copy(to, from, BYTES, line);
}
inline void pd_copy_async4(void *to, const void *from, int line = __builtin_LINE()) {
  pd_copy_async<4>(to, from, line);
}
inline void pd_copy_async8(void *to, const void *from, int line = __builtin_LINE()) {
  pd_copy_async<8>(to, from, line);
}
inline void pd_copy_async16(void *to, const void *from, int line = __builtin_LINE()) {
  pd_copy_async<16>(to, from, line);
}
/* Atomic operations of several blocks on one number. */
template <typename T> inline void pd_atomic_add(T *to, T value) {
  typedef typename pd_fiber::Word<T>::type word; /* integers wrap around */
  pd_fiber::atomic(to, T(word(*to) + word(value)));
}
template <typename T> inline void pd_atomic_max(T *to, T value) { pd_fiber::atomic(to, value > *to ? value : *to); }
template <typename T> inline void pd_atomic_min(T *to, T value) { pd_fiber::atomic(to, value < *to ? value : *to); }
template <typename T> inline void pd_atomic_umax(T *to, T value) {
  typedef typename pd_fiber::Word<T>::type word;
  pd_fiber::atomic(to, word(value) > word(*to) ? value : *to);
}
template <typename T> inline void pd_atomic_umin(T *to, T value) {
  typedef typename pd_fiber::Word<T>::type word;
  pd_fiber::atomic(to, word(value) < word(*to) ? value : *to);
}
template <typename T> inline void pd_atomic_and(T *to, T value) { pd_fiber::atomic(to, T(*to & value)); }
template <typename T> inline void pd_atomic_or(T *to, T value) { pd_fiber::atomic(to, T(*to | value)); }

inline void pd_copy_commit() { ++pd_fiber::state.copies[pd_fiber::state.current].committed; }
template <int N> inline void pd_copy_wait() { pd_fiber::land(N); }

template <typename... P, typename... A>
inline void pd_launch_named(const char *name, void (*kernel)(P...), long blocks, long threads, size_t shared_bytes,
                            A... arguments) {
  auto body = [&] { kernel(arguments...); };
  auto call = [](void *it) { (*static_cast<decltype(body) *>(it))(); };
  pd_fiber::run_grid(name, blocks, threads, shared_bytes, call, &body);
}
/* Run a kernel: pd_launch(kernel, blocks, threads, bytes of shared memory, arguments...). */
#define pd_launch(kernel, ...) pd_launch_named(#kernel, kernel, __VA_ARGS__)

#pragma GCC visibility pop
