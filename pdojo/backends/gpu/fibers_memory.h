/* Fibers: arrays between inaccessible pages, shared memory, asynchronous copies, and what blocks write. */
#pragma once
#include "fibers_state.h"
#pragma GCC visibility push(hidden)

namespace pd_fiber {

/* The type with which numbers are added: unsigned for integers. */
template <typename T> struct Word {
  typedef T type;
};
template <> struct Word<int8_t> {
  typedef uint8_t type;
};
template <> struct Word<int16_t> {
  typedef uint16_t type;
};
template <> struct Word<int32_t> {
  typedef uint32_t type;
};
template <> struct Word<int64_t> {
  typedef uint64_t type;
};

/* What blocks write, for grids in small memory: the bytes before the block, and which block changed each.

   A GPU runs blocks at the same time. A number that two blocks change without an atomic operation loses one of the
   changes, which blocks that run one after the other do not show. */
constexpr int SEVERAL = INT32_MIN;
struct Written {
  struct Watched {
    unsigned char *before;
    int *writer; /* of each byte: 1 more than the block's number; negative: by atomic operations only; or SEVERAL */
  };
  List<Watched> regions;
  bool active;
};
inline Written written;

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
  state.regions.push(region);
  state.shared = region.start;
  state.shared_bytes = bytes;
}

constexpr size_t MOST_COMPARED = size_t(1) << 30; /* bytes, of all blocks together */

/* Begin to watch what the blocks of a grid write. */
inline void watch(long blocks) {
  size_t bytes = 0;
  for (const Region &region : state.regions) bytes += region.size;
  written.active = blocks > 1 && bytes * size_t(blocks) <= MOST_COMPARED;
  for (Written::Watched &watched : written.regions) free(watched.before), free(watched.writer);
  written.regions.size = 0;
  if (!written.active) return;
  for (const Region &region : state.regions) {
    auto *before = static_cast<unsigned char *>(malloc(region.size + 1));
    auto *writer = static_cast<int *>(calloc(region.size + 1, sizeof(int)));
    if (!before || !writer) fail("there is no memory to watch what blocks write");
    memcpy(before, region.start, region.size);
    written.regions.push({before, writer});
  }
}

/* What the block wrote that has ended. */
inline void check_written() {
  const int block = int(blockIdx.x) + 1;
  for (size_t k = 0; written.active && k < written.regions.size; ++k) {
    const Region &region = state.regions[k];
    const auto *now = reinterpret_cast<unsigned char *>(region.start);
    unsigned char *before = written.regions[k].before;
    if (memcmp(now, before, region.size) == 0) continue;
    for (size_t at = 0; at < region.size; ++at) {
      if (now[at] == before[at]) continue;
      int &writer = written.regions[k].writer[at];
      if (writer < 0 && writer != -block)
        fail("the block writes byte %zu of %s, which blocks change by atomic operations", at, region.name);
      if (writer > 0 && writer != block)
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
  for (size_t k = 0; written.active && k < written.regions.size; ++k) {
    const Region &region = state.regions[k];
    if (place < region.start || place >= region.start + region.size) continue;
    const size_t at = size_t(place - region.start);
    const int block = int(blockIdx.x) + 1;
    const bool wrote = memcmp(&written.regions[k].before[at], &old, sizeof(T)); /* threads of a block may do both */
    memcpy(&written.regions[k].before[at], &value, sizeof(T));
    for (size_t byte = at; byte < at + sizeof(T); ++byte) {
      int &writer = written.regions[k].writer[byte];
      if (wrote && writer < 0 && writer != -block)
        fail("an atomic operation on byte %zu of %s, which the block wrote otherwise", byte, region.name);
      if (writer > 0 && writer != block)
        fail("an atomic operation on byte %zu of %s, which block %d wrote otherwise", byte, region.name, writer - 1);
      writer = wrote || writer > 0 ? block : writer == 0 || writer == -block ? -block : SEVERAL;
    }
  }
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
  copies.pending.push({to, from, bytes, copies.committed});
}

/* Late copies land: all but those of the last `outstanding` groups, and those of no group. Groups land in order, the
   copies of a group in the order of threads or backwards: a GPU promises nothing about them. */
inline void land(int outstanding) {
  List<Copy> &pending = state.copies[state.current].pending;
  const int groups = state.copies[state.current].committed - outstanding;
  size_t landed = 0;
  while (landed < pending.size && pending[landed].group < groups) {
    size_t end = landed;
    while (end < pending.size && pending[end].group == pending[landed].group) ++end;
    for (size_t k = landed; k < end; ++k) {
      const Copy &one = pending[state.order == ASCENDING ? k : landed + end - 1 - k];
      memcpy(one.to, one.from, one.bytes);
    }
    landed = end;
  }
  if (landed) memmove(pending.values, pending.values + landed, (pending.size -= landed) * sizeof(Copy));
}

} /* namespace pd_fiber */

#pragma GCC visibility pop
