/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Handles, threads and dispatch. The code needs the C library and nothing else; it has no state but that of handles,
   and a record for each thread that is inside of a call. */
#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#else
#error "libraries are for x86-64, AArch64 and RISC-V"
#endif

#define MOST_THREADS 4096
#define LINE 64
#define STACK (4 << 20) /* bytes; the frames of a program have at most 1 MiB of arrays */
#define SPINS 1000      /* looks at a value before a thread sleeps: less than 50 microseconds */

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

/* Handles */

typedef struct pd_loaded pd_loaded;

typedef struct { pd_handle *handle; int number; } pd_worker;

struct pd_handle {
  atomic_int busy;
  int level, threads, started;
  const char *level_name;
  pid_t process;
  void *workspace;
  size_t workspace_bytes;
  pthread_t *workers;
  pd_worker *records;
  void (*work)(void *);
  void *data;
  int processor; /* the caller's */
  pd_loaded **loaded; /* by the numbers of models */
  int models;
  /* The number of the job, times 2^16, plus the number of its threads; 0 threads end the workers. */
  _Alignas(LINE) atomic_ullong ticket;
  atomic_int sleepers;
  pthread_mutex_t lock;
  pthread_cond_t begun, ended;
  _Alignas(LINE) atomic_int remaining;
  atomic_int waiting;
  _Alignas(LINE) atomic_long taken; /* pieces of the job's loop that threads have taken */
};

/* The place of the running thread in its team; no handle outside of calls. */
typedef struct {
  pd_handle *handle;
  int number, team;
  atomic_long *taken;
  long start, end, step, chunk;
} pd_thread;

static _Thread_local pd_thread self;

static void run_alone(pd_handle *handle, void (*work)(void *), void *data) {
  const pd_thread before = self;
  atomic_long taken = 0;
  self = (pd_thread){.handle = handle, .team = 1, .taken = &taken};
  work(data);
  self = before;
}

static unsigned long long next_ticket(pd_handle *handle, unsigned long long seen) {
  for (int spin = 0; spin < SPINS; spin++) {
    const unsigned long long ticket = atomic_load(&handle->ticket);
    if (ticket != seen) return ticket;
    relax();
  }
  pthread_mutex_lock(&handle->lock);
  atomic_fetch_add(&handle->sleepers, 1);
  unsigned long long ticket;
  while ((ticket = atomic_load(&handle->ticket)) == seen) pthread_cond_wait(&handle->begun, &handle->lock);
  atomic_fetch_sub(&handle->sleepers, 1);
  pthread_mutex_unlock(&handle->lock);
  return ticket;
}

/* Go to another processor: of two threads that share one, each would wait for the other while another one idles. */
static void leave(int processor) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof all, &all);
}

static void *worker(void *argument) {
  const pd_worker *own = argument;
  pd_handle *handle = own->handle;
  unsigned long long seen = 0;
  for (;;) {
    seen = next_ticket(handle, seen);
    const int team = (int)(seen & 0xffff);
    if (team == 0) return NULL;
    if (own->number >= team) continue;
    if (sched_getcpu() == handle->processor) leave(handle->processor);
    self = (pd_thread){.handle = handle, .number = own->number, .team = team, .taken = &handle->taken};
    handle->work(handle->data);
    /* Either the caller sees the last thread leave, or this thread sees that the caller waits. */
    if (atomic_fetch_sub(&handle->remaining, 1) == 1 && atomic_load(&handle->waiting)) {
      pthread_mutex_lock(&handle->lock);
      pthread_cond_signal(&handle->ended);
      pthread_mutex_unlock(&handle->lock);
    }
  }
}

static void call_workers(pd_handle *handle, int team) {
  const unsigned long long job = (atomic_load(&handle->ticket) >> 16) + 1;
  atomic_store(&handle->ticket, job << 16 | (unsigned)team);
  if (atomic_load(&handle->sleepers) > 0) {
    pthread_mutex_lock(&handle->lock);
    pthread_cond_broadcast(&handle->begun);
    pthread_mutex_unlock(&handle->lock);
  }
}

