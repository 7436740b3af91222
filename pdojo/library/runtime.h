/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The part that all generated libraries share: handles, threads, dispatch by sizes. Everything here is hidden. */
#pragma once
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PD_HIDDEN __attribute__((visibility("hidden")))
#define PD_MOST_ARRAYS 32

/* Return codes, in the order of the library's header. */
enum {
  PD_OK, PD_NULL, PD_SIZES, PD_ALIGNMENT, PD_OVERLAP, PD_BUSY, PD_MEMORY, PD_THREADS, PD_LEVEL, PD_ARGUMENT, PD_CODES
};

typedef struct { uint32_t leaf, subleaf; uint8_t place, bit; } pd_test;

/* A machine description: the bits that a processor must report, and the registers that the system must keep. */
typedef struct {
  const char *name;
  const pd_test *tests;
  int count;
  uint64_t state;
  int tiles;        /* whether the code needs permission to use AMX tiles */
  int vector_bytes; /* least length of vector registers on RISC-V, else 0 */
} pd_level;

/* The program of an entry for a level and an alignment; `run` is NULL if there is none. */
typedef struct {
  void (*run)(void);
  size_t shared, thread; /* bytes of workspace: for a call, and for each thread */
  int parallel;          /* whether it calls GOMP_parallel */
} pd_variant;

typedef struct {
  size_t bytes;
  size_t row;      /* bytes of a row; 0 if the array has no rows */
  size_t aligned;  /* alignment minus 1 that the first variant needs */
  size_t element;  /* alignment minus 1 that the second variant needs */
  int written;
} pd_array;

typedef struct {
  const pd_array *arrays;
  const pd_variant *variants; /* for each level: for aligned arrays, for others */
} pd_entry;

/* A chunk kernel and a one-row kernel for any number of rows. */
typedef struct { int64_t rows; pd_entry chunk, row; } pd_family;

typedef void (*pd_call)(const pd_variant *variant, void *const *arrays, void *workspace, int32_t threads);

typedef struct {
  const int64_t *sizes; /* of all entries, in rows of `columns`, sorted */
  const pd_entry *entries;
  int64_t count;
  int columns;
  int arrays;
  pd_call call;
  const int64_t *family_sizes; /* without the first size, sorted */
  const pd_family *families;
  int64_t family_count;
} pd_operator;

typedef struct pd_handle pd_handle;

PD_HIDDEN int pd_create(pd_handle **out, int threads, const char *level, const pd_level *levels, int count);
PD_HIDDEN void pd_destroy(pd_handle *handle);
PD_HIDDEN const char *pd_message(int code);
PD_HIDDEN const char *pd_level_name(const pd_handle *handle);
/* Check the arguments of a call, choose the variant and run it; returns a code. */
PD_HIDDEN int pd_run(pd_handle *handle, const pd_operator *operation, const int64_t *sizes, void *const *arrays);
