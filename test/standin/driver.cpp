/* A stand-in for the driver libraries of CUDA and HIP, for tests on computers without a GPU: libcuda and libamdhip64 in
   one. `test/standin/gpu.py` builds it. Memory of the device is memory of the host that is accessible only while work
   runs, between inaccessible pages. Images are shared libraries with kernels for the fibers of `fibers.h`. Work waits
   in its stream until somebody synchronizes, as late as a GPU may run it. A kernel that accesses other memory spoils
   the context: every later call fails. */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "containers.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum {
  OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
  INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NO_BINARY = 209, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
  ILLEGAL_ADDRESS = 700, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNMATCHED = 903
};
const size_t PAGE = 64 << 10, ALIGNMENT = 256;
const unsigned char POISON = 0xff, CANARY = 0xa5;

struct Block { char *map; size_t mapped; char *start; size_t size; int device; };
struct Graph { List<Work> work; };
struct Stream {
  List<Work> queue;
  Graph *capturing = nullptr;
  bool broken = false;
  int mode = 0; /* of the capture */
  const void *thread = nullptr; /* that began it */
  int device = 0;
};
struct Event { double seconds = 0; bool done = false; Stream *stream = nullptr; };
struct Module { void *library; int device; };
struct Function {
  int device;
  Text name;
  void (*call)(long, long, long, void **);
  List<int> sizes;
  long most_shared = 48 << 10;
};

struct Setting { char name[64]; long value; };
typedef List<void *> Handles;

/* These are never destroyed: the C library's support for that is not linked. */
List<Setting> &settings = *new List<Setting>;
bool initialised;
int spoiled; /* the error that every call gives */
List<Block> &blocks = *new List<Block>;
Handles &streams = *new Handles, &events = *new Handles, &modules = *new Handles, &graphs = *new Handles;
Handles &functions = *new Handles;
size_t used[4];
const int MOST_DEVICES = 4;
struct DefaultStreams { Stream each[MOST_DEVICES]; };
Stream *const default_streams = (new DefaultStreams)->each;
Text &launches = *new Text;
thread_local void *current_context;
thread_local int current_device;
enum { GLOBAL, THREAD_LOCAL, RELAXED };
thread_local int capture_mode = GLOBAL;
char contexts[MOST_DEVICES];
sigjmp_buf escape;

long setting(const char *name, long otherwise) {
  for (const Setting &each : settings)
    if (!strcmp(each.name, name)) return each.value;
  return otherwise;
}

void set(const char *name, size_t length, long value) {
  Setting made{};
  if (length >= sizeof made.name) abort();
  memcpy(made.name, name, length);
  made.value = value;
  for (size_t k = settings.size(); k-- > 0;)
    if (!strcmp(settings[k].name, made.name)) settings.remove(k);
  settings.push(made);
}

/* NAME=NUMBER,NAME=NUMBER from the environment. */
void read_settings() {
  const char *rest = getenv("PDOJO_STANDIN");
  while (rest && *rest) {
    const size_t length = strcspn(rest, ",");
    const char *equals = static_cast<const char *>(memchr(rest, '=', length));
    if (equals) set(rest, equals - rest, atol(equals + 1));
    rest += length + (rest[length] == ',');
  }
}

/* What a call gives before it does anything. */
int begin(const char *call) {
  if (!initialised) return NOT_INITIALIZED;
  if (long code = setting(call, 0)) return int(code);
  if (spoiled) return spoiled;
  return !strncmp(call, "cu", 2) && !current_context ? INVALID_CONTEXT : OK;
}
/* The device on which a call works: that of the current context of CUDA, or HIP's current device. */
int device_of(const char *call) {
  return strncmp(call, "cu", 2) ? current_device : current_context ? int((char *)current_context - contexts) : 0;
}

/* A setting of a device: `major1` is that of the second one. */
long setting_of(const char *name, int device, long otherwise) {
  char own[64];
  snprintf(own, sizeof own, "%s%d", name, device);
  return setting(own, device ? otherwise : setting(name, otherwise));
}

#define BEGIN(call) if (int code = begin(call)) return code