/* Run `work` on `team` threads, this one among them. */
static void run_team(pd_handle *handle, void (*work)(void *), void *data, int team) {
  /* A process that was forked has none of the workers. */
  if (team <= 1 || getpid() != handle->process) {
    run_alone(handle, work, data);
    return;
  }
  handle->work = work;
  handle->data = data;
  handle->processor = sched_getcpu();
  atomic_store(&handle->taken, 0);
  atomic_store(&handle->remaining, team - 1);
  call_workers(handle, team);
  const pd_thread before = self;
  self = (pd_thread){.handle = handle, .team = team, .taken = &handle->taken};
  work(data);
  self = before;
  for (int spin = 0; spin < SPINS; spin++) {
    if (atomic_load(&handle->remaining) == 0) return;
    relax();
  }
  pthread_mutex_lock(&handle->lock);
  atomic_store(&handle->waiting, 1);
  while (atomic_load(&handle->remaining) > 0) pthread_cond_wait(&handle->ended, &handle->lock);
  atomic_store(&handle->waiting, 0);
  pthread_mutex_unlock(&handle->lock);
}

static void stop_workers(pd_handle *handle) {
  if (handle->started == 0) return;
  call_workers(handle, 0);
  for (int k = 0; k < handle->started; k++) pthread_join(handle->workers[k], NULL);
}

/* Start the workers; 0 if the system refuses one. */
static int start_workers(pd_handle *handle) {
  const int count = handle->threads - 1;
  if (count == 0) return 1;
  handle->workers = calloc((size_t)count, sizeof *handle->workers);
  handle->records = calloc((size_t)count, sizeof *handle->records);
  pthread_attr_t attributes;
  if (handle->workers == NULL || handle->records == NULL || pthread_attr_init(&attributes) != 0) return 0;
  int started = pthread_attr_setstacksize(&attributes, STACK) == 0;
  /* Signals are for the threads of the program. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int k = 0; started && k < count; k++) {
    handle->records[k] = (pd_worker){handle, k + 1};
    started = pthread_create(&handle->workers[k], &attributes, worker, &handle->records[k]) == 0;
    handle->started += started;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}

/* The functions of an OpenMP runtime that programs call. A program has at most one loop in a parallel part. */

PD_HIDDEN void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags) {
  (void)flags;
  pd_handle *handle = self.handle;
  const int most = handle->threads, team = threads == 0 || threads > (unsigned)most ? most : (int)threads;
  /* Threads of a team do not start teams of their own. */
  run_team(handle, work, data, self.team > 1 ? 1 : team);
}

PD_HIDDEN int omp_get_num_threads(void) { return self.team; }
PD_HIDDEN int omp_get_thread_num(void) { return self.number; }

PD_HIDDEN char GOMP_loop_dynamic_next(long *first, long *after) {
  const long before = atomic_fetch_add(self.taken, 1), begin = self.start + before * self.chunk * self.step;
  if (begin >= self.end) return 0;
  const long end = begin + self.chunk * self.step;
  *first = begin;
  *after = end < self.end ? end : self.end;
  return 1;
}

PD_HIDDEN char GOMP_loop_dynamic_start(long start, long end, long step, long chunk, long *first, long *after) {
  self.start = start;
  self.end = end;
  self.step = step;
  self.chunk = chunk;
  return GOMP_loop_dynamic_next(first, after);
}

PD_HIDDEN void GOMP_loop_end_nowait(void) {}

/* Levels */

#if defined(__x86_64__)
static int reports(const pd_test *test) {
  unsigned registers[4];
  if (!__get_cpuid_count(test->leaf, test->subleaf, &registers[0], &registers[1], &registers[2], &registers[3])) return 0;
  return registers[test->place] >> test->bit & 1;
}

/* The registers that the system keeps: XCR0. */
static uint64_t kept(void) {
  const pd_test xsave = {1, 0, 2, 27};
  if (!reports(&xsave)) return 0;
  uint32_t low, high;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0)); /* xgetbv */
  return (uint64_t)high << 32 | low;
}

static int has_registers(const pd_level *level) {
  if ((kept() & level->state) != level->state) return 0;
  /* ARCH_REQ_XCOMP_PERM for tile data, number 18 (Linux, Documentation/arch/x86/xstate.rst). */
  return !level->tiles || syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}
