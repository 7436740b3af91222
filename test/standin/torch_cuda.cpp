/* CUDA tensors for PyTorch's CPU build, in memory of the stand-in driver: an allocator that gives freed memory again in
   the order of a stream, copies, views, and all other operators by PyTorch's code for CPUs. `torch_cuda.py` builds it. */
#include <ATen/EmptyTensor.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

using at::Tensor;

struct Driver {
  int (*primary)(void **, int), (*set)(void *), (*get)(void **), (*allocate)(uint64_t *, size_t), (*free)(uint64_t);
  int (*upload)(uint64_t, const void *, size_t, void *), (*download)(void *, uint64_t, size_t, void *);
  int (*copy)(uint64_t, uint64_t, size_t, void *), (*wait)(void *), (*mode)(int *), (*count)(int *);
} driver;

thread_local c10::DeviceIndex device_now = 0;
thread_local std::map<int, void *> current_streams;
/* The memory of a graph that is being captured belongs to it. */
thread_local long pool = 0;
std::mutex lock;
struct Block {
  uint64_t address;
  size_t bytes;
  int device;
  void *stream;
  long pool;
};
std::vector<Block *> spare;
long allocations = 0, waits = 0, held = 0;

void check(int code, const char *what) {
  TORCH_CHECK(code == 0, "CUDA error: ", what, " failed with ", code);
}

/* The context of a device is current, within. */
struct Context {
  void *before = nullptr;
  explicit Context(int device) {
    void *own = nullptr;
    driver.get(&before);
    check(driver.primary(&own, device), "cuDevicePrimaryCtxRetain");
    driver.set(own);
  }
  ~Context() { driver.set(before); }
};

void *stream_of(int device) { return current_streams[device]; }

void wait(int device) {
  ++waits;
  Context context(device);
  check(driver.wait(stream_of(device)), "cuStreamSynchronize");
}

void give_back(void *given) {
  std::lock_guard<std::mutex> guard(lock);
  auto *block = static_cast<Block *>(given);
  held -= long(block->bytes);
  spare.push_back(block);
}

void empty_cache() {
  int mode = 2;
  driver.mode(&mode);
  for (Block *each : spare) {
    Context context(each->device);
    driver.free(each->address);
    delete each;
  }
  spare.clear();
  driver.mode(&mode);
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    const int device = device_now;
    const c10::Device where(c10::kCUDA, device_now);
    if (!size) return {nullptr, nullptr, &give_back, where};
    const size_t bytes = (size + 511) / 512 * 512;
    void *stream = stream_of(device);
    std::lock_guard<std::mutex> guard(lock);
    ++allocations;
    held += long(bytes);
    for (size_t k = spare.size(); k-- > 0;) {
      Block *each = spare[k];
      if (each->bytes == bytes && each->device == device && each->stream == stream && each->pool == pool) {
        spare.erase(spare.begin() + long(k));
        return {reinterpret_cast<void *>(each->address), each, &give_back, where};
      }
    }
    Context context(device);
    int mode = 2;
    driver.mode(&mode);
    uint64_t address = 0;
    int code = driver.allocate(&address, bytes);
    if (code == 2) {
      empty_cache();
      code = driver.allocate(&address, bytes);
    }
    driver.mode(&mode);
    TORCH_CHECK_WITH(OutOfMemoryError, code != 2, "CUDA out of memory. Tried to allocate ", bytes, " bytes.");
    check(code, "cuMemAlloc");
    return {reinterpret_cast<void *>(address), new Block{address, bytes, device, stream, pool}, &give_back, where};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void *, const void *, size_t) const override { TORCH_CHECK(false, "no copies"); }
};
Allocator allocator;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::kCUDA;
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before(c10::kCUDA, device_now);
    device_now = device.index();
    return before;
  }
  c10::Device getDevice() const override { return {c10::kCUDA, device_now}; }
  void setDevice(c10::Device device) const override { device_now = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { device_now = device.index(); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
  /* All work of a thread is in one stream of a device: events have nothing to order. */
  void record(void **, const c10::Stream &, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override { return true; }
  void destroyEvent(void *, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

/* What the engine of gradients asks. */
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 2; }
  int getNumGPUs() const override { return 2; }
  c10::DeviceIndex getCurrentDevice() const override { return device_now; }
  void setCurrentDevice(c10::DeviceIndex device) const override { device_now = device; }
};
using at::CUDAHooksArgs;
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks)

const c10::DispatchKeySet KEYS(c10::DispatchKey::CUDA);

Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
             std::optional<c10::Device> device, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &allocator, KEYS, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                     std::optional<c10::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, strides, &allocator, KEYS, c10::dtype_or_default(dtype));
}