/* One thread at a time, which may come again. */
struct Alone {
  Alone() {
    const void *nobody = nullptr;
    const void *const own = &capture_mode;
    while (owner != own && !__atomic_compare_exchange_n(&owner, &nobody, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      nobody = nullptr;
      usleep(20);
    }
    ++depth;
  }
  ~Alone() {
    if (!--depth) __atomic_store_n(&owner, static_cast<const void *>(nullptr), __ATOMIC_RELEASE);
  }
  static const void *volatile owner;
  static int depth;
};
const void *volatile Alone::owner = nullptr;
int Alone::depth = 0;

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* Devices have no access to each other's memory. */
void protect(int device, int allowed) {
  for (const Block &each : blocks)
    if (each.device == device) mprotect(each.map + PAGE, each.mapped - 2 * PAGE, allowed);
}

void on_fault(int) { siglongjmp(escape, 1); }

/* Run everything in a stream. */
int flush(Stream *stream) {
  if (stream->queue.empty()) return spoiled;
  static char stack[64 << 10];
  stack_t alternate{}, old_stack{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, &old_stack);
  struct sigaction action {}, old[2];
  action.sa_handler = on_fault;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, &old[0]);
  sigaction(SIGBUS, &action, &old[1]);
  protect(stream->device, PROT_READ | PROT_WRITE);
  if (sigsetjmp(escape, 1)) {
    spoiled = ILLEGAL_ADDRESS;
    stream->queue.clear();
  }
  for (const Work &work : stream->queue) work();
  stream->queue.clear();
  protect(stream->device, PROT_NONE);
  sigaction(SIGSEGV, &old[0], nullptr);
  sigaction(SIGBUS, &old[1], nullptr);
  sigaltstack(&old_stack, nullptr);
  return spoiled;
}

Stream *stream_of(const char *call, void *handle) {
  const int device = device_of(call);
  if (!handle) {
    default_streams[device].device = device;
    return default_streams + device;
  }
  auto *found = static_cast<Stream *>(handle);
  return streams.has(handle) && found->device == device ? found : nullptr;
}

int enqueue(const char *call, void *handle, Work work) {
  Stream *stream = stream_of(call, handle);
  if (!stream) return INVALID_HANDLE;
  if (stream->capturing) stream->capturing->work.push(work);
  else stream->queue.push(work);
  return OK;
}

/* Whether bytes of the device are in one piece of memory that is allocated. */
bool is_ours(uint64_t address, size_t size) {
  const char *place = reinterpret_cast<char *>(address);
  for (const Block &each : blocks)
    if (place >= each.start && place < each.start + each.size) return place + size <= each.start + each.size;
  return false;
}

int synchronize(const char *call, void *handle) {
  BEGIN(call);
  Stream *stream = stream_of(call, handle);
  if (!stream) return INVALID_HANDLE;
  if (stream->capturing) {
    stream->broken = true;
    return CAPTURE_UNSUPPORTED;
  }
  return flush(stream);
}

/* Whether a capture forbids this thread calls that might wait: they end the capture (CUDA Driver API,
   cuThreadExchangeStreamCaptureMode). */
bool ends_captures() {
  bool found = false;
  for (void *each : streams) {
    auto *stream = static_cast<Stream *>(each);
    const bool own = stream->thread == &capture_mode;
    const bool forbids = own ? stream->mode != RELAXED : stream->mode == GLOBAL && capture_mode == GLOBAL;
    if (stream->capturing && forbids && capture_mode != RELAXED) found = stream->broken = true;
  }
  return found;
}

int init(const char *call) {
  read_settings();
  if (long code = setting(call, 0)) return int(code);
  if (setting("devices", 1) == 0) return NO_DEVICE;
  initialised = true;
  return OK;
}

int device(int *found, int ordinal) {
  if (!initialised) return NOT_INITIALIZED;
  if (ordinal < 0 || ordinal >= setting("devices", 1)) return INVALID_DEVICE;
  *found = ordinal;
  return OK;
}

