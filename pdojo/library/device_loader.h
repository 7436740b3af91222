/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Programs of a GPU, launched through its driver's library, which is opened when a program loads the first image. A
   generated file defines the names of one vendor and the type of a library, PD_DEVICE, and includes this file. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Codes of this file; codes of the driver are positive. */
enum { PD_OK = 0, PD_SIZES = -1, PD_DRIVER = -2, PD_FILE = -3, PD_MEMORY = -4, PD_NULL = -5 };

typedef struct {
  const char *function;
  unsigned blocks, threads, shared; /* of a launch; bytes of dynamic shared memory */
  int first, arrays;                /* the first parameters: places in `positions`, and their number */
  int has_workspace, values;        /* whether the workspace follows; the number of integers at the end */
} pd_kernel;

typedef struct { int kernel, first; /* place of the first integer in `values` */ } pd_launch;

typedef struct {
  const int64_t *sizes;
  const char *file; /* of the image, relative to the folder of images */
  size_t workspace; /* bytes of device memory */
  const pd_kernel *kernels;
  int kernel_count;
  const pd_launch *launches;
  int launch_count;
  const int *positions, *values;
} pd_program;

typedef struct { void *module, **functions; } pd_loaded;

typedef struct PD_DEVICE pd_device;
struct PD_DEVICE {
  void *driver;
  char *folder;
  pd_loaded *programs; /* loaded at their first call */
  int count;
  int (*load)(void **, const void *);
  int (*unload)(void *);
  int (*function)(void **, void *, const char *);
  int (*attribute)(void *, int, int);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
};

static void pd_close(pd_device *device) {
  if (device == NULL) return;
  for (int k = 0; k < device->count && device->programs != NULL; k++) {
    if (device->programs[k].module != NULL) device->unload(device->programs[k].module);
    free(device->programs[k].functions);
  }
  free(device->programs);
  free(device->folder);
  if (device->driver != NULL) dlclose(device->driver);
  free(device);
}

/* A function of the driver's library; through memory, as ISO C has no conversion of pointers to functions. */
static int pd_find(pd_device *device, const char *name, void *function) {
  void *found = name == NULL ? NULL : dlsym(device->driver, name);
  memcpy(function, &found, sizeof found);
  return found != NULL || name == NULL;
}

static int pd_open(pd_device **out, const char *folder, int count) {
  if (out == NULL || folder == NULL) return PD_NULL;
  *out = NULL;
  pd_device *device = calloc(1, sizeof *device);
  if (device == NULL) return PD_MEMORY;
  device->count = count;
  device->programs = calloc((size_t)count, sizeof *device->programs);
  device->folder = malloc(strlen(folder) + 1);
  int code = device->programs == NULL || device->folder == NULL ? PD_MEMORY : PD_OK;
  if (code == PD_OK) {
    strcpy(device->folder, folder);
    device->driver = dlopen(PD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const int found = device->driver != NULL && pd_find(device, PD_MODULE_LOAD, &device->load) &&
                      pd_find(device, PD_MODULE_UNLOAD, &device->unload) &&
                      pd_find(device, PD_FUNCTION, &device->function) &&
                      pd_find(device, PD_ATTRIBUTE, &device->attribute) && pd_find(device, PD_LAUNCH, &device->launch);
    code = found ? PD_OK : PD_DRIVER;
  }
  if (code == PD_OK)
    *out = device;
  else
    pd_close(device);
  return code;
}

/* The contents of an image; NULL if it cannot be read. */
static char *pd_image(const char *folder, const char *file) {
  char *data = NULL, *path = malloc(strlen(folder) + strlen(file) + 2);
  if (path == NULL) return NULL;
  sprintf(path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "rb");
  free(path);
  if (stream == NULL) return NULL;
  long size = -1;
  if (fseek(stream, 0, SEEK_END) == 0) size = ftell(stream);
  if (size >= 0 && fseek(stream, 0, SEEK_SET) == 0 && (data = malloc((size_t)size + 1)) != NULL) {
    if (fread(data, 1, (size_t)size, stream) != (size_t)size) {
      free(data);
      data = NULL;
    }
  }
  fclose(stream);
  return data;
}

static int pd_load(pd_device *device, const pd_program *program, pd_loaded *loaded) {
  if (loaded->module != NULL) return PD_OK;
  char *image = pd_image(device->folder, program->file);
  if (image == NULL) return PD_FILE;
  void **functions = calloc((size_t)program->kernel_count, sizeof *functions), *module = NULL;
  int code = functions == NULL ? PD_MEMORY : device->load(&module, image);
  free(image);
  for (int k = 0; code == PD_OK && k < program->kernel_count; k++) {
    const pd_kernel *kernel = &program->kernels[k];
    code = device->function(&functions[k], module, kernel->function);
    /* More dynamic shared memory than 48 KiB must be asked for (CUDA). */
    if (code == PD_OK && device->attribute != NULL && kernel->shared > 48 << 10)
      code = device->attribute(functions[k], PD_DYNAMIC_SHARED, (int)kernel->shared);
  }
  if (code != PD_OK) {
    if (module != NULL) device->unload(module);
    free(functions);
    return code;
  }
  loaded->module = module;
  loaded->functions = functions;
  return PD_OK;
}

/* The number of the program for sizes, among `count` programs of an operator; -1 if there is none. */
static int pd_choose(const pd_program *programs, int count, int columns, const int64_t *sizes) {
  for (int k = 0; k < count; k++)
    if (columns == 0 || memcmp(programs[k].sizes, sizes, (size_t)columns * sizeof *sizes) == 0) return k;
  return -1;
}

/* Launch a program in a stream; `arrays` are addresses on the device. Returns before the work is done. */
static int pd_call(pd_device *device, const pd_program *program, int number, void *stream, uint64_t workspace,
                   const uint64_t *arrays) {
  const int code = pd_load(device, program, &device->programs[number]);
  if (code != PD_OK) return code;
  for (int k = 0; k < program->launch_count; k++) {
    const pd_kernel *kernel = &program->kernels[program->launches[k].kernel];
    void *parameters[PD_MOST_PARAMETERS];
    int used = 0;
    for (int p = 0; p < kernel->arrays; p++)
      parameters[used++] = (void *)&arrays[program->positions[kernel->first + p]];
    if (kernel->has_workspace) parameters[used++] = &workspace;
    for (int p = 0; p < kernel->values; p++) parameters[used++] = (void *)&program->values[program->launches[k].first + p];
    void *function = device->programs[number].functions[program->launches[k].kernel];
    const int launched = device->launch(function, kernel->blocks, 1, 1, kernel->threads, 1, 1, kernel->shared, stream,
                                        parameters, NULL);
    if (launched != PD_OK) return launched;
  }
  return PD_OK;
}

static const char *pd_message(int code) {
  switch (code) {
    case PD_OK: return "no error";
    case PD_SIZES: return "there is no program for these sizes";
    case PD_DRIVER: return "the driver's library is missing, or lacks a function";
    case PD_FILE: return "an image cannot be read";
    case PD_MEMORY: return "there is not enough memory";
    case PD_NULL: return "a pointer is NULL";
    default: return "an error of the driver";
  }
}
