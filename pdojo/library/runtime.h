/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The part that all generated libraries share: handles, threads, dispatch by sizes. Everything here is hidden. */
#pragma once
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PD_HIDDEN __attribute__((visibility("hidden")))

/* Return codes, in the order of the library's header. */
enum {
  PD_OK, PD_NULL, PD_SIZES, PD_ALIGNMENT, PD_OVERLAP, PD_BUSY, PD_MEMORY, PD_THREADS, PD_LEVEL, PD_ARGUMENT, PD_INDICES,
  PD_WEIGHTS, PD_CODES
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
  size_t bytes;    /* of an entry with constant sizes */
  size_t aligned;  /* alignment minus 1 that the first variant needs */
  size_t element;  /* alignment minus 1 that the second variant needs */
  int written;
} pd_array;

typedef void (*pd_call)(
    const pd_variant *variant, void *const *arrays, const int64_t *sizes, void *workspace, int32_t threads);

/* The multiples of `step` from `low` to `high`. */
typedef struct { int64_t low, high, step; } pd_range;

typedef struct {
  const pd_array *arrays;
  const pd_variant *variants; /* for each level: for aligned arrays, for others */
  pd_call call;
  const pd_range *ranges; /* of all sizes; NULL for constant sizes */
  void (*measure)(const int64_t *sizes, size_t *bytes); /* the bytes of all arrays; NULL for constant sizes */
  int (*refuses)(const int64_t *sizes, void *const *arrays); /* whether an index is out of range; NULL without indices */
} pd_entry;

typedef struct {
  const int64_t *sizes; /* of the entries with constant sizes, in rows of `columns`, sorted */
  const pd_entry *entries; /* these entries, then those with ranges, of which the first that has the sizes runs */
  int64_t count, open; /* of both */
  int columns;
  int arrays;
} pd_operator;

typedef struct pd_handle pd_handle;

/* What the calls of a model get. */
typedef struct {
  char *block;                /* of intermediates, which are at `places` */
  const char *weights, *bound;
  void *const *arrays;        /* inputs, then outputs, aligned to 64 bytes */
  const int64_t *sizes;
  const size_t *places;
  void *workspace;
  int32_t threads;
} pd_model_call;

/* A model for a level: what brings the weights into its order, what calls its kernels, bytes of the bound weights, and
   of workspace for a call and for each thread. */
typedef struct {
  void (*bind)(const char *weights, char *bound, void *workspace, int32_t threads);
  int (*call)(const pd_model_call *call);
  size_t bound, shared, thread;
} pd_model_level;

typedef struct {
  const pd_model_level *levels;
  const pd_array *arrays;
  const pd_range *ranges; /* of all sizes */
  size_t (*measure)(const int64_t *sizes, size_t *bytes, size_t *places); /* the block's bytes; of arrays; places */
  const char *weights;    /* in the library; NULL if they are a file */
  size_t weights_bytes;
  const char *file, *digest; /* the file's name; it ends with the digest, of 64 characters */
  int count, columns;        /* of arrays, of sizes */
  int number, models;        /* of the model, and of all models */
} pd_model;

PD_HIDDEN int pd_create(pd_handle **out, int threads, const char *level, const pd_level *levels, int count);
PD_HIDDEN void pd_destroy(pd_handle *handle);
PD_HIDDEN const char *pd_message(int code);
PD_HIDDEN const char *pd_level_name(const pd_handle *handle);
/* Check the arguments of a call, choose the variant and run it; returns a code. `bytes` has room for all arrays. */
PD_HIDDEN int pd_run(
    pd_handle *handle, const pd_operator *operation, const int64_t *sizes, void *const *arrays, size_t *bytes);
/* Bind a model to a handle. `bytes` has room for all arrays, `places` for all blocks. */
PD_HIDDEN int pd_load(pd_handle *handle, const pd_model *model, const char *path, size_t *bytes, size_t *places);
PD_HIDDEN int pd_share(
    pd_handle *handle, pd_handle *other, const pd_model *model, size_t *bytes, size_t *places);
PD_HIDDEN int pd_run_model(
    pd_handle *handle, const pd_model *model, const int64_t *sizes, void **arrays, size_t *bytes, size_t *places);