#else
static int reports(const pd_test *test) { return getauxval(test->leaf) >> test->bit & 1; }

static int has_registers(const pd_level *level) {
#if defined(__riscv)
  if (level->vector_bytes > 0) {
    unsigned long bytes;
    __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
    return bytes >= (unsigned long)level->vector_bytes;
  }
#endif
  (void)level;
  return 1;
}
#endif

static int runs(const pd_level *level) {
  for (int k = 0; k < level->count; k++)
    if (!reports(&level->tests[k])) return 0;
  return has_registers(level);
}

PD_HIDDEN const char *pd_level_name(const pd_handle *handle) { return handle == NULL ? NULL : handle->level_name; }

static int processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (int)count;
}

PD_HIDDEN int pd_create(pd_handle **out, int threads, const char *level, const pd_level *levels, int count) {
  if (out == NULL) return PD_NULL;
  *out = NULL;
  if (threads < 0 || threads > MOST_THREADS) return PD_ARGUMENT;
  int found = 0;
  while (found < count && !((level == NULL || strcmp(level, levels[found].name) == 0) && runs(&levels[found]))) found++;
  if (found == count) return PD_LEVEL;
  void *memory = NULL;
  if (posix_memalign(&memory, LINE, sizeof(pd_handle)) != 0) return PD_MEMORY;
  pd_handle *handle = memset(memory, 0, sizeof(pd_handle));
  handle->level = found;
  handle->level_name = levels[found].name;
  handle->threads = threads == 0 ? processors() : threads;
  handle->process = getpid();
  if (pthread_mutex_init(&handle->lock, NULL) != 0 || pthread_cond_init(&handle->begun, NULL) != 0 ||
      pthread_cond_init(&handle->ended, NULL) != 0) {
    free(handle);
    return PD_MEMORY;
  }
  if (!start_workers(handle)) {
    pd_destroy(handle);
    return PD_THREADS;
  }
  *out = handle;
  return PD_OK;
}

/* A model that is bound, for all handles that share it. */
struct pd_loaded {
  atomic_int handles;
  const char *weights; /* in the library, or mapped */
  size_t mapped;       /* bytes; 0 if the weights are in the library */
  char *bound;
  size_t bound_bytes;
};

static void drop_loaded(pd_loaded *loaded) {
  if (loaded == NULL || atomic_fetch_sub(&loaded->handles, 1) > 1) return;
  if (loaded->mapped > 0) munmap((void *)loaded->weights, loaded->mapped);
  if (loaded->bound_bytes > 0) munmap(loaded->bound, loaded->bound_bytes);
  free(loaded);
}

static void drop_workspace(pd_handle *handle) {
  if (handle->workspace_bytes > 0) munmap(handle->workspace, handle->workspace_bytes);
  handle->workspace = NULL;
  handle->workspace_bytes = 0;
}

PD_HIDDEN void pd_destroy(pd_handle *handle) {
  if (handle == NULL) return;
  /* The workers of a process stay behind when it is forked, perhaps with the lock in their hands. */
  if (handle->process == getpid()) {
    stop_workers(handle);
    pthread_cond_destroy(&handle->ended);
    pthread_cond_destroy(&handle->begun);
    pthread_mutex_destroy(&handle->lock);
  }
  free(handle->workers);
  free(handle->records);
  for (int k = 0; k < handle->models; k++) drop_loaded(handle->loaded[k]);
  free(handle->loaded);
  drop_workspace(handle);
  free(handle);
}

PD_HIDDEN const char *pd_message(int code) {
  switch (code) {
    case PD_OK: return "no error";
    case PD_NULL: return "a handle or an array is NULL";
    case PD_SIZES: return "the library has no program for these sizes";
    case PD_ALIGNMENT: return "an array is not aligned to the size of its elements";
    case PD_OVERLAP: return "an array that is written overlaps another array";
    case PD_BUSY: return "another call uses the handle; each caller needs a handle of its own";
    case PD_MEMORY: return "there is not enough memory";
    case PD_THREADS: return "the system refuses to start a thread";
    case PD_LEVEL: return "the processor runs no level of the library, or not the named one";
    case PD_ARGUMENT: return "the number of threads is not from 0 to 4096";
    case PD_INDICES: return "an index is outside of its range";
    case PD_WEIGHTS: return "the model is not loaded, or its file of weights is missing or another one";
    default: return "unknown code";
  }
}