int allocate(const char *call, uint64_t *address, size_t size) {
  BEGIN(call);
  if (ends_captures()) return CAPTURE_UNSUPPORTED;
  if (!size) return INVALID_VALUE;
  const int device = device_of(call);
  if (used[device] + size > size_t(setting("memory", 1L << 30))) return OUT_OF_MEMORY;
  const size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const size_t pages = (rounded + PAGE - 1) / PAGE * PAGE;
  Block block{nullptr, pages + 2 * PAGE, nullptr, size, device};
  void *found = mmap(nullptr, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return OUT_OF_MEMORY;
  block.map = static_cast<char *>(found);
  mprotect(block.map + PAGE, pages, PROT_READ | PROT_WRITE);
  block.start = block.map + PAGE + pages - rounded;
  memset(block.map + PAGE, CANARY, pages);
  memset(block.start, POISON, size);
  mprotect(block.map + PAGE, pages, PROT_NONE);
  blocks.push(block);
  used[device] += size;
  *address = reinterpret_cast<uint64_t>(block.start);
  return OK;
}

int release(const char *call, uint64_t address) {
  if (!spoiled) BEGIN(call);
  if (ends_captures()) return CAPTURE_UNSUPPORTED;
  for (int k = 0; k < MOST_DEVICES; ++k) flush(default_streams + k);
  for (void *each : streams) flush(static_cast<Stream *>(each));
  size_t place = 0;
  while (place < blocks.size() && blocks[place].start != reinterpret_cast<char *>(address)) ++place;
  if (place == blocks.size()) return INVALID_VALUE;
  const Block block = blocks[place];
  mprotect(block.map + PAGE, block.mapped - 2 * PAGE, PROT_READ);
  for (char *at = block.map + PAGE; at < block.map + block.mapped - PAGE; ++at)
    if ((at < block.start || at >= block.start + block.size) && static_cast<unsigned char>(*at) != CANARY) {
      fprintf(stderr, "stand-in: memory of %zu bytes was written outside, at %ld\n", block.size, long(at - block.start));
      abort();
    }
  munmap(block.map, block.mapped);
  blocks.remove(place);
  used[block.device] -= block.size;
  return spoiled;
}

int memory(const char *call, size_t *available, size_t *total) {
  BEGIN(call);
  *total = setting("memory", 1L << 30);
  *available = *total - used[device_of(call)];
  return OK;
}

int load(const char *call, const char *architecture, void **module, const char *image) {
  BEGIN(call);
  if (memcmp(image, "PDSTANDI", 8)) return INVALID_IMAGE;
  if (strncmp(image + 8, architecture, 16)) return NO_BINARY;
  uint64_t length;
  memcpy(&length, image + 24, 8);
  /* A name that no other library has: dlopen knows libraries by their names. */
  char path[] = "/tmp/pdojo-standin-XXXXXX";
  const int file = mkstemp(path);
  if (write(file, image + 32, length) != ssize_t(length)) return INVALID_IMAGE;
  close(file);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  if (!library) {
    fprintf(stderr, "stand-in: %s\n", dlerror());
    return INVALID_IMAGE;
  }
  *module = new Module{library, device_of(call)};
  modules.push(*module);
  return OK;
}

int unload(const char *call, void *module) {
  if (!spoiled) BEGIN(call);
  if (!modules.take(module)) return INVALID_HANDLE;
  /* The library stays: work that waits may be in it. */
  delete static_cast<Module *>(module);
  return spoiled;
}

int function(const char *call, void **found, void *module, const char *name) {
  BEGIN(call);
  if (!modules.has(module)) return INVALID_HANDLE;
  void *library = static_cast<Module *>(module)->library;
  char text[512];
  snprintf(text, sizeof text, "%s__call", name);
  void *entry = dlsym(library, text);
  snprintf(text, sizeof text, "%s__sizes", name);
  void *sizes = dlsym(library, text);
  if (!entry || !sizes) return NOT_FOUND;
  int count;
  const int *list = reinterpret_cast<const int *(*)(int *)>(sizes)(&count);
  auto *made = new Function{static_cast<Module *>(module)->device, name, reinterpret_cast<void (*)(long, long, long, void **)>(entry), {}};
  for (int k = 0; k < count; ++k) made->sizes.push(list[k]);
  functions.push(made);
  *found = made;
  return OK;
}

int launch(const char *call, void *handle, const unsigned *grid, const unsigned *block, unsigned shared, void *stream,
           void **parameters, long most_shared) {
  BEGIN(call);
  if (!functions.has(handle)) return INVALID_HANDLE;
  auto *kernel = static_cast<Function *>(handle);
  if (kernel->device != device_of(call)) return INVALID_HANDLE;
  const bool is_flat = grid[1] == 1 && grid[2] == 1 && block[1] == 1 && block[2] == 1;
  if (!is_flat || !grid[0] || !block[0] || block[0] > 1024 || grid[0] > 0x7fffffff) return INVALID_VALUE;
  if (long(shared) > kernel->most_shared || long(shared) > most_shared) return INVALID_VALUE;
  /* A driver copies the arguments before it returns. */
  List<List<char>> values;
  char text[512];
  snprintf(text, sizeof text, "%s<<<%u, %u, %u>>>", kernel->name.zero_terminated(), grid[0], block[0], shared);
  Text line = text;
  for (size_t k = 0; k < kernel->sizes.size(); ++k) {
    const char *from = static_cast<char *>(parameters[k]);
    List<char> value;
    for (int byte = 0; byte < kernel->sizes[k]; ++byte) value.push(from[byte]);
    values.push(value);
    if (kernel->sizes[k] == 4) {
      int number;
      memcpy(&number, from, 4);
      snprintf(text, sizeof text, " %d", number);
      line.append(text);
    }
  }
  line.append("\n");
  const long blocks_of = grid[0], threads = block[0];
  return enqueue(call, stream, [=]() mutable {
    launches.append(line.zero_terminated());
    List<void *> places;
    for (List<char> &value : values) places.push(value.begin());
    kernel->call(blocks_of, threads, shared, places.begin());
  });
}

int begin_capture(const char *call, void *handle, int mode) {
  BEGIN(call);
  Stream *stream = stream_of(call, handle);
  if (!stream) return INVALID_HANDLE;
  if (!handle || stream->capturing) return CAPTURE_UNSUPPORTED;
  stream->capturing = new Graph;
  stream->broken = false;
  stream->mode = mode;
  stream->thread = &capture_mode;
  return OK;
}

int end_capture(const char *call, void *handle, void **graph) {
  BEGIN(call);
  Stream *stream = stream_of(call, handle);
  if (!stream || !stream->capturing) return CAPTURE_UNMATCHED;
  Graph *made = stream->capturing;
  stream->capturing = nullptr;
  *graph = nullptr;
  if (stream->broken) {
    delete made;
    return CAPTURE_INVALIDATED;
  }
  graphs.push(*graph = made);
  return OK;
}

int record(const char *call, void *handle, void *stream) {
  BEGIN(call);
  if (!events.has(handle)) return INVALID_HANDLE;
  Stream *where = stream_of(call, stream);
  if (!where) return INVALID_HANDLE;
  if (where->capturing) return CAPTURE_UNSUPPORTED;
  auto *event = static_cast<Event *>(handle);
  event->done = false;
  event->stream = where;
  return enqueue(call, stream, [event] {
    event->seconds = now();
    event->done = true;
  });
}

template <typename T> int make(const char *call, Handles &all, void **handle) {
  BEGIN(call);
  all.push(*handle = new T);
  return OK;
}

template <typename T> int destroy(const char *call, Handles &all, void *handle) {
  if (!spoiled) BEGIN(call);
  if (!all.take(handle)) return INVALID_HANDLE;
  /* Work that waits may still refer to an event; tests may lose its memory. */
  return spoiled;
}

const char *name_of(int code) {
  switch (code) {
    case OK: return "SUCCESS";
    case INVALID_VALUE: return "ERROR_INVALID_VALUE";
    case OUT_OF_MEMORY: return "ERROR_OUT_OF_MEMORY";
    case NO_DEVICE: return "ERROR_NO_DEVICE";
    case INVALID_DEVICE: return "ERROR_INVALID_DEVICE";
    case INVALID_IMAGE: return "ERROR_INVALID_IMAGE";
    case INVALID_CONTEXT: return "ERROR_INVALID_CONTEXT";
    case NO_BINARY: return "ERROR_NO_BINARY_FOR_GPU";
    case NOT_FOUND: return "ERROR_NOT_FOUND";
    case ILLEGAL_ADDRESS: return "ERROR_ILLEGAL_ADDRESS";
    case CAPTURE_INVALIDATED: return "ERROR_STREAM_CAPTURE_INVALIDATED";
    case CAPTURE_UNSUPPORTED: return "ERROR_STREAM_CAPTURE_UNSUPPORTED";
    default: return nullptr;
  }
}

int error_name(int code, const char **text) {
  *text = name_of(code);
  return *text ? OK : INVALID_VALUE;
}

} /* namespace */

