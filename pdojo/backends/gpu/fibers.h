/* Runs the text of CUDA C++ kernels on a CPU: one block at a time, one fiber per thread of the block. A fiber runs
   until it waits at a barrier or an exchange. This file begins a generated file, is compiled as C++17 with PD_WARP
   defined as the threads of a warp (32 or 64), and runs in a process of its own: an error is written to standard
   output, with the kernel, the block and the thread, and ends the process with status 3. `fibers.py` is the caller. */
#include "fibers_state.h"
#include "fibers_memory.h"
#include "fibers_scheduler.h"
#include "fibers_exchange.h"
#include "fibers_errors.h"

/* Only the functions of the text and what the caller needs are visible outside. */
#pragma GCC visibility push(hidden)

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

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
  const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGALRM};
  for (int number : signals) sigaction(number, &action, nullptr);
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
  pd_fiber::state.regions.push(region);
  return region.start;
}

/* What generated text calls. */

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
  static_assert(__is_trivially_copyable(T) && sizeof(T) <= 16, "a value of at most 16 bytes");
  using namespace pd_fiber;
  check_exchange(offset, width, line);
  const int self = state.current, first = self % WARP & ~(width - 1);
  memcpy(state.sent[self], &value, sizeof value);
  lane_barrier(SHUFFLE, (width == 64 ? ~0ull : (1ull << width) - 1) << first, offset, line);
  memcpy(&value, state.received[self], sizeof value);
  return value;
}

/* The vector that begins at an element. */
template <typename V, typename T> inline V *pd_vector(T *place, int line = __builtin_LINE()) {
  pd_fiber::check_aligned("vector", uintptr_t(place), alignof(V), line);
  return (V *)place;
}

/* An array in the shared memory of the block. */
template <typename T, size_t N> inline T (&pd_shared(size_t offset))[N] {
  return *static_cast<T(*)[N]>(pd_fiber::shared_array(offset, sizeof(T[N]), alignof(T)));
}

/* Fill variables of a thread with NaN, or -1, before they are written. */
template <typename T> inline void pd_poison(T &variables) { memset((void *)&variables, 0xff, sizeof variables); }

/* Loads and stores with hints: plain ones. */
template <typename T> inline T pd_load_streaming(const T *from) { return *from; }
template <typename T> inline T pd_load_readonly(const T *from) { return *from; }
template <typename T> inline void pd_store_streaming(T *to, T value) { *to = value; }
/* Copy to shared memory without waiting. */
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