/* Calls */

/* Where a row of `columns` numbers is in a sorted table; -1 if it is not there. */
static int64_t find(const int64_t *table, int64_t count, int columns, const int64_t *wanted) {
  int64_t low = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    const int64_t *row = table + (low + half) * columns;
    int order = 0;
    for (int k = 0; k < columns && order == 0; k++) order = (row[k] > wanted[k]) - (row[k] < wanted[k]);
    if (order == 0) return low + half;
    if (order < 0) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return -1;
}

/* Workspace of at least so many bytes; 0 if there is not enough memory. */
static int reserve(pd_handle *handle, size_t bytes) {
  if (bytes <= handle->workspace_bytes) return 1;
  drop_workspace(handle);
  /* For the greatest sizes of a range; a call needs memory only for the part that it touches. */
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) return 0;
  handle->workspace = memory;
  handle->workspace_bytes = bytes;
  return 1;
}

/* A code for the arrays of a call; `aligned` tells whether the variant for aligned arrays may run. */
static inline int check(const pd_array *array, int count, void *const *arrays, const size_t *bytes, int *aligned) {
  uintptr_t low = 0, bad = 0;
  for (int k = 0; k < count; k++) {
    const uintptr_t place = (uintptr_t)arrays[k];
    if (place == 0) return PD_NULL;
    low |= place & array[k].aligned;
    bad |= place & array[k].element;
  }
  if (bad != 0) return PD_ALIGNMENT;
  *aligned = low == 0;
  for (int k = 0; k < count; k++)
    for (int other = 0; other < k; other++) {
      const uintptr_t one = (uintptr_t)arrays[k], two = (uintptr_t)arrays[other];
      if ((array[k].written || array[other].written) && one < two + bytes[other] && two < one + bytes[k])
        return PD_OVERLAP;
    }
  return PD_OK;
}

static inline int acquire(pd_handle *handle) {
  return atomic_exchange_explicit(&handle->busy, 1, memory_order_acquire) == 0;
}

static inline void release(pd_handle *handle) { atomic_store_explicit(&handle->busy, 0, memory_order_release); }

/* Whether sizes are in their ranges; 0 is, too, if the first multiple is, and is not the only one. */
static int serves(const pd_range *range, int columns, const int64_t *sizes) {
  for (int k = 0; k < columns; k++) {
    const int64_t step = range[k].step, first = range[k].low;
    const int64_t low = first == step && first < range[k].high ? 0 : first;
    if (sizes[k] < low || sizes[k] > range[k].high || (step > 1 && sizes[k] % step != 0)) return 0;
  }
  return 1;
}

static const pd_entry *choose(const pd_operator *operation, const int64_t *sizes) {
  const int64_t found = find(operation->sizes, operation->count, operation->columns, sizes);
  if (found >= 0) return &operation->entries[found];
  const pd_entry *entry = operation->entries + operation->count;
  for (int64_t k = 0; k < operation->open; k++)
    if (serves(entry[k].ranges, operation->columns, sizes)) return &entry[k];
  return NULL;
}

static int has_zero(const int64_t *sizes, int columns) {
  for (int k = 0; k < columns; k++)
    if (sizes[k] == 0) return 1;
  return 0;
}

PD_HIDDEN int pd_run(
    pd_handle *handle, const pd_operator *operation, const int64_t *sizes, void *const *arrays, size_t *bytes) {
  if (handle == NULL) return PD_NULL;
  const pd_entry *entry = choose(operation, sizes);
  if (entry == NULL) return PD_SIZES;
  const int count = operation->arrays;
  if (entry->measure != NULL) {
    entry->measure(sizes, bytes);
    if (has_zero(sizes, operation->columns)) {
      /* Nothing is computed if all results are empty, such as those of no rows. */
      for (int k = 0; k < count; k++)
        if (entry->arrays[k].written && bytes[k] != 0) return PD_SIZES;
      return PD_OK;
    }
  } else {
    for (int k = 0; k < count; k++) bytes[k] = entry->arrays[k].bytes;
  }
  int aligned;
  const int code = check(entry->arrays, count, arrays, bytes, &aligned);
  if (code != PD_OK) return code;
  if (entry->refuses != NULL && entry->refuses(sizes, arrays)) return PD_INDICES;
  const pd_variant *variant = &entry->variants[2 * handle->level + !aligned];
  if (!acquire(handle)) return PD_BUSY;
  const int reserved = reserve(handle, variant->shared + variant->thread * (size_t)handle->threads);
  if (reserved) {
    if (variant->parallel) self = (pd_thread){.handle = handle, .team = 1};
    entry->call(variant, arrays, sizes, handle->workspace, handle->threads);
  }
  release(handle);
  return reserved ? PD_OK : PD_MEMORY;
}