/* What tests ask. */
API void standin_set(const char *name, long value) { set(name, strlen(name), value); }
API void standin_heal() {
  spoiled = 0;
  settings.clear();
}
API long standin_count(const char *what) {
  if (!strcmp(what, "memory")) return long(blocks.size());
  if (!strcmp(what, "modules")) return long(modules.size());
  if (!strcmp(what, "graphs")) return long(graphs.size());
  if (!strcmp(what, "events")) return long(events.size());
  return strcmp(what, "streams") ? -1 : long(streams.size());
}
API const char *standin_launches() { return launches.zero_terminated(); }
API void standin_forget() { launches.clear(); }

/* What both vendors have: the name of CUDA's symbol, of HIP's, parameters, and what is done with the symbol's name. */
#define BOTH(cuda, hip, parameters, ...)                                                                           \
  API int cuda parameters {                                                                                        \
    const char *call = #cuda;                                                                                      \
    const Alone alone;                                                                                             \
    (void)call;                                                                                                    \
    __VA_ARGS__                                                                                                      \
  }                                                                                                                \
  API int hip parameters {                                                                                         \
    const char *call = #hip;                                                                                       \
    const Alone alone;                                                                                             \
    (void)call;                                                                                                    \
    __VA_ARGS__                                                                                                      \
  }
