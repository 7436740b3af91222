/* Fibers: signals of the CPU, and what the sanitizers of g++ and clang find. */
#pragma once
#include "fibers_state.h"
#pragma GCC visibility push(hidden)

namespace pd_fiber {

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
  check_aligned(data->type->name, address, size_t(1) << data->log_alignment, int(data->location.line));
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

#pragma GCC visibility pop