/* Models */

static size_t lines(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

/* Map the weights in a file; 0 if it is missing or another one. */
static int map_file(pd_loaded *loaded, const pd_model *model, const char *path) {
  const size_t digest = 64, wanted = model->weights_bytes + digest;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  struct stat facts;
  void *memory = MAP_FAILED;
  if (fstat(file, &facts) == 0 && facts.st_size == (off_t)wanted)
    memory = mmap(NULL, wanted, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) return 0;
  if (memcmp((char *)memory + model->weights_bytes, model->digest, digest) != 0) {
    munmap(memory, wanted);
    return 0;
  }
  loaded->weights = memory;
  loaded->mapped = wanted;
  return 1;
}

/* The file of weights beside a library, or in the folder `weights` of the library's own. */
static int map_near(pd_loaded *loaded, const pd_model *model, const char *library) {
  const char *end = strrchr(library, '/');
  const int length = end == NULL ? 0 : (int)(end - library) + 1;
  static const char *const folders[] = {"", "../../weights/"};
  char path[4096];
  for (int k = 0; k < 2; k++) {
    const int written = snprintf(path, sizeof path, "%.*s%s%s", length, library, folders[k], model->file);
    if (written > 0 && written < (int)sizeof path && map_file(loaded, model, path)) return 1;
  }
  return 0;
}

/* The same for this library, which may have been loaded through a link. */
static int map_beside(pd_loaded *loaded, const pd_model *model) {
  Dl_info own;
  if (dladdr((void *)pd_load, &own) == 0 || own.dli_fname == NULL) return 0;
  if (map_near(loaded, model, own.dli_fname)) return 1;
  char *library = realpath(own.dli_fname, NULL);
  const int found = library != NULL && map_near(loaded, model, library);
  free(library);
  return found;
}

/* Bytes of a call's memory: the workspace of kernels, the block, and copies of arrays that are not aligned. */
static size_t call_bytes(const pd_handle *handle, const pd_model *model, size_t block, const size_t *bytes) {
  const pd_model_level *level = &model->levels[handle->level];
  size_t all = lines(level->shared) + lines(level->thread * (size_t)handle->threads) + lines(block);
  for (int k = 0; k < model->count; k++) all += lines(bytes[k]);
  return all;
}

/* Reserve memory for calls of the greatest sizes, so that calls take none of the system; 0 if there is not enough. */
static int reserve_most(pd_handle *handle, const pd_model *model, size_t *bytes, size_t *places) {
  int64_t *most = malloc((size_t)(model->columns + 1) * sizeof *most);
  if (most == NULL) return 0;
  for (int k = 0; k < model->columns; k++) most[k] = model->ranges[k].high;
  const size_t block = model->measure(most, bytes, places);
  free(most);
  return reserve(handle, call_bytes(handle, model, block, bytes));
}

static int room_for_models(pd_handle *handle, const pd_model *model) {
  if (handle->loaded == NULL) {
    handle->loaded = calloc((size_t)model->models, sizeof *handle->loaded);
    handle->models = handle->loaded == NULL ? 0 : model->models;
  }
  return handle->loaded != NULL;
}

static int bind_model(pd_handle *handle, const pd_model *model, const char *path, size_t *bytes, size_t *places) {
  if (!room_for_models(handle, model)) return PD_MEMORY;
  if (handle->loaded[model->number] != NULL) return PD_OK;
  const pd_model_level *level = &model->levels[handle->level];
  pd_loaded *loaded = calloc(1, sizeof *loaded);
  if (loaded == NULL) return PD_MEMORY;
  atomic_store(&loaded->handles, 1);
  loaded->weights = model->weights;
  int code = PD_OK;
  if (model->weights == NULL && !(path == NULL ? map_beside(loaded, model) : map_file(loaded, model, path)))
    code = PD_WEIGHTS;
  if (code == PD_OK && level->bound > 0) {
    void *memory = mmap(NULL, level->bound, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      code = PD_MEMORY;
    } else {
      loaded->bound = memory;
      loaded->bound_bytes = level->bound;
    }
  }
  if (code == PD_OK && !reserve_most(handle, model, bytes, places)) code = PD_MEMORY;
  if (code != PD_OK) {
    drop_loaded(loaded);
    return code;
  }
  self = (pd_thread){.handle = handle, .team = 1};
  level->bind(loaded->weights, loaded->bound, handle->workspace, handle->threads);
  handle->loaded[model->number] = loaded;
  return PD_OK;
}

PD_HIDDEN int pd_load(pd_handle *handle, const pd_model *model, const char *path, size_t *bytes, size_t *places) {
  if (handle == NULL) return PD_NULL;
  if (!acquire(handle)) return PD_BUSY;
  const int code = bind_model(handle, model, path, bytes, places);
  release(handle);
  return code;
}

PD_HIDDEN int pd_share(
    pd_handle *handle, pd_handle *other, const pd_model *model, size_t *bytes, size_t *places) {
  if (handle == NULL || other == NULL) return PD_NULL;
  if (handle->level != other->level) return PD_LEVEL;
  if (!acquire(handle)) return PD_BUSY;
  int code = room_for_models(handle, model) ? PD_OK : PD_MEMORY;
  pd_loaded *loaded = other->models > model->number ? other->loaded[model->number] : NULL;
  if (code == PD_OK && handle->loaded[model->number] == NULL) {
    if (loaded == NULL) {
      code = PD_WEIGHTS;
    } else if (!reserve_most(handle, model, bytes, places)) {
      code = PD_MEMORY;
    } else {
      atomic_fetch_add(&loaded->handles, 1);
      handle->loaded[model->number] = loaded;
    }
  }
  release(handle);
  return code;
}

PD_HIDDEN int pd_run_model(
    pd_handle *handle, const pd_model *model, const int64_t *sizes, void **arrays, size_t *bytes, size_t *places) {
  if (handle == NULL) return PD_NULL;
  for (int k = 0; k < model->columns; k++) {
    const pd_range *range = &model->ranges[k];
    if (sizes[k] < range->low || sizes[k] > range->high || sizes[k] % range->step != 0) return PD_SIZES;
  }
  const size_t block = model->measure(sizes, bytes, places);
  int aligned;
  int code = check(model->arrays, model->count, arrays, bytes, &aligned);
  if (code != PD_OK) return code;
  if (!acquire(handle)) return PD_BUSY;
  const pd_loaded *loaded = handle->models > model->number ? handle->loaded[model->number] : NULL;
  if (loaded == NULL) {
    code = PD_WEIGHTS;
  } else if (!reserve(handle, call_bytes(handle, model, block, bytes))) {
    code = PD_MEMORY;
  } else {
    const pd_model_level *level = &model->levels[handle->level];
    char *const workspace = handle->workspace;
    char *const own = workspace + lines(level->shared) + lines(level->thread * (size_t)handle->threads);
    char *copy = own + lines(block);
    void *given[model->count];
    for (int k = 0; k < model->count; k++) {
      given[k] = arrays[k];
      if (((uintptr_t)arrays[k] & (LINE - 1)) == 0) continue;
      arrays[k] = copy;
      copy += lines(bytes[k]);
      if (!model->arrays[k].written) memcpy(arrays[k], given[k], bytes[k]);
    }
    const pd_model_call call = {own, loaded->weights, loaded->bound, arrays, sizes, places, workspace, handle->threads};
    self = (pd_thread){.handle = handle, .team = 1};
    code = level->call(&call);
    for (int k = 0; code == PD_OK && k < model->count; k++)
      if (model->arrays[k].written && given[k] != arrays[k]) memcpy(given[k], arrays[k], bytes[k]);
  }
  release(handle);
  return code;
}