BOTH(cuInit, hipInit, (unsigned), { return init(call); })
BOTH(cuDeviceGetCount, hipGetDeviceCount, (int *count), { *count = int(setting("devices", 1)); return OK; })
BOTH(cuDeviceGet, hipDeviceGet, (int *found, int ordinal), { return device(found, ordinal); })
BOTH(cuDeviceGetName, hipDeviceGetName, (char *name, int size, int), { snprintf(name, size, "Stand-in"); return OK; })
BOTH(cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t *total, int), { *total = setting("memory", 1L << 30); return OK; })
BOTH(cuGetErrorName, hipDrvGetErrorName, (int code, const char **text), { return error_name(code, text); })
BOTH(cuGetErrorString, hipDrvGetErrorString, (int code, const char **text), {
  *text = code ? "as the stand-in says" : "no error";
  return OK;
})
BOTH(cuModuleUnload, hipModuleUnload, (void *module), { return unload(call, module); })
BOTH(cuModuleGetFunction, hipModuleGetFunction, (void **found, void *module, const char *name),
     { return function(call, found, module, name); })
BOTH(cuMemAlloc_v2, hipMalloc, (uint64_t *address, size_t size), { return allocate(call, address, size); })
BOTH(cuMemFree_v2, hipFree, (uint64_t address), { return release(call, address); })
BOTH(cuMemGetInfo_v2, hipMemGetInfo, (size_t *available, size_t *total), { return memory(call, available, total); })
BOTH(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, (uint64_t to, const void *from, size_t size, void *stream), {
  BEGIN(call);
  if (!is_ours(to, size)) return INVALID_VALUE;
  return enqueue(call, stream, [=] { memcpy(reinterpret_cast<void *>(to), from, size); });
})
BOTH(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void *to, uint64_t from, size_t size, void *stream), {
  BEGIN(call);
  if (!is_ours(from, size)) return INVALID_VALUE;
  return enqueue(call, stream, [=] { memcpy(to, reinterpret_cast<void *>(from), size); });
})
BOTH(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (uint64_t to, uint64_t from, size_t size, void *stream), {
  BEGIN(call);
  if (!is_ours(to, size) || !is_ours(from, size)) return INVALID_VALUE;
  return enqueue(call, stream, [=] { memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), size); });
})
BOTH(cuMemsetD8Async, hipMemsetD8Async, (uint64_t to, unsigned char value, size_t size, void *stream), {
  BEGIN(call);
  if (!is_ours(to, size)) return INVALID_VALUE;
  return enqueue(call, stream, [=] { memset(reinterpret_cast<void *>(to), value, size); });
})
BOTH(cuStreamCreate, hipStreamCreateWithFlags, (void **stream, unsigned), {
  if (int code = make<Stream>(call, streams, stream)) return code;
  static_cast<Stream *>(*stream)->device = device_of(call);
  return OK;
})
BOTH(cuStreamDestroy_v2, hipStreamDestroy, (void *stream), { return destroy<Stream>(call, streams, stream); })
BOTH(cuStreamSynchronize, hipStreamSynchronize, (void *stream), { return synchronize(call, stream); })
BOTH(cuStreamBeginCapture_v2, hipStreamBeginCapture, (void *stream, int mode), { return begin_capture(call, stream, mode); })
BOTH(cuThreadExchangeStreamCaptureMode, hipThreadExchangeStreamCaptureMode, (int *mode), {
  if (*mode < GLOBAL || *mode > RELAXED) return INVALID_VALUE;
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return OK;
})
BOTH(cuStreamEndCapture, hipStreamEndCapture, (void *stream, void **graph), { return end_capture(call, stream, graph); })
BOTH(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags, (void **made, void *graph, unsigned long long), {
  BEGIN(call);
  if (!graphs.has(graph)) return INVALID_HANDLE;
  graphs.push(*made = new Graph(*static_cast<Graph *>(graph)));
  return OK;
})
BOTH(cuGraphLaunch, hipGraphLaunch, (void *graph, void *stream), {
  BEGIN(call);
  if (!graphs.has(graph)) return INVALID_HANDLE;
  for (const Work &work : static_cast<Graph *>(graph)->work)
    if (int code = enqueue(call, stream, work)) return code;
  return OK;
})
BOTH(cuGraphDestroy, hipGraphDestroy, (void *graph), { return destroy<Graph>(call, graphs, graph); })
BOTH(cuGraphExecDestroy, hipGraphExecDestroy, (void *graph), { return destroy<Graph>(call, graphs, graph); })
BOTH(cuEventCreate, hipEventCreateWithFlags, (void **event, unsigned), { return make<Event>(call, events, event); })
BOTH(cuEventDestroy_v2, hipEventDestroy, (void *event), { return destroy<Event>(call, events, event); })
BOTH(cuEventRecord, hipEventRecord, (void *event, void *stream), { return record(call, event, stream); })
BOTH(cuEventSynchronize, hipEventSynchronize, (void *event), {
  BEGIN(call);
  if (!events.has(event)) return INVALID_HANDLE;
  auto *known = static_cast<Event *>(event);
  return known->stream && !known->done ? flush(known->stream) : OK;
})
BOTH(cuEventElapsedTime, hipEventElapsedTime, (float *milliseconds, void *start, void *end), {
  BEGIN(call);
  auto *from = static_cast<Event *>(start), *to = static_cast<Event *>(end);
  if (!from->done || !to->done) return NOT_READY;
  *milliseconds = float(1e3 * (to->seconds - from->seconds));
  return OK;
})

