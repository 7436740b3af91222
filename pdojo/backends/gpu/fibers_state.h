/* Fibers: the threads of a block, its launch, and errors, which end the process. */
#pragma once
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

#if !defined(__x86_64__) && !defined(PD_UCONTEXT)
#define PD_UCONTEXT
#endif
#ifdef PD_UCONTEXT
#include <ucontext.h>
#endif
#ifndef FP_FAST_FMA
#define FP_FAST_FMA 1
#endif

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
enum Waiting : uint8_t { NOWHERE, BLOCK, WARP_BARRIER, SHUFFLE, MATRIX, MATRIX_LOAD, UNIT };

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

/* A growing array of plain values, all zero bytes when empty. The C++ library is used nowhere: it would have to be
   linked, and a compiler may have to build it first. */
template <typename T> struct List {
  T *values;
  size_t size, room;
  T &operator[](size_t k) { return values[k]; }
  T *begin() { return values; }
  T *end() { return values + size; }
  void push(const T &value) {
    if (size == room) {
      room = room ? 2 * room : 16;
      values = static_cast<T *>(realloc(static_cast<void *>(values), room * sizeof(T)));
      if (!values) abort();
    }
    values[size++] = value;
  }
};
template <typename T> inline void swap(T &a, T &b) {
  const T old = a;
  a = b;
  b = old;
}

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
  List<Copy> pending;
  int committed; /* groups */
};

/* What a thread gives to an instruction of its warp, and where it gets its part of the result. */
struct Fragments {
  const void *a, *b;
  void *c;
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
  List<Region> regions;
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
  void (*instruction)(const Fragments *warp);
  Fiber fibers[MOST_THREADS];
  Copies copies[MOST_THREADS];
  Context host, gone;
  List<char *> stacks; /* guard page, then STACK_BYTES */
  List<int> free_stacks;
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

inline void check_aligned(const char *type, uintptr_t address, size_t alignment, int line) {
  if (address % alignment) fail("it accesses a %s at line %d that is not aligned to %zu bytes", type, line, alignment);
}

inline const char *waiting_name(Waiting waiting) {
  static const char *const names[] = {"nothing", "__syncthreads", "__syncwarp", "pd_shfl_xor", "pd_mma",
                                      "pd_ldmatrix", "pd_unit"};
  return names[waiting];
}

/* Why a thread does not come to where another one waits. */
inline const char *whereabouts(int thread) {
  static char text[128];
  const Fiber &fiber = state.fibers[thread];
  if (fiber.ended) return "has ended";
  if (fiber.waiting == NOWHERE) return "runs";
  snprintf(text, sizeof text, "waits in %s at line %d", waiting_name(fiber.waiting), fiber.line);
  return text;
}

} /* namespace pd_fiber */

#pragma GCC visibility pop