uint64_t begin_of(const Tensor &tensor) {
  return reinterpret_cast<uint64_t>(tensor.storage().data());
}

/* A copy on the host with the same strides, of the whole memory. */
Tensor on_host(const Tensor &tensor) {
  if (tensor.is_cpu()) return tensor;
  const size_t bytes = tensor.storage().nbytes();
  Tensor made = at::empty({0}, tensor.options().device(c10::kCPU));
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::GetAllocator(c10::kCPU));
  made.set_(storage, tensor.storage_offset(), tensor.sizes(), tensor.strides());
  if (bytes) {
    Context context(tensor.get_device());
    check(driver.download(storage.mutable_data(), begin_of(tensor), bytes, stream_of(tensor.get_device())), "download");
    wait(tensor.get_device());
  }
  return made;
}

Tensor &copy(Tensor &self, const Tensor &source, bool) {
  const bool is_here = self.is_cuda() && source.is_cuda() && self.device() == source.device();
  const bool is_plain = self.dtype() == source.dtype() && self.sizes() == source.sizes() &&
                        self.strides() == source.strides() && self.is_non_overlapping_and_dense();
  if (self.numel() == 0) return self;
  if (is_here && is_plain) {
    Context context(self.get_device());
    check(driver.copy(reinterpret_cast<uint64_t>(self.data_ptr()), reinterpret_cast<uint64_t>(source.data_ptr()),
                      self.nbytes(), stream_of(self.get_device())), "copy");
    return self;
  }
  Tensor host = on_host(self);
  host.copy_(on_host(source));
  if (self.is_cuda()) {
    Context context(self.get_device());
    check(driver.upload(begin_of(self), host.storage().data(), self.storage().nbytes(), stream_of(self.get_device())),
          "upload");
    wait(self.get_device());
  }
  return self;
}

const Tensor &resize(const Tensor &self, c10::IntArrayRef size, std::optional<c10::MemoryFormat>) {
  const c10::DeviceGuard guard(self.device());
  const size_t bytes = size_t(c10::multiply_integers(size)) * self.itemsize();
  if (self.storage().nbytes() < bytes) {
    self.storage().set_data_ptr(allocator.allocate(bytes));
    self.storage().set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

Tensor &set_storage(Tensor &self, c10::Storage storage, int64_t offset, c10::IntArrayRef size,
                    c10::IntArrayRef strides) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, strides, offset);
  return self;
}

Tensor copy_from(const Tensor &source, const Tensor &given, bool) {
  Tensor self = given;
  return copy(self, source, false);
}

Tensor copy_from_and_resize(const Tensor &source, const Tensor &self) {
  if (self.sizes() != source.sizes()) resize(self, source.sizes(), std::nullopt);
  return copy_from(source, self, false);
}

void by_the_host(const c10::OperatorHandle &op, torch::jit::Stack *stack) { at::native::cpu_fallback(op, stack); }

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_host>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
}

} /* namespace */

/* PyTorch's engine of gradients asks for the accelerator, which a build for CUDA knows when it is compiled. This library
   comes before PyTorch's (LD_PRELOAD). */
namespace at::accelerator {
std::optional<c10::DeviceType> getAccelerator(bool) { return c10::kCUDA; }
} /* namespace at::accelerator */

API void standin_torch_open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const struct {
    const char *name;
    void **place;
  } rows[] = {{"cuDevicePrimaryCtxRetain", (void **)&driver.primary}, {"cuCtxSetCurrent", (void **)&driver.set},
              {"cuCtxGetCurrent", (void **)&driver.get},              {"cuMemAlloc_v2", (void **)&driver.allocate},
              {"cuMemFree_v2", (void **)&driver.free},                {"cuMemcpyHtoDAsync_v2", (void **)&driver.upload},
              {"cuMemcpyDtoHAsync_v2", (void **)&driver.download},    {"cuMemcpyDtoDAsync_v2", (void **)&driver.copy},
              {"cuStreamSynchronize", (void **)&driver.wait},
              {"cuThreadExchangeStreamCaptureMode", (void **)&driver.mode}};
  for (const auto &row : rows) *row.place = dlsym(library, row.name);
  reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"))(0);
  c10::SetAllocator(c10::kCUDA, &allocator, 1);
}
API void standin_torch_stream(int device, void *stream) { current_streams[device] = stream; }
API void *standin_torch_current(int device) { return stream_of(device); }
API void standin_torch_pool(long number) { pool = number; }
API void standin_torch_empty_cache() {
  std::lock_guard<std::mutex> guard(lock);
  empty_cache();
}
/* Since the process began: allocations, and waits for the device; and the bytes that tensors have now. */
API long standin_torch_count(const char *what) {
  return what[0] == 'a' ? allocations : what[0] == 'w' ? waits : held;
}