/* What differs. */
API int cuDriverGetVersion(int *version) { return *version = int(setting("version", 13000)), OK; }
API int hipRuntimeGetVersion(int *version) { return *version = 60242134, OK; }
namespace {
struct Attribute { int number, value; };
template <size_t N> int attribute_of(const Attribute (&known)[N], int attribute, int *value) {
  *value = -1;
  for (const Attribute &each : known)
    if (each.number == attribute) return *value = each.value, OK;
  return INVALID_VALUE;
}
} /* namespace */
API int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const Attribute known[] = {{1, 1024},      {10, 32}, {16, 132}, {38, 52428800},
                             {97, 232448}, {75, int(setting_of("major", device, 9))}, {76, 0}};
  return attribute_of(known, attribute, value);
}
API int hipDeviceGetAttribute(int *value, int attribute, int) {
  const Attribute known[] = {{56, 1024}, {87, 64}, {63, 304}, {19, 4194304}, {74, 65536}};
  return attribute_of(known, attribute, value);
}
API int hipGetDevicePropertiesR0600(char *properties, int) {
  memset(properties, 0, 1472);
  strcpy(properties + 1160, setting("major", 9) == 9 ? "gfx942:sramecc+:xnack-" : "gfx1100");
  return OK;
}
API int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = contexts + device, OK; }
API int cuCtxGetCurrent(void **context) { return *context = current_context, OK; }
API int cuCtxSetCurrent(void *context) { return current_context = context, OK; }
API int hipGetDevice(int *found) { return *found = current_device, OK; }
API int hipSetDevice(int ordinal) { return current_device = ordinal, OK; }
API int cuFuncSetAttribute(void *handle, int attribute, int value) {
  const Alone alone;
  BEGIN("cuFuncSetAttribute");
  if (attribute != 8 || !functions.has(handle) || value > 232448) return INVALID_VALUE;
  static_cast<Function *>(handle)->most_shared = value;
  return OK;
}
API int cuModuleLoadData(void **module, const char *image) {
  const Alone alone;
  char architecture[16];
  snprintf(architecture, sizeof architecture, "sm_%ld0", setting_of("major", device_of("cu"), 9));
  return load("cuModuleLoadData", architecture, module, image);
}
API int hipModuleLoadData(void **module, const char *image) { return load("hipModuleLoadData", "gfx942", module, image); }
API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **parameters, void **) {
  const Alone alone;
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  return launch("cuLaunchKernel", function, grid, block, shared, stream, parameters, 232448);
}
API int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, void *stream, void **parameters, void **) {
  const Alone alone;
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  if (functions.has(function)) static_cast<Function *>(function)->most_shared = 65536;
  return launch("hipModuleLaunchKernel", function, grid, block, shared, stream, parameters, 65536);
}
